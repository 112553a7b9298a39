"""A log that is laid out is whole and right, whatever happens to its source, its process or its folder meanwhile."""

from __future__ import annotations

import itertools
import os
import signal
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import artreplay as ar
from artreplay.errors import CannotSave, InvalidFile, InvalidHistory, InvalidParameter
from artreplay.history.parquet import append_history, check_files, parquet_files, parquet_log, sorter
from artreplay.history.parquet.sorter import RowsToSort, Sorter
from artreplay.history.parquet.staging import writing_to
from artreplay.history.parquet.store_folder import StoredFile

COLUMNS = {"unit": "arm", "reward": "click"}


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
    seed=st.integers(0, 99),
)
@settings(max_examples=20)
def test_a_log_that_grows_while_it_is_indexed_is_what_it_was(rows, more, order, until, seed, tmp_path_factory):
    folder = tmp_path_factory.mktemp("log")
    before = log_of(rows, seed)
    grown = pa.concat_tables([before, log_of(more, seed).set_column(0, "arm", pa.array(["new"] * more, pa.string()))])
    pq.write_table(before, folder / "log.parquet")

    def grow(stage: str, done: int, whole: int | None) -> None:
        pq.write_table(grown, folder / "log.parquet")

    how = {**COLUMNS, "order": order, "until": until}
    ar.index_history(folder / "log.parquet", folder / "log", **how, advance=grow)
    store = ar.open_history(folder / "log")
    expected = ar.open_history(before, **how)
    assert rows_of(store) == rows_of(expected)
    assert store.fingerprint.digests.tolist() == expected.fingerprint.digests.tolist()
    assert int(store.counts.sum()) == len(store)
    assert (store.counts > 0).all()
    if order is None and until is None:
        assert append_history(folder / "log.parquet", folder / "log", grown=True) == more
        assert rows_of(ar.open_history(folder / "log")) == rows_of(ar.open_history(grown, **how))


@pytest.mark.parametrize("order", [None, "at"])
def test_a_log_is_read_once(order, tmp_path):
    before = log_of(30)
    pq.write_table(before, tmp_path / "log.parquet")

    def remove(stage: str, done: int, whole: int | None) -> None:
        (tmp_path / "log.parquet").unlink(missing_ok=True)

    how = {**COLUMNS, "order": order}
    ar.index_history(tmp_path / "log.parquet", tmp_path / "log", **how, advance=remove)
    assert [path.name for path in tmp_path.iterdir()] == ["log"]
    assert rows_of(ar.open_history(tmp_path / "log")) == rows_of(ar.open_history(before, **how))


def test_an_address_of_the_disk_is_a_folder(tmp_path):
    address = (tmp_path / "my log").as_uri()
    ar.index_history(log_of(5), address, **COLUMNS)
    assert rows_of(ar.open_history(address)) == rows_of(ar.open_history(tmp_path / "my log"))
    with writing_to(tmp_path / "my log"), pytest.raises(InvalidFile, match="is being added to by another process"):
        append_history(log_of(5, 1), address)


def test_two_cannot_add_rows_at_once(tmp_path):
    log, store = log_of(60), tmp_path / "log"
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
    log, store = log_of(60), tmp_path / "log"
    ar.index_history(log[:20], store, **COLUMNS)
    added = []

    def second(stage: str, done: int, rows: int | None) -> None:
        if not added:
            added.append(1)
            append_history(log, store, grown=True)

    with pytest.raises(InvalidFile, match="was changed by another process meanwhile"):
        append_history(log[:40], store, grown=True, advance=second)
    assert rows_of(ar.open_history(store)) == rows_of(ar.open_history(log, **COLUMNS))


def test_what_a_killed_process_left_is_removed(tmp_path):
    log, store = log_of(20), tmp_path / "log"
    for name in (".log.abc.part", ".other.abc.part"):
        (tmp_path / name / "sorting").mkdir(parents=True)
    seen = []

    def other(stage: str, done: int, rows: int | None) -> None:
        """A second run for the same target leaves the place of the first one alone."""
        if not seen:
            seen.append(1)
            ar.index_history(log[:5], store, **COLUMNS)

    with pytest.raises(InvalidFile, match="cannot be written"):
        ar.index_history(log, store, **COLUMNS, advance=other)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".other.abc.part", "log"]
    for ending in ("rows-0badcafe0badcafe.parquet", "directory-0badcafe0badcafe.npz"):
        (store / ending).write_text("half a file")
    (store / ".new.0badcafe.part").mkdir()
    (tmp_path / ".log.0badcafe.part").mkdir()
    (store / "notes.txt").write_text("read me")
    (store / ".manifest.json.77.part").write_text("{")
    assert append_history(log, store, grown=True) == 15
    assert not [path for path in tmp_path.rglob("*") if ".77." in path.name or "0badcafe" in path.name]
    assert (store / "notes.txt").read_text() == "read me"
    assert rows_of(ar.open_history(store)) == rows_of(ar.open_history(log, **COLUMNS))


@pytest.mark.parametrize(
    ("stage", "order"),
    [*itertools.product(["looking at the log", "writing"], [None, "at"]), ("ordering", "at")],
)
def test_an_interrupt_ends_indexing_and_leaves_nothing(stage, order, tmp_path):
    def interrupt(now: str, done: int, rows: int | None) -> None:
        if now == stage:
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        ar.index_history(log_of(3000), tmp_path / "log", **COLUMNS, order=order, advance=interrupt)
    assert list(tmp_path.iterdir()) == []
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("rows", [3, 1000])
def test_few_rows_are_sorted_without_a_database_and_many_with_one_alike(rows, tmp_path, monkeypatch):
    monkeypatch.setattr("artreplay.history.sources.source.BATCH", 7)
    monkeypatch.setattr(sorter, "_BATCH_ROWS", rows)
    if rows == 1000:
        monkeypatch.setattr(Sorter, "database", None)
    log, path = log_of(50), tmp_path / "log"
    pq.write_table(log, tmp_path / "log.parquet", row_group_size=7)
    ar.index_history(tmp_path / "log.parquet", path, **COLUMNS, order="at")
    append_history(log[:20], path)
    expected = [rows_of(ar.open_history(part, **COLUMNS, order="at")) for part in (log, log[:20])]
    assert rows_of(ar.open_history(path)) == expected[0] + expected[1]
    assert ar.compact_history(path) == 2
    assert rows_of(ar.open_history(path)) == expected[0] + expected[1]


def test_labels_that_a_folder_cannot_hold_are_refused_before_sorting(tmp_path, monkeypatch):
    monkeypatch.setattr(RowsToSort, "sorted", None)
    times = pa.array([0, 1], pa.timestamp("ns"))
    with pytest.raises(CannotSave, match="whole microseconds"):
        ar.index_history(pa.table({"arm": times, "click": [1, 0]}), tmp_path / "log", **COLUMNS)
    parts = pa.array([Decimal("0.5")])
    with pytest.raises(CannotSave, match="labels must be whole numbers"):
        ar.index_history(pa.table({"arm": parts, "click": [1]}), tmp_path / "log", **COLUMNS)
    assert list(tmp_path.iterdir()) == []


def test_whole_decimals_are_labels_like_integers(tmp_path):
    log = pa.table({"arm": pa.array([Decimal(3), Decimal(7), Decimal(3)]), "click": [1.0, 0.0, 0.5]})
    ar.index_history(log, tmp_path / "log", **COLUMNS)
    store, memory = ar.open_history(tmp_path / "log"), ar.open_history(log, **COLUMNS)
    assert store.labels == [3, 7] == memory.labels
    loaded = store.load().fingerprint.digests.tolist()
    assert store.fingerprint.digests.tolist() == memory.fingerprint.digests.tolist() == loaded


def test_memory_and_place_are_looked_at_before_the_log(tmp_path, monkeypatch):
    monkeypatch.setattr("artreplay.history.parquet.log_import.parts_of", None)
    for memory in ("lots", "-1GB", 7):
        with pytest.raises(InvalidParameter, match="memory must be an amount"):
            ar.index_history(log_of(5), tmp_path / "log", **COLUMNS, memory=memory)
    with pytest.raises(InvalidFile, match="cannot be written: No such file"):
        ar.index_history(log_of(5), tmp_path / "none" / "log", **COLUMNS)


def test_too_little_memory_is_told_in_a_sentence(tmp_path):
    log = pd.DataFrame({"arm": np.arange(400_000) % 7, "click": 1.0, "at": np.arange(400_000)[::-1]})
    with pytest.raises(InvalidFile, match="cannot be sorted in 3MB of memory: ") as error:
        ar.index_history(log, tmp_path / "log", **COLUMNS, order="at", memory="3MB")
    assert "\n" not in str(error.value)


def test_points_are_read_into_memory(tmp_path):
    with pytest.raises(InvalidHistory, match=r"a log must be of arms to be laid out, got points\. Open the"):
        ar.index_history(log_of(5), tmp_path / "log", unit=["x", "y"], reward="click")
    assert list(tmp_path.iterdir()) == []


def test_a_log_that_is_laid_out_is_cut_by_itself(tmp_path):
    ar.index_history(log_of(20), tmp_path / "log", **COLUMNS, until=15)
    with pytest.raises(
        InvalidParameter, match=r"until is for logs that are read into memory\. Write .*\.first\(9\) for this"
    ):
        ar.open_history(tmp_path / "log", until=9)
    store = ar.open_history(tmp_path / "log")
    assert rows_of(store) == rows_of(ar.open_history(log_of(20), **COLUMNS, until=15))
    assert rows_of(store.first(9)) == rows_of(ar.open_history(log_of(20), **COLUMNS, until=9))
    with pytest.raises(InvalidParameter, match="was made of the first 15 rows of its source"):
        append_history(log_of(20, 1), tmp_path / "log")


def test_all_is_on_disk_before_the_folder_appears(tmp_path, monkeypatch):
    synced: set[int] = set()
    fsync, rename = os.fsync, os.rename

    def noted(opened: int) -> None:
        synced.add(os.fstat(opened).st_ino)
        fsync(opened)

    def checked(work: Any, target: Any) -> None:
        files = [Path(work), *(file for file in Path(work).rglob("*") if file.is_file())]
        assert synced >= {file.stat().st_ino for file in files}
        rename(work, target)

    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr(os, "rename", checked)
    ar.index_history(log_of(30), tmp_path / "log", **COLUMNS)
    assert tmp_path.stat().st_ino in synced
    synced.clear()
    append_history(log_of(15, 1), tmp_path / "log")
    assert (tmp_path / "log").stat().st_ino in synced


def test_columns_that_are_given_must_be_those_of_the_folder(tmp_path):
    ar.index_history(log_of(30), tmp_path / "log", **COLUMNS, order="shuffle", seed=3)
    assert len(ar.open_history(tmp_path / "log", order="shuffle", seed=3)) == 30
    for other, sentence in (
        ({"unit": "foo"}, "unit must be 'arm', as .* was indexed, got 'foo'"),
        ({"reward": "foo"}, "reward must be 'click', as .* was indexed, got 'foo'"),
        ({"order": "nonsense"}, "order must be 'shuffle', as .* was indexed, got 'nonsense'"),
        ({"seed": 4}, "seed must be 3, as .* was indexed, got 4"),
        ({"unit": ["x", "y"]}, "unit must be 'arm', as"),
        ({"level": "x"}, "level must be None, as .* was indexed, got 'x'"),
    ):
        with pytest.raises(InvalidParameter, match=sentence):
            ar.open_history(tmp_path / "log", **other)
    with pytest.raises(InvalidParameter, match="is a shuffled log, to which no rows can be added"):
        append_history(log_of(3, 1), tmp_path / "log")


def test_a_column_chunk_is_read_once(tmp_path, monkeypatch):
    """Over several row groups and batches the log is the same, and no part of a file is read twice."""
    monkeypatch.setattr(parquet_files, "ROWS_PER_GROUP", 64)
    monkeypatch.setattr(parquet_log, "_BATCH_ROWS", 500)
    ar.index_history(log_of(2000), tmp_path / "log", **COLUMNS)
    store, read = ar.open_history(tmp_path / "log"), []
    whole = StoredFile.read
    monkeypatch.setattr(StoredFile, "read", lambda self, start, size: read.append(start) or whole(self, start, size))
    assert rows_of(store) == rows_of(ar.open_history(log_of(2000), **COLUMNS))
    assert len(read) == len(set(read)) == 2 * -(-2000 // 64)


@pytest.mark.parametrize("kind", ["rows", "directory", "digests"])
def test_a_folder_is_checked(kind, tmp_path):
    ar.index_history(log_of(300), tmp_path / "log", **COLUMNS)
    assert len(check_files(tmp_path / "log")) == 300
    (file,) = (tmp_path / "log").glob(f"{kind}-*")
    content = bytearray(file.read_bytes())
    content[100] ^= 1
    file.write_bytes(content)
    with pytest.raises(InvalidFile, match=f"{kind}-.* does not fit its checksum"):
        check_files(tmp_path / "log")


def test_what_is_no_log_of_ours_is_said(tmp_path):
    (tmp_path / "log").mkdir()
    manifest = tmp_path / "log" / "manifest.json"
    for text, sentence in (
        ("{", "manifest.json is damaged"),
        ("[]", "is not an indexed log"),
        ('{"magic": "something else"}', "is not an indexed log"),
        ('{"magic": "artreplay store", "format": 5}', "was laid out in format 5, and this version of artreplay reads"),
        ('{"magic": "artreplay log", "format": 8}', "does not fit its checksum"),
        ("[" * 100_000, "manifest.json is damaged"),
    ):
        manifest.write_text(text)
        with pytest.raises(InvalidFile, match=sentence):
            ar.open_history(tmp_path / "log")
    with pytest.raises(InvalidFile, match="strange://x is not a known kind of address"):
        ar.open_history("strange://x", "arm", "click")
    with pytest.raises(InvalidFile, match="does not exist"):
        append_history(log_of(3), tmp_path / "none")


def test_checking_says_how_far_it_is(tmp_path):
    ar.index_history(log_of(500), tmp_path / "log", **COLUMNS)
    told: list[tuple[int, int]] = []
    check_files(tmp_path / "log", lambda done, size: told.append((done, size)))
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1] == sum(file.stat().st_size for file in tmp_path.glob("log/*-*"))
