"""`inspect` on what a log can decide, `simulate --log` on what it is worth, and totals on the command line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import artreplay as ar
from artreplay.cli.names import name_of
from artreplay.compiling import using
from command_kit import COLUMNS, Refused, Run

KL = name_of(ar.KLUCB)
TOTALS = ("totals.csv", "--unit", "item", "--count", "shown", "--sum", "clicked")


@pytest.fixture(autouse=True)
def logs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A log of three arms with propensities, and a table of totals; small worlds are not worth compiling."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    arms = rng.choice(3, 900, p=[0.5, 0.3, 0.2])
    clicks = (rng.random(900) < np.array([0.2, 0.25, 0.7])[arms]).astype(int)
    names = np.array(["red", "green", "blue"])[arms]
    pa.csv.write_csv(pa.table({"arm": names, "click": clicks, "p": np.array([0.5, 0.3, 0.2])[arms]}), "log.csv")
    pa.csv.write_csv(pa.table({"item": ["red", "blue"], "shown": [1000, 500], "clicked": [31, 22]}), "totals.csv")
    with using("interpreted"):
        yield


def test_inspect_says_what_the_log_decides_and_what_will_be_read(run: Run) -> None:
    out = run("inspect", "log.csv", *COLUMNS, "--horizon", 500, "--propensity", "p", "--out", "log.png").out
    assert "blue is the best of 3 arms beyond doubt: by its mean, and by the log's propensities." in out
    assert f"With {KL} replay will probably read about" in out
    assert "in 500 rounds" in out
    assert "always playing blue would earn 0." in out
    assert "What was played earned 0.3" in out
    assert Path("log.png").stat().st_size > 10_000


def test_inspect_warns_of_a_bonus_that_is_too_wide(run: Run) -> None:
    out = run("inspect", *TOTALS, "--algorithm", "mon-ucb").out
    assert "1,500 rows, 2 arms" in out
    assert "Rewards of 53 in all, over 2 arms, cannot tell the arms apart." in out
    assert "warning: the bonus of mon-ucb is still 0." in out
    assert "it will play nearly at random; " + KL + " has a narrower one" in out
    assert "no warnings" in run("inspect", "log.csv", *COLUMNS, "--level", "log").out


def test_inspect_knows_of_drift(run: Run, refused: Refused) -> None:
    def share(*options: object) -> float:
        return float(run("inspect", "log.csv", *COLUMNS, *options, "--json").json["outlook"]["read_share"])

    assert share() == share("--drift", 0) < share("--drift", "red=0.3") < share("--drift", 0.3)
    assert "cannot tell the arms apart" in run("inspect", "log.csv", *COLUMNS, "--drift", 0.3).out
    assert "It is for KLUCB" in refused("inspect", "log.csv", *COLUMNS, "--drift", 0.1, "--algorithm", "ucb1")
    assert "--drift must name arms of the log" in refused("inspect", "log.csv", *COLUMNS, "--drift", "pink=1")


def test_inspect_as_json_has_it_all(run: Run) -> None:
    found = run("inspect", "log.csv", *COLUMNS, "--propensity", "p", "--json").json
    best, *others = found["off_policy"]["arms"]
    assert found["outlook"]["leader"] == best["arm"] == "blue"
    assert found["outlook"]["rounds"] == 900
    assert {one["arm"] for one in others} == {"red", "green"}
    assert best["earns"]["low"] > max(one["earns"]["high"] for one in others)
    assert best["mean"] == pytest.approx(best["earns"]["value"])


def test_simulate_says_what_a_log_is_worth(run: Run) -> None:
    done = run("simulate", "--log", "log.csv", *COLUMNS, "--horizon", 6, "--replications", 2, "--out", "worth.png")
    assert KL in done.out
    assert "thompson" not in done.out  # nobody asked for it
    assert done.out.startswith("These 2 worlds are invented")
    assert f"{KL} with the log: 2 of 2 (100%)" in done.err  # it is piped: no bar
    assert "in 6 rounds" in done.out
    assert "Means in 2 worlds, drawn from what 900 rows of the log say of its 3 arms" in done.out
    assert Path("worth.png").stat().st_size > 10_000


def test_simulate_takes_totals_and_one_algorithm(run: Run) -> None:
    options = ("--algorithm", "mon-ucb", "--bonus", "practical:0.2", "--horizon", 30, "--replications", 4, "--json")
    found = run("simulate", "--log", *TOTALS, *options).json
    assert (found["log"], found["rounds"], found["worlds"]) == (1500, 30, 4)
    (one,) = found["algorithms"]
    assert one["algorithm"] == "mon-ucb"
    assert one["read_share"] == 1.0
    assert 0 <= one["makes_worse"] <= 1


def test_simulate_shows_what_an_allowance_for_drift_costs(run: Run) -> None:
    options = (*COLUMNS, "--algorithm", KL, "--drift", "blue=0.2", "--horizon", 30, "--replications", 4, "--json")
    (one,) = run("simulate", "--log", "log.csv", *options).json["algorithms"]
    assert one["regret_with_drift"] is not None


def test_a_column_of_the_log_can_have_the_allowances(run: Run, refused: Refused) -> None:
    table = pa.csv.read_csv("log.csv")
    stale = [0.2 if arm == "blue" else 0.05 for arm in table["arm"].to_pylist()]
    pa.csv.write_csv(table.append_column("stale", pa.array(stale)), "stale.csv")
    rest = ("--horizon", 2000, "--json")
    by_arm, by_column = (
        {
            "recommend": run("recommend", "stale.csv", *COLUMNS, *rest, "--drift", drift).json["arms"],
            "simulate": run(
                "simulate",
                "--log",
                "stale.csv",
                *COLUMNS,
                "--drift",
                drift,
                "--horizon",
                30,
                "--replications",
                3,
                "--json",
            ).json,
        }
        for drift in ("red=0.05,green=0.05,blue=0.2", "stale")
    )
    assert by_arm == by_column
    shares = [
        run("inspect", "stale.csv", *COLUMNS, "--drift", drift, "--json").json["outlook"]["read_share"]
        for drift in ("red=0.05,green=0.05,blue=0.2", "stale", "0")
    ]
    assert shares[0] == pytest.approx(shares[1])
    assert shares[1] > shares[2]
    said = refused("recommend", "stale.csv", *COLUMNS, "--drift", "stale", "--algorithm", "ucb1")
    assert "UCB1, which has no place for an allowance" in said


def test_recommend_takes_what_an_algorithm_can_be_told(run: Run) -> None:
    for options in (
        ("--algorithm", KL, "--level", "moss", "--drift", "0.1"),
        ("--algorithm", "mon-ucb", "--bonus", "kl:log", "--drift", "red=0.3,blue=0"),
    ):
        assert "next action: blue" in run("recommend", "log.csv", *COLUMNS, "--horizon", 2000, *options).out
    options = ("--algorithm", "thompson", "--prior", "log", "--seed", 1, "--policy", "full-start")
    assert "next action: blue" in run("recommend", "log.csv", *COLUMNS, *options).out


def test_recommend_takes_totals(run: Run) -> None:
    out = run("recommend", *TOTALS, "--algorithm", "mon-ucb", "--horizon", 1000).out
    assert "next action: blue" in out
    assert "read 1,500 of 1,500 samples, 100.0 %, fetched 2 rows" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("inspect", "log.csv", *COLUMNS, "--propensity", "click"), "propensity must be different columns"),
        (("inspect", "log.csv", *COLUMNS, "--algorithm", "best"), "--algorithm must be one of"),
        (("inspect", "log.csv", *COLUMNS, "--horizon", 0), "horizon must be at least 1, got 0"),
        (("inspect", "log.csv", *COLUMNS, "--bonus", "wide"), "--bonus must be theory, practical:0.1 or kl:++"),
        (("inspect", "log.csv", *COLUMNS, "--bonus", "kl"), f"{KL} has no bonus. Leave --bonus out"),
        (("inspect", "log.csv", *COLUMNS, "--prior", "1"), "--prior must be two numbers above 0"),
        (("inspect", "log.csv", *COLUMNS, "--out", "log.gif"), "--out must end in"),
        (("inspect", *TOTALS[:-2]), "sum must name a column"),
        (("inspect", *TOTALS, "--propensity", "p"), "--propensity needs --unit and --reward"),
        (("simulate", "--log", "none.csv", *COLUMNS), "none.csv does not exist"),
        (("simulate", "--log", "log.csv", "--unit", "arm"), "--reward must name a column of log.csv"),
        (("simulate", *COLUMNS), "--unit needs your own log. Name it with --log"),
        (("simulate", "--drift", "0.1"), "--drift needs your own log"),
        (("simulate", "--log", "log.csv", *COLUMNS, "--reward-range", 0.5, 1), "rewards must lie in [0.5, 1]"),
        (("simulate", "--log", "log.csv", *COLUMNS, "--drift", "pink=1"), "--drift must name arms of the log"),
        (("simulate", "--log", "log.csv", *COLUMNS, "--drift", "much"), "--drift must name one column, got 'much'"),
        (("simulate", "--log", "log.csv", *COLUMNS, "--drift", "red=much"), "--drift must be a number, got 'much'"),
        (("inspect", *TOTALS, "--drift", "p"), "--drift must be left out for a table of totals"),
        (("recommend", "log.csv", *COLUMNS, "--horizon", 9, "--level", "high"), "--level must be ++, log, moss, got"),
        (("recommend", "log.csv", *COLUMNS, "--horizon", 9, "--drift", "-1"), "drift"),
        (("recommend", "log.csv", *COLUMNS, "--horizon", 9, "--drift", "inf"), "drift"),
        (("recommend", "log.csv", *COLUMNS, "--algorithm", "thompson", "--prior", "0,1"), "prior must be"),
        (("recommend", *TOTALS, "--horizon", 5000, "--drift", 0.1), "drift is for rows"),
        (("recommend", *TOTALS, "--reward", "shown", "--horizon", 9), "--reward must be left out"),
        (("recommend", "totals.csv", "--unit", "item", "--count", "clicked", "--sum", "shown", "--horizon", 9),
         "is 1000, expected a sum of 31 rewards, each a number in [0, 1]"),
    ],
)  # fmt: skip
def test_bad_options_are_refused_in_a_sentence(refused: Refused, arguments: tuple[object, ...], words: str) -> None:
    assert words in refused(*arguments)
