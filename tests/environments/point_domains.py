"""What the tests of domains in a continuous space share: one of each, and their logs."""

from __future__ import annotations

import numpy as np

from artreplay.environments import Metric, PiecewiseLinear, Quadratic


def peak(points):
    return 1.0 - np.abs(points[:, 0] - 0.3)


def crossed(points, levels):
    """At level 1 bad on the left, at level 2 bad on the right."""
    return np.where(levels == 1, points[:, 0], 1 - points[:, 0])


EFFORT = {"levels": (1, 2), "budget": 3, "max_units": 2}
ENVIRONMENTS = {
    "interval": Metric(peak),
    "box": Metric(lambda points: points[:, 0] / 10, 2, box=[(2, 8), (-1, 1)]),
    "bad": Metric(peak, bad_share=0.7),
    "levels": Metric(crossed, **EFFORT),
    "bad at levels": Metric(crossed, bad_share=0.3, **EFFORT),
    "quadratic": Quadratic(),
    "bad quadratic": Quadratic(levels=(0, 0.5, 1), bad_share=0.7),
    "piecewise linear": PiecewiseLinear(dim=3, finest=8),
    "no noise": PiecewiseLinear(noise="none", bad_share=0.5),
}


def columns(history):
    parts = [history.points, history.rewards[:, None]]
    return np.hstack(parts if history.levels is None else [*parts, history.levels[:, None]])
