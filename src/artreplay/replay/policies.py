"""The three policies: a base algorithm plus a way to use history."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, cast, get_args

import numpy as np

from artreplay.algorithms import IndexArmAlgorithm, LinUCB
from artreplay.compiling import Floats, Ints
from artreplay.compiling.interrupts import Uninterrupted
from artreplay.errors import InvalidHistory, InvalidParameter
from artreplay.history import Fingerprint, History, Store
from artreplay.replay.adapter import Relation, Unknown, checked_relation, checked_unknown
from artreplay.replay.lazy_ledger import LazyArmLedger, LazyPointLedger
from artreplay.replay.ledger import ArmLedger, Ledger, first_of_cells, stream_ledger
from artreplay.replay.logs import Flags, Log, MemoryLog, Part, StoreLog, Used, UsedRows
from artreplay.replay.point_ledger import PointLedger, used_rows
from artreplay.replay.policy import Policy
from artreplay.replay.shown import Beginning, FirstOfCells, Flagged
from artreplay.replay.step import FED, FEED, KEPT, USED

Replay = Literal["samples", "summaries"]


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

    _used_without_log: Used  # while it was loaded and its log has not been given yet

    def __init__(self, base: Any, history: History | Store, *, unknown: Unknown = "error") -> None:
        super().__init__(base)
        self.unknown = checked_unknown(unknown)
        self._read_history(history, None)

    def extend(self, history: History | Store) -> None:
        """Continue with a log that has grown: the same rows, in the same order, with more behind them.

        The new rows join the unused ones. Any other change is refused, and the sentence names the row.
        """
        if not isinstance(history, (History, Store)):
            raise InvalidHistory(f"history must be a History, or what open_history gives, got {type(history).__name__}")
        self._guard.recover()
        history.check_continues(self.fingerprint(), self.history)
        self._read_history(history, self._used())

    def fingerprint(self) -> Fingerprint:
        """What the policy remembers of its log."""
        if self._fingerprint is not None:
            return self._fingerprint
        return History([], []).fingerprint if self.history is None else self.history.fingerprint

    def _used(self) -> Used:
        return self._used_without_log if self._log is None else self._used_state()

    def _kept_position(self) -> Ints:
        """The position as a saved policy has it: without what only counts while the log is at hand."""
        return self._position[:KEPT].copy()

    def _used_state(self) -> Used:
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
    _fed_before = 0  # samples of a store that were shown before the part at hand

    def __init__(self, base: Any, history: History | Store, batch: bool = False, *, unknown: Unknown = "error") -> None:
        self.batch = bool(batch)
        if self.batch and not takes_batches(base):
            raise InvalidParameter(
                f"batch=True is for index algorithms over arms (MonUCB, PsiUCB, TopUCB), got {base!r}"
            )
        super().__init__(base, history, unknown=unknown)

    def _opened(self, log: Log, used: Used | None) -> tuple[Log, Ledger]:
        if isinstance(log, MemoryLog):
            return log, stream_ledger(log.units, log.rewards)
        return super()._opened(log, used)

    def _begin(self, log: Log, used: Used | None) -> None:
        """A log in memory is shown from one position; of a store, the position is that in the part at hand."""
        fed = 0 if used is None or isinstance(used, UsedRows) else int(used[0])
        whole = isinstance(log, MemoryLog)
        self._fed_before = 0 if whole else fed
        self._position[FED] = fed if whole else 0
        self._position[FEED] = log.size if whole else 0

    def _must_be_fed(self, position: Any) -> bool:
        if isinstance(self._log, StoreLog):
            return self._fed() < self._log.size
        return super()._must_be_fed(position)

    def _open_log(self) -> None:
        super()._open_log()
        if self.batch and self._log is not None and self._fed() == 0:
            self._load_batch(self._log)
        elif isinstance(self._log, StoreLog):
            while self._next_part(self._log):
                self._run(feed_only=1)

    def _next_part(self, log: StoreLog) -> bool:
        """Have something at hand that is to be shown; False when all of a store was shown."""
        if self._position[FED] < self._position[FEED]:
            return True
        ledger = log.fed(self._fed())
        if ledger is None:
            return False
        with Uninterrupted():
            self._fed_before = self._fed()
            self._ledger, self._parts = ledger, ()
            self._position[FED], self._position[FEED] = 0, len(ledger.unit)
        return True

    def _load_batch(self, log: Log) -> None:
        base = self._adapter.base
        counts, totals = np.zeros(base.n_arms, np.int64), np.zeros(base.n_arms)
        for part in log.parts():
            add_batch(counts, totals, part.units, part.rewards)
        whole = isinstance(log, MemoryLog)
        with Uninterrupted():
            base.load(counts, totals)
            self._fed_before = 0 if whole else log.size
            self._position[FED] = self._position[FEED] = log.size if whole else 0
            self._position[USED] = log.size
            self._parts = ()

    def _fed(self) -> int:
        """How many samples were shown from front to back."""
        return self._fed_before + int(self._position[FED])

    def _kept_position(self) -> Ints:
        position = super()._kept_position()
        if isinstance(self._log, StoreLog):
            position[FED], position[FEED] = self._fed(), self._log.size
        return position

    def _used_state(self) -> Used:
        return np.array([self._fed()])

    def _shown(self) -> Callable[[Part], Flags]:
        return Beginning(self._fed())

    def _used_counts(self, count: Callable[[Ints], Ints]) -> Ints:
        everything = self._log is not None and self._fed() == self._log.size
        return self._log.counts(count) if everything and self._log is not None else super()._used_counts(count)


class ArtificialReplay(HistoryPolicy):
    """When the base proposes something the log still has a sample of, shows it that sample instead of playing.

    Only when no cell of the proposal has an unused sample does the proposal become the action. `relation` replaces
    the base's cells: a callable `(logged_unit, proposed_unit, base) -> bool`, or "trivial" (everything is related).
    `replay="summaries"` takes whole blocks of an indexed store in by what it knows of them and reads the samples only
    where they could matter, for `MonUCB` and `PsiUCB`; the decisions, and all that can be seen, are the same.

    >>> import artreplay as ar
    >>> history = ar.History(["red"] * 6 + ["blue"] * 3, [0, 0, 0, 0, 0, 0, 1, 1, 0])
    >>> policy = ar.ArtificialReplay(ar.MonUCB(arms=["red", "blue"], horizon=2), history)
    >>> policy.ask(), policy.used_by_cell()
    ('blue', {'red': 2, 'blue': 3})
    """

    kind = "artificial-replay"

    replay: Replay = "samples"

    def __init__(
        self,
        base: Any,
        history: History | Store,
        relation: Relation = None,
        *,
        unknown: Unknown = "error",
        replay: Replay = "samples",
    ) -> None:
        self.relation = checked_relation(relation)
        self.replay = checked_replay(replay)
        if self.replay == "summaries" and relation is not None:
            raise InvalidParameter('replay="summaries" goes by the cells of the base: leave relation out')
        super().__init__(base, history, unknown=unknown)

    def _opened(self, log: Log, used: Used | None) -> tuple[Log, Ledger]:
        if isinstance(log, StoreLog):
            ledger = log.lazy(self.relation, used)
            if self.replay == "summaries":
                log.skip_blocks()
            if ledger is not None:
                return log, ledger
            log = MemoryLog(self._adapter, log.history.load(), self.unknown)
        if self.replay == "summaries":
            raise InvalidHistory('replay="summaries" needs an indexed store of arms, got a log in memory')
        return log, self._adapter.ledger(log.units, log.rewards, log.logged, self.relation, log.flags(used))

    def _used_state(self) -> Used:
        ledger, reader = self._ledger, self._log.reader if isinstance(self._log, StoreLog) else None
        if isinstance(ledger, ArmLedger):
            return ledger.next - first_of_cells(ledger)
        if isinstance(ledger, LazyArmLedger) and reader is not None:
            return reader.queues.used(ledger)
        if isinstance(ledger, LazyPointLedger) and reader is not None:
            return UsedRows(reader.queues.used_rows(ledger))
        return used_rows(ledger) if isinstance(ledger, PointLedger) else cast(Any, ledger).used

    def _shown(self) -> Callable[[Part], Flags]:
        used = self._used_state()
        if isinstance(used, UsedRows):
            return lambda part: np.isin(part.rows, used.rows)
        if isinstance(self._ledger, (ArmLedger, LazyArmLedger)):
            return FirstOfCells(self._ledger.cell, used)
        return Flagged(used)

    def _used_counts(self, count: Callable[[Ints], Ints]) -> Ints:
        ledger = self._ledger
        if isinstance(ledger, LazyArmLedger) and len(ledger.cell) == len(ledger.next):  # a cell for each arm
            self._guard.recover()
            counts = count(np.empty(0, np.int64))
            used = cast(Ints, self._used_state())
            counts[: len(used)] += used[ledger.cell]
            return counts
        return super()._used_counts(count)


def checked_replay(replay: Any) -> Replay:
    """How samples are taken in."""
    if replay not in get_args(Replay):
        raise InvalidParameter(f'replay must be "samples" or "summaries", got {replay!r}')
    checked: Replay = replay
    return checked


def takes_batches(base: Any) -> bool:
    """Whether counts and sums can be loaded into this base at once: a mean per arm, and no other state."""
    return isinstance(base, IndexArmAlgorithm) and not isinstance(base, LinUCB)


def load_batch(base: IndexArmAlgorithm, units: Ints, rewards: Floats) -> None:
    """Load the whole log into a fresh base as one count and one sum per arm, added in the order of the log."""
    counts, totals = np.zeros(base.n_arms, np.int64), np.zeros(base.n_arms)
    add_batch(counts, totals, units, rewards)
    base.load(counts, totals)


def add_batch(counts: Ints, totals: Floats, units: Ints, rewards: Floats) -> None:
    """Count more samples, and add their rewards in the order of the log."""
    counts += np.bincount(units, minlength=len(counts))
    np.add.at(totals, units, rewards)
