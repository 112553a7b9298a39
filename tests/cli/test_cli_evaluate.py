"""`artreplay evaluate`, and `inspect` on logs whose old policy chose by what moves the reward."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import artreplay as ar
from artreplay.compiling import using
from artreplay.engine import context_forecasts
from command_kit import COLUMNS, Refused, Run
from inspecting.context_worlds import shown_by_position


@pytest.fixture(autouse=True)
def log(folder: object, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(context_forecasts, "MAX_ROWS", 150)  # which takes a while without machine code
    shown = shown_by_position(0, 3_000)
    arms = np.array(["old", "mid", "new"])[shown.history.codes]
    table = {"arm": arms, "click": shown.history.rewards, "position": shown.positions, "p": shown.chances}
    pa.csv.write_csv(pa.table(table), "log.csv")
    few = pa.table(table).slice(0, 150)
    pa.csv.write_csv(few, "few.csv")
    with using("interpreted"):
        yield


def first_line(run: Run, *options: object) -> str:
    done = run("inspect", "log.csv", *COLUMNS, *options)
    assert done.code == 0, done.err
    return done.out.splitlines()[0]


def test_inspect_never_calls_the_worst_arm_the_best_beyond_doubt(run: Run) -> None:
    blind = run("inspect", "log.csv", *COLUMNS).out
    assert "beyond doubt" not in blind
    assert blind.startswith("old has the best mean of 3 arms, beyond chance.")
    assert "The log does not say why an arm was chosen." in blind
    by_chances = first_line(run, "--propensity", "p")
    assert "old leads by the means of the log" in by_chances
    assert "The old policy chose old where rewards are high." in by_chances
    by_context = first_line(run, "--context", "position")
    assert by_context.startswith(
        "old earns most in the log because it was shown at position 1: adjusted for position, "
    )


def test_the_leader_of_the_sentence_is_in_the_table(run: Run) -> None:
    rng = np.random.default_rng(0)
    arms = rng.integers(0, 40, 4_000)
    pa.csv.write_csv(pa.table({"arm": arms, "click": (rng.random(4_000) < 0.1).astype(int)}), "many.csv")
    leader = run("inspect", "many.csv", *COLUMNS, "--json").json["outlook"]["leader"]
    rows = [line.split() for line in run("inspect", "many.csv", *COLUMNS).out.splitlines() if "█" in line]
    assert rows[0][0] == str(leader)
    lows = [float(row[-3]) for row in rows]
    assert lows == sorted(lows, reverse=True)


def test_inspect_with_contexts_has_it_all_as_json(run: Run) -> None:
    found = run("inspect", "few.csv", *COLUMNS, "--context", "position,p", "--propensity", "p", "--json").json
    assert found["contexts"]["columns"] == ["position", "p"]
    assert {"segments", "cells", "confounding", "warnings"} <= set(found["contexts"])
    assert found["forecasts"]["outcome"] == "cannot tell"
    assert "rewards per arm cannot tell" in found["forecasts"]["sentence"]
    assert all(0.0 <= arm["earns"]["low"] < arm["earns"]["high"] <= 1.0 for arm in found["off_policy"]["arms"])


def test_rows_without_a_reward_are_counted_with_contexts_too(run: Run) -> None:
    with open("few.csv", "a") as file:
        file.write('"old",,1,0.8\n"old",1,,0.8\n')
    out = run("inspect", "few.csv", *COLUMNS, "--context", "position").out
    assert "1 rows without a reward or a unit, left out here" in out
    assert "missing" in out


def test_evaluate_plays_what_was_asked_for(run: Run) -> None:
    plays = ("--play", "kl-ucb", "--play", "arm=new", "--play", "position:1=old,other=new")
    found = run("evaluate", "log.csv", *COLUMNS, "--propensity", "p", "--start", 0, *plays, "--json").json
    assert [one["name"] for one in found["policies"]] == ["kl-ucb", "arm=new", "position:1=old,other=new"]
    _, fixed, rule = found["policies"]
    assert fixed["value"]["low"] <= 0.10 + 0.35 / 3 <= fixed["value"]["high"]
    assert rule["value"]["low"] <= (0.35 + 0.15 + 0.10) / 3 <= rule["value"]["high"]
    assert fixed["by_weights"] == fixed["value"]
    out = run("evaluate", "log.csv", *COLUMNS, "--propensity", "p", "--start", 0, *plays).out
    assert "0 rows to start from, 3,000 rows to play" in out
    assert "what was played" in out


def test_evaluate_plays_a_regression_of_the_context(run: Run) -> None:
    options = ("--play", "context-regression", "--context", "position", "--propensity", "p")
    assert "cannot tell" in run("evaluate", "few.csv", *COLUMNS, *options).out


def test_an_indexed_log_brings_its_own_contexts(run: Run, refused: Refused) -> None:
    ar.index_history("few.csv", "few.arh", unit="arm", reward="click", contexts=["position", "p"])
    plays = ("--play", "arm=new", "--play", "position:1=old,other=new", "--propensity", "p")
    assert (
        run("evaluate", "few.arh", *plays, "--json").json == run("evaluate", "few.csv", *COLUMNS, *plays, "--json").json
    )
    names = ("contexts", "forecasts")
    stored, plain = (
        run("inspect", *log, "--context", "position", "--json").json for log in (["few.arh"], ["few.csv", *COLUMNS])
    )
    assert [stored[name] for name in names] == [plain[name] for name in names]
    assert "--context must name columns the log was indexed with" in refused("inspect", "few.arh", "--context", "age")


def test_without_propensities_evaluate_says_what_it_takes_for_granted(run: Run) -> None:
    out = run("evaluate", "log.csv", *COLUMNS).out
    assert "If the old policy chose by chance, with the shares of the log" in out
    assert "arm=old" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--play", "best"), "--play must be one of"),
        (("--play", "arm=blue"), "--play must name arms of the log, got 'blue'"),
        (("--play", "colour=blue"), "--play must be an algorithm, arm=LABEL or COLUMN:VALUE=LABEL"),
        (("--play", "position:1"), "--play must be an algorithm"),
        (("--play", "position:1=old,2=new"), "the rule by 'position' must have an arm for '3', or for other"),
        (("--play", "context-regression"), "needs the columns it looks at, as --context A,B,C"),
        (("--propensity", "q"), "--context must name one column, got 'q'"),
        (("--propensity", "position"), "propensity in row 0 is"),
        (("--start", 3_000), "--start must leave rows to play, got 3000 of 3000"),
    ],
)  # fmt: skip
def test_what_cannot_be_played_is_refused(refused: Refused, arguments: tuple[object, ...], words: str) -> None:
    assert words in refused("evaluate", "log.csv", *COLUMNS, *arguments)


@pytest.mark.filterwarnings("default:horizon is ")
def test_a_horizon_that_nobody_gave_is_no_warning(run: Run) -> None:
    log = ("evaluate", "log.csv", *COLUMNS, "--play", "kl-ucb", "--start", 2_900)
    assert "horizon is 5," in run(*log, "--horizon", 5).err
    assert "horizon is" not in run(*log).err
