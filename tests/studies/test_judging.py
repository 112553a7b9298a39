"""What a study says of itself: chances of being best, groups, and how likely actions were."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from study_kit import Clock, timed

import artreplay as ar
from artreplay.studies.chances import chances_of

SIZES = st.floats(0.2, 5000.0)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(SIZES, SIZES), min_size=2, max_size=12), st.integers(0, 100))
def test_chances_of_being_best_are_those_of_draws(shapes, seed):
    a, b = np.array(shapes).T
    found = chances_of(a, b)
    draws = np.random.default_rng(seed).beta(a, b, size=(20_000, len(a)))
    counted = np.bincount(draws.argmax(axis=1), minlength=len(a)) / len(draws)
    assert found.best.sum() == pytest.approx(1.0)
    assert np.abs(found.best - counted).max() < 0.025
    assert found.highest_mean == pytest.approx(draws.max(axis=1).mean(), abs=0.02)


def test_chances_do_not_depend_on_the_order_of_arms():
    a, b = np.array([3.0, 300.0, 1.0, 40.0]), np.array([100.0, 9000.0, 1.0, 900.0])
    order = [2, 0, 3, 1]
    assert chances_of(a, b).best[order] == pytest.approx(chances_of(a[order], b[order]).best, abs=1e-4)


def test_stopping_counts_what_is_over_and_leaves_a_stale_log_out():
    log = ar.History(["red"] * 100 + ["blue"] * 100, [1.0] * 90 + [0.0] * 10 + [0.0] * 100)
    base = ar.KLUCB(arms=["red", "blue"], horizon=1000)
    with ar.Study.create(":memory:", base, log, wait=None) as study:
        study.decide()
        trusting = study.stopping()
        assert trusting is not None
        assert (trusting.leader, trusting.chance > 0.99, trusting.is_approximate) == ("red", True, False)
        assert trusting.loss < 0.01
        study.change(drift=0.2)
        doubting = study.stopping()
        assert doubting is not None
        assert doubting.chance == pytest.approx(0.5, abs=1e-6)
        study.observe("blue", 0.5)
        assert study.stopping().is_approximate
        study.retire_arm("red")
        assert study.stopping().chances == {"blue": 1.0}
    clock = Clock()
    with timed(clock, close="arrival", history=None) as study:
        for decision in study.decide(count=20):
            study.reward(decision.id, 1.0)
        assert study.groups() == []  # people report success sooner than failure
        assert study.stopping().chance == pytest.approx(0.5, abs=1e-6)
        clock.now += 3600
        assert [(group.name, group.decisions, group.mean) for group in study.groups()] == [("policy", 20, 1.0)]
        study.void(study.decisions()[0].id)
        assert study.groups()[0].decisions == 19


@pytest.mark.parametrize("base", [ar.TopUCB(4, 2, horizon=10), ar.TreeUCB(1, horizon=10)])
def test_nothing_is_said_of_single_arms_where_that_is_not_honest(base):
    with ar.Study.create(":memory:", base, wait=None) as study:
        assert study.stopping() is None


def test_groups_are_compared_over_decisions_that_are_over(tmp_path):
    clock, rng = Clock(), np.random.default_rng(1)
    means = {"red": 0.2, "blue": 0.8}
    base = ar.KLUCB(arms=["red", "blue"], horizon=10_000)
    place = tmp_path / "s"
    given = {"wait": timedelta(hours=1), "holdout": 0.3, "clock": clock}
    with ar.Study.create(place, base, **given) as study:
        for _ in range(20):
            for decision in study.decide(count=50):
                study.reward(decision.id, float(rng.random() < means[decision.action]))
            clock.now += 3600
        study.decide()
        comparison, groups = study.comparison(), study.groups()
        assert comparison is not None
        assert [group.name for group in groups] == ["policy", "control"]
        assert comparison.difference == pytest.approx(groups[0].mean - groups[1].mean)
        assert comparison.low < 0.3 < comparison.high
        assert sum(group.decisions for group in groups) == 1000
    with ar.Study.open(place, clock=clock) as study:
        assert (study.comparison(), study.groups()) == (comparison, groups)
        study._journal.run("DELETE FROM snapshot")
        study._journal.commit()
        study._state = None
        study._learnt = None
        assert study.comparison().difference == pytest.approx(comparison.difference)


def test_an_interval_is_never_of_no_width():
    base = ar.KLUCB(arms=["red", "blue"], horizon=100)
    with ar.Study.create(":memory:", base, wait=None, holdout=0.5) as study:
        for decision in study.decide(count=40):
            study.reward(decision.id, 0.0)
        assert all(group.low == 0.0 < group.high for group in study.groups())  # no reward is below 0
        assert study.comparison().low < 0.0 < study.comparison().high


@pytest.mark.parametrize("holdout", [0.0, 0.4])
def test_the_propensity_of_a_rule_that_draws_is_how_often_it_draws_that(holdout):
    """Many studies with other seeds see the same journal, and each makes the next decision."""
    log = ar.History(["a"] * 6 + ["b"] * 6 + ["c"] * 3, [1, 0, 1, 0, 1, 0] + [0, 0, 1, 0, 0, 0] + [0, 0, 1])
    played, found = Counter(), {}
    studies = 300
    for seed in range(studies):
        base = ar.ThompsonSampling(arms=["a", "b", "c"], seed=seed, prior=(1.0, 2.0))
        given = {"wait": None, "holdout": holdout, "control": {"c": 1.0}, "seed": seed}
        with ar.Study.create(":memory:", base, log, **given) as study:
            study.observe("b", 1.0)
            kept = study.decide(among=["a"])
            gone = study.decide(among=["c"])
            study.reward(gone.id, 1.0)
            study.void(gone.id)
            study.decide(among=["b"], deferred=True)
            decision = study.decide()
            assert kept.propensity is None or holdout == 0.0
            row = next(row for row in study.rows() if row["decision_id"] == decision.id)
            played[decision.action] += 1
            found[decision.action] = row["propensity"]
    for action, propensity in found.items():
        assert played[action] / studies == pytest.approx(propensity, abs=0.09)
    assert sum(found.values()) == pytest.approx(1.0, abs=1e-3)


def test_what_a_random_choice_draws_is_known_too():
    with ar.Study.create(":memory:", ar.RandomChoice(4), wait=None) as study:
        study.decide(among=[1, 2])
        study.retire_arm(0)
        study.decide()
        assert [row["propensity"] for row in study.rows()] == [0.5, pytest.approx(1 / 3)]
