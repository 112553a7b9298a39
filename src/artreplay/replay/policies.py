"""The three policies: a base algorithm plus a way to use history."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from artreplay.algorithms import IndexArmAlgorithm, LinUCB
from artreplay.compiling import Floats, Ints
from artreplay.compiling.interrupts import Uninterrupted
from artreplay.errors import InvalidHistory, InvalidParameter
from artreplay.history import Fingerprint, History
from artreplay.replay.adapter import Relation, Unknown, checked_relation, checked_unknown
from artreplay.replay.ledger import ArmLedger, Ledger, first_of_cells, serving_order
from artreplay.replay.point_ledger import PointLedger, used_rows
from artreplay.replay.policy import Policy
from artreplay.replay.step import FED, FEED, USED


class Ignorant(Policy):
    """The base alone: no history.

    >>> import artreplay as ar
    >>> policy = ar.Ignorant(ar.MonUCB(3, horizon=100))
    >>> policy.ask()
    0
    >>> policy.tell(0, 0.0)
    >>> policy.rounds, policy.used
    (1, 0)
    """

    kind = "ignorant"


class HistoryPolicy(Policy):
    """A policy with a log, which may grow."""

    _used_without_log: Ints  # while it was loaded and its log has not been given yet

    def __init__(self, base: Any, history: History, *, unknown: Unknown = "error") -> None:
        super().__init__(base)
        self.unknown = checked_unknown(unknown)
        self._read_history(history, None)

    def extend(self, history: History) -> None:
        """Continue with a log that has grown: the same rows, in the same order, with more behind them.

        The new rows join the unused ones. Any other change is refused, and the sentence names the row.
        """
        if not isinstance(history, History):
            raise InvalidHistory(f"history must be a History, got {type(history).__name__}")
        self._guard.recover()
        history.check_continues(self.fingerprint(), self._history)
        self._read_history(history, self._used())

    def fingerprint(self) -> Fingerprint:
        """What the policy remembers of its log."""
        if self._fingerprint is not None:
            return self._fingerprint
        return History([], []).fingerprint if self._history is None else self._history.fingerprint

    def _used(self) -> Ints:
        return self._used_without_log if self._history is None else self._used_state()

    def _used_state(self) -> Ints:
        """Which samples are used, in the form in which the policy keeps it."""
        raise NotImplementedError


class FullStart(HistoryPolicy):
    """Shows the base the whole log, one sample at a time and in order, before the first proposal.

    The log is read at the first `ask` or `tell`. `batch=True` instead loads one count and one sum per arm at once, as
    the paper describes it, for index algorithms over arms. That is *not* the same algorithm: an index that is a
    running minimum depends on the order, and Artificial Replay is not exact against it.

    >>> import artreplay as ar
    >>> policy = ar.FullStart(ar.MonUCB(2, horizon=10), ar.History([0, 0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 0, 1]))
    >>> policy.used
    0
    >>> policy.ask(), policy.used
    (1, 7)
    """

    kind = "full-start"

    def __init__(self, base: Any, history: History, batch: bool = False, *, unknown: Unknown = "error") -> None:
        self.batch = bool(batch)
        if self.batch and not takes_batches(base):
            raise InvalidParameter(
                f"batch=True is for index algorithms over arms (MonUCB, PsiUCB, TopUCB), got {base!r}"
            )
        super().__init__(base, history, unknown=unknown)

    def _to_feed(self) -> int:
        return len(self._units)

    def _open_log(self) -> None:
        super()._open_log()
        if self.batch and self._position[FED] == 0:
            with Uninterrupted():
                load_batch(self._adapter.base, self._units, self._rewards)
                self._position[FED] = self._position[USED] = self._position[FEED]
                self._parts = ()

    def _used_state(self) -> Ints:
        return np.array([self._position[FED]])

    def _shown_rows(self) -> Ints:
        shown: Ints = (np.arange(len(self._units)) < self._position[FED]).astype(np.int64)
        return shown


class ArtificialReplay(HistoryPolicy):
    """When the base proposes something the log still has a sample of, shows it that sample instead of playing.

    Only when no cell of the proposal has an unused sample does the proposal become the action. `relation` replaces
    the base's cells: a callable `(logged_unit, proposed_unit, base) -> bool`, or "trivial" (everything is related).

    >>> import artreplay as ar
    >>> history = ar.History(["red"] * 6 + ["blue"] * 3, [0, 0, 0, 0, 0, 0, 1, 1, 0])
    >>> policy = ar.ArtificialReplay(ar.MonUCB(arms=["red", "blue"], horizon=2), history)
    >>> policy.ask(), policy.used_by_cell()
    ('blue', {'red': 2, 'blue': 3})
    """

    kind = "artificial-replay"

    def __init__(self, base: Any, history: History, relation: Relation = None, *, unknown: Unknown = "error") -> None:
        self.relation = checked_relation(relation)
        super().__init__(base, history, unknown=unknown)

    def _ledger_of(self, units: Ints, rewards: Floats, logged: Callable[[int], Any], used: Ints | None) -> Ledger:
        return self._adapter.ledger(units, rewards, logged, self.relation, used)

    def _used_state(self) -> Ints:
        if isinstance(self._ledger, ArmLedger):
            return self._ledger.next - first_of_cells(self._ledger)
        return used_rows(self._ledger) if isinstance(self._ledger, PointLedger) else self._ledger.used

    def _shown_rows(self) -> Ints:
        ledger = self._ledger
        if not isinstance(ledger, ArmLedger):
            return self._used_state()
        served = np.zeros(len(self._units), np.int64)
        for first, stop in zip(first_of_cells(ledger).tolist(), ledger.next.tolist(), strict=True):
            served[first:stop] = 1
        shown = np.empty_like(served)
        shown[serving_order(self._units, ledger.cell)] = served
        return shown


def takes_batches(base: Any) -> bool:
    """Whether counts and sums can be loaded into this base at once: a mean per arm, and no other state."""
    return isinstance(base, IndexArmAlgorithm) and not isinstance(base, LinUCB)


def load_batch(base: IndexArmAlgorithm, units: Ints, rewards: Floats) -> None:
    """Load the whole log into a fresh base as one count and one sum per arm, added in the order of the log."""
    counts = np.bincount(units, minlength=base.n_arms)
    totals: Floats = np.bincount(units, weights=rewards, minlength=base.n_arms).astype(np.float64)
    base.load(counts, totals)
