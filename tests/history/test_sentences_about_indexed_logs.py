"""What is said of an indexed log that cannot be opened, or made, as it was asked for."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import artreplay as ar
from artreplay.errors import InvalidHistory, InvalidParameter

LOG = pa.table({"arm": [0, 0, 1], "click": [0.0, 1.0, 0.0], "seq": [5, 5, 6]})


@pytest.mark.parametrize("as_asked", [str, lambda path: path])
def test_until_names_the_line_that_cuts_a_log(tmp_path, as_asked):
    ar.index_history(LOG, tmp_path / "log", unit="arm", reward="click")
    with pytest.raises(InvalidParameter, match=r"ar\.open_history\('.*log'\)\.first\(2\) is this log as it was"):
        ar.open_history(as_asked(tmp_path / "log"), until=2)


def test_an_order_that_does_not_rise_is_told_with_its_column_and_row(tmp_path):
    pq.write_table(LOG, tmp_path / "part-1.parquet")
    sentence = r"part-1\.parquet: order \(column 'seq'\) in row 1 must rise inside an arm, and does not after the row"
    with pytest.raises(InvalidHistory, match=sentence):
        ar.index_history(tmp_path, unit="arm", reward="click", order="seq", already_sorted=True)
