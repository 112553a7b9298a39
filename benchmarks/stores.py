"""Logs larger than memory: time to the first decision, rows and bytes read, peak memory, each in a process of its own.

ROWS=1e6,1e7 says how long the logs are, FOLDER where they are kept (they are made once), ONLY what is measured.
"""

from __future__ import annotations

import contextlib
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
ARMS = (10, 1_000)
CHUNK = 1 << 20
MOST_IN_POSTGRES = 10_000_000
MOST_POINTS = 10_000_000


# -- logs ---------------------------------------------------------------------------------------------------


def zipf(arms: int) -> tuple[Any, Any]:
    """How often each arm is in the log, and its mean: both known, so that a run can be judged."""
    share = 1.0 / np.arange(1, arms + 1)
    return share / share.sum(), np.random.default_rng(arms).random(arms)


def write_arms(path: Path, rows: int, arms: int) -> None:
    share, means = zipf(arms)
    rng = np.random.default_rng(0)
    edges = np.cumsum(share)
    schema = pa.schema([("arm", pa.int32()), ("click", pa.float64())])
    with pq.ParquetWriter(path, schema) as writer:
        for first in range(0, rows, CHUNK):
            size = min(CHUNK, rows - first)
            drawn = np.minimum(np.searchsorted(edges, rng.random(size)), arms - 1)
            clicks = (rng.random(size) < means[drawn]).astype(float)
            writer.write_table(pa.table([drawn.astype(np.int32), clicks], schema=schema))


def write_points(path: Path, rows: int) -> None:
    rng = np.random.default_rng(1)
    with pq.ParquetWriter(path, pa.schema([(name, pa.float64()) for name in ("x", "y", "found")])) as writer:
        for first in range(0, rows, CHUNK):
            points = rng.random((min(CHUNK, rows - first), 2))
            mean = 1.0 - ((points - 0.5) ** 2).sum(axis=1)
            found = (rng.random(len(points)) < mean).astype(float)
            writer.write_table(pa.table({"x": points[:, 0], "y": points[:, 1], "found": found}))


def made(path: Path, make: Callable[[Path], None]) -> float:
    """Make a file or folder unless it is there; the seconds it took, 0 if it was there."""
    if path.exists():
        return 0.0
    began = time.perf_counter()
    make(path.with_name("part-" + path.name))
    path.with_name("part-" + path.name).rename(path)
    return time.perf_counter() - began


# -- what is measured, each in a process of its own ---------------------------------------------------------------


def warmed_up(policy: Callable[..., Any], base: Any, path: str) -> None:
    """Load the compiled loops, which are on disk after the first time."""
    history = ar.open_history(path, until=min(2_000, len(ar.open_history(path))))
    policy(base, history).ask()


def first_decision(policy: Callable[..., Any], base: Any, path: str, warm: str = "") -> dict[str, Any]:
    """From opening a log to the first action. `warm` is a store of arms to warm up with, if the log cannot be cut."""
    with ar.compiling.using("compiled"):
        warmed_up(policy, base, warm or path)
        began = time.perf_counter()
        asked = policy(base, ar.open_history(path))
        action = asked.ask()
        seconds = time.perf_counter() - began
    read = asked.reading
    return {"seconds": seconds, "action": action, "used": read.used, "rows": read.rows, "bytes": read.bytes}


def replay(path: str, arms: str) -> dict[str, Any]:
    return first_decision(ar.ArtificialReplay, ar.MonUCB(int(arms), HORIZON), path)


def clustered(path: str, arms: str, store: str) -> dict[str, Any]:
    return first_decision(ar.ArtificialReplay, ar.MonUCB(int(arms), HORIZON), path, warm=store)


def full_start(path: str, arms: str) -> dict[str, Any]:
    return first_decision(ar.FullStart, ar.MonUCB(int(arms), HORIZON), path)


def group_by(path: str, arms: str) -> dict[str, Any]:
    """Counts and sums by DuckDB, loaded at once: not the same algorithm, but often what people have."""
    import duckdb

    began = time.perf_counter()
    with duckdb.connect() as connection:
        found = connection.execute(f"SELECT arm, count(*), sum(click) FROM '{path}' GROUP BY arm").fetchall()
    counts, totals = np.zeros(int(arms), np.int64), np.zeros(int(arms))
    for arm, count, total in found:
        counts[arm], totals[arm] = count, total
    base = ar.MonUCB(int(arms), HORIZON)
    base.load(counts, totals)
    action = ar.Ignorant(base).ask()
    seconds = time.perf_counter() - began
    return {"seconds": seconds, "action": action, "rows": int(counts.sum()), "bytes": Path(path).stat().st_size}


def tree(path: str) -> dict[str, Any]:
    """A whole run over points: the first decision and the online rounds after it."""
    rng = np.random.default_rng(2)
    with ar.compiling.using("compiled"):
        base = ar.TreeUCB(2, HORIZON, epsilon=2**-8)
        warmed_up(ar.ArtificialReplay, base, path)
        began = time.perf_counter()
        policy = ar.ArtificialReplay(base, ar.open_history(path))
        policy.ask()
        seconds = time.perf_counter() - began
        for _ in range(HORIZON):
            point = policy.ask()
            policy.tell(point, float(rng.random() < 1.0 - sum((x - 0.5) ** 2 for x in point)))
    read = policy.reading
    return {"seconds": seconds, "used": read.used, "rows": read.rows, "bytes": read.bytes}


def tree_full_start(path: str) -> dict[str, Any]:
    return first_decision(ar.FullStart, ar.TreeUCB(2, HORIZON, epsilon=2**-8), path)


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
        ar.ArtificialReplay(base, ar.open_history(address, until=2_000, allow_scan=True, **columns)).ask()
        began = time.perf_counter()
        policy = ar.ArtificialReplay(base, ar.open_history(address, **columns))
        action = policy.ask()
        seconds = time.perf_counter() - began
    read = policy.reading
    return {"seconds": seconds, "action": action, "used": read.used, "rows": read.rows, "bytes": read.bytes}


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


MEASURES = {
    measure.__name__: measure
    for measure in (replay, clustered, full_start, group_by, tree, tree_full_start, from_postgres, paged)
}


def measured(name: str, *arguments: object) -> dict[str, Any]:
    """One measurement in a fresh process, twice; the second counts, so that code and files are warm."""
    command = [sys.executable, __file__, "measure", name, *map(str, arguments)]
    times = 1 if name == "from_postgres" else 2
    for _ in range(times):
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def peak_megabytes() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1000
    return float("nan")


# -- the report -----------------------------------------------------------------------------------------------------


def row(name: str, found: dict[str, Any], full: dict[str, Any]) -> str:
    sooner = f"{full['seconds'] / found['seconds']:8.1f}×"
    share = f"{100 * found['bytes'] / full['bytes']:7.2f} %"
    read = f"{found['rows']:>14,}{found['bytes'] / 1e6:>11,.1f} MB"
    return f"  {name:<34}{found['seconds']:9.3f} s{sooner}{read}{share}{found['peak']:6.0f} MB"


def report_arms(folder: Path, rows: int, arms: int) -> None:
    log, store = folder / f"arms-{arms}-{rows}.parquet", folder / f"arms-{arms}-{rows}.arh"
    made(log, lambda path: write_arms(path, rows, arms))
    parquet = folder / f"arms-{arms}-{rows}.clustered"
    columns = {"unit": "arm", "reward": "click"}
    took = made(store, lambda path: ar.index_history(log, path, **columns))
    made(parquet, lambda path: ar.index_history(log, path, format="parquet", **columns))
    full = measured("full_start", store, arms)
    replayed = measured("replay", store, arms)
    by_groups = measured("clustered", parquet, arms, store)
    grouped = measured("group_by", log, arms)
    best = replayed["action"]
    print(
        f"\n{rows:,} rows, {arms:,} arms (Zipf); indexing took {took:.1f} s"
        if took
        else f"\n{rows:,} rows, {arms:,} arms (Zipf)"
    )
    print(f"  the arm that is played first has {100 * zipf(arms)[0][best]:.2f} % of the log; the ratios depend on it")
    print(f"  {'':<34}{'first decision':>11}{'sooner':>9}{'rows read':>14}{'bytes read':>14}{'of full':>9}{'peak':>9}")
    print(row("exact full start, store", full, full))
    print(row("replay, store", replayed, full))
    print(row("replay, clustered Parquet", by_groups, full))
    print(row("GROUP BY (another algorithm)", grouped, full))
    if grouped["action"] != full["action"]:
        print(f"  GROUP BY plays {grouped['action']}, full start and replay play {full['action']}")
    if {replayed["action"], by_groups["action"]} != {full["action"]}:
        sys.exit("replay and full start differ: this must not be")
    if rows <= MOST_IN_POSTGRES and wanted("postgres"):
        paged = measured("from_postgres", log, arms)
        print(row("replay, PostgreSQL", paged, full))
        ratio = paged["aggregate"] / paged["seconds"]
        print(f"  {'GROUP BY in PostgreSQL':<34}{paged['aggregate']:9.3f} s; replay is {ratio:.1f}× sooner")


def report_points(folder: Path, rows: int) -> None:
    log, store = folder / f"points-{rows}.parquet", folder / f"points-{rows}.arh"
    made(log, lambda path: write_points(path, rows))
    took = made(store, lambda path: ar.index_history(log, path, unit=["x", "y"], reward="found"))
    full, run = measured("tree_full_start", store), measured("tree", store)
    print(f"\n{rows:,} points in the unit square, TreeUCB with boxes down to 1/256; indexing took {took:.1f} s")
    print(row("exact full start, store", full, full))
    print(row(f"replay and {HORIZON:,} rounds, store", run, full))


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
            for arms in ARMS if wanted("arms") else ():
                report_arms(folder, rows, arms)
            if rows <= MOST_POINTS and wanted("points"):
                report_points(folder, rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["measure"]:
        import pyarrow.csv

        NO_HEADER = pyarrow.csv.WriteOptions(include_header=False)
        result = MEASURES[sys.argv[2]](*sys.argv[3:])
        print(json.dumps({"peak": peak_megabytes()} | result))
    else:
        main()
