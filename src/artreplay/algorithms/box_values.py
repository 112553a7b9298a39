"""What the boxes of a space are worth at each level, from the counts and sums of their rewards.

Every model here is a function of these sums alone.
"""

from __future__ import annotations

import copy
import inspect
import math
from typing import Any, NamedTuple, Protocol

import numpy as np

from artreplay.algorithms.surfaces import BoxSums, Fit, Surface
from artreplay.compiling import Floats, Ints
from artreplay.errors import InvalidParameter
from artreplay.streams import fold

POWERS = (0.35, 0.5, 0.71, 1.0, 1.41)  # of effort, that a surface for all levels may grow with
SLACK = 6.0  # nats of evidence that a hypothesis may lack; the roughest of four is doubted by as many from the start


class LevelSums(NamedTuple):
    """Samples in each box, the sums of their rewards, and of the squares of these; (level, box) each."""

    counts: Any
    totals: Floats
    squares: Floats

    def of(self, level: Any) -> LevelSums:
        """Those of some of the levels."""
        return LevelSums(*(part[level] for part in self))


class Model(Protocol):
    """Says what boxes are worth."""

    def values(self, sums: LevelSums, width: float, slack: float = SLACK) -> Floats:
        """What boxes are worth, (level, box): `width` standard deviations above what is expected, in [0, 1].

        Every hypothesis counts whose evidence is within `slack` of the best.
        """
        ...


class SurfaceApart(NamedTuple):
    """One surface, for the boxes of one level."""

    surface: Surface

    def values(self, sums: LevelSums, width: float, slack: float = SLACK) -> Floats:
        """The highest values that the priors allow."""
        return _highest(self.surface.fit(summed(self.surface, np.ones(1), sums)), width, slack)[None]


class SurfaceTogether(NamedTuple):
    """One surface for all levels, times a power of effort, or else a surface for each level."""

    surface: Surface
    share: Floats  # (power, active level): how a level scales the surface
    active: Ints  # the levels above 0

    def values(self, sums: LevelSums, width: float, slack: float = SLACK) -> Floats:
        """The highest values that the hypotheses allow; 1 at levels of 0, and where there are no samples at all."""
        found = np.ones(sums.counts.shape)
        if sums.counts[self.active].any():
            found[self.active] = self._of_active(sums.of(self.active), width, slack)
        return found

    def _of_active(self, sums: LevelSums, width: float, slack: float) -> Floats:
        """Rewards of one level can be much noisier than those of another.

        In a surface for all levels they count by the noise that the surface of their own level leaves.
        """
        samples = sums.counts.sum(axis=1)
        seen = np.flatnonzero(samples)
        alone = {level: self.surface.fit(summed(self.surface, np.ones(1), sums.of([level]))) for level in seen.tolist()}
        noise = np.array([fit.noise for fit in alone.values()])
        trust = np.ones(len(samples))
        trust[seen] = (noise * samples[seen]).sum() / samples.sum() / noise
        weighed = LevelSums(*(part * trust[:, None] for part in sums))
        n_samples, total = int(samples.sum()), float(sums.totals.sum())
        together = [
            self.surface.fit(summed(self.surface, scales, weighed)._replace(samples=n_samples, total=total))
            for scales in self.share
        ]
        reweighed = 0.5 * float(samples @ np.log(trust))
        evidence = np.array([fit.evidence for fit in together]) + reweighed
        apart = math.fsum(float(fit.evidence.max()) for fit in alone.values())
        least = max(float(evidence.max()), apart) - slack
        found = np.zeros(sums.counts.shape)
        for power, prior in np.argwhere(evidence >= least).tolist():
            upper = together[power].upper(prior, width)
            found = np.maximum(found, self.share[power][:, None] * upper)
        if apart >= least:
            for level in range(len(found)):
                upper = _highest(alone[level], width, slack) if level in alone else np.ones(found.shape[1])
                found[level] = np.maximum(found[level], upper)
        return np.clip(found, 0.0, 1.0)


def _highest(fit: Fit, width: float, slack: float) -> Floats:
    """The highest values of the priors whose evidence is within the slack, in [0, 1]."""
    plausible = np.flatnonzero(fit.evidence >= fit.evidence.max() - slack).tolist()
    found: Floats = np.clip(np.max([fit.upper(prior, width) for prior in plausible], axis=0), 0.0, 1.0)
    return found


def summed(surface: Surface, scales: Floats, sums: LevelSums) -> BoxSums:
    """Sums at several levels as those of one surface that each level scales."""
    weight, weighted = scales * scales @ sums.counts, scales @ sums.totals
    mean = np.where(weight > 0.0, weighted / np.where(weight > 0.0, weight, 1.0), 0.0)
    shape = surface.functions[0].shape[1], surface.functions[1].shape[1]
    total, square = float(sums.totals.sum()), float(sums.squares.sum())
    return BoxSums(weight.reshape(shape), mean.reshape(shape), int(sums.counts.sum()), total, square)


class Predictions(NamedTuple):
    """What a scikit-learn regressor predicts, fitted to the means of all boxes seen at all levels."""

    estimator: Any
    features: Floats  # (level, box, coordinate or level): in [-1, 1]
    seed: int

    def values(self, sums: LevelSums, width: float, slack: float = SLACK) -> Floats:
        """What is predicted. An estimator says nothing of how far it may be off."""
        seen = sums.counts > 0
        features, means = self.features[seen], sums.totals[seen] / sums.counts[seen]
        model = self._fresh(int(sums.counts.sum()))
        name = type(self.estimator).__name__
        try:
            if self._takes_weights():
                model.fit(features, means, sample_weight=sums.counts[seen].astype(np.float64))
            else:
                model.fit(features, means)
            predicted = np.asarray(model.predict(self.features.reshape(-1, features.shape[1])), np.float64)
            found: Floats = predicted.reshape(seen.shape)
        except ValueError as error:
            raise InvalidParameter(f"{name} must learn from {len(means)} boxes and cannot: {error}") from error
        if np.isnan(found).any():
            raise InvalidParameter(f"{name} must predict numbers, got nan after {int(sums.counts.sum())} samples")
        return np.clip(found, 0.0, 1.0)

    def _fresh(self, samples: int) -> Any:
        """The estimator before any fit. Where it draws at random, the number of samples is part of the seed."""
        model = copy.deepcopy(self.estimator)
        names = sorted(name for name in _parameters(model) if name.split("__")[-1] == "random_state")
        seeds = {name: fold(self.seed, samples, place) >> 32 for place, name in enumerate(names)}
        return model.set_params(**seeds) if seeds else model

    def _takes_weights(self) -> bool:
        return "sample_weight" in inspect.signature(self.estimator.fit).parameters


def _parameters(estimator: Any) -> Any:
    """The names and values of its parameters, if it lets itself be asked."""
    return estimator.get_params() if hasattr(estimator, "get_params") else {}


def checked_estimator(model: Any) -> Any:
    """A copy of a regressor, which nobody else can fit."""
    offers = all(callable(getattr(model, method, None)) for method in ("fit", "predict"))
    if isinstance(model, type) or not offers or hasattr(model, "predict_proba"):
        raise InvalidParameter(
            f'model must be "surface" or a scikit-learn regressor, which has fit and predict, got {model!r}'
        )
    return copy.deepcopy(model)
