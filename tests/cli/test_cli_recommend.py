"""What to play next, from a log in a file."""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import artreplay as ar
from artreplay.console.output import percent
from command_kit import ARMS, COLUMNS, OPTIONS, Refused, Run, samples, write_csv


def python_policy(rows: list[tuple[object, int]], arms: list[object]) -> ar.ArtificialReplay:
    history = ar.History([arm for arm, _ in rows], [reward for _, reward in rows])
    return ar.ArtificialReplay(ar.KLUCB(arms=arms, horizon=100), history)


def test_recommends_what_python_does(run: Run, log: Path) -> None:
    policy = python_policy(samples(200), sorted(ARMS))
    action = policy.ask()
    done = run("recommend", log, *OPTIONS)
    assert done.code == 0
    assert done.out.splitlines()[0] == f"next action: {action}"
    share = 100 * policy.used / 200
    assert f"read {policy.used} of 200 rows, {share:.1f} %" in done.out
    answer = run("recommend", log, *OPTIONS, "--json").json
    assert answer["action"] == action
    assert answer["log"] == {"samples": 200, "used": policy.used, "skipped": 0}
    known = {cell.unit: cell for cell in policy.cells()}
    for row in answer["arms"]:
        cell = known[row["arm"]]
        assert (row["in_log"], row["used"]) == (cell.logged, cell.used)
        assert row["mean"] == (cell.mean if cell.count else None)
    indices = [row["index"] for row in answer["arms"]]
    assert indices == sorted(indices, reverse=True)


def test_the_papers_algorithm_is_one_option_away(run: Run, log: Path) -> None:
    rows = samples(200)
    history = ar.History([arm for arm, _ in rows], [reward for _, reward in rows])
    policy = ar.ArtificialReplay(ar.MonUCB(arms=sorted(ARMS), horizon=100), history)
    answer = run("recommend", log, *OPTIONS, "--algorithm", "mon-ucb", "--json").json
    assert (answer["action"], answer["log"]["used"]) == (policy.ask(), policy.used)


def test_a_log_that_online_rewards_contradict_is_said(run: Run, folder: Path) -> None:
    log = write_csv(folder / "log.csv", [("a", 1), ("b", 0)] * 150)
    kept = ("--state", "state.ar")
    assert "out of date" not in run("recommend", log, *OPTIONS, *kept).out
    for _ in range(12):
        run("tell", *kept, "a", 0)
    out = run("recommend", log, *kept).out
    assert "the log may be out of date: 'a' earned 0 on average in" in out


def test_labels_are_printed_as_they_are(run: Run, folder: Path) -> None:
    labels = ["[bold]b[/bold]", ":smile:", "日本", "x" * 120, "grün"]
    log = write_csv(folder / "log.csv", [(label, 1) for label in labels])
    out = run("recommend", log, *OPTIONS).out
    for label in labels:
        assert any(line.startswith(f"{label} ") for line in out.splitlines())


def test_a_label_with_control_characters_is_quoted(run: Run, folder: Path) -> None:
    log = write_csv(folder / "log.csv", [("a\x1b[2Jb", 1)])
    assert "'a\\x1b[2Jb'" in run("recommend", log, *OPTIONS).out


@pytest.mark.parametrize(
    ("labels", "in_order"),
    [
        (["10", "9", "2"], [2, 9, 10]),
        (["b", "a", "10", "9"], [9, 10, "a", "b"]),
        (["4.99", "10.5"], ["4.99", "10.5"]),
        (["07", "7"], ["07", 7]),  # two labels, however alike
        (["2024-01-02", "2024-01-01"], ["2024-01-01", "2024-01-02"]),
        (["NA", "true"], ["NA", "true"]),
        (["9" * 30, "1"], [1, "9" * 30]),
        (['"with, comma"', "x"], ["with, comma", "x"]),
    ],
)
def test_arms_default_to_the_labels_in_order(run: Run, folder: Path, labels: list[str], in_order: list[object]) -> None:
    log = write_csv(folder / "log.csv", [(label, 1) for label in labels])
    run("recommend", log, *OPTIONS, "--state", "state")
    with ar.Study.open("state", read_only=True) as study:
        assert list(study.base.arms) == in_order


FORMATS = [
    ("log.csv", "comma"),
    ("log.CSV", "comma"),
    ("log.tsv", "tab"),
    ("log.parquet", "parquet"),
    ("log.pq", "parquet"),
]
UNNAMED = [(name, kind) for name in ("log", "log.txt", "dots.v2.log") for kind in ("comma", "tab", "parquet")]


@pytest.mark.parametrize(("name", "kind"), FORMATS + UNNAMED)
def test_formats(run: Run, folder: Path, name: str, kind: str) -> None:
    rows = samples(60)
    path = folder / name
    if kind == "parquet":
        pq.write_table(pa.table({"arm": [arm for arm, _ in rows], "click": [click for _, click in rows]}), path)
    else:
        write_csv(path, rows, "," if kind == "comma" else "\t")
    answer = run("recommend", path, *OPTIONS, "--json").json
    assert answer["action"] == python_policy(rows, sorted(ARMS)).ask()


def test_compressed_csv(run: Run, folder: Path) -> None:
    import gzip

    plain = write_csv(folder / "log.csv", samples(60))
    (folder / "log.csv.gz").write_bytes(gzip.compress(plain.read_bytes()))
    assert run("recommend", "log.csv.gz", *OPTIONS, "--json").json == run("recommend", plain, *OPTIONS, "--json").json


def test_parquet_keeps_its_types(run: Run, folder: Path) -> None:
    rewards = [0.0, 1.0, 1.0]
    pq.write_table(pa.table({"arm": ["1", "2", "2"], "click": rewards}), folder / "texts.parquet")
    pq.write_table(pa.table({"arm": [1, 2, 2], "click": rewards}), folder / "numbers.parquet")
    dictionary = pa.array(["1", "2", "2"]).dictionary_encode()
    pq.write_table(pa.table({"arm": dictionary, "click": rewards}), folder / "categories.parquet")
    for name, arms in (("texts", ["3", "2", "1"]), ("numbers", [3, 2, 1]), ("categories", ["3", "2", "1"])):
        assert run("recommend", f"{name}.parquet", *OPTIONS, "--arms", "3,2,1", "--state", name).code == 0
        with ar.Study.open(name, read_only=True) as study:
            assert list(study.base.arms) == arms


def test_rewards_may_be_true_and_false(run: Run, folder: Path) -> None:
    log = write_csv(folder / "log.csv", [("a", "True"), ("b", "False"), ("b", "True")])
    means = {row["arm"]: row["mean"] for row in run("recommend", log, *OPTIONS, "--horizon", 1, "--json").json["arms"]}
    assert means["a"] == 1.0


def test_at_most_twenty_arms_unless_all(run: Run, folder: Path) -> None:
    log = write_csv(folder / "log.csv", [(arm, 1) for arm in range(1025)])
    short = run("recommend", log, *OPTIONS).out
    assert "… and 1,005 more" in short
    assert len(short.splitlines()) == 26
    assert len(run("recommend", log, *OPTIONS, "--all").out.splitlines()) == 1025 + 5
    assert len(run("recommend", log, *OPTIONS, "--json").json["arms"]) == 1025


def test_the_empty_log_needs_arms(run: Run, refused: Refused, folder: Path) -> None:
    log = write_csv(folder / "log.csv", [])
    assert "Give --arms" in refused("recommend", log, *OPTIONS)
    done = run("recommend", log, *OPTIONS, "--arms", "x, y")
    assert done.code == 0
    assert done.out.startswith("next action: x\n")
    assert "the log is empty" in done.out


def test_unknown_arms_are_skipped_on_request(run: Run, log: Path) -> None:
    answer = run("recommend", log, *OPTIONS, "--arms", "red,new", "--unknown", "skip", "--json").json
    kept = sum(arm == "red" for arm, _ in samples(200))
    assert answer["log"]["samples"] == kept
    assert answer["log"]["skipped"] == 200 - kept
    assert f"skipped {200 - kept} rows" in run("recommend", log, *OPTIONS, "--arms", "red", "--unknown", "skip").out


def test_until_bounds_the_log(run: Run, log: Path) -> None:
    answer = run("recommend", log, *OPTIONS, "--until", 30, "--json").json
    assert answer["log"]["samples"] == 30
    assert answer["action"] == python_policy(samples(30), sorted(ARMS)).ask()


def test_a_reward_range(run: Run, folder: Path) -> None:
    log = write_csv(folder / "log.csv", [("a", -5), ("b", 20)])
    answer = run("recommend", log, *OPTIONS, "--reward-range", "-10", "20", "--json").json
    means = {row["arm"]: row["mean"] for row in answer["arms"]}
    assert means["a"] is None or math.isclose(means["a"], -5)
    assert max(row["index"] for row in answer["arms"]) <= 20


@pytest.mark.parametrize(
    "options",
    [
        ("psi-ucb", "--horizon", 50),
        ("ucb1",),
        ("thompson", "--seed", 3),
        ("ids",),
        ("random",),
    ],
)
def test_every_algorithm_over_arms(run: Run, log: Path, options: tuple[object, ...]) -> None:
    answer = run("recommend", log, *COLUMNS, "--algorithm", *options, "--json").json
    assert answer["action"] in ARMS
    assert answer["algorithm"] == options[0]
    table = run("recommend", log, *COLUMNS, "--algorithm", *options).out
    assert ("index" in table) == (options[0] in ("psi-ucb", "ucb1"))


@pytest.mark.parametrize(
    ("share", "words"),
    [(0.0, "0.0 %"), (1e-9, "< 0.1 %"), (0.281, "28.1 %"), (0.99951, "> 99.9 %"), (1.0, "100.0 %"), (math.nan, "–")],
)
def test_shares(share: float, words: str) -> None:
    assert percent(share) == words


def test_full_start_uses_everything(run: Run, log: Path) -> None:
    done = run("recommend", log, *OPTIONS, "--policy", "full-start")
    assert "read 200 of 200 rows, 100.0 %" in done.out
    replay = run("recommend", log, *OPTIONS)
    assert done.out.splitlines()[0] == replay.out.splitlines()[0]


def test_the_dialect_is_found_out_told_and_can_be_described(run: Run, folder: Path) -> None:
    rows = samples(60)
    plain = run("recommend", write_csv(folder / "log.csv", rows), *OPTIONS, "--json")
    other = run("recommend", write_csv(folder / "other.csv", rows, ";"), *OPTIONS, "--json")
    assert other.json == plain.json
    assert plain.err == ""
    assert other.err.strip() == f"{folder / 'other.csv'} is read with delim=';'"
    (folder / "tilde.csv").write_text((folder / "log.csv").read_text().replace(",", "~"), encoding="utf-16-be")
    described = ("--csv", "delim=~", "--csv", "encoding=utf-16-be")
    assert run("recommend", "tilde.csv", *OPTIONS, *described, "--json").json == plain.json
