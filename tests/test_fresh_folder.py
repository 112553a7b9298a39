"""`make demo` and `make test` as somebody else runs them: no rights, a path with spaces, no `.git`, no HOME."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).parent.parent
MADE_ANYWHERE = shutil.ignore_patterns("__pycache__", "*.egg-info", ".*_cache", ".hypothesis")
MADE_HERE = shutil.ignore_patterns(".git", ".venv*", "results", "report", "report-smoke", "dist")
NOBODY = 65534


@pytest.fixture
def open_folder():
    """A folder others may enter: any other pytest that starts closes those of pytest."""
    with tempfile.TemporaryDirectory(prefix="artreplay-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_an_ordinary_user_with_an_archive_in_a_folder_with_spaces(open_folder):
    folder = open_folder / "an archive"
    shutil.copytree(ROOT, folder, ignore=made_by_make)
    user = {}
    if os.geteuid() == 0:
        user = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        for path in (folder, *folder.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
    environment = {"PATH": os.pathsep.join(folders_of(user)), "LANG": "C"}
    for command in ("demo", "test"):
        done = subprocess.run(
            ["make", command], cwd=folder, env=environment, capture_output=True, text=True, check=False, **user
        )
        assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-8000:]


def made_by_make(folder, names):
    """What is no part of an archive: reproduction/report.py and docs/results are."""
    return MADE_ANYWHERE(folder, names) | (MADE_HERE(folder, names) if Path(folder) == ROOT else set())


def folders_of(user):
    """Where programs are that this user may run, one of them a Python from 3.11 on with what `venv` needs."""
    for python in (Path(sys.base_prefix) / "bin/python3", Path("/usr/bin/python3"), Path("/usr/local/bin/python3")):
        usable = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))"
        try:
            done = subprocess.run([python, "-c", usable], env={}, cwd="/", capture_output=True, check=False, **user)
        except OSError:
            continue
        if done.returncode == 0:
            return [str(python.parent), "/usr/bin", "/bin"]
    raise AssertionError("no Python from 3.11 on that an ordinary user may run")
