"""Linear models whose weights and errors are Gaussian: what is known of the weights after some observations."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from artreplay.compiling import Floats


class Posterior(NamedTuple):
    """What is known of the weights; leading axes, where there are any, count models."""

    lower: Floats  # (weight, weight): L, where LLᵀ is the inverse of the covariance of the weights
    whitened: Floats  # (weight,): Lᵀ times the mean of the weights
    evidence: Floats  # the log density of the observations, without the terms that do not depend on the weights

    def weights(self, model: int) -> tuple[Floats, Floats]:
        """The mean and the covariance of the weights of one of several models."""
        root = np.linalg.inv(self.lower[model])
        return root.T @ self.whitened[model], root.T @ root


def posterior(precision: Floats, right: Floats, prior: Floats) -> Posterior:
    """Learn the weights of observations y = Φ·w + error.

    `precision` is ΦᵀPΦ and `right` is ΦᵀPy, where P holds the inverse variances of the errors. `prior` has the
    variances of the weights before any observation, around 0.
    """
    diagonal = np.arange(prior.shape[-1])
    with_prior = precision.copy()
    with_prior[..., diagonal, diagonal] += 1.0 / prior
    lower: Any = np.linalg.cholesky(with_prior)
    whitened = np.linalg.solve(lower, right[..., None])[..., 0]
    log_determinant = 2.0 * np.log(lower[..., diagonal, diagonal]).sum(-1)
    evidence = 0.5 * ((whitened * whitened).sum(-1) - log_determinant - np.log(prior).sum(-1))
    return Posterior(lower, whitened, evidence)
