"""Clustered Parquet: on disk, in a bucket, written by Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import fsspec
import pyarrow as pa
import pytest
from artreplay.history.stores import check_store, layouts
from artreplay.history.stores.clustered import DIRECTORY, describe, write_directory
from artreplay.history.stores.indexed_arms import IndexedArms
from store_logs import Log, played, random_log, stands

import artreplay as ar
from artreplay.errors import InvalidFile, InvalidParameter

BASE = ar.MonUCB(4, 20, bonus=ar.bonus.practical(0.5))


@pytest.fixture
def log() -> Log:
    return random_log(BASE, 300, 1)


@pytest.fixture
def folder(log, tmp_path):
    ar.index_history(log.table, tmp_path / "log", format="parquet", **log.columns)
    return tmp_path / "log"


def as_in_memory(log: Log, place: object) -> None:
    for policy in (ar.ArtificialReplay, ar.FullStart):
        in_memory, in_parts = policy(BASE, log.history()), policy(BASE, ar.open_history(place))
        assert played(in_parts, 8, 1) == played(in_memory, 8, 1)
        assert stands(in_parts) == stands(in_memory)


def test_a_bucket_is_as_good_as_memory(log, folder):
    bucket = fsspec.filesystem("memory")
    bucket.put(f"{folder}/", "/bucket/log", recursive=True)
    try:
        as_in_memory(log, "memory://bucket/log")
    finally:
        bucket.rm("/bucket", recursive=True)


def part_of(folder: Path) -> Path:
    (part,) = folder.glob("g*")
    return part


def test_bytes_are_counted(folder):
    policy = ar.ArtificialReplay(BASE, ar.open_history(folder))
    opening = policy.reading.bytes
    policy.ask()
    size = (part_of(folder) / "samples.parquet").stat().st_size
    small = [
        folder / "manifest.json",
        *(part_of(folder) / name for name in ("labels.json", "counts.i8", "order.u4", "chunks.u4")),
    ]
    assert sum(file.stat().st_size for file in small) < opening < sum(file.stat().st_size for file in small) + size
    assert opening < policy.reading.bytes <= opening + size
    assert policy.reading.requests == len(small) + 2  # the footer, and one column of one row group


def test_a_policy_is_saved_and_loaded_without_reading_the_log(log, folder, tmp_path, monkeypatch):
    policy = ar.ArtificialReplay(BASE, log.history())
    played(policy, 3, 1)
    monkeypatch.setattr(IndexedArms, "stream", None)  # nobody may ask for the whole log
    store = ar.open_history(folder)
    assert store.fingerprint.block == policy.history.fingerprint.block
    assert store.fingerprint.digests.tolist() == policy.history.fingerprint.digests.tolist()
    policy.save(tmp_path / "policy.ar")
    again = ar.load(tmp_path / "policy.ar", store)
    again.save(tmp_path / "policy.ar")
    assert played(again, 3, 2) == played(policy, 3, 2)


def by_another_engine(folder: Path, target: Path) -> None:
    """What another engine would write of the same log."""
    store = ar.open_history(folder)
    target.mkdir()
    (target / "part-0.parquet").write_bytes((part_of(folder) / "samples.parquet").read_bytes())
    arms = sorted(zip(store.labels, store.counts().tolist(), strict=True))
    write_directory(target, [arm for arm, _ in arms], [count for _, count in arms])
    columns = {"unit": "arm", "reward": "click", "level": None, "order": None}
    (target / "manifest.json").write_text(describe(len(store), ["part-0.parquet"], (0.0, 1.0), columns))


def test_a_folder_of_another_engine_has_no_digests(log, folder, tmp_path):
    by_another_engine(folder, tmp_path / "other")
    as_in_memory(log, tmp_path / "other")
    digests = log.history().fingerprint.digests.tolist()
    assert ar.open_history(tmp_path / "other").fingerprint.digests.tolist() == digests
    with pytest.raises(InvalidFile, match="has no checksums: it was not written by `artreplay index`"):
        check_store(tmp_path / "other")


def test_a_folder_of_another_engine_grows_too(log, folder, tmp_path):
    by_another_engine(folder, tmp_path / "other")
    more = random_log(BASE, 40, 3)
    assert ar.append_history(more.table, tmp_path / "other") == 40
    whole = log._replace(table=pa.concat_tables([log.table, more.table]))
    as_in_memory(whole, tmp_path / "other")
    assert ar.compact_history(tmp_path / "other") == 2
    as_in_memory(whole, tmp_path / "other")
    check_store(tmp_path / "other")


def test_columns_that_are_given_must_be_those_of_the_folder(log, folder, tmp_path):
    assert len(ar.open_history(folder, unit="arm", reward="click")) == 300
    for given, sentence in (
        ({"unit": "foo"}, "was indexed with unit='arm', got 'foo': leave it out"),
        ({"reward": "foo"}, "was indexed with reward='click', got 'foo'"),
        ({"order": "nonsense"}, "was indexed with order=None, got 'nonsense'"),
        ({"order": "shuffle", "seed": 3}, "was indexed with order=None, got 'shuffle'"),
        ({"seed": 3}, "was indexed with seed=None, got 3"),
        ({"unit": ["x", "y"]}, "was indexed with unit='arm'"),
    ):
        with pytest.raises(InvalidParameter, match=sentence):
            ar.open_history(folder, **given)
    ar.index_history(log.table, tmp_path / "mixed", format="parquet", order="shuffle", seed=3, **log.columns)
    assert len(ar.open_history(tmp_path / "mixed", order="shuffle", seed=3)) == 300
    with pytest.raises(InvalidParameter, match="was indexed with seed=3, got 4"):
        ar.open_history(tmp_path / "mixed", order="shuffle", seed=4)


@pytest.mark.parametrize("name", ["samples.parquet", "counts.i8", "digests.u8", "sums.f8"])
def test_a_folder_is_checked(folder, name):
    assert check_store(folder)["rows"] == 300
    content = bytearray((part_of(folder) / name).read_bytes())
    content[10] ^= 1
    (part_of(folder) / name).write_bytes(content)
    with pytest.raises(InvalidFile, match=f"{name} does not fit its checksum"):
        check_store(folder)


def test_all_is_on_disk_before_the_folder_appears(log, tmp_path, monkeypatch):
    synced: set[int] = set()
    fsync, rename = os.fsync, os.rename

    def noted(opened: int) -> None:
        synced.add(os.fstat(opened).st_ino)
        fsync(opened)

    def checked(work: os.PathLike, target: os.PathLike) -> None:
        files = [Path(work), *(file for file in Path(work).rglob("*") if file.is_file())]
        assert synced >= {file.stat().st_ino for file in files}
        synced.clear()
        rename(work, target)

    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr(os, "rename", checked)
    ar.index_history(log.table, tmp_path / "log", format="parquet", **log.columns)
    assert tmp_path.stat().st_ino in synced


def test_labels_may_be_large(tmp_path):
    log = pa.table({"arm": pa.array([2**63 + 1, 7, 2**64 - 1], pa.uint64()), "click": [1.0, 0.0, 1.0]})
    ar.index_history(log, tmp_path / "log", format="parquet", unit="arm", reward="click")
    assert ar.open_history(tmp_path / "log").labels == [2**63 + 1, 7, 2**64 - 1]
    write_directory(tmp_path, [2**63 + 1, 7], [1, 1])
    with pytest.raises(InvalidFile, match="labels must be of one type to be written as Parquet"):
        write_directory(tmp_path, [-1, 2**63 + 1], [1, 1])


def test_row_groups_are_decoded_few_times(tmp_path, monkeypatch):
    """Over several row groups and windows the log is the same, and reading it does not parse a footer each time."""
    monkeypatch.setattr(layouts, "GROUP", 64)
    monkeypatch.setattr("artreplay.history.stores.merging._WINDOW", 500)
    log = random_log(BASE, 2000, 2)
    ar.index_history(log.table, tmp_path / "log", format="parquet", **log.columns)
    store = ar.open_history(tmp_path / "log")
    assert store.load().fingerprint.digests.tolist() == log.history().fingerprint.digests.tolist()
    assert store.reading.requests <= 2 * -(-2000 // 64)  # each column of each row group once
    as_in_memory(log, tmp_path / "log")


def test_pandas_is_not_imported_for_it(folder):
    code = "import sys, artreplay as ar; ar.open_history(sys.argv[1]).load(); sys.exit('pandas' in sys.modules)"
    subprocess.run([sys.executable, "-c", code, str(folder)], check=True)


def test_what_is_wrong_with_a_folder_is_said(folder, tmp_path):
    with pytest.raises(InvalidFile, match="strange://x cannot be read"):
        ar.open_history("strange://x", "arm", "click")
    by_another_engine(folder, tmp_path / "other")
    manifest = tmp_path / "other" / "manifest.json"
    kept = json.loads(manifest.read_text())
    shorter = [kept["generations"][0] | {"rows": 7}]
    for change, sentence in (
        ({"format": 9}, "is a store of format 9"),
        ({"generations": shorter}, "must have 7 rows, its files have 300"),
        ({"magic": "?"}, "is not an indexed store"),
    ):
        manifest.write_text(json.dumps(kept | change))
        with pytest.raises(InvalidFile, match=sentence):
            ar.open_history(tmp_path / "other")
    manifest.write_text(json.dumps(kept))
    for name in (DIRECTORY, "part-0.parquet"):
        (tmp_path / "other" / name).write_bytes(b"PAR1")
        with pytest.raises(InvalidFile, match=rf"{name} (cannot be read as Parquet|does not fit)"):
            ar.open_history(tmp_path / "other")
        by_another_engine(folder, tmp_path / name)
        (tmp_path / "other" / name).write_bytes((tmp_path / name / name).read_bytes())


def test_points_have_no_such_layout(tmp_path):
    log = random_log(ar.TreeUCB(1, 20), 20, 1)
    with pytest.raises(InvalidParameter, match='format must be "store", or, for logs of arms, "parquet"'):
        ar.index_history(log.table, tmp_path / "log", format="parquet", **log.columns)
