"""A progress bar on a terminal, for work that takes longer than a second; nothing when piped."""

from __future__ import annotations

import sys
import time
from contextvars import ContextVar
from types import TracebackType
from typing import Any


class Progress:
    """Counts done out of `total`; the bar appears after a second, if someone is there to see it.

    Only the outermost bar appears, because it counts the larger things.
    """

    _within: ContextVar[bool] = ContextVar("artreplay_progress", default=False)

    def __init__(self, what: str, total: int) -> None:
        self._what = what
        self._total = total
        self._began = time.perf_counter()
        self._bar: Any = None
        self._task: Any = None
        self._visible = sys.stderr.isatty() and not self._within.get()

    def __enter__(self) -> Progress:
        self._token = self._within.set(True)
        return self

    def update(self, done: float) -> None:
        """Move the bar."""
        if not self._visible or time.perf_counter() - self._began < 1.0:
            return
        if self._bar is None:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                TaskProgressColumn(),
                TimeRemainingColumn(),
            )
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task(self._what, total=self._total)
        self._bar.update(self._task, completed=done)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._within.reset(self._token)
        if self._bar is not None:
            self._bar.stop()
