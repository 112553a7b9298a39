"""Folders that another engine sorted: the decisions of the same log in memory, growth by more files, and refusals."""

from __future__ import annotations

import datetime
import os
import pickle
import shutil
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import fsspec
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from store_logs import Log, played, random_log, small_portions, sorted_files, stands

import artreplay as ar
from artreplay.errors import ArtReplayError, InvalidFile, InvalidHistory, InvalidParameter
from artreplay.history.parquet import check_files

BASE = ar.MonUCB(4, 20, bonus=ar.bonus.practical(0.5))
COLUMNS = {"unit": "arm", "reward": "click"}


@pytest.fixture
def log() -> Log:
    return random_log(BASE, 300, 1)


def adopt(place: Any, **how: Any) -> Any:
    ar.index_history(place, already_sorted=True, **COLUMNS | how)
    return ar.open_history(place)


def as_in_memory(log: Log, place: Any) -> None:
    with small_portions():
        for policy in (ar.ArtificialReplay, ar.FullStart):
            in_memory, in_parts = policy(BASE, log.history()), policy(BASE, ar.open_history(place))
            assert played(in_parts, 8, 1) == played(in_memory, 8, 1)
            if ar.open_history(place).manifest["columns"]["order"] is not None:
                assert stands(in_parts) == stands(in_memory)


def test_a_bucket_is_as_good_as_memory(log, tmp_path):
    bucket = fsspec.filesystem("memory")
    bucket.put(f"{sorted_files(log, tmp_path)}/", "/bucket/log", recursive=True)
    try:
        adopt("memory://bucket/log", order="at")
        as_in_memory(log, "memory://bucket/log")
    finally:
        bucket.rm("/bucket", recursive=True)


def by_duckdb(table: pa.Table, place: Path) -> None:
    with duckdb.connect() as connection:
        connection.register("log", table)
        ordered = 'SELECT * FROM log ORDER BY arm, "at"'
        connection.sql(f"COPY ({ordered}) TO '{place}/part-0.parquet' (ROW_GROUP_SIZE 2048)")


def by_polars(table: pa.Table, place: Path) -> None:
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    frame.sort("arm", "at").write_parquet(place / "part-0.parquet", row_group_size=64)


def by_pyarrow(table: pa.Table, place: Path) -> None:
    ordered = table.sort_by([("arm", "ascending"), ("at", "ascending")])
    pq.write_table(ordered, place / "part-0.parquet", data_page_version="2.0", compression="zstd", row_group_size=50)


@pytest.mark.parametrize("engine", [by_duckdb, by_polars, by_pyarrow])
def test_any_engine_can_write_it(engine, log, tmp_path):
    engine(log.table.append_column("at", pa.array(range(300))), tmp_path)
    adopt(tmp_path, order="at")
    as_in_memory(log, tmp_path)
    assert ar.open_history(tmp_path).fingerprint.digests.tolist() == log.history().fingerprint.digests.tolist()


def test_nothing_is_copied_or_changed(log, tmp_path):
    place = sorted_files(log, tmp_path)
    before = {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in place.iterdir()}
    adopt(place, order="at")
    after = {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in place.iterdir()}
    assert {name: after[name] for name in before} == before
    assert sorted(name.partition("-")[0] for name in after.keys() - before.keys()) == ["directory", "manifest.json"]
    assert check_files(place).bytes > 0
    adopt(place)
    assert {path.name for path in place.iterdir()} == after.keys()


@pytest.mark.parametrize(
    "order",
    [
        pa.array(range(300), pa.int16()),
        pa.array(range(300), pa.uint64()),
        pa.array([float(number) for number in range(300)]),
        pa.array([datetime.datetime(2024, 1, 1) + datetime.timedelta(seconds=number) for number in range(300)]),
        pa.array([datetime.date(2024, 1, 1) + datetime.timedelta(number) for number in range(300)]),
        pa.array(range(300), pa.timestamp("ns", "Europe/Berlin")),
        pa.array(range(-150, 150), pa.duration("ms")),
    ],
    ids=lambda order: str(order.type),
)
def test_an_order_is_whole_numbers_or_times(order, log, tmp_path):
    by_pyarrow(log.table.append_column("at", order), tmp_path)
    adopt(tmp_path, order="at")
    as_in_memory(log, tmp_path)


@pytest.mark.parametrize("kind", [pa.int8(), pa.float32(), pa.bool_(), pa.decimal128(9, 2), pa.float64(), pa.uint64()])
def test_rewards_of_any_numbers_are_read_as_they_were_checked(kind, tmp_path):
    clicks = [0, 1, 1, 0, 1, 0]
    values = [bool(one) if pa.types.is_boolean(kind) else Decimal(one) if "dec" in str(kind) else one for one in clicks]
    table = pa.table({"arm": [0, 0, 0, 1, 1, 2], "click": pa.array(values, kind), "at": range(6)})
    pq.write_table(table, tmp_path / "part-0.parquet")
    assert adopt(tmp_path, order="at").load().rewards.tolist() == clicks


@pytest.mark.parametrize(
    "arms",
    [
        pa.array([3, 3, 7], pa.int8()),
        pa.array([2**63 + 1, 2**63 + 1, 7], pa.uint64()),
        pa.array(["red", "red", "grün"]),
        pa.array(["red", "red", "grün"]).dictionary_encode(),
        pa.array([b"\xff", b"\xff", b""]),
        pa.array([datetime.date(2024, 1, 2)] * 2 + [datetime.date(2024, 1, 1)]),
        pa.array([True, True, False]),
    ],
    ids=lambda arms: str(arms.type),
)
def test_labels_are_those_of_the_files(arms, tmp_path):
    table = pa.table({"arm": arms, "click": [1.0, 0.0, 0.5], "at": [0, 1, 2]})
    pq.write_table(table, tmp_path / "part-0.parquet")
    store, memory = adopt(tmp_path, order="at"), ar.open_history(table, **COLUMNS)
    assert store.labels == memory.labels
    assert store.fingerprint.digests.tolist() == memory.fingerprint.digests.tolist()


def test_the_allowance_is_a_column_too(log, tmp_path):
    allowance = np.random.default_rng(1).choice([0.0, 0.25], 300)
    wider = log._replace(table=log.table.append_column("drift", pa.array(allowance)))
    store = adopt(sorted_files(wider, tmp_path), order="at", allowance="drift")
    assert store.allowance_bounds == (0.0, 0.25)
    memory = ar.History(log.table["arm"], log.table["click"], allowance=allowance)
    counts = memory.counts
    codes, after = np.arange(len(counts)), np.minimum(5, counts)
    read = {label: store.labels.index(label) for label in memory.labels}
    places = np.array([read[label] for label in memory.labels])
    found, expected = store.read(places, after, counts), memory.read(codes, after, counts)
    assert found.rewards.tolist() == expected.rewards.tolist()
    assert found.allowances.tolist() == expected.allowances.tolist()
    (part,) = store.scan()
    assert part.allowances.tolist() == allowance.tolist()


# -- without a column that orders the rows ----------------------------------------------------------------------------


def test_without_an_order_exact_algorithms_work_and_what_needs_it_is_refused(log, tmp_path):
    store = adopt(sorted_files(log, tmp_path))
    as_in_memory(log, tmp_path / "adopted")
    assert ar.Totals.of(store).counts.sum() == 300
    sentence = "must have a column that orders rows of different arms, and it has none. Write the files with such"
    with pytest.raises(InvalidHistory, match=sentence):
        ar.FullStart(ar.IDS(4, seed=1), store)
    with pytest.raises(InvalidHistory, match=sentence):
        store.load()
    with pytest.raises(InvalidHistory, match=sentence):
        list(store.scan())
    policy = ar.ArtificialReplay(BASE, store)
    action = policy.ask()
    policy.save(tmp_path / "policy")
    again = ar.load(tmp_path / "policy", ar.open_history(tmp_path / "adopted"))
    assert again.ask() == action
    with pytest.raises(InvalidHistory, match=sentence):
        policy.unused_rows()


def test_without_an_order_a_log_grows_and_is_known_as_it_was(log, tmp_path):
    place = sorted_files(log, tmp_path, files=4)
    (tmp_path / "later").mkdir()
    (place / "part-3.parquet").rename(tmp_path / "later" / "part-3.parquet")
    policy = ar.ArtificialReplay(BASE, adopt(place))
    played(policy, 3, 1)
    policy.save(tmp_path / "policy")
    (tmp_path / "later" / "part-3.parquet").rename(place / "part-3.parquet")
    store = adopt(place)
    assert len(store) == 300
    as_in_memory(log, place)
    policy.extend(store)
    again = ar.load(tmp_path / "policy", store)
    assert policy.ask() == again.ask()
    assert store.first(225).counts.tolist() == [log.table["arm"][:225].to_pylist().count(arm) for arm in store.labels]


# -- growth -----------------------------------------------------------------------------------------------------------


def test_a_log_grows_by_more_files(log, tmp_path):
    place, later = sorted_files(log, tmp_path, files=12), tmp_path / "later"
    later.mkdir()
    names = [f"part-{number}.parquet" for number in range(12)]
    for name in names[5:]:
        shutil.move(place / name, later / name)
    store = adopt(place, order="at")
    policy, rows = ar.ArtificialReplay(BASE, store), [len(store)]
    for some in (names[5:8], names[8:11], names[11:]):
        for name in some:
            shutil.move(later / name, place / name)
        store = adopt(place)
        rows.append(len(store))
        policy.extend(store)
        as_in_memory(log._replace(table=log.table[: rows[-1]]), place)
    assert rows == [125, 200, 275, 300]
    assert len(list(place.glob("*.npz"))) == 1
    expected = ar.ArtificialReplay(BASE, log.history())
    assert played(policy, 8, 1) == played(expected, 8, 1)
    for row in rows:
        before = store.first(row)
        assert before.load().rewards.tolist() == log.table["click"][:row].to_pylist()
    with pytest.raises(InvalidHistory, match="had after files were added to it, got 130"):
        store.first(130)
    assert pickle.loads(pickle.dumps(store)).load().rewards.tolist() == log.table["click"].to_pylist()


def test_rows_are_added_by_the_engine_that_wrote_them(log, tmp_path):
    place = sorted_files(log, tmp_path)
    adopt(place, order="at")
    before = sorted(path.name for path in place.iterdir())
    with pytest.raises(
        InvalidParameter, match=r"another engine wrote\. Let it write one more, and index .* \(--sorted\)"
    ):
        ar.append_history(log.table, place)
    with pytest.raises(InvalidFile, match=r"another engine wrote\. Merge them with that engine"):
        ar.compact_history(place)
    assert sorted(path.name for path in place.iterdir()) == before


def test_part_2_comes_before_part_10(tmp_path):
    for number in (1, 2, 10):
        pq.write_table(pa.table({"arm": [0, 0], "click": [number, 0]}), tmp_path / f"part-{number}.parquet")
    found = adopt(tmp_path).read(np.array([0]), np.array([0]), np.array([9]))
    assert found.rewards.tolist() == [1, 0, 2, 0, 10, 0]


def test_an_empty_log_is_a_log(tmp_path):
    pq.write_table(pa.table({"arm": pa.array([], pa.int64()), "click": pa.array([], pa.float64())}), tmp_path / "0.pq")
    assert len(adopt(tmp_path)) == 0
    pq.write_table(pa.table({"arm": [1], "click": [0.5]}), tmp_path / "1.pq")
    assert len(adopt(tmp_path)) == 1


# -- refusals ---------------------------------------------------------------------------------------------------------


ORDER, REWARD = r"order \(column 'at'\) in row 1 ", r"reward \(column 'click'\)"


@pytest.mark.parametrize(
    ("columns", "order", "sentence"),
    [
        ({"arm": [0, 1, 0], "click": [1, 1, 1]}, None, r"unit \(column 'arm'\) in row 2 is 0, which has other rows"),
        ({"arm": [0, 0, 1, 0], "click": [1] * 4}, None, "in row 3 is 0, .*Write each file sorted by arm and order"),
        (
            {"arm": [0, 0], "click": [1, 1], "at": [5, 5]},
            "at",
            f"{ORDER}must come after that of the row of 0 before it",
        ),
        (
            {"arm": [0, 0, 1], "click": [1] * 3, "at": [5, 4, 9]},
            "at",
            f"{ORDER}must come .*Write each file sorted",
        ),
        ({"arm": [0, 0], "click": [1, 1], "at": ["1", "2"]}, "at", "must be whole numbers or times, got string"),
        ({"arm": [0, 0], "click": [1, 1], "at": [0.5, 1.0]}, "at", "must be whole numbers or times: Float value 0.5"),
        ({"arm": [0, 0], "click": [1, 1], "at": [1, None]}, "at", f"{ORDER}is missing"),
        ({"arm": [0, 0], "click": [1, float("nan")]}, None, f"{REWARD} in row 1 is nan, expected a finite number"),
        ({"arm": [0, 0], "click": [1, None]}, None, f"{REWARD} in row 1 is (nan|missing)"),
        ({"arm": [0, None], "click": [1, 1]}, None, r"unit \(column 'arm'\) in row 1 is missing, expected a label"),
        ({"arm": [0, 0], "click": ["1", "no"]}, None, REWARD),
        ({"arm": [[0.5, 1.0], [0.5, 1.0]], "click": [1, 1]}, None, "has no whole column 'arm'"),
        ({"arm": [0.5, 1.0], "click": [1, 1]}, None, "labels that are not floats"),
        (
            {"arms": [0, 0], "click": [1, 1]},
            None,
            "unit must name one column, got 'arm'. The columns are 'arms', 'click'",
        ),
        ({"arm": [0, 0], "click": [1, 1]}, "at", "order must name one column, got 'at'"),
    ],
    ids=range(15),
)
def test_what_cannot_be_read_as_it_lies_is_refused(columns, order, sentence, tmp_path):
    pq.write_table(pa.table(columns), tmp_path / "part-0.parquet", row_group_size=2)
    with pytest.raises(ArtReplayError, match=sentence) as error:
        adopt(tmp_path, order=order)
    assert "\n" not in str(error.value)
    assert "part-0.parquet" in str(error.value)
    assert [path.name for path in tmp_path.iterdir()] == ["part-0.parquet"]


def test_an_order_must_rise_from_file_to_file(log, tmp_path):
    place = sorted_files(log, tmp_path, files=2)
    (place / "part-0.parquet").rename(place / "part-2.parquet")
    with pytest.raises(ArtReplayError, match=r"must come after that of the row of .* before it"):
        adopt(place, order="at")


def test_an_order_must_rise_beyond_all_rows_that_are_known(log, tmp_path):
    place = sorted_files(log, tmp_path, files=2)
    adopt(place, order="at")
    late = pa.table({"arm": [99], "click": [1.0], "at": [0]})
    pq.write_table(late, place / "part-9.parquet")
    with pytest.raises(
        ArtReplayError,
        match=r"part-9.parquet: order \(column 'at'\) in row 0 must come after that of the row of 99 before it",
    ):
        adopt(place)
    assert len(ar.open_history(place)) == 300


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda place: (place / "part-1.parquet").unlink(), "must still have the files it had|does not exist"),
        (lambda place: shutil.copy(place / "part-1.parquet", place / "part-00.parquet"), "new files must sort after"),
        (lambda place: rewrite(place / "part-1.parquet"), "Index the log again"),
    ],
)  # fmt: skip
def test_files_that_are_known_stay_as_they_were(change, sentence, log, tmp_path):
    place = sorted_files(log, tmp_path)
    adopt(place, order="at")
    change(place)
    with pytest.raises(InvalidFile, match=sentence):
        adopt(place)
    if "part-00.parquet" in os.listdir(place):
        as_in_memory(log, place)
    else:
        with pytest.raises(InvalidFile, match=r"Index the log again|does not exist"):
            ar.open_history(place)


def rewrite(path: Path) -> None:
    table = pq.read_table(path)
    clicks = 1.0 - table["click"].to_numpy()
    pq.write_table(table.set_column(table.schema.get_field_index("click"), "click", pa.array(clicks)), path)


def test_a_file_that_changed_only_in_its_pages_is_noticed_when_it_is_read(log, tmp_path):
    place = sorted_files(log, tmp_path, files=1, group=300)
    adopt(place, order="at")
    file = place / "part-0.parquet"
    column = pq.read_metadata(file).row_group(0).column(1)
    data = bytearray(file.read_bytes())
    data[(column.dictionary_page_offset or column.data_page_offset) + 30] ^= 1
    file.write_bytes(data)
    with pytest.raises(InvalidFile, match="does not fit its checksum"):
        ar.ArtificialReplay(BASE, ar.open_history(place)).ask()
    with pytest.raises(InvalidFile, match="does not fit its checksum"):
        check_files(place)


def test_times_are_counted_in_the_same_unit_in_all_files(tmp_path):
    for number, unit in enumerate(("ms", "us")):
        at = pa.array([number], pa.timestamp(unit))
        pq.write_table(pa.table({"arm": [0], "click": [1.0], "at": at}), tmp_path / f"part-{number}.parquet")
    sentence = r"part-1.parquet: order must be of one type in all files, got timestamp\[ms\] and timestamp\[us\]"
    with pytest.raises(InvalidHistory, match=sentence):
        adopt(tmp_path, order="at")
    (tmp_path / "part-1.parquet").rename(tmp_path / "later")
    adopt(tmp_path, order="at")
    (tmp_path / "later").rename(tmp_path / "part-1.parquet")
    with pytest.raises(InvalidHistory, match=sentence):
        adopt(tmp_path)


@pytest.mark.parametrize("change", ["cut", "no Parquet", "empty"])
def test_files_that_are_no_parquet_are_refused(change, log, tmp_path):
    place = sorted_files(log, tmp_path)
    file = place / "part-1.parquet"
    content = {"cut": file.read_bytes()[:-9], "no Parquet": b"arm,click\n0,1\n", "empty": b""}[change]
    file.write_bytes(content)
    with pytest.raises(InvalidFile, match=r"part-1.parquet (is not a whole Parquet file|cannot be read as Parquet)"):
        adopt(place)


def test_folders_that_are_none_are_refused(log, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "nested" / "arm=0").mkdir(parents=True)
    pq.write_table(log.table[:1], tmp_path / "nested" / "arm=0" / "part-0.parquet")
    (tmp_path / "csv").mkdir()
    (tmp_path / "csv" / "part-0.csv").write_text("arm,click\n0,1\n")
    for name in ("empty", "nested", "csv", "none"):
        with pytest.raises(InvalidFile, match="must be a folder with Parquet files in it"):
            adopt(tmp_path / name)
    pq.write_table(log.table[:1], tmp_path / "part-0.parquet")
    with pytest.raises(InvalidFile, match="must be a folder with Parquet files in it"):
        adopt(tmp_path / "part-0.parquet")
    with pytest.raises(
        InvalidParameter, match="source must be a folder of Parquet files where already_sorted=True, got Table"
    ):
        adopt(log.table)


def test_what_we_laid_out_is_ours(log, tmp_path):
    ar.index_history(log.table, tmp_path / "log", **log.columns)
    with pytest.raises(InvalidParameter, match=r"was laid out by artreplay itself\. Add rows"):
        adopt(tmp_path / "log")
    place = sorted_files(log, tmp_path)
    for how in ({"path": tmp_path / "x"}, {"until": 3}, {"seed": 1}, {"table": "t"}, {"csv": {}}):
        with pytest.raises(
            InvalidParameter, match=rf"{next(iter(how))} must be left out for files that are sorted already"
        ):
            adopt(place, **how)


def test_columns_that_are_given_must_be_those_of_the_folder(log, tmp_path):
    place = sorted_files(log, tmp_path)
    adopt(place, order="at")
    for given, sentence in (
        ({"unit": "foo"}, "unit must be 'arm', as .* was indexed, got 'foo'"),
        ({"reward": "foo"}, "reward must be 'click', as .* was indexed"),
        ({"order": "nonsense"}, "order must be 'at', as .* was indexed"),
        ({"seed": 3}, "seed must be None, as"),
        ({"unit": ["x", "y"]}, "unit must be 'arm', as"),
    ):
        with pytest.raises(InvalidParameter, match=sentence):
            ar.open_history(place, **given)
    with pytest.raises(InvalidParameter, match=r"order must be 'at', as .* was indexed, got 'other'"):
        adopt(place, order="other")


def test_a_folder_that_we_wrote_can_be_looked_through_by_another_name(log, tmp_path):
    """By default the columns are those that we write."""
    ar.index_history(log.table, tmp_path / "log", **log.columns)
    (tmp_path / "bare").mkdir()
    (file,) = (tmp_path / "log").glob("*.parquet")
    shutil.copy(file, tmp_path / "bare")
    ar.index_history(tmp_path / "bare", already_sorted=True)
    as_in_memory(log, tmp_path / "bare")


def test_pandas_is_not_imported_for_it(log, tmp_path):
    place = sorted_files(log, tmp_path)
    adopt(place, order="at")
    code = (
        "import sys, artreplay as ar; ar.FullStart(ar.MonUCB(4, 20), ar.open_history(sys.argv[1])).ask();"
        "sys.exit('pandas' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, str(place)], check=True)
