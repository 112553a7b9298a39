"""The progress bar: on a terminal only, and never two at a time."""

from __future__ import annotations

import io
import sys
import time

import pytest

from artreplay.engine.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO) -> str:
    monkeypatch.setattr(sys, "stderr", stream)
    now = iter(range(1000))
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(now)))
    with Progress("outer", 2) as outer:
        outer.update(1)
        with Progress("inner", 2) as inner:
            inner.update(1)
        outer.update(2)
    return stream.getvalue()


def test_only_the_outer_one_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(monkeypatch, Terminal())
    assert "outer" in text
    assert "inner" not in text


def test_nothing_is_seen_where_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(monkeypatch, io.StringIO()) == ""


def test_the_next_one_is_seen_again(monkeypatch: pytest.MonkeyPatch) -> None:
    shown(monkeypatch, Terminal())
    assert "outer" in shown(monkeypatch, Terminal())
