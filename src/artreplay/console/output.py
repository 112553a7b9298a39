"""What the commands print: tables and lines for people, JSON for programs."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import typer

NONE = "–"  # stands in a table for a number that does not exist
MAX_ROWS = 20  # of a table of arms, unless all are asked for
MAX_BAR = 30  # letters of the longest bar
MAX_DECORATED_ROWS = 1000  # a table with more rows is printed without decoration
_PIPE_CLOSED = 141  # the exit code of a program that wrote to a closed pipe


def show(*parts: Any) -> None:
    """Print lines and tables: fitted to a terminal, or in full width and without decoration into a file or pipe."""
    if not sys.stdout.isatty():
        write("".join(f"{part}\n" for part in parts))
        return
    from rich.console import Console

    console = Console(markup=False, emoji=False, highlight=False)
    with console.capture() as captured:
        for part in parts:
            console.print(part)
    write(captured.get())


def show_json(value: Any) -> None:
    """Print one JSON value. Numbers that JSON does not have become null."""
    write(json.dumps(_plain(value), indent=2, allow_nan=False) + "\n")


def write(text: str) -> None:
    """Write to stdout and flush, so that a closed pipe is noticed here."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        discard_stdout()
        raise typer.Exit(_PIPE_CLOSED) from None
    except OSError:
        discard_stdout()
        raise


def discard_stdout() -> None:
    """Discard unwritten output, so that Python does not try to write it at exit and complain."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def table(headers: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1) -> Any:
    """Make a table whose first `texts` columns are texts, and whose other columns are numbers."""
    rows = list(rows)
    if not sys.stdout.isatty() or len(rows) > MAX_DECORATED_ROWS:
        return _plain_table([headers, *rows], texts)
    from rich import box
    from rich.table import Table

    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for place, header in enumerate(headers):
        grid.add_column(header, justify="left" if place < texts else "right", overflow="fold")
    for row in rows:
        grid.add_row(*row)
    return grid


def _plain_table(rows: Sequence[Sequence[str]], texts: int) -> str:
    """Return columns of text, two spaces apart."""
    from rich.cells import cell_len

    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        gaps = [" " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)]
        cells = [
            cell + gap if place < texts else gap + cell for place, (cell, gap) in enumerate(zip(row, gaps, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def text_of(label: Hashable) -> str:
    """Return a label as people read it, in quotes if it has unprintable characters."""
    text = str(label)
    return text if text.isprintable() and text.strip() else repr(label)


def number(value: float) -> str:
    """Format a number for a table."""
    if math.isnan(value):
        return NONE
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:.4f}" if abs(value) < 1000 else f"{value:,.6g}"


def count(value: float) -> str:
    """Format a count, or a mean of counts."""
    if math.isnan(value):
        return NONE
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def percent(share: float) -> str:
    """Format a share as a percentage. 0.0 % means exactly none, and 100.0 % exactly all."""
    if math.isnan(share):
        return NONE
    if 0.0 < share < 0.0005:
        return "< 0.1 %"
    return "> 99.9 %" if 0.9995 <= share < 1.0 else f"{100 * share:.1f} %"


def size(value: float) -> str:
    """Format a number of bytes."""
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            return f"{value:,.0f} {unit}" if unit == "B" else f"{value:,.1f} {unit}"
        value /= 1000
    return ""


def seconds(value: float) -> str:
    """Format a duration."""
    return f"{value:.1f} s" if value < 120 else f"{value / 60:.1f} min"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)
