"""Where things are: every file has a name of its own."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import artreplay

PACKAGE = Path(artreplay.__file__).parent
BEING_REPLACED = ("history/sources/", "history/stores/", "patrol/readers/")


def test_no_two_files_of_the_package_have_the_same_name() -> None:
    paths = [path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py") if path.stem not in ("__init__", "__main__")]
    settled = [path for path in paths if not path.as_posix().startswith(BEING_REPLACED)]
    names = Counter(path.name for path in settled)
    assert [str(path) for path in settled if names[path.name] > 1] == []
