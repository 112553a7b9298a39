"""`artreplay study`: the same files as from Python, tables for people and JSON for programs."""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import artreplay as ar
from command_kit import ARMS, COLUMNS, OPTIONS, Refused, Run

WHERE = "banners.study"


@pytest.fixture
def made(run: Run, log: Path) -> Path:
    assert (
        run("study", "create", WHERE, log, *OPTIONS, "--wait", "2d").out
        == f"{WHERE}: kl-ucb over 3 arms, a log of 200 rows\n"
    )
    return Path(WHERE)


def test_from_decision_to_export(run: Run, refused: Refused, made: Path) -> None:
    one = run("study", "decide", WHERE, "--request-id", "v", "--json").json
    assert run("study", "decide", WHERE, "--request-id", "v", "--json").json == one
    two = run("study", "decide", WHERE, "--count", 2, "--among", "red,grün", "--json").json
    assert {entry["action"] for entry in two} <= {"red", "grün"}
    assert run("study", "reward", WHERE, one["id"], 1).out == f"{one['id']} gave 1\n"
    assert "that is final" in refused("study", "reward", WHERE, one["id"], 0)
    assert run("study", "void", WHERE, two[0]["id"]).code == 0
    assert two[1]["id"] in run("study", "show", WHERE, "--open").out
    shown = run("study", "show", WHERE).out
    assert "3 decisions: 2 open, 1 void" in shown
    assert "1 reward is learnt when the window of its decision is over" in shown
    assert run("study", "show", WHERE, "--json").json["decisions"] == {"open": 2, "void": 1}
    assert run("study", "export", WHERE, "out.parquet").code == 0
    assert pq.read_table("out.parquet").num_rows == 3
    with ar.Study.open(WHERE) as study:
        assert study.facts()["waiting"] == 1


def test_arms_that_come_and_go(run: Run, refused: Refused, made: Path) -> None:
    found = run("study", "arms", WHERE, "--add", "green", "--retire", "red", "--json").json
    assert [(arm["arm"], arm["retired"]) for arm in found] == [
        ("[bold] blue", False), ("grün", False), ("red", True), ("green", False),
    ]  # fmt: skip
    assert "retired" in run("study", "arms", WHERE).out
    assert "is already an arm of this study" in refused("study", "arms", WHERE, "--add", "green")
    said = refused("study", "decide", WHERE, "--among", "red,green")
    assert said == "'red' is a retired arm. `artreplay study arms STUDY --add` brings it back"


def test_rewards_that_contradict_the_log_are_shown(run: Run, folder: Path) -> None:
    Path("totals.csv").write_text("arm,shown,clicked\nred,200,190\nblue,200,10\n")
    run(
        "study",
        "create",
        "t",
        "totals.csv",
        "--unit",
        "arm",
        "--count",
        "shown",
        "--sum",
        "clicked",
        "--horizon",
        99,
        "--wait",
        "none",
    )
    with ar.Study.open("t") as study:
        for _ in range(40):
            study.observe("red", 0.0)
    assert "the log may be out of date: 'red' earned 0 on average" in run("study", "show", "t").out
    assert [one["unit"] for one in run("study", "show", "t", "--json").json["contradictions"]] == ["red"]


def test_settings_of_a_study(run: Run, refused: Refused, log: Path) -> None:
    run("study", "create", WHERE, log, *OPTIONS, "--drift", "red=0.2", "--level", "log", "--wait", "none")
    assert "the log may be stale: drift red=0.2" in run("study", "show", WHERE).out
    assert "for 100 decisions" in run("study", "show", WHERE).out
    assert run("study", "change", WHERE, "--drift", 0.05, "--horizon", 50).out == f"{WHERE} is changed\n"
    assert run("study", "show", WHERE, "--json").json["drift"] == 0.05
    assert run("study", "show", WHERE, "--json").json["horizon"] == 50
    assert "drift must be finite" in refused("study", "change", WHERE, "--drift", "-1")
    run("study", "change", WHERE, "--drift", "0")
    assert run("study", "decide", WHERE, "--json").json["action"] in ARMS


def test_a_decision_without_a_reward_counts_or_is_left_out(run: Run, refused: Refused, log: Path) -> None:
    sentence = refused("study", "create", WHERE, log, *OPTIONS, "--wait", "2d", "--default", "nothing")
    assert sentence == "--default must be a number, or discard, got 'nothing'"
    run("study", "create", WHERE, log, *OPTIONS, "--wait", "2d", "--default", "discard")
    with ar.Study.open(WHERE, read_only=True) as study:
        assert study.settings()["on_timeout"] == "discard"


def test_a_log_that_grows_or_moves(run: Run, refused: Refused, log: Path) -> None:
    run("index", log, "--output", "log.arh", *COLUMNS)
    run("study", "create", WHERE, "log.arh", "--horizon", 100, "--wait", "none")
    Path("log.arh").rename("moved.arh")
    assert "is not at" in refused("study", "decide", WHERE)
    assert "`artreplay study extend STUDY LOG`" in refused("study", "show", WHERE)
    assert run("study", "extend", WHERE, "moved.arh").out == f"{WHERE} has a log of 200 rows\n"
    assert run("study", "decide", WHERE, "--json").json["action"] in ARMS
    run("study", "create", "rows.study", log, *OPTIONS, "--wait", "none")
    own = run("study", "decide", "rows.study", "--json").json
    rows = log.read_text().splitlines()
    ids = ["id", *[""] * 200, own["id"], ""]
    grown = [f"{row},{id_}" for row, id_ in zip([*rows, f"{own['action']},1", "red,1"], ids, strict=True)]
    Path("more.csv").write_text("\n".join(grown) + "\n")
    said = run("study", "extend", "rows.study", "more.csv", "--exclude", "id").out
    assert said == "rows.study has a log of 201 rows\n"


def test_past_the_horizon_is_one_sentence(run: Run, folder: Path) -> None:
    run("study", "create", "a", "--arms", "1,2", "--horizon", 1, "--algorithm", "mon-ucb", "--wait", "none")
    run("study", "decide", "a")
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        said = run("study", "decide", "a").err
    advice = "`artreplay study change STUDY --horizon N` gives the study a longer one"
    assert said == f"warning: decision 2 is past the horizon of 1. {advice}\n"


def test_totals_and_drift_from_the_shell(run: Run, refused: Refused, folder: Path, log: Path) -> None:
    Path("totals.csv").write_text("arm,shown,clicked\nred,100,5\nblue,100,60\n")
    run(
        "study",
        "create",
        "t",
        "totals.csv",
        "--unit",
        "arm",
        "--count",
        "shown",
        "--sum",
        "clicked",
        "--horizon",
        50,
        "--wait",
        "none",
    )
    assert run("study", "decide", "t", "--json").json["action"] == "blue"
    drifting = ("recommend", log, *OPTIONS, "--state", "s", "--drift", "0.1")
    assert run(*drifting).code == 0
    assert run(*drifting).code == 0
    assert "s was made with drift 0.1, got 0.2" in refused(*drifting[:-1], "0.2")


def test_a_study_remembers_the_column_of_allowances(run: Run, refused: Refused, log: Path) -> None:
    rows = [f"{row},0.1" for row in log.read_text().splitlines()]
    rows[0] = rows[0].replace(",0.1", ",stale")
    Path("stale.csv").write_text("\n".join(rows) + "\n")
    run("study", "create", WHERE, "stale.csv", *OPTIONS, "--drift", "stale", "--wait", "none")
    assert "the log may be stale, and its rows say by how much" in run("study", "show", WHERE).out
    Path("stale.csv").write_text("\n".join([*rows, "red,1,0.3"]) + "\n")
    assert run("study", "extend", WHERE, "stale.csv").out == f"{WHERE} has a log of 201 rows\n"
    recommended = ("recommend", "stale.csv", *OPTIONS, "--state", "s")
    first = run(*recommended, "--drift", "stale").out
    assert run(*recommended).out == first
    assert "s was made with drift 0, got 0.2" in refused(*recommended, "--drift", "0.2")


def test_studies_without_a_log(run: Run, refused: Refused, folder: Path) -> None:
    assert run("study", "create", "a", "--arms", "1,2,x", "--horizon", 50, "--wait", "none").code == 0
    assert run("study", "decide", "a", "--json").json["action"] == 1
    assert "--arms must name the arms" in refused("study", "create", "b", "--horizon", 50, "--wait", "none")
    there = refused("study", "create", "a", "--arms", "1,2", "--horizon", 50, "--wait", "none")
    assert there == "a is already a study. `artreplay study show` shows it"
    assert "--wait must be a number and a unit" in refused("study", "create", "b", "--arms", "1,2", "--wait", "soon")
    assert "has made no decision 'x'" in refused("study", "reward", "a", "x", 1)
    assert refused("study", "show", "nothing") == "nothing is not a study. `artreplay study create` makes one"
    run("study", "create", "c", "--arms", "1", "--arms", "2,x", "--horizon", 50, "--wait", "none")
    assert [arm["arm"] for arm in run("study", "arms", "c", "--json").json] == [1, 2, "x"]
    assert run("study", "decide", "c", "--among", "2", "--among", "x", "--json").json["action"] == 2
    assert "--among must be labels" in refused("study", "decide", "c", "--among", ",")
    assert "reward is 'much', expected a number" in refused("study", "reward", "a", "x", "much")


def test_while_someone_owns_it(refused: Refused, run: Run, made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = ar.Study.open
    monkeypatch.setattr(ar.Study, "open", lambda place, **given: opened(place, **given, timeout=0.05))
    with ar.Study.open(WHERE):
        assert "is in use by process" in refused("study", "decide", WHERE)
        assert run("study", "show", WHERE).code == 0


def test_an_algorithm_of_ones_own_may_lie_in_the_current_folder(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [one for one in sys.path if one not in ("", str(folder))])
    (folder / "bandits_here.py").write_text("import artreplay as ar\ndef make(arms): return ar.UCB1(arms=arms)\n")
    own = ("--algorithm", "bandits_here:make")
    assert run("study", "create", WHERE, "--arms", "a,b", "--wait", "none", *own).code == 0
    assert run("study", "decide", WHERE, *own, "--json").json["action"] == "a"
    monkeypatch.delitem(sys.modules, "bandits_here")


def test_what_one_may_conclude_is_not_said_where_only_successes_are_told(run: Run, folder: Path) -> None:
    before = time.time() - 2 * 86_400.0
    base = ar.KLUCB(arms=["a", "b"], horizon=10_000)
    with ar.Study.create(folder / WHERE, base, wait=None, clock=lambda: before) as study:
        for decision in study.decide(count=300)[:40]:
            study.reward(decision.id, 1.0)
    shown = run("study", "show", WHERE).out
    assert "policy: 1.0000 on average over 40 decisions, between" in shown
    assert "and 1.0000" in shown  # no reward is above 1
    assert "warning: 260 of the last 300 decisions that are older than a day have no reward" in shown
    assert "is the best" not in shown


def test_the_state_file_of_recommend_is_a_study(run: Run, log: Path) -> None:
    action = run("recommend", log, *OPTIONS, "--state", "state.ar", "--json").json["action"]
    waiting = run("study", "show", "state.ar", "--open", "--json").json
    assert [entry["action"] for entry in waiting] == [action]
    assert action in ARMS
    run("study", "reward", "state.ar", waiting[0]["id"], 1)
    assert run("recommend", log, "--state", "state.ar", "--json").json["rounds"] == 1
