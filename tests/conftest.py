"""What all tests share: hypothesis without deadlines (the first call compiles), and a count of compiled loops."""

from __future__ import annotations

import hypothesis
import pytest

from artreplay.compiling import loops_compiled

# Not modules with examples to run.
collect_ignore = ["conftest.py", "cli/conftest.py", "replay/conftest.py", "report/conftest.py"]

pytest.register_assert_rewrite("budget_kit", "exactness", "saving_kit")  # so that their asserts show values too

hypothesis.settings.register_profile("artreplay", deadline=None)
hypothesis.settings.load_profile("artreplay")

_of_workers: list[tuple[int, int]] = []


def pytest_sessionfinish(session: pytest.Session) -> None:
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
