"""What is simulated, and what a worker needs of it: the ledger, the rewards and the log of a batch of replications."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple, cast

import numpy as np

from artreplay.algorithms import Algorithm, PointAlgorithm
from artreplay.algorithms.budget import SLACK
from artreplay.cells import Lattice
from artreplay.cells.boxes import LEVEL_AT, outside
from artreplay.cells.unit_cells import UnitCells, one_cell, table_of
from artreplay.compiling import Floats, Ints, copied
from artreplay.engine.simulated_logs import DrawnLog, GivenLog
from artreplay.environments import ArmEnvironment, PointEnvironment
from artreplay.environments.arm_environments import world_keys
from artreplay.environments.point_stack import (
    PlainPointRewards,
    PointRewards,
    PointWorlds,
    nothing_asked,
    nothing_known,
    with_space,
)
from artreplay.errors import InvalidAction, exact
from artreplay.history import History, Totals
from artreplay.replay import (
    Base,
    Drift,
    Ledger,
    Log,
    ObjectBase,
    Part,
    empty_ledger,
    filled_ledger,
    ledger_without_rows,
)
from artreplay.streams import fold, fold_each

Outputs = tuple[Floats, Ints, Ints, Ints, Ints]


@dataclass(frozen=True)
class Setting:
    """What is simulated, checked."""

    base: Any
    env: ArmEnvironment | PointEnvironment
    start: str
    given: History | Totals | None  # a log used in every replication
    rows: int
    horizon: int
    replications: int
    seed: int
    keep_all: bool
    rounds: Ints | None  # to keep: None for all, none for the last alone
    compilable: bool
    drift: Drift
    totals: list[tuple[int, int, float]]  # arms, samples and sums that the base takes in before it begins

    @property
    def width(self) -> int:
        """The most units in one action."""
        return self.env.width

    @property
    def levels(self) -> tuple[float, ...] | None:
        """The levels of effort that units have, None where they have none."""
        return self.env.levels if isinstance(self.env, PointEnvironment) else None

    def describe_units(self) -> str:
        """A few words for error messages: what can be played."""
        return (
            f"the {self.env.n_arms} arms" if isinstance(self.env, ArmEnvironment) else "the points of the environment"
        )

    def outputs(self) -> Outputs:
        """Where regret, samples used, actions, their levels, and samples used by arm of every replication go."""
        kept = self.horizon if self.keep_all else 1
        regret = np.zeros((self.replications, kept))
        used = np.zeros((self.replications, kept), np.int64)
        shape = (self.replications, self.horizon if self.keep_all else 0, self.width)
        levels = np.full(shape if self.levels is not None else (self.replications, 0, self.width), -1, np.int64)
        arms = self.env.n_arms if self.keep_all and isinstance(self.env, ArmEnvironment) else 0
        return regret, used, np.full(shape, -1, np.int64), levels, np.zeros((self.replications, arms), np.int64)

    def actions_of(self, actions: Ints) -> Ints | None:
        """The actions as they are returned: without the last axis where one unit is played."""
        if not self.keep_all:
            return None
        return actions[:, :, 0] if self.width == 1 and self.levels is None else actions

    def levels_of(self, numbers: Ints) -> Floats | None:
        """The levels of the actions as they are returned; nan where nothing was played."""
        if not self.keep_all or self.levels is None:
            return None
        levels: Floats = np.array([*self.levels, np.nan])[numbers]
        return levels

    def base_keys(self, base: Any, numbers: Ints) -> Any:
        """The keys of the base's own draws in these replications."""
        seed = getattr(base, "seed", 0)  # a user's own object may have any
        return fold_each(fold(self.seed, max(int(seed), 0) if isinstance(seed, Integral) else 0), numbers)


class Ledgers(NamedTuple):
    """The ledger of the steps, the queue that Full Start shows first, and the units whose cells it shows."""

    ledger: Any
    queue: Any  # the ledger itself where rows are shown cell by cell
    first: Ints


class Stage:
    """What a worker plays with: ledgers, rewards and logs. Each worker has one."""

    def __init__(self, setting: Setting, base: Base) -> None:
        self.setting = setting
        self.base = base

    def open(self, batch: range) -> tuple[Ledgers, Any, Any]:
        """The ledgers, the rewards and the log of these replications."""
        raise NotImplementedError

    def learn(self, rewards: Any) -> Any:
        """The rewards with the mean that they lacked."""
        raise NotImplementedError

    def law(self) -> Any:
        """How rewards are drawn: those in [0, 1] reach the base as its reward range wants them."""
        law: Any = self.setting.env.law
        if not isinstance(self.base, Algorithm) or not self.base.scales:
            return law
        low, high = self.base.reward_range
        return law.seen_as(low, high - low)


class ArmStage(Stage):
    """Finite arms: many replications at a time, whose logs are drawn inside the loop."""

    def __init__(self, setting: Setting, base: Base, env: ArmEnvironment) -> None:
        super().__init__(setting, base)
        self.env = env
        if isinstance(base, ObjectBase):
            number_arms(base, env.n_arms)
        self._ledgers = self._open_ledgers()
        rows = 0 if setting.given is not None else setting.rows
        drift = setting.drift
        allowed = drift.of_rows(np.arange(env.n_arms), None) if rows else None
        of_arms = np.empty(0) if allowed is None else drift.scaled(allowed)
        self._log = DrawnLog(np.empty(rows, np.int64), np.empty(rows), of_arms)

    def open(self, batch: range) -> tuple[Ledgers, Any, Any]:
        """The ledgers, the rewards and the log of these replications."""
        numbers = np.arange(batch.start, batch.stop)
        keys = world_keys(self.setting.seed, numbers)
        worlds = self.env.worlds(keys, self.setting.base_keys(self.base.thing, numbers))
        return self._ledgers, self.env.stack(worlds, self.law(), self.setting.compilable), self._log

    def _open_ledgers(self) -> Ledgers:
        """The given log, or the place for one: by the base's own cells, or all in one queue."""
        setting, base, arms = self.setting, self.base, np.arange(self.env.n_arms)
        cells = table_of(base.unit_cells(arms).of(arms))
        shows_all = setting.start == "full-start" or base.reads_whole_log
        if setting.start == "ignorant" or setting.totals:
            nothing = empty_ledger(cells)
            return Ledgers(nothing, nothing, arms[:0])
        if not shows_all:
            queue = self._queue(cells)
            return Ledgers(queue, queue, arms[:0])
        if base.coupled and not base.reads_whole_log:
            queue = self._queue(cells)
            return Ledgers(queue, queue, np.unique(cells.find.cell, return_index=True)[1])
        return Ledgers(empty_ledger(cells), self._queue(one_cell()), np.zeros(1, np.int64))

    def _queue(self, cells: UnitCells) -> Ledger:
        """The given log by these cells, or the place for one."""
        setting = self.setting
        if setting.given is None:
            return empty_ledger(cells, setting.rows, allowed=setting.drift.is_there)
        part = cast(Part, Log(self.base, setting.given, "error", setting.drift).whole)
        return filled_ledger(cells, part.units, part.rewards, allowances=part.allowances)


class PointStage(Stage):
    """A continuous space: one replication at a time, whose log is drawn by Python."""

    def __init__(self, setting: Setting, base: Base, env: PointEnvironment) -> None:
        super().__init__(setting, base)
        self.env = env
        self._known = nothing_known()

    def open(self, batch: range) -> tuple[Ledgers, Any, Any]:
        """The ledgers, the rewards and the log of this replication."""
        numbers = np.arange(batch.start, batch.stop)
        worlds = PointWorlds(world_keys(self.setting.seed, numbers), self.setting.base_keys(self.base.thing, numbers))
        return self._open_ledgers(worlds.key[0]), self._rewards(worlds), GivenLog(self.setting.rows)

    def _open_ledgers(self, key: np.uint64) -> Ledgers:
        setting, base = self.setting, self.base
        nothing, queue, first = np.empty(0, np.int64), empty_ledger(one_cell()), np.zeros(1, np.int64)
        if setting.start == "ignorant":
            return Ledgers(ledger_without_rows(base), queue, nothing)
        history = cast(History | None, setting.given)
        if history is None:
            points, levels, rewards = self.env.draw_log(key, setting.rows)
            values = np.array(self.env.level_values())[levels]
            history = History(points, rewards, levels=None if self.env.levels is None else values)
        log = Log(base, history, "error", setting.drift)
        part = cast(Part, log.whole)
        if setting.start == "artificial-replay" and not base.reads_whole_log:
            cells, rows = base.unit_cells(part.units), None if base.counts_rows else part.rows
            ledger = filled_ledger(cells, part.units, part.rewards, rows, log.end, allowances=part.allowances)
            return Ledgers(ledger, queue, nothing)
        shown = filled_ledger(one_cell(), part.units, part.rewards, allowances=part.allowances)
        return Ledgers(ledger_without_rows(base), shown, first)

    def _rewards(self, worlds: PointWorlds) -> PointRewards:
        width = self.setting.width
        point = np.zeros(self.env.dim)
        own = self.base if isinstance(self.base, PointAlgorithm) else None
        made = PointRewards if own is not None else PlainPointRewards
        return made(
            worlds=worlds,
            key=worlds.key[:1].copy(),
            optimum=np.array([self.env.optimum]),
            lattice=self.env.lattice if own is None else own.lattice,
            picker=PlainPicker(self.base, self.env) if own is None else copied(own.picker),
            known=self._known,
            asked=nothing_asked(self.env.dim),
            law=self.law(),
            point=point,
            bits=point.view(np.uint64),
            seen=np.zeros(width, np.uint64),
            mean=np.zeros(width),
            unit=np.zeros(width, np.int64),
        )

    def learn(self, rewards: PointRewards) -> PointRewards:
        """The rewards with the means of the points that were asked for."""
        asked, count = rewards.asked, int(rewards.asked.size[0])
        levels = np.array(self.env.level_values())[asked.unit[:count] >> LEVEL_AT]
        asked.mean[:count] = self.env.means(asked.point[:count], levels)
        self._known = with_space(rewards.known, count)
        return rewards if self._known is rewards.known else rewards._replace(known=self._known)


class PlainPicker:
    """The points that a plain object names, checked when they are first named."""

    def __init__(self, base: Base, env: PointEnvironment) -> None:
        self._base = base
        self._env = env
        self._known: dict[int, tuple[Floats, int]] = {}  # of each unit: its point, and the number of its level
        self.worked_out: dict[int, tuple[np.uint64, np.int64]] = {}  # what each is known by, and where it lies
        self._efforts: list[float] = []  # of the units of the action so far

    def place(self, grid: Lattice, unit: int, round_: int, slot: int, out: Floats) -> None:
        """Write the point that is played."""
        if unit not in self._known:
            self._known[unit] = self._checked(grid, self._base.unit(unit))
        point, level = self._known[unit]
        out[:] = point
        if self._env.levels is not None and self._env.budget is not None:
            self._efforts[slot:] = [self._env.levels[level]]
            if sum(self._efforts) > self._env.budget * SLACK:
                levels = ", ".join(map(exact, self._efforts))
                raise InvalidAction(f"levels {levels} were proposed, more than the budget of {exact(self._env.budget)}")

    def level(self, unit: int) -> int:
        """The number of the level of a unit that has been placed."""
        return self._known[unit][1]

    def _checked(self, grid: Lattice, named: Any) -> tuple[Floats, int]:
        point, level = named, None
        if self._env.levels is not None:
            if not isinstance(named, (tuple, list)) or len(named) != 2:
                raise InvalidAction(f"{named!r} was proposed, expected an Allocation(point, level)")
            point, level = named
        try:
            place = np.array(point, dtype=np.float64).reshape(-1)
        except (TypeError, ValueError):
            place = np.empty(0)
        if len(place) != self._env.dim or not np.isfinite(place).all() or len(outside(grid, place[None, :])):
            raise InvalidAction(f"{named!r} was proposed, expected a point of {self._env!r}")
        if self._env.levels is None:
            return place, 0
        if level not in self._env.levels:
            raise InvalidAction(f"level {level!r} was proposed, expected one of {self._env.levels}")
        return place, self._env.levels.index(level)

    def fixed(self) -> bool:
        """Numbers of units mean something else in another replication."""
        return False

    def reseed(self, key: Any) -> None:
        """Nothing is drawn here."""


def stage_of(setting: Setting, base: Base) -> Stage:
    """The stage for an environment."""
    if isinstance(setting.env, ArmEnvironment):
        return ArmStage(setting, base, setting.env)
    return PointStage(setting, base, setting.env)


def number_arms(base: Base, n_arms: int) -> None:
    """Let a plain object's units have the numbers of the arms."""
    for arm in range(n_arms):
        base.checked_number(arm)
