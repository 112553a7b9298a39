"""The neural network of the paper's authors, as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from artreplay.compiling import Floats

HIDDEN, BATCH, RATE, MOMENTUM = 10, 16, 0.001, 0.9


class PublishedNetwork(RegressorMixin, BaseEstimator):
    """One hidden layer of 10 rectified units and a logistic output, trained by gradient descent on the log loss.

    It starts as PyTorch starts a layer. Features in [-1, 1] are scaled back to [0, 1], as the authors have them.
    """

    def __init__(self, random_state: int | None = None) -> None:
        self.random_state = random_state

    def partial_fit(self, features: Floats, targets: Floats) -> PublishedNetwork:
        """Train on all rows once, in their order, in batches of 16."""
        rows = (np.asarray(features) + 1.0) / 2.0
        if not hasattr(self, "weights_"):
            self._start(rows.shape[1])
        for first in range(0, len(rows), BATCH):
            self._step(rows[first : first + BATCH], targets[first : first + BATCH])
        return self

    def predict(self, features: Floats) -> Floats:
        """Return the chance of a reward."""
        return self._forward((np.asarray(features) + 1.0) / 2.0)[1]

    def _start(self, inputs: int) -> None:
        draws = np.random.default_rng(self.random_state)
        shapes: list[tuple[float, Any]] = [(inputs, (inputs, HIDDEN)), (inputs, HIDDEN), (HIDDEN, HIDDEN), (HIDDEN, ())]
        self.weights_ = [draws.uniform(-(fan**-0.5), fan**-0.5, shape) for fan, shape in shapes]
        self.speeds_ = [np.zeros(shape) for _, shape in shapes]

    def _forward(self, rows: Floats) -> tuple[Floats, Floats]:
        into, bias, out, offset = self.weights_
        hidden = np.maximum(rows @ into + bias, 0.0)
        return hidden, 1.0 / (1.0 + np.exp(-(hidden @ out + offset)))

    def _step(self, rows: Floats, targets: Floats) -> None:
        hidden, output = self._forward(rows)
        error = (output - targets) / len(rows)  # the gradient of the log loss by what goes into the logistic function
        back = np.where(hidden > 0.0, np.outer(error, self.weights_[2]), 0.0)
        gradients = (rows.T @ back, back.sum(axis=0), hidden.T @ error, error.sum())
        for place, gradient in enumerate(gradients):
            self.speeds_[place] = MOMENTUM * self.speeds_[place] + gradient
            self.weights_[place] = self.weights_[place] - RATE * self.speeds_[place]
