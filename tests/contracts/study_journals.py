"""Random lives of a study, beside an oracle that is shown the whole journal before each decision.

The oracle knows nothing of policies or choosers. It makes a fresh base, shows it every entry in order, counts open
units as the docs say, and takes the best of what is available.
"""

from __future__ import annotations

import contextlib
import copy
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from journals import REWARDS, Difference, DriftOracle, Opened, Oracle, TotalsOracle, rows_of, some_allowances

import artreplay as ar
from artreplay.algorithms import IndexArmAlgorithm
from artreplay.algorithms.drift_indices import DriftIndex
from artreplay.algorithms.tally import Tally

EVENTS = (
    ("decide",) * 14 + ("reward",) * 9 + ("observe",) * 3 + ("void open",) * 2 + ("void rewarded",) + ("grow",) * 3
    + ("among",) * 3 + ("several",) * 2 + ("retire", "add", "return", "horizon", "change") + ("reopen",) * 2
    + ("crash",) * 2 + ("deferred", "activate", "undone")
)  # fmt: skip


LOGGED = -1  # in the place of a decision: rows of the log
DRIFTS: tuple[Any, ...] = (0.05, 0.3, 0.0, {0: 0.3, 2: 0.05})  # the last for arms


class StudyOracle:
    """What a study must decide."""

    def __init__(self, make_base: Callable[[], Any], given: dict[str, Any]) -> None:
        self.made, self.given = make_base(), dict(given)
        self.entries: list[tuple[int | None, list[tuple[Any, ...]]]] = []  # the decision, and what came of it
        self.open: dict[int, list[Any]] = {}
        self.void: set[int] = set()
        self.added: list[Any] = []
        self.retired: set[Any] = set()
        self.horizon: int | None = None
        self.log_rows = 0  # which are counted beside the horizon
        self.number = 0

    def base(self) -> Any:
        """A fresh base, shown everything."""
        given = self.made.parameters()
        if self.added:
            given |= {"n_arms": None, "arms": [*self.made.arms, *self.added]}
        if self.horizon is not None:
            given["horizon"] = self.horizon
        made = type(self.made)(**given)
        made.count_log(self.log_rows)
        shown = self._shown(made)
        for decision, samples in self.entries:
            if decision == LOGGED:
                shown.add(samples)
            elif decision not in self.void:
                shown.tell(samples)
        shown.fold()
        return shown.base

    def _shown(self, base: Any) -> Oracle:
        if self.given.get("drift", 0.0) != 0.0:
            return DriftOracle(base, self.given["drift"])
        if self.given.get("allowances"):
            return DriftOracle(base)
        return TotalsOracle(base) if self.given.get("totals") else Oracle(base)

    def labels(self) -> list[Any]:
        """The arms that can be chosen."""
        return [label for label in [*self.made.arms, *self.added] if label not in self.retired]

    def decide(self, among: list[Any] | None) -> Any:
        """The action of the next decision, which is open from then on."""
        base = copy.deepcopy(self.base())
        if isinstance(base, IndexArmAlgorithm) and not isinstance(base, ar.LinUCB):
            return self._taken(base, self._values(base), among)
        for units in self.open.values():
            for unit in units:
                base.update(unit, base.reward_range[0])
        if base.offers_value:
            values = [base.component.value(arm, self.number, 0, 0.0) for arm in range(base.n_arms)]
            return self._taken(base, values, among)
        if among is not None or self.retired:
            return self._taken(base, base.statistics()[2], among)
        if hasattr(base.component, "proposals"):
            base.component.proposals[0] = self.number
        proposed = Oracle(base).proposed(self.number)
        return self._opened(base, proposed if base.proposes_list else [proposed])

    def _values(self, base: Any) -> list[float]:
        """The index of each arm after as many samples more as it has open units, at its mean with one failure more."""
        index, values = base.component.index, []
        open_ = Counter(unit for units in self.open.values() for unit in units)
        for arm, label in enumerate(base.arms):
            value, sums = float(index.value[arm]), [(index.tally, 0.0)]
            if isinstance(index, DriftIndex):
                sums = [(index.tally, float(index.allowances[arm])), (index.online, 0.0)]
            known, one_failure = int(index.tally.counts[arm]), 0 if base.reward_range[0] == -np.inf else 1
            each = float(index.tally.totals[arm]) / (known + one_failure) if known else 0.0
            for tally, allowances in sums if open_[label] else []:
                count, total = int(tally.counts[arm]), float(tally.totals[arm])
                more = Tally(np.array([count + open_[label]]), np.array([total + open_[label] * each]))
                value = index.bound.lowered(more, 0, allowances / (count + open_[label]), value)
            values.append(value)
        return values

    def _taken(self, base: Any, values: Any, among: list[Any] | None) -> Any:
        """The best of what is available; ties to the arm that comes first."""
        numbers = [base.number(label) for label in (self.labels() if among is None else among)]
        numbers.sort(key=lambda number: (-values[number], number))
        return self._opened(base, [base.arms[number] for number in numbers[: base.width]])

    def _opened(self, base: Any, units: list[Any]) -> Any:
        self.number += 1
        self.open[self.number] = units
        return units if base.proposes_list else units[0]


class Life:
    """A study and its oracle, to which the same things happen."""

    def __init__(
        self,
        make_base: Callable[[], Any],
        opened: Opened,
        whole: ar.History,
        rng: random.Random,
        given: dict[str, Any],
    ) -> None:
        self.rng, self.opened, self.whole = rng, opened, whole
        self.oracle = StudyOracle(make_base, given)
        if given.get("totals"):
            self.opened = self._totals
        if given.get("allowances"):
            self.whole = some_allowances(whole, rng)
            self.opened = self._allowed
        self.base = self.oracle.made
        self.of_arms = hasattr(self.base, "arms")
        self.limits = self.of_arms and self.base.exact  # whether the oracle knows what to do about some arms only
        self.ids: dict[int, str] = {}
        self.rewarded: list[int] = []
        self.deferred: dict[int, list[Any]] = {}
        self.happened: Counter[str] = Counter()
        self.rows = 0

    def begin(self, place: Path | str) -> None:
        self.place = place
        self.rows = self.rng.randint(0, len(self.whole))
        self._log(0, self.rows)
        given = {name: value for name, value in self.oracle.given.items() if name not in ("totals", "allowances")}
        given = {"wait": None, "holdout": self.rng.choice((0.0, 0.0, 0.3)) if self.of_arms else 0.0} | given
        self.study = ar.Study.create(place, self.oracle.made, self.opened(self.rows), **given)
        self.oracle.log_rows = self.study.facts()["log"]["rows"] + self.study.rounds

    def _totals(self, rows: int) -> ar.Totals:
        units = [self.whole.unit(row) for row in range(rows)]
        return ar.Totals(units, [2] * rows, 2 * self.whole.rewards[:rows])

    def _allowed(self, rows: int) -> ar.History:
        return self.whole.rows(np.arange(rows))

    def _log(self, first: int, last: int) -> None:
        self.oracle.entries.append((LOGGED, rows_of(self.whole, first, last)))

    def _value(self, units: list[Any]) -> Any:
        values = [self.rng.choice(REWARDS) for _ in units]
        return values if self.base.proposes_list else values[0]

    def happen(self, event: str) -> None:
        done = getattr(self, "_" + event.replace(" ", "_"))()
        self.happened[event] += done is not False

    def _decide(self, among: list[Any] | None = None) -> None:
        expected = self.oracle.decide(among)
        self._compare(self.study.decide(among=among), expected)

    def _compare(self, decision: Any, expected: Any) -> None:
        if repr(decision.policy_action) != repr(expected):
            raise Difference(f"decision {decision.number} is {decision.policy_action!r}, the journal says {expected!r}")
        self.ids[decision.number] = decision.id
        if decision.group == "control":
            self.oracle.open[decision.number] = decision.action if self.base.proposes_list else [decision.action]

    def _deferred(self) -> None:
        """A decision that is not open."""
        expected = self.oracle.decide(None)
        decision = self.study.decide(deferred=True)
        self._compare(decision, expected)
        self.deferred[decision.number] = self.oracle.open.pop(decision.number)

    def _activate(self) -> bool | None:
        if not self.deferred:
            return False
        number = self.rng.choice(list(self.deferred))
        self.study.activate(self.ids[number])
        self.oracle.open[number] = self.deferred.pop(number)
        return None

    def _undone(self) -> None:
        """Several things that are rolled back."""

        def work(study: ar.Study) -> None:
            decision = study.decide()
            study.reward(decision.id, self._value(decision.action if self.base.proposes_list else [decision.action]))
            if self.rng.random() < 0.5:
                study.decide()
            raise ZeroDivisionError

        with contextlib.suppress(ZeroDivisionError):
            self.study.together(work)

    def _several(self) -> None:
        for decision in self.study.decide(count=self.rng.randint(2, 4)):
            self._compare(decision, self.oracle.decide(None))

    def _among(self) -> bool | None:
        labels = self.oracle.labels() if self.limits else []
        if len(labels) <= self.base.width:
            return False
        self._decide(sorted(self.rng.sample(labels, self.rng.randint(self.base.width, len(labels))), key=repr))
        return None

    def _reward(self) -> bool | None:
        if not self.oracle.open:
            return False
        number = self.rng.choice(list(self.oracle.open))
        units = self.oracle.open.pop(number)
        value = self._value(units)
        self.study.reward(self.ids[number], value)
        self.oracle.entries.append(
            (number, list(zip(units, value if self.base.proposes_list else [value], strict=True)))
        )
        self.rewarded.append(number)
        return None

    def _observe(self) -> None:
        units = [
            self.whole.unit(self.rng.randrange(len(self.whole))) for _ in range(self.rng.randint(1, self.base.width))
        ]
        value = self._value(units)
        self.study.observe(units if self.base.proposes_list else units[0], value)
        self.oracle.entries.append((None, list(zip(units, value if self.base.proposes_list else [value], strict=True))))

    def _void_open(self) -> bool | None:
        return self._void(list(self.oracle.open))

    def _void_rewarded(self) -> bool | None:
        return self._void([number for number in self.rewarded if number not in self.oracle.void])

    def _void(self, numbers: list[int]) -> bool | None:
        if not numbers:
            return False
        number = self.rng.choice(numbers)
        self.study.void(self.ids[number])
        self.oracle.void.add(number)
        self.oracle.open.pop(number, None)
        return None

    def _grow(self) -> bool | None:
        if self.rows == len(self.whole):
            return False
        more = self.rng.randint(self.rows + 1, len(self.whole))
        self._log(self.rows, more)
        self.rows = more
        self.study.extend(self.opened(more))
        return None

    def _retire(self) -> bool | None:
        labels = self.oracle.labels() if self.limits else []
        if len(labels) <= max(self.base.width, 2):
            return False
        label = self.rng.choice(labels)
        self.study.retire_arm(label)
        self.oracle.retired.add(label)
        return None

    def _return(self) -> bool | None:
        if not self.oracle.retired:
            return False
        label = self.rng.choice(sorted(self.oracle.retired, key=repr))
        self.study.add_arm(label)
        self.oracle.retired.remove(label)
        return None

    def _add(self) -> bool | None:
        # The index of the others depends on the number of arms, or on features.
        if type(self.base) not in (ar.MonUCB, ar.TopUCB, ar.UCB1) or self.base.counts_log:
            return False
        label = f"new {len(self.oracle.added)}"
        self.study.add_arm(label)
        self.oracle.added.append(label)
        return None

    def _horizon(self) -> bool | None:
        if not hasattr(self.base, "horizon") or self.oracle.added:
            return False
        self.oracle.horizon = self.rng.choice((5, 20, 100))
        self.study.set_horizon(self.oracle.horizon)
        self.oracle.log_rows = self.study.facts()["log"]["rows"] + self.study.rounds
        return None

    def _change(self) -> bool | None:
        """Another drift; totals stay what they are."""
        if "drift" not in self.oracle.given:
            return False
        self.oracle.given["drift"] = self.rng.choice(DRIFTS[: 5 if self.of_arms else 3])
        self.study.change(drift=self.oracle.given["drift"])
        return None

    def _reopen(self) -> bool | None:
        if self.place == ":memory:":
            return False
        self.study.close()
        self.study = ar.Study.open(self.place)
        return None

    def _crash(self) -> bool | None:
        """The process is gone, without a snapshot."""
        if self.place == ":memory:":
            return False
        self.study._journal.close()
        self.study._journal.disown()
        self.study = ar.Study.open(self.place)
        return None


def live(
    make_base: Callable[[], Any],
    opened: Opened,
    whole: ar.History,
    rng: random.Random,
    place: Path | str,
    events: int = 24,
    **given: Any,
) -> Counter[str]:
    """One life; an error if the study decides otherwise than the oracle. `given` is what the study is made with."""
    life = Life(make_base, opened, whole, rng, given)
    life.begin(place)
    try:
        for _ in range(events):
            life.happen(rng.choice(EVENTS))
        life.happen("decide")
    finally:
        life.study.close()
    return life.happened
