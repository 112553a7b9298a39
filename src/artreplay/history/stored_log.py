"""What all logs share that are not in memory: they are scanned from front to back, or asked for rows of some labels."""

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

_BYTES_PER_ROW = 80  # codes, rewards and hashes, and all again while parts are joined
_BYTES_PER_CONTEXT = 32  # a value, which may be a text, twice


class StoredLog(HasFingerprint):
    """A log of arms larger than memory. A policy takes it in place of a `History` and reads the rows it needs."""

    name: str
    labels: list[Label]
    reward_bounds: tuple[float, float] | None = None  # the lowest and the highest reward, where they are known
    has_allowances = False  # whether each row says how far its mean may lie from today's
    allowance_bounds: tuple[float, float] | None = None  # the lowest and the highest one, where they are known
    context_names: tuple[str, ...] = ()  # the columns of contexts that each row has
    segments: tuple[str, ...] = ()  # those of them that it is laid out by, before the arms
    counts_are_known = True  # whether it costs nothing to say how many rows each label has

    @property
    def counts(self) -> Ints:
        """How many rows each label has."""
        raise NotImplementedError

    @property
    def cells(self) -> StoredLog:
        """The log as it lies: a label for each arm, of each segment where it is laid out by segments."""
        return self

    def read(self, codes: Ints, after: Ints, n: Ints) -> NextRows:
        """Up to `n[i]` rows of label `codes[i]` after its first `after[i]` ones."""
        raise NotImplementedError

    def scan(self, since: int = 0) -> Iterator[Rows]:
        """The rows in the order of the log, from row `since` on, a bounded number at a time."""
        raise NotImplementedError

    def first(self, rows: int) -> Self:
        """The log as it was when it had this many rows."""
        raise NotImplementedError

    def totals(self) -> Totals:
        """What each label earned. Rewards are added in the order of the rows."""
        counts, sums = np.zeros(len(self.labels), np.int64), np.zeros(len(self.labels))
        for rows in self.scan():
            counts += np.bincount(rows.codes, minlength=len(counts))
            sums = added_in_order(sums, rows.codes, rows.rewards)
        return Totals(self.labels, counts, sums)

    def stream(self, since: int = 0) -> Iterator[History]:
        """The same rows as small histories, each with the labels that occur in it."""
        for rows in self.scan(since):
            yield self._as_history(rows)

    def load(self) -> History:
        """The whole log in memory, if it takes at most half of the memory there is."""
        check_fits(self.name, len(self), _BYTES_PER_ROW + _BYTES_PER_CONTEXT * len(self.context_names))
        return joined(self.stream(), self.has_allowances, self.context_names)

    @property
    def contexts(self) -> pa.Table | None:
        """The contexts of all rows, in the order of the log. The whole log is read for them."""
        return self.load().contexts if self.context_names else None

    def _as_history(self, rows: Rows) -> History:
        present, codes = present_labels(rows.codes)
        labels = [self.labels[code] for code in present.tolist()]
        return History.from_columns(rows.rewards, labels, codes, allowances=rows.allowances, contexts=rows.contexts)

    def _parts(self) -> Iterable[History]:
        return self.stream()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} of {len(self)} rows on {len(self.labels)} arms>"
