"""A journal only grows, survives a cut-off line, and notices everything else."""

from __future__ import annotations

import json
import os
import sys
import types
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parks import THOROUGH

from artreplay.errors import InvalidFile
from artreplay_patrol.journal import Journal


def filled(path: Path) -> bytes:
    journal = Journal(path)
    journal.append("made", site="Ngorongoro – Ol Doinyo")
    journal.append("records", rows=3, share=0.1)
    journal.append("plan", items=[1, 2])
    return path.read_bytes()


def test_what_was_written_is_read(tmp_path):
    filled(tmp_path / "j")
    journal = Journal(tmp_path / "j")
    assert [entry["kind"] for entry in journal.entries] == ["made", "records", "plan"]
    (entry,) = journal.of_kind("records")
    assert {name: entry[name] for name in ("rows", "share")} == {"rows": 3, "share": 0.1}
    assert datetime.fromisoformat(entry["at"]).tzinfo is not None
    assert entry["by"]
    if os.name == "posix":
        assert (tmp_path / "j").stat().st_mode & 0o077 == 0


@settings(max_examples=8 * THOROUGH)
@given(st.data())
def test_cut_off_anywhere_the_whole_lines_are_there_and_it_goes_on(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("journal") / "j"
    content = filled(path)
    cut = data.draw(st.integers(0, len(content)))
    path.write_bytes(content[:cut])
    journal = Journal(path)
    assert len(journal.entries) == content[:cut].count(b"\n")
    journal.append("more")
    assert [entry["kind"] for entry in Journal(path).entries] == [
        *["made", "records", "plan"][: content[:cut].count(b"\n")],
        "more",
    ]


@settings(max_examples=8 * THOROUGH)
@given(st.data())
def test_a_changed_line_is_found(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("journal") / "j"
    lines = filled(path).splitlines(keepends=True)
    number = data.draw(st.integers(0, 2))
    document = json.loads(lines[number])
    document["entry"]["rows"] = data.draw(st.integers(4, 9))
    lines[number] = json.dumps(document).encode() + b"\n"
    path.write_bytes(b"".join(lines))
    with pytest.raises(InvalidFile, match=f"line {number + 1} is not what was written"):
        Journal(path)


@pytest.mark.parametrize("number", [0, 1])
def test_a_lost_line_and_lines_in_another_order_are_found(tmp_path, number):
    lines = filled(tmp_path / "j").splitlines(keepends=True)
    (tmp_path / "j").write_bytes(b"".join(lines[:number] + lines[number + 1 :]))
    with pytest.raises(InvalidFile, match="damaged"):
        Journal(tmp_path / "j")
    (tmp_path / "j").write_bytes(b"".join(reversed(lines)))
    with pytest.raises(InvalidFile, match="line 1"):
        Journal(tmp_path / "j")


def test_of_two_commands_at_once_the_second_is_told(tmp_path):
    filled(tmp_path / "j")
    one, other = Journal(tmp_path / "j"), Journal(tmp_path / "j")
    one.append("plan")
    with pytest.raises(InvalidFile, match="another command"):
        other.append("plan")
    assert len(Journal(tmp_path / "j").entries) == 4


def test_a_journal_that_cannot_be_written_says_so(tmp_path):
    with pytest.raises(InvalidFile, match="cannot be written"):
        Journal(tmp_path / "no" / "j").append("made")
    with pytest.raises(InvalidFile, match="cannot be read"):
        Journal(tmp_path)


def test_on_windows_one_byte_far_behind_the_end_is_locked_while_a_line_is_written(tmp_path, monkeypatch):
    """With a module that stands in for that of Windows, for there is none here."""
    locked = []
    windows = types.SimpleNamespace(LK_LOCK=1, locking=lambda file, mode, count: locked.append((mode, count)))
    monkeypatch.setitem(sys.modules, "msvcrt", windows)
    monkeypatch.setattr("artreplay_patrol.journal.sys", types.SimpleNamespace(platform="win32"))
    content = filled(tmp_path / "j")
    assert locked == [(1, 1)] * content.count(b"\n")
    assert [entry["kind"] for entry in Journal(tmp_path / "j").entries] == ["made", "records", "plan"]
