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
from artreplay.history.stores import Store, append_history, layouts
from artreplay.history.stores.indexed_points import Cut
from artreplay.history.stores.layouts import PointLayout

import artreplay as ar

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
    ar.index_history(log.table, folder / "log.arh", **log.columns)
    return ar.open_history(folder / "log.arh")


def grown(log: Log, folder: Path) -> Any:
    half = len(log.table) // 2
    pq.write_table(log.table[:half], folder / "log.parquet")
    ar.index_history(folder / "log.parquet", folder / "log.arh", **log.columns)
    pq.write_table(log.table, folder / "log.parquet")
    append_history(folder / "log.parquet", folder / "log.arh", grown=True)
    return ar.open_history(folder / "log.arh")


def in_days(log: Log, folder: Path, format: str | None = None, compact: bool = False) -> Any:
    """A store to which short parts of the log were added, some of which are put together."""
    cuts = [0, *sorted({len(log.table) * part // 16 for part in (9, 12, 13, 15)}), len(log.table)]
    ar.index_history(log.table[: cuts[1]], folder / "log.arh", format=format, **log.columns)
    for first, last in itertools.pairwise(cuts[1:]):
        assert append_history(log.table[first:last], folder / "log.arh", grown=False) == last - first
    if compact:
        ar.compact_history(folder / "log.arh")
    return ar.open_history(folder / "log.arh")


def days_as_parquet(log: Log, folder: Path) -> Any:
    return in_days(log, folder, "parquet" if "arm" in log.table.column_names else None)


def compacted(log: Log, folder: Path) -> Any:
    return in_days(log, folder, compact=True)


def cut(log: Log, folder: Path) -> Any:
    """A store of a longer log, of which the first rows are opened."""
    longer = pa.concat_tables([log.table, log.table[:7]])
    ar.index_history(longer, folder / "log.arh", **log.columns)
    return ar.open_history(folder / "log.arh", until=len(log.table))


def clustered(log: Log, folder: Path) -> Any:
    """Clustered Parquet where that is possible, in row groups of three rows; points have no such layout."""
    if "arm" not in log.table.column_names:
        return indexed(log, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layouts, "GROUP", 3)
        ar.index_history(log.table, folder / "log", format="parquet", **log.columns)
    return ar.open_history(folder / "log")


PLACES: dict[str, Callable[[Log, Path], Any]] = {
    "indexed": indexed,
    "grown": grown,
    "in days": in_days,
    "days as Parquet": days_as_parquet,
    "compacted": compacted,
    "cut": cut,
    "clustered": clustered,
}


@contextlib.contextmanager
def opened(log: Log, place: str) -> Iterator[Any]:
    """The log in a place, laid out and read in the smallest portions, so that a few rows are many of them."""
    kept = PointLayout.cut, Store.first_prefetch
    PointLayout.cut, Store.first_prefetch = Cut(4, 16, 2), 1
    try:
        with tempfile.TemporaryDirectory() as folder:
            yield PLACES[place](log, Path(folder))
    finally:
        PointLayout.cut, Store.first_prefetch = kept


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
