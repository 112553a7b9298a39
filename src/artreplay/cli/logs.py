"""A log in a CSV or Parquet file, as a history."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from artreplay.errors import InvalidFile, InvalidHistory, InvalidParameter
from artreplay.history import History

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_PARQUET = (".parquet", ".pq")
_PACKED = (".gz", ".bz2", ".zst")
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")  # what fits 64 bits


class Log(NamedTuple):
    """A log as it was read; whether its labels are texts tells how a label that is not in it is to be read."""

    path: Path
    history: History
    typed_as_text: bool

    def labels(self) -> list[Hashable]:
        """The distinct labels, numbers in order of size, then texts in order of the alphabet."""
        return sorted(self.history.labels, key=_size_or_text)

    def parse(self, texts: Iterable[str]) -> list[Hashable]:
        """Labels written on the command line, as the labels of the log where they are among them."""
        known = {str(label): label for label in self.history.labels}
        return [known.get(text, text if self.typed_as_text else as_label(text)) for text in texts]


def read_log(path: Path, unit: str, reward: str, until: int | None) -> Log:
    """Read the two columns of a log; what is wrong with it is said in one sentence that names the file."""
    import pyarrow as pa

    if unit == reward:
        raise InvalidParameter(f"--unit and --reward must be two columns, both are {unit!r}")
    if not path.is_file():
        raise InvalidFile(f"{path} {'is not a file' if path.exists() else 'does not exist'}")
    delimiter = _delimiter_of(path)
    try:
        if delimiter is None:
            history, as_text = _read_parquet(path, unit, reward, until)
        else:
            history, as_text = _read_delimited(path, delimiter, unit, reward, until), False
    except OSError as error:
        raise InvalidFile(f"{path} cannot be read: {error.strerror or error}") from error
    except pa.ArrowException as error:
        kind = "Parquet" if delimiter is None else "text in columns"
        raise InvalidFile(f"{path} cannot be read as {kind}: {error}") from error
    except InvalidHistory as error:
        raise InvalidHistory(in_the_file(path, error)) from error
    return Log(path, history, as_text)


def in_the_file(path: Path, error: InvalidHistory) -> str:
    """What is wrong with a log, for someone who looks at the file and not at Python."""
    text = str(error).replace('unknown="skip"', "--unknown skip")
    rows = "; rows are counted from 0, without the header" if re.search(r"\brow \d", text) else ""
    return f"{path}: {text}{rows}"


def as_label(text: str) -> Hashable:
    """A label from text: a number if it is written as one, and only as Python would write it.

    >>> as_label("7"), as_label("07"), as_label("-1"), as_label("4.99")
    (7, '07', -1, '4.99')
    """
    return int(text) if _INTEGER.fullmatch(text) else text


def split_labels(text: str) -> list[str]:
    """Labels separated by commas; one with a comma in it goes in double quotes.

    >>> split_labels('red, "dark, blue"')
    ['red', 'dark, blue']
    """
    found = [label.strip() for label in next(csv.reader([text], skipinitialspace=True), [])]
    if not found or not all(found):
        raise InvalidParameter(f"--arms must be labels separated by commas, got {text!r}")
    return found


# -- reading ------------------------------------------------------------------------------------------------


def _delimiter_of(path: Path) -> str | None:
    """What separates the columns; None for Parquet."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in _PACKED:
        suffixes.pop()
    last = suffixes[-1] if suffixes else ""
    if last in _PARQUET:
        return None
    if last in _DELIMITERS:
        return _DELIMITERS[last]
    try:
        with open(path, "rb") as file:
            start = file.read(65_536)
    except OSError as error:
        raise InvalidFile(f"{path} cannot be read: {error.strerror or error}") from error
    if start.startswith(b"PAR1"):
        return None
    header = start.splitlines()[0] if start else b""
    for delimiter in ("\t", ","):
        if delimiter.encode() in header and b"\0" not in start:
            return delimiter
    raise InvalidFile(
        f"{path} is neither Parquet nor text in columns; a name that ends in .csv, .tsv or .parquet says what it is"
    )


def _read_parquet(path: Path, unit: str, reward: str, until: int | None) -> tuple[History, bool]:
    """The history, and whether its labels are texts."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        _check_columns(file.schema_arrow.names, unit, reward)
        frame = file.read(columns=[unit, reward])
    kind = frame.column(unit).type
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return History.from_frame(frame, unit, reward, until=until), kind in (pa.string(), pa.large_string())


def _read_delimited(path: Path, delimiter: str, unit: str, reward: str, until: int | None) -> History:
    """Labels as they are written, rewards as numbers."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    layout = arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    with arrow_csv.open_csv(path, parse_options=layout) as opened:
        _check_columns(opened.schema.names, unit, reward)
    values = arrow_csv.ConvertOptions(
        include_columns=[unit, reward],
        column_types={unit: pa.string()},  # or 007 would become 7, and 2024-01-01 a date
        null_values=[""],  # NA may be a label
        strings_can_be_null=True,
    )
    frame = arrow_csv.read_csv(path, parse_options=layout, convert_options=values)
    if len(frame) == 0:
        return History([], [])
    return History(_labels(frame.column(unit)), _rewards(frame.column(reward)), until=until)


def _check_columns(names: list[str], unit: str, reward: str) -> None:
    for option, name in (("--unit", unit), ("--reward", reward)):
        if names.count(name) != 1:
            columns = ", ".join(map(repr, names))
            raise InvalidHistory(f"there must be one column {name!r} ({option}), the columns are {columns}")


def _labels(column: Any) -> Any:
    """Texts as labels; each is a number or a text for itself, so that rows appended later change none."""
    import pyarrow as pa

    if column.null_count:
        return column  # the row is named by whoever checks labels
    labels = [as_label(text) for text in column.unique().to_pylist()]
    integers = sum(isinstance(label, int) for label in labels)
    if integers == 0:
        return column
    if integers == len(labels):
        return column.cast(pa.int64())
    return [as_label(text) for text in column.to_pylist()]


def _rewards(column: Any) -> Any:
    """Rewards as numbers; in a column with texts, the first that is not one is refused with its row."""
    import pyarrow as pa

    if column.type != pa.string():
        return column
    rewards = np.full(len(column), math.nan)
    for row, text in enumerate(column.to_pylist()):
        try:
            rewards[row] = math.nan if text is None else float(text)
        except ValueError:
            raise InvalidHistory(f"reward in row {row} is {text!r}, expected a number") from None
    return rewards


def _size_or_text(label: Hashable) -> tuple[float, str]:
    """Sorts numbers by size, also those among texts, and everything else behind them."""
    text = str(label)
    try:
        size = float(text)
    except ValueError:
        size = math.inf
    return (size if math.isfinite(size) else math.inf), text
