"""Policies in simulated worlds, and the demo."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import artreplay as ar
from artreplay.cli import compare
from artreplay.compiling import using
from command_kit import Run

SMALL = ("--replications", 4, "--horizon", 60, "--history", 80, "--arms", 4, "--seed", 5)


@pytest.fixture(autouse=True)
def interpreted() -> Iterator[None]:
    """These worlds are small: compiling their loops would take longer than all else."""
    with using("interpreted"):
        yield


def test_the_table_is_what_python_computes(run: Run) -> None:
    done = run("simulate", *SMALL)
    assert done.code == 0
    rows = {line[:19].strip(): line for line in done.out.splitlines()}
    for start in ("ignorant", "full-start", "artificial-replay"):
        runs = ar.simulate(ar.KLUCB(4, 60), ar.environments.KArmed(4), start, 80, 60, 4, 5)
        mean, error = runs.final_regret()
        assert f"{mean:.1f} ± {error:.1f}" in rows[start.replace("-", " ")]
    assert "identical in 4 of 4 replications, action by action" in done.out


def test_json_is_one_object(run: Run) -> None:
    answer = run("simulate", *SMALL, "--json").json
    assert answer["setting"]["algorithm"] == "kl-ucb"
    assert [row["policy"] for row in answer["policies"]] == ["ignorant", "full-start", "artificial-replay"]
    assert answer["identical_replications"] == 4
    ignorant, full, replay = answer["policies"]
    assert full["regret"] == replay["regret"]
    assert (ignorant["used"], full["used"], full["unused_share"]) == (0, 80, 0)
    assert replay["used_before_first_action"] <= replay["used"] <= 80


def test_starts_may_be_chosen(run: Run) -> None:
    options = ("--start", "artificial-replay", "--start", "ignorant", "--start", "ignorant", "--json")
    answer = run("simulate", *SMALL, *options).json
    assert [row["policy"] for row in answer["policies"]] == ["artificial-replay", "ignorant"]
    assert answer["identical_replications"] is None


def test_one_replication_has_no_error_and_no_log_no_share(run: Run) -> None:
    out = run("simulate", *SMALL, "--replications", 1, "--history", 0).out
    assert "± –" in out
    assert (
        run("simulate", *SMALL, "--replications", 1, "--history", 0, "--json").json["policies"][0]["unused_share"]
        is None
    )


def test_a_log_of_random_shares(run: Run) -> None:
    options = ("--log", "random", "--json")
    answer = run("simulate", *SMALL, *options).json
    env = ar.environments.KArmed(4, log="random")
    runs = ar.simulate(ar.KLUCB(4, 60), env, "full-start", 80, 60, 4, 5)
    assert answer["policies"][1]["regret"] == runs.final_regret()[0]


def test_an_algorithm_that_is_not_exact_says_so(run: Run) -> None:
    out = run("simulate", *SMALL, "--algorithm", "random").out
    assert "random is not exact" in out


def test_long_runs_keep_no_rounds(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run("simulate", *SMALL, "--json").json
    monkeypatch.setattr(compare, "MAX_ROUNDS_IN_MEMORY", 100)
    final = run("simulate", *SMALL, "--json").json
    assert final["policies"][2]["used_before_first_action"] is None
    assert final["identical_replications"] is None
    for kept, lost in zip(whole["policies"], final["policies"], strict=True):
        assert (kept["regret"], kept["used"]) == (lost["regret"], lost["used"])
    assert "not compared" in run("simulate", *SMALL).out


def test_replications_that_differ_are_counted() -> None:
    env = ar.environments.KArmed(3)
    runs = [ar.simulate(ar.MonUCB(3, 30), env, start, 40, 30, 5, 1) for start in ("ignorant", "full-start")]
    assert runs[0].actions is not None
    assert runs[1].actions is not None
    same = (runs[0].actions == runs[1].actions).all(axis=1).sum()
    assert compare.identical_replications(*runs) == same < 5


def test_the_demo(run: Run, folder: Path) -> None:
    done = run("demo", "--replications", 3, "--seed", 1, "--out", "figure.png")
    assert done.code == 0
    lines = done.out.splitlines()
    names = ("random", "ignorant", "full start", "artificial replay")
    assert all(any(line.startswith(name) for line in lines) for name in names)
    assert "artificial replay and full start: identical in 3 of 3 replications, action by action" in lines
    assert lines[-1] == "the figure is in figure.png"
    assert any(line.startswith("took ") for line in lines)
    assert (folder / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_the_demo_says_when_something_was_compiled(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = iter([(2, 0), (5, 0)])
    monkeypatch.setattr(compare, "loops_compiled", lambda: next(counts))
    assert "in which 3 loops had to be compiled" in run("simulate", *SMALL).out


def test_algorithms_are_listed(run: Run) -> None:
    done = run("algorithms")
    assert done.code == 0
    for cls in ar.algorithms.ALGORITHMS:
        line = next(line for line in done.out.splitlines() if f" {cls.__name__} " in line)
        assert ("not exact" in line) == (not cls.exact)
        assert cls.summary in line
    for name in (
        "kl-ucb",
        "mon-ucb",
        "psi-ucb",
        "ucb1",
        "thompson",
        "ids",
        "random",
    ):
        assert f"\n{name} " in done.out
    assert "grid-allocation" not in done.out  # which all commands refuse
    assert "(Python)" in next(line for line in done.out.splitlines() if " GridAllocation " in line)
