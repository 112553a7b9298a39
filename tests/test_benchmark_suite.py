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


def test_other_rules_are_as_they_are_written_down() -> None:
    """Two rows of arm 0 with mean .5, three of arm 1 with mean 1, and one online reward of arm 0."""
    wanted = {
        baselines.UCB_V: 1 / 3 + np.sqrt(2 * (2 / 9) * np.log(6) / 3) + 3 * np.log(6) / 3,
        baselines.MOSS: 1 / 3 + np.sqrt(np.log((10 + 5) / (2 * 3)) / 3),
        baselines.IMED: -(
            3 * (np.log(1 / 3) / 3 + 2 / 3 * np.log(2 / 3) - np.log(0.75) / 3 - 2 / 3 * np.log(0.25)) + np.log(3)
        ),
        baselines.LCB: 1 / 3 - np.sqrt(np.log(10) / (2 * 3)),
        baselines.CONSERVATIVE: 1 / 3 + np.sqrt(2 * np.log(6) / 3),
    }
    for rule, score in wanted.items():
        base = baselines.published(rule)(2, 10)["base"]
        for arm, reward in ((0, 1.0), (0, 0.0), (1, 1.0), (1, 1.0), (1, 1.0)):
            base.update_logged(arm, reward, 0.0)
        base.update(0, 0.0)
        assert base.score(0, 6, 0.75) == pytest.approx(score)


def test_conservative_play_explores_once_it_has_earned_enough() -> None:
    """A round with an unknown arm may earn nothing, and takes what the usual arm saves in 19 rounds."""
    base = baselines.published(baselines.CONSERVATIVE)(2, 200)["base"]
    for reward in [1.0] * 90 + [0.0] * 10:
        base.update_logged(0, reward, 0.0)
    out = np.empty(1, np.int64)
    played = []
    for _ in range(30):
        base.propose(out)
        played.append(int(out[0]))
        base.update(out[0], 0.9 if out[0] == 0 else 0.0)
    assert played.index(1) in (19, 20)  # rounding decides between them
    assert sum(played) == 1


def test_an_algorithm_of_ones_own_stands_beside_the_stored_ones() -> None:
    found = ar.benchmark(lambda arms, rounds: ar.Greedy(arms), "mine", only=["uniform"], scale=SMALL)
    assert found.regret("uniform") == found.lines[0].regret
    assert str(found).count("mine") == 1
    assert "HUCB1" in str(found)
    with pytest.raises(InvalidParameter, match="experiment must be one of uniform, got 'permuted'"):
        found.regret("permuted")


def given(**more: Any) -> Any:
    return lambda arms, rounds: {"base": ar.UCB1(arms), **more}


WRONG: dict[str, tuple[Any, str]] = {
    "an unknown experiment": ({"only": ["other"]}, "only must name experiments"),
    "no base": ({"algorithm": lambda arms, rounds: {}, "only": ["uniform"]}, "algorithm must return a base"),
    "a text for only": ({"only": "uniform"}, "only must be a list of names, .* got 'uniform'"),
    "no experiment": ({"only": []}, "only must be a list of names"),
    "an object": ({"algorithm": ar.UCB1(10)}, "algorithm must be a function, such as lambda arms, rounds"),
    "a name that is taken": ({"name": "HUCB1"}, "name must be a text that is not in the stored results, got 'HUCB1'"),
    "another seed": ({"algorithm": given(seed=1)}, "algorithm must leave seed to the benchmark, got 1"),
    "another log": ({"algorithm": given(history=10)}, "history must be a function of a log, such as .* got 10"),
    "no log": ({"algorithm": given(history=lambda log: 10)}, "what history makes of a log must be .* got 10"),
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
