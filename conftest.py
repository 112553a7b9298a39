"""What all tests share: which loops are compiled, hypothesis without deadlines, and a count of compiled loops.

Compiling a loop takes longer than a hundred small cases do. So `make test` interprets, except in tests that are about
compiled code: those say `using("compiled")`, or are marked `as_users_run`. `make test-all` runs everything as users do.
Users' short simulations are interpreted; here they are compiled, because a test is about what is long.
"""

from __future__ import annotations

import functools
import gc
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
import typer.main

from artreplay.compiling import loops, loops_compiled, using

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a job that a shell runs in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Not modules with examples to run.
collect_ignore = [
    f"tests/{part}/conftest.py" for part in ("cli", "compiling", "replay", "reproduction", "serving", "studies")
]

pytest.register_assert_rewrite("budget_kit", "exactness", "saving_kit")  # so that their asserts show values too

loops.PATIENCE = loops.PATIENCE_TO_LOAD = -1.0  # seconds: whatever is slow enough to be counted is compiled

ALL = bool(os.environ.get("ARTREPLAY_THOROUGH"))
WHOLLY_LONG = re.compile(r"^pytestmark = \[?\s*pytest\.mark\.long\b", re.MULTILINE)

# `make test` draws the same cases on every machine; `make test-all` draws new ones each time, and ten times as many.
hypothesis.settings.register_profile("artreplay", deadline=None, max_examples=100 if ALL else 8, derandomize=not ALL)
hypothesis.settings.load_profile("artreplay")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    with using("auto" if ALL else "interpreted"):
        return (yield)


def pytest_collection_finish() -> None:
    gc.freeze()  # modules and tests stay to the end: no need to look through them again and again


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    as_users_run = ALL or any(item.get_closest_marker(name) for name in ("long", "as_users_run"))
    with using("auto" if as_users_run else "interpreted"):
        return (yield)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Whether a module is long as a whole and nothing long is wanted: what only such need may not be installed."""
    if config.option.markexpr != "not long" or collection_path.suffix != ".py":
        return None
    return WHOLLY_LONG.search(collection_path.read_text(encoding="utf-8")) is not None or None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a test over several parameters, `make test` takes every value of each; the other combinations are long."""
    seen: set[tuple[object, ...]] = set()
    for item in items:
        values = {(item.path, *value) for value in _values_of(item)}
        if len(values) > 1 and not item.get_closest_marker("long"):
            if values <= seen:
                item.add_marker(pytest.mark.long)
            seen |= values


def _values_of(item: pytest.Item) -> Iterator[tuple[object, ...]]:
    """What each `parametrize`, and each fixture with parameters, gives this case of a test."""
    given = dict(item.callspec.params) if hasattr(item, "callspec") else {}
    test = item.nodeid.partition("[")[0]
    for mark in item.iter_markers("parametrize"):
        names = mark.args[0].split(",") if isinstance(mark.args[0], str) else mark.args[0]
        yield test, *((name, id(given.pop(name))) for name in map(str.strip, names) if name in given)
    yield from ((test, name, id(value)) for name, value in given.items())


@pytest.fixture(scope="session", autouse=True)
def _nothing_is_forced_to_disk() -> Iterator[None]:
    """A disk that is waited for thousands of times. No test cuts the power; a kill leaves what was written."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda file: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def _commands_made_once() -> Iterator[None]:
    """Each command that is run makes all of them first, which takes longer than most do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", functools.cache(typer.main.get_command))
        yield


_of_workers: list[tuple[int, int]] = []


def pytest_sessionfinish(session: pytest.Session) -> None:
    gc.unfreeze()
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["loops"] = loops_compiled()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object) -> None:
    _of_workers.append(getattr(node, "workeroutput", {}).get("loops", (0, 0)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    counts = [*_of_workers, loops_compiled()]
    made, found = (sum(column) for column in zip(*counts, strict=True))
    terminalreporter.write_line(f"loops compiled: {made}, found in the disk cache: {found}")
