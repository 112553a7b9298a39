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


def shown(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, lines: bool = False) -> str:
    monkeypatch.setattr(sys, "stderr", stream)
    now = iter(range(1000))
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(now)))
    with Progress("outer", 2, lines) as outer:
        outer.update(1)
        with Progress("inner", 2, lines) as inner:
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


def test_lines_where_they_are_wanted_and_output_is_redirected(monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(monkeypatch, io.StringIO(), lines=True)
    assert [line.partition(" after ")[0] for line in text.splitlines()] == ["outer: 2 of 2 (100%)"]
    assert "of 2" not in shown(monkeypatch, Terminal(), lines=True)


def test_lines_come_seconds_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    with Progress("counting", 40, lines=True) as progress:
        for done in range(1, 41):
            now[0] += 0.5
            progress.update(done)
    assert stream.getvalue().splitlines() == [
        f"counting: {done} of 40 ({done / 40:.0%}) after {done / 2:.0f} s" for done in (10, 20, 30, 40)
    ]
