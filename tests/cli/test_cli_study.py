"""`artreplay study`: the same files as from Python, tables for people and JSON for programs."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

import artreplay as ar
from command_kit import ARMS, OPTIONS, Refused, Run

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
    assert "which is final" in refused("study", "reward", WHERE, one["id"], 0)
    assert run("study", "void", WHERE, two[0]["id"]).code == 0
    assert two[1]["id"] in run("study", "show", WHERE, "--open").out
    shown = run("study", "show", WHERE).out
    assert "3 decisions: 1 open, 1 rewarded, 1 void" in shown
    assert run("study", "show", WHERE, "--json").json["decisions"] == {"open": 1, "rewarded": 1, "void": 1}
    assert run("study", "export", WHERE, "out.parquet").code == 0
    assert pq.read_table("out.parquet").num_rows == 3
    with ar.Study.open(WHERE) as study:
        assert study.decision(one["id"]).state == "rewarded"


def test_arms_that_come_and_go(run: Run, refused: Refused, made: Path) -> None:
    found = run("study", "arms", WHERE, "--add", "green", "--retire", "red", "--json").json
    assert [(arm["arm"], arm["retired"]) for arm in found] == [
        ("[bold] blue", False), ("grün", False), ("red", True), ("green", False),
    ]  # fmt: skip
    assert "retired" in run("study", "arms", WHERE).out
    assert "is an arm of this study already" in refused("study", "arms", WHERE, "--add", "green")
    assert "'red' is a retired arm" in refused("study", "decide", WHERE, "--among", "red,green")


def test_studies_without_a_log(run: Run, refused: Refused, folder: Path) -> None:
    assert run("study", "create", "a", "--arms", "1,2,x", "--horizon", 50).code == 0
    assert run("study", "decide", "a", "--json").json["action"] == 1
    assert run("study", "create", "p", "--algorithm", "tree-ucb", "--box", "0,4", "--horizon", 50).code == 0
    assert run("study", "decide", "p", "--json").json["action"] == [2.0]
    assert "--arms must name the arms" in refused("study", "create", "b", "--horizon", 50)
    assert "--box must say" in refused("study", "create", "b", "--algorithm", "tree-ucb", "--horizon", 50)
    assert "is a study already" in refused("study", "create", "a", "--arms", "1,2", "--horizon", 50)
    assert "--wait must be a number and a unit" in refused("study", "create", "b", "--arms", "1,2", "--wait", "soon")
    assert "has made no decision 'x'" in refused("study", "reward", "a", "x", 1)
    assert "is not a study" in refused("study", "show", "nothing")
    assert "reward is 'much', expected a number" in refused("study", "reward", "a", "x", "much")


def test_while_someone_owns_it(refused: Refused, run: Run, made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = ar.Study.open
    monkeypatch.setattr(ar.Study, "open", lambda place, **given: opened(place, **given, timeout=0.05))
    with ar.Study.open(WHERE):
        assert "is in use by process" in refused("study", "decide", WHERE)
        assert run("study", "show", WHERE).code == 0


def test_the_state_file_of_recommend_is_a_study(run: Run, log: Path) -> None:
    action = run("recommend", log, *OPTIONS, "--state", "state.ar", "--json").json["action"]
    waiting = run("study", "show", "state.ar", "--open", "--json").json
    assert [entry["action"] for entry in waiting] == [action]
    assert action in ARMS
    run("study", "reward", "state.ar", waiting[0]["id"], 1)
    assert run("recommend", log, "--state", "state.ar", "--json").json["rounds"] == 1
