"""Without numba and matplotlib everything else works, decides the same, and says what would be faster."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import artreplay as ar
import behaviour_kit
from artreplay.compiling import can_compile, loops, using
from artreplay.engine.context_forecasts import context_forecasts

LINE = (
    "numba is not installed, so this runs as plain Python, with the same results but many times as slow. "
    'Run pip install "artreplay[fast]"'
)
WITHOUT = "import sys; sys.modules |= {'numba': None, 'llvmlite': None, 'matplotlib': None}\n"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own. The horizons of short games are warned of, which is not looked at here."""
    return subprocess.run(
        [sys.executable, "-W", "ignore", *arguments], capture_output=True, text=True, check=True, timeout=120
    )


@pytest.mark.parametrize("mode", ["interpreted", pytest.param("compiled", marks=pytest.mark.long)])
@pytest.mark.filterwarnings("ignore")
def test_everything_is_the_same_without_numba_and_one_line_says_so(mode: loops.Mode) -> None:
    alone = run(behaviour_kit.__file__)
    assert alone.stderr.splitlines() == [LINE]
    with using(mode):
        assert json.loads(alone.stdout) == behaviour_kit.outcomes()


def test_a_few_decisions_say_nothing() -> None:
    code = """
import artreplay as ar
policy = ar.ArtificialReplay(ar.MonUCB(3, 100), ar.History([0, 1, 1], [0.0, 1.0, 0.5]))
policy.tell(policy.ask(), 1.0)
"""
    assert run("-c", WITHOUT + code).stderr == ""


def test_what_is_missing_is_named_and_the_rest_works(tmp_path: Path) -> None:
    code = """
import artreplay as ar
from artreplay.cli import main
from artreplay.plots import write_study_report
def refused(call):
    try:
        call()
    except ar.errors.MissingPackage as error:
        print(error)
refused(lambda: ar.plots.draw_space)
refused(lambda: ar.compiling.using("compiled").__enter__())
write_study_report(ar.Study.create(":memory:", ar.KLUCB(2, 9), wait=None), sys.argv[1])
sys.stderr = sys.stdout
main(["demo", "--replications", "1"])
"""
    report = tmp_path / "report.html"
    assert run("-c", WITHOUT + code, str(report)).stdout.splitlines() == [
        'ar.plots.draw_space needs the package matplotlib. Run pip install "artreplay[plots]"',
        'compiled code needs the package numba. Run pip install "artreplay[fast]"',
        'error: a figure needs the package matplotlib. Run pip install "artreplay[plots]"',
    ]
    assert report.stat().st_size > 1000


def test_forecasts_of_a_long_log_say_how_many_rows_they_look_at(monkeypatch: pytest.MonkeyPatch) -> None:
    log = ar.History([0] * 51, [0.0] * 51, contexts={"x": [row % 10 / 10 for row in range(51)]})
    monkeypatch.setattr("artreplay.engine.context_forecasts.MAX_ROWS_INTERPRETED", 50)
    monkeypatch.setattr("artreplay.engine.context_forecasts.is_installed", lambda name: False)
    monkeypatch.setattr(loops, "_has_numba", lambda: False)
    assert not can_compile()
    with pytest.warns(UserWarning, match=r'only the first 50 of 51 rows are forecast\. Run pip install "artreplay\[f'):
        assert context_forecasts(log).rows == 50
