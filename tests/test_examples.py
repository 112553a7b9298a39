"""Every example runs to its end and prints something."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))
SOON = ("01_own_log",)


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(script, id=script.stem, marks=() if script.stem in SOON else pytest.mark.long)
        for script in EXAMPLES
    ],
)
def test_example(script: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert done.stderr == ""
