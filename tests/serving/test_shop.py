"""The shop of the examples runs from one command, and its visitors see what the study decides."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SHOP = Path(__file__).parents[2] / "examples/shop/visitors.py"


@pytest.mark.long
def test_the_shop_runs(tmp_path: Path) -> None:
    environment = os.environ | {"SECONDS": "12"}
    command = [sys.executable, "-W", "error", str(SHOP)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
    assert re.search(r"^Look at http://127\.0\.0\.1:\d+/studies/banners$", done.stdout, re.MULTILINE)
    assert "A new banner is added: outlet" in done.stdout
    assert re.search(r"^[\d,]+ visitors, [\d,]+ clicks$", done.stdout, re.MULTILINE)
