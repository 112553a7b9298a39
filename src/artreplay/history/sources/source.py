"""What every source of a log can do, whatever engine reads it."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from artreplay.addresses import masked
from artreplay.compiling import Floats
from artreplay.errors import ArtReplayError, InvalidFile
from artreplay.history import column_values
from artreplay.history.context_columns import as_contexts
from artreplay.history.history import History
from artreplay.history.labels import is_arrow
from artreplay.history.sources.log_columns import Columns

if TYPE_CHECKING:
    import pyarrow as pa

    from artreplay.history.context_columns import Kinds

BATCH = 1 << 18  # rows of one batch
MAX_LETTERS_SAID = 100  # letters of each line of an engine's error message that are passed on
_ENGINES = (
    "_csv",
    "_duckdb",
    "duckdb",
    "narwhals",
    "polars",
    "psycopg",
    "pyarrow",
    "sqlite3",
)  # modules whose errors are about the source they read
_NOT_UTF8 = "not utf-8 encoded"
_MIXED_ENDS = "state machine reached an invalid state"  # DuckDB says this if some lines end by \n and others by \r\n


class Source:
    """A log that is not read yet. It knows its columns, and yields its rows in order, as frames of narwhals.

    `batches` yields the rows with some of the columns, as arrow tables, record batches or frames.
    """

    written = False  # whether labels are texts that may stand for numbers, as in CSV

    def __init__(
        self,
        name: str,
        kind: str = "",
        names: Sequence[str] = (),
        batches: Callable[[list[str]], Iterable[Any]] = lambda columns: (),
        rows: Callable[[], int | None] = lambda: None,
        has_order: bool = True,
    ) -> None:
        """Describe the source. If its rows have no order of their own, a column must order them."""
        self.name, self.has_order = name, has_order
        self._kind, self._names, self._batches, self._rows = kind, list(names), batches, rows

    @property
    def dialect(self) -> str | None:
        """A description of how text is read, for people, or None if it is read in the usual way."""
        return None

    def column_names(self) -> list[str]:
        """The names of the columns."""
        return self._names

    def rows(self) -> int | None:
        """How many rows there are, or None if they would have to be read to know."""
        with reading(self.name, self._kind):
            return self._rows()

    def tables(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield the rows in order with these columns, a batch at a time."""
        with reading(self.name, self._kind):
            yield from map(column_values.as_frame, map(checked, self._batches(list(columns))))

    def history(self, table: Any, columns: Columns, kinds: Kinds) -> History:
        """Make a history of a batch. Errors count its rows from 0. `kinds` has the types of contexts so far."""
        levels = None if columns.level is None else self.numbers(table, columns.level, "level")
        allowances = None if columns.allowance is None else self.numbers(table, columns.allowance, "allowance")
        rewards = self.numbers(table, columns.reward, "reward")
        contexts: Any = None
        if columns.contexts:
            values = {name: self.context(table, name, kinds.get(name)) for name in columns.contexts}
            contexts = as_contexts(values, len(rewards), kinds)
        if not columns.are_points:
            return History(self.labels(table, columns.units[0]), rewards, allowance=allowances, contexts=contexts)
        points = np.column_stack([self.numbers(table, name, "coordinate") for name in columns.units])
        return History(points, rewards, levels=levels, allowance=allowances, contexts=contexts)

    def labels(self, table: Any, name: str) -> Any:
        """Read a column of a batch as labels."""
        return column_values.column(table, name)

    def numbers(self, table: Any, name: str, what: str) -> Floats:
        """Read a column of a batch as numbers. Errors call it `what`."""
        return column_values.numbers(table, name, what)

    def context(self, table: Any, name: str, known: pa.DataType | None) -> Any:
        """Read a column of a batch as contexts. `known` is its type in earlier batches."""
        return column_values.column(table, name)

    def order(self, table: Any, name: str) -> Any:
        """Read the column of a batch that orders rows, as an arrow array."""
        return column_values.to_order_by(table, name)


def checked(batch: Any) -> Any:
    """Refuse a batch of arrow whose buffers are damaged, because reading them could crash the process."""
    native = batch.to_native() if hasattr(batch, "to_native") else batch
    if is_arrow(native):
        native.validate(full=True)
    return batch


def quoted(name: str) -> str:
    """Quote a name for a statement of SQL."""
    return '"' + name.replace('"', '""') + '"'


def arrow_reader(relation: Any, rows: int | None = None) -> Any:
    """Read the rows of a DuckDB relation as record batches."""
    # The method has another name before DuckDB 2.
    read = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
    return read(rows or BATCH)


def dataset_batches(dataset: Any, columns: Sequence[str]) -> Iterator[Any]:
    """Read the rows of a dataset as record batches."""
    return iter(dataset.to_batches(columns=list(columns), batch_size=BATCH))


@contextmanager
def reading(name: object, kind: str, address: str | None = None) -> Iterator[None]:
    """Turn an error in a block that reads a file or a database into one sentence.

    Packages that read an address have their own error classes, and their messages may contain the address.
    """
    try:
        yield
    except UnicodeError as error:
        raise _not_in(getattr(error, "encoding", "this encoding"), name) from error
    except Exception as error:
        is_about_it = isinstance(error, OSError) or type(error).__module__.partition(".")[0] in _ENGINES
        if isinstance(error, ArtReplayError) or (address is None and not is_about_it):
            raise
        if _NOT_UTF8 in str(error):
            raise _not_in("utf-8", name) from error
        if _MIXED_ENDS in str(error):
            raise InvalidFile("must end all lines by \\n or all by \\r\\n, got both", file=name) from error
        words = getattr(error, "strerror", None) or _in_short(error)
        words = words if address is None else masked(words, address)
        raise InvalidFile(f"cannot be read as {kind}: {words}", file=name) from (error if address is None else None)


def _not_in(encoding: str, name: object) -> InvalidFile:
    example = "Name its encoding, as in"
    return InvalidFile(f"is not in {encoding}", file=name).advising(
        f'{example} csv={{"encoding": "latin-1"}}', f"{example} --csv encoding=latin-1"
    )


def _in_short(error: Exception) -> str:
    """Shorten an engine's error message to one line, without its advice, which is about its own options."""
    words = re.split(r"\s*(?:Possible fixes|Possible Solution|LINE 1):", str(error) or type(error).__name__)[0]
    lines = [line.strip()[:MAX_LETTERS_SAID] for line in re.sub(r"^(\w+ )+Error: ", "", words).splitlines()]
    return textwrap.shorten(" ".join(lines), 3 * MAX_LETTERS_SAID, placeholder=" …")
