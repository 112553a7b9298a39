"""How much `artreplay serve` does, beside twenty lines of Thompson sampling over PostgreSQL, and beside nothing at all.

    make bench-serve                 both, in turns, about two minutes
    make bench-serve SECONDS=3       a first look
    make bench-serve ARMS=1000

64 clients ask for a decision, tell its reward, and ask again, over raw sockets and from one thread, on the cores that
the services use too. Every answer is durable. FastAPI that does nothing is measured as well, because no service over it
can do more. It and the twenty lines have two workers each. The slower half of the table is at half of the rate that
was reached. Results go into docs/results/serve.csv, and the tables of docs/how-to/serving.md are written from there.
"""

from __future__ import annotations

import csv
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from load import Request, Result, load

import artreplay as ar

ARMS = int(os.environ.get("ARMS") or 80)
SECONDS = float(os.environ.get("SECONDS") or 10)
CLIENTS, TURNS, WARM_UP = 64, int(os.environ.get("TURNS") or 3), 3.0
RESULTS = Path(__file__).parent.parent / "docs/results/serve.csv"

Ask = tuple[int, Callable[[int], Request], Callable[[Any, int], Request]]


@contextmanager
def served(place: str) -> Iterator[Ask]:
    """Serve a study."""
    base = ar.KLUCB(arms=[f"item {number}" for number in range(ARMS)], horizon=1_000_000)
    ar.Study.create(place, base, wait=None).close()
    command = [sys.executable, "-m", "artreplay", "serve", "--port", "0", place]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    found = next(found for line in process.stderr if (found := re.search(r"on http://[^ ]*:(\d+)$", line.strip())))
    base_path = f"/v1/studies/{'shop' if '#' in place else 'items'}"
    try:
        yield (
            int(found[1]),
            lambda turn: ("POST", f"{base_path}/decisions", {"request_id": f"{time.time()} {turn}"}),
            lambda made, turn: ("PUT", f"{base_path}/decisions/{made['id']}/reward", {"value": float(turn % 25 == 0)}),
        )
    finally:
        process.terminate()
        process.wait()
        process.stderr.close()


@contextmanager
def by_hand(address: str) -> Iterator[Ask]:
    """Serve the twenty lines."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS arms, decisions")
        connection.execute("CREATE TABLE arms (arm int PRIMARY KEY, wins int DEFAULT 0, losses int DEFAULT 0)")
        connection.execute("CREATE TABLE decisions (id bigserial PRIMARY KEY, arm int, reward float8)")
        connection.execute("INSERT INTO arms (arm) SELECT generate_series(1, %s)", [ARMS])
    with two_workers("thompson_over_postgres:app", PLACE=address) as asked:
        yield asked


@contextmanager
def two_workers(app: str, **environment: str) -> Iterator[Ask]:
    """Serve an application from two workers."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", app, "--workers", "2", "--port", str(port), "--log-level", "error"]
    process = subprocess.Popen(command, cwd=Path(__file__).parent, env=os.environ | environment)
    try:
        until = time.monotonic() + 60.0
        while time.monotonic() < until:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.1)
        time.sleep(2.0)
        yield (
            port,
            lambda turn: ("POST", "/decide", {}),
            lambda made, turn: ("POST", "/reward", {"id": made["id"], "value": float(turn % 25 == 0)}),
        )
    finally:
        process.terminate()
        process.wait()


def measured(name: str, service: Any) -> Iterator[dict[str, Any]]:
    """Measure a service at full speed, and then at half of that."""
    with service as (port, decide, reward):
        load(port, CLIENTS, WARM_UP, decide, reward)
        full = load(port, CLIENTS, SECONDS, decide, reward)
        half = load(port, CLIENTS, SECONDS, decide, reward, full.pairs_per_second / 2)
    for rate, result in (("full", full), ("half", half)):
        if result.errors:
            raise SystemExit(f"{name}: {result.errors} requests were refused")
        yield row(name, rate, result)


def row(name: str, rate: str, result: Result) -> dict[str, Any]:
    """Return a result as a row of the file."""
    pairs = round(result.pairs_per_second)
    return {"part": "serve", "what": name, "rate": rate, "arms": ARMS, "pairs": pairs,
            "p50": round(1000 * result.p50, 1), "p99": round(1000 * result.p99, 1)}  # fmt: skip


def main() -> None:
    """Measure all services in turns, and keep the median turn of each."""
    warnings.simplefilter("ignore")
    import pgserver

    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        server = pgserver.get_server(f"{folder}/postgres", cleanup_mode="stop")
        address = server.get_uri()
        for turn in range(TURNS):
            with psycopg.connect(address, autocommit=True) as connection:
                connection.execute("DROP SCHEMA IF EXISTS shop CASCADE")
            Path(f"{folder}/{turn}").mkdir()
            services = {
                "artreplay serve, SQLite": served(f"{folder}/{turn}/items.study"),
                "artreplay serve, PostgreSQL": served(f"{address}#shop"),
                "twenty lines, PostgreSQL, two workers": by_hand(address),
                "FastAPI that does nothing, two workers": two_workers("nothing_at_all:app"),
            }
            for name, service in services.items():
                for one in measured(name, service):
                    print(one, flush=True)
                    found.setdefault((name, one["rate"]), []).append(one)
        server.cleanup()
    rows = [sorted(turns, key=lambda one: one["pairs"])[len(turns) // 2] for turns in found.values()]
    with RESULTS.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
