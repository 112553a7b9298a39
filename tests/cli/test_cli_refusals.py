"""What is wrong is said in one sentence, with exit code 2."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from command_kit import COLUMNS, OPTIONS, Refused, Run


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "--unit must name one column, got 'arm'. The columns are none"),
        ("arm,click\nred,1\nblue,\n", "reward (column 'click') in row 1 is nan"),
        ("arm,click\nred,1\nblue,nan\n", "reward (column 'click') in row 1 is nan"),
        ("arm,click\nred,1\nblue,often\n", "reward (column 'click') in row 1 is 'often', expected a number"),
        ("arm,click\nred,1\nblue,1\nred,7\n", "reward in row 2 is 7, expected a number in [0, 1]"),
        ("arm,click\nred,1\n,1\n", "unit (column 'arm') in row 1 is missing"),
        ("arm,click\nred,1,2\n", "The columns are 'red', '1', '2'"),
        ("arm,clicks\nred,1\n", "--reward must name one column, got 'click'. The columns are 'arm', 'clicks'"),
        ("arm;clicks\nred;1\n", "--reward must name one column, got 'click'. The columns are 'arm', 'clicks'"),
        ("arm,click,arm\nred,1,blue\n", "--unit must name one column, got 'arm'"),
        ("arm,click\nred,2024-01-01\n", "reward (column 'click') in row 0 is "),
    ],
)
def test_bad_logs(refused: Refused, folder: Path, content: str, words: str) -> None:
    log = folder / "log.csv"
    log.write_text(content)
    sentence = refused("recommend", log, *OPTIONS)
    assert words in sentence
    assert "log.csv" in sentence
    assert ("counted from 0" in sentence) == ("row" in words)


def test_a_log_that_is_not_utf8(refused: Refused, folder: Path) -> None:
    (folder / "log.csv").write_bytes(b"arm,click\n\xff\xfe,1\n")
    sentence = "log.csv is not in utf-8. Name its encoding, as in --csv encoding=latin-1"
    assert refused("recommend", "log.csv", *OPTIONS) == sentence


def test_no_log(refused: Refused, folder: Path) -> None:
    assert refused("recommend", "log.csv", *OPTIONS) == "log.csv does not exist"
    assert refused("recommend", folder, *OPTIONS) == f"{folder} has no file in it"


@pytest.mark.parametrize("name", ["log.csv", "log.jsonl"])
def test_an_empty_file_has_no_columns(refused: Refused, folder: Path, name: str) -> None:
    (folder / name).write_bytes(b"")
    sentence = f"{name}: --unit must name one column, got 'arm'. The columns are none"
    assert refused("index", name, *COLUMNS, "-o", "x.arh") == sentence


def test_a_dialect_is_refused_as_it_was_typed(refused: Refused, folder: Path) -> None:
    (folder / "log.csv").write_text("arm,click\nred,1\n")
    said = refused("recommend", "log.csv", *OPTIONS, "--csv", "header=maybe")
    assert said == "--csv header must be yes or no, got 'maybe'"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "The columns are none"),
        (b"hello\n", "got 'hello'. Say what separates them, as in --csv \"delim=;\", or skip lines"),
        (b"a,b\0\n", "log must be of one of the kinds CSV, JSON, Parquet"),
        (b"PAR1 and nothing", "log cannot be read as Parquet"),
        (b"\x89PNG\r\n", "log is not in utf-8"),
    ],
)
def test_a_log_of_no_known_kind(refused: Refused, folder: Path, content: bytes, words: str) -> None:
    (folder / "log").write_bytes(content)
    assert words in refused("recommend", "log", *OPTIONS)


def test_bad_parquet(refused: Refused, folder: Path) -> None:
    (folder / "log.parquet").write_bytes(b"x" * 100)
    assert "log.parquet cannot be read as Parquet" in refused("recommend", "log.parquet", *OPTIONS)
    pq.write_table(pa.table({"arm": [0.5, 1.5], "click": [0, 1]}), "log.parquet")
    assert "must be labels that are not floats" in refused("recommend", "log.parquet", *OPTIONS)
    pq.write_table(pa.table({"arm": ["a", "b"], "seen": [0, 1]}), "log.parquet")
    assert "The columns are 'arm', 'seen'" in refused("recommend", "log.parquet", *OPTIONS)
    pq.write_table(pa.table({"arm": ["a", "b"], "click": [0.0, None]}), "log.parquet")
    assert "reward (column 'click') in row 1 is nan" in refused("recommend", "log.parquet", *OPTIONS)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--horizon", 9), "--unit must name a column"),
        ((*COLUMNS,), "kl-ucb needs --horizon"),
        ((*COLUMNS, "--horizon", 0), "--horizon must be at least 1, got 0"),
        ((*OPTIONS, "--until", -1), "until"),
        ((*OPTIONS, "--arms", "red"), "is not an arm"),
        ((*OPTIONS, "--arms", "red"), ". Give --unknown skip to leave such rows out"),
        ((*OPTIONS, "--arms", "red,,blue"), "labels separated by commas"),
        ((*OPTIONS, "--arms", ""), "labels separated by commas"),
        ((*OPTIONS, "--arms", "red,red"), "got 'red' twice"),
        ((*OPTIONS, "--algorithm", "best"), "--algorithm must be one of kl-ucb, mon-ucb, "),
        ((*OPTIONS, "--algorithm", "lin-ucb"), "got 'lin-ucb'. Use ar.LinUCB from Python"),
        ((*OPTIONS, "--algorithm", "top-ucb"), "got 'top-ucb'. Use ar.TopUCB from Python"),
        ((*OPTIONS, "--algorithm", "tree-ucb"), "got 'tree-ucb'. Use ar.TreeUCB from Python"),
        ((*OPTIONS, "--algorithm", "ucb1"), "ucb1 has no horizon. Leave --horizon out"),
        ((*OPTIONS, "--seed", 2), "kl-ucb has no seed"),
        ((*OPTIONS, "--reward-range", 1, 0), "--reward-range must be finite with low < high"),
        (("--unit", "arm", "--reward", "arm", "--horizon", 9), "two columns"),
    ],
)
def test_bad_options(refused: Refused, log: Path, options: tuple[object, ...], words: str) -> None:
    assert words in refused("recommend", log, *options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--algorithm", "best"), "--algorithm must be one of"),
        (("--arms", 0), "--arms must be at least 1, got 0"),
        (("--history", -1), "--history must be at least 0, got -1"),
        (("--horizon", 0), "--horizon must be at least 1, got 0"),
        (("--replications", 0), "--replications must be at least 1, got 0"),
        (("--seed", -1), "seed"),
        (("--algorithm", "top-ucb"), "got 'top-ucb'. Use ar.TopUCB from Python"),
        (("--algorithm", "lin-ucb"), "got 'lin-ucb'. Use ar.LinUCB from Python"),
    ],
)
def test_bad_simulations(refused: Refused, options: tuple[object, ...], words: str) -> None:
    assert words in refused("simulate", *options)


def test_a_demo_that_could_not_be_written(refused: Refused, folder: Path) -> None:
    assert ".png" in refused("demo", "--out", "figure.bmp")
    assert "no folder" in refused("demo", "--out", "no/figure.png")
    (folder / "taken.png").mkdir()
    assert "taken.png cannot be written" in refused("demo", "--out", "taken.png")
    assert "--replications must be at least 1, got 0" in refused("demo", "--replications", 0)


@pytest.mark.parametrize(
    "arguments",
    [
        ("recommend",),
        ("recommend", "log.csv", "--nonsense"),
        ("recommend", "log.csv", "--horizon", "many"),
        ("recommend", "log.csv", "--policy", "ignorant"),
        ("tell", "red", "1"),
        ("tell", "red", "--state", "state.ar"),
        ("tell", "red", "1", "blue", "0", "--state", "state.ar"),
        ("simulate", "--start", "nowhere"),
        ("nonsense",),
    ],
)
def test_usage_errors(run: Run, arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert done.code == 2
    assert done.out == ""
    assert "Usage: artreplay" in done.err


@pytest.mark.parametrize("command", [("reproduce", "--smoke", "--only", "karmed"), ("report",)])
def test_the_reproduction_says_where_it_went(refused: Refused, command: tuple[str, ...]) -> None:
    assert "`make reproduce` makes all of them" in refused(*command)
