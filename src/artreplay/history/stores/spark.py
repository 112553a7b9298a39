"""Clustered Parquet written by Spark, for logs that no single machine sorts.

Give `write_clustered` a DataFrame; `ar.open_history(path)` reads what it writes, from disk or from a bucket.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from artreplay.errors import InvalidFile, InvalidHistory
from artreplay.history.stores.clustered import MANIFEST, describe, write_directory
from artreplay.optional_packages import needed


def write_clustered(frame: Any, path: str, unit: str, reward: str, order: str) -> None:
    """Sort a Spark DataFrame by (arm, order) into a new folder that every worker sees; values of `order` are distinct.

    Rows are numbered in their order without bringing them to one place: Spark numbers them inside the partitions of a
    sorted frame, and the sizes of the partitions say where each begins.
    """
    functions = needed("pyspark.sql.functions", "writing by Spark", extra="spark")
    target = Path(path)
    if target.exists():
        raise InvalidFile("exists already: choose another name", file=path)
    named = frame.select(
        functions.col(unit).alias("arm"),
        functions.col(reward).cast("double").alias("reward"),
        functions.col(order).alias("at"),
    )
    missing = functions.col("arm").isNull() | functions.col("reward").isNull() | functions.isnan("reward")
    if named.filter(missing | functions.col("at").isNull()).limit(1).count():
        raise InvalidHistory("a row of the log lacks its unit, its reward or its order")
    placed = named.orderBy("at").withColumn("id", functions.monotonically_increasing_id()).persist()
    try:
        numbered = _numbered(placed, functions)
        numbered.orderBy("arm", "row").select("row", "reward").write.parquet(path)
        found = placed.groupBy("arm").count().orderBy("arm").collect()
        low, high = placed.agg(functions.min("reward"), functions.max("reward")).collect()[0]
    finally:
        placed.unpersist()
    for extra in (*target.glob("_*"), *target.glob(".*")):  # marks of Spark, and checksums of its file system
        extra.unlink() if extra.is_file() else shutil.rmtree(extra)
    counts = [int(row["count"]) for row in found]
    write_directory(target, [row["arm"] for row in found], counts)
    files = sorted(file.name for file in target.glob("part-*.parquet"))
    columns = {"unit": unit, "reward": reward, "level": None, "order": order}
    rewards = None if low is None else (float(low), float(high))
    (target / MANIFEST).write_text(describe(sum(counts), files, rewards, columns), encoding="utf-8")


def _numbered(placed: Any, functions: Any) -> Any:
    """The frame with the number of each row: its place in its partition, and the sizes of those before."""
    partition, place = functions.shiftright("id", 33), functions.col("id").bitwiseAND((1 << 33) - 1)
    sizes = placed.groupBy(partition.alias("partition")).count().orderBy("partition").collect()
    first, before = {}, 0
    for row in sizes:
        first[int(row["partition"])] = before
        before += int(row["count"])
    if not first:
        return placed.withColumn("row", functions.col("id"))
    pairs = [functions.lit(value) for pair in first.items() for value in pair]
    return placed.withColumn("row", (functions.create_map(*pairs)[partition] + place).cast("long"))
