"""The three policies, which differ in what they show a base of its log, and when."""

from __future__ import annotations

from artreplay.algorithms import Algorithm
from artreplay.compiling import Ints
from artreplay.errors import InvalidParameter
from artreplay.history import History
from artreplay.parameters import checked
from artreplay.replay.bases import as_base
from artreplay.replay.drift import Drift
from artreplay.replay.log import AnyHistory, Unknown
from artreplay.replay.log_warnings import warn_of_other_decisions
from artreplay.replay.policy import Policy
from artreplay.replay.related import Relation, checked_relation
from artreplay.replay.step import PENDING


class Ignorant(Policy):
    """Plays the base alone, without a log.

    Parameters
    ----------
    base
        An algorithm of this package, or your own component or object.

    >>> import artreplay as ar
    >>> policy = ar.Ignorant(ar.MonUCB(3, horizon=100))
    >>> policy.ask()
    0
    >>> policy.tell(0, 0.0)
    >>> policy.rounds, policy.used
    (1, 0)
    """

    kind = "ignorant"

    @checked
    def __init__(self, base: object) -> None:
        new = as_base(base)
        self._begin(new, Drift(0.0, new), "error")
        self._open_log(History([], []), None)

    @property
    def history(self) -> None:
        """There is no log."""
        return None

    def extend(self, history: AnyHistory) -> None:
        """Refuse, because an Ignorant policy has no log."""
        raise InvalidParameter("an Ignorant policy has no log to extend. Type ar.ArtificialReplay(base, history).")

    def show_before(self, units: list[int]) -> None:
        """Do nothing, because there is no log."""


class FullStart(Policy):
    """Shows the base the whole log, row by row and in order, before the first proposal.

    Parameters
    ----------
    base
        An algorithm of this package, or your own component or object.
    history
        The log: a `History`, `Totals`, or a log from `open_history`.
    drift
        How far the mean of a logged row may lie from today's, in units of the reward. Give a number, or a dict of
        numbers by arm.
    unknown
        What to do with rows whose label is not an arm: "error" refuses the log, "skip" leaves the rows out.

    The policy reads the log at the first `ask` or `tell`. A base over arms that is marked as exact gets it arm by arm,
    because the order between arms does not matter then. The paper loads one count and one sum per arm instead. For
    that, start from totals: `FullStart(base, ar.Totals.of(history))`. That is *not* the same algorithm. An index that
    is a running minimum depends on the order of rows, so Artificial Replay of the rows is not exact against it.

    >>> import artreplay as ar
    >>> policy = ar.FullStart(ar.MonUCB(2, horizon=10), ar.History([0, 0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 0, 1]))
    >>> policy.used
    0
    >>> policy.ask(), policy.used
    (1, 7)
    """

    kind = "full-start"

    @checked
    def __init__(self, base: object, history: AnyHistory, *, drift: object = 0.0, unknown: Unknown = "error") -> None:
        super().__init__(as_base(base), history, drift, unknown)


class ArtificialReplay(Policy):
    """Shows the base an unread row of the log instead of playing, whenever the log has one for what the base proposes.

    Parameters
    ----------
    base
        An algorithm of this package, or your own component or object.
    history
        The log: a `History`, `Totals`, or a log from `open_history`.
    relation
        A callable `(logged_unit, proposed_unit, base) -> bool` that replaces the base's cells.
    drift
        How far the mean of a logged row may lie from today's, in units of the reward. Give a number, or a dict of
        numbers by arm.
    unknown
        What to do with rows whose label is not an arm: "error" refuses the log, "skip" leaves the rows out.

    A proposal becomes the action only when none of its cells has an unread row. For a base that is marked as exact,
    every decision is the one that Full Start makes over the same journal. A base that says `reads_whole_log = True` is
    shown the whole log first, so any rule is exact. Totals are loaded first, too.

    >>> import artreplay as ar
    >>> history = ar.History(["red", "red", "blue", "blue"], [0, 0, 1, 1])
    >>> policy = ar.ArtificialReplay(ar.MonUCB(arms=["red", "blue"], horizon=2), history)
    >>> policy.ask(), policy.used, policy.unused
    ('blue', 4, 0)
    >>> policy.tell("blue", 1.0)
    """

    kind = "artificial-replay"
    _decided_before = False  # whether the pending action was decided before the log had its last rows

    @checked
    def __init__(
        self,
        base: object,
        history: AnyHistory,
        relation: Relation | None = None,
        *,
        drift: object = 0.0,
        unknown: Unknown = "error",
    ) -> None:
        self.relation = checked_relation(relation)
        new = as_base(base, plain=relation is not None)
        super().__init__(new, history, drift, unknown)
        if getattr(new.thing, "exact", None) is False and not isinstance(new, Algorithm) and not self.shows_all:
            warn_of_other_decisions(new)

    def show_before(self, units: list[int]) -> None:
        """Show the rows that come before online rewards.

        Under a relation none come before that of the pending action: what is related to its cell was shown when it was
        proposed, and what is related to the point that is played in the cell may be more.
        """
        if self.relation is None or self._decided_before or not self.is_pending(units):
            super().show_before(units)
        self._decided_before = False

    def _go_on_with(self, history: AnyHistory, rows: int, marks: Ints) -> None:
        super()._go_on_with(history, rows, marks)
        if history.n_rows > rows:
            self._decided_before = self.drive.position.item(PENDING) > 0
