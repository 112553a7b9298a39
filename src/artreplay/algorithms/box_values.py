"""What the boxes of a space are worth at each level, from the counts and sums of their rewards.

Every model here is a function of these sums alone.
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

POWERS = (0.35, 0.5, 0.71, 1.0, 1.41)  # of effort, that a surface for all levels may grow with
EVIDENCE_SLACK = (
    6.0  # nats of evidence that a hypothesis may lack; the roughest of four is doubted by as many from the start
)


class LevelSums(NamedTuple):
    """Samples in each box, the sums of their rewards, and of the squares of these; (level, box) each."""

    counts: Any
    totals: Floats
    squares: Floats

    def of(self, level: Any) -> LevelSums:
        """Those of some of the levels."""
        return LevelSums(*(part[level] for part in self))


class Surfaces(NamedTuple):
    """A surface for each level; or one for all of them times a power of effort, if the samples speak for that."""

    basis: SurfaceBasis
    share: Floats  # (power, level): how a level scales a surface for all of them; no rows where there is none

    def values(self, sums: LevelSums, width: float, slack: float = EVIDENCE_SLACK) -> Floats:
        """What boxes are worth, (level, box): `width` standard deviations above what is expected, in [0, 1].

        Every hypothesis counts whose evidence is within `slack` of the best. A level without samples is worth 1.
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
        """The surfaces for all levels, with the evidence for (power, prior).

        Rewards of one level can be much noisier than those of another: they count by the `noise` that the surface of
        their own level leaves.
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
    """The highest values of the priors whose evidence is within the slack."""
    plausible = np.flatnonzero(fit.evidence >= fit.evidence.max() - slack).tolist()
    highest: Floats = np.max([fit.upper(prior, width) for prior in plausible], axis=0)
    return highest


def summed(basis: SurfaceBasis, scales: Floats, sums: LevelSums) -> BoxSums:
    """Sums at several levels as those of one surface that each level scales."""
    weight, weighted = scales * scales @ sums.counts, scales @ sums.totals
    mean = np.where(weight > 0.0, weighted / np.where(weight > 0.0, weight, 1.0), 0.0)
    shape = basis.features.first.shape[1], basis.features.second.shape[1]
    total, square = float(sums.totals.sum()), float(sums.squares.sum())
    return BoxSums(weight.reshape(shape), mean.reshape(shape), int(sums.counts.sum()), total, square)


class Predictions(NamedTuple):
    """What a scikit-learn regressor predicts, fitted to the means of the boxes that were seen at all levels."""

    estimator: Any
    features: Floats  # (level, box, coordinate or level): in [-1, 1]
    seed: int

    def values(self, sums: LevelSums, width: float, slack: float = EVIDENCE_SLACK) -> Floats:
        """What is predicted. An estimator says nothing of how far it may be off."""
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
            raise InvalidParameter(f"{name} must learn from {len(means)} boxes and cannot: {error}") from error
        if np.isnan(by_level).any():
            raise InvalidParameter(f"{name} must predict numbers, got nan after {samples} samples")
        return np.clip(by_level, 0.0, 1.0)

    def _fresh(self, samples: int) -> Any:
        """The estimator before any fit. Where it draws at random, the number of samples is part of the seed."""
        model = copy.deepcopy(self.estimator)
        parameters: dict[str, Any] = getattr(model, "get_params", dict)()
        names = sorted(name for name in parameters if name.split("__")[-1] == "random_state")
        seeds = {name: fold(self.seed, samples, place) >> 32 for place, name in enumerate(names)}
        return model.set_params(**seeds) if seeds else model


def checked_estimator(model: Any) -> Any:
    """A copy of a regressor, which nobody else can fit."""
    offers = all(callable(getattr(model, method, None)) for method in ("fit", "predict"))
    if isinstance(model, type) or not offers or hasattr(model, "predict_proba"):
        raise InvalidParameter(
            f'model must be "surface" or a scikit-learn regressor, which has fit and predict, got {model!r}'
        )
    return copy.deepcopy(model)
