"""Linear models with Gaussian weights and errors. They learn the weights from observations."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from artreplay.compiling import Floats


class Posterior(NamedTuple):
    """The posterior of the weights. If its arrays have further axes in front, these count models."""

    lower: Floats  # (weight, weight): L, where LLᵀ is the inverse of the covariance of the weights
    whitened: Floats  # (weight,): Lᵀ times the mean of the weights
    evidence: Floats  # the log density of the observations, without the terms that do not depend on the weights

    def weights(self, model: int) -> tuple[Floats, Floats]:
        """The mean and the covariance of the weights of one of several models."""
        root = np.linalg.inv(self.lower[model])
        return root.T @ self.whitened[model], root.T @ root


def posterior(precision: Floats, right: Floats, prior: Floats) -> Posterior:
    """Learn the weights w from observations y = Φ·w + error.

    `precision` is ΦᵀPΦ and `right` is ΦᵀPy, where P has the inverse variances of the errors. `prior` has the variances
    of the weights, around 0, before any observation.
    """
    diagonal = np.arange(prior.shape[-1])
    with_prior = precision.copy()
    with_prior[..., diagonal, diagonal] += 1.0 / prior
    lower: Any = np.linalg.cholesky(with_prior)
    whitened = np.linalg.solve(lower, right[..., None])[..., 0]
    log_determinant = 2.0 * np.log(lower[..., diagonal, diagonal]).sum(-1)
    evidence = 0.5 * ((whitened * whitened).sum(-1) - log_determinant - np.log(prior).sum(-1))
    return Posterior(lower, whitened, evidence)
