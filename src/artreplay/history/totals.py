"""The class `Totals`, for people who did not keep rows. It has a count and a sum of rewards for each arm."""

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
    """Hold what each arm earned in all: how often it was played, and the sum of its rewards.

    Many people have such a table of impressions and clicks. An arm may have several rows, for example one for each day,
    and rows may be appended later. `len()` is how often arms were played in all.

    Parameters
    ----------
    arms
        The arm of each row.
    counts
        How often the arm was played.
    sums
        The sum of the rewards it earned.
    until
        Use only this many rows, from the beginning.

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
            raise InvalidHistory("totals must be of arms, got points")
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
        """Make totals from the columns of a pandas, polars or pyarrow frame.

        Parameters
        ----------
        frame
            The frame.
        unit
            The column of arms.
        count
            The column that says how often the arm was played.
        sum
            The column with the sum of its rewards.
        until
            Use only this many rows, from the beginning.

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
        """Add up what each arm of a log earned.

        The rewards of each arm are added in the order of its rows, so that the sums have the same bits wherever the log
        lies.

        Parameters
        ----------
        log
            A log, or a source such as a file or an address.
        columns
            For a source, the columns and options that `open_history` takes.

        >>> import artreplay as ar
        >>> ar.Totals.of(ar.History(["red", "blue", "red"], [1, 0, 0.5])).sums.tolist()
        [1.5, 0.0]
        """
        if isinstance(log, Totals):
            return cls._added(log.labels, log.codes, log.counts, log.sums)
        if isinstance(log, History) and log.points is None:
            return cls._added(log.labels, log.codes, np.ones(len(log)), log.rewards)
        if isinstance(log, History):
            raise InvalidHistory(f"totals must be of a log of arms, got {log!r}")
        if hasattr(log, "totals"):
            totals: Totals = log.totals()
            return totals
        from artreplay.history.open_log import totals_of

        return totals_of(log, **columns)

    @classmethod
    def _added(cls, labels: list[Label], codes: Ints, *columns: Any) -> Totals:
        """Add the counts and sums of rows in order for each label."""
        return cls(labels, *(np.bincount(codes, column, minlength=len(labels)) for column in columns))

    def __len__(self) -> int:
        return int(self.counts.sum())

    def __repr__(self) -> str:
        return f"<Totals of {len(self)} samples on {len(self.labels)} arms>"

    def unit(self, row: int) -> Any:
        """Return the arm of a row.

        Parameters
        ----------
        row
            The number of the row.
        """
        return self.labels[self.codes[row]]

    def rows(self, order: Ints) -> Totals:
        """Return the totals of some rows, in some order.

        Parameters
        ----------
        order
            The numbers of the rows.
        """
        codes = self.codes[order].tolist()
        return Totals([self.labels[code] for code in codes], self.counts[order], self.sums[order])

    def first(self, rows: int) -> Totals:
        """Return the totals as they were when they had this many rows.

        Parameters
        ----------
        rows
            The number of rows.
        """
        return self.rows(np.arange(rows))

    def means(self) -> tuple[Ints, Floats]:
        """Return how often each arm was played, and the mean of its rewards, which is nan if it never was.

        >>> Totals(["red", "blue"], [4, 0], [1, 0]).means()
        (array([4, 0]), array([0.25,  nan]))
        """
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
    """Add rewards to the sums of their labels one by one, so that the bits do not depend on where parts end."""
    places = np.concatenate([np.arange(len(sums)), codes])
    return np.asarray(np.bincount(places, np.concatenate([sums, rewards]), minlength=len(sums)), np.float64)
