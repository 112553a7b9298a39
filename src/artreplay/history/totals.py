"""`Totals`: the log of those who kept no rows, one count and one sum of rewards for each arm."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from artreplay.compiling import Floats, Ints, Words
from artreplay.errors import InvalidHistory, exact
from artreplay.history import column_values
from artreplay.history.column_values import as_numbers, as_units, refuse_where
from artreplay.history.fingerprint import hashes_of, label_hashes
from artreplay.history.history import HasFingerprint, History
from artreplay.history.labels import Label, encode_labels


class Totals(HasFingerprint):
    """What each arm earned in all: how often it was played, and the sum of its rewards.

    This is the table of impressions and clicks that most people have. Each row is one block of samples, which is
    loaded at once; an arm may have several rows, one for each day, say, and rows may be appended later. `len()` is the
    number of samples.

    >>> import artreplay as ar
    >>> totals = ar.Totals(["red", "blue"], counts=[1000, 500], sums=[31, 22])
    >>> len(totals)
    1500
    >>> policy = ar.ArtificialReplay(ar.MonUCB(arms=["red", "blue"], horizon=10_000), totals)
    >>> policy.ask(), policy.used
    ('blue', 1500)
    """

    def __init__(self, arms: Any, counts: Any, sums: Any, *, until: int | None = None) -> None:
        counts, sums, units = as_numbers(counts, "count"), as_numbers(sums, "sum"), as_units(arms)
        if isinstance(units, np.ndarray) and units.ndim == 2:
            raise InvalidHistory("totals must be those of arms, got points")
        if not len(units) == len(counts) == len(sums):
            raise InvalidHistory(
                f"arms, counts and sums must be equally long, got {len(units)}, {len(counts)} and {len(sums)}"
            )
        units, counts, sums = units[:until], counts[:until], sums[:until]
        is_count = (counts >= 0) & (counts == np.floor(counts)) & (counts < 1 << 53)
        refuse_where(~is_count, counts, "count", "a whole number of at least 0", exact)
        refuse_where(~np.isfinite(sums), sums, "sum", "a finite number", exact)
        refuse_where((counts == 0) & (sums != 0), sums, "sum", "0, because the count is 0", exact)
        self.labels: list[Label]
        self.codes: Ints
        self.labels, self.codes = encode_labels(units)
        self.counts: Ints = counts.astype(np.int64)
        self.sums: Floats = sums

    @classmethod
    def from_frame(cls, frame: Any, unit: str, count: str, sum: str, *, until: int | None = None) -> Totals:
        """Totals from the columns of a pandas, polars or pyarrow frame.

        >>> import pyarrow as pa
        >>> table = pa.table({"item": ["red", "blue"], "shown": [1000, 500], "clicked": [31, 22]})
        >>> Totals.from_frame(table, unit="item", count="shown", sum="clicked")
        <Totals of 1500 samples on 2 arms>
        """
        columns = (
            column_values.column(frame, unit),
            column_values.numbers(frame, count),
            column_values.numbers(frame, sum),
        )
        return cls(*columns, until=until)

    @classmethod
    def of(cls, log: Any, **columns: Any) -> Totals:
        """What each arm of a log earned, one row for each arm.

        `log` is a log, or a source such as a file or an address, with the columns that `open_history` takes. Rewards
        are added in the order of the rows of each arm, so that the sums have the same bits wherever the log lies.

        >>> import artreplay as ar
        >>> ar.Totals.of(ar.History(["red", "blue", "red"], [1, 0, 0.5])).sums.tolist()
        [1.5, 0.0]
        """
        if isinstance(log, Totals):
            return cls._added(log.labels, log.codes, log.counts, log.sums)
        if isinstance(log, History) and log.points is None:
            return cls._added(log.labels, log.codes, np.ones(len(log)), log.rewards)
        if isinstance(log, History):
            raise InvalidHistory(f"totals are those of a log of arms, got {log!r}")
        if hasattr(log, "totals"):
            totals: Totals = log.totals()
            return totals
        from artreplay.history.open_log import totals_of

        return totals_of(log, **columns)

    @classmethod
    def _added(cls, labels: list[Label], codes: Ints, *columns: Any) -> Totals:
        """The counts and sums of rows, added in order for each label."""
        return cls(labels, *(np.bincount(codes, column, minlength=len(labels)) for column in columns))

    def __len__(self) -> int:
        return int(self.counts.sum())

    def __repr__(self) -> str:
        return f"<Totals of {len(self)} samples on {len(self.labels)} arms>"

    def unit(self, row: int) -> Any:
        """The arm of a row."""
        return self.labels[self.codes[row]]

    def rows(self, order: Ints) -> Totals:
        """The totals of these rows, in this order."""
        codes = self.codes[order].tolist()
        return Totals([self.labels[code] for code in codes], self.counts[order], self.sums[order])

    def first(self, rows: int) -> Totals:
        """The totals as they were when they had this many rows."""
        return self.rows(np.arange(rows))

    def means(self) -> tuple[Ints, Floats]:
        """How many samples each label has, and their mean, nan without any."""
        whole = Totals.of(self)
        with np.errstate(invalid="ignore", divide="ignore"):
            return whole.counts, whole.sums / whole.counts

    @property
    def n_rows(self) -> int:
        """How many rows the table has."""
        return len(self.counts)

    @cached_property
    def row_hashes(self) -> Words:
        """A hash of each row."""
        if not self.labels:
            return np.empty(0, np.uint64)
        return hashes_of(label_hashes(self.labels)[self.codes], [self.counts.astype(np.float64), self.sums])


def added_in_order(sums: Floats, codes: Ints, rewards: Floats) -> Floats:
    """The sums of all labels with rewards added one by one: the bits do not depend on where parts end."""
    places = np.concatenate([np.arange(len(sums)), codes])
    return np.asarray(np.bincount(places, np.concatenate([sums, rewards]), minlength=len(sums)), np.float64)
