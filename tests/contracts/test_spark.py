"""A log sorted by Spark, which no machine sees as a whole, gives the decisions of one that we lay out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from store_logs import Log, played, random_log, stands

import artreplay as ar
from artreplay.errors import InvalidHistory
from real_parts import spark_session

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore")]
BASE = ar.MonUCB(4, 20, bonus=ar.bonus.practical(0.5))
PAGE = Path(__file__).parents[2] / "docs/how-to/logs.md"


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    with spark_session() as started:
        yield started


@pytest.fixture
def log() -> Log:
    return random_log(BASE, 3000, 1)


def frame_of(session: Any, log: Log, first: int = 0, last: int | None = None) -> Any:
    rows = [(*row, place * 3) for place, row in enumerate(zip(*log.table.to_pydict().values(), strict=True))]
    return session.createDataFrame(rows[first:last][::-1], ["arm", "click", "at"]).repartition(5)


def recipe(frame: Any, folder: Path, files: int = 4, mode: str = "errorifexists") -> None:
    """One part of the arms in each file, rows of an arm in their order, and row groups of few bytes."""
    (
        frame.repartitionByRange(files, "arm", "at")
        .sortWithinPartitions("arm", "at")
        .write.option("parquet.block.size", 1 << 20)
        .option("parquet.block.row.count.limit", 1 << 16)
        .mode(mode)
        .parquet(str(folder))
    )


def recipe_of_the_docs(frame: Any, folder: Path) -> None:
    """The lines of docs/how-to/logs.md as they stand, but for the place."""
    (lines,) = re.findall(r"```python\n(clicks = spark\.table.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert "s3a://bucket/clicks" in lines
    frame.withColumnRenamed("at", "seq").createOrReplaceTempView("clicks")
    exec(lines.replace("s3a://bucket/clicks", str(folder)), {"spark": frame.sparkSession})


@pytest.mark.parametrize(("lay_out", "order"), [(recipe, "at"), (recipe_of_the_docs, "seq")])
def test_what_spark_sorted_gives_the_decisions_of_our_own_layout(lay_out, order, session, log, tmp_path):
    lay_out(frame_of(session, log), tmp_path / "log")
    ar.index_history(tmp_path / "log", already_sorted=True, unit="arm", reward="click", order=order)
    ar.index_history(log.table, tmp_path / "ours", **log.columns)
    assert len(list((tmp_path / "log").glob("part-*.parquet"))) > 1
    for policy in (ar.ArtificialReplay, ar.FullStart):
        ours, in_memory = policy(BASE, ar.open_history(tmp_path / "ours")), policy(BASE, log.history())
        by_spark = policy(BASE, ar.open_history(tmp_path / "log"))
        assert played(by_spark, 8, 1) == played(ours, 8, 1) == played(in_memory, 8, 1)
        assert stands(by_spark) == stands(in_memory)
    found = ar.open_history(tmp_path / "log").fingerprint.digests.tolist()
    assert found == log.history().fingerprint.digests.tolist()


def test_row_groups_have_as_many_rows_as_was_asked(session, tmp_path):
    frame = session.range(5000).selectExpr("id % 2 AS arm", "id % 3 AS click", "id AS at").coalesce(1)
    ordered = frame.orderBy("arm", "at").coalesce(1).write.option("parquet.block.row.count.limit", 1000)
    ordered.parquet(str(tmp_path / "log"))
    sizes = [
        pq.read_metadata(path).row_group(number).num_rows
        for path in (tmp_path / "log").glob("part-*.parquet")
        for number in range(pq.read_metadata(path).num_row_groups)
    ]
    assert sum(sizes) == 5000
    assert max(sizes) <= 1000


def test_spark_adds_files_to_a_folder(session, log, tmp_path):
    """Names of files that Spark adds begin with the same part-00000, so a day is a folder of its own, moved in."""
    recipe(frame_of(session, log, 0, 2000), tmp_path / "log")
    ar.index_history(tmp_path / "log", already_sorted=True, unit="arm", reward="click", order="at")
    before = ar.ArtificialReplay(BASE, ar.open_history(tmp_path / "log"))
    recipe(frame_of(session, log, 2000), tmp_path / "tuesday")
    for path in (tmp_path / "tuesday").glob("part-*.parquet"):
        path.rename(tmp_path / "log" / f"tuesday-{path.name}")
    ar.index_history(tmp_path / "log", already_sorted=True)
    before.extend(ar.open_history(tmp_path / "log"))
    assert played(before, 8, 1) == played(ar.ArtificialReplay(BASE, log.history()), 8, 1)


def test_what_was_not_sorted_is_refused(session, log, tmp_path):
    frame_of(session, log).coalesce(1).write.parquet(str(tmp_path / "log"))
    with pytest.raises(InvalidHistory, match="Write each file sorted by arm and order"):
        ar.index_history(tmp_path / "log", already_sorted=True, unit="arm", reward="click", order="at")


def test_a_folder_that_spark_wrote_is_a_source(session, tmp_path):
    frame = session.range(20).selectExpr("id % 2 AS arm", "id % 3 AS click", "id AS at").repartition(12)
    frame.write.parquet(str(tmp_path / "raw"))
    frame.write.partitionBy("arm").parquet(str(tmp_path / "by arm"))
    table = pa.table({"arm": [row % 2 for row in range(20)], "click": [row % 3 for row in range(20)]})
    expected = ar.History.from_frame(table, "arm", "click").fingerprint.digests.tolist()
    for source in (tmp_path / "raw", pyarrow.dataset.dataset(tmp_path / "by arm", partitioning="hive")):
        assert ar.open_history(source, "arm", "click", order="at").fingerprint.digests.tolist() == expected
    assert Path(tmp_path / "raw" / "_SUCCESS").exists()
