"""What the tests of the regressor share: small bases and logs, and estimators that write down their calls."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

import artreplay as ar
from reproduction.algorithms import Regressor


def make(estimator=None, **given):
    grid = {"dim": 2, "levels": (0, 1, 2), "budget": 4, "max_units": 3, "cells_per_side": 3, "every": 8}
    return Regressor(estimator, **(grid | given))


def log(size=40, seed=0, levels=(0.0, 1.0, 2.0)):
    """Rewards of 0 and 1 that depend on the place and the level."""
    rng = np.random.default_rng(seed)
    points, level = rng.random((size, 2)), rng.choice(levels, size)
    return ar.History(points, (rng.random(size) < points[:, 0] * level / 2).astype(float), levels=level)


def show(base, history):
    for row in range(len(history)):
        base.update(history.unit(row), history.rewards[row])


class Recorder(RegressorMixin, BaseEstimator):
    """Predicts the mean of what it was fitted to, and keeps a list of what that was."""

    calls: ClassVar[list] = []

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, features, rewards):
        self.calls.append(("fit", features.copy(), rewards.copy(), self.random_state))
        self.mean_ = rewards.mean()
        return self

    def predict(self, features):
        self.calls.append(("predict", features.copy()))
        return np.full(len(features), self.mean_)


class Learner(Recorder):
    """The same, trained on."""

    def partial_fit(self, features, rewards):
        return self.fit(features, rewards)
