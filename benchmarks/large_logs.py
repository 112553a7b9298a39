"""How the cost of a log grows with its length, and what 10¹⁰ rows would cost if it went on growing like that.

    python benchmarks/large_logs.py            measures, writes docs/results/large_logs.csv and docs/large-logs.md
    python benchmarks/large_logs.py --table    writes the table from the results that are there
    python benchmarks/large_logs.py --check    says whether the table is as the results have it

ROWS=1e5,1e6,1e7 says how long the logs are; FOLDER is where they are made, SPARK=1 measures Spark too.
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

import pyarrow as pa
import pyarrow.parquet as pq
from tables_in_pages import filled, table

DOCS = Path(__file__).parent.parent / "docs"
RESULTS = DOCS / "results" / "large_logs.csv"
PAGE = DOCS / "large-logs.md"
ARMS = 1_000
FAR = 10**10
HORIZON = 1_000
SIZES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B"))
UNITS: dict[str, Callable[[float], str]] = {
    "seconds": lambda value: f"{_short(value)} s" if value < 600 else f"{_short(value / 3600)} h",
    "bytes": lambda value: next(f"{_short(value / size)} {name}" for size, name in SIZES if value >= size),
    "count": lambda value: f"{value:,.0f}",
}
LINES = {
    "source": ("the log as Parquet", "bytes"),
    "layout": ("laying it out on one machine, processor time", "seconds"),
    "spark": ("laying it out by Spark on two cores, time", "seconds"),
    "store": ("the store", "bytes"),
    "replay seconds": ("first decision by replay, processor time", "seconds"),
    "replay bytes": ("read for it", "bytes"),
    "replay requests": ("requests for it", "count"),
}


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def measure(rows: int, folder: Path) -> dict[str, float]:
    """What a log of this length costs."""
    from stores import write_arms

    import artreplay as ar

    path = folder / f"log-{rows}.parquet"
    write_arms(path, rows, ARMS, "far apart")
    found: dict[str, float] = {"source": path.stat().st_size}
    started = time.process_time()
    ar.index_history(path, folder / f"store-{rows}", "arm", "click", format="parquet", memory="1GB")
    found["layout"] = time.process_time() - started
    found["store"] = size_of(folder / f"store-{rows}")
    base = ar.MonUCB(ARMS, HORIZON)
    started = time.process_time()
    policy = ar.ArtificialReplay(base, ar.open_history(folder / f"store-{rows}"))
    policy.ask()
    found["replay seconds"] = time.process_time() - started
    return found | {"replay bytes": policy.reading.bytes, "replay requests": policy.reading.requests}


def size_of(folder: Path) -> int:
    """The bytes of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def by_spark(lengths: list[int], folder: Path) -> dict[int, float]:
    """The time Spark takes to lay each log out, on two cores of this machine."""
    from pyspark.sql import SparkSession

    from artreplay.history.stores.spark import write_clustered

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.shuffle.partitions", "8").getOrCreate()
    found = {}
    try:
        for number, rows in enumerate([lengths[0], *lengths]):  # the first one warms up
            log = pq.read_table(folder / f"log-{rows}.parquet")
            numbered = log.append_column("seq", pa.array(range(rows), pa.int64()))
            pq.write_table(numbered, folder / "numbered.parquet")
            started = time.perf_counter()
            place = f"{(folder / f'spark-{number}').as_uri()}"
            write_clustered(session.read.parquet(str(folder / "numbered.parquet")), place, "arm", "click", "seq")
            found[rows] = time.perf_counter() - started
    finally:
        session.stop()
    return found


def growth(points: list[tuple[int, float]]) -> float:
    """By what power something grows, from the longest two logs."""
    (few, less), (many, more) = points[-2:]
    return math.log(more / less) / math.log(many / few)


def costs() -> str:
    """The table of the page, from the results."""
    with RESULTS.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    lengths = sorted({int(row["rows"]) for row in rows})
    head = ["", *(f"10^{math.log10(length):.0f} rows" for length in lengths), "grows by the power", "so 10^10 rows"]
    lines = []
    for what, (name, unit) in LINES.items():
        points = sorted((int(row["rows"]), float(row["value"])) for row in rows if row["what"] == what)
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
        found: list[tuple[int, str, float]] = []
        with tempfile.TemporaryDirectory(dir=os.environ.get("FOLDER") or None) as place:
            folder = Path(place)
            measure(lengths[0], folder)  # the first one loads and compiles
            for rows in lengths:
                again: Any = folder / str(rows)
                again.mkdir()
                found += [(rows, what, value) for what, value in measure(rows, again).items()]
                (again / f"log-{rows}.parquet").rename(folder / f"log-{rows}.parquet")
                print(rows, found[-len(LINES) :], flush=True)
            if os.environ.get("SPARK"):
                found += [(rows, "spark", value) for rows, value in by_spark(lengths, folder).items()]
        with RESULTS.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("rows", "what", "value"), *found])
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
