"""A store is whole and right, whatever happens to its log, to its process or to its folder meanwhile."""

from __future__ import annotations

import itertools
import os
import signal
import sys
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from artreplay.history.stores import append_history, check_store
from artreplay.history.stores.intake import Sorter
from artreplay.history.stores.workplace import alone
from hypothesis import given, settings
from hypothesis import strategies as st

import artreplay as ar
from artreplay.errors import CannotSave, InvalidFile, InvalidHistory, InvalidParameter

COLUMNS = {"unit": "arm", "reward": "click"}
POINTS = {"unit": ["x", "y"], "reward": "click"}


def log_of(rows: int, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    points = {name: rng.integers(0, 9, rows) / 8 for name in ("x", "y", "click")}
    return pa.table({"arm": rng.integers(0, 4, rows).astype(str), **points, "at": rng.permutation(rows)})


def rows_of(history: Any) -> list[tuple[Any, float]]:
    whole = history if isinstance(history, ar.History) else history.load()
    return [(whole.unit(row), float(whole.rewards[row])) for row in range(len(whole))]


@given(
    rows=st.integers(1, 40),
    more=st.integers(0, 9),
    order=st.sampled_from([None, "at"]),
    until=st.none() | st.integers(0, 45),
    columns=st.sampled_from([COLUMNS, POINTS]),
    seed=st.integers(0, 99),
)
@settings(max_examples=20)
def test_a_log_that_grows_while_it_is_indexed_is_what_it_was(rows, more, order, until, columns, seed, tmp_path_factory):
    folder = tmp_path_factory.mktemp("log")
    before = log_of(rows, seed)
    grown = pa.concat_tables([before, log_of(more, seed).set_column(0, "arm", pa.array(["new"] * more, pa.string()))])
    pq.write_table(before, folder / "log.parquet")

    def grow(stage: str, done: int, whole: int | None) -> None:
        pq.write_table(grown, folder / "log.parquet")

    how = {**columns, "order": order, "until": until}
    ar.index_history(folder / "log.parquet", folder / "log.arh", **how, advance=grow)
    store = ar.open_history(folder / "log.arh")
    expected = ar.open_history(before, **how)
    assert rows_of(store) == rows_of(expected)
    assert store.fingerprint.digests.tolist() == expected.fingerprint.digests.tolist()
    if columns is COLUMNS:
        assert int(store.counts().sum()) == len(store)
        assert (store.counts() > 0).all()
    if order is None and until is None:
        assert append_history(folder / "log.parquet", folder / "log.arh", grown=True) == more
        assert rows_of(ar.open_history(folder / "log.arh")) == rows_of(ar.open_history(grown, **how))


@pytest.mark.parametrize("layout", ["store", "parquet"])
@pytest.mark.parametrize("order", [None, "at"])
def test_a_log_is_read_once(layout, order, tmp_path):
    before = log_of(30)
    pq.write_table(before, tmp_path / "log.parquet")

    def remove(stage: str, done: int, whole: int | None) -> None:
        (tmp_path / "log.parquet").unlink(missing_ok=True)

    how = {**COLUMNS, "order": order}
    ar.index_history(tmp_path / "log.parquet", tmp_path / "log.arh", **how, format=layout, advance=remove)
    assert [path.name for path in tmp_path.iterdir()] == ["log.arh"]
    assert rows_of(ar.open_history(tmp_path / "log.arh")) == rows_of(ar.open_history(before, **how))


@given(rows=st.integers(0, 30), until=st.integers(0, 31), parts=st.integers(1, 3))
@settings(max_examples=10)
def test_a_store_that_is_cut_has_the_labels_that_occur(rows, until, parts, tmp_path_factory):
    log, store = log_of(rows), tmp_path_factory.mktemp("log") / "log.arh"
    ar.index_history(log[: rows // parts], store, **COLUMNS)
    append_history(log, store, grown=True)
    cut, expected = ar.open_history(store, until=until), ar.History.from_frame(log, "arm", "click", until=until)
    assert cut.labels == expected.labels
    assert rows_of(cut) == rows_of(expected)
    for code in range(len(cut.labels)):
        got = cut.read(code, 0, 100, with_rows=True)
        assert got.rewards.tolist() == expected.rewards[expected.codes == code].tolist()
        assert got.rows.tolist() == np.flatnonzero(expected.codes == code).tolist()


def test_an_address_of_the_disk_is_a_folder(tmp_path):
    address = (tmp_path / "my log.arh").as_uri()
    ar.index_history(log_of(5), address, **COLUMNS)
    assert rows_of(ar.open_history(address)) == rows_of(ar.open_history(tmp_path / "my log.arh"))
    with alone(tmp_path / "my log.arh"), pytest.raises(InvalidFile, match="is being added to by another process"):
        append_history(log_of(5, 1), address)


def test_two_cannot_add_rows_at_once(tmp_path):
    log, store = log_of(60), tmp_path / "log.arh"
    ar.index_history(log[:20], store, **COLUMNS)
    refused = []

    def second(stage: str, done: int, rows: int | None) -> None:
        with pytest.raises(InvalidFile, match="is being added to by another process") as error:
            append_history(log, store, grown=True)
        refused.append(error)

    assert append_history(log[:40], store, grown=True, advance=second) == 20
    assert refused
    reader = ar.open_history(store)
    assert append_history(log, store, grown=True) == 20
    assert rows_of(reader) == rows_of(ar.open_history(log[:40], **COLUMNS))
    assert rows_of(ar.open_history(store)) == rows_of(ar.open_history(log, **COLUMNS))


def test_without_locks_the_second_one_to_add_rows_notices(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "fcntl", None)
    log, store = log_of(60), tmp_path / "log.arh"
    ar.index_history(log[:20], store, **COLUMNS)
    added = []

    def second(stage: str, done: int, rows: int | None) -> None:
        if not added:
            added.append(1)
            append_history(log, store, grown=True)

    with pytest.raises(InvalidFile, match="was added to by another process meanwhile"):
        append_history(log[:40], store, grown=True, advance=second)
    assert rows_of(ar.open_history(store)) == rows_of(ar.open_history(log, **COLUMNS))


def test_what_a_killed_process_left_is_removed(tmp_path):
    log, store = log_of(20), tmp_path / "log.arh"
    for name in (".log.arh.abc.part", ".other.arh.abc.part"):
        (tmp_path / name / "sorting").mkdir(parents=True)
    seen = []

    def other(stage: str, done: int, rows: int | None) -> None:
        """A second run for the same target leaves the place of the first one alone."""
        if not seen:
            seen.append(1)
            ar.index_history(log[:5], store, **COLUMNS)

    with pytest.raises(InvalidFile, match="cannot be written"):
        ar.index_history(log, store, **COLUMNS, advance=other)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".other.arh.abc.part", "log.arh"]
    (store / "g001-0badcafe").mkdir()
    (store / ".g001-0badcafe.abc.part").mkdir()
    (store / ".manifest.json.77.part").write_text("{")
    assert append_history(log, store, grown=True) == 15
    assert not [path for path in store.iterdir() if path.name.startswith(".") or "0badcafe" in path.name]
    assert rows_of(ar.open_history(store)) == rows_of(ar.open_history(log, **COLUMNS))


@pytest.mark.parametrize(
    ("stage", "order"),
    [*itertools.product(["looking at the log", "sorting", "writing"], [None, "at"]), ("ordering", "at")],
)
def test_an_interrupt_ends_indexing_and_leaves_nothing(stage, order, tmp_path):
    def interrupt(now: str, done: int, rows: int | None) -> None:
        if now == stage:
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        ar.index_history(log_of(3000), tmp_path / "log.arh", **COLUMNS, order=order, advance=interrupt)
    assert list(tmp_path.iterdir()) == []
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize(("levels", "allowed"), [(2047, True), (2048, False)])
def test_as_many_levels_as_there_is_room_for(levels, allowed, tmp_path):
    efforts = np.arange(levels, dtype=float)
    log = pa.table({"x": efforts / levels, "effort": efforts, "click": efforts / levels})
    columns = {"unit": ["x"], "reward": "click", "level": "effort"}
    if not allowed:
        with pytest.raises(InvalidHistory, match="at most 2047 distinct levels"):
            ar.index_history(log, tmp_path / "log.arh", **columns)
        return
    ar.index_history(log, tmp_path / "log.arh", **columns)
    store = ar.open_history(tmp_path / "log.arh")
    assert rows_of(store) == rows_of(ar.open_history(log, **columns))
    region = store.read([0.0], [1.0], levels - 1.0, 0, 5)
    assert region.rewards[region.levels == levels - 1.0].tolist() == [(levels - 1) / levels]


@pytest.mark.parametrize("columns", [COLUMNS, POINTS])
@pytest.mark.parametrize("rows", [3, 1000])
def test_few_rows_are_sorted_without_a_database_and_many_with_one_alike(columns, rows, tmp_path, monkeypatch):
    monkeypatch.setattr("artreplay.history.sources.source.BATCH", 7)
    monkeypatch.setattr("artreplay.history.stores.intake._BATCH", rows)
    if rows == 1000:
        monkeypatch.setattr(Sorter, "_database", None)
    log, path = log_of(50), tmp_path / "log.arh"
    pq.write_table(log, tmp_path / "log.parquet", row_group_size=7)
    ar.index_history(tmp_path / "log.parquet", path, **columns, order="at")
    append_history(log[:20], path)
    expected = [rows_of(ar.open_history(part, **columns, order="at")) for part in (log, log[:20])]
    assert rows_of(ar.open_history(path)) == expected[0] + expected[1]
    assert ar.compact_history(path) == 2
    assert rows_of(ar.open_history(path)) == expected[0] + expected[1]


def test_labels_that_a_store_cannot_tell_apart_are_refused_before_sorting(tmp_path, monkeypatch):
    monkeypatch.setattr(Sorter, "sorted", None)
    times = pa.array([0, 1], pa.timestamp("ns"))
    with pytest.raises(CannotSave, match="whole microseconds"):
        ar.index_history(pa.table({"arm": times, "click": [1, 0]}), tmp_path / "log.arh", **COLUMNS)
    parts = pa.array([Decimal("0.5")])
    with pytest.raises(CannotSave, match="labels must be whole numbers"):
        ar.index_history(pa.table({"arm": parts, "click": [1]}), tmp_path / "log.arh", **COLUMNS)
    assert list(tmp_path.iterdir()) == []


def test_whole_decimals_are_labels_like_integers(tmp_path):
    log = pa.table({"arm": pa.array([Decimal(3), Decimal(7), Decimal(3)]), "click": [1.0, 0.0, 0.5]})
    ar.index_history(log, tmp_path / "log.arh", **COLUMNS)
    store, memory = ar.open_history(tmp_path / "log.arh"), ar.open_history(log, **COLUMNS)
    assert store.labels == [3, 7] == memory.labels
    loaded = store.load().fingerprint.digests.tolist()
    assert store.fingerprint.digests.tolist() == memory.fingerprint.digests.tolist() == loaded


def test_memory_and_place_are_looked_at_before_the_log(tmp_path, monkeypatch):
    monkeypatch.setattr("artreplay.history.stores.intake.parts_of", None)
    for memory in ("lots", "-1GB", 7):
        with pytest.raises(InvalidParameter, match="memory must be an amount"):
            ar.index_history(log_of(5), tmp_path / "log.arh", **COLUMNS, memory=memory)
    with pytest.raises(InvalidFile, match="cannot be written: No such file"):
        ar.index_history(log_of(5), tmp_path / "none" / "log.arh", **COLUMNS)


def test_too_little_memory_is_told_in_a_sentence(tmp_path):
    log = pd.DataFrame({"arm": np.arange(400_000) % 7, "click": 1.0, "at": np.arange(400_000)[::-1]})
    with pytest.raises(InvalidFile, match="cannot be sorted in 3MB of memory: ") as error:
        ar.index_history(log, tmp_path / "log.arh", **COLUMNS, order="at", memory="3MB")
    assert "\n" not in str(error.value)


def test_checking_says_how_far_it_is(tmp_path):
    ar.index_history(log_of(500), tmp_path / "log.arh", **COLUMNS)
    told: list[tuple[int, int]] = []
    check_store(tmp_path / "log.arh", lambda done, size: told.append((done, size)))
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1] == sum(file.stat().st_size for file in tmp_path.glob("log.arh/g*/*"))
