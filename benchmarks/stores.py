"""Logs larger than memory: processor time to the first decision, rows read, peak memory.

Each is measured in a process of its own, and the best of some runs counts, because machines are shared. What was found
is kept in benchmarks/stores.csv, from which `store_tables.py` makes the tables and the figure of docs/how-to/logs.md.
ROWS=1e6,1e7 says how long the logs are, FOLDER where they are kept (they are made and indexed once), and ONLY what is
measured: arms, postgres, or both.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import artreplay as ar

HORIZON = 1_000
ARMS = (10, 1_000, 100_000)
MEANS = {"far apart": (0.0, 1.0), "close together": (0.45, 0.55), "click rates": (0.005, 0.05)}
RUNS = 5
RESULTS = Path(__file__).parent / "stores.csv"
FIELDS = ("rows", "arms", "means", "measure", "seconds", "read", "peak", "action")
CHUNK = 1 << 20
MAX_IN_POSTGRES = 10_000_000


# -- logs ---------------------------------------------------------------------------------------------------


def zipf(arms: int, means: str) -> tuple[Any, Any]:
    """How often each arm is in the log, and its mean: both known, so that a run can be judged."""
    share = 1.0 / np.arange(1, arms + 1)
    low, high = MEANS[means]
    return share / share.sum(), low + (high - low) * np.random.default_rng(arms).random(arms)


def write_arms(path: Path, rows: int, arms: int, means: str) -> None:
    share, mean = zipf(arms, means)
    rng = np.random.default_rng(0)
    edges = np.cumsum(share)
    schema = pa.schema([("arm", pa.int32()), ("click", pa.float64())])
    with pq.ParquetWriter(path, schema) as writer:
        for first in range(0, rows, CHUNK):
            size = min(CHUNK, rows - first)
            drawn = np.minimum(np.searchsorted(edges, rng.random(size)), arms - 1)
            clicks = (rng.random(size) < mean[drawn]).astype(float)
            writer.write_table(pa.table([drawn.astype(np.int32), clicks], schema=schema))


def made(path: Path, make: Callable[[Path], None]) -> float:
    """Make a file or folder unless it is there; the processor seconds it took, 0 if it was there."""
    if path.exists():
        return 0.0
    began = time.process_time()
    make(path.with_name("part-" + path.name))
    path.with_name("part-" + path.name).rename(path)
    return time.process_time() - began


# -- what is measured, each in a process of its own ---------------------------------------------------------------


def first_decision(policy: Callable[..., Any], base: Any, path: str) -> dict[str, Any]:
    """From opening a log to the first action, by compiled code that is loaded already."""
    best = float("inf")
    with ar.compiling.using("compiled"):
        for run in range(RUNS + 1):
            began = time.process_time()
            asked = policy(base, ar.open_history(path))
            action = asked.ask()
            took = time.process_time() - began
            best = min(best, took) if run else best
            if took > 10 and run:
                break
    return {"seconds": best, "action": action, "used": asked.reading.used, "read": asked.reading.rows}


def replay(path: str, arms: str) -> dict[str, Any]:
    return first_decision(ar.ArtificialReplay, ar.MonUCB(int(arms), HORIZON), path)


def full_start(path: str, arms: str) -> dict[str, Any]:
    return first_decision(ar.FullStart, ar.MonUCB(int(arms), HORIZON), path)


def group_by(path: str, arms: str) -> dict[str, Any]:
    """Counts and sums by DuckDB, loaded at once: not the same algorithm, but often what people have."""
    query = f"SELECT arm, count(*), sum(click) FROM '{path}' GROUP BY arm"

    def choose(found: dict[str, Any]) -> int:
        totals = ar.Totals(*(column.tolist() for column in found.values()))
        return int(ar.FullStart(ar.MonUCB(int(arms), HORIZON), totals).ask())

    return by_duckdb(path, query, choose)


def window(path: str, arms: str) -> dict[str, Any]:
    """The running minimum of the index by a window function of DuckDB: exact, as full start is."""
    index = f"sum(click) OVER w / row_number() OVER w + sqrt({2 * np.log(HORIZON)} / row_number() OVER w)"
    log = f"read_parquet('{path}', file_row_number=true)"
    frame = "PARTITION BY arm ORDER BY file_row_number ROWS UNBOUNDED PRECEDING"
    inner = f"SELECT arm, {index} AS bound FROM {log} WINDOW w AS ({frame})"
    query = f"SELECT arm, least(1.0, min(bound)) AS lowest FROM ({inner}) GROUP BY arm"

    def choose(found: dict[str, Any]) -> int:
        indices = np.ones(int(arms))
        indices[found["arm"]] = found["lowest"]
        return int(np.argmax(indices))

    return by_duckdb(path, query, choose)


def by_duckdb(path: str, query: str, choose: Callable[[dict[str, Any]], int]) -> dict[str, Any]:
    import duckdb

    best = float("inf")
    for run in range(RUNS + 1):
        began = time.process_time()
        with duckdb.connect() as connection:
            action = choose(connection.execute(query).fetchnumpy())
        took = time.process_time() - began
        best = min(best, took) if run else best
        if took > 5:
            best = min(best, took)
            break
    return {"seconds": best, "action": action, "read": pq.read_metadata(path).num_rows}


def from_postgres(path: str, arms: str) -> dict[str, Any]:
    """Replay page by page beside the server's own aggregate; filling the table is not counted."""
    import psycopg

    with server() as address, psycopg.connect(address) as connection:
        connection.execute("CREATE TABLE log (arm int, click float8, seq bigint)")
        row = 0
        with connection.cursor() as cursor, cursor.copy("COPY log FROM STDIN (FORMAT csv)") as copy:
            for batch in pq.ParquetFile(path).iter_batches(CHUNK):
                seq = np.arange(row, row + len(batch))
                row += len(batch)
                sink = pa.BufferOutputStream()
                pa.csv.write_csv(pa.table([*batch.columns, seq], names=["arm", "click", "seq"]), sink, NO_HEADER)
                copy.write(sink.getvalue().to_pybytes())
        connection.execute("CREATE INDEX ON log (arm, seq) INCLUDE (click)")
        connection.commit()
        connection.autocommit = True
        connection.execute("VACUUM ANALYZE log")
        found = measured("paged", address, arms)  # in a process that has not filled the table: its memory counts
        began = time.perf_counter()
        connection.execute("SELECT arm, count(*), sum(click) FROM log GROUP BY arm").fetchall()
        return found | {"aggregate": time.perf_counter() - began}


def paged(address: str, arms: str) -> dict[str, Any]:
    base = ar.MonUCB(int(arms), HORIZON)
    columns = {"unit": "arm", "reward": "click", "order": "seq", "table": "log"}
    with ar.compiling.using("compiled"):
        ar.ArtificialReplay(base, ar.open_history(address, **columns).first(2_000)).ask()
        began = time.perf_counter()
        policy = ar.ArtificialReplay(base, ar.open_history(address, **columns))
        action = policy.ask()
        seconds = time.perf_counter() - began
    return {"seconds": seconds, "action": action, "used": policy.reading.used, "read": policy.reading.rows}


@contextlib.contextmanager
def server() -> Iterator[str]:
    with warnings.catch_warnings(), tempfile.TemporaryDirectory(prefix="pg") as folder:
        warnings.simplefilter("ignore")
        import pgserver

        running = pgserver.get_server(folder, cleanup_mode="stop")
        try:
            yield running.get_uri()
        finally:
            running.cleanup()


MEASURES = {measure.__name__: measure for measure in (replay, full_start, group_by, window, from_postgres, paged)}


def measured(name: str, *arguments: object) -> dict[str, Any]:
    """One measurement in a fresh process."""
    command = [sys.executable, __file__, "measure", name, *map(str, arguments)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def peak_megabytes() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1000
    return float("nan")


# -- the report -----------------------------------------------------------------------------------------------------


def kept() -> list[dict[str, Any]]:
    """What was found so far."""
    if not RESULTS.exists():
        return []
    with open(RESULTS, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def keep(**found: Any) -> None:
    """Keep one result, in place of an earlier one of the same measure, and print it."""
    mine = {name: found.get(name, "") for name in FIELDS}
    same = ("rows", "arms", "means", "measure")
    others = [one for one in kept() if any(str(one[name]) != str(mine[name]) for name in same)]
    mine["seconds"], mine["peak"] = f"{found['seconds']:.5f}", f"{found.get('peak', 0):.0f}"
    with open(RESULTS, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows([*others, mine])
    print(", ".join(str(mine[name]) for name in FIELDS), flush=True)


def log_path(folder: Path, rows: int, arms: int, means: str) -> Path:
    """Where a log lies, as one file of Parquet in the order of its rows."""
    return folder / f"{rows}-{arms}-{means.replace(' ', '_')}.parquet"


def report_arms(folder: Path, rows: int, arms: int, means: str) -> None:
    log = log_path(folder, rows, arms, means)
    indexed = log.with_suffix(".indexed")
    what: dict[str, Any] = {"rows": rows, "arms": arms, "means": means}
    made(log, lambda path: write_arms(path, rows, arms, means))
    took = made(indexed, lambda path: ar.index_history(log, path, unit="arm", reward="click"))
    if took:
        keep(**what, measure="index", seconds=took)
    actions = {}
    for measure, place in {"full_start": indexed, "replay": indexed, "group_by": log, "window": log}.items():
        found = measured(measure, place, arms)
        actions[measure] = found["action"]
        keep(**what, measure=measure, **found)
    if actions["full_start"] != actions["replay"]:
        sys.exit("replay and full start differ: this must not be")


def report_postgres(folder: Path, rows: int, arms: int) -> None:
    log = log_path(folder, rows, arms, "far apart")
    made(log, lambda path: write_arms(path, rows, arms, "far apart"))
    found = measured("from_postgres", log, arms)
    what: dict[str, Any] = {"rows": rows, "arms": arms, "means": "PostgreSQL"}
    keep(**what, measure="replay", **found)
    keep(**what, measure="group_by", seconds=found["aggregate"], read=rows)


def wanted(name: str) -> bool:
    only = os.environ.get("ONLY", "")
    return not only or name in only.split(",")


def main() -> None:
    sizes = [int(float(size)) for size in (os.environ.get("ROWS") or "1e6").split(",")]
    with contextlib.ExitStack() as stack:
        where = os.environ.get("FOLDER") or stack.enter_context(tempfile.TemporaryDirectory())
        folder = Path(where)
        folder.mkdir(parents=True, exist_ok=True)
        for rows in sizes:
            for means in MEANS if wanted("arms") else ():
                for arms in ARMS:
                    report_arms(folder, rows, arms, means)
            for arms in ARMS if rows <= MAX_IN_POSTGRES and wanted("postgres") else ():
                report_postgres(folder, rows, arms)


if __name__ == "__main__":
    if sys.argv[1:2] == ["measure"]:
        import pyarrow.csv

        NO_HEADER = pyarrow.csv.WriteOptions(include_header=False)
        result = MEASURES[sys.argv[2]](*sys.argv[3:])
        print(json.dumps({"peak": peak_megabytes()} | result))
    else:
        main()
