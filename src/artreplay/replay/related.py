"""Replay by a relation, as in the paper's Algorithm 1. Any base works, and the relation may also look at the base."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from artreplay.compiling import Ints
from artreplay.errors import InvalidParameter
from artreplay.replay.bases import Base
from artreplay.replay.ledger import NO_ALLOWANCE
from artreplay.replay.log import BaseLog
from artreplay.replay.step import NO_ROW, Learner

Relation = Callable[[Any, Any, Any], bool]  # (logged unit, proposed unit, base)


class RelatedRows:
    """The unread rows of a log in order, in place of a ledger. The first row that is related to a unit is shown."""

    def __init__(self, base: Base, log: BaseLog, relation: Relation, used: Ints | None) -> None:
        """`used` holds the numbers of the rows that have been shown."""
        rows = log.whole
        if rows is None or log.is_totals:
            raise InvalidParameter("a relation needs rows in memory. Give a History, such as store.load() returns")
        self._base, self._log, self._relation = base, log, relation
        self.rows, self._unit, self._reward = rows.rows, rows.units.tolist(), rows.rewards.tolist()
        self._unread = np.flatnonzero(~np.isin(rows.rows, [] if used is None else used)).tolist()

    def locate(self, component: Learner, unit: int) -> int:
        """Return the unit itself, because there are no cells."""
        return unit

    def first_unread(self, unit: int) -> int:
        """Return where the earliest unread row is that is related to a unit, or NO_ROW."""
        known, thing = self._base.unit(unit), self._base.thing
        return next((at for at in self._unread if self._relation(self._log.unit(at), known, thing)), NO_ROW)

    def show(self, component: Learner, unit: int, at: int) -> None:
        """Show the base a row, and take it off the unread rows."""
        component.update_logged(self._unit[at], self._reward[at], NO_ALLOWANCE)
        self._unread.remove(at)

    def used_rows(self) -> Ints:
        """Return the numbers of the rows that have been shown."""
        used: Ints = np.delete(self.rows, self._unread)
        return used


def checked_relation(relation: object) -> Relation | None:
    """Check a relation, which is a callable, or None for the base's own cells."""
    if relation is None or callable(relation):
        return relation
    raise InvalidParameter(f"relation must be a callable (logged unit, proposed unit, base) or None, got {relation!r}")
