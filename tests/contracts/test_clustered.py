"""Clustered Parquet: on disk, in a bucket, written by Spark."""

from __future__ import annotations

import json
import os

import fsspec
import pytest
from store_logs import Log, played, random_log, stands

import artreplay as ar
from artreplay.errors import InvalidFile, InvalidHistory, InvalidParameter

BASE = ar.MonUCB(4, 20, bonus=ar.bonus.practical(0.5))


@pytest.fixture
def log() -> Log:
    return random_log(BASE, 300, 1)


@pytest.fixture
def folder(log, tmp_path):
    ar.index_history(log.table, tmp_path / "log", format="parquet", **log.columns)
    return tmp_path / "log"


def as_in_memory(log: Log, place: object) -> None:
    for policy in (ar.ArtificialReplay, ar.FullStart):
        in_memory, in_parts = policy(BASE, log.history()), policy(BASE, ar.open_history(place))
        assert played(in_parts, 8, 1) == played(in_memory, 8, 1)
        assert stands(in_parts) == stands(in_memory)


def test_a_bucket_is_as_good_as_memory(log, folder):
    bucket = fsspec.filesystem("memory")
    bucket.put(f"{folder}/", "/bucket/log", recursive=True)
    try:
        as_in_memory(log, "memory://bucket/log")
    finally:
        bucket.rm("/bucket", recursive=True)


def test_bytes_are_counted(folder):
    policy = ar.ArtificialReplay(BASE, ar.open_history(folder))
    policy.ask()
    assert 0 < policy.reading.bytes <= (folder / "part-00000.parquet").stat().st_size
    assert policy.reading.requests == 1


def test_what_is_wrong_with_a_folder_is_said(folder):
    with pytest.raises(InvalidFile, match=r"memory://nowhere/artreplay\.json does not exist"):
        ar.open_history("memory://nowhere")
    with pytest.raises(InvalidFile, match="strange://x cannot be read"):
        ar.open_history("strange://x")
    with pytest.raises(InvalidParameter, match="until= does not go with clustered Parquet"):
        ar.open_history(folder, until=3)
    manifest = folder / "artreplay.json"
    kept = json.loads(manifest.read_text())
    for change, sentence in (
        ({"format": 9}, "clustered Parquet of format 9"),
        ({"rows": 7}, "must have 7 rows, its files have 300"),
        ({"magic": "?"}, "is not a log as clustered Parquet"),
    ):
        manifest.write_text(json.dumps(kept | change))
        with pytest.raises(InvalidFile, match=sentence):
            ar.open_history(folder)
    manifest.write_text(json.dumps(kept))
    (folder / "part-00000.parquet").write_bytes(b"PAR1")
    with pytest.raises(InvalidFile, match=r"part-00000\.parquet cannot be read as Parquet"):
        ar.open_history(folder)


def test_points_have_no_such_layout(tmp_path):
    log = random_log(ar.TreeUCB(1, 20), 20, 1)
    with pytest.raises(InvalidParameter, match='format must be "store", or, for logs of arms, "parquet"'):
        ar.index_history(log.table, tmp_path / "log", format="parquet", **log.columns)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_spark_writes_what_we_read(log, tmp_path):
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        sentence = (
            "the test of the Spark recipe needs pyspark: pip install pyspark, or leave it out with ALLOW_MISSING=1"
        )
        if os.environ.get("ALLOW_MISSING") != "1":
            pytest.fail(sentence)
        pytest.skip(sentence)
    from artreplay.history.stores.spark import write_clustered

    rows = [
        (arm, click, place * 3) for place, (arm, click) in enumerate(zip(*log.table.to_pydict().values(), strict=True))
    ]
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "3").getOrCreate()
    try:
        frame = spark.createDataFrame(rows[::-1], ["arm", "click", "at"]).repartition(3)
        write_clustered(frame, str(tmp_path / "log"), "arm", "click", "at")
        as_in_memory(log, tmp_path / "log")
        assert (
            ar.open_history(tmp_path / "log").fingerprint.digests.tolist() == log.history().fingerprint.digests.tolist()
        )
        with pytest.raises(InvalidFile, match="exists already"):
            write_clustered(frame, str(tmp_path / "log"), "arm", "click", "at")
        gaps = spark.createDataFrame([(1, None, 1), (1, 0.5, 2)], "arm int, click double, at int")
        with pytest.raises(InvalidHistory, match="lacks its unit, its reward or its order"):
            write_clustered(gaps, str(tmp_path / "gaps"), "arm", "click", "at")
    finally:
        spark.stop()
