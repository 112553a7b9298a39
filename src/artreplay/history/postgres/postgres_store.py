"""A log of arms in PostgreSQL, read page by page through an index on (arm, order)."""

from __future__ import annotations

import datetime
import math
import struct
from collections.abc import Iterator
from decimal import Decimal
from functools import cached_property
from typing import Any, Self

import numpy as np

from artreplay.compiling import Ints
from artreplay.errors import ChangedHistory, InvalidFile, InvalidHistory, errors_in
from artreplay.history.column_values import as_numbers
from artreplay.history.history import History
from artreplay.history.labels import Label
from artreplay.history.postgres.table import Table, in_statement
from artreplay.history.sources.log_columns import Columns
from artreplay.history.sources.source import quoted
from artreplay.history.stores.store import ArmStore, Fetched, Reading, Sums

_ROW_BYTES = 30  # about what a row takes on the wire: 7 of a message, two numbers and their lengths
# The arms, each found behind the one before it by the index.
_ARMS = (
    "WITH RECURSIVE _found AS ((SELECT {unit} AS arm FROM {table} ORDER BY {unit} LIMIT 1) UNION ALL"
    " SELECT (SELECT {unit} FROM {table} WHERE {unit} > _found.arm ORDER BY {unit} LIMIT 1) FROM _found"
    " WHERE _found.arm IS NOT NULL) "
)
# Running sums of an arm, the lowest and the highest reward, and whether a row of it cannot be used.
_SUMS = (
    "WITH _rows AS (SELECT {reward}::float8 AS reward, row_number() OVER _order AS number,"
    " sum({reward}::float8) OVER (_order ROWS UNBOUNDED PRECEDING) AS total,"
    " {reward} IS NULL OR {order} = lag({order}) OVER _order AS bad"
    " FROM {table} WHERE {unit} = %s AND {order} <= %s WINDOW _order AS (ORDER BY {order}))"
    " SELECT number, total, _all.low, _all.high, _all.bad FROM _rows, (SELECT min(reward) AS low, max(reward) AS high,"
    " bool_or(bad) AS bad FROM _rows) AS _all WHERE number = ANY(%s) ORDER BY number"
)
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


class PostgresArms(ArmStore):
    """A table as it stands when it is opened: rows that come later, behind the last one, do not belong to it."""

    def __init__(self, table: Table, columns: Columns, allow_scan: bool, until: int | None) -> None:
        self._table = table
        self.name = table.name
        self._unit, self._reward = columns.units[0], columns.reward
        self._order = str(columns.sorted_by)
        self.reading = Reading()
        columns.check(table.column_names())
        self._indexed = table.has_index([self._unit, self._order])
        if not allow_scan and not self._indexed:
            raise InvalidHistory(self._no_index())
        if not allow_scan and until and not table.has_index([self._order]):
            raise InvalidHistory(self._no_index_of_order(until))
        self._last = self._last_order(until)
        self.labels: list[Label] = [] if self._last is None else self._distinct()
        self._check_labels()
        self._orders: dict[int, Any] = {}  # of some numbers of rows: the order of the last of them
        self._pages: dict[int, tuple[int, Any]] = {}  # of each label: samples read, and the order of the last one

    def first(self, rows: int) -> Self:
        """The table as it was when it had so many rows."""
        before = self.counted()
        for name in ("_counts", "_rows", "fingerprint"):
            before.__dict__.pop(name, None)  # what was worked out for all rows
        before._last, before._pages = self._last_order(rows), {}
        before.labels = [] if before._last is None else before._distinct()
        return before

    def _check_labels(self) -> None:
        """Refuse labels that a log in memory refuses."""
        try:
            are_points = History(self.labels, [0.0] * len(self.labels)).points is not None
        except InvalidHistory as error:
            error.row, error.column = None, self._unit  # a place among the labels is no row of the log
            raise
        if are_points:
            raise InvalidHistory(f"units of {self.name} must be labels, got {self.labels[0]!r}")

    def _no_index(self) -> str:
        would_scan = "so that every look at an arm would scan all of it"
        otherwise = "allow the scan (allow_scan=True), or index the log"
        if self._table.is_query:
            return f"a query has no index, {would_scan}: name a table that has one, {otherwise}"
        unit, order, reward = map(quoted, (self._unit, self._order, self._reward))
        wanted = f"CREATE INDEX ON {self._table.plain_sql} ({unit}, {order}) INCLUDE ({reward});"
        return f"{self.name} has no index on its arms and their order, {would_scan}: {wanted} or {otherwise}"

    def _no_index_of_order(self, until: int) -> str:
        return (
            f"{self.name} has no index on its order alone, so that all of it would be sorted to find its first "
            f"{until:,} rows: CREATE INDEX ON {self._table.plain_sql} ({quoted(self._order)}); or allow the scan "
            "(allow_scan=True)"
        )

    def _query(self, text: str, values: list[Any]) -> list[Any]:
        """The rows of a prepared statement; names in braces are those of the table and of its columns."""
        unit, order, reward = (in_statement(quoted(name)) for name in (self._unit, self._order, self._reward))
        statement = text.format(table=self._table.sql, unit=unit, order=order, reward=reward)
        with self._table.cursor() as cursor:
            cursor.execute(statement, values, prepare=True)
            rows: list[Any] = cursor.fetchall()
        self.reading.count(0, _ROW_BYTES * len(rows))
        return rows

    def _last_order(self, until: int | None) -> Any:
        """The order of the last row that belongs to the log; None for an empty one."""
        if self._query("SELECT 1 FROM {table} WHERE {unit} IS NULL LIMIT 1", []):
            raise InvalidHistory(f"a unit of {self.name} is missing, expected a label in every row")
        if self._indexed:
            ((last, gap),) = self._query(
                _ARMS + "SELECT max(last), bool_or(gap) FROM (SELECT"
                " (SELECT max({order}) FROM {table} WHERE {unit} = _found.arm) AS last,"
                " EXISTS (SELECT 1 FROM {table} WHERE {unit} = _found.arm AND {order} IS NULL) AS gap"
                " FROM _found WHERE arm IS NOT NULL) AS arms",
                [],
            )
        else:
            ((last, gap),) = self._query("SELECT max({order}), bool_or({order} IS NULL) FROM {table}", [])
        if gap or last != last:  # nan is behind all numbers
            raise InvalidHistory(f"{self._order} of {self.name} must have a value in every row, it is missing in some")
        return last if until is None else self._cut_at(until, last)

    def _cut_at(self, until: int, last: Any) -> Any:
        """The order of the last of the first rows."""
        if until == 0:
            return None
        found = self._query("SELECT {order} FROM {table} ORDER BY {order} OFFSET %s LIMIT 2", [until - 1])
        if len(found) == 2 and found[0] == found[1]:
            raise InvalidHistory(
                f"until= must not separate rows with the same {self._order}: rows {until} and {until + 1} of "
                f"{self.name} both have {found[0][0]}"
            )
        return found[0][0] if found else last

    def _distinct(self) -> list[Label]:
        """The labels, each found behind the one before it, so that the index is entered a few times for each."""
        bound = " AND EXISTS (SELECT 1 FROM {table} WHERE {unit} = _found.arm AND {order} <= %s)"
        found = _ARMS + "SELECT arm FROM _found WHERE arm IS NOT NULL" + bound + " ORDER BY arm"
        scanned = "SELECT DISTINCT {unit} AS arm FROM {table} WHERE {order} <= %s ORDER BY arm"
        return [arm for (arm,) in self._query(found if self._indexed else scanned, [self._last])]

    def counted(self) -> Self:
        """The same table, with counters and pages of its own."""
        same = super().counted()
        same._pages = {}
        return same

    def __len__(self) -> int:
        return self._rows

    @cached_property
    def _rows(self) -> int:
        return 0 if self._last is None else int(self.counts().sum())

    def counts(self) -> Ints:
        """How many samples each label has; the server counts them."""
        return self._counts

    @cached_property
    def _counts(self) -> Ints:
        rows = self._query("SELECT {unit}, count(*) FROM {table} WHERE {order} <= %s GROUP BY 1", [self._last])
        found = dict(rows)
        return np.array([found.get(label, 0) for label in self.labels], np.int64)

    def read(self, code: int, after: int, n: int, with_rows: bool) -> Fetched:
        """The next page of a label. It begins with the last row of the page before, which must still be there."""
        label = self.labels[code]
        known, last = self._pages.get(code, (0, None))
        select = "SELECT {order}, {reward} FROM {table} WHERE {unit} = %s AND {order} <= %s"
        if after == 0:
            rows = self._query(select + " ORDER BY {order} LIMIT %s", [label, self._last, n])
        elif after == known:
            more = " AND {order} >= %s ORDER BY {order} LIMIT %s"
            rows = self._query(select + more, [label, self._last, last, n + 1])
        else:
            rows = self._query(select + " ORDER BY {order} OFFSET %s LIMIT %s", [label, self._last, after - 1, n + 1])
        if after and (not rows or (after == known and rows[0][0] != last)):
            raise ChangedHistory(f"{self.name} changed while it was read: a row of {label!r} is gone")
        exhausted = len(rows) < (n + 1 if after else n)
        self._check(label, rows)
        if rows:
            self._pages[code] = after + len(rows) - (1 if after else 0), rows[-1][0]
        rows = rows[1:] if after else rows
        self.reading.rows += len(rows)
        orders = np.array([as_row(order) for order, _ in rows], np.int64) if with_rows else np.empty(0, np.int64)
        return Fetched(orders, np.array([reward for _, reward in rows], np.float64), exhausted)

    def count_before(self, code: int, row: int) -> int:
        """How many samples of a label lie in the first so many rows of the log."""
        if row not in self._orders:
            found = self._query("SELECT {order} FROM {table} ORDER BY {order} OFFSET %s LIMIT 1", [max(row - 1, 0)])
            self._orders[row] = found[0][0] if found else self._last
        last = [self.labels[code], self._orders[row]]
        ((count,),) = self._query("SELECT count(*) FROM {table} WHERE {unit} = %s AND {order} <= %s", last)
        return int(count) if row else 0

    def sums(self, code: int, ends: Ints) -> Sums:
        """The sums of the first so many rewards of a label, which the server adds up in order."""
        try:
            found = self._query(_SUMS, [self.labels[code], self._last, ends.tolist()])
        except InvalidFile:  # of rewards that the server takes for no numbers
            found = []
        if len(found) < len(ends) or found[0][4]:
            return super().sums(code, ends)  # which names what is wrong
        self.reading.sums += len(found)
        return Sums(np.array([total for _, total, *_ in found], np.float64), found[0][2], found[0][3])

    def _check(self, label: Label, rows: list[Any]) -> None:
        for place, (order, reward) in enumerate(rows):
            if not isinstance(reward, (int, float, Decimal)) or not math.isfinite(reward):
                raise InvalidHistory(
                    f"reward of {label!r} at {self._order} = {order} is {reward!r}, expected a finite number"
                )
            if place and rows[place - 1][0] == order:
                raise InvalidHistory(
                    f"{self._order} must be different in every row of an arm, {order} is there twice for {label!r}"
                )

    def stream(self, since: int = 0) -> Iterator[History]:
        """The log in order."""
        if self._last is None:
            return
        unit, order, reward = (in_statement(quoted(name)) for name in (self._unit, self._order, self._reward))
        bound = f"WHERE {order} <= %(last)s ORDER BY {order}, {unit}, {reward} OFFSET %(since)s"
        statement = f"SELECT {unit}, {reward} FROM {self._table.sql} {bound}"
        for rows in self._table.stream(statement, {"last": self._last, "since": since}):
            self.reading.count(len(rows), _ROW_BYTES * len(rows))
            units, rewards = zip(*rows, strict=True)
            with errors_in(rows_before=since, columns={"unit": self._unit, "reward": self._reward}):
                part = History(list(units), as_numbers(rewards, "reward"))
            yield part
            since += len(part)


def as_row(order: Any) -> int:
    """A value of the order as a whole number in the same order, to merge arms by."""
    if isinstance(order, int):
        return order
    if isinstance(order, datetime.datetime):
        aware = order if order.tzinfo else order.replace(tzinfo=datetime.UTC)
        return (aware - _EPOCH) // datetime.timedelta(microseconds=1)
    if isinstance(order, datetime.date):
        return order.toordinal()
    try:
        bits: int = struct.unpack("<q", struct.pack("<d", float(order) + 0.0))[0]
    except (TypeError, ValueError):
        raise InvalidHistory(f"order must be a number or a time to merge arms by, got {order!r}") from None
    return bits if bits >= 0 else -(bits + (1 << 63))
