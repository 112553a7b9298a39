"""The same log in files, tables and frames of every kind is the same history and gives the same decision."""

from __future__ import annotations

import bz2
import gzip
import sqlite3
from collections.abc import Callable
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import duckdb
import fsspec
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.feather
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

import artreplay as ar
from artreplay.errors import InvalidFile, InvalidHistory, InvalidParameter
from real_parts import needed_package

ROWS = 40
RNG = np.random.default_rng(0)
ARMS = ["red", "blue; dark", 'say "hi"', "grün, ü", "line\nbreak"]
TABLE = pa.table(
    {
        "arm": [ARMS[place] for place in RNG.integers(0, 5, ROWS)],
        "click": RNG.random(ROWS),
        "at": RNG.permutation(ROWS),
    }
)
COLUMNS = {"unit": "arm", "reward": "click", "order": "at"}


def text_of(delimiter: str = ",", newline: str = "\n") -> str:
    def field(value: Any) -> str:
        return '"' + str(value).replace('"', '""') + '"' if isinstance(value, str) else str(value)

    lines = [delimiter.join(map(field, row.values())) for row in TABLE.to_pylist()]
    return newline.join([delimiter.join(TABLE.column_names), *lines, ""])


def in_sqlite(path: Path) -> Path:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE log (arm TEXT, click REAL, at INTEGER)")
        connection.executemany("INSERT INTO log VALUES (?, ?, ?)", [tuple(row.values()) for row in TABLE.to_pylist()])
    connection.close()
    return path


def in_duckdb(path: Path) -> Path:
    with duckdb.connect(str(path)) as connection:
        connection.register("given", TABLE)
        connection.execute("CREATE TABLE log AS SELECT * FROM given")
    return path


def written(name: str, data: bytes | str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        (folder / name).write_bytes(data.encode() if isinstance(data, str) else data)
        return folder / name

    return write


def folder_of(name: str, write: Callable[[Any, Path], None]) -> Callable[[Path], Path]:
    """The log in twelve parts, of which the tenth must come behind the second; and a note beside them."""

    def make(folder: Path) -> Path:
        (folder / "parts").mkdir()
        for part in range(12):
            first = part * 4
            rows = TABLE.slice(first, 4 if part < 11 else ROWS)
            write(rows, folder / "parts" / name.format(part))
        (folder / "parts" / "README.md").write_text("what this is")
        (folder / "parts" / "_SUCCESS").write_text("")
        return folder / "parts"

    return make


def by(write: Callable[[Any, Any], Any], name: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        write(TABLE, str(folder / name))
        return folder / name

    return make


def packed_by_arrow(folder: Path, name: str) -> Path:
    with pa.output_stream(str(folder / name), compression="detect") as stream:
        stream.write(text_of().encode())
    return folder / name


KINDS: dict[str, Callable[[Path], Any]] = {
    "csv": written("log.csv", text_of()),
    "csv with semicolons": written("log.csv", text_of(";")),
    "csv with bars": written("log.txt", text_of("|")),
    "tsv": written("log.tsv", text_of("\t")),
    "csv of windows": written("log.csv", text_of(newline="\r\n")),
    "csv with a mark": written("log.csv", "\ufeff" + text_of()),
    "csv in utf-16": written("log.csv", ("\ufeff" + text_of()).encode("utf-16-le")),
    "csv in utf-32": written("log.csv", ("\ufeff" + text_of()).encode("utf-32-le")),
    "text in utf-32": written("log.txt", ("\ufeff" + text_of()).encode("utf-32-be")),
    "tsv that says otherwise": written("log.tsv", text_of(";")),
    "csv with a strange name": written("log[1] *?'s.csv", text_of()),
    "csv behind a preface": written("log.csv", "# made today\n# by hand\n" + text_of()),
    "csv.gz": written("log.csv.gz", gzip.compress(text_of().encode())),
    "csv.bz2": written("log.csv.bz2", bz2.compress(text_of().encode())),
    "csv.zst": lambda folder: packed_by_arrow(folder, "log.csv.zst"),
    "jsonl": written("log.jsonl", pl.from_arrow(TABLE).write_ndjson()),
    "json": written("log.json", pl.from_arrow(TABLE).write_json()),
    "parquet": by(pq.write_table, "log.parquet"),
    "feather": by(pyarrow.feather.write_feather, "log.feather"),
    "sqlite": lambda folder: in_sqlite(folder / "log.db"),
    "duckdb": lambda folder: in_duckdb(folder / "log.db"),
    "folder of parquet": folder_of("part-{}.parquet", pq.write_table),
    "folder of csv": folder_of("part-{}.csv", pyarrow.csv.write_csv),
    "pattern": lambda folder: str(folder_of("part-{}.parquet", pq.write_table)(folder) / "part-*"),
    "file://": lambda folder: by(pq.write_table, "log.parquet")(folder).as_uri(),
    "pandas": lambda folder: TABLE.to_pandas(),
    "polars": lambda folder: pl.from_arrow(TABLE),
    "lazy polars": lambda folder: pl.from_arrow(TABLE).lazy(),
    "arrow": lambda folder: TABLE,
    "batch": lambda folder: TABLE.to_batches()[0],
    "dataset": lambda folder: pyarrow.dataset.dataset(TABLE),
    "relation": lambda folder: duckdb.from_arrow(TABLE),
}
DATABASES = ("sqlite", "duckdb")
EXPECTED = ar.History.from_frame(TABLE.sort_by("at"), "arm", "click")
SUMS = {
    order: {arm: reduce(add, (row["click"] for row in table.to_pylist() if row["arm"] == arm)) for arm in ARMS}
    for order, table in ((None, TABLE), ("at", TABLE.sort_by("at")))
}  # whose last bits depend on the order of the rows
BASE = ar.MonUCB(arms=ARMS, horizon=20)


def samples(history: ar.History) -> list[tuple[Any, float]]:
    return [(history.unit(row), reward) for row, reward in enumerate(history.rewards.tolist())]


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_log_is_the_same_history_and_the_same_decision(kind, tmp_path):
    log = KINDS[kind](tmp_path)
    how = {"table": "log"} if kind in DATABASES else {}
    history = ar.open_history(log, **COLUMNS, **how)
    assert samples(history) == samples(EXPECTED)
    history.check_continues(EXPECTED.fingerprint)
    assert ar.ArtificialReplay(BASE, history).ask() == ar.ArtificialReplay(BASE, EXPECTED).ask()
    in_file = ar.open_history(log, "arm", "click", until=30, **how)
    assert samples(in_file) == samples(ar.History.from_frame(TABLE.slice(0, 30), "arm", "click"))


@pytest.mark.parametrize("kind", KINDS)
def test_totals_have_the_same_bits_wherever_the_log_lies(kind, tmp_path):
    assert SUMS[None] != SUMS["at"]
    log, how = KINDS[kind](tmp_path), {"table": "log"} if kind in DATABASES else {}
    for order, sums in SUMS.items():
        totals = ar.Totals.of(log, unit="arm", reward="click", **how, **({} if order is None else {"order": order}))
        assert dict(zip(totals.labels, totals.sums.tolist(), strict=True)) == sums


@pytest.mark.parametrize("kind", ["csv with semicolons", "jsonl", "sqlite", "lazy polars", "relation"])
def test_the_same_log_is_the_same_store(kind, tmp_path):
    how = {"table": "log"} if kind in DATABASES else {}
    ar.index_history(KINDS[kind](tmp_path), tmp_path / "log.arh", **COLUMNS, **how)
    assert samples(ar.open_history(tmp_path / "log.arh").load()) == samples(EXPECTED)
    totals = ar.Totals.of(tmp_path / "log.arh")
    assert dict(zip(totals.labels, totals.sums.tolist(), strict=True)) == SUMS["at"]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_bucket_is_read_as_a_folder_is(ending, tmp_path):
    bucket = fsspec.filesystem("memory")
    write = {"csv": pyarrow.csv.write_csv, "parquet": pq.write_table}[ending]
    parts = folder_of(f"part-{{}}.{ending}", write)(tmp_path)
    bucket.put(f"{parts}/", f"/sources/{ending}", recursive=True)
    try:
        for place in (f"memory://sources/{ending}", f"memory://sources/{ending}/*.{ending}"):
            with pytest.warns(UserWarning, match="is read whole each time it is opened"):
                assert samples(ar.open_history(place, **COLUMNS)) == samples(EXPECTED)
    finally:
        bucket.rm("/sources", recursive=True)


def test_queries_views_and_totals_come_from_any_database(tmp_path):
    query = 'SELECT arm, count(*) AS shown, sum(click) AS clicked FROM log GROUP BY arm ORDER BY min("at")'
    expected = ar.Totals.of(EXPECTED)
    for path in (in_sqlite(tmp_path / "one.db"), in_duckdb(tmp_path / "two.db")):
        totals = ar.open_history(path, unit="arm", count="shown", sum="clicked", table=query)
        assert (totals.labels, totals.counts.tolist()) == (expected.labels, expected.counts.tolist())
        with pytest.raises(InvalidParameter, match=r"table must name a table of the database .*, or be a query"):
            ar.open_history(path, **COLUMNS)
        with pytest.raises(InvalidFile, match=r"cannot be read as \w+: .*nothing"):
            ar.open_history(path, **COLUMNS, table="nothing")
    with pytest.raises(InvalidFile, match="must be of one kind, got DuckDB and SQLite"):
        ar.open_history(str(tmp_path / "*.db"), **COLUMNS, table="log")
    in_sqlite(tmp_path / "three.db")
    with pytest.raises(InvalidFile, match="must be one SQLite file on a disk of this machine"):
        ar.open_history(str(tmp_path / "[ot][nh]*.db"), **COLUMNS, table="log")


# -- CSV, JSON and partitions, as people have them ---------------------------------------------------------------------


def opened(folder: Path, text: str | bytes, name: str = "log.csv", **csv: Any) -> list[tuple[Any, float]]:
    (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
    return samples(ar.open_history(folder / name, "arm", "click", csv=csv or None))


@pytest.mark.parametrize(
    ("text", "csv", "expected"),
    [
        ("arm;click\n007;0,5\n7;1\n", {"decimal_separator": ","}, [("007", 0.5), (7, 1.0)]),
        ("arm,click\n'a,b',1\n", {"quote": "'"}, [("a,b", 1.0)]),
        ('arm,click\n5" pipe,1\n', {"quote": ""}, [('5" pipe', 1.0)]),
        ("arm~click\nred~1\n", {"delim": "~"}, [("red", 1.0)]),
        ("arm,click\nrot,1\ngr\u00fcn,0\n".encode("latin-1"), {"encoding": "latin-1"}, [("rot", 1.0), ("grün", 0.0)]),
        ("arm,click\nNA,true\nnull,False\n", {}, [("NA", 1.0), ("null", 0.0)]),
        ("click,note,arm\n1,,red\n", {}, [("red", 1.0)]),
        ("arm,click\n", {}, []),
        ("arm;click\n", {"decimal_separator": ","}, []),
        ("sep=;\narm;click\nred;1\n", {"skip": 1}, [("red", 1.0)]),
        ("% by hand\narm,click\n% no row\nred,1\n", {"comment": "%"}, [("red", 1.0)]),
        ("made, today\narm,click\nred,1\n", {"skip": "1"}, [("red", 1.0)]),
        ("\n\narm,click,\n#1,1,\n\n#2,0,\n", {}, [("#1", 1.0), ("#2", 0.0)]),
        ("arm,click\rred,1\r", {}, [("red", 1.0)]),
        ("arm,click\n" + "a,1\n" * 30_000 + '"q,r",0\n', {}, [("a", 1.0)] * 30_000 + [("q,r", 0.0)]),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_dialect_can_be_described(text, csv, expected, tmp_path):
    assert opened(tmp_path, text, **csv) == expected


def test_a_file_without_a_header_has_numbered_columns(tmp_path):
    (tmp_path / "log.csv").write_text("red,1\nblue,0\n")
    history = ar.open_history(tmp_path / "log.csv", "column0", "column1", csv={"header": False})
    assert samples(history) == [("red", 1.0), ("blue", 0.0)]


@pytest.mark.parametrize(
    ("text", "csv", "sentence"),
    [
        ("arm,click\nred,1\nblue\n", {}, "Line: 3 .* Expected Number of Columns: 2 Found: 1"),
        ("arm,click\n" + "a,1\n" * 30_000 + "b,1,2\n", {}, "Line: 30002 .* Expected Number of Columns: 2 Found: 3$"),
        ("arm,click\n" + "a,1\n" * 30_000 + "b,x\n", {}, "reward .* in row 30000 is 'x', expected a number"),
        ("arm,click,arm\nred,1,blue\n", {}, "unit must name one column, got 'arm'"),
        (
            "arm;click\nred;0,5\n",
            {},
            r"row 0 is '0,5', expected a number\. csv={\"decimal_separator\": \",\"} reads a comma",
        ),
        (b"arm,click\ngr\xfcn,1\n", {}, r"log.csv is not in utf-8\. Name its encoding, as in csv={"),
        (
            "arm;click\nx;0,5\ny;1.234\n",
            {"decimal_separator": ","},
            r"reward .* in row 1 is '1\.234', .* decimal_separator is a comma$",
        ),
        ("arm,click\nred,0\nblue,1_0\n", {}, "reward .* in row 1 is '1_0', expected a number"),
        ("arm,click\nred,1\n", {"encoding": "klingon"}, "encoding must be the name of an encoding"),
        (
            "arm,click\nred,1\n",
            {"encoding": "rot13"},
            "encoding must be the name of an encoding of text, .* got 'rot13'",
        ),
        ("arm,click\nred,1\n", {"colour": "red"}, "csv must have only the options delim, quote, .* got 'colour'"),
        ("arm,click\nred,1\n", {"header": "yes"}, "header must be True or False, got 'yes'"),
        ("arm,click\nred,1\n,0\n", {}, "unit .* in row 1 is missing"),
        ("arm,click\r\nred,1\nblue,0\r\n", {}, r"log.csv must end all lines by \\n or all by \\r\\n, got"),
        ("arm,click\n" + "a,1\n" * 30_000 + "b,1\r\n", {}, "log.csv must end all lines by"),
        ("arm,click\nred,1\nblue,inf\n", {}, "reward .* in row 1 is inf"),
        ("arm;click\nred;1\n", {"nullstr": "red"}, "unit .* in row 0 is missing"),
        (
            "sep=;\narm;click\nred;1\n",
            {},
            "'sep=', ''\\. Say what separates them, as in csv={\"delim\": \";\"}, or skip lines",
        ),
        ("arm~click\nred~1\n", {}, r"log.csv: must have a column for each value, got 'arm~click'\. Say what separates"),
        ("arm,click\nred,1\n".encode("utf-16-be"), {}, r"log.csv is not in utf-8\. Name its encoding"),
        ("arm,click\nred,1\n".encode("utf-16-le")[:-1], {"encoding": "utf-16-le"}, "log.csv is not in utf-16-le"),
        ("arm,click\nred,1\n", {"comment": 5}, "comment must be one character, or none, got 5"),
        ("arm,click\nred,1\n", {"delim": ""}, "delim must be one character, got ''"),
        ("arm,click\nred,1\n", {"delim": '"'}, "delim and quote must be different"),
        ("arm,click\nred,1\n", {"skip": "x"}, "skip must be a number of lines, got 'x'"),
        ("arm,click\nred,1\n", {"strict_mode": "perhaps"}, "log.csv cannot be read as CSV: Could not cast .*perhaps"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_cannot_be_read_is_refused_in_a_sentence(text, csv, sentence, tmp_path):
    with pytest.raises((InvalidFile, InvalidHistory, InvalidParameter), match=sentence):
        opened(tmp_path, text, **csv)


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_a_file_that_is_cut_off_is_refused_unless_its_last_value_can_be_a_whole_one(ending, tmp_path):
    """Without an end of line 0.2 may be what is left of 0.25, and such a last line is allowed in CSV."""
    lines = "arm,at,click\nred,0,0.125\nblue,1,0.25\nred,2,1.0\n"
    values = [0.125, 0.25, 1.0]
    data = gzip.compress(lines.encode()) if ending else lines.encode()
    path = tmp_path / f"log.csv{ending}"
    for size in range(len(data)):
        path.write_bytes(data[:size])
        try:
            found = ar.open_history(path, **COLUMNS).rewards.tolist()
        except (InvalidFile, InvalidHistory, InvalidParameter):
            continue
        assert not ending
        _, *rows, rest = lines[:size].split("\n") if "\n" in lines[:size] else ("", "")
        assert found == [*values[: len(rows)], *([float(rest.rpartition(",")[2])] if rest else [])]


def test_a_dialect_belongs_to_text(tmp_path):
    pq.write_table(TABLE, tmp_path / "log.parquet")
    with pytest.raises(InvalidParameter, match=r"csv is only for CSV files, and .* is not one"):
        ar.open_history(tmp_path / "log.parquet", **COLUMNS, csv={"delim": ";"})


def test_json_may_have_keys_beside_that_differ_only_in_case(tmp_path):
    assert opened(tmp_path, '{"ID": 1, "id": 2, "arm": "a", "click": 1}\n', "log.jsonl") == [("a", 1.0)]


def test_json_keeps_its_types(tmp_path):
    text = '{"arm": "7", "click": 1}\n{"arm": 7, "click": true}\n{"click": 0.5, "arm": "a\\"b"}\n'
    assert opened(tmp_path, text, "log.jsonl") == [("7", 1.0), (7, 1.0), ('a"b', 0.5)]
    for bad, sentence in (
        ('{"arm": 1, "click": "0.5"}', "reward .* in row 0 is '\"0.5\"', expected a number"),
        ('{"arm": 1, "click": 1}\n{"arm": 1}', "reward .* in row 1 is nan"),
        ('{"arm": 1, "click"', "log.jsonl cannot be read as JSON"),
        ('{"arm": [1], "click": 1}', r"unit \(column 'arm'\) in row 0 is \[1\], expected a text or a whole"),
        (
            '{"arm": "a", "click": 1}\n{"arm": true, "click": 1}',
            "in row 1 is true, expected a text or a whole number",
        ),
        ("", "The columns are none"),
        ('{"arms": 1, "click": 1}', "unit must name one column, got 'arm'"),
    ):
        with pytest.raises((InvalidFile, InvalidHistory), match=sentence):
            opened(tmp_path, bad, "log.jsonl")


def test_hidden_folders_and_columns_of_the_file_itself(tmp_path):
    folder = tmp_path / ".cache" / "arm=blue"
    folder.mkdir(parents=True)
    (folder / "log.csv").write_text("arm,click\nred,1\n")
    for place in (folder / "log.csv", folder, str(tmp_path / ".cache" / "*" / "*.csv")):
        assert samples(ar.open_history(place, "arm", "click")) == [("red", 1.0)]
    with pytest.raises(InvalidFile, match="has no file in it"):
        ar.open_history(tmp_path, "arm", "click")


def test_orc_is_refused_with_what_opens_it(tmp_path):
    pyarrow.orc.write_table(TABLE, tmp_path / "log.orc")
    with pytest.raises(
        InvalidFile, match=r"must be of one of the kinds CSV, .* SQLite, and is not\. Open it with a package"
    ):
        ar.open_history(tmp_path / "log.orc", **COLUMNS)
    assert samples(ar.open_history(pyarrow.orc.read_table(tmp_path / "log.orc"), **COLUMNS)) == samples(EXPECTED)


def test_every_file_must_have_the_columns_and_be_of_one_kind(tmp_path):
    (tmp_path / "1.csv").write_text("arm,click\nred,1\n")
    (tmp_path / "2.csv").write_text("arm,clicks\nred,1\n")
    with pytest.raises(
        InvalidHistory, match=r"2.csv: there must be exactly one column 'click', got the columns 'arm', 'clicks'"
    ):
        ar.open_history(tmp_path, "arm", "click")
    pq.write_table(TABLE, tmp_path / "3.parquet")
    with pytest.raises(InvalidFile, match="must be of one kind, got CSV and Parquet"):
        ar.open_history(tmp_path, "arm", "click")


def test_a_folder_that_can_only_be_read_is_read(tmp_path):
    path = written("log.csv", text_of(";"))(tmp_path)
    path.chmod(0o400)
    tmp_path.chmod(0o500)
    try:
        assert samples(ar.open_history(path, **COLUMNS)) == samples(EXPECTED)
        assert [found.name for found in tmp_path.iterdir()] == ["log.csv"]
    finally:
        tmp_path.chmod(0o700)


def test_columns_of_one_database_column_are_of_one_type(tmp_path):
    with sqlite3.connect(tmp_path / "log.db") as connection:
        connection.execute("CREATE TABLE log (arm, click)")
        connection.executemany("INSERT INTO log VALUES (?, ?)", [(1, 1.0), ("a", 0.0)])
    connection.close()
    with pytest.raises(InvalidHistory, match="column 'arm' must be of one type that arrow knows"):
        ar.open_history(tmp_path / "log.db", "arm", "click", table="log")


def test_what_is_no_frame_is_refused():
    for given in (pd.Series([1]), {"arm": [1]}, [1], None, pd.DataFrame):
        with pytest.raises(
            InvalidHistory, match="a log must be a path, a folder, a pattern, an address, a connection or a frame"
        ):
            ar.open_history(given, **COLUMNS)
    with pytest.raises(InvalidFile, match="must not be empty"):
        ar.open_history("", **COLUMNS)
    with pytest.raises(InvalidFile, match=r"the LazyFrame cannot be read as a frame: .*nowhere"):
        ar.open_history(pl.scan_csv("/nowhere.csv"), **COLUMNS)
    noon = pd.Timestamp("2024-01-01 12:00")
    mixed = pd.DataFrame(
        {"arm": [1, 2], "click": [0, 1], "at": pd.Series([noon, noon.tz_localize("UTC")], dtype=object)}
    )
    with pytest.raises(InvalidHistory, match="times in column 'at' must all have a zone, or none"):
        ar.open_history(mixed, **COLUMNS)
    frame = pd.DataFrame([[1, 2, 3]], columns=["arm", "arm", "click"])
    with pytest.raises(InvalidHistory, match="must have a name of its own"):
        ar.open_history(frame, "arm", "click")


# -- tables that keep a list of their files ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mark", "kind", "line"),
    [
        ("_delta_log", "Delta", "DeltaTable("),
        ("metadata", "Iceberg", "StaticTable.from_metadata("),
    ],
)
def test_a_table_of_a_lake_is_refused_with_the_lines_that_open_it(mark, kind, line, tmp_path):
    folder = tmp_path / "tables" / "clicks"
    (folder / mark).mkdir(parents=True)
    (folder / mark / "v1.metadata.json").write_text("{}")
    pq.write_table(TABLE, folder / "part-0.parquet")
    for place in (folder, tmp_path / "tables", str(folder / "*.parquet"), str(folder.parent / "*" / "*.parquet")):
        with pytest.raises(InvalidFile, match=rf"is, or is part of, an? {kind} table, which keeps a list") as refused:
            ar.open_history(place, **COLUMNS)
        lines = str(refused.value).splitlines()
        assert len(lines) == 3
        assert lines[1].startswith("from ")
        assert f'{line}"{folder}' in lines[2]
        assert lines[2].startswith("ar.open_history(")


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_the_two_lines_open_a_delta_table_as_it_is_now(tmp_path):
    needed_package("deltalake")
    import deltalake

    deltalake.write_deltalake(tmp_path / "log", TABLE.slice(0, 10))
    deltalake.write_deltalake(tmp_path / "log", TABLE, mode="overwrite")
    with pytest.raises(InvalidFile) as refused:
        ar.open_history(tmp_path / "log", **COLUMNS)
    given = 'unit="arm", reward="click", order="at"'
    first, second = str(refused.value).splitlines()[1:]
    names: dict[str, Any] = {"ar": ar}
    exec(f"{first}\nhistory = {second.replace('unit=…, reward=…, order=…', given)}", names)
    assert samples(names["history"]) == samples(EXPECTED)
