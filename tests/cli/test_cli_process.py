"""What only a process of its own can show: imports, pipes, signals, encodings, terminals."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import artreplay as ar
from artreplay.cli.app import app
from command_kit import OPTIONS, Run, samples, write_csv


def start(*arguments: object, code: str | None = None, **options: Any) -> subprocess.Popen[str]:
    what = ["-m", "artreplay"] if code is None else ["-c", code]
    command = [sys.executable, *what, *map(str, arguments)]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "encoding": "utf-8"}
    return subprocess.Popen(command, **(pipes | options))


def test_version_and_help(run: Run) -> None:
    assert run("--version").out == start("--version").communicate(timeout=60)[0] == f"artreplay {ar.__version__}\n"
    done = run("--help")
    assert done.code == 0
    for command in ("demo", "recommend", "tell", "simulate", "algorithms", "check"):
        assert f"\n  {command} " in done.out
        assert run(command, "--help").code == 0
    assert run().code == 2


HOW_A_LOG_IS_READ = {
    "log",
    "unit",
    "reward",
    "count",
    "sum_",
    "table",
    "csv",
    "order",
    "order_seed",
    "allow_scan",
    "until",
    "unknown",
    "drift",
    "contexts",
    "segments",
    "reward_range",
}


def test_no_command_has_more_than_a_dozen_options_of_its_own() -> None:
    def commands(command: Any) -> Iterator[Any]:
        for inner in getattr(command, "commands", {"": command}).values():
            yield from commands(inner) if hasattr(inner, "commands") else [inner]

    for command in commands(typer.main.get_command(app)):
        own = {one.name for one in command.params if one.param_type_name == "option"} - HOW_A_LOG_IS_READ
        assert len(own) <= 12, f"{command.name} has {sorted(own)}"


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from artreplay.cli import main; main(['--help']); "
        "print(sorted({'numba', 'matplotlib', 'pyarrow', 'rich'} & set(sys.modules)), file=sys.stderr)"
    )
    process = start(code=code)
    _, err = process.communicate(timeout=60)
    assert err.strip() == "[]"


@pytest.mark.long
@pytest.mark.parametrize(
    "arguments",
    [
        ("algorithms",),
        "recommend",
        pytest.param(("--help",), marks=pytest.mark.long),
        pytest.param(("--version",), marks=pytest.mark.long),
    ],
)
def test_a_reader_who_has_gone(folder: Path, arguments: tuple[str, ...] | str) -> None:
    if arguments == "recommend":
        log = write_csv(folder / "log.csv", [(arm, 1) for arm in range(5000)])
        arguments = ("recommend", str(log), *OPTIONS, "--horizon", "50000", "--all")
    read, write = os.pipe()
    os.close(read)
    process = start(*arguments, stdout=write)
    os.close(write)
    _, err = process.communicate(timeout=60)
    assert err == ""
    assert process.returncode != 2


@pytest.mark.long
def test_a_stream_that_is_closed() -> None:
    code = "import sys; sys.stdout = None; from artreplay.cli import main; sys.exit(main())"
    process = start("algorithms", code=code)
    assert process.communicate(timeout=60) == ("", "")
    assert process.returncode == 0


@pytest.mark.long
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_disk_that_is_full() -> None:
    with open("/dev/full", "w") as full:
        process = start("algorithms", stdout=full)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert err.startswith("error: ")
    assert err.count("\n") == 1


@pytest.mark.long
def test_letters_the_terminal_lacks(folder: Path) -> None:
    log = write_csv(folder / "log.csv", samples(30))
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    process = start("recommend", log, *OPTIONS, env=environment)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert "gr\\xfcn" in out


def test_piped_output_is_plain_and_whole(folder: Path) -> None:
    long = "a label of more than eighty letters, " * 5 + "it is"
    log = write_csv(folder / "log.csv", [(f'"{long}"', 1), ("b", 0)])
    environment = os.environ | {"COLUMNS": "40", "FORCE_COLOR": "1", "TERM": "xterm-256color"}
    out, _ = start("recommend", log, *OPTIONS, env=environment).communicate(timeout=60)
    assert long in out
    assert "\x1b" not in out
    assert not any(letter in out for letter in "─│┃━╭")
    assert not any(line.endswith(" ") for line in out.splitlines())


@pytest.mark.long
@pytest.mark.skipif(os.name != "posix", reason="needs SIGINT")
def test_ctrl_c(folder: Path) -> None:
    # A process started in the background may have been told to ignore SIGINT.
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from artreplay.cli import main; print('ready', flush=True); raise SystemExit(main())"
    )
    process = start("simulate", "--horizon", 10**9, "--replications", 100, code=code)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert (out, err) == ("", "stopped\n")


@pytest.mark.long
@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
def test_on_a_terminal_labels_are_folded_and_not_cut(folder: Path) -> None:
    import pty

    label = "abcdefghij" * 6
    log = write_csv(folder / "log.csv", [(label, 1)])
    ours, theirs = pty.openpty()
    environment = os.environ | {"COLUMNS": "50", "TERM": "xterm"}
    process = start("recommend", log, *OPTIONS, stdout=theirs, env=environment)
    os.close(theirs)
    seen = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:
            break
        if not part:
            break
        seen += part
    process.communicate(timeout=60)
    os.close(ours)
    table = re.sub(r"\x1b\[[0-9;]*m", "", seen.decode()).partition("\r\n\r\n")[2]
    assert "".join(letter for letter in table if letter in "abcdefghij").count("abcdefghij") >= 5
    assert max(map(len, table.splitlines())) <= 50
