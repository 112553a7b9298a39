"""What is said of an indexed log that cannot be opened as it was asked for."""

from __future__ import annotations

import pyarrow as pa
import pytest

import artreplay as ar
from artreplay.errors import InvalidParameter


@pytest.mark.parametrize("as_asked", [str, lambda path: path])
def test_until_names_the_line_that_cuts_a_log(tmp_path, as_asked):
    log = pa.table({"arm": [0, 0, 1], "click": [0.0, 1.0, 0.0]})
    ar.index_history(log, tmp_path / "log", unit="arm", reward="click")
    with pytest.raises(InvalidParameter, match=r"ar\.open_history\('.*log'\)\.first\(2\) for this log as it was"):
        ar.open_history(as_asked(tmp_path / "log"), until=2)
