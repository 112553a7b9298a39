"""A progress bar on a terminal, for work that takes longer than a second. Elsewhere it shows nothing, or lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any

LINE_SECONDS = 5.0  # the least time between two lines
BAR_SECONDS = 1.0  # how long work must take before a bar appears


class Progress:
    """Shows how much of `total` is done, with a bar on a terminal after a second.

    If stderr is a file or a pipe, nothing appears, or with `lines` a line every few seconds, for work of minutes. When
    progress bars are nested, only the outermost appears.
    """

    _within: ContextVar[bool] = ContextVar("artreplay_progress", default=False)
    _in_lines: ContextVar[str | None] = ContextVar("artreplay_progress_in_lines", default=None)

    def __init__(self, what: str, total: int, lines: bool = False) -> None:
        name = self._in_lines.get()
        self._what, lines = (what, lines) if name is None else (name, True)
        self._total = total
        self._began = time.perf_counter()
        self._bar: Any = None
        self._task: Any = None
        self._visible = sys.stderr.isatty() and not self._within.get()
        self._lines = lines and not self._visible and not self._within.get()
        self._last_line = self._began

    @classmethod
    @contextmanager
    def in_lines(cls, name: str) -> Iterator[None]:
        """Call what is done in here by a name, and show it in lines where there is no terminal."""
        token = cls._in_lines.set(name)
        try:
            yield
        finally:
            cls._in_lines.reset(token)

    def __enter__(self) -> Progress:
        self._token = self._within.set(True)
        return self

    def update(self, done: float) -> None:
        """Move the bar, or write a line."""
        if self._lines:
            self._write_line(done)
        if not self._visible or time.perf_counter() - self._began < BAR_SECONDS:
            return
        if self._bar is None:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

            columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task(self._what, total=self._total)
        self._bar.update(self._task, completed=done)

    def _write_line(self, done: float) -> None:
        """Write a line if the last one is some seconds old, and always at the end."""
        now = time.perf_counter()
        if now - self._last_line >= LINE_SECONDS or done >= self._total:
            self._last_line = now
            share = done / max(self._total, 1)
            print(
                f"{self._what}: {done:,.0f} of {self._total:,} ({share:.0%}) after {now - self._began:,.0f} s",
                file=sys.stderr,
                flush=True,
            )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._within.reset(self._token)
        if self._bar is not None:
            self._bar.stop()
