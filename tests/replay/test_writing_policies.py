"""Writing a policy: a whole file, or the old one, and one sentence that says why."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from saving_kit import small_log, small_policy

import artreplay as ar
from artreplay.errors import InvalidFile
from artreplay.replay import saving


class Broken(Exception):
    pass


@pytest.mark.parametrize(
    "error",
    [OSError(28, "No space left on device"), Broken(), KeyboardInterrupt()],
    ids=lambda value: re.sub(" at 0x[0-9a-f]+", "", repr(value)),
)
@pytest.mark.parametrize("at", ["first array", "sync", "rename"])
def test_a_save_that_fails_half_way_leaves_the_old_file(path, monkeypatch, error, at):
    policy = small_policy()
    policy.save(path)
    before = path.read_bytes()
    policy.tell("a", 1.0)

    def fail(*arguments, **options):
        raise error

    with monkeypatch.context() as patch:
        where = {
            "first array": (np.lib.format, "write_array"),
            "sync": (saving.os, "fsync"),
            "rename": (saving.os, "replace"),
        }[at]
        patch.setattr(*where, fail)
        with pytest.raises(InvalidFile if isinstance(error, OSError) else type(error)):
            policy.save(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]
    assert ar.load(path, small_log()).rounds == 0
    policy.save(path)
    assert ar.load(path, small_log()).rounds == 1


SAVING = """
import sys, time
import numpy as np
import artreplay as ar
from artreplay.replay import saving

policy = ar.Ignorant(ar.MonUCB(2000, 100))
policy.save(sys.argv[1])
if sys.argv[2] == "half":
    write = np.lib.format.write_array
    def stop(*arguments, **options):
        write(*arguments, **options)
        print("half", flush=True)
        time.sleep(60)
    np.lib.format.write_array = stop
print("first", flush=True)
while True:
    policy.tell(policy.ask(), 0.5)
    policy.save(sys.argv[1])
"""


def killed(path: Path, how: str, line: str, delay: float = 0.0) -> None:
    """Let a process save until it has said `line` and some time has passed, and kill it."""
    with subprocess.Popen([sys.executable, "-c", SAVING, str(path), how], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        while process.stdout.readline().strip() != line:
            assert process.poll() is None
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)


def test_a_process_that_is_killed_while_it_saves_leaves_the_old_file(path):
    killed(path, "half", "half")
    assert ar.load(path).rounds == 0


def test_a_process_that_is_killed_at_any_time_leaves_a_whole_file(path):
    rounds = []
    for delay in (0.05, 0.0931):
        killed(path, "loop", "first", delay)
        rounds.append(ar.load(path).rounds)
    assert max(rounds) > 0


@pytest.mark.parametrize("name", ["no/such/folder/policy.ar", "a file/policy.ar", "", ".", "x" * 300])
def test_a_place_that_cannot_be_written_is_said_in_one_sentence(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a file").write_text("")
    with pytest.raises(InvalidFile, match="cannot be written") as refused:
        small_policy().save(name)
    assert "\n" not in str(refused.value)
    assert sorted(tmp_path.iterdir()) == [tmp_path / "a file"]


def test_a_folder_that_refuses_is_said_in_one_sentence(path, monkeypatch):
    def refuse(*arguments, **options):
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr("builtins.open", refuse)
        with pytest.raises(InvalidFile, match=r"policy\.ar cannot be written: Permission denied$"):
            small_policy().save(path)


def test_a_folder_that_cannot_be_synced_does_not_undo_a_save(path, monkeypatch):
    """The file is written and renamed; some systems cannot open a folder at all."""
    opened = os.open

    def refuse(name, *arguments, **options):
        if Path(name) == path.parent:
            raise PermissionError(13, "Permission denied")
        return opened(name, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(saving.os, "open", refuse)
        small_policy().save(path)
    assert ar.load(path, small_log()).rounds == 0
