"""What all logs outside memory share. They can be read from beginning to end, or row by row for some labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Self

import numpy as np

from artreplay.compiling import Ints
from artreplay.history.history import HasFingerprint, History
from artreplay.history.labels import Label, present_labels
from artreplay.history.log_protocol import NextRows, Rows
from artreplay.history.memory import check_fits
from artreplay.history.sources.parts import joined
from artreplay.history.totals import Totals, added_in_order

if TYPE_CHECKING:
    import pyarrow as pa

_BYTES_PER_ROW = 80  # codes, rewards and hashes, twice while parts are being joined
_BYTES_PER_CONTEXT = 32  # a value of a context column, which may be a text, twice


class StoredLog(HasFingerprint):
    """Read a log of arms that is larger than memory.

    A policy takes it in place of a `History`, and reads only the rows it needs. `open_history` returns it for an
    indexed folder and for a PostgreSQL table.
    """

    name: str
    labels: list[Label]
    reward_bounds: tuple[float, float] | None = None  # the lowest and the highest reward, where they are known
    has_allowances = False  # whether each row says how far its mean may lie from today's
    allowance_bounds: tuple[float, float] | None = None  # the lowest and the highest allowance, where they are known
    context_names: tuple[str, ...] = ()  # the names of the context columns
    segments: tuple[str, ...] = ()  # those by which it is laid out, before the arms
    counts_are_known = True  # whether `counts` is at hand without reading rows

    @property
    def counts(self) -> Ints:
        """How many rows each label has."""
        raise NotImplementedError

    @property
    def cells(self) -> StoredLog:
        """The log as it lies: a label for each arm, of each segment where it is laid out by segments."""
        return self

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
        """
        raise NotImplementedError

    def scan(self, since: int = 0) -> Iterator[Rows]:
        """Yield the rows in the order of the log, a bounded number at a time.

        Parameters
        ----------
        since
            The number of the first row.
        """
        raise NotImplementedError

    def first(self, rows: int) -> Self:
        """Return the log as it was when it had this many rows.

        Parameters
        ----------
        rows
            The number of rows.
        """
        raise NotImplementedError

    def totals(self) -> Totals:
        """Add up what each label earned, in the order of the rows."""
        counts, sums = np.zeros(len(self.labels), np.int64), np.zeros(len(self.labels))
        for rows in self.scan():
            counts += np.bincount(rows.codes, minlength=len(counts))
            sums = added_in_order(sums, rows.codes, rows.rewards)
        return Totals(self.labels, counts, sums)

    def stream(self, since: int = 0) -> Iterator[History]:
        """Yield the rows as small histories, each with the labels that occur in it.

        Parameters
        ----------
        since
            The number of the first row.
        """
        for rows in self.scan(since):
            yield self._as_history(rows)

    def load(self) -> History:
        """Load the whole log into memory. It must take at most half of the memory of the machine."""
        check_fits(self.name, len(self), _BYTES_PER_ROW + _BYTES_PER_CONTEXT * len(self.context_names))
        return joined(self.stream(), self.has_allowances, self.context_names)

    @property
    def contexts(self) -> pa.Table | None:
        """The contexts of all rows, in the order of the log. Asking for them reads the whole log."""
        return self.load().contexts if self.context_names else None

    def _as_history(self, rows: Rows) -> History:
        present, codes = present_labels(rows.codes)
        labels = [self.labels[code] for code in present.tolist()]
        return History.from_columns(rows.rewards, labels, codes, allowances=rows.allowances, contexts=rows.contexts)

    def _parts(self) -> Iterable[History]:
        return self.stream()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} of {len(self)} rows on {len(self.labels)} arms>"
