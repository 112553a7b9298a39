"""Golden traces: what every algorithm does under every policy, over every kind of log, round by round.

A trace has the action of each round with the samples used by then, and at the end what is left of the log and a digest
of what the base knows. `traces.json` holds one trace per scene, whatever the speed. It is written anew, each scene
taken in both speeds, by

    python tests/golden/traces.py --freeze

and a change of that file needs a reason in the commit message: decisions are not to change by accident.

Only public names are used, and only ordinarily: each action that was asked for is told once.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import random
import sys
import tempfile
from collections.abc import Callable, Hashable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import artreplay as ar

FILE = Path(__file__).with_name("traces.json")
ROWS, ROUNDS = 90, 26
TURN = 11  # the round after which a policy is saved and loaded, or its log extended
FIRST_ROWS = 55  # of a log that is extended

Trace = dict[str, Any]


# -- bases of our own -------------------------------------------------------------------------------------------------


class Leader:
    """A plain object without cells: the label with the highest mean, and in every third proposal the second as well."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys(("red", "green", "blue", "grey"), 0)
        self.totals = dict.fromkeys(self.counts, 0.0)

    def propose(self) -> str | list[str]:
        """The label, or a list of two."""
        ranked = sorted(self.counts, key=lambda label: -(1.0 + self.totals[label]) / (1.0 + self.counts[label]))
        return ranked[:2] if sum(self.counts.values()) % 3 == 2 else ranked[0]

    def update(self, label: str, reward: float) -> None:
        """Count a sample."""
        self.counts[label] += 1
        self.totals[label] += reward

    def check_unit(self, label: Any) -> None:
        """Refuse other labels."""
        if label not in self.counts:
            raise ValueError(f"{label!r} is no colour")


class Quarters:
    """A plain object with cells: a point in the quarter of [0, 1] whose samples are worst, each time elsewhere."""

    def __init__(self) -> None:
        self.counts, self.totals = [0] * 4, [0.0] * 4

    def propose(self) -> tuple[float]:
        """A point that is hardly ever one of the log."""
        quarter = min(range(4), key=lambda number: (self.totals[number] + 0.5) / (self.counts[number] + 1))
        return (quarter / 4 + 0.125 - 2.0 ** -(4 + self.counts[quarter] % 7),)

    def update(self, point: tuple[float], reward: float) -> None:
        """Count a sample."""
        self.counts[self.cell(point)] += 1
        self.totals[self.cell(point)] += reward

    def cell(self, point: tuple[float]) -> int:
        """The quarter."""
        return min(int(4 * point[0]), 3)

    def check_unit(self, point: Any) -> None:
        """Refuse other points."""
        if not 0.0 <= point[0] <= 1.0:
            raise ValueError(f"{point!r} lies outside [0, 1]")


@ar.compiled
class Couples(NamedTuple):
    """A marked component: the unit of the highest mean and, while that is rare, its neighbour; they share a cell."""

    count: Any
    total: Any
    width = 2
    n_arms = 6

    def propose(self, out):
        """One unit, or two."""
        best = 0
        for unit in range(len(self.count)):
            if (1.0 + self.total[unit]) * (1.0 + self.count[best]) > (1.0 + self.total[best]) * (
                1.0 + self.count[unit]
            ):
                best = unit
        out[0] = best
        if self.count[best] >= 6:
            return 1
        out[1] = best ^ 1
        return 2

    def update(self, unit, reward):
        """Count a sample."""
        self.count[unit] += 1
        self.total[unit] += reward

    def cell(self, unit):
        """The couple."""
        return unit // 2


@ar.compiled
class Seldom(NamedTuple):
    """A marked component: the unit shown least often, so that logs are read evenly; each unit is a cell."""

    count: Any
    total: Any
    n_arms = 5

    def propose(self, out):
        """One unit."""
        best = 0
        for unit in range(len(self.count)):
            if self.count[unit] - self.total[unit] < self.count[best] - self.total[best]:
                best = unit
        out[0] = best
        return 1

    def update(self, unit, reward):
        """Count a sample."""
        self.count[unit] += 1
        self.total[unit] += reward


# -- what is played ---------------------------------------------------------------------------------------------------


class Units(NamedTuple):
    """What logs are about: arms, or points of a box, perhaps at levels."""

    arms: tuple[Hashable, ...] = ()
    dim: int = 0
    box: tuple[float, float] = (0.0, 1.0)
    levels: tuple[float, ...] = ()


NUMBERS, LABELS = Units(tuple(range(5))), Units(("red", "green", "blue", "grey"))
LINE, PLANE, WIDE = Units(dim=1), Units(dim=2), Units(dim=1, box=(-1.0, 3.0))
EFFORTS, PLANE_EFFORTS = Units(dim=1, levels=(0.0, 0.5, 1.0)), Units(dim=2, levels=(1.0, 2.0, 3.0))

SMALL = ar.bonus.practical(0.1)
BLOCKS = [[1, 0, 0], [0.5, 0, 0], [0, 1, 0], [0, 0.5, 0], [0, 0, 1]]
DENSE = [[1, 0.5], [0.5, 0.5], [0, 1], [0.25, 1], [1, 0.25]]
EFFORT: dict[str, Any] = {"levels": EFFORTS.levels, "budget": 1.5, "max_units": 2}
MORE: dict[str, Any] = {"levels": PLANE_EFFORTS.levels, "budget": 5, "max_units": 3}


def narrow(n: int) -> float:
    """A bonus of the user's own."""
    return 0.8 / math.sqrt(n)


Bases = dict[str, tuple[Units, Callable[..., Any]]]  # by name: what the log is about, and how to make one

BASES: Bases = {
    "KLUCB": (NUMBERS, lambda rows=0: ar.KLUCB(5, 120 - rows)),
    "KLUCB, moss": (LABELS, lambda rows=0: ar.KLUCB(arms=LABELS.arms, horizon=120 - rows, level="moss")),
    "MonUCB": (NUMBERS, lambda: ar.MonUCB(5, 30, bonus=SMALL)),
    "MonUCB, theory": (NUMBERS, lambda: ar.MonUCB(5, 30)),
    "MonUCB, callable": (NUMBERS, lambda: ar.MonUCB(5, 30, bonus=narrow)),
    "MonUCB, labels": (LABELS, lambda: ar.MonUCB(arms=LABELS.arms, horizon=30, bonus=SMALL)),
    "MonUCB, range": (LABELS, lambda: ar.MonUCB(arms=LABELS.arms, horizon=3, bonus=SMALL, reward_range=(-1, 3))),
    "PsiUCB, Hoeffding": (NUMBERS, lambda: ar.PsiUCB(5, 2)),
    "PsiUCB, KL": (NUMBERS, lambda: ar.PsiUCB(5, 2, psi=ar.psi.bernoulli_kl)),
    "PsiUCB, sub-Gaussian": (LABELS, lambda: ar.PsiUCB(arms=LABELS.arms, horizon=9, psi=ar.psi.sub_gaussian(0.1))),
    "TopUCB": (NUMBERS, lambda: ar.TopUCB(5, 2, 30, bonus=SMALL)),
    "TopUCB, callable": (LABELS, lambda: ar.TopUCB(arms=LABELS.arms, budget=3, horizon=30, bonus=narrow)),
    "LinUCB, blocks": (NUMBERS, lambda: ar.LinUCB(BLOCKS, 30, alpha=0.9)),
    "LinUCB, dense": (NUMBERS, lambda: ar.LinUCB(DENSE, 30, alpha=0.9)),
    "Thompson, certified": (NUMBERS, lambda: ar.ThompsonSampling(5, seed=3)),
    "AnchorThompson": (LABELS, lambda: ar.AnchorThompson(arms=LABELS.arms, seed=4)),
    "UCB1, certified": (LABELS, lambda: ar.UCB1(arms=LABELS.arms, reward_range=(-1, 3))),
    "BayesUCB": (NUMBERS, lambda: ar.BayesUCB(5, 30)),
    "Greedy": (NUMBERS, lambda: ar.Greedy(5)),
    "LUCB": (NUMBERS, lambda: ar.LUCB(5, delta=0.1)),
    "IDS": (Units((0, 1, 2)), lambda: ar.IDS(3, seed=1)),
    "RandomChoice": (NUMBERS, lambda: ar.RandomChoice(5, seed=2)),
    "RandomChoice, two": (LABELS, lambda: ar.RandomChoice(arms=LABELS.arms, budget=2, seed=5)),
    "GridUCB": (LINE, lambda: ar.GridUCB(1, 30, 5, bonus=SMALL)),
    "GridUCB, d=2": (PLANE, lambda: ar.GridUCB(2, 30, 3, bonus=narrow)),
    "GridUCB, uniform": (WIDE, lambda: ar.GridUCB(1, 30, 4, bonus=SMALL, play="uniform", seed=3, box=[WIDE.box])),
    "TreeUCB": (LINE, lambda: ar.TreeUCB(1, 30, bonus=SMALL)),
    "TreeUCB, d=2": (PLANE, lambda: ar.TreeUCB(2, 30, epsilon=0.125, bonus=SMALL)),
    "TreeUCB, confidence": (LINE, lambda: ar.TreeUCB(1, 30, epsilon=2**-5, split="confidence", bonus=SMALL)),
    "TreeUCB, KL": (PLANE, lambda: ar.TreeUCB(2, 30, epsilon=0.125, split="confidence", bonus=ar.bonus.kl())),
    "TreeUCB, uniform": (WIDE, lambda: ar.TreeUCB(1, 30, bonus=narrow, play="uniform", seed=3, box=[WIDE.box])),
    "GridAllocation": (EFFORTS, lambda: ar.GridAllocation(1, horizon=30, cells_per_side=4, bonus=SMALL, **EFFORT)),
    "GridAllocation, greedy": (
        EFFORTS,
        lambda: ar.GridAllocation(1, horizon=30, cells_per_side=3, solver="greedy", bonus=narrow, **EFFORT),
    ),
    "GridAllocation, d=2": (
        PLANE_EFFORTS,
        lambda: ar.GridAllocation(2, horizon=30, cells_per_side=2, bonus=SMALL, play="uniform", seed=4, **MORE),
    ),
    "GridAllocation, mask": (
        EFFORTS,
        lambda: ar.GridAllocation(
            1, horizon=30, cells_per_side=4, bonus=SMALL, mask=[True, False, True, True], **EFFORT
        ),
    ),
    "TreeAllocation": (EFFORTS, lambda: ar.TreeAllocation(1, horizon=30, epsilon=0.125, bonus=SMALL, **EFFORT)),
    "TreeAllocation, greedy": (
        EFFORTS,
        lambda: ar.TreeAllocation(1, horizon=30, epsilon=0.25, solver="greedy", bonus=SMALL, **EFFORT),
    ),
    "TreeAllocation, d=2": (
        PLANE_EFFORTS,
        lambda: ar.TreeAllocation(2, horizon=30, epsilon=0.25, split="confidence", bonus=SMALL, **MORE),
    ),
    "TreeAllocation, paper": (
        EFFORTS,
        lambda: ar.TreeAllocation(1, horizon=30, epsilon=0.125, rule="paper", bonus=SMALL, **EFFORT),
    ),
    "RandomAllocation": (EFFORTS, lambda: ar.RandomAllocation(1, cells_per_side=4, seed=2, **EFFORT)),
    "PointRegression": (LINE, lambda: ar.PointRegression(1, 20, side=8)),
    "CellRegression": (EFFORTS, lambda: ar.CellRegression(1, horizon=20, side=8, **EFFORT)),
    "own object": (LABELS, Leader),
    "own object with cells": (LINE, Quarters),
    "own component": (NUMBERS, lambda: Seldom(np.zeros(5, np.int64), np.zeros(5))),
    "own component with cells": (NUMBERS, lambda: Couples(np.zeros(6, np.int64), np.zeros(6))),
}
COUNTS_ROWS = ("KLUCB", "KLUCB, moss")  # made for fewer rounds, because the policy adds the rows of its log
BEFORE_ITS_LOG = ("TreeUCB, KL",)  # made for fewer rounds than the log has rows: it starts without them
SLOW = ("IDS", "PointRegression", "CellRegression")  # these have few scenes, and short ones
DRIFTING: dict[str, tuple[Any, ...]] = {  # with an allowance for all arms, and for each
    "KLUCB": (0.1, {0: 0.05, 1: 0.2, 2: 1.0}),
    "KLUCB, moss": (0.1, {"red": 0.05, "grey": 0.3}),
    "TopUCB": (0.05, {0: 0.05, 1: 0.2}),
    "TreeUCB": (0.1,),
    "GridAllocation": (0.1,),
}
COUNTED = ("KLUCB", "MonUCB", "TopUCB", "Thompson, certified", "UCB1, certified", "BayesUCB")  # start from totals, too
CERTIFIED = (
    "Thompson, certified",
    "AnchorThompson",
    "UCB1, certified",
    "BayesUCB",
    "Greedy",
)  # these have few scenes, too
SAVED = (
    *("KLUCB", "MonUCB", "MonUCB, range", "PsiUCB, KL", "TopUCB", "LinUCB, blocks", "RandomChoice, two"),
    "TreeUCB, KL",
    *("GridUCB", "TreeUCB", "TreeUCB, d=2", "TreeUCB, confidence", "GridAllocation", "TreeAllocation"),
    *("TreeAllocation, paper", "RandomAllocation"),
)
EXTENDED = (
    *(
        "KLUCB",
        "MonUCB",
        "MonUCB, callable",
        "TopUCB",
        "LinUCB, blocks",
        "GridUCB",
        "TreeUCB",
        "TreeUCB, d=2",
    ),
    *("GridAllocation", "TreeAllocation", "own object", "own object with cells", "own component"),
)


# -- the logs ---------------------------------------------------------------------------------------------------------


class Shelf:
    """The logs, each made once; those on disk lie in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stores: dict[tuple[Units, bool, str], Path] = {}

    def log(self, units: Units, place: str, strange: bool = False, rows: int = ROWS) -> Any:
        """The first rows of the log of these units: in memory, in our own layout, or as another engine sorts Parquet.

        One row in six of a `strange` log is about something else.
        """
        samples = logged(units, strange)
        if place == "memory" or not units.arms:  # only logs of arms are laid out
            kept = samples[:rows]
            levels = [level for _, level, _ in kept] if units.levels else None
            return ar.History([unit for unit, _, _ in kept], [reward for _, _, reward in kept], levels=levels)
        key = (units, strange, place)
        if key not in self._stores:
            self._stores[key] = self._folder / f"log {len(self._stores)}"
            table, columns = as_table(units, samples)
            if place == "store":
                ar.index_history(table, self._stores[key], **columns)
            else:
                self._stores[key].mkdir()
                numbered = table.append_column("at", pa.array(range(len(table))))
                ordered = numbered.sort_by([(columns["unit"], "ascending"), ("at", "ascending")])
                pq.write_table(ordered, self._stores[key] / "part-0.parquet", row_group_size=20)
                ar.index_history(self._stores[key], already_sorted=True, order="at", **columns)
        return ar.open_history(self._stores[key]).first(rows)

    def file(self) -> Path:
        """Where a policy can be saved."""
        return self._folder / "policy.ar"


@functools.cache
def logged(units: Units, strange: bool) -> list[tuple[Any, float, float]]:
    """Unit, level and reward of each row: a few values come often, others hardly ever, and one arm never."""
    rng = random.Random(len(units.arms) + 10 * units.dim + 100 * len(units.levels))
    low, high = units.box
    samples = []
    for _ in range(ROWS):
        other = rng.random() < 1 / 6 and strange
        worth = rng.random()
        if units.arms:
            place = int(len(units.arms[:-1]) * rng.random() ** 2)
            unit: Any = units.arms[place]
            worth *= 1 + place / len(units.arms)
            if other:
                unit = -7 if isinstance(unit, int) else "pink"
        else:
            unit = [low + (high - low) * int(17 * rng.random() ** 1.5) / 16 for _ in range(units.dim)]
            worth += (unit[0] - low) / (high - low) / 2
            if other:
                unit[-1] += 2 * (high - low)
        level = rng.choice(units.levels) if units.levels else 0.0
        samples.append((unit, level, 0.0 if worth < 0.5 else 0.5 if worth < 0.8 else 1.0))
    return samples


def foreign_units(units: Units) -> tuple[Any, ...]:
    """Some units of the log, which are told although nobody asked for them."""
    if units.arms:
        return units.arms[1:4]
    points = [tuple(unit) for unit, _, _ in logged(units, False)[::7]]
    if units.levels:
        return tuple(ar.Allocation(point, units.levels[-1]) for point in points)
    return tuple(points)


def as_table(units: Units, samples: list[tuple[Any, float, float]]) -> tuple[pa.Table, dict[str, Any]]:
    """The log as a table, and its columns."""
    rewards = [reward for _, _, reward in samples]
    if units.arms:
        return pa.table({"arm": [unit for unit, _, _ in samples], "click": rewards}), {"unit": "arm", "reward": "click"}
    names = [f"x{axis}" for axis in range(units.dim)]
    table = {name: [unit[axis] for unit, _, _ in samples] for axis, name in enumerate(names)} | {"click": rewards}
    columns: dict[str, Any] = {"unit": names, "reward": "click"}
    if units.levels:
        table["effort"] = [level for _, level, _ in samples]
        columns["level"] = "effort"
    return pa.table(table), columns


# -- taking a trace ---------------------------------------------------------------------------------------------------


def related(logged: Any, proposed: Any, base: Any) -> bool:
    """A relation of the user's own: near points at the same level, an arm itself, and the first arms each other."""
    if isinstance(logged, ar.Allocation):
        return bool(logged.level == proposed.level and related(logged.point, proposed.point, base))
    if isinstance(logged, tuple):
        return all(abs(x - y) <= 0.2 for x, y in zip(logged, proposed, strict=True))
    return bool(logged == proposed or {logged, proposed} in ({0, 1}, {"red", "green"}))


POLICIES: dict[str, Callable[..., Any]] = {
    "ignorant": lambda base, log, **more: ar.Ignorant(base),
    "full": ar.FullStart,
    "replay": ar.ArtificialReplay,
    "related": functools.partial(ar.ArtificialReplay, relation=related),
}


def totals_of(log: Any) -> Any:
    """A count and a sum for each arm of a log."""
    return ar.Totals.of(log)


def text_of(value: Any) -> str:
    """A unit, an action or a box in few exact letters."""
    if isinstance(value, list):
        return "[" + " ".join(map(text_of, value)) + "]"
    if isinstance(value, ar.Allocation):
        return f"{value.point!r}@{value.level!r}"
    return repr(value)


def reward_of(unit: Any, round_: int) -> float:
    """0, ½ or 1, by the unit and the round."""
    return hashlib.sha256(f"{text_of(unit)} {round_}".encode()).digest()[0] % 3 / 2


def play(policy: Any, rounds: range, trace: Trace, foreign: tuple[Any, ...] = ()) -> None:
    """Ask and tell, and write it down; in every third round tell something `foreign` that nobody asked for."""
    for round_ in rounds:
        action = policy.ask()
        trace["asked"].append(text_of(action))
        trace["used"].append(policy.used)
        several = isinstance(action, list)
        if foreign and round_ % 3 == 1:
            unit = foreign[round_ % len(foreign)]
            action = [unit] if several else unit
        rewards = [reward_of(unit, round_) for unit in (action if several else [action])]
        policy.tell(action, rewards if several else rewards[0])


def finish(policy: Any, trace: Trace) -> Trace:
    """Write down how a policy ends."""
    # The units of a plain object are named in the order in which they were met, which is of no account.
    met = not isinstance(policy.base, ar.algorithms.Algorithm) and not ar.compiling.is_component(policy.base)
    cells = policy.used_by_cell().items()
    by_cell = sorted((text_of(tuple(sorted(cell)) if met and _is_shared(cell) else cell), used) for cell, used in cells)
    few = len(by_cell) <= 6 and not any("Box" in cell for cell, _ in by_cell)
    if isinstance(policy.base, (ar.PointRegression, ar.CellRegression)):
        return {"asked": trace["asked"], "used": [0] * len(trace["asked"]), "rounds": policy.rounds}
    return trace | {
        "at the end": policy.used,
        "rounds": policy.rounds,
        "unused rows": digest(policy.unused_rows()),
        "used by cell": dict(by_cell) if few else f"{len(by_cell)} cells {digest(by_cell)}",
        "cells": cells_of(policy),
        "state": state_of(policy.base),
    }


def _is_shared(cell: Any) -> bool:
    """Whether a cell is named by several units."""
    return type(cell) is tuple and not isinstance(cell[0], float)


def cells_of(policy: Any) -> str | None:
    """A digest of what people see of each cell; None where the base keeps no means."""
    if not hasattr(policy.base, "statistics"):
        return None
    cells = policy.cells()
    return digest([[text_of(cell.unit), cell.count, cell.mean, cell.index, cell.logged, cell.used] for cell in cells])


def state_of(base: Any) -> str | None:
    """A digest of what a base knows; None for a base of the package that does not tell."""
    if hasattr(base, "state"):
        return digest(base.state())
    if isinstance(base, (Couples, Seldom)):
        return digest(base._asdict())
    return digest(vars(base)) if isinstance(base, (Leader, Quarters)) else None


def digest(value: Any) -> str:
    """16 letters that differ if anything in a value does, to the last bit."""
    return hashlib.sha256("\n".join(_said(value)).encode()).hexdigest()[:16]


def _said(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key in sorted(value, key=repr):
            yield f"{key!r}:"
            yield from _said(value[key])
    elif isinstance(value, (list, tuple)):
        yield f"{len(value)} of"
        for part in value:
            yield from _said(part)
    elif isinstance(value, np.ndarray):
        kind = value.dtype.newbyteorder("<") if value.dtype.byteorder == ">" else value.dtype
        yield f"{kind.str} {value.shape} {value.astype(kind).tobytes().hex()}"
    else:
        yield value.hex() if isinstance(value, float) else repr(value)


# -- the scenes -------------------------------------------------------------------------------------------------------


class Scene(NamedTuple):
    """A base under a policy over a kind of log; perhaps saved and loaded, or its log extended, on the way."""

    base: str
    policy: str
    place: str = "memory"
    strange: bool = False  # with rows that are skipped
    turn: str = ""  # "saved", "extended", or "foreign": extended, while actions are told that nobody asked for
    then: str = ""  # the place of the log after the turn
    drift: str = ""  # "all" or "by arm"
    rounds: int = ROUNDS

    @property
    def name(self) -> str:
        """What it is called in the file."""
        place = f"{self.place}, then {self.then}" if self.then else self.place
        more = [word for word in ("skip" * self.strange, self.turn, self.drift and f"drift {self.drift}") if word]
        return " / ".join([self.base, self.policy, place, *more])

    def take(self, shelf: Shelf, bases: Bases | None = None) -> Trace:
        """The trace; the bases are those of the package by default."""
        units, make = (bases or BASES)[self.base]
        more = {"unknown": "skip"} if self.strange else {}
        if self.drift:
            more["drift"] = DRIFTING[self.base][self.drift == "by arm"]
        grows = self.turn in ("extended", "foreign")
        place = "memory" if self.place == "totals" else self.place
        log = shelf.log(units, place, self.strange, FIRST_ROWS if grows else ROWS)
        policy = self._start(make, totals_of(log) if self.place == "totals" else log, more)
        trace: Trace = {"asked": [], "used": []}
        turn = TURN if self.turn else self.rounds
        foreign = foreign_units(units) if self.turn == "foreign" else ()
        play(policy, range(turn), trace, foreign)
        if grows:
            policy.extend(shelf.log(units, self.then or self.place, self.strange))
        elif self.turn == "saved":
            policy.save(shelf.file())
            again = shelf.log(units, self.then or place, self.strange)
            again = totals_of(again) if self.place == "totals" else again
            policy = ar.load(shelf.file(), *([] if self.policy == "ignorant" else [again]))
        play(policy, range(turn, self.rounds), trace, foreign)
        return finish(policy, trace)

    def _start(self, make: Callable[..., Any], log: Any, more: dict[str, Any]) -> Any:
        """The policy, whose T is the same whatever its log."""
        start = POLICIES[self.policy]
        if self.policy != "ignorant" and self.base in COUNTS_ROWS:
            return start(make(start(make(), log, **more).unused), log, **more)
        if self.policy != "ignorant" and self.base in BEFORE_ITS_LOG:
            policy = start(make(), ar.History([], []), **more)
            policy.extend(log)
            return policy
        return start(make(), log, **more)


def _scenes_of(base: str) -> Iterator[Scene]:
    """The scenes of a base."""
    arms = bool(BASES[base][0].arms)
    policies = ["full", "replay", "related"]
    rounds = 6 if base in SLOW else ROUNDS
    yield Scene(base, "ignorant", rounds=rounds)
    if base in (*SLOW, *CERTIFIED):
        for policy in ("full", "replay"):
            yield from (Scene(base, policy, place, rounds=rounds) for place in ("memory", "store"))
        yield from _more_scenes_of(base)
        if base in CERTIFIED:
            yield from (Scene(base, "replay", place, True, "saved") for place in ("memory", "store"))
            yield from (Scene(base, "replay", place, True, "extended") for place in ("memory", "store"))
        return
    for policy in policies:
        yield Scene(base, policy)
        if policy == "related" and not arms:  # of which the log must be in memory, and each row be compared
            continue
        yield Scene(base, policy, strange=True)
        if policy == "related":  # which must be given again, and needs a log in memory
            continue
        for place in ("store", *(["parquet"] if arms else [])):
            yield Scene(base, policy, place)
            if policy in ("full", "replay"):
                yield Scene(base, policy, place, strange=True)
    if base in SAVED:
        yield Scene(base, "ignorant", turn="saved")
        for policy in ("full", "replay"):
            yield Scene(base, policy, turn="saved")
            yield Scene(base, policy, "store", turn="saved")
        yield Scene(base, "replay", "store", turn="saved", then="memory")
        yield Scene(base, "replay", "memory", strange=True, turn="saved", then="store")
    if base in EXTENDED:
        for policy in policies:
            yield Scene(base, policy, turn="extended")
        for policy in ("full", "replay"):
            yield Scene(base, policy, "store", turn="extended")
            yield Scene(base, policy, "store", strange=True, turn="extended")
        yield Scene(base, "replay", "memory", turn="extended", then="store")
        yield Scene(base, "replay", "store", turn="extended", then="memory")
    yield from _more_scenes_of(base)


def _more_scenes_of(base: str) -> Iterator[Scene]:
    """Scenes with allowances, with totals, and with actions that nobody asked for."""
    for drift in ("all", "by arm")[: len(DRIFTING.get(base, ()))]:
        for policy in ("full", "replay"):
            yield Scene(base, policy, drift=drift)
            yield Scene(base, policy, "store", drift=drift)
            yield Scene(base, policy, turn="foreign", drift=drift)
    for policy in ("full", "replay") if base in COUNTED else ():
        yield Scene(base, policy, "totals")
        yield Scene(base, policy, "totals", turn="saved")
    for policy in ("full", "replay") if base in EXTENDED or base in CERTIFIED else ():
        yield Scene(base, policy, turn="foreign")
        yield Scene(base, policy, "store", turn="foreign")


# -- simulations ------------------------------------------------------------------------------------------------------


def peak(points: Any) -> Any:
    """A mean over the line."""
    return 1.0 - np.abs(points[:, 0] - 0.25)


def slope(points: Any, levels: Any) -> Any:
    """A mean over the line at levels."""
    return 0.25 + 0.5 * levels * points[:, 0]


ARMS, LINEAR = ar.environments.KArmed(5, log="random"), ar.environments.Linear(6, 4, blocks=2)
TOP, TWO = ar.environments.TopArms(5, 2), ar.environments.KArmed(5, log=ar.environments.logs.Shares(bad_share=0.5))
INTERVAL, EFFORT_LINE = ar.environments.Metric(peak), ar.environments.Metric(slope, 1, **EFFORT)
STARTS = ("artificial-replay", "full-start", "ignorant")

# The environment, and the base if it is none of those above.
SIMULATED: dict[str, tuple[Any, Callable[[], Any] | None]] = {
    "MonUCB": (ARMS, None),
    "MonUCB, callable": (TWO, None),
    "PsiUCB, KL": (ARMS, None),
    "TopUCB": (TOP, None),
    "LinUCB": (LINEAR, lambda: ar.LinUCB(LINEAR.features, 30, alpha=0.9)),
    "Thompson, certified": (TWO, None),
    "BayesUCB": (ARMS, None),
    "RandomChoice": (ARMS, None),
    "GridUCB": (INTERVAL, None),
    "TreeUCB": (INTERVAL, None),
    "TreeUCB, confidence": (INTERVAL, None),
    "GridAllocation": (EFFORT_LINE, None),
    "TreeAllocation": (EFFORT_LINE, None),
    "TreeAllocation, paper": (EFFORT_LINE, None),
    "RandomAllocation": (EFFORT_LINE, None),
    "own object with cells": (INTERVAL, None),
    "own component": (ARMS, None),
}


class Simulated(NamedTuple):
    """A simulation of a base from a start."""

    base: str
    start: str
    env: Any
    make: Callable[[], Any] | None = None  # the base if it is none of those above

    @property
    def name(self) -> str:
        """What it is called in the file."""
        return f"simulate / {self.base} / {self.start}"

    def take(self, shelf: Shelf, bases: Bases | None = None) -> Trace:
        """What came of it."""
        base = (self.make or (bases or BASES)[self.base][1])()
        start: Any = self.start
        more: dict[str, Any] = {"horizon": 25, "replications": 3, "seed": 5, "threads": 1}
        runs = ar.simulate(base, self.env, start=start, history=60, **more)
        return {
            "regret": [math.fsum(regret).hex() for regret in runs.regret.tolist()],
            "final regret": [regret.hex() for regret in runs.regret[:, -1].tolist()],
            "used": runs.used[:, -1].tolist(),
            "used by round": digest(runs.used.tolist()),
            "actions": digest(None if runs.actions is None else runs.actions.tolist()),
            "levels": None if runs.levels is None else digest(runs.levels.tolist()),
            "cells": None if runs.cells is None else runs.cells.tolist(),
        }


def _simulations_of(base: str) -> Iterator[Simulated]:
    """The simulations of a base."""
    for start in STARTS:
        yield Simulated(base, start, *SIMULATED[base])


GROUPS: dict[str, list[Scene | Simulated]] = {base: list(_scenes_of(base)) for base in BASES}
GROUPS |= {f"simulate / {base}": list(_simulations_of(base)) for base in SIMULATED}
SCENES: dict[str, Scene | Simulated] = {scene.name: scene for group in GROUPS.values() for scene in group}


# -- the file ---------------------------------------------------------------------------------------------------------


def frozen(file: Path = FILE) -> dict[str, Trace]:
    """The trace of each scene in a file."""
    kept = json.loads(file.read_text(encoding="utf-8"))
    traces: dict[str, Trace] = {}
    for name, trace in kept["scenes"].items():
        if isinstance(trace, str):
            traces[name] = traces[trace]
        elif "asked" in trace:
            used = np.cumsum(trace["used"]).tolist()
            traces[name] = trace | {"asked": [kept["actions"][place] for place in trace["asked"]], "used": used}
        else:
            traces[name] = trace
    return traces


def write(traces: dict[str, Trace], file: Path = FILE) -> None:
    """Write a file: a scene in a line, each action once, and a trace that came before only by its first name."""
    actions: dict[str, int] = {}
    first: dict[str, str] = {}
    lines = []
    for name, trace in traces.items():
        if "asked" in trace:
            asked = [actions.setdefault(action, len(actions)) for action in trace["asked"]]
            trace = trace | {"asked": asked, "used": np.diff(trace["used"], prepend=0).tolist()}
        text = json.dumps(trace, separators=(",", ":"))
        lines.append(f"{json.dumps(name)}: {json.dumps(first[text]) if text in first else text}")
        first.setdefault(text, name)
    content = f'{{"actions": {json.dumps(list(actions), indent=0)},\n"scenes": {{\n' + ",\n".join(lines) + "\n}}\n"
    file.write_text(content, encoding="utf-8")


def freeze(scenes: dict[str, Scene | Simulated], file: Path = FILE, bases: Bases | None = None) -> None:
    """Take every scene in both speeds, and write the file if they agree."""
    taken: dict[str, dict[str, Trace]] = {}
    for mode in ("interpreted", "compiled"):
        with tempfile.TemporaryDirectory() as folder, ar.compiling.using(mode):
            shelf = Shelf(Path(folder))
            taken[mode] = {}
            for number, (name, scene) in enumerate(scenes.items()):
                print(f"\r{mode}: {number + 1} of {len(scenes)}", end="", file=sys.stderr)
                taken[mode][name] = scene.take(shelf, bases)
            print(file=sys.stderr)
    other = [name for name in scenes if taken["compiled"][name] != taken["interpreted"][name]]
    if other:
        raise SystemExit("the two speeds differ, nothing is written:\n" + "\n".join(other))
    write(taken["interpreted"], file)


# -- comparing --------------------------------------------------------------------------------------------------------


def difference(expected: Trace, found: Trace) -> str | None:
    """The first thing in which a trace differs, None if there is none."""
    if "asked" in expected:
        then, now = (list(zip(trace["asked"], trace["used"], strict=True)) for trace in (expected, found))
        for round_, (old, new) in enumerate(zip(then, now, strict=False)):
            if old != new:
                return f"round {round_} asks {new[0]} with {new[1]} samples used, it was {old[0]} with {old[1]}"
    parts = [part for part in {**expected, **found} if expected.get(part) != found.get(part)]
    return f"{parts[0]}: {found.get(parts[0])}, it was {expected.get(parts[0])}" if parts else None


def check(
    scenes: Iterable[Scene | Simulated],
    kept: dict[str, Trace],
    shelf: Shelf,
    mode: ar.compiling.Mode,
    bases: Bases | None = None,
) -> None:
    """All of these scenes go as they went."""
    with ar.compiling.using(mode):
        found = {scene.name: difference(kept[scene.name], scene.take(shelf, bases)) for scene in scenes}
    others = [f"{name}: {said}" for name, said in found.items() if said is not None]
    assert not others, f"{len(others)} of {len(found)} scenes differ:\n" + "\n".join(others)


if __name__ == "__main__":
    if sys.argv[1:] != ["--freeze"]:
        raise SystemExit(__doc__)
    freeze(SCENES)
