"""Clustered Parquet written by Spark, for logs that no single machine sorts.

Give `write_clustered` a DataFrame; `ar.open_history(path)` reads what it writes, from disk or from a bucket.
"""

from __future__ import annotations

from typing import Any

from artreplay.addresses import shown
from artreplay.errors import InvalidFile, InvalidHistory, InvalidParameter
from artreplay.history.sources.log_columns import as_columns
from artreplay.history.sources.source_files import by_number
from artreplay.history.stores.clustered import DIRECTORY, GROUP, MANIFEST, describe, directory_bytes
from artreplay.optional_packages import needed

_NO_LABELS = ("float", "double", "decimal", "array", "map", "struct")
_NO_ORDER = ("string", "binary", "boolean", "array", "map", "struct")


def write_clustered(frame: Any, path: str, unit: str, reward: str, order: str) -> None:
    """Sort a Spark DataFrame by (arm, order) into a new folder, wherever Spark can write (`s3a://…`, a disk).

    The values of `order` must be distinct numbers or times. Rows are numbered without bringing them to one place: Spark
    numbers them inside the partitions of a sorted frame, and the sizes of the partitions say where each begins. Only
    the arms and their counts come to the driver. Manifest and directory go through the file system of Spark.
    """
    functions = needed("pyspark.sql.functions", "writing by Spark", extra="spark")
    columns = as_columns(unit, reward, None, order)
    columns.check(frame.columns)
    _check_types(frame, unit, order)
    folder = _Folder(frame.sparkSession, path)
    if folder.exists():
        raise InvalidFile("exists already: choose another name", file=folder.name)
    named = frame.select(
        functions.col(_quoted(unit)).alias("arm"),
        functions.col(_quoted(reward)).cast("double").alias("reward"),
        functions.col(_quoted(order)).alias("at"),
    )
    _check_rows(named, functions, order)
    placed = named.orderBy("at").withColumn("id", functions.monotonically_increasing_id()).persist()
    try:
        sizes = {"parquet.block.row.count.limit": str(GROUP), "parquet.block.size": str(16 * GROUP)}  # newer, older
        sorted_rows = _numbered(placed, functions).orderBy("arm", "row").select("row", "reward")
        sorted_rows.write.options(**sizes).parquet(path)
        found = placed.groupBy("arm").count().orderBy("arm").collect()
        low, high = placed.agg(functions.min("reward"), functions.max("reward")).collect()[0]
        counts = [int(row["count"]) for row in found]
        folder.write(DIRECTORY, directory_bytes([row["arm"] for row in found], counts))
        files = sorted(
            (name for name in folder.names() if name.endswith(".parquet") and name != DIRECTORY), key=by_number
        )
        rewards = None if low is None else (float(low), float(high))
        folder.write(MANIFEST, describe(sum(counts), files, rewards, columns._asdict()).encode())
    except BaseException:
        folder.remove()
        raise
    finally:
        placed.unpersist()


def _quoted(name: str) -> str:
    """A name of a column that may have dots in it."""
    return "`" + name.replace("`", "``") + "`"


def _check_types(frame: Any, unit: str, order: str) -> None:
    types = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    if types[unit].startswith(_NO_LABELS):
        raise InvalidHistory(f"labels must be whole numbers, texts or dates, column {unit!r} is of type {types[unit]}")
    if types[order].startswith(_NO_ORDER):
        raise InvalidHistory(
            f"an order must be a column of numbers or times, {order!r} is of type {types[order]}: cast it first"
        )


def _check_rows(named: Any, functions: Any, order: str) -> None:
    """Refuse rows that cannot be used, and rows that share their place in the order."""
    column = functions.col
    infinite = functions.abs(column("reward")) == functions.lit(float("inf"))
    missing = column("arm").isNull() | column("reward").isNull() | functions.isnan("reward") | infinite
    if named.filter(missing | column("at").isNull()).limit(1).count():
        raise InvalidHistory("a row of the log lacks its unit, its reward or its order")
    for row in named.groupBy("at").count().filter("count > 1").limit(1).collect():
        raise InvalidHistory(f"{order} must be different in every row, {row['count']} rows have {row['at']}")


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


class _Folder:
    """A folder in whatever file system Spark writes to."""

    def __init__(self, session: Any, path: str) -> None:
        if not hasattr(session, "_jvm") or session._jvm is None:
            raise InvalidParameter(
                "the session must be one that runs its own driver: Spark Connect shows no file system"
            )
        self.name = shown(path)
        self._java = session._jvm.org.apache.hadoop.fs
        self._path = self._java.Path(path)
        self._system = self._path.getFileSystem(session._jsc.hadoopConfiguration())

    def exists(self) -> bool:
        """Whether there is anything at this place."""
        return bool(self._system.exists(self._path))

    def names(self) -> list[str]:
        """The files in it."""
        return [str(status.getPath().getName()) for status in self._system.listStatus(self._path)]

    def write(self, name: str, data: bytes) -> None:
        """Write a whole file."""
        opened = self._system.create(self._java.Path(self._path, name))
        try:
            opened.write(bytearray(data))
        finally:
            opened.close()

    def remove(self) -> None:
        """Remove it, with all that is in it."""
        self._system.delete(self._path, True)
