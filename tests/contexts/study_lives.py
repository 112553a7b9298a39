"""Random lives of a study with contexts, beside an oracle that is shown the whole journal before each decision.

The oracle knows nothing of policies, folds or choosers. It makes a fresh base, shows it every entry in order and in its
context, counts open decisions as the docs say, and takes the best arm that can be chosen.
"""

from __future__ import annotations

import random
import warnings
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import artreplay as ar
from artreplay.algorithms.tally import Tally
from contexts.context_kit import random_context

COLUMNS = ("age", "country", "device")
ARMS = 3  # at first
EVENTS = (
    ("decide",) * 14 + ("batch",) * 3 + ("among",) * 3 + ("reward",) * 9 + ("observe",) * 3 + ("wait",) * 3
    + ("void open",) * 2 + ("void rewarded", "retire", "add", "return", "change", "horizon") + ("grow",) * 3
    + ("reopen",) * 2 + ("crash",) * 2
)  # fmt: skip
LOGGED = -1  # in the place of a decision: a row of the log
WAIT = 100.0  # seconds

Make = Callable[[ar.Contexts, list[Any], int], Any]  # contexts, arms, horizon


class Difference(AssertionError):
    """A decision that is not that of the whole journal."""


class Entry(NamedTuple):
    decision: int | None
    arm: Any
    reward: float
    context: dict[str, Any]


class Made(NamedTuple):
    """An open decision."""

    arm: Any
    context: dict[str, Any]
    due: float


def complete(context: dict[str, Any]) -> dict[str, Any]:
    """What a study makes of a context: no unknown columns, and absent ones are missing."""
    return {name: context.get(name) for name in COLUMNS}


class StudyOracle:
    """What a study must decide."""

    def __init__(self, make: Make, contexts: ar.Contexts) -> None:
        self.make, self.contexts, self.horizon = make, contexts, 20
        self.arms: list[Any] = list(range(ARMS))
        self.retired: set[Any] = set()
        self.made_with, self.counted = ARMS, [0] * contexts.n_segments
        self.entries: list[Entry] = []
        self.open: dict[int, Made] = {}
        self.waiting: dict[int, float] = {}
        self.void: set[int] = set()
        self.number = 0

    def count_rows(self) -> None:
        """Take T from the rows that the log has now."""
        rows = [one for one in self.entries if one.decision == LOGGED and one.arm in self.arms]
        segments = Counter(int(self.contexts.encode_one(one.context)[0]) for one in rows)
        self.counted = [segments[segment] for segment in range(self.contexts.n_segments)]

    def base(self) -> Any:
        """A fresh base that is shown everything."""
        base = self.make(self.contexts, self.arms, self.horizon)
        base.count_log(self.counted)
        if not isinstance(base, ar.ContextRegression):
            first = self.make(self.contexts, self.arms[: self.made_with], self.horizon)
            first.count_log(self.counted)
            index = base.component.index._replace(bound=first.component.index.bound)
            base.component = base.component._replace(index=index)
        for entry in self.entries:
            if entry.decision in self.void or entry.arm not in self.arms:
                continue
            encoded = base.checked_context(entry.context)
            base.set_context(encoded)
            unit = base.in_context(base.number(entry.arm), encoded)
            if entry.decision == LOGGED:
                base.component.update_logged(unit, entry.reward, 0.0)
            else:
                base.component.update(unit, entry.reward)
        return base

    def labels(self) -> list[Any]:
        return [arm for arm in self.arms if arm not in self.retired]

    def decide(self, context: dict[str, Any], among: list[Any] | None, due: float) -> Any:
        """The arm of the next decision, which is open from then on."""
        base, context = self.base(), complete(context)
        open_ = np.zeros(base.n_units, np.int64)
        for made in self.open.values():
            open_[base.in_context(base.number(made.arm), base.checked_context(made.context))] += 1
        encoded = base.checked_context(context)
        base.set_context(encoded)
        worth = {}
        for arm in self.labels() if among is None else among:
            number = base.number(arm)
            worth[number] = self._worth(base, base.in_context(number, encoded), open_)
        best = base.arms[max(worth, key=lambda number: (worth[number], -number))]
        self.number += 1
        self.open[self.number] = Made(best, context, due)
        return best

    def _worth(self, base: Any, unit: int, open_: Any) -> float:
        if isinstance(base, ar.ContextRegression):
            component = base.component._replace(open=open_)
            component.features.expand()
            with np.errstate(over="ignore"):
                return float(component.worth(unit, self.number))
        index = base.component.index
        value, more = float(index.value[unit]), int(open_[unit])
        if more == 0:
            return value
        count, total = int(index.tally.counts[unit]), float(index.tally.totals[unit])
        earned = more * (total / (count + 1)) if count else 0.0
        tally = Tally(np.array([count + more]), np.array([total + earned]))
        return float(index.bound.of(unit).lowered(tally, 0, 0.0, value))

    def close(self, number: int, reward: float | None) -> None:
        made = self.open.pop(number)
        self.waiting.pop(number, None)
        if reward is not None:
            self.entries.append(Entry(number, made.arm, reward, made.context))


class Life:
    """A study and its oracle, to which the same things happen."""

    def __init__(self, make: Make, g: random.Random, place: Path | str, stored: Path | None) -> None:
        self.g, self.place, self.now = g, place, 1_000_000.0
        self.rows = [
            Entry(LOGGED, g.randrange(ARMS + 1), g.choice([0.0, 0.0, 1.0, 1.0, 0.5]), random_context(g))
            for _ in range(14)
        ]
        self.contexts = self._contexts()
        self.oracle = StudyOracle(make, self.contexts)
        self.stored, self.n_rows = stored, g.choice([0, 4, 9])
        if stored is not None:
            segments = self.contexts.segments if g.random() < 0.7 else []
            names = {"unit": "arm", "reward": "reward", "contexts": list(COLUMNS), "segments": segments}
            ar.index_history(self._frame(self.rows), stored, **names)  # type: ignore[arg-type]
        self.oracle.entries += self.rows[: self.n_rows]
        self.oracle.count_rows()
        self.waits = g.choice([None, "arrival", "window"])
        self.default = g.choice([0.0, 0.5, None])
        given: dict[str, Any] = {"wait": None}
        if self.waits is not None:
            timeout = {"on_timeout": "discard"} if self.default is None else {"default": self.default}
            given = {"wait": timedelta(seconds=WAIT), "close": self.waits, **timeout}
        base = make(self.contexts, list(range(ARMS)), 20)
        self.study = ar.Study.create(
            place, base, self._log(self.n_rows), unknown="skip", clock=lambda: self.now, **given
        )
        self.ids: dict[int, str] = {}
        self.happened: Counter[str] = Counter()

    def _contexts(self) -> ar.Contexts:
        g = self.g
        return ar.Contexts(
            {"age": ar.Numeric(0, g.choice([2, 3]), missing=g.random() < 0.5)},
            {"country": g.choice([["NL", "DE"], ["NL"], ["DE", "NL", "FR"]]), "device": ["phone", "desk"]},
            segments=g.choice([["country"], ["country"], ["device", "country"]]),
            cosines=g.choice([0, 3]),
            seed=g.randrange(5),
        )

    def _frame(self, rows: list[Entry]) -> Any:
        import pyarrow as pa

        columns = {name: [row.context[name] for row in rows] for name in COLUMNS}
        return pa.table({"arm": [row.arm for row in rows], "reward": [row.reward for row in rows]} | columns)

    def _log(self, rows: int) -> Any:
        if self.stored is not None:
            return ar.open_history(self.stored).first(rows)
        table = {name: [row.context[name] for row in self.rows[:rows]] for name in COLUMNS}
        some = self.rows[:rows]
        return ar.History([row.arm for row in some], [row.reward for row in some], contexts=table)

    def happen(self, event: str) -> None:
        done = getattr(self, "_" + event.replace(" ", "_"))()
        self.happened[event] += done is not False

    def _asked(self) -> dict[str, Any]:
        """A context, perhaps without some columns and with another one."""
        context = random_context(self.g)
        if self.g.random() < 0.2:
            del context[self.g.choice(COLUMNS)]
        return context | ({"browser": "x"} if self.g.random() < 0.2 else {})

    def _compare(self, decision: Any, expected: Any) -> None:
        if decision.action != expected:
            raise Difference(f"decision {decision.number} is {decision.action!r}, the journal says {expected!r}")
        assert complete(decision.context) == self.oracle.open[decision.number].context
        self.ids[decision.number] = decision.id

    def _decide(self, among: list[Any] | None = None) -> None:
        context = self._asked()
        expected = self.oracle.decide(context, among, self.now + WAIT)
        self._compare(self.study.decide(context=context, among=among), expected)

    def _batch(self) -> None:
        contexts = [self._asked() for _ in range(self.g.randint(2, 4))]
        expected = [self.oracle.decide(context, None, self.now + WAIT) for context in contexts]
        for decision, arm in zip(self.study.decide(contexts=contexts), expected, strict=True):
            self._compare(decision, arm)

    def _among(self) -> None:
        labels = self.oracle.labels()
        self._decide(sorted(self.g.sample(labels, self.g.randint(1, len(labels)))))

    def _reward(self) -> bool | None:
        numbers = [number for number in self.oracle.open if number not in self.oracle.waiting]
        if not numbers:
            return False
        number, value = self.g.choice(numbers), self.g.choice([0.0, 1.0, 0.5])
        self.study.reward(self.ids[number], value)
        if self.waits == "window":
            self.oracle.waiting[number] = value
        else:
            self.oracle.close(number, value)
        return None

    def _wait(self) -> bool | None:
        """Time passes, and windows close in the order of the decisions."""
        if self.waits is None:
            return False
        self.now += self.g.choice([20.0, 60.0, 150.0])
        for number, made in list(self.oracle.open.items()):
            if made.due <= self.now:
                self.oracle.close(number, self.oracle.waiting.get(number, self.default))
        return None

    def _observe(self) -> None:
        arm, context, value = self.g.choice(self.oracle.arms), self._asked(), self.g.choice([0.0, 1.0])
        self.study.observe(arm, value, context=context)
        self.oracle.entries.append(Entry(None, arm, value, complete(context)))

    def _void_open(self) -> bool | None:
        return self._void(list(self.oracle.open))

    def _void_rewarded(self) -> bool | None:
        return self._void([one.decision for one in self.oracle.entries if one.decision not in (None, LOGGED)])

    def _void(self, numbers: list[Any]) -> bool | None:
        numbers = [number for number in numbers if number not in self.oracle.void]
        if not numbers:
            return False
        number = self.g.choice(numbers)
        self.study.void(self.ids[number])
        self.oracle.void.add(number)
        self.oracle.open.pop(number, None)
        self.oracle.waiting.pop(number, None)
        return None

    def _grow(self) -> bool | None:
        if self.n_rows == len(self.rows):
            return False
        more = self.g.randint(self.n_rows + 1, len(self.rows))
        self.oracle.entries += self.rows[self.n_rows : more]
        self.n_rows = more
        self.study.extend(self._log(more))
        return None

    def _retire(self) -> bool | None:
        if len(self.oracle.labels()) < 3:
            return False
        arm = self.g.choice(self.oracle.labels())
        self.study.retire_arm(arm)
        self.oracle.retired.add(arm)
        return None

    def _return(self) -> bool | None:
        if not self.oracle.retired:
            return False
        arm = self.oracle.retired.pop()
        self.study.add_arm(arm)
        return None

    def _add(self) -> bool | None:
        """A new arm, which has rows in the log."""
        if len(self.oracle.arms) > ARMS:
            return False
        self.study.add_arm(ARMS)
        self.oracle.arms.append(ARMS)
        return None

    def _change(self) -> bool | None:
        if self.stored is not None:  # which may be laid out by other segments
            return False
        self.contexts = self.oracle.contexts = self._contexts()
        self.study.change(contexts=self.contexts)
        self.oracle.count_rows()
        return None

    def _horizon(self) -> bool | None:
        if not hasattr(self.study.base, "horizon"):
            return False
        self.oracle.horizon, self.oracle.made_with = self.g.choice([5, 100]), len(self.oracle.arms)
        self.study.set_horizon(self.oracle.horizon)
        self.oracle.count_rows()
        return None

    def _reopen(self) -> bool | None:
        if self.place == ":memory:":
            return False
        self.study.close()
        return self._open()

    def _crash(self) -> bool | None:
        """The process is gone, without a snapshot."""
        if self.place == ":memory:":
            return False
        self.study._journal.close()
        self.study._journal.disown()
        return self._open()

    def _open(self) -> None:
        log = None if self.stored is None else self._log(self.n_rows)
        self.study = ar.Study.open(self.place, log, clock=lambda: self.now)


def live(make: Make, g: random.Random, place: Path | str, stored: Path | None = None, events: int = 24) -> Counter[str]:
    """One life; an error if the study decides otherwise than the oracle."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*past the horizon")
        warnings.filterwarnings("ignore", ".*horizon is")
        warnings.filterwarnings("ignore", ".*should have at least 20")
        warnings.filterwarnings("ignore", ".*lie beyond its scale")
        life = Life(make, g, place, stored)
        try:
            for _ in range(events):
                life.happen(g.choice(EVENTS))
            life.happen("decide")
        finally:
            life.study.close()
    return life.happened
