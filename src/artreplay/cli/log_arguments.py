"""Opens logs for the commands."""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple

from artreplay.addresses import without_password
from artreplay.errors import InvalidParameter, errors_in
from artreplay.history import History, StoredLog, Totals, open_history
from artreplay.history.labels import as_label
from artreplay.history.parquet import is_laid_out
from artreplay.history.postgres import is_postgres
from artreplay.history.sources import find_source

_MEANT: dict[tuple[str, str], Any] = {("header", "yes"): True, ("header", "no"): False, ("delim", "\\t"): "\t"}


class LogArgument(NamedTuple):
    """A log that was opened. If its labels are texts, labels on the command line are read as texts."""

    path: str
    history: History | Totals | StoredLog
    is_text: bool

    def labels(self) -> list[Hashable]:
        """Return the distinct labels: numbers by size, then texts by alphabet."""
        return sorted(self._labels(), key=_size_or_text)

    def parse(self, texts: Iterable[str]) -> list[Hashable]:
        """Turn labels from the command line into labels of the log, if they are among them."""
        by_text = {str(label): label for label in self._labels()}
        return [by_text.get(text, text if self.is_text else as_label(text)) for text in texts]

    def _labels(self) -> list[Hashable]:
        return list(getattr(self.history, "labels", []))


def read_log(path: str, columns: dict[str, Any]) -> LogArgument:
    """Open a log. An error names the file."""
    if columns.get("unit") is not None and columns["unit"] == columns.get("reward"):
        raise InvalidParameter(f"--unit and --reward must be two columns, both are {columns['unit']!r}")
    totals = columns.get("count") is not None or columns.get("sum") is not None
    for name in ("unit", "count", "sum") if totals else ("unit", "reward"):
        if columns.get(name) is None and not is_laid_out(path):
            raise InvalidParameter(f"--{name} must name a column of {place_of(path)}")
    with errors_in(file=place_of(path)):
        history = open_history(path, **columns)
    in_memory = not isinstance(history, StoredLog) and not is_postgres(path)
    source = find_source(path, columns.get("table"), columns.get("csv")) if in_memory else None
    is_text = source is not None and source.written
    if source is not None:
        say_dialect(source)
    labels = getattr(history, "labels", [])
    return LogArgument(
        path, history, not is_text and all(isinstance(label, str) for label in labels) and len(labels) > 0
    )


def csv_of(pairs: list[str] | None) -> dict[str, Any] | None:
    """Read how a CSV file is written, from NAME=VALUE pairs.

    >>> csv_of(["delim=;", "header=no"])
    {'delim': ';', 'header': False}
    """
    settings: dict[str, Any] = {}
    for pair in pairs or []:
        name, equal, value = pair.partition("=")
        if not equal:
            raise InvalidParameter(f"--csv must be NAME=VALUE, got {pair!r}")
        if name == "header" and value not in ("yes", "no"):
            raise InvalidParameter(f"--csv header must be yes or no, got {value!r}")
        settings[name] = _MEANT.get((name, value), value)
    return settings or None


def say_dialect(source: Any) -> None:
    """Say how a text file was read, unless it is written in the usual way."""
    if source.dialect is not None:
        print(f"{source.name} is read with {source.dialect}", file=sys.stderr)


def say_dialect_of(path: str, table: str | None, csv: dict[str, Any] | None) -> None:
    """Say how the text file at a place is read."""
    if not is_postgres(path) and not is_laid_out(path):
        say_dialect(find_source(path, table, csv))


def place_of(path: str) -> str:
    """Return the place of a log, without a password."""
    return without_password(path)


def units_of(unit: list[str] | None) -> Any:
    """Return one column of labels, or several columns of coordinates."""
    return unit[0] if unit is not None and len(unit) == 1 else unit or None


def column_of_arms(unit: list[str] | None, log: str, reward: str | None) -> str | None:
    """Return the one column of labels, for a command that plays arms."""
    if unit is not None and len(unit) > 1:
        how = _in_python(log, len(unit), unit, reward or "reward")
        raise InvalidParameter(f"--unit must name one column of arms, got {', '.join(unit)}. {how}")
    return unit[0] if unit else None


def _in_python(log: str, dim: int, *columns: Any) -> str:
    """Return a line of Python that plays points. It names no options, because the shell's have the same names."""
    arguments = ", ".join(map(_as_code, [place_of(log), *columns]))
    policy = f"ar.ArtificialReplay(ar.TreeUCB({dim}, horizon=1000), ar.open_history({arguments}))"
    return f"Points are for Python: {policy}.ask()"


def _as_code(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def split_labels(*texts: str, option: str = "--arms") -> list[str]:
    """Split labels at commas, from an option that may be repeated. Double quotes keep a comma inside a label.

    >>> split_labels('red, "dark, blue"', "green")
    ['red', 'dark, blue', 'green']
    """
    all_labels = []
    for text in texts:
        labels = [label.strip() for label in next(csv.reader([text], skipinitialspace=True), [])]
        if not labels or not all(labels):
            raise InvalidParameter(f"{option} must be labels separated by commas, got {text!r}")
        all_labels += labels
    return all_labels


def _size_or_text(label: Hashable) -> tuple[float, str]:
    """Return a key that sorts numbers by size, also those written as texts, and everything else after them."""
    text = str(label)
    try:
        size = float(text)
    except ValueError:
        size = math.inf
    return (size if math.isfinite(size) else math.inf), text
