"""Contexts on the command line: the same decisions as from Python, and refusals that name the option."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import artreplay as ar
from command_kit import Refused, Run

COLUMNS = ("--unit", "banner", "--reward", "click")
WHERE = ("--at", '{"age": 31, "country": "NL"}')


@pytest.fixture
def shop(folder: Path) -> Path:
    """A log in which the best banner depends on the country."""
    g = random.Random(0)
    with open(folder / "log.csv", "w", newline="") as file:
        write = csv.writer(file).writerow
        write(["banner", "click", "age", "country"])
        for _ in range(300):
            banner, country = g.choice(["red", "blue"]), g.choice(["NL", "DE"])
            chance = 0.7 if (banner == "red") == (country == "NL") else 0.2
            write([banner, int(g.random() < chance), g.randrange(18, 80), country])
    (folder / "rows.csv").write_text("id,age,country\n1,31,NL\n2,40,DE\n3,,FR\n")
    return folder / "log.csv"


def python_log(log: Path) -> ar.History:
    return ar.open_history(str(log), unit="banner", reward="click", contexts=["age", "country"])


def test_a_regression_recommends_what_python_does(run: Run, shop: Path) -> None:
    history = python_log(shop)
    base = ar.ContextRegression(arms=["blue", "red"], contexts=ar.Contexts.from_history(history))
    policy = ar.ArtificialReplay(base, history)
    context = {"age": 31, "country": "NL"}
    done = run("recommend", shop, *COLUMNS, "--context", "age,country", *WHERE)
    assert done.out.splitlines()[0] == f"next action: {policy.ask(context)}"
    assert "read 300 of 300 rows" in done.out
    found = run("recommend", shop, *COLUMNS, "--context", "age,country", *WHERE, "--json").json
    assert (found["context"], found["action"]) == (context, policy.ask(context))
    values = policy.values(context)
    assert {arm["arm"]: arm["worth"] for arm in found["arms"]} == {arm: one.worth for arm, one in values.items()}


def test_every_row_of_a_file_is_valued_by_itself(run: Run, shop: Path) -> None:
    history = python_log(shop)
    contexts = ar.Contexts.from_history(history, segments=["country"])
    policy = ar.ArtificialReplay(ar.KLUCB(arms=["blue", "red"], horizon=500, contexts=contexts), history)
    rows = [{"age": 31, "country": "NL"}, {"age": 40, "country": "DE"}, {"age": None, "country": "FR"}]
    options = ("--context", "age", "--segments", "country", "--horizon", 500, "--at", "rows.csv")
    found = run("recommend", shop, *COLUMNS, *options, "--json").json
    assert [row["action"] for row in found["rows"]] == [policy.ask(row) for row in rows]
    assert [row["context"] for row in found["rows"]] == rows
    assert found["log"]["used"] == policy.used
    out = run("recommend", shop, *COLUMNS, *options).out
    assert [line.split("  ")[0] for line in out.splitlines()[1:4]] == [
        "age=31, country=NL", "age=40, country=DE", "age=missing, country=FR",
    ]  # fmt: skip


def test_an_indexed_log_has_contexts_of_its_own(run: Run, shop: Path) -> None:
    run("index", shop, *COLUMNS, "--context", "age", "--segments", "country", "-o", "log.index")
    options = ("--segments", "country", "--horizon", 500, "--at", '{"country": "DE"}', "--json")
    from_index = run("recommend", "log.index", *options).json
    assert from_index == run("recommend", shop, *COLUMNS, *options).json
    assert from_index["log"]["used"] < 300


def test_a_study_keeps_contexts(run: Run, shop: Path, folder: Path) -> None:
    out = run("study", "create", "s.study", shop, *COLUMNS, "--context", "age,country", "--wait", "none").out
    assert "context-regression over 2 arms, a log of 300 rows" in out
    one = run("study", "decide", "s.study", *WHERE, "--json").json
    assert one["context"] == {"age": 31, "country": "NL"}
    assert len(run("study", "decide", "s.study", "--at", "rows.csv", "--json").json) == 3
    run("study", "decide", "s.study", "--at", '{"age": 31, "browser": "x"}')
    assert run("study", "reward", "s.study", one["id"], 1).code == 0
    assert run("study", "observe", "s.study", "blue", 1, *WHERE).out == "blue gave 1\n"
    shown = run("study", "show", "s.study").out
    assert "contexts: age, country" in shown
    assert "1 context had no 'country', which counts as missing" in shown
    assert "1 context had a column 'browser', which was dropped" in shown
    assert "age=missing, country=FR" in run("study", "show", "s.study", "--open").out
    run("study", "export", "s.study", "rows.parquet")
    table = pq.read_table(folder / "rows.parquet")
    assert table["age"].to_pylist() == [31.0, 31.0, 40.0, None, 31.0, 31.0]
    assert table["country"].to_pylist() == ["NL", "NL", "DE", "FR", None, "NL"]


def test_a_study_with_segments_takes_a_log_that_has_grown(run: Run, shop: Path) -> None:
    run("study", "create", "s.study", shop, *COLUMNS, "--segments", "country", "--horizon", 500, "--wait", "none")
    assert run("study", "decide", "s.study", "--at", '{"country": "NL"}').code == 0
    shop.write_text(shop.read_text() + "red,1,30,NL\n")
    assert run("study", "extend", "s.study", shop).out == "s.study has a log of 301 rows\n"


@pytest.mark.parametrize("segments", [(), ("--segments", "country")])
def test_a_study_takes_scales_and_categories_again(
    run: Run, shop: Path, folder: Path, segments: tuple[str, ...]
) -> None:
    algorithm = ("--algorithm", "kl-ucb", "--horizon", 500) if segments else ()
    contexts = ("--context", "age,country", *segments)
    run("study", "create", "s.study", shop, *COLUMNS, *contexts, *algorithm, "--wait", "none")
    for country in ("BE", "DE", "BE"):
        run("study", "decide", "s.study", "--at", json.dumps({"age": 95, "country": country}))
    run("study", "observe", "s.study", "red", 1, "--at", '{"age": 7, "country": "LU"}')
    assert run("study", "change", "s.study", *contexts).out == "s.study is changed\n"
    history = python_log(shop)
    ages = [*history.contexts["age"].to_pylist(), 95, 95, 95, 7]
    countries = [*history.contexts["country"].to_pylist(), "BE", "DE", "BE", "LU"]
    expected = ar.Contexts.from_table({"age": ages, "country": countries}, segments=["country"] if segments else [])
    with ar.Study.open(folder / "s.study") as study:
        assert study.base.contexts == expected
    assert run("study", "decide", "s.study", "--at", '{"age": 40, "country": "BE"}').code == 0


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--context", "age,country"), "--at must say for which context"),
        (WHERE, "--context or --segments must name the columns of --at"),
        (("--context", "age,country", "--at", "{bad"), "--at must be an object of JSON, got '{bad'"),
        (("--context", "age,country", "--at", '{"age": 31}'), "--at must have 'country'"),
        (("--context", "age,country", "--at", '{"age": "x", "country": 1}'), "--at must have a finite number as 'age'"),
        (("--context", "age,country", "--at", "none.csv"), "none.csv"),
        (("--context", "age,size", *WHERE), "--context must name one column, got 'size'"),
        (("--context", "age", "--state", "s", *WHERE), "--state must be left out with --context"),
        (("--context", "age", "--algorithm", "ids", *WHERE), "--algorithm must be one of kl-ucb"),
        (("--algorithm", "context-regression"), "context-regression needs --context"),
    ],
)
def test_refusals_name_the_option(refused: Refused, shop: Path, options: tuple[str, ...], sentence: str) -> None:
    assert sentence in refused("recommend", shop, *COLUMNS, *options)


def test_studies_refuse_by_the_option_too(run: Run, refused: Refused, shop: Path) -> None:
    run("study", "create", "s.study", shop, *COLUMNS, "--context", "age,country", "--wait", "none")
    run("study", "create", "plain.study", "--arms", "red,blue", "--horizon", 100, "--wait", "none")
    assert "--at must give the context, as JSON with 'age', 'country'" in refused("study", "decide", "s.study")
    assert "--at must be left out" in refused("study", "decide", "plain.study", *WHERE)
    assert "--at must be an object" in refused("study", "observe", "s.study", "red", 1, "--at", "rows.csv")
    assert "--count must be left out" in refused("study", "decide", "s.study", "--at", "rows.csv", "--count", 2)
    assert "--context must name contexts of the study, which are 'age', 'country', got 'size'" in refused(
        "study", "change", "s.study", "--context", "age,size"
    )
    assert "--context must be left out" in refused("study", "change", "plain.study", "--context", "age")
    assert "--context needs a log" in refused("study", "create", "t", "--arms", "a,b", "--context", "age")


def test_the_list_of_algorithms_says_which_know_contexts(run: Run) -> None:
    lines = {line.split()[0]: line for line in run("algorithms").out.splitlines() if line}
    assert " segments " in lines["kl-ucb"]
    assert " columns " in lines["context-regression"]
    assert " – " in lines["ids"]
