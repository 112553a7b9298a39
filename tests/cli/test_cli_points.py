"""Points and budgets are for Python: commands that play arms say so, and how."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import artreplay as ar
from command_kit import OPTIONS, Refused, Run, samples, write_csv

UNITS = ("--unit", "x", "--unit", "y", "--reward", "caught")


@pytest.fixture
def points(folder: Path) -> ar.History:
    """Points in log.parquet."""
    at, caught = np.random.default_rng(5).random((80, 2)), np.arange(80) % 2
    pq.write_table(pa.table({"x": at[:, 0], "y": at[:, 1], "caught": caught}), "log.parquet")
    return ar.History(at, caught)


@pytest.mark.parametrize(
    "command",
    [("recommend",), ("study", "create", "s"), ("study", "extend", "s"), ("simulate", "--log")],
    ids=" ".join,
)
def test_how_points_are_played_is_said_as_something_to_type(
    run: Run, refused: Refused, points: ar.History, command: tuple[str, ...]
) -> None:
    """What is said plays the point that a policy over this log plays."""
    run("study", "create", "s", "--arms", "a,b", "--horizon", 9, "--wait", "none")
    expected = ar.ArtificialReplay(ar.TreeUCB(2, horizon=1000), points).ask()
    several = refused(*command, "log.parquet", *UNITS)
    assert several.startswith("--unit must name one column of arms, got x, y. Points are for Python: ar.")
    assert eval(several.partition("Python: ")[2], {"ar": ar}) == expected


def test_a_state_of_points_or_of_a_budget_is_for_python(refused: Refused, folder: Path) -> None:
    log = write_csv(folder / "log.csv", samples(20))
    for base in (ar.TreeUCB(2, horizon=9), ar.TopUCB(3, 2, horizon=9)):
        name = type(base).__name__
        ar.Study.create(name, base, wait=None).close()
        for command in (
            ("recommend", log, *OPTIONS, "--state", name),
            ("tell", "red", 1, "--state", name),
            ("study", "decide", name),
        ):
            assert refused(*command) == f"{name} does not play one arm in each round. Use it from Python"


def test_a_study_of_points_is_shown_and_takes_rewards(run: Run, refused: Refused, folder: Path) -> None:
    with ar.Study.create("s", ar.TreeUCB(1, horizon=9), wait=None) as study:
        decision = study.decide()
    assert "points of 1 coordinates" in run("study", "show", "s").out
    assert "(0.5,)" in run("study", "show", "s", "--open").out
    assert run("study", "reward", "s", decision.id, 1).code == 0
    for options in ((), ("--add", "red"), ("--retire", "red")):
        assert refused("study", "arms", "s", *options) == "arms() is for arms, and TreeUCB plays points"
