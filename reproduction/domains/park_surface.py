"""`ParkSurface`: a small neural network from place and effort to the chance of an observation."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from artreplay.compiling import Floats
from artreplay.optional_packages import needed
from artreplay.parameters import checked_seed
from artreplay.streams import fold
from artreplay_patrol.area import Bools
from artreplay_patrol.errors import InvalidRecords
from artreplay_patrol.samples import box_of

HIDDEN = (24, 16)  # the architecture is ours: the paper gives none
MAX_ROWS = 20_000  # that a network is fitted to
_EPOCHS = 40
_MAX_KNOWN = 1 << 16
_KNOTS = 17  # efforts at which the network is asked


@dataclass(frozen=True, eq=False)
class ParkSurface:
    """The chance of an observation at (x, y) of the unit square with some effort, fitted to records.

    No effort finds nothing, and more effort never finds less: between a few efforts the chance is a straight line, at
    each of them the largest one up to there. With `mask` nothing is found in boxes outside it.
    """

    weights: tuple[Floats, ...]
    biases: tuple[Floats, ...]
    max_effort: float  # in the records; beyond it the surface stays as it is
    mask: Bools | None = None
    _known: dict[bytes, Floats] = field(default_factory=dict, init=False, repr=False)  # of points asked for one by one

    @classmethod
    def fit(cls, points: Any, efforts: Any, observed: Any, *, mask: Any = None, seed: int = 0) -> ParkSurface:
        """Fit a network to samples, or, if there are very many, to a part of them drawn with the seed."""
        places = np.asarray(points, np.float64).reshape(-1, 2)
        effort, labels = np.asarray(efforts, np.float64), np.asarray(observed).astype(np.int64)
        if len(np.unique(labels)) < 2:
            raise InvalidRecords("a surface needs samples with and without an observation, there is only one kind")
        rng = np.random.default_rng(fold(checked_seed(seed)))
        rows = np.sort(rng.permutation(len(labels))[:MAX_ROWS])
        most = float(effort.max()) or 1.0
        inputs = _inputs(places[rows], effort[rows], most)
        weights, biases = _fitted(inputs, labels[rows], int(rng.integers(1 << 31)))
        return cls(weights, biases, most, None if mask is None else np.asarray(mask, np.bool_))

    def means(self, points: Any, levels: Any) -> Floats:
        """The chances at these points with these efforts."""
        places = np.asarray(points, np.float64).reshape(-1, 2)
        effort = np.broadcast_to(np.asarray(levels, np.float64), (len(places),))
        chance = self._rising(places, effort)
        nowhere = effort <= 0.0
        if self.mask is not None:
            box = box_of(places, len(self.mask))
            nowhere = nowhere | ~self.mask[box[:, 0], box[:, 1]]
        return np.where(nowhere, 0.0, chance)

    def _network(self, points: Floats, effort: Floats) -> Floats:
        """The network, in plain sums of a fixed order: a chance does not depend on what else is asked for."""
        layer = _inputs(points, effort, self.max_effort)
        for number, (weights, biases) in enumerate(zip(self.weights, self.biases, strict=True)):
            total = np.broadcast_to(biases, (len(layer), len(biases))).copy()
            for unit in range(len(weights)):
                total += layer[:, unit, None] * weights[unit]
            layer = total if number == len(self.weights) - 1 else np.maximum(total, 0.0)
        chance: Floats = 1.0 / (1.0 + np.exp(-np.clip(layer[:, 0], -30.0, 30.0)))
        return chance

    def _rising(self, points: Floats, effort: Floats) -> Floats:
        """The largest chance up to each of a few efforts, and straight lines between them."""
        highest = self._highest(points)
        place = np.clip(effort / self.max_effort * (_KNOTS - 1), 0.0, _KNOTS - 1)
        low = np.minimum(place.astype(np.int64), _KNOTS - 2)
        rows, share = np.arange(len(points)), place - low
        start, end = highest[rows, low], highest[rows, low + 1]
        risen: Floats = np.minimum(start + share * (end - start), end)  # rounding must not pass the end
        return risen

    def _highest(self, points: Floats) -> Floats:
        """The largest chance up to each knot; simulations ask for the same few points, one by one, ever again."""
        if len(points) != 1:
            return self._work_out_highest(points)
        key = points.tobytes()
        if key not in self._known:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            self._known[key] = self._work_out_highest(points)
        return self._known[key]

    def _work_out_highest(self, points: Floats) -> Floats:
        knots = np.linspace(0.0, self.max_effort, _KNOTS)
        chances = self._network(np.repeat(points, _KNOTS, axis=0), np.tile(knots, len(points)))
        chances = chances.reshape(len(points), _KNOTS)
        chances[:, 0] = 0.0
        highest: Floats = np.maximum.accumulate(chances, axis=1)
        return highest


def _inputs(points: Floats, effort: Floats, most: float) -> Floats:
    """What the network sees: numbers around 0."""
    return np.stack([2.0 * points[:, 0] - 1.0, 2.0 * points[:, 1] - 1.0, 2.0 * effort / most - 1.0], axis=1)


def _fitted(inputs: Floats, labels: Any, seed: int) -> tuple[tuple[Floats, ...], tuple[Floats, ...]]:
    """The weights of a network; on one thread, so that the order of sums is always the same."""
    networks, errors = needed("sklearn.neural_network", "this", "ml"), needed("sklearn.exceptions", "this", "ml")
    threads = needed("threadpoolctl", "this", "ml")
    network = networks.MLPClassifier(
        HIDDEN,
        activation="relu",
        alpha=1e-3,
        batch_size=min(200, len(inputs)),
        learning_rate_init=3e-3,
        max_iter=_EPOCHS,
        random_state=seed,
    )
    with warnings.catch_warnings(), threads.threadpool_limits(1):
        warnings.simplefilter("ignore", errors.ConvergenceWarning)
        network.fit(inputs, labels)
    return tuple(np.array(one) for one in network.coefs_), tuple(np.array(one) for one in network.intercepts_)
