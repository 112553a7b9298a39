"""What every source can do."""

from __future__ import annotations

import re
import sqlite3
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from artreplay.compiling import Floats
from artreplay.errors import ArtReplayError, InvalidFile
from artreplay.history import frames
from artreplay.history.history import History
from artreplay.history.sources.log_columns import Columns

BATCH = 1 << 18  # rows that are read at once
_MOST_SAID = 100  # letters of a line that an engine says


class Source:
    """A log that is not read yet: its columns, how many rows it has, and its rows in order, as frames of narwhals."""

    written = False  # whether labels are texts that may stand for numbers; others have a type of their own
    has_order = True  # whether the rows have an order of their own; if not, a column must order them

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def dialect(self) -> str | None:
        """How text is read, for people; None where there is nothing to tell."""
        return None

    def column_names(self) -> list[str]:
        """The columns there are."""
        raise NotImplementedError

    def rows(self) -> int | None:
        """How many rows there are, where that is known without reading them."""
        return None

    def tables(self, columns: Sequence[str]) -> Iterator[Any]:
        """The rows in order, a batch at a time, with these columns."""
        raise NotImplementedError

    def history(self, table: Any, columns: Columns) -> History:
        """A batch as a history; errors count its rows from 0."""
        levels = None if columns.level is None else self.numbers(table, columns.level, "level")
        rewards = self.numbers(table, columns.reward, "reward")
        if not columns.are_points:
            return History(self.labels(table, columns.units[0]), rewards)
        points = np.column_stack([self.numbers(table, name, "coordinate") for name in columns.units])
        return History(points, rewards, levels=levels)

    def labels(self, table: Any, name: str) -> Any:
        """A column of a batch as labels."""
        return frames.column(table, name)

    def numbers(self, table: Any, name: str, what: str) -> Floats:
        """A column of a batch as numbers; `what` is for errors."""
        return frames.numbers(table, name, what)

    def order(self, table: Any, name: str) -> Any:
        """A column of a batch to order by, as arrow has it."""
        return frames.to_order_by(table, name)


def as_table(batch: Any) -> Any:
    """A record batch of arrow as a frame of narwhals."""
    import pyarrow as pa

    return frames.as_frame(pa.Table.from_batches([batch]))


def quoted(name: str) -> str:
    """A name in a statement of SQL."""
    return '"' + name.replace('"', '""') + '"'


def arrow_reader(relation: Any, rows: int) -> Any:
    """The rows of a DuckDB relation as record batches; the method had another name before DuckDB 2."""
    read = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
    return read(rows)


def arrow_batches(relation: Any) -> Iterator[Any]:
    """The rows of a DuckDB relation as frames, a batch at a time."""
    return (as_table(batch) for batch in arrow_reader(relation, BATCH))


def dataset_batches(dataset: Any, columns: Sequence[str]) -> Iterator[Any]:
    """The rows of a dataset of arrow as frames, a batch at a time."""
    return (as_table(batch) for batch in dataset.to_batches(columns=list(columns), batch_size=BATCH))


@contextmanager
def reading(name: object, kind: str) -> Iterator[None]:
    """A block that reads a file or a database; if that cannot be done, it is said in one sentence."""
    import pyarrow as pa

    try:
        yield
    except ArtReplayError:
        raise
    except UnicodeDecodeError as error:
        raise InvalidFile(f"is not in {error.encoding}: encoding= must say in what it is written", file=name) from error
    except (sqlite3.Error, pa.ArrowException) as error:
        raise InvalidFile(f"cannot be read as {kind}: {_in_short(error)}", file=name) from error
    except OSError as error:  # also what an engine says while arrow asks it for rows
        raise InvalidFile(f"cannot be read: {error.strerror or _in_short(error)}", file=name) from error
    except Exception as error:
        duckdb = sys.modules.get("duckdb")
        if duckdb is None or not isinstance(error, duckdb.Error):
            raise
        raise InvalidFile(f"cannot be read as {kind}: {_in_short(error)}", file=name) from error


def _in_short(error: Exception) -> str:
    """What an engine says, in one line and without its advice, which is about options of its own."""
    said = re.split(r"\s*(?:Possible fixes|Possible Solution|LINE 1):", str(error) or type(error).__name__)[0]
    lines = [line.strip()[:_MOST_SAID] for line in re.sub(r"^(\w+ )+Error: ", "", said).splitlines()]
    return textwrap.shorten(" ".join(lines), 3 * _MOST_SAID, placeholder=" …")
