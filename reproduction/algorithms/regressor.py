"""Chooses places and levels within a budget by any scikit-learn regressor or classifier."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, cast

import numpy as np

from artreplay.algorithms import RewardRange, checked_reward, exact_choice, greedy_choice
from artreplay.algorithms.allocations import Solver
from artreplay.algorithms.budget import solver_of
from artreplay.algorithms.point_algorithms import GridPoints, Play, active_levels, checked_levels
from artreplay.cells import Box, grid_cells
from artreplay.cells.boxes import LEVEL_AT
from artreplay.compiling import Floats, Ints
from artreplay.errors import ArtReplayError, InvalidAction, InvalidParameter, exact
from artreplay.history import Allocation
from artreplay.morton import gathered
from artreplay.parameters import Count, Positive, Seed, checked, checked_seed
from artreplay.streams import fold

PASSES = 20  # of the default estimator; fewer learn little from a small log, more cost more than they gain
_ROWS = 1 << 17  # rows in one call

Earlier = Literal["as many", "all"]  # the earlier samples that are shown again with new ones


class Regressor:
    """Learns the reward as a function of place and level, and chooses the best affordable grid boxes.

    `estimator` is any scikit-learn regressor, or a classifier of rewards 0 and 1. The default is a neural network with
    one hidden layer of 10 units. It learns from the first sample on, and again after every `every` new samples. If it
    has `partial_fit` it is trained further, else it is fitted again to all samples. Before the first sample every
    prediction is 1.

    Further training shows it the new samples `passes` times (20 times for the default, once for your own estimator).
    With more than one pass, as many earlier samples, drawn at random, come with the new ones, so that it does not
    forget them. With `earlier="all"` all of them do, in every pass. The estimator starts untrained, and `seed` becomes
    its `random_state`. Its features are the coordinates and the level, each scaled to [-1, 1]. Artificial Replay is not
    exact for it. It needs scikit-learn: `pip install artreplay[ml]`.

    >>> import artreplay as ar
    >>> from reproduction.algorithms import Regressor
    >>> from sklearn.linear_model import LinearRegression
    >>> grid = {"dim": 1, "levels": (1, 2), "budget": 2, "max_units": 1, "cells_per_side": 4}
    >>> history = ar.History([[0.1], [0.4], [0.9]], [0, 0.25, 1], levels=[1, 1, 1])
    >>> ar.FullStart(Regressor(LinearRegression(), **grid), history).ask()
    [Allocation(point=(0.875,), level=2.0)]
    """

    reward_range: RewardRange = (0.0, 1.0)

    @checked
    def __init__(
        self,
        estimator: Any = None,
        *,
        dim: Count,
        levels: Sequence[float],
        budget: Positive,
        max_units: Count,
        cells_per_side: Count,
        solver: Solver = "exact",
        every: Count = 128,
        passes: Count | None = None,
        earlier: Earlier = "as many",
        box: Any = None,
        seed: Seed = 0,
    ) -> None:
        self.earlier: Earlier = earlier
        self.estimator, self._classifies = _checked_estimator(estimator)
        self.dim, self.cells_per_side = dim, cells_per_side
        self.levels = checked_levels(levels)
        self.budget, self.max_units = budget, max_units
        self.every, self.seed, self.solver = every, seed, solver
        usual = PASSES if estimator is None else 1
        self.passes = usual if passes is None else passes
        self._space = _Grid(box, self.dim, self.cells_per_side, "centre", self.seed, self.reward_range)
        self._space.levels = self.levels
        self.box = self._space.box
        self._active = active_levels(self.levels)
        self._boxes = _boxes(self._space)
        solver_of(
            solver, self._active_levels(), self.budget, self.max_units, len(self._boxes)
        )  # raises an error if the solver cannot solve it
        self._grid = self._features_of_grid()

        self._key = self.seed
        self._model: Any = None  # None before the first fit, or a number that is the prediction everywhere
        self._features: Floats = np.empty((0, self.dim + 1))  # the features of all samples but the latest
        self._rewards: Floats = np.empty(0)
        self._latest: list[tuple[tuple[float, ...], float]] = []  # samples that are not in the arrays yet
        self._fitted = 0  # how many samples the model knows
        self._proposal: dict[Allocation, tuple[float, ...]] | None = (
            None  # each unit with its features; None if it must be computed again
        )

    # -- the base algorithm -----------------------------------------------------------------------------------

    def propose(self) -> list[Allocation]:
        """Propose the affordable boxes with the largest sum of predictions, each at its level."""
        new = len(self._rewards) + len(self._latest) - self._fitted
        if new > 0 and (self._model is None or new >= self.every):
            self._fit()
        if self._proposal is None:
            choice = exact_choice if self.solver == "exact" else greedy_choice
            chosen = choice(self._predictions(), self._active_levels(), self.budget, self.max_units)
            numbers = [int(self._active[slot]) << LEVEL_AT | int(self._boxes[place]) for place, slot in chosen]
            units = [cast(Allocation, self._space.unit(number)) for number in numbers]
            self._proposal = {unit: self._features_of(unit) for unit in units}
        return list(self._proposal)

    def update(self, unit: Any, reward: float) -> None:
        """Show one sample: an allocation and its reward."""
        try:
            features = (self._proposal or {})[unit]  # usually the told unit is the proposed one
        except (KeyError, TypeError):
            features = self._features_of(unit)
        self._latest.append((features, self.check_reward(reward)))

    def check_unit(self, unit: Any) -> None:
        """Refuse a unit that is not an allocation in this space at one of the levels."""
        self._space.checked_place(unit)

    def check_reward(self, reward: Any) -> float:
        """Refuse a reward that is not in [0, 1], or for a classifier neither 0 nor 1. Return it as a float."""
        value = checked_reward(reward, self.reward_range)
        if self._classifies and value not in (0.0, 1.0):
            raise InvalidAction(f"reward must be 0 or 1 for a classifier ({self._name()}), got {value!r}")
        return value

    def cell(self, unit: Any) -> Box:
        """Return the grid box of a unit at its level. Samples of one box stand in for each other."""
        return self._space.box_of(self._space.checked_number(unit))

    def reseed(self, key: int) -> None:
        """Start the estimator again with draws of another key. The samples shown so far are kept for its next fit."""
        self._key = checked_seed(key)
        self._model, self._fitted, self._proposal = None, 0, None

    def __repr__(self) -> str:
        grid = f"dim={self.dim}, levels={self.levels}, budget={exact(self.budget)}, max_units={self.max_units}"
        how = f"cells_per_side={self.cells_per_side}, solver={self.solver!r}, every={self.every}, "
        how += f"passes={self.passes}, earlier={self.earlier!r}, seed={self.seed}"
        return f"Regressor({self._name()}, {grid}, {how})"

    # -- the estimator ----------------------------------------------------------------------------------------

    def _fit(self) -> None:
        """Train the estimator on new samples, or on all samples if it cannot be trained further."""
        self._gather()
        goes_on = hasattr(self.estimator, "partial_fit")
        model: Any
        if not goes_on and self._classifies and len(set(self._rewards.tolist())) == 1:
            model = float(self._rewards[0])  # most classifiers refuse to learn from a single class
        else:
            # A copy, so that nothing is lost if learning fails.
            model = copy.deepcopy(self._model) if goes_on and self._model is not None else self._fresh()
            targets = self._rewards.astype(np.int64) if self._classifies else self._rewards
            classes = {"classes": np.array([0, 1])} if self._classifies else {}
            try:
                with _quiet():
                    if not goes_on:
                        model.fit(self._features, targets)
                    else:
                        for rows in self._lessons():
                            model.partial_fit(self._features[rows], targets[rows], **classes)
            except ValueError as error:
                known = f"from {len(self._rewards) - (self._fitted if goes_on else 0)} samples"
                raise InvalidParameter(f"{self._name()} must learn {known} and cannot: {error}") from error
        self._model, self._fitted, self._proposal = model, len(self._rewards), None

    def _gather(self) -> None:
        """Append the latest samples to the arrays."""
        if self._latest:
            features, rewards = zip(*self._latest, strict=True)
            self._features = np.concatenate([self._features, np.array(features)])
            self._rewards = np.concatenate([self._rewards, np.array(rewards)])
            self._latest = []

    def _lessons(self) -> Iterator[Ints]:
        """Iterate over the samples for further training, with as many passes in one call as fit into memory."""
        known, rows = self._fitted, np.arange(self._fitted, len(self._rewards))
        if self.earlier == "all":
            known, rows = 0, np.arange(len(self._rewards))
        elif self.passes == 1:
            yield rows
            return
        draws = np.random.default_rng(fold(self._key, len(self._rewards)))
        at_once = max(_ROWS // len(rows), 1)
        for first in range(0, self.passes, at_once):
            lesson = []
            for _ in range(first, min(first + at_once, self.passes)):
                earlier = draws.integers(0, known, min(known, len(rows))) if known else rows[:0]
                lesson.append(draws.permutation(np.concatenate([rows, earlier])))
            yield np.concatenate(lesson)

    def _predictions(self) -> Floats:
        """Return the prediction for each box, in Z-order, at each level above 0."""
        shape = (len(self._boxes), len(self._active))
        if self._model is None or isinstance(self._model, float):
            return np.full(shape, 1.0 if self._model is None else self._model)
        try:
            with _quiet():
                if self._classifies:
                    ones = list(self._model.classes_).index(1)
                    predicted = self._model.predict_proba(self._grid)[:, ones]
                else:
                    predicted = self._model.predict(self._grid)
            values = np.asarray(predicted, np.float64).reshape(shape)
        except ValueError as error:
            known = f"after {self._fitted} samples"
            raise InvalidParameter(f"{self._name()} must predict {known} and cannot: {error}") from error
        if np.isnan(values).any():
            raise InvalidParameter(f"{self._name()} must predict numbers, got nan after {self._fitted} samples")
        return np.clip(values, 0.0, 1.0)

    def _fresh(self) -> Any:
        """Return the untrained estimator, with its own seed for every part that draws at random."""
        from sklearn.base import clone

        model = clone(self.estimator)
        names = sorted(name for name in model.get_params() if name.split("__")[-1] == "random_state")
        return model.set_params(**{name: fold(self._key, place) >> 32 for place, name in enumerate(names)})

    def _name(self) -> str:
        return type(self.estimator).__name__

    # -- the grid ---------------------------------------------------------------------------------------------

    def _active_levels(self) -> list[float]:
        return [self.levels[number] for number in self._active]

    def _features_of(self, unit: Any) -> tuple[float, ...]:
        """Return the coordinates and the level of a unit, each scaled to [-1, 1]."""
        place, number = self._space.checked_place(unit)
        scaled = [
            2.0 * (x - low) / (high - low) - 1.0 for x, (low, high) in zip(place, self._space.edges(), strict=True)
        ]
        return (*scaled, 2.0 * self.levels[number] / self.levels[-1] - 1.0)

    def _features_of_grid(self) -> Floats:
        """Return the features of the centre of each box at each level above 0."""
        side, bits = self._space.lattice.side, self._space.lattice.bits
        centres = [2.0 * (gathered(self._boxes, axis, self.dim, bits) + 0.5) / side - 1.0 for axis in range(self.dim)]
        levels = [2.0 * level / self.levels[-1] - 1.0 for level in self._active_levels()]
        columns = [np.repeat(centre, len(levels)) for centre in centres]
        return np.stack([*columns, np.tile(levels, len(self._boxes))], axis=1)


class _Grid(GridPoints):
    """The grid of a regressor. It keeps all that it was made with, because runs describe it."""

    def __init__(self, box: Any, dim: int, side: int, play: Play, seed: int, reward_range: RewardRange) -> None:
        super().__init__(box, dim, side, play, seed, reward_range)
        self.side = side


def published_network(**grid: Any) -> Regressor:
    """Return a `Regressor` with the network of the paper's authors, which is trained little.

    Their code trains 5 epochs on all samples, and again after 256 new ones (the paper says 128).
    """
    from reproduction.algorithms.log_loss_network import PublishedNetwork  # imported here, because it needs sklearn

    return Regressor(PublishedNetwork(), passes=5, earlier="all", every=256, **grid)


def _boxes(space: GridPoints) -> Ints:
    """Return the numbers of the boxes at the first level, in Z-order."""
    cells = grid_cells(space.lattice, len(space.levels or ()))
    boxes: Ints = cells.top | cells.code
    return boxes


def _checked_estimator(estimator: Any) -> tuple[Any, bool]:
    """Return an unfitted copy of an estimator, or of the default for None, and whether it is a classifier."""
    try:
        from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
        from sklearn.neural_network import MLPRegressor
    except ImportError as error:
        raise ArtReplayError("Regressor needs scikit-learn: pip install artreplay[ml]") from error
    if estimator is None:
        # No shuffling by scikit-learn, which adds a third to the cost: passes are already shuffled.
        network = MLPRegressor(hidden_layer_sizes=(10,), activation="tanh", learning_rate_init=0.03, shuffle=False)
        return network, False
    known = isinstance(estimator, BaseEstimator)
    if not known or not (is_regressor(estimator) or is_classifier(estimator)):
        raise InvalidParameter(f"estimator must be a scikit-learn regressor or classifier, got {estimator!r}")
    classifies = bool(is_classifier(estimator))
    if classifies and not hasattr(estimator, "predict_proba"):
        raise InvalidParameter(f"a classifier must offer predict_proba, and {estimator!r} does not")
    return clone(estimator), classifies


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence warnings that more training would help. More follows anyway, and predictions of nan are caught."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield
