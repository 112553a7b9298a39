"""Random journals: logged rows, rewards that are late, reordered or lost, foreign actions, a log that grows, files.

Everything happens to Artificial Replay, to Full Start, and to an oracle that knows nothing of policies: a base that is
shown every entry of the journal in order, as far as it goes when a decision is made.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from store_logs import random_log

import artreplay as ar
from artreplay.algorithms.regression_fits import CLOSED
from artreplay.replay.object_states import state_difference
from artreplay.replay.step import NEEDS_ROOM

REWARDS = (0.0, 0.5, 1.0)
ROWS = 18
EVENTS = ("ask",) * 6 + ("ask and tell",) * 10 + ("foreign",) * 5 + ("late",) * 5 + ("grow",) * 4 + ("files",)

Opened = Callable[[int], Any]  # the first rows of a log, as a history or a store


class Difference(AssertionError):
    """A decision, or a final state, that is not that of the oracle."""


class Oracle:
    """A base that is shown the journal, entry by entry, before each decision."""

    def __init__(self, base: Any) -> None:
        self.base = base.duplicate()
        self.rounds = 0
        self._waiting: list[tuple[Any, float]] = []
        self._logged: list[bool] = []  # of each waiting entry
        self._pending: Any = None

    def add(self, entries: list[tuple[Any, float]]) -> None:
        self._waiting += entries
        self._logged += [True] * len(entries)

    def tell(self, entries: list[tuple[Any, float]]) -> None:
        self.add(entries)
        self._logged[len(self._logged) - len(entries) :] = [False] * len(entries)
        self.rounds += 1
        self._pending = None

    def decide(self) -> Any:
        if self._pending is None:
            self.fold()
            out = np.empty(self.base.width, np.int64)
            count = self._propose(out)
            units = [self.base.unit(int(number), slot, self.rounds) for slot, number in enumerate(out[:count])]
            self._pending = units if self.base.proposes_list else units[0]
        return self._pending

    def _propose(self, out: np.ndarray[Any, Any]) -> int:
        """A proposal of cells that the base knows to be read to the end, because they all are."""
        while True:
            component = self.base.component
            count = int(component.propose(out))
            if count == NEEDS_ROOM:
                self.base.make_room(1)
                continue
            if not hasattr(component, "close"):
                return count
            cells = {int(component.cell_of(int(unit))) for unit in out[:count]}
            if all(component.index.cell[cell, CLOSED] == 1 for cell in cells):
                return count
            for cell in cells:
                component.close(cell)

    def fold(self) -> None:
        for (unit, reward), logged in zip(self._waiting, self._logged, strict=True):
            if logged:
                self.show_row(self.base, unit, reward)
            else:
                self.base.update(unit, reward)
        self._waiting, self._logged = [], []

    def show_row(self, base: Any, unit: Any, reward: float) -> None:
        """Show a row of the log."""
        base.update_logged(unit, reward)


class DriftOracle(Oracle):
    """The same for rows of a log that come with an allowance: a number, or one for each arm."""

    def __init__(self, base: Any, drift: Any) -> None:
        super().__init__(base)
        self._drift = drift
        self.base.allow_drift()

    def show_row(self, base: Any, unit: Any, reward: float) -> None:
        base.make_room(1)
        drift = self._drift
        allowance = drift.get(unit, 0.0) if isinstance(drift, dict) else drift
        base.component.update_logged(base.checked_number(unit), base.scaled(reward), allowance)


class BlockOracle(Oracle):
    """The same where logged rows lower an index at the rows 1, 2, 4, … of their arm, and at its last in each part."""

    def __init__(self, base: Any) -> None:
        super().__init__(base)
        self._rows_of: dict[Any, int] = {}
        self._ends: list[bool] = []  # of each waiting entry: whether it lowers the index

    def add(self, entries: list[tuple[Any, float]]) -> None:
        last = {unit: place for place, (unit, _) in enumerate(entries)}
        for place, (unit, _) in enumerate(entries):
            self._rows_of[unit] = number = self._rows_of.get(unit, 0) + 1
            self._ends.append(number & (number - 1) == 0 or last[unit] == place)
        self._waiting += entries

    def tell(self, entries: list[tuple[Any, float]]) -> None:
        self._ends += [True] * len(entries)
        self._waiting += entries
        super().tell([])

    def fold(self) -> None:
        for (unit, reward), lowers in zip(self._waiting, self._ends, strict=True):
            self.base.make_room(1)
            algorithm, arm = self.base.component, self.base.number(unit)
            algorithm.index.tally.add(arm, reward)
            if lowers:
                algorithm.tell_selector(algorithm.index.lower(arm, algorithm.fallen))
        self._waiting, self._ends = [], []


class TotalsOracle(Oracle):
    """The same where each row of the log is the total of two rewards that are alike."""

    def show_row(self, base: Any, unit: Any, reward: float) -> None:
        base.make_room(2)
        base.component.load(base.checked_number(unit), 2, 2 * base.scaled(reward))


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
    make_replay: Callable[[Any, Any], Any] = ar.ArtificialReplay,
    make_full: Callable[[Any, Any], Any] | None = None,
    make_oracle: Callable[[Any], Oracle] = Oracle,
    events: int = 11,
) -> Outcome:
    """One case; an error if replay, or Full Start, decides otherwise than the oracle, or ends in another state."""
    rows = rng.randint(0, len(whole))
    policies = {"replay": make_replay(make_base(), opened(rows))}
    if make_full is not None:
        policies["full start"] = make_full(make_base(), opened(rows))
    oracle = make_oracle(make_base())
    oracle.add(_rows(whole, 0, rows))
    asked: list[Any] = []
    decided_on = -1  # rows of the log when the pending decision was made, if there is one
    foreign = late = grown = loaded = 0
    for _ in range(events):
        event = rng.choice(EVENTS)
        if event.startswith("ask"):
            asked.append(oracle.decide())
            for name, policy in policies.items():
                decision = policy.ask()
                if repr(decision) != repr(asked[-1]):
                    raise Difference(f"{name} plays {decision!r}, the whole journal says {asked[-1]!r}")
            decided_on = rows if decided_on < 0 else decided_on
        action = None
        if event == "ask and tell":
            action = asked[-1]
        elif event == "late" and asked:  # of an action that may have been told before, or never
            action = rng.choice(asked)
            late += 1
        elif event == "foreign":
            action = _foreign(oracle.base, whole, rng)
            foreign += 1
        if action is not None:
            several = isinstance(action, list)
            rewards = [rng.choice(REWARDS) for _ in action] if several else rng.choice(REWARDS)
            for name, policy in policies.items():
                if event == "ask and tell" and decided_on == rows and rng.random() < 0.03:
                    policies[name] = _tell_without_log(policy, folder / "policy", action, rewards, opened(rows))
                else:
                    policy.tell(action, rewards)
            decided_on = -1
            oracle.tell(list(zip(action, rewards, strict=True)) if several else [(action, rewards)])
        if event == "grow" and rows < len(whole):
            more = rng.randint(rows + 1, len(whole))
            oracle.add(_rows(whole, rows, more))
            rows = more
            for policy in policies.values():
                policy.extend(opened(rows))
            grown += 1
        if event == "files":
            given = None if rng.random() < 0.5 else opened(rows)
            policies = {
                name: _through_a_file(policy, folder / "policy", given, opened(rows))
                for name, policy in policies.items()
            }
            loaded += 1
    _check_completion(policies, oracle, whole)
    return Outcome(foreign, late, grown, loaded, policies["replay"].unused)


def _through_a_file(policy: Any, path: Path, given: Any, log: Any) -> Any:
    """The policy, saved and loaded; over its log at once, or first without it."""
    policy.save(path)
    again = ar.load(path, given, **_callables(policy))
    again.__class__ = type(policy)  # a policy of a test's own is saved as what it comes from
    if given is None:
        again.extend(log)
    return again


def _tell_without_log(policy: Any, path: Path, action: Any, rewards: Any, log: Any) -> Any:
    """The policy, told what it asked for while its log was elsewhere."""
    policy.save(path)
    again = ar.load(path, **_callables(policy))
    again.tell(action, rewards)
    again.__class__ = type(policy)
    again.extend(log)
    return again


def _callables(policy: Any) -> dict[str, Any]:
    """What a file cannot hold."""
    given = {"bonus": getattr(policy.base, "bonus", None), "psi": getattr(policy.base, "psi", None)}
    return {name: value for name, value in given.items() if callable(value)}


def _rows(whole: ar.History, first: int, last: int) -> list[tuple[Any, float]]:
    return [(whole.unit(row), float(whole.rewards[row])) for row in range(first, last)]


def _foreign(base: Any, whole: ar.History, rng: random.Random) -> Any:
    """An action that nobody asked for: units that the log has, sooner or later."""
    units = [whole.unit(rng.randrange(len(whole))) for _ in range(rng.randint(1, base.width))]
    return units if base.proposes_list else units[0]


def _check_completion(policies: dict[str, Any], oracle: Oracle, whole: ar.History) -> None:
    """Shown what is left over, each policy ends in the very state of the oracle."""
    oracle.fold()
    for name, policy in policies.items():
        if policy.lower == "blocks":
            policy._show_what_comes_before([(arm, 0.0) for arm in range(policy.base.n_arms)])
        for row in policy.unused_rows():
            oracle.show_row(policy.base, whole.unit(row), float(whole.rewards[row]))
        differs = state_difference(oracle.base.state(), policy.base.state())
        if differs is not None:
            raise Difference(f"the state of {name} differs in {differs}")


class Shelf:
    """Some random logs for a base, in memory and in indexed stores that are laid out in small portions."""

    def __init__(self, make_base: Callable[[], Any], folder: Path, logs: int, stores: int, seed: int = 0) -> None:
        made = [random_log(make_base(), ROWS, seed + number) for number in range(logs)]
        self._logs = [log.history() for log in made]
        self._paths = [folder / f"{number}.arh" for number in range(min(stores, logs))]
        self._opened: dict[tuple[int, int], Any] = {}
        for path, log in zip(self._paths, made, strict=False):
            ar.index_history(log.table, path, **log.columns)

    def take(self, rng: random.Random, from_store: bool) -> tuple[Opened, ar.History]:
        if not from_store:
            whole = rng.choice(self._logs)
            return (lambda rows: whole.rows(np.arange(rows))), whole
        number = rng.randrange(len(self._paths))

        def opened(rows: int) -> Any:
            if (number, rows) not in self._opened:
                self._opened[number, rows] = ar.open_history(self._paths[number], until=rows)
            return self._opened[number, rows]

        return opened, self._logs[number]
