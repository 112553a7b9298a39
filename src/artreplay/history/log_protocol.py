"""What code that reads a log of arms may rely on, wherever the log lies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

from artreplay.compiling import Floats, Ints
from artreplay.history.labels import Label

if TYPE_CHECKING:
    import pyarrow as pa

    from artreplay.history.totals import Totals


class Rows(NamedTuple):
    """Consecutive rows in the order of the log. A code is the place of a row's label among the labels."""

    codes: Ints
    rewards: Floats
    allowances: Floats | None = None  # how far the mean of each row may lie from today's, where the log says so
    contexts: pa.Table | None = None  # what was known when the arm of each row was chosen, where the log says so


class NextRows(NamedTuple):
    """The next rows of some labels, label by label, and how many rows each label got."""

    sizes: Ints
    rewards: Floats
    allowances: Floats | None = None


class Log(Protocol):
    """A log of arms that can be read in parts."""

    @property
    def labels(self) -> list[Label]:
        """The labels that occur, each once."""

    @property
    def counts(self) -> Ints:
        """How many rows each label has. A database has to count them."""

    def read(self, codes: Ints, after: Ints, n: Ints) -> NextRows:
        """Read up to `n[i]` rows of label `codes[i]` after its first `after[i]` ones, for all labels in one request.

        A label gets fewer than `n[i]` rows only if the log has no more.
        """

    def scan(self, since: int = 0) -> Iterator[Rows]:
        """Yield the rows in the order of the log, from row `since` on, a bounded number at a time."""

    def totals(self) -> Totals:
        """Add up what each label earned, in the order of its rows, so that the sums have the same bits everywhere."""

    def first(self, rows: int) -> Self:
        """Return the log as it was when it had this many rows."""
