"""`artreplay index`: a log laid out from any source, whole or not at all; and what `recommend` makes of it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.parquet import read_metadata

import artreplay as ar
from command_kit import COLUMNS, OPTIONS, Refused, Run, samples, write_csv


@pytest.fixture
def store(run: Run, log: Path) -> Path:
    assert run("index", log, *COLUMNS, "-o", "log.d").code == 0
    return Path("log.d")


def test_a_store_recommends_what_its_log_does(run: Run, log: Path, store: Path) -> None:
    from_log, from_store = (
        run("recommend", log, *OPTIONS, "--json").json,
        run("recommend", store, "--horizon", 100, "--json").json,
    )
    assert from_store["reading"]["rows"] <= 200
    for answer in (from_log, from_store):
        del answer["reading"]
    assert from_store == from_log
    assert ", fetched " in run("recommend", store, "--horizon", 100).out


def test_a_state_goes_from_the_log_to_its_store(run: Run, log: Path, store: Path) -> None:
    run("recommend", log, *OPTIONS, "--state", "state.ar")
    run("tell", "--state", "state.ar", "red", 1)
    done = run("recommend", store, "--state", "state.ar", "--json")
    assert done.json["rounds"] == 1


def test_rows_that_the_log_gained_are_added(run: Run, refused: Refused, folder: Path, log: Path, store: Path) -> None:
    write_csv(log, samples(260))
    assert run("index", log, "--append", "--grown", "-o", store).out.startswith("log.d: 60 rows added, 260 rows now")
    assert run("index", log, "--append", "--grown", "-o", store).out.startswith("log.d: 0 rows added")
    before = sorted(path.name for path in store.rglob("*"))
    write_csv(log, [("red", 0), *samples(260)])
    sentence = refused("index", log, "--append", "--grown", "-o", store)
    assert (
        "row 0 has changed. The log must be the one the folder was made of, and may only have gained rows" in sentence
    )
    write_csv(log, samples(100))
    assert "has 100 rows and had 260 before. A log may only gain rows at its end" in refused(
        "index", log, "--append", "--grown", "-o", store
    )
    assert sorted(path.name for path in store.rglob("*")) == before
    assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == []


def test_a_table_of_duckdb(run: Run, refused: Refused, folder: Path, log: Path) -> None:
    with duckdb.connect("shop.duckdb") as connection:
        numbered = f"SELECT *, row_number() OVER () AS place FROM read_csv('{log}')"
        connection.execute(f"CREATE TABLE clicks AS SELECT *, 200 - place AS back FROM ({numbered})")
    for table in ("clicks", "SELECT * FROM clicks"):
        done = run("recommend", "shop.duckdb", "--table", table, *OPTIONS, "--json")
        assert done.json["log"]["samples"] == 200
    backwards = run("recommend", "shop.duckdb", "--table", "clicks", "--order", "back", *OPTIONS, "--json").json
    turned = ar.open_history(log, "arm", "click")
    turned = turned.rows(range(199, -1, -1))
    assert (
        backwards["action"]
        == ar.ArtificialReplay(ar.MonUCB(arms=["[bold] blue", "grün", "red"], horizon=100), turned).ask()
    )
    assert "--table must name a table" in refused("recommend", "shop.duckdb", *OPTIONS)
    assert "Table with name nothing does not exist" in refused("inspect", "shop.duckdb", "--table", "nothing", *COLUMNS)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("none.csv", *COLUMNS, "-o", "x.d"), "none.csv does not exist"),
        (
            ("log.csv", "--unit", "arms", "--reward", "click", "-o", "x.d"),
            "log.csv: --unit must name one column, got 'arms'",
        ),
        (("log.csv", *COLUMNS), "-o must name the folder to make"),
        (("log.csv", *COLUMNS, "-o", "x.d", "--memory", "lots"), "memory must be an amount such as 2GB"),
        (("log.csv", *COLUMNS, "-o", "no/where/x.d"), "x.d cannot be written"),
        (("log.csv", *COLUMNS, "-o", "log.csv"), "log.csv exists already"),
        (
            ("log.csv", *COLUMNS, "-o", "x.d", "--order", "shuffle"),
            '--order "shuffle" needs a seed. Give one, such as --order-seed 0',
        ),
        (("log.csv", "--append", "-o", "x.d"), "x.d does not exist"),
        (("log.csv", "--check"), "log.csv is not an indexed log"),
        (("cut.parquet", *COLUMNS, "-o", "x.d"), "cut.parquet cannot be read as Parquet"),
        (
            ("nan.parquet", *COLUMNS, "-o", "x.d"),
            "reward (column 'click') in row 299999 is nan",
        ),
    ],
)
def test_what_is_refused_leaves_nothing_behind(
    refused: Refused, folder: Path, log: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    pq.write_table(pa.table({"arm": ["a"] * 300_000, "click": [0.0] * 299_999 + [float("nan")]}), "nan.parquet")
    Path("cut.parquet").write_bytes(Path("nan.parquet").read_bytes()[:500])
    before = sorted(folder.iterdir())
    assert sentence in refused("index", *arguments)
    assert sorted(folder.iterdir()) == before


@pytest.mark.long
def test_a_reward_that_is_missing_ten_million_rows_on_is_found(refused: Refused, folder: Path) -> None:
    clicks = np.zeros(10_000_000)
    clicks[9_999_999] = np.nan
    pq.write_table(pa.table({"arm": np.zeros(10_000_000, np.int64), "click": clicks}), "log.parquet")
    for command in (("index", "log.parquet", "-o", "x.d"), ("recommend", "log.parquet", "--horizon", "9")):
        assert "reward (column 'click') in row 9999999 is nan, expected a finite number" in refused(*command, *COLUMNS)
    assert [path.name for path in folder.iterdir()] == ["log.parquet"]


def test_a_log_that_is_damaged_is_noticed(run: Run, refused: Refused, store: Path) -> None:
    assert "200 rows" in run("index", store, "--check").out
    (file,) = store.glob("rows-*.parquet")
    data = file.read_bytes()
    place = read_metadata(file).row_group(0).column(2)
    damaged = bytearray(data)
    damaged[(place.dictionary_page_offset or place.data_page_offset) + 20] ^= 1
    file.write_bytes(damaged)
    assert f"{file.name} does not fit its checksum" in refused("index", store, "--check")
    assert f"{file.name} does not fit its checksum" in refused("recommend", store, "--horizon", 9)
    file.write_bytes(data[:-8])
    said = refused("recommend", store, "--horizon", 9)
    assert f"{file.name} must have {len(data):,} bytes, got {len(data) - 8:,}" in said
    file.unlink()
    assert f"{file.name} does not exist" in refused("inspect", store)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"format": 99}, "was laid out in format 99, and this version of artreplay reads "),
        ({"rows": 7}, "manifest.json does not fit its checksum"),
        ({"magic": "else"}, "is not an indexed log"),
    ],
)
def test_a_manifest_that_was_changed_is_noticed(
    refused: Refused, store: Path, change: dict[str, object], sentence: str
) -> None:
    manifest = store / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | change))
    assert sentence in refused("recommend", store, "--horizon", 9)
    manifest.write_text("{")
    assert "manifest.json is damaged" in refused("recommend", store, "--horizon", 9)


def test_a_folder_that_another_engine_sorted_is_looked_through(run: Run, refused: Refused, log: Path) -> None:
    history = ar.open_history(log, "arm", "click")
    table = pa.table(
        {"arm": [history.unit(row) for row in range(200)], "click": history.rewards, "at": np.arange(200)}
    ).sort_by([("arm", "ascending"), ("at", "ascending")])
    Path("sorted").mkdir()
    pq.write_table(table, "sorted/part-0.parquet")
    done = run("index", "sorted", *COLUMNS, "--order", "at", "--sorted")
    assert done.out.startswith("sorted: 200 rows in 1 file")
    assert (
        run("recommend", "sorted", "--horizon", 100, "--json").json["action"]
        == run("recommend", log, *OPTIONS, "--json").json["action"]
    )
    assert "200 rows" in run("index", "sorted", "--check").out
    assert "(--sorted)" in refused("index", log, "--append", "-o", "sorted")
    assert "--output must be left out for files that are sorted already" in refused(
        "index", "sorted", "--sorted", "-o", "x.d"
    )


def test_other_columns_than_those_of_the_store_are_refused(refused: Refused, store: Path) -> None:
    assert "--unit must be 'arm', as log.d was indexed, got 'colour'" in refused(
        "recommend", store, "--unit", "colour", "--horizon", 9
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_store_that_may_not_be_read(refused: Refused, store: Path) -> None:
    (store / "manifest.json").chmod(0)
    assert "Permission denied" in refused("recommend", store, "--horizon", 9)


def test_a_process_that_was_killed_while_appending_is_no_harm(run: Run, log: Path, store: Path) -> None:
    (store / "rows-0123456789abcdef.parquet").write_text("half a file")
    write_csv(log, samples(230))
    assert run("index", log, "--append", "--grown", "-o", store).code == 0
    assert len(ar.open_history(store)) == 230
    assert not (store / "rows-0123456789abcdef.parquet").exists()


def test_what_is_no_part_of_a_store_is_not_in_its_size(run: Run, log: Path, store: Path) -> None:
    write_csv(log, samples(230))
    run("index", log, "--append", "--grown", "-o", store)
    first = run("index", log, "--append", "--grown", "-o", store).out
    (store / "notes.txt").write_text("x" * 1_000_000)
    assert run("index", log, "--append", "--grown", "-o", store).out == first
    assert first.split(", ")[-1].strip() in run("index", store, "--check").out


def test_only_the_labels_of_the_first_rows_are_arms(run: Run, refused: Refused, log: Path, store: Path) -> None:
    rows = ("--until", 2, "--horizon", 9, "--json")
    arms = {label for label, _ in samples(2)}
    found = run("recommend", log, *COLUMNS, *rows).json
    assert len(arms) < 3
    assert {arm["arm"] for arm in found["arms"]} == arms
    assert "--until is for logs that are read into memory" in refused("recommend", store, *rows)


@pytest.mark.parametrize("path", ["./log.csv", "v1.2/log.csv", "my.log.csv", "log.CSV", "v1.2/*.csv"])
def test_arms_of_a_csv_file_are_read_as_its_labels_are(run: Run, folder: Path, path: str) -> None:
    file = Path(path.replace("*", "log"))
    file.parent.mkdir(exist_ok=True)
    write_csv(file, samples(9))
    assert run("recommend", path, *OPTIONS, "--arms", "red,grün,[bold] blue,7", "--state", "state").code == 0
    with ar.Study.open("state", read_only=True) as study:
        assert list(study.base.arms)[-1] == 7


def test_a_log_is_indexed_by_segments(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("banner,click,country,age\nred,1,NL,30\nblue,0,DE,40\nred,0,NL,50\n")
    done = run(
        "index",
        log,
        "--unit",
        "banner",
        "--reward",
        "click",
        "--context",
        "age",
        "--segments",
        "country",
        "-o",
        tmp_path / "log",
    )
    assert done.code == 0
    opened = ar.open_history(tmp_path / "log")
    assert opened.context_names == ("age", "country")
    assert opened.segments == ("country",)
    assert opened.cells.labels == [("NL", "red"), ("DE", "blue")]
