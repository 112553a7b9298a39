"""The benchmark: its page is that of the stored results, an algorithm meets the same worlds as those did."""

from __future__ import annotations

from typing import Any

import baselines
import numpy as np
import pytest
import suite

import artreplay as ar
from artreplay.engine.benchmark_suite import ARMS, EXPERIMENTS, play, stored_lines
from artreplay.errors import InvalidParameter

SMALL = 0.02
BY_NAME = {experiment.name: experiment for experiment in EXPERIMENTS}


def test_the_page_has_the_stored_results_of_all_algorithms() -> None:
    lines = stored_lines()
    pairs = {(experiment.name, algorithm) for experiment in EXPERIMENTS for algorithm in baselines.ALGORITHMS}
    assert {(line.experiment, line.algorithm) for line in lines} == pairs
    assert len(lines) == len(pairs)
    page = suite.PAGE.read_text(encoding="utf-8")
    assert suite.written(page, lines) == page, "run make bench-suite"
    for table in (*dict.fromkeys(each.group for each in EXPERIMENTS), "losing", "reading"):
        assert f"<!-- table: {table} -->\n|  |" in page  # none is left out


@pytest.mark.parametrize("name", ["uniform", "delayed", "restart"])
def test_replay_reads_less_and_decides_like_a_full_start(name: str) -> None:
    made = [baselines.ALGORITHMS[algorithm] for algorithm in ("KLUCB, as we recommend", "KLUCB, full start")]
    replay, full = (play(BY_NAME[name], "", make, SMALL) for make in made)
    assert replay.regret == full.regret
    assert replay.read < full.read


def test_a_log_can_be_handed_over_as_what_a_function_makes_of_it() -> None:
    lines = [
        play(BY_NAME["cold start"], "", lambda k, t, ready=ready: {"base": ar.KLUCB(k, t)} | ready, SMALL)
        for ready in ({}, {"history": lambda log: log})
    ]
    assert lines[0].regret == lines[1].regret


@pytest.mark.parametrize("rule", range(6))
def test_baselines_find_the_best_of_three_arms(rule: int) -> None:
    make = baselines.published(rule)
    env = ar.environments.KArmed(3, means=[0.1, 0.9, 0.3])
    runs = ar.simulate(**make(3, 200), env=env, history=60, horizon=200, replications=3)
    assert runs.actions is not None
    assert (runs.actions[:, -50:] == 1).mean() > 0.9


def test_hucb1_is_as_it_is_written_down() -> None:
    base = baselines.published(baselines.HUCB1)(2, 10)["base"]
    for arm, reward in ((0, 1.0), (0, 0.0), (1, 1.0)):
        base.update_logged(arm, reward, 0.0)
    base.update(1, 0.0)
    assert base.score(0, 4, 0.5) == pytest.approx(0.5 + np.sqrt(2 * np.log(1 + 2 + 1) / 2))
    assert base.score(1, 4, 0.5) == pytest.approx(0.5 + np.sqrt(2 * np.log(1 + 1 + 1) / 2))


def test_an_algorithm_of_ones_own_stands_beside_the_stored_ones() -> None:
    found = ar.benchmark(lambda arms, rounds: ar.Greedy(arms), "mine", only=["uniform"], scale=SMALL)
    assert found.regret("uniform") == found.lines[0].regret
    assert str(found).count("mine") == 1
    assert "HUCB1" in str(found)


WRONG: dict[str, tuple[Any, str]] = {
    "an unknown experiment": ({"only": ["other"]}, "only must name experiments"),
    "no base": ({"algorithm": lambda arms, rounds: {}, "only": ["uniform"]}, "algorithm must return a base"),
    "a scale of 0": ({"scale": 0.0}, "scale must be a finite number above 0"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_said_in_one_sentence(what: str) -> None:
    arguments, sentence = WRONG[what]
    with pytest.raises(InvalidParameter, match=sentence):
        ar.benchmark(**{"algorithm": lambda arms, rounds: ar.UCB1(arms), **arguments})


def test_worlds_say_what_they_are() -> None:
    assert len(BY_NAME) == len(EXPERIMENTS)
    for experiment in EXPERIMENTS:
        assert experiment.world(experiment.log).n_arms == ARMS
