"""Compiled code writes nowhere it should not: the contracts once more with every index checked."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.long
def test_no_index_is_out_of_bounds(tmp_path: Path) -> None:
    environment = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    files = [HERE / "test_exact.py", HERE / "test_exact_points.py", HERE.parent / "golden"]
    tests = [*map(str, files), "-k", "compiled or monotone or thompson"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not long", *tests]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
