"""Whatever is in a file of a user, reading it ends in a log or in a sentence: no traceback, no crash, no hang."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import damaged_files
import pytest

FLIPS, MUTATIONS = 300, 2_000


def outcomes(kind: str, how: str, count: int, folder: Path) -> dict[str, int]:
    command = [sys.executable, damaged_files.__file__, kind, how, str(count), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    last = (folder / "last").read_text() if (folder / "last").exists() else "none"
    assert done.returncode == 0, f"file {last}: {done.stderr}"
    found: dict[str, int] = json.loads(done.stdout)
    assert set(found) <= {"same", "other", "refused"}, done.stderr
    return found


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=[] if kind in ("plain.feather", "numbered.stream") else pytest.mark.long)
        for kind in ("log.feather", "plain.feather", "numbered.feather", "log.stream", "numbered.stream", "log.parquet")
    ],
)
def test_a_flipped_bit_is_no_crash(kind, tmp_path):
    assert sum(outcomes(kind, "flipped", FLIPS, tmp_path).values()) == FLIPS


@pytest.mark.parametrize(("kind", "silent"), [("checked.parquet", 3), ("log.csv.gz", 0), ("log.csv.bz2", 0)])
def test_what_has_a_checksum_is_compared_with_it(kind, silent, tmp_path):
    """In Parquet pages have one, and their descriptions have none."""
    assert outcomes(kind, "flipped", FLIPS, tmp_path).get("other", 0) <= silent


@pytest.mark.long
@pytest.mark.parametrize("kind", damaged_files.KINDS)
def test_a_mutated_file_is_a_log_or_a_sentence(kind, tmp_path):
    assert outcomes(kind, "mutated", MUTATIONS // len(damaged_files.KINDS) + 1, tmp_path)["refused"] > 0
