"""The class `History`, which is a log in memory, and `Allocation`, the unit of a log with levels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from artreplay.compiling import Floats, Ints, Words
from artreplay.errors import ChangedHistory, InvalidHistory, InvalidParameter, errors_in
from artreplay.history import column_values
from artreplay.history.column_values import as_numbers, as_units, checked_points, refuse_where
from artreplay.history.context_columns import as_contexts, context_hashes
from artreplay.history.fingerprint import Fingerprint, hashes_of, label_hashes, mixed
from artreplay.history.labels import Label, encode_labels, present_labels
from artreplay.history.log_protocol import NextRows, Rows
from artreplay.parameters import checked_seed
from artreplay.streams import fold

if TYPE_CHECKING:
    import pyarrow as pa

    from artreplay.history.totals import Totals


class Allocation(NamedTuple):
    """A point with a level of effort. It is the unit of a log that has levels.

    Parameters
    ----------
    point
        The coordinates.
    level
        The amount of effort.

    >>> from artreplay import History
    >>> History([(0.25, 0.5), (0.75, 0.5)], [1, 0], levels=[2, 1]).unit(0)
    Allocation(point=(0.25, 0.5), level=2.0)
    """

    point: tuple[float, ...]
    level: float


class HasFingerprint:
    """A log that can be recognised by the hashes of its rows."""

    def __len__(self) -> int:
        raise NotImplementedError

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return len(self)

    @property
    def has_allowances(self) -> bool:
        """Whether each row has an allowance, which says how far its mean may lie from today's."""
        return False

    @property
    def context_names(self) -> tuple[str, ...]:
        """The names of the context columns."""
        return ()

    def _parts(self) -> Iterable[Any]:
        """The log in parts that have hashes of their rows. A log in memory is a single part."""
        return [self]

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """The fingerprint by which a policy remembers its log. It does not depend on where the log lies."""
        return Fingerprint.of(self._parts(), self.n_rows)

    def known_fingerprint(self, rows: int) -> Fingerprint | None:
        """The fingerprint of the first rows, or None if they would have to be read for it."""
        return None

    def check_continues(self, known: Fingerprint, old: object = None) -> None:
        """Refuse this log unless it is the known log, or the known log with rows appended.

        Parameters
        ----------
        known
            The fingerprint of the known log.
        old
            The known log itself, if it is in memory. The error can then name the row that changed. Otherwise it may
            name only a range of rows.

        >>> History(["red", "blue"], [1, 0]).check_continues(History(["red"], [1]).fingerprint)
        """
        check_not_shorter(self.n_rows, known)
        mine = self.known_fingerprint(known.rows) if known.block & (known.block - 1) == 0 else None
        changed = known.first_difference(mine or Fingerprint.of(self._parts(), known.rows, known.block))
        if changed is not None and isinstance(old, type(self)) and hasattr(old, "row_hashes"):
            (now,), (before,) = self._parts(), old._parts()
            row = int(np.flatnonzero(before.row_hashes != now.row_hashes[: known.rows])[0])
            changed = row, row
        if changed is not None:
            raise changed_between(*changed)


class History(HasFingerprint):
    """Hold a log in memory. Its rows have a fixed order, and each has a unit (an arm's label or a point) and a reward.

    Rows are numbered from 0.

    Parameters
    ----------
    units
        The unit of each row: labels, which may be anything hashable except floats, or an array of points of shape
        (rows, coordinates), or a list of `Allocation`.
    rewards
        The reward of each row.
    levels
        The level of effort of each point. Each unit is then an `Allocation`.
    allowance
        For each row, how far its mean reward may lie from today's, in units of the reward. `ar.drift.age` makes such a
        column from times.
    contexts
        What was known when each row's arm was chosen: a mapping, a frame or an Arrow table, with columns of numbers,
        texts or booleans. Values may be missing.
    until
        Use only this many rows, from the beginning. Rows that are appended later do not belong to the log then.

    >>> history = History(["red", "blue", "red"], [1, 0, 0.5])
    >>> len(history), history.labels
    (3, ['red', 'blue'])
    >>> History([0, 1], [0.5, float("nan")])
    Traceback (most recent call last):
    artreplay.errors.InvalidHistory: reward in row 1 is nan, expected a finite number
    >>> History([(0.25, 0.5), (0.75, 0.5)], [1, 0], levels=[2, 1])
    <History of 2 rows at points of dimension 2, at 2 levels>
    >>> History(["red", "blue"], [1, 0], allowance=[0.1, 0]).allowances
    array([0.1, 0. ])
    >>> History(["red", "blue"], [1, 0], contexts={"age": [31, None], "country": ["NL", "DE"]}).contexts.column_names
    ['age', 'country']
    """

    def __init__(
        self,
        units: Any,
        rewards: Any,
        *,
        levels: Any = None,
        allowance: Any = None,
        contexts: Any = None,
        until: int | None = None,
    ) -> None:
        rewards = as_numbers(rewards, "reward")
        units, levels = _without_allocations(units, levels)
        units = as_units(units)
        are_points = isinstance(units, np.ndarray) and units.ndim == 2
        if len(units) != len(rewards):
            raise InvalidHistory(f"units and rewards must be equally long, got {len(units)} and {len(rewards)}")
        if levels is not None:
            if not are_points:
                raise InvalidHistory("levels need points of shape (H, d), got units of one dimension")
            levels = as_numbers(levels, "level")
            if len(levels) != len(rewards):
                raise InvalidHistory(f"levels and rewards must be equally long, got {len(levels)} and {len(rewards)}")
        allowances = None if allowance is None else as_numbers(allowance, "allowance")
        if allowances is not None and len(allowances) != len(rewards):
            raise InvalidHistory(
                f"allowance must have one number for each of {len(rewards)} rows, got {len(allowances)}"
            )
        self.contexts: pa.Table | None = None if contexts is None else as_contexts(contexts, len(rewards))
        if until is not None:
            if isinstance(until, bool) or not isinstance(until, (int, np.integer)) or until < 0:
                raise InvalidParameter(f"until must be a number of rows, at least 0, got {until!r}")
            units, rewards = units[:until], rewards[:until]
            levels = None if levels is None else levels[:until]
            allowances = None if allowances is None else allowances[:until]
            self.contexts = None if self.contexts is None else self.contexts[:until]
        refuse_where(~np.isfinite(rewards), rewards, "reward", "a finite number")
        if levels is not None:
            bad = ~(np.isfinite(levels) & (levels >= 0))
            refuse_where(bad, levels, "level", "a finite number of at least 0")
        if allowances is not None:
            bad = ~(np.isfinite(allowances) & (allowances >= 0))
            refuse_where(bad, allowances, "allowance", "a finite number of at least 0")
        self.rewards: Floats = rewards
        self.points: Floats | None = None
        self.levels: Floats | None = levels
        self.allowances: Floats | None = allowances
        self.labels: list[Label] = []
        self.codes: Ints = np.empty(0, np.int64)
        if are_points:
            self.points = checked_points(units)
        else:
            self.labels, self.codes = encode_labels(units)

    @classmethod
    def from_columns(
        cls,
        rewards: Floats,
        labels: list[Label] | None = None,
        codes: Ints | None = None,
        points: Floats | None = None,
        levels: Floats | None = None,
        allowances: Floats | None = None,
        contexts: pa.Table | None = None,
    ) -> History:
        """Make a history from columns that are checked already. They are labels with their numbers, or points.

        Parameters
        ----------
        rewards
            The reward of each row.
        labels
            The labels, each once.
        codes
            For each row, the place of its label in `labels`.
        points
            The point of each row, in place of `labels` and `codes`.
        levels, allowances, contexts
            Further columns, if the log has them.

        >>> import numpy as np
        >>> History.from_columns(np.array([1.0, 0.0]), ["red", "blue"], np.array([1, 0])).unit(0)
        'blue'
        """
        history = cls([], [])
        history.rewards, history.points, history.levels = rewards, points, levels
        history.allowances, history.contexts = allowances, contexts
        if labels is not None and codes is not None:
            history.labels, history.codes = labels, codes
        return history

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        unit: str | Sequence[str],
        reward: str,
        *,
        level: str | None = None,
        allowance: str | None = None,
        contexts: Sequence[str] | None = None,
        until: int | None = None,
    ) -> History:
        """Make a history from the columns of a pandas, polars or pyarrow frame.

        Parameters
        ----------
        frame
            The frame.
        unit
            The column of labels, or a list of the columns with the coordinates of a point.
        reward
            The column of rewards.
        level
            The column that says how much effort went to each point.
        allowance
            The column that says how far the mean of each row may lie from today's.
        contexts
            The columns of what was known when each row's arm was chosen.
        until
            Use only this many rows, from the beginning.

        >>> import pyarrow as pa
        >>> log = pa.table({"arm": ["red", "blue", "red"], "click": [1, 0, 1]})
        >>> History.from_frame(log, unit="arm", reward="click")
        <History of 3 rows on 2 arms>
        """
        units = (
            column_values.column(frame, unit)
            if isinstance(unit, str)
            else np.column_stack([column_values.numbers(frame, name) for name in _coordinates(unit)])
        )
        levels = None if level is None else column_values.numbers(frame, level, "level")
        allowances = None if allowance is None else column_values.numbers(frame, allowance, "allowance")
        columns = {"unit": unit if isinstance(unit, str) else None, "reward": reward, "level": level}
        with errors_in(columns=columns | {"allowance": allowance}):
            rewards = column_values.numbers(frame, reward, "reward")
            known = {name: column_values.column(frame, name) for name in contexts or ()} or None
            return cls(units, rewards, levels=levels, allowance=allowances, contexts=known, until=until)

    def __len__(self) -> int:
        return len(self.rewards)

    def __repr__(self) -> str:
        if self.points is not None:
            effort = "" if self.levels is None else f", at {len(np.unique(self.levels))} levels"
            return f"<History of {len(self)} rows at points of dimension {self.points.shape[1]}{effort}>"
        return f"<History of {len(self)} rows on {len(self.labels)} arms>"

    @property
    def has_allowances(self) -> bool:
        """Whether each row has an allowance, which says how far its mean may lie from today's."""
        return self.allowances is not None

    @property
    def context_names(self) -> tuple[str, ...]:
        """The names of the context columns."""
        return () if self.contexts is None else tuple(self.contexts.column_names)

    def unit(self, row: int) -> Any:
        """Return the unit of a row: a label, a point as a tuple of floats, or an `Allocation` if there are levels.

        Parameters
        ----------
        row
            The number of the row.

        >>> History(["red", "blue"], [1, 0]).unit(1)
        'blue'
        """
        if self.points is not None:
            point = tuple(self.points[row].tolist())
            return point if self.levels is None else Allocation(point, float(self.levels[row]))
        return self.labels[self.codes[row]]

    def shuffled(self, seed: int) -> History:
        """Return the same rows in another fixed order.

        The order of a log matters when rewards drift along it. In a shuffled log they do not.

        Parameters
        ----------
        seed
            The seed of the order.

        >>> history = History([0, 1, 2, 3], [0, 0, 1, 1])
        >>> [history.shuffled(7).unit(row) for row in range(4)] == [history.shuffled(7).unit(row) for row in range(4)]
        True
        """
        return self.rows(np.argsort(shuffle_keys(0, len(self), seed), kind="stable"))

    def rows(self, order: Ints) -> History:
        """Return the history of some rows, in some order.

        Parameters
        ----------
        order
            The numbers of the rows.

        >>> import numpy as np
        >>> History(["red", "blue"], [1, 0]).rows(np.array([1])).unit(0)
        'blue'
        """
        points = None if self.points is None else self.points[order]
        levels = None if self.levels is None else self.levels[order]
        codes = self.codes[order] if self.points is None else self.codes
        allowances = None if self.allowances is None else self.allowances[order]
        contexts = None if self.contexts is None else self.contexts.take(order)
        return History.from_columns(self.rewards[order], self.labels, codes, points, levels, allowances, contexts)

    # -- what every log of arms can do ----------------------------------------------------------------------------

    @property
    def counts(self) -> Ints:
        """How many rows each label has."""
        return np.bincount(self.codes, minlength=len(self.labels)).astype(np.int64)

    @cached_property
    def _by_label(self) -> tuple[Ints, Ints]:
        """The rows, label by label, and where the rows of each label begin."""
        counts = self.counts
        return np.argsort(self.codes, kind="stable"), np.cumsum(counts) - counts

    def read(self, codes: Ints, after: Ints, n: Ints) -> NextRows:
        """Read up to `n[i]` rows of label `codes[i]` after its first `after[i]` ones.

        Parameters
        ----------
        codes
            The numbers of the labels, which are their places in `labels`.
        after
            For each of them, how many rows to skip.
        n
            For each of them, how many rows to read at most.

        >>> import numpy as np
        >>> log = History(["red", "blue", "red", "red"], [1, 0, 0, 1])
        >>> log.read(np.array([0]), after=np.array([1]), n=np.array([5])).rewards
        array([0., 1.])
        """
        order, starts = self._by_label
        sizes = np.clip(self.counts[codes] - after, 0, n)
        rows = order[np.repeat(starts[codes] + after - np.cumsum(sizes) + sizes, sizes) + np.arange(int(sizes.sum()))]
        return NextRows(sizes, self.rewards[rows], None if self.allowances is None else self.allowances[rows])

    def scan(self, since: int = 0) -> Iterator[Rows]:
        """Yield the rows in order, from row `since` on.

        Parameters
        ----------
        since
            The number of the first row.

        >>> [rows.rewards.tolist() for rows in History(["red", "blue"], [1, 0]).scan()]
        [[1.0, 0.0]]
        """
        allowances = None if self.allowances is None else self.allowances[since:]
        contexts = None if self.contexts is None else self.contexts[since:]
        yield Rows(self.codes[since:], self.rewards[since:], allowances, contexts)

    def totals(self) -> Totals:
        """Add up what each label earned (see `Totals.of`).

        >>> History(["red", "blue", "red"], [1, 0, 1]).totals().sums
        array([2., 0.])
        """
        from artreplay.history.totals import Totals

        return Totals.of(self)

    def first(self, rows: int) -> History:
        """Return the log as it was when it had this many rows, with the labels that occur in them.

        Parameters
        ----------
        rows
            The number of rows.

        >>> History(["red", "blue"], [1, 0]).first(1)
        <History of 1 rows on 1 arms>
        """
        if not 0 <= rows <= len(self):
            raise InvalidParameter(f"rows must be from 0 to {len(self)}, as many as the log has, got {rows}")
        first = self.rows(np.arange(rows))
        if first.points is None:
            present, first.codes = present_labels(first.codes)
            first.labels = [self.labels[code] for code in present.tolist()]
        return first

    def stream(self, since: int = 0) -> Iterator[History]:
        """Yield the log from a row on, in a single piece, because it is in memory.

        Parameters
        ----------
        since
            The number of the first row.

        >>> [part.unit(0) for part in History(["red", "blue"], [1, 0]).stream(since=1)]
        ['blue']
        """
        yield self.rows(np.arange(since, len(self))) if since else self

    @cached_property
    def row_hashes(self) -> Words:
        """A hash of each row."""
        if self.contexts is None:
            return self._hashes_without_contexts()
        with np.errstate(over="ignore"):
            return mixed(self._hashes_without_contexts() * np.uint64(3) + context_hashes(self.contexts))

    def _hashes_without_contexts(self) -> Words:
        allowances = [] if self.allowances is None else [self.allowances]
        if self.points is not None:
            # A level must not hash as a coordinate, so each dimension, with and without levels, has a start of its own.
            kind = 2 * self.points.shape[1] + (self.levels is not None)
            levels = [] if self.levels is None else [self.levels]
            return hashes_of(np.full(len(self), kind, np.uint64), [*self.points.T, *levels, self.rewards, *allowances])
        if not self.labels:
            return np.empty(0, np.uint64)
        return hashes_of(label_hashes(self.labels)[self.codes], [self.rewards, *allowances])


def shuffle_keys(first: int, rows: int, seed: int) -> Words:
    """Make keys for the rows [first, first + rows) of a log. Sorting by them shuffles the log."""
    with np.errstate(over="ignore"):
        key = np.uint64(fold(checked_seed(seed)))
        return mixed(mixed(np.arange(first, first + rows, dtype=np.uint64) + key) ^ key)


def check_not_shorter(rows: int, known: Fingerprint) -> None:
    """Refuse a log that has fewer rows than it had."""
    if rows < known.rows:
        raise ChangedHistory(
            f"the log has {rows} rows and had {known.rows} before. A log may only gain rows at its end"
        )


def changed_between(first: int, last: int, log: str = "this policy knows") -> ChangedHistory:
    """Make the error for a log with a changed row. `log` says which log it should be."""
    must = f"The log must be the one {log}, and may only have gained rows at its end"
    if first == last:
        return ChangedHistory(f"has changed. {must}", row=first)
    return ChangedHistory(f"a row between {first} and {last} has changed. {must}")


def _without_allocations(units: Any, levels: Any) -> tuple[Any, Any]:
    """Split a list of allocations into points and levels. Anything else stays as it is."""
    if not isinstance(units, (list, tuple)) or Allocation not in set(map(type, units)):
        return units, levels
    others = [row for row, unit in enumerate(units) if not isinstance(unit, Allocation)]
    if others:
        row = others[0]
        problem = f"is {units[row]!r}, expected an allocation, like other units of the log"
        raise InvalidHistory(problem, what="unit", row=row)
    if levels is not None:
        raise InvalidHistory("levels must be left out where the units are allocations, which have their own")
    dims = [np.ndim(unit.point) and len(unit.point) for unit in units]
    if dims.count(dims[0]) < len(dims) or dims[0] == 0:
        row = next((row for row, dim in enumerate(dims) if dim != dims[0] or dim == 0))
        problem = f"is {units[row]!r}, expected a point with as many coordinates as in the other rows"
        raise InvalidHistory(problem, what="unit", row=row)
    return [unit.point for unit in units], [unit.level for unit in units]


def _coordinates(names: Any) -> list[str]:
    if not isinstance(names, (list, tuple)) or len(names) == 0:
        raise InvalidParameter(f"unit must name at least one column, as a text or as a list of texts, got {names!r}")
    return list(names)
