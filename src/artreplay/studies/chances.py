"""How likely each arm is to be the best one, by quadrature over the Beta posteriors of their means."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from artreplay.compiling import Floats

MAX_ARMS = 1_000  # above this the table of densities takes seconds
_NODES = 4_000  # in all; of each arm at least _MIN_NODES
_MIN_NODES = 41
_SPREAD = 3.6  # sinh of it is how many standard deviations of the logit the nodes span on each side


class Chances(NamedTuple):
    """For each arm the chance that it is the best, and the mean of the best arm, whichever that is."""

    best: Floats
    highest_mean: float


def chances_of(a: Floats, b: Floats) -> Chances:
    """Compute the chances of arms whose means have the posteriors Beta(a, b).

    The integrals are over the logit of the mean, in which every density is smooth and bounded, even where `a` or `b` is
    below 1. The nodes are those of every arm, so that narrow and wide posteriors can stand side by side.

    >>> chances_of(np.array([1.0, 1.0]), np.array([1.0, 1.0])).best.round(3).tolist()
    [0.5, 0.5]
    >>> round(float(chances_of(np.array([2.0, 1.0]), np.array([1.0, 1.0])).best[0]), 3)    # 2/3
    0.667
    """
    arms = len(a)
    if arms == 1:
        return Chances(np.ones(1), float(a[0] / (a[0] + b[0])))
    middle = _digamma(a) - _digamma(b)
    deviation = np.sqrt(_trigamma(a) + _trigamma(b))
    each = max(_MIN_NODES, _NODES // arms)
    step = 2.0 * _SPREAD / (each - 1)
    # The nodes of equal arms lie between one another, so that they add to the precision.
    shift = (np.arange(arms) / arms - 0.5) * step
    places = np.sinh(np.linspace(-_SPREAD, _SPREAD, each)[None, :] + shift[:, None])
    x = np.unique(middle[:, None] + deviation[:, None] * places)
    log_mean, log_rest = -np.logaddexp(0.0, -x), -np.logaddexp(0.0, x)
    scale = np.array([math.lgamma(p) + math.lgamma(q) - math.lgamma(p + q) for p, q in zip(a, b, strict=True)])
    density = np.exp(a[:, None] * log_mean + b[:, None] * log_rest - scale[:, None])
    width = np.diff(x)
    below = np.concatenate(
        [np.zeros((arms, 1)), np.cumsum((density[:, 1:] + density[:, :-1]) * 0.5 * width, axis=1)], axis=1
    )
    log_below = np.log(np.maximum(below / below[:, -1:], 1e-300))
    all_below = log_below.sum(axis=0)
    is_best = density * np.exp(all_below - log_below)  # the density of each arm where all others are below it
    mass = ((is_best[:, 1:] + is_best[:, :-1]) * 0.5 * width).sum(axis=1)
    highest = is_best.sum(axis=0) * np.exp(log_mean)
    total = float(mass.sum())
    return Chances(mass / total, float(((highest[1:] + highest[:-1]) * 0.5 * width).sum()) / total)


def _digamma(x: Floats) -> Floats:
    """The derivative of log Γ, by its recurrence up to 6 and its series from there."""
    value, z = np.zeros_like(x), x.astype(np.float64)
    while (z < 6.0).any():
        value, z = np.where(z < 6.0, value - 1.0 / z, value), np.where(z < 6.0, z + 1.0, z)
    w = 1.0 / (z * z)
    series: Floats = value + np.log(z) - 0.5 / z - w * (1 / 12 - w * (1 / 120 - w / 252))
    return series


def _trigamma(x: Floats) -> Floats:
    """The second derivative of log Γ, in the same way."""
    value, z = np.zeros_like(x), x.astype(np.float64)
    while (z < 6.0).any():
        value, z = np.where(z < 6.0, value + 1.0 / (z * z), value), np.where(z < 6.0, z + 1.0, z)
    w = 1.0 / (z * z)
    series: Floats = value + 1.0 / z + 0.5 * w + w / z * (1 / 6 - w * (1 / 30 - w / 42))
    return series
