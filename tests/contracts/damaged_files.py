"""Reads damaged copies of a small log of one kind, and prints what came of them; the tests run it as a process."""

from __future__ import annotations

import io
import json
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq

import artreplay as ar
from artreplay.errors import ArtReplayError

RNG = np.random.default_rng(0)
ROWS = 200
TABLE = pa.table(
    {
        "arm": [["red", "blue; dark", "grün"][arm] for arm in RNG.integers(0, 3, ROWS)],
        "click": RNG.integers(0, 2, ROWS).astype(float),
        "at": RNG.permutation(ROWS),
    }
)
NUMBERED = TABLE.set_column(0, "arm", TABLE.column("arm").dictionary_encode())
COLUMNS = {"unit": "arm", "reward": "click", "order": "at"}


def bytes_of(write: Callable[[Any, Any], Any], table: pa.Table = TABLE, **how: Any) -> Callable[[], bytes]:
    def written() -> bytes:
        file = io.BytesIO()
        write(table, file, **how)
        return file.getvalue()

    return written


def packed(text: bytes, kind: str) -> bytes:
    return bytes(pa.compress(text, codec=kind, asbytes=True)) if kind == "raw" else _streamed(text, kind)


def _streamed(text: bytes, kind: str) -> bytes:
    file = pa.BufferOutputStream()
    with pa.CompressedOutputStream(file, kind) as stream:
        stream.write(text)
    return bytes(file.getvalue())


def stream_of(table: pa.Table) -> bytes:
    file = io.BytesIO()
    with pa.ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table, max_chunksize=50)
    return file.getvalue()


def database(kind: str) -> bytes:
    path = Path(sys.argv[4]) / "made.db"
    if kind == "duckdb":
        with duckdb.connect(str(path)) as connection:
            connection.register("given", TABLE)
            connection.execute("CREATE TABLE log AS SELECT * FROM given")
    else:
        import sqlite3

        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE log (arm TEXT, click REAL, at INTEGER)")
        connection.executemany("INSERT INTO log VALUES (?, ?, ?)", zip(*TABLE.to_pydict().values(), strict=True))
        connection.commit()
        connection.close()
    return path.read_bytes()


TEXT = bytes_of(pyarrow.csv.write_csv)
JSON = pl.from_arrow(TABLE).write_ndjson().encode()
KINDS: dict[str, Callable[[], bytes]] = {
    "log.csv": TEXT,
    "utf-16.csv": lambda: TEXT().decode().encode("utf-16"),
    "log.csv.gz": lambda: packed(TEXT(), "gzip"),
    "log.csv.zst": lambda: packed(TEXT(), "zstd"),
    "log.csv.bz2": lambda: packed(TEXT(), "bz2"),
    "log.csv.lz4": lambda: packed(TEXT(), "lz4"),
    "log.jsonl": lambda: JSON,
    "log.json": lambda: json.dumps(TABLE.to_pylist()).encode(),
    "log.parquet": bytes_of(pq.write_table),
    "checked.parquet": bytes_of(pq.write_table, write_page_checksum=True),
    "log.feather": bytes_of(pyarrow.feather.write_feather),
    "plain.feather": bytes_of(pyarrow.feather.write_feather, compression="uncompressed"),
    "numbered.feather": bytes_of(pyarrow.feather.write_feather, NUMBERED, compression="uncompressed"),
    "log.stream": lambda: stream_of(TABLE),
    "numbered.stream": lambda: stream_of(NUMBERED),
    "log.db": lambda: database("sqlite"),
    "log.duckdb": lambda: database("duckdb"),
}


def flipped(data: bytes, rng: np.random.Generator) -> bytes:
    damaged = bytearray(data)
    damaged[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
    return bytes(damaged)


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """Bytes that were flipped, cut off, doubled or put in."""
    first, last = sorted(rng.integers(0, len(data) + 1, 2).tolist())
    return (
        lambda: flipped(data, rng),
        lambda: data[:first],
        lambda: data[:last] + data[first:],
        lambda: data[:first] + rng.bytes(int(rng.integers(1, 20))) + data[first:],
        lambda: data[:first] + data[last:],
    )[rng.integers(5)]()


def opened(path: Path) -> ar.History:
    if path.suffix == ".stream":
        try:
            stream = pa.ipc.open_stream(path.read_bytes())
        except (pa.ArrowException, OSError) as error:  # not ours
            raise ArtReplayError(str(error)) from error
        return ar.open_history(stream, **COLUMNS)
    return ar.open_history(path, **COLUMNS, table="log" if path.suffix in (".db", ".duckdb") else None)


def outcome(path: Path, expected: ar.History) -> str:
    """What comes of a file; the state file says which one it was if the process ends."""
    try:
        found = opened(path)
    except ArtReplayError as error:
        return "refused" if len(str(error)) < 2_000 else "too much is said"
    except BaseException:
        traceback.print_exc()
        return "traceback"
    same = found.labels == expected.labels and found.rewards.tobytes() == expected.rewards.tobytes()
    return "same" if same and len(found) == ROWS else "other"


def main(kind: str, how: str, count: int, folder: Path) -> None:
    warnings.simplefilter("ignore")
    data, path, rng = KINDS[kind](), folder / kind, np.random.default_rng(1)
    path.write_bytes(data)
    expected, found = opened(path), Counter[str]()
    assert len(expected) == ROWS
    for number in range(count):
        damaged = (flipped if how == "flipped" else mutated)(data, rng)
        path.write_bytes(damaged)
        (folder / "last").write_text(str(number))
        found[outcome(path, expected)] += 1
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
