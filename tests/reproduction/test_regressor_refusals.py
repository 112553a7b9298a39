"""A regressor that gets what it cannot use: one sentence says so, and nothing is lost."""

from __future__ import annotations

import math
import sys
import warnings

import numpy as np
import pytest
from regressor_kit import Learner, log, make, show
from sklearn.cluster import KMeans
from sklearn.linear_model import LinearRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.preprocessing import StandardScaler

import artreplay as ar
from artreplay.errors import ArtReplayError, CannotSave, InvalidAction, InvalidHistory, InvalidParameter


def test_warnings_that_more_training_would_help_are_not_heard():
    base = make(MLPRegressor(hidden_layer_sizes=(5,), max_iter=1, solver="lbfgs"))
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        show(base, log())
        base.propose()
    assert heard == []


def test_without_scikit_learn_one_sentence_says_what_to_install(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "sklearn"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ArtReplayError, match=r"Regressor needs scikit-learn: pip install artreplay\[ml\]"):
        make()


@pytest.mark.parametrize("estimator", ["network", 3, MLPRegressor, StandardScaler(), KMeans(2)], ids=str)
def test_the_estimator_must_be_a_regressor_or_a_classifier(estimator):
    with pytest.raises(InvalidParameter, match="estimator must be a scikit-learn regressor or classifier, got"):
        make(estimator)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"dim": 0}, "dim must be at least 1, got 0"),
        ({"levels": (0,)}, "levels must have at least one above 0"),
        ({"budget": 0.5}, "budget must be at least the smallest level, 1.0, got 0.5"),
        ({"max_units": 0}, "max_units must be at least 1, got 0"),
        ({"cells_per_side": 0}, "cells_per_side must be at least 1, got 0"),
        ({"solver": "best"}, 'solver must be "exact" or "greedy", got \'best\''),
        ({"levels": (1e-9, 1)}, "the levels must have a larger common unit"),
        ({"every": 0}, "every must be at least 1, got 0"),
        ({"passes": 0}, "passes must be at least 1, got 0"),
        ({"box": [(0, 1)]}, "box must be one .low, high. pair for each of 2 axes"),
        ({"seed": -1}, "seed must be an integer of at least 0, got -1"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_it_is_made_of_is_checked(wrong, sentence):
    with pytest.raises(InvalidParameter, match=sentence):
        make(**wrong)


@pytest.mark.parametrize(
    ("unit", "reward", "sentence"),
    [
        ((0.1, 0.2), 1, "is not an allocation to a point of 2 coordinates"),
        ("here", 1, "is not an allocation"),
        (((0.1, 0.2), 3), 1, "level must be one of 0, 1, 2, got 3"),
        (((0.1, 1.2), 1), 1, "must lie in the box"),
        (((0.1, math.nan), 1), 1, "must lie in the box"),
        (((0.1, 0.2), 1), 1.5, r"reward is 1.5, expected a number in \[0, 1\]"),
        (((0.1, 0.2), 1), math.nan, "reward is nan"),
        (((0.1, 0.2), 1), "much", "reward is 'much'"),
    ],
    ids=str,
)
def test_samples_are_checked(unit, reward, sentence):
    base = make()
    with pytest.raises(InvalidAction, match=sentence):
        base.update(unit, reward)
    assert base._latest == []


@pytest.mark.parametrize("start", [ar.FullStart, ar.ArtificialReplay])
@pytest.mark.parametrize(
    ("history", "sentence"),
    [
        (ar.History([[0.1, 0.2], [0.1, 1.5]], [0, 1], levels=[1, 1]), "row 1 is refused: point .* must lie in the box"),
        (
            ar.History([[0.1, 0.2], [0.1, 0.5]], [0, 1], levels=[1, 3]),
            "row 1 is refused: level must be one of .*, got 3",
        ),
        (ar.History([[0.1, 0.2], [0.1, 0.5]], [0, 1]), "row 0 is refused: .* is not an allocation"),
        (ar.History([4, 5, 4], [0, 1, 1]), "row 0 is refused: 4 is not an allocation"),
        (
            ar.History([[0.1], [0.5]], [0, 1], levels=[1, 1]),
            "row 0 is refused: .* is not an allocation to a point of 2 coordinates",
        ),
    ],
    ids=["outside", "level", "no levels", "arms", "dimension"],
)
def test_a_log_is_checked_at_the_door(start, history, sentence):
    with pytest.raises(InvalidHistory, match=sentence):
        start(make(), history)


def test_rows_that_do_not_fit_can_be_skipped_unless_none_would_be_left():
    history = ar.History([[0.1, 0.2], [0.1, 1.5], [0.1, 0.5]], [0, 1, 1], levels=[1, 1, 3])
    policy = ar.FullStart(make(), history, unknown="skip")
    policy.ask()
    assert (policy.skipped, policy.used) == (2, 1)
    with pytest.raises(InvalidHistory, match=r"unit in row 0 is refused: .* must leave at least one row"):
        ar.FullStart(make(), ar.History([4, 5], [0, 1]), unknown="skip")


def test_all_of_an_action_is_checked_before_any_of_it_is_shown():
    policy = ar.Ignorant(make())
    for units, rewards in [([((0.5, 0.5), 1), ((1.5, 0.5), 1)], [1, 1]), ([((0.5, 0.5), 1)] * 2, [1, 2])]:
        with pytest.raises(InvalidAction):
            policy.tell(units, rewards)
    assert (policy.rounds, policy.base._latest) == (0, [])


def test_it_has_no_cells_with_a_mean_of_their_own_and_says_so():
    with pytest.raises(InvalidParameter, match=r"and Regressor does not. used_by_cell"):
        ar.Ignorant(make()).cells()


class Broken(Learner):
    """Cannot learn from more than two samples, and predicts nonsense after one."""

    def fit(self, features, rewards):
        if len(rewards) > 2:
            raise ValueError("too much")
        return super().fit(features, rewards)

    def predict(self, features):
        return np.full(len(features), math.nan if self.mean_ == 0.0 else self.mean_)


def test_an_estimator_that_fails_is_named_and_nothing_changes():
    base = make(Broken())
    base.update(((0.5, 0.5), 1), 1.0)
    before = base.propose()
    for _ in range(8):
        base.update(((0.5, 0.5), 1), 1.0)
    with pytest.raises(InvalidParameter, match="Broken must learn from 8 samples and cannot: too much"):
        base.propose()
    assert base._fitted == 1
    assert base._predictions().tolist() == [[1.0, 1.0]] * 9
    assert before == make().propose()
    base = make(KNeighborsRegressor(5))
    base.update(((0.5, 0.5), 1), 1.0)
    with pytest.raises(
        InvalidParameter, match=r"KNeighborsRegressor must predict after 1 samples and cannot: .*neighbors"
    ):
        base.propose()


@pytest.mark.parametrize("estimator", [Broken(), GaussianNB()], ids=["Broken", "GaussianNB"])
def test_predictions_must_be_numbers(estimator):
    """Some classifiers know no better after one class."""
    base = make(estimator)
    base.update(((0.5, 0.5), 1), 0.0)
    with pytest.raises(InvalidParameter, match="must predict numbers, got nan after 1 samples"):
        base.propose()


def test_a_policy_over_it_cannot_be_saved(tmp_path):
    with pytest.raises(CannotSave, match="a policy over Regressor cannot be saved"):
        ar.Ignorant(make()).save(tmp_path / "policy.ar")


def test_it_says_what_it_is():
    assert repr(make(LinearRegression(), solver="greedy", seed=4)) == (
        "Regressor(LinearRegression, dim=2, levels=(0.0, 1.0, 2.0), budget=4, max_units=3, "
        "cells_per_side=3, solver='greedy', every=8, passes=1, earlier='as many', seed=4)"
    )
    assert (make().reward_range, make().levels, make().box) == ((0.0, 1.0), (0.0, 1.0, 2.0), None)
