"""How the cost of a log grows with its length, and what 10¹⁰ rows would cost if it went on growing like that.

The table is in docs/how-to/large-logs.md.

    python benchmarks/large_logs.py            measures, writes docs/results/large_logs.csv and the table
    python benchmarks/large_logs.py --table    writes the table from the results that are there
    python benchmarks/large_logs.py --check    says whether the table is as the results have it

ROWS=1e5,1e6,1e7 says how long the logs are, FOLDER where they are made; SPARK=1 measures Spark too. What is known of
other lengths stays.
"""

from __future__ import annotations

import csv
import math
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
from tables_in_pages import filled, table

DOCS = Path(__file__).parent.parent / "docs"
RESULTS = DOCS / "results" / "large_logs.csv"
PAGE = DOCS / "how-to" / "large-logs.md"
ARMS = 1_000
FAR = 10**10
HORIZON = 1_000
RUNS = 3  # of a decision: the best one counts
SIZES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B"))
TIMES = ((7200, "h"), (120, "min"), (1, "s"))
UNITS: dict[str, Callable[[float], str]] = {
    "seconds": lambda value: next(
        f"{_short(value / size)} {name}" for size, name in TIMES if value >= size or size == 1
    ),
    "bytes": lambda value: next(f"{_short(value / size)} {name}" for size, name in SIZES if value >= size),
    "count": lambda value: f"{value:,.0f}",
}
LINES = {
    "source": ("the log as one Parquet file, in the order of its rows", "bytes"),
    "index seconds": ("`index` on one machine, processor time", "seconds"),
    "index bytes": ("the folder that it makes", "bytes"),
    "duckdb seconds": ("sorting by DuckDB, processor time", "seconds"),
    "spark seconds": ("sorting by Spark on two cores, time", "seconds"),
    "adopt seconds": ("`index --sorted` over what DuckDB sorted, processor time", "seconds"),
    "decision seconds": ("first decision by replay, processor time", "seconds"),
    "decision bytes": ("bytes read for it", "bytes"),
    "decision requests": ("ranges of bytes read for it", "count"),
    "adopted seconds": ("first decision over what DuckDB sorted, processor time", "seconds"),
}


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def measure(rows: int, folder: Path) -> dict[str, float]:
    """What a log of this length costs."""
    from stores import write_arms

    import artreplay as ar

    log, indexed, by_duckdb = folder / f"log-{rows}.parquet", folder / f"indexed-{rows}", folder / f"duckdb-{rows}"
    write_arms(log, rows, ARMS, "far apart")
    found: dict[str, float] = {"source": log.stat().st_size}
    columns = {"unit": "arm", "reward": "click"}
    found["index seconds"] = seconds(lambda: ar.index_history(log, indexed, **columns, memory="1GB"))
    found["index bytes"] = sum(path.stat().st_size for path in indexed.iterdir())
    by_duckdb.mkdir()
    found["duckdb seconds"] = seconds(lambda: sort_by_duckdb(log, by_duckdb))
    adopt: Any = {**columns, "order": "seq", "already_sorted": True}
    found["adopt seconds"] = seconds(lambda: ar.index_history(by_duckdb, **adopt))
    decision = first_decision(indexed)
    return found | decision | {"adopted seconds": first_decision(by_duckdb)["decision seconds"]}


def seconds(work: Callable[[], object]) -> float:
    """The processor time that something takes."""
    began = time.process_time()
    work()
    return time.process_time() - began


def sort_by_duckdb(log: Path, folder: Path) -> None:
    """Sort a log as the page about logs says."""
    import duckdb

    rows = f"SELECT arm, click, file_row_number AS seq FROM read_parquet('{log}', file_row_number=true)"
    with duckdb.connect(config={"memory_limit": "1GB", "temp_directory": str(folder / "sorting")}) as connection:
        connection.execute(
            f"COPY ({rows} ORDER BY arm, seq) TO '{folder}/part-0.parquet' (FORMAT parquet, ROW_GROUP_SIZE 65_536)"
        )


def first_decision(folder: Path) -> dict[str, float]:
    """What the first decision of replay costs, from opening the log; and which part of the files it reads."""
    import artreplay as ar
    from artreplay.history.parquet.store_folder import StoredFile

    whole = StoredFile.read
    best = float("inf")
    for _ in range(RUNS):
        sizes: list[int] = []

        def counted(file: StoredFile, start: int, size: int, sizes: list[int] = sizes) -> bytes:
            sizes.append(size)
            return whole(file, start, size)

        def decide() -> None:
            ar.ArtificialReplay(ar.MonUCB(ARMS, HORIZON), ar.open_history(folder)).ask()

        with mock.patch.object(StoredFile, "read", counted), ar.compiling.using("compiled"):
            best = min(best, seconds(decide))
    return {"decision seconds": best, "decision bytes": sum(sizes), "decision requests": len(sizes)}


def by_spark(lengths: list[int], folder: Path) -> dict[int, float]:
    """The time Spark takes to sort each log as the page about logs says, on two cores of this machine."""
    from pyspark.sql import SparkSession

    import artreplay as ar

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.shuffle.partitions", "8").getOrCreate()
    found = {}
    try:
        for number, rows in enumerate([lengths[0], *lengths]):  # the first one warms up
            log = pq.read_table(folder / f"log-{rows}.parquet")
            numbered = log.append_column("seq", pa.array(range(rows), pa.int64()))
            pq.write_table(numbered, folder / "numbered.parquet")
            began = time.perf_counter()
            clicks = session.read.parquet(str(folder / "numbered.parquet")).orderBy("arm", "seq")
            clicks.write.option("parquet.block.row.count.limit", 65_536).parquet(str(folder / f"spark-{number}"))
            found[rows] = time.perf_counter() - began
            adopt: Any = {"unit": "arm", "reward": "click", "order": "seq", "already_sorted": True}
            ar.index_history(folder / f"spark-{number}", **adopt)
            first_decision(folder / f"spark-{number}")
    finally:
        session.stop()
    return found


def growth(points: list[tuple[int, float]]) -> float:
    """By what power something grows, from the longest two logs."""
    (few, less), (many, more) = points[-2:]
    return math.log(more / less) / math.log(many / few)


def results() -> dict[tuple[int, str], float]:
    """What is known, by the length of the log and what it is of."""
    with RESULTS.open(newline="", encoding="utf-8") as file:
        return {(int(row["rows"]), row["what"]): float(row["value"]) for row in csv.DictReader(file)}


def costs() -> str:
    """The table of the page, from the results."""
    found = results()
    lengths = sorted({rows for rows, _ in found})
    head = ["", *(f"10^{math.log10(length):.0f} rows" for length in lengths), "grows by the power", "so 10^10 rows"]
    lines = []
    for what, (name, unit) in LINES.items():
        points = sorted((rows, value) for (rows, one), value in found.items() if one == what)
        if len(points) < 2:
            continue
        known = dict(points)
        power = growth(points)
        far = points[-1][1] * (FAR / points[-1][0]) ** max(power, 1.0)  # what looks cheaper had a fixed cost
        cells = [UNITS[unit](known[length]) if length in known else "–" for length in lengths]
        lines.append([name, *cells, f"{power:.2f}", f"*{UNITS[unit](far)}*"])
    raised = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
    return re.sub(r"10\^(\d+)", lambda found: "10" + found[1].translate(raised), table(head, lines))


def page() -> str:
    """The page with its table."""
    return filled(PAGE.read_text(encoding="utf-8"), lambda name: costs())


def main() -> None:
    if sys.argv[1:] == ["--check"]:
        sys.exit(0 if page() == PAGE.read_text(encoding="utf-8") else f"{PAGE} is not as {RESULTS} has it")
    if sys.argv[1:] != ["--table"]:
        lengths = sorted(int(float(text)) for text in (os.environ.get("ROWS") or "1e5,1e6,1e7").split(","))
        found = results()
        with tempfile.TemporaryDirectory(dir=os.environ.get("FOLDER") or None) as place:
            folder = Path(place)
            (folder / "first").mkdir()
            measure(100_000, folder / "first")  # which loads and compiles
            for rows in lengths:
                measured = measure(rows, folder)
                found |= {(rows, what): value for what, value in measured.items()}
                print(rows, measured, flush=True)
            if os.environ.get("SPARK"):
                found |= {(rows, "spark seconds"): value for rows, value in by_spark(lengths, folder).items()}
        with RESULTS.open("w", newline="", encoding="utf-8") as file:
            values = [(*key, value) for key, value in sorted(found.items())]
            csv.writer(file, lineterminator="\n").writerows([("rows", "what", "value"), *values])
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
