"""Random journals: logged rows, rewards that are late, reordered or lost, foreign actions, a log that grows, files.

Everything happens to Artificial Replay, to Full Start, and to an oracle that knows nothing of policies: a base that is
shown every entry of the journal in order, as far as it goes when a decision is made.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from store_logs import random_log

import artreplay as ar
from artreplay.compiling import is_component
from artreplay.replay import NEEDS_ROOM, state_difference, state_of_base

REWARDS = (0.0, 0.5, 1.0)
ROWS = 18
EVENTS = ("ask",) * 6 + ("ask and tell",) * 10 + ("foreign",) * 5 + ("late",) * 5 + ("grow",) * 4 + ("files",)

Opened = Callable[[int], Any]  # the first rows of a log, as a history or a store


class Difference(AssertionError):
    """A decision, or a final state, that is not that of the oracle."""


class Oracle:
    """A base that is shown the journal, entry by entry, before each decision."""

    def __init__(self, base: Any) -> None:
        self.base = self.copied(base)
        self.rounds = 0
        self._waiting: list[tuple[Any, ...]] = []
        self._logged: list[bool] = []  # of each waiting entry
        self._pending: Any = None

    def add(self, entries: list[tuple[Any, ...]]) -> None:
        self._waiting += entries
        self._logged += [True] * len(entries)

    def tell(self, entries: list[tuple[Any, ...]]) -> None:
        self.add(entries)
        self._logged[len(self._logged) - len(entries) :] = [False] * len(entries)
        self.rounds += 1
        self._pending = None

    def decide(self) -> Any:
        if self._pending is None:
            self.fold()
            self._pending = self.proposed(self.rounds)
        return self._pending

    def copied(self, base: Any) -> Any:
        """A base of its own."""
        return base.duplicate()

    def proposed(self, round_: int) -> Any:
        """The action of this round, as things stand."""
        out = np.empty(self.base.width, np.int64)
        count = self.base.component.propose(out)
        if count == NEEDS_ROOM:  # something is to be computed first
            self.base.make_room(1)
            count = self.base.component.propose(out)
        units = [self.base.unit(int(number), slot, round_) for slot, number in enumerate(out[:count])]
        return units if self.base.proposes_list else units[0]

    def fold(self) -> None:
        for entry, logged in zip(self._waiting, self._logged, strict=True):
            if logged:
                self.show_row(self.base, *entry)
            else:
                self.show_played(*entry)
        self._waiting, self._logged = [], []

    def show_played(self, unit: Any, reward: float) -> None:
        """Show what was played."""
        self.base.update(unit, reward)

    def show_row(self, base: Any, unit: Any, reward: float) -> None:
        """Show a row of the log."""
        base.update_logged(unit, reward)


class DriftOracle(Oracle):
    """The same for rows of a log that come with an allowance: a number, one for each arm, or one of their own."""

    def __init__(self, base: Any, drift: Any = None) -> None:
        super().__init__(base)
        self._drift = drift
        self.base.allow_drift()

    def show_row(self, base: Any, unit: Any, reward: float, own: float | None = None) -> None:
        drift = self._drift if own is None else own
        allowance = drift.get(unit, 0.0) if isinstance(drift, dict) else drift
        low, high = base.reward_range
        if allowance < high - low:
            base.make_room(1)
            scale = high - low if base.scales else 1.0
            base.component.update_logged(base.checked_number(unit), base.scaled(reward), allowance / scale)


class TotalsOracle(Oracle):
    """The same where each row of the log is the total of two rewards that are alike."""

    def show_row(self, base: Any, unit: Any, reward: float) -> None:
        base.make_room(2)
        base.component.load(base.checked_number(unit), 2, 2 * base.scaled(reward))


class OwnOracle(Oracle):
    """The same for an object or a component of a user's own, which is called as it stands."""

    def copied(self, base: Any) -> Any:
        return copy.deepcopy(base)

    def proposed(self, round_: int) -> Any:
        base = self.base
        if hasattr(base, "value"):
            values = [base.value(arm, round_, 0, 0.0) for arm in range(base.n_arms)]
            return values.index(max(values))
        if not is_component(base):
            return base.propose()
        out = np.empty(1, np.int64)
        assert base.propose(out) == 1
        return int(out[0])

    def show_row(self, base: Any, unit: Any, reward: float) -> None:
        if hasattr(type(base), "update_logged"):
            base.update_logged(unit, reward, 0.0)
        else:
            base.update(unit, reward)


class Outcome(NamedTuple):
    """What happened in a case, to see that cases say something."""

    foreign: int
    late: int
    grown: int
    loaded: int
    left_over: int


def play(
    make_base: Callable[[], Any],
    opened: Opened,
    whole: ar.History,
    rng: random.Random,
    folder: Path,
    make_replay: Callable[[Any, Any], Any] | None = ar.ArtificialReplay,
    make_full: Callable[[Any, Any], Any] | None = None,
    make_oracle: Callable[[Any], Oracle] = Oracle,
    events: int = 11,
) -> Outcome:
    """One case; an error if replay, or Full Start, decides otherwise than the oracle, or ends in another state."""
    rows = rng.randint(0, len(whole))
    makers = {"replay": make_replay, "full start": make_full}
    policies = {name: make(make_base(), opened(rows)) for name, make in makers.items() if make is not None}
    base = make_base()
    if isinstance(base, ar.algorithms.Algorithm):
        base.count_log(next(iter(policies.values())).unused)
    oracle = make_oracle(base)
    oracle.add(rows_of(whole, 0, rows))
    asked: list[Any] = []
    foreign = late = grown = loaded = 0
    for _ in range(events):
        event = rng.choice(EVENTS)
        if event.startswith("ask"):
            asked.append(oracle.decide())
            for name, policy in policies.items():
                decision = policy.ask()
                if repr(decision) != repr(asked[-1]):
                    raise Difference(f"{name} plays {decision!r}, the whole journal says {asked[-1]!r}")
        action = None
        if event == "ask and tell":
            action = asked[-1]
        elif event == "late" and asked:  # of an action that may have been told before, or never
            action = rng.choice(asked)
            late += 1
        elif event == "foreign":
            action = _foreign(oracle, whole, rng)
            foreign += 1
        if action is not None:
            several = isinstance(action, list)
            rewards = [rng.choice(REWARDS) for _ in action] if several else rng.choice(REWARDS)
            for policy in policies.values():
                policy.tell(action, rewards)
            oracle.tell(list(zip(action, rewards, strict=True)) if several else [(action, rewards)])
        if event == "grow" and rows < len(whole):
            more = rng.randint(rows + 1, len(whole))
            oracle.add(rows_of(whole, rows, more))
            rows = more
            for policy in policies.values():
                policy.extend(opened(rows))
            grown += 1
        if event == "files":
            policies = {
                name: _through_a_file(policy, folder / "policy", opened(rows), _given_again(policy, make_base))
                for name, policy in policies.items()
            }
            loaded += 1
    _check_completion(policies, oracle, whole)
    return Outcome(foreign, late, grown, loaded, sum(policy.unused for policy in policies.values()))


def _through_a_file(policy: Any, path: Path, log: Any, again: dict[str, Any]) -> Any:
    """The policy, saved and loaded."""
    policy.save(path)
    loaded = ar.load(path, log, **again)
    loaded.__class__ = type(policy)  # a policy of a test's own is saved as what it comes from
    return loaded


def _given_again(policy: Any, make_base: Callable[[], Any]) -> dict[str, Any]:
    """What a file cannot hold."""
    base = policy.base
    own = not isinstance(base, ar.algorithms.Algorithm) or base.table is not None
    return {"base": make_base(), "relation": policy.relation} if own or policy.relation is not None else {}


def rows_of(whole: ar.History, first: int, last: int) -> list[tuple[Any, ...]]:
    """Rows of a log: the unit, the reward, and the allowance where there are some."""
    columns = [column for column in (whole.rewards, whole.allowances) if column is not None]
    return [(whole.unit(row), *(float(column[row]) for column in columns)) for row in range(first, last)]


def _foreign(oracle: Oracle, whole: ar.History, rng: random.Random) -> Any:
    """An action that nobody asked for: units that the log has, sooner or later."""
    width = getattr(oracle.base, "width", 1)
    units = [whole.unit(rng.randrange(len(whole))) for _ in range(rng.randint(1, width))]
    return units if getattr(oracle.base, "proposes_list", width > 1) else units[0]


def _check_completion(policies: dict[str, Any], oracle: Oracle, whole: ar.History) -> None:
    """Shown what is left over, each policy ends in the very state of the oracle."""
    oracle.fold()
    for name, policy in policies.items():
        for row in policy.unused_rows():
            oracle.show_row(policy.base, *rows_of(whole, row, row + 1)[0])
        differs = state_difference(state_of_base(oracle.base), state_of_base(policy.base))
        if differs is not None:
            raise Difference(f"the state of {name} differs in {differs}")


def with_allowances(log: ar.History, allowances: Any) -> ar.History:
    """The same rows with these allowances."""
    return ar.History([log.unit(row) for row in range(len(log))], log.rewards, allowance=allowances)


def some_allowances(log: ar.History, rng: random.Random) -> ar.History:
    """The same rows with allowances of their own, some of which are as wide as rewards are."""
    return with_allowances(log, [rng.choice([0.0, 0.1, 0.3, 0.8, 1.0, 1.5]) for _ in range(len(log))])


class Shelf:
    """Some random logs for a base, in memory and, if they are of arms, laid out."""

    def __init__(self, make_base: Callable[[], Any], folder: Path, logs: int, stores: int, seed: int = 0) -> None:
        made = [random_log(make_base(), ROWS, seed + number) for number in range(logs)]
        self._logs = [log.history() for log in made]
        are_arms = isinstance(made[0].columns["unit"], str)
        self._paths = [folder / f"log {number}" for number in range(min(stores, logs) if are_arms else 0)]
        self._opened: dict[tuple[int, int], Any] = {}
        for path, log in zip(self._paths, made, strict=False):
            ar.index_history(log.table, path, **log.columns)

    def take(self, rng: random.Random, from_store: bool) -> tuple[Opened, ar.History]:
        if not from_store or not self._paths:
            whole = rng.choice(self._logs)
            return (lambda rows: whole.rows(np.arange(rows))), whole
        number = rng.randrange(len(self._paths))

        def opened(rows: int) -> Any:
            if (number, rows) not in self._opened:
                self._opened[number, rows] = ar.open_history(self._paths[number]).first(rows)
            return self._opened[number, rows]

        return opened, self._logs[number]
