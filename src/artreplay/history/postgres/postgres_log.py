"""Reads a log of arms in PostgreSQL. One statement finds the next rows of many arms by an index on (arm, order)."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import closing
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from artreplay.compiling import Floats, Ints
from artreplay.errors import ChangedHistory, InvalidHistory, checked_count, errors_in
from artreplay.history.column_values import as_numbers, refuse_where
from artreplay.history.context_columns import as_contexts
from artreplay.history.history import History
from artreplay.history.labels import Label
from artreplay.history.log_protocol import NextRows, Rows
from artreplay.history.postgres.table import Table, in_statement
from artreplay.history.sources.databases import table_of_rows
from artreplay.history.sources.log_columns import Columns
from artreplay.history.sources.source import quoted
from artreplay.history.stored_log import StoredLog
from artreplay.history.totals import Totals

if TYPE_CHECKING:
    import pyarrow as pa

    from artreplay.history.context_columns import Kinds

# How numbers of each type become floats. A real becomes the shortest decimal that stands for it, as in the output of
# drivers.
_AS_FLOAT = {
    "boolean": "::int::float8",
    "real": "::text::float8",
    **dict.fromkeys(["smallint", "integer", "bigint", "numeric", "double precision"], "::float8"),
}
# The arms, and the order of their first and last rows. The index finds the next arm after each arm. PostgreSQL sorts a
# missing order after all others, so it is found as the last one of its arm.
_ARMS_BY_INDEX = (
    "WITH RECURSIVE _found AS ((SELECT {unit} AS arm FROM {table} ORDER BY {unit} LIMIT 1) UNION ALL"
    " SELECT (SELECT {unit} FROM {table} WHERE {unit} > _found.arm ORDER BY {unit} LIMIT 1) FROM _found"
    " WHERE _found.arm IS NOT NULL),"
    " _arms AS (SELECT arm, (SELECT min({order}) FROM {table} WHERE {unit} = _found.arm) AS first,"
    " (SELECT {order} FROM {table} WHERE {unit} = _found.arm ORDER BY {order} DESC LIMIT 1) AS last"
    " FROM _found WHERE arm IS NOT NULL) "
)
_ARMS_BY_SCAN = (
    "WITH _arms AS (SELECT {unit} AS arm, min({order}) AS first,"
    " CASE WHEN count({order}) = count(*) THEN max({order}) END AS last FROM {table} GROUP BY 1) "
)
# The page of each arm begins at a key. If the key is not known, the server finds it by counting rows.
_PAGES = (
    "SELECT _pages.* FROM unnest(%(arms)s::{unit_type}[], %(keys)s::{order_type}[], %(starts)s::bigint[],"
    " %(sizes)s::bigint[]) WITH ORDINALITY AS _asked(arm, key, start, size, place), LATERAL ("
    "SELECT count(*), min(_key), max(_key), min(_key) FILTER (WHERE _key = _before), {packed} FROM ("
    "SELECT *, lag(_key) OVER (ORDER BY _key) AS _before FROM ("
    "SELECT {order} AS _key, {values} FROM {table} WHERE {unit} = _asked.arm AND {order} <= {last} AND {order} >="
    " coalesce(_asked.key, (SELECT {order} FROM {table} WHERE {unit} = _asked.arm AND {order} <= {last}"
    " ORDER BY {order} OFFSET _asked.start LIMIT 1))"
    " ORDER BY _key LIMIT _asked.size) AS _page) AS _page) AS _pages ORDER BY _asked.place"
)
_PACKED_COLUMN = "string_agg(float8send(coalesce({0}, 'NaN')), ''::bytea ORDER BY _key)"
_ROW = (
    "SELECT {order}, {number} FROM {table} WHERE {unit} = %(arm)s::{unit_type} AND {order} <= {last}"
    " ORDER BY {order} OFFSET %(row)s LIMIT 1"
)
_SCAN = (
    "SELECT {unit} AS _unit, {values}{contexts} FROM {table} WHERE {order} <= {last} ORDER BY {sorting}"
    " OFFSET %(since)s"
)
_TOTALS = (
    "SELECT {unit}, count(*), count({reward}), sum({reward_as_float} ORDER BY {order}, {reward})"
    " FROM {table} WHERE {order} <= {last} GROUP BY 1"
)
_EXPECTED = {"reward": "a finite number", "allowance": "a finite number of at least 0"}


class PostgresLog(StoredLog):
    """A table as it is when it is opened. Rows that come after its last row later do not belong to the log."""

    counts_are_known = False  # the server counts them when they are asked for

    def __init__(self, table: Table, columns: Columns, allow_scan: bool = False) -> None:
        columns.check(table.column_names())
        self._table, self.name = table, table.name
        self._unit, self._order = columns.units[0], str(columns.sorted_by)
        numbers = {"reward": columns.reward, "allowance": columns.allowance}
        self._numbers = {role: name for role, name in numbers.items() if name is not None}
        self.has_allowances, self.context_names = columns.allowance is not None, columns.contexts
        self._indexed = table.has_index([self._unit, self._order])
        if not (self._indexed or allow_scan):
            raise self._no_index()
        self._in_statements = self._named_in_statements()
        self._keys: dict[int, tuple[int, Any]] = {}  # of each label: how many rows were read, and the order of the last
        self._last: Any = None  # the order of the last row
        self.labels = self._arms_as_it_stands()

    def __copy__(self) -> Self:
        """Make a second reader, which remembers itself how far it has read."""
        copied = object.__new__(type(self))
        copied.__dict__ |= self.__dict__ | {"_keys": {}}
        return copied

    def _no_index(self) -> InvalidHistory:
        would_scan = "so that every request for rows of an arm would scan the whole table"
        if self._table.is_query:
            what, cure = "a query has no index", "Name a table that has one,"
        else:
            what = f"{self.name} has no index on arm and order"
            unit, order, *numbers = map(quoted, (self._unit, self._order, *self._numbers.values()))
            cure = f"CREATE INDEX ON {self._table.plain_sql} ({unit}, {order}) INCLUDE ({', '.join(numbers)});"
        return InvalidHistory(f"{what}, {would_scan}").advising(
            f"{cure} or allow the scan with allow_scan=True, or index the log",
            f"{cure} or allow the scan with --allow-scan, or `artreplay index` the log",
        )

    def _named_in_statements(self) -> dict[str, str]:
        """The SQL that replaces the names in braces in statements."""
        numbers = self._numbers.values()
        unit_type, order_type, *types = self._table.types([self._unit, self._order, *numbers])
        floats = {}
        for (role, name), type_ in zip(self._numbers.items(), types, strict=True):
            if type_ not in _AS_FLOAT:
                raise InvalidHistory(f"must be a number, got a column of type {type_}", what=role, column=name)
            floats[role] = f"({quoted(name)}){_AS_FLOAT[type_]}"
        parts = {
            "unit": quoted(self._unit),
            "order": quoted(self._order),
            "unit_type": unit_type,
            "order_type": order_type,
            "values": ", ".join(f"{number} AS _{role}" for role, number in floats.items()),
            "packed": ", ".join(_PACKED_COLUMN.format(f"_{role}") for role in floats),
            "sorting": ", ".join(map(quoted, dict.fromkeys([self._order, self._unit, *numbers, *self.context_names]))),
            "reward_as_float": floats["reward"],
            "contexts": "".join(f", {quoted(name)}" for name in self.context_names),
            **{role: quoted(name) for role, name in self._numbers.items()},
        }
        return {name: in_statement(part) for name, part in parts.items()} | {
            "table": self._table.sql,
            "last": f"%(last)s::{in_statement(order_type)}",
        }

    def _query(self, text: str, **values: Any) -> list[Any]:
        """Run a prepared statement, and return its rows."""
        with self._table.cursor() as cursor:
            cursor.execute(text.format(**self._in_statements), {"last": self._last, **values}, prepare=True)
            rows: list[Any] = cursor.fetchall()
        return rows

    # -- opening --------------------------------------------------------------------------------------------------

    def _arms(self, query: str) -> list[Any]:
        return self._query((_ARMS_BY_INDEX if self._indexed else _ARMS_BY_SCAN) + query + " ORDER BY arm")

    def _arms_as_it_stands(self) -> list[Label]:
        """Find the labels that occur, and refuse rows without a unit or an order."""
        if self._query("SELECT 1 FROM {table} WHERE {unit} IS NULL LIMIT 1"):
            raise InvalidHistory(f"a unit of {self.name} is missing, expected a label in every row")
        arms = self._arms("SELECT arm, max(last) OVER (), bool_or(last IS NULL) OVER () FROM _arms")
        for _, last, is_missing in arms[:1]:
            if is_missing or last != last:  # PostgreSQL sorts nan after all numbers
                problem = "must have a value in every row, and it is missing in some"
                raise InvalidHistory(f"{self._order} of {self.name} {problem}")
            self._last = last
        labels: list[Label] = [arm for arm, *_ in arms]
        try:
            are_points = History(labels, [0.0] * len(labels)).points is not None
        except InvalidHistory as error:
            error.row, error.column = None, self._unit  # its row is a place among the labels, not a row of the log
            raise
        if are_points:
            raise InvalidHistory(f"units of {self.name} must be labels, got {labels[0]!r}")
        return labels

    def first(self, rows: int) -> Self:
        """Return the table as it was when it had this many rows."""
        rows = checked_count("rows", rows, least=0)
        before = copy.copy(self)
        for name in ("counts", "fingerprint", "allowance_bounds"):
            before.__dict__.pop(name, None)  # the cached values are those of all rows
        if rows == 0:
            before._last, before.labels = None, []
            return before
        found = self._query(
            "SELECT {order} FROM {table} WHERE {order} <= {last} ORDER BY {order} OFFSET %(row)s LIMIT 2", row=rows - 1
        )
        if len(found) == 2 and found[0] == found[1]:
            raise InvalidHistory(
                f"a log must not end between rows of the same {self._order}, rows {rows} and {rows + 1} of {self.name} "
                f"both have {found[0][0]}"
            )
        if len(found) == 2:
            before._last = found[0][0]
            before.labels = [arm for (arm,) in before._arms("SELECT arm FROM _arms WHERE first <= {last}")]
        return before

    # -- reading --------------------------------------------------------------------------------------------------

    @cached_property
    def counts(self) -> Ints:
        """How many rows each label has. The server counts them."""
        by_arm = dict(self._query("SELECT {unit}, count(*) FROM {table} WHERE {order} <= {last} GROUP BY 1"))
        return np.array([by_arm.get(label, 0) for label in self.labels], np.int64)

    @cached_property
    def allowance_bounds(self) -> tuple[float, float] | None:  # type: ignore[override]
        """The lowest and the highest allowance. The server finds them."""
        if not self.has_allowances:
            return None
        ((low, high),) = self._query("SELECT min({allowance}), max({allowance}) FROM {table} WHERE {order} <= {last}")
        return None if low is None else (float(low), float(high))

    def __len__(self) -> int:
        return int(self.counts.sum())

    def read(self, codes: Ints, after: Ints, n: Ints) -> NextRows:
        """Read up to `n[i]` rows of label `codes[i]` after its first `after[i]` ones.

        The last row before them is read again, to check that it is still there.
        """
        again = np.minimum(after, 1)
        sizes = n + again
        starts = [self._keys.get(code, (0, None)) for code in codes.tolist()]
        keys = [key if rows == row else None for (rows, key), row in zip(starts, after.tolist(), strict=True)]
        arms = [self.labels[code] for code in codes.tolist()]
        pages = self._query(_PAGES, arms=arms, keys=keys, starts=(after - again).tolist(), sizes=sizes.tolist())
        for arm, key, size, (_, first, _, twice, *_) in zip(arms, keys, sizes.tolist(), pages, strict=True):
            if size and (first is None or key not in (None, first)):
                raise self._row_is_gone(arm)
            if twice is not None:
                raise InvalidHistory(
                    f"{self._order} must be different in every row of an arm, got {twice} twice for {arm!r}"
                )
        found = np.array([page[0] for page in pages], np.int64) - again
        columns = []
        for place, role in enumerate(self._numbers, start=4):
            packed = (page[place] or b"" for page in pages)
            values = b"".join(some[8 * skip :] for some, skip in zip(packed, again.tolist(), strict=True))
            columns.append(np.frombuffer(values, ">f8").astype(np.float64))
            self._check(role, columns[-1], codes, after, found)
        for code, rows, (_, _, last, *_) in zip(codes.tolist(), (after + found).tolist(), pages, strict=True):
            self._keys[code] = rows, last
        return NextRows(found, *columns)

    def _check(self, role: str, values: Floats, codes: Ints, after: Ints, sizes: Ints) -> None:
        """Refuse the first value that cannot be used. The server is asked for its order."""
        for bad in np.flatnonzero(~_is_usable(role, values))[:1].tolist():
            ends = np.cumsum(sizes)
            place = int(np.searchsorted(ends, bad, side="right"))
            arm, row = self.labels[codes[place]], int(after[place] + sizes[place] - ends[place] + bad)
            for order, value in self._query(_ROW.replace("{number}", f"{{{role}}}"), arm=arm, row=row):
                where = f"{role} of {arm!r} at {self._order} = {order}"
                raise InvalidHistory(f"{where} is {value}, expected {_EXPECTED[role]}")
            raise self._row_is_gone(arm)

    def _row_is_gone(self, arm: Label) -> ChangedHistory:
        return ChangedHistory(f"{self.name} changed while it was read, and a row of {arm!r} is gone")

    def scan(self, since: int = 0) -> Iterator[Rows]:
        """Yield the rows in the order of the log. Rows of equal order come in the order of their arms."""
        if self._last is None:
            return
        numbers = {label: code for code, label in enumerate(self.labels)}
        names = {"unit": self._unit, **self._numbers}
        statement, values = _SCAN.format(**self._in_statements), {"last": self._last, "since": since}
        kinds: Kinds = {}
        with closing(self._table.stream(statement, values)) as parts:
            for rows in parts:
                units, rewards, *others = list(zip(*rows, strict=True))[: 1 + len(self._numbers)]
                with errors_in(rows_before=since, columns=names):
                    part = History(list(units), rewards)
                    table = self._contexts_of(rows, kinds)
                    allowances = [as_numbers(column, "allowance") for column in others]
                    for some in allowances:
                        refuse_where(~_is_usable("allowance", some), some, "allowance", _EXPECTED["allowance"])
                for label in part.labels:
                    if label not in numbers:
                        raise ChangedHistory(f"{self.name} changed while it was read, and has the new arm {label!r}")
                codes = np.array([numbers[label] for label in part.labels], np.int64)[part.codes]
                yield Rows(codes, part.rewards, allowances[0] if allowances else None, table)
                since += len(part)

    def _contexts_of(self, rows: list[Any], kinds: Kinds) -> pa.Table | None:
        if not self.context_names:
            return None
        values = [row[1 + len(self._numbers) :] for row in rows]
        return as_contexts(table_of_rows(values, self.context_names), len(rows), kinds)

    def totals(self) -> Totals:
        """Add up what each label earned. The server adds rewards in the order of the rows."""
        by_arm = {arm: numbers for arm, *numbers in self._query(_TOTALS)}
        table = np.array([by_arm.get(label, (0, 0, 0)) for label in self.labels], np.float64).reshape(-1, 3)
        counts, rewards, sums = table.T
        if (rewards < counts).any() or not np.isfinite(sums).all():
            return super().totals()  # its error names the wrong row
        return Totals(self.labels, counts, sums + 0.0)


def _is_usable(role: str, values: Floats) -> Any:
    return np.isfinite(values) & ((role == "reward") | (values >= 0))
