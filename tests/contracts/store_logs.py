"""Random logs for an algorithm, and the places they can be opened from."""

from __future__ import annotations

import contextlib
import itertools
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import artreplay as ar
from artreplay.history.parquet import parquet_files, parquet_log
from artreplay.replay import reader

REWARDS = (0.0, 0.5, 1.0)


class Log(NamedTuple):
    """A log as a table, and the columns it has."""

    table: pa.Table
    columns: dict[str, Any]

    def history(self) -> ar.History:
        return ar.open_history(self.table, **self.columns)


def random_log(base: Any, rows: int, seed: int) -> Log:
    """A log that the base can take, with many ties."""
    rng = np.random.default_rng(seed)
    rewards = rng.choice(REWARDS, rows)
    if not hasattr(base, "lattice"):
        arms = list(getattr(base, "arms", range(4)))
        kind = pa.string() if isinstance(arms[0], str) else pa.int64()
        units = pa.array([arms[place] for place in rng.integers(0, len(arms), rows)], kind)
        return Log(pa.table({"arm": units, "click": rewards}), {"unit": "arm", "reward": "click"})
    low, high = base.lattice.low, base.lattice.high
    points = low + (high - low) * rng.integers(0, 9, (rows, base.dim)) / 8
    names = [f"x{axis}" for axis in range(base.dim)]
    table = {name: points[:, axis] for axis, name in enumerate(names)} | {"click": rewards}
    columns: dict[str, Any] = {"unit": names, "reward": "click"}
    if base.levels is not None:
        table["effort"] = rng.choice(base.levels, rows).astype(float)
        columns["level"] = "effort"
    return Log(pa.table(table), columns)


def indexed(log: Log, folder: Path) -> Any:
    ar.index_history(log.table, folder / "log", **log.columns)
    return ar.open_history(folder / "log")


def grown(log: Log, folder: Path) -> Any:
    half = len(log.table) // 2
    pq.write_table(log.table[:half], folder / "log.parquet")
    ar.index_history(folder / "log.parquet", folder / "log", **log.columns)
    pq.write_table(log.table, folder / "log.parquet")
    ar.append_history(folder / "log.parquet", folder / "log", grown=True)
    return ar.open_history(folder / "log")


def in_days(log: Log, folder: Path) -> Any:
    """A log to which short parts were added, some of which are merged."""
    cuts = [0, *sorted({len(log.table) * part // 16 for part in (9, 12, 13, 15)}), len(log.table)]
    ar.index_history(log.table[: cuts[1]], folder / "log", **log.columns)
    for first, last in itertools.pairwise(cuts[1:]):
        assert ar.append_history(log.table[first:last], folder / "log", grown=False) == last - first
    return ar.open_history(folder / "log")


def compacted(log: Log, folder: Path) -> Any:
    in_days(log, folder)
    ar.compact_history(folder / "log")
    return ar.open_history(folder / "log")


def as_it_was(log: Log, folder: Path) -> Any:
    """A longer log, as it was when it had its first rows."""
    return in_days(log._replace(table=pa.concat_tables([log.table, log.table[:7]])), folder).first(len(log.table))


def sorted_files(log: Log, folder: Path, files: int = 3, group: int = 3) -> Path:
    """The log as another engine writes it: each file sorted by arm and order, in row groups of a few rows."""
    numbered = log.table.append_column("at", pa.array(np.arange(len(log.table)) * 2 - 9))
    (folder / "adopted").mkdir()
    for number in range(files):
        rows = slice(len(numbered) * number // files, len(numbered) * (number + 1) // files)
        part = numbered[rows].sort_by([("arm", "ascending"), ("at", "ascending")])
        pq.write_table(part, folder / "adopted" / f"part-{number}.parquet", row_group_size=group)
    return folder / "adopted"


def adopted(log: Log, folder: Path) -> Any:
    place = sorted_files(log, folder)
    ar.index_history(place, already_sorted=True, order="at", **log.columns)
    return ar.open_history(place)


PLACES: dict[str, Callable[[Log, Path], Any]] = {
    "indexed": indexed,
    "grown": grown,
    "in days": in_days,
    "compacted": compacted,
    "as it was": as_it_was,
    "adopted": adopted,
}


@contextlib.contextmanager
def small_portions() -> Iterator[None]:
    """Logs are laid out, sorted, read and decoded a few rows at a time, so that a short log is many portions."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_files, "ROWS_PER_GROUP", 3)
        patch.setattr(parquet_files, "_GAP", 2)
        patch.setattr(parquet_log, "_BATCH_ROWS", 5)
        patch.setattr(reader, "_FIRST_ROWS", 1)
        yield


@contextlib.contextmanager
def opened(log: Log, place: str) -> Iterator[Any]:
    """The log in a place, in small portions."""
    with small_portions(), tempfile.TemporaryDirectory() as folder:
        yield PLACES[place](log, Path(folder))


def played(policy: Any, rounds: int, seed: int) -> list[Any]:
    """The actions of some rounds, each with the samples used before it; rewards depend on the round alone."""
    rng = np.random.default_rng(seed)
    actions = []
    for _ in range(rounds):
        action = policy.ask()
        actions.append((action, policy.used))
        draws = rng.choice(REWARDS, 8).tolist()
        policy.tell(action, draws[: len(action)] if isinstance(action, list) else draws[0])
    return actions


def stands(policy: Any) -> Any:
    """Everything that can be seen of a policy and its base."""
    base = policy.base
    if not hasattr(base, "component"):
        return vars(base), policy.used, policy.unused, policy.unused_rows()
    state = {name: array.tolist() for name, array in base.state().items()}
    return repr((state, policy.cells(), policy.used_by_cell(), policy.unused, policy.unused_rows()))
