"""Values of the boxes of a space at each level, from the counts and sums of their rewards.

Every model here is a function of these counts and sums alone.
"""

from __future__ import annotations

import copy
import inspect
import math
from typing import Any, NamedTuple

import numpy as np

from artreplay.algorithms.surfaces import BoxSums, Fit, SurfaceBasis
from artreplay.compiling import Floats, Ints
from artreplay.errors import InvalidParameter
from artreplay.streams import fold

POWERS = (0.35, 0.5, 0.71, 1.0, 1.41)  # powers of effort by which a surface for all levels may grow
EVIDENCE_SLACK = (
    6.0  # nats of evidence that a hypothesis may lack to the best one, as the roughest prior does from the start
)


class LevelSums(NamedTuple):
    """The number of samples, the sum of rewards and the sum of their squares, each for (level, box)."""

    counts: Any
    totals: Floats
    squares: Floats

    def of(self, level: Any) -> LevelSums:
        """The sums of some levels."""
        return LevelSums(*(part[level] for part in self))


class Surfaces(NamedTuple):
    """A surface for each level, or one for all levels times a power of effort if the samples support that."""

    basis: SurfaceBasis
    share: Floats  # (power, level): how a level scales the surface for all levels; without rows if there is none

    def values(self, sums: LevelSums, width: float, slack: float = EVIDENCE_SLACK) -> Floats:
        """The values of the boxes for (level, box), which lie `width` standard deviations above the mean, in [0, 1].

        A value is the highest that any hypothesis gives whose evidence is within `slack` of the best. Boxes at a level
        without samples have the value 1.
        """
        samples = sums.counts.sum(axis=1)
        with_samples = np.flatnonzero(samples)
        apart = {
            level: self.basis.fit(summed(self.basis, np.ones(1), sums.of([level]))) for level in with_samples.tolist()
        }
        together, evidence = self._together(sums, samples, np.array([fit.noise for fit in apart.values()]))
        evidence_apart = math.fsum(float(fit.evidence.max()) for fit in apart.values())
        least = max(float(evidence.max(initial=-math.inf)), evidence_apart) - slack
        highest = np.zeros(sums.counts.shape)
        for power, prior in np.argwhere(evidence >= least).tolist():
            upper = together[power].upper(prior, width)
            highest = np.maximum(highest, self.share[power][:, None] * upper)
        if evidence_apart >= least:
            for level in range(len(highest)):
                upper = _highest(apart[level], width, slack) if level in apart else np.ones(highest.shape[1])
                highest[level] = np.maximum(highest[level], upper)
        return np.clip(highest, 0.0, 1.0)

    def _together(self, sums: LevelSums, samples: Ints, noise: Floats) -> tuple[list[Fit], Floats]:
        """Fit the surfaces for all levels. Returns them and the evidence for (power, prior).

        Rewards of one level can be much noisier than those of another. So the rewards of a level are weighted by the
        `noise` that remains after the fit of its own surface.
        """
        if len(self.share) == 0 or len(noise) == 0:
            return [], np.empty((0, 0))
        trust = np.ones(len(samples))
        trust[samples > 0] = (noise * samples[samples > 0]).sum() / samples.sum() / noise
        weighed = LevelSums(*(part * trust[:, None] for part in sums))
        total = float(sums.totals.sum())
        boxes = [
            summed(self.basis, scales, weighed)._replace(samples=samples.sum(), total=total) for scales in self.share
        ]
        fits = [self.basis.fit(each) for each in boxes]
        return fits, np.array([fit.evidence for fit in fits]) + 0.5 * float(samples @ np.log(trust))


def _highest(fit: Fit, width: float, slack: float) -> Floats:
    """The highest value of each box among the priors whose evidence is within the slack."""
    plausible = np.flatnonzero(fit.evidence >= fit.evidence.max() - slack).tolist()
    highest: Floats = np.max([fit.upper(prior, width) for prior in plausible], axis=0)
    return highest


def summed(basis: SurfaceBasis, scales: Floats, sums: LevelSums) -> BoxSums:
    """Combine sums at several levels to those of one surface, which each level scales."""
    weight, weighted = scales * scales @ sums.counts, scales @ sums.totals
    mean = np.where(weight > 0.0, weighted / np.where(weight > 0.0, weight, 1.0), 0.0)
    shape = basis.features.first.shape[1], basis.features.second.shape[1]
    total, square = float(sums.totals.sum()), float(sums.squares.sum())
    return BoxSums(weight.reshape(shape), mean.reshape(shape), int(sums.counts.sum()), total, square)


class Predictions(NamedTuple):
    """Predictions of a scikit-learn regressor, fitted to the mean rewards of the boxes that have samples."""

    estimator: Any
    features: Floats  # (level, box, coordinate or level): in [-1, 1]
    seed: int

    def values(self, sums: LevelSums, width: float, slack: float = EVIDENCE_SLACK) -> Floats:
        """The predictions. An estimator does not say how far they may be off, so `width` makes no difference."""
        has_samples = sums.counts > 0
        if not has_samples.any():
            return np.ones(has_samples.shape)
        features, means = self.features[has_samples], sums.totals[has_samples] / sums.counts[has_samples]
        samples, name = int(sums.counts.sum()), type(self.estimator).__name__
        model = self._fresh(samples)
        try:
            weighted = "sample_weight" in inspect.signature(model.fit).parameters
            model.fit(features, means, **({"sample_weight": sums.counts[has_samples] * 1.0} if weighted else {}))
            predicted = np.asarray(model.predict(self.features.reshape(-1, features.shape[1])), np.float64)
            by_level: Floats = predicted.reshape(has_samples.shape)
        except ValueError as error:
            raise InvalidParameter(
                f"{name} must be able to learn from {len(means)} boxes, and fails: {error}"
            ) from error
        if np.isnan(by_level).any():
            raise InvalidParameter(f"{name} must predict numbers, got nan after {samples} samples")
        return np.clip(by_level, 0.0, 1.0)

    def _fresh(self, samples: int) -> Any:
        """Copy the estimator before any fit. If it draws at random, the number of samples is part of its seed."""
        model = copy.deepcopy(self.estimator)
        parameters: dict[str, Any] = getattr(model, "get_params", dict)()
        names = sorted(name for name in parameters if name.split("__")[-1] == "random_state")
        seeds = {name: fold(self.seed, samples, place) >> 32 for place, name in enumerate(names)}
        return model.set_params(**seeds) if seeds else model


def checked_estimator(model: Any) -> Any:
    """Check a regressor, and copy it, so that nobody else can fit it."""
    offers = all(callable(getattr(model, method, None)) for method in ("fit", "predict"))
    if isinstance(model, type) or not offers or hasattr(model, "predict_proba"):
        raise InvalidParameter(
            f'model must be "surface" or a scikit-learn regressor with fit and predict, got {model!r}'
        )
    return copy.deepcopy(model)
