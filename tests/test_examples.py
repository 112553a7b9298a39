"""Every example runs to its end and prints something."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from real_parts import needed

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
OF_OTHER_LIBRARIES = ("08_other_libraries",)
SOON = ("01_own_log",)


def python_for(script: Path) -> str | Path:
    """The Python that has what an example imports: some libraries are in an environment of their own."""
    if script.stem not in OF_OTHER_LIBRARIES or find_spec("river"):
        return sys.executable
    peers = ROOT / ".venv-peers/bin/python"
    return needed("what `make .venv-peers/.ready` installs", peers.exists() and peers)


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(script, id=script.stem, marks=() if script.stem in SOON else pytest.mark.long)
        for script in EXAMPLES
    ],
)
def test_example(script: Path, tmp_path: Path) -> None:
    command = [python_for(script), "-W", "error", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert done.stderr == ""


@pytest.mark.long
def test_the_page_about_points_says_what_the_example_over_points_prints(tmp_path: Path) -> None:
    command = [sys.executable, ROOT / "examples/04_metric_bandit.py"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    page = (ROOT / "docs/how-to/continuous.md").read_text(encoding="utf-8")
    (said,) = re.findall(r"has read (\d+ of [\d,]+) rows", page)
    assert f"used    {said} samples" in printed


@pytest.mark.long
def test_the_figures_of_the_docs_are_what_the_policies_do(tmp_path: Path) -> None:
    """The script compares what it draws with a policy, and refuses if they differ."""
    script = ROOT / "docs/understand/exactness_figures.py"
    subprocess.run([sys.executable, script, tmp_path], check=True, capture_output=True)
    assert sorted(path.name for path in tmp_path.glob("*.png")) == ["certified.png", "step.png"]


@pytest.mark.long
def test_the_numbers_of_the_docs_can_be_made() -> None:
    """At a tiny scale: a table of two rules, noises and domains with a grid, one of four logs, and their heads."""
    script = ROOT / "docs/how-to/continuous_numbers.py"
    tiny = os.environ | {"HORIZON": "5", "REPLICATIONS": "2"}
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, env=tiny)
    assert sum(line.startswith("|") for line in done.stdout.splitlines()) == (2 * 2 * 2 + 1) + 4 + 2 * 2


@pytest.mark.long
def test_the_docs_have_what_the_example_of_the_best_arm_prints(tmp_path: Path) -> None:
    command = [sys.executable, ROOT / "examples/10_best_arm.py"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    page = (ROOT / "docs/how-to/own-simulations.md").read_text(encoding="utf-8")
    assert f"```text\n{printed}```\n" in page
