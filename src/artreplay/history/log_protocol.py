"""What a log of arms is to those who read it, wherever it lies: six things, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

from artreplay.compiling import Floats, Ints
from artreplay.history.labels import Label

if TYPE_CHECKING:
    import pyarrow as pa

    from artreplay.history.totals import Totals


class Rows(NamedTuple):
    """Consecutive rows in the order of the log. A code is the number of a label, its place among the labels."""

    codes: Ints
    rewards: Floats
    allowances: Floats | None = None  # how far the mean of each row may lie from today's, where the log says so
    contexts: pa.Table | None = None  # what was known of each row, where the log says so


class NextRows(NamedTuple):
    """The next rows of some labels, one label after the other, and how many each of them got."""

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
        """Up to `n[i]` rows of label `codes[i]` after its first `after[i]` ones, for all labels in one request.

        A label gets fewer only where the log has no more.
        """

    def scan(self, since: int = 0) -> Iterator[Rows]:
        """The rows in the order of the log, from row `since` on, a bounded number at a time."""

    def totals(self) -> Totals:
        """What each label earned: rewards are added in the order of its rows, the same bits everywhere."""

    def first(self, rows: int) -> Self:
        """The log as it was when it had this many rows."""
