"""A log laid out by Spark, which no machine sees as a whole, gives the decisions of one that we lay out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from artreplay.history.stores import clustered, spark
from store_logs import Log, played, random_log, stands

import artreplay as ar
from artreplay.errors import InvalidFile, InvalidHistory
from real_parts import spark_session

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore")]
BASE = ar.MonUCB(4, 20, bonus=ar.bonus.practical(0.5))


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    with spark_session() as started:
        yield started


@pytest.fixture
def log() -> Log:
    return random_log(BASE, 300, 1)


def rows_of(log: Log) -> list[tuple[Any, ...]]:
    return [
        (arm, click, place * 3) for place, (arm, click) in enumerate(zip(*log.table.to_pydict().values(), strict=True))
    ]


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_spark_writes_what_we_read(session, log, tmp_path, scheme):
    frame = session.createDataFrame(rows_of(log)[::-1], ["arm", "click", "at"]).repartition(3)
    place = f"{scheme}{tmp_path}/log"
    spark.write_clustered(frame, place, "arm", "click", "at")
    ar.index_history(log.table, tmp_path / "ours", format="parquet", **log.columns)
    for policy in (ar.ArtificialReplay, ar.FullStart):
        ours, in_memory = policy(BASE, ar.open_history(tmp_path / "ours")), policy(BASE, log.history())
        by_spark = policy(BASE, ar.open_history(place))
        assert played(by_spark, 8, 1) == played(ours, 8, 1) == played(in_memory, 8, 1)
        assert stands(by_spark) == stands(in_memory)
    assert ar.open_history(place).fingerprint.digests.tolist() == log.history().fingerprint.digests.tolist()
    with pytest.raises(InvalidFile, match="exists already"):
        spark.write_clustered(frame, place, "arm", "click", "at")


def test_everything_goes_through_the_file_system_of_spark(session, log, tmp_path):
    """Only Spark knows what `viewfs` stands for, as only it may know the way into a cluster."""
    session._jsc.hadoopConfiguration().set("fs.viewfs.mounttable.cluster.link./logs", f"file://{tmp_path}")
    frame = session.createDataFrame(rows_of(log), ["arm", "click", "at"])
    spark.write_clustered(frame, "viewfs://cluster/logs/new/log", "arm", "click", "at")
    opened = ar.ArtificialReplay(BASE, ar.open_history(tmp_path / "new" / "log"))
    assert played(opened, 8, 1) == played(ar.ArtificialReplay(BASE, log.history()), 8, 1)
    with pytest.raises(InvalidFile, match="viewfs://cluster/logs/new/log exists already"):
        spark.write_clustered(frame, "viewfs://cluster/logs/new/log", "arm", "click", "at")


def test_row_groups_are_as_long_as_ours(session, tmp_path, monkeypatch):
    monkeypatch.setattr(spark, "GROUP", 1000)
    frame = session.range(5000).selectExpr("id % 2 AS arm", "id % 3 AS click", "id AS at").coalesce(1)
    spark.write_clustered(frame, str(tmp_path / "log"), "arm", "click", "at")
    sizes = [
        pq.ParquetFile(path).metadata.row_group(number).num_rows
        for path in (tmp_path / "log").glob("part-*.parquet")
        for number in range(pq.ParquetFile(path).metadata.num_row_groups)
    ]
    assert sum(sizes) == 5000
    assert max(sizes) <= 1000
    assert clustered.GROUP == 1 << 16
    assert len(ar.open_history(tmp_path / "log")) == 5000


@pytest.mark.parametrize(
    ("rows", "types", "sentence"),
    [
        ([(1, None, 1), (1, 0.5, 2)], "arm int, click double, at int", "lacks its unit, its reward or its order"),
        ([(1, 1.0, 1), (2, 0.5, 1)], "arm int, click double, at int", "at must be different in every row, 2 rows"),
        ([(1, 1.0, "9:00")], "arm int, click double, at string", "'at' is of type string: cast it first"),
        ([(1.5, 1.0, 1)], "arm double, click double, at int", "labels must be whole numbers, texts or dates"),
        ([(1, 1.0, 1)], "arm int, clicks double, at int", r"one column 'click' \(reward=\)"),
    ],
)
def test_what_cannot_be_used_is_refused_and_nothing_is_left(session, tmp_path, rows, types, sentence):
    with pytest.raises(InvalidHistory, match=sentence):
        spark.write_clustered(session.createDataFrame(rows, types), str(tmp_path / "log"), "arm", "click", "at")
    assert list(tmp_path.iterdir()) == []


def test_an_empty_log_is_a_log(session, tmp_path):
    spark.write_clustered(
        session.createDataFrame([], "arm int, click double, at int"), str(tmp_path / "log"), "arm", "click", "at"
    )
    assert len(ar.open_history(tmp_path / "log")) == 0


def test_a_folder_that_spark_wrote_is_a_source(session, tmp_path):
    frame = session.range(20).selectExpr("id % 2 AS arm", "id % 3 AS click", "id AS at").repartition(12)
    frame.write.partitionBy("arm").parquet(str(tmp_path / "raw"))
    table = pa.table({"arm": [row % 2 for row in range(20)], "click": [row % 3 for row in range(20)]})
    history = ar.open_history(tmp_path / "raw", "arm", "click", order="at")
    assert (
        history.fingerprint.digests.tolist()
        == ar.History.from_frame(table, "arm", "click").fingerprint.digests.tolist()
    )
    assert Path(tmp_path / "raw" / "_SUCCESS").exists()
