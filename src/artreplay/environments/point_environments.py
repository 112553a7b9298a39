"""Environments in a continuous space. Every point, or every point at every level of effort, has a mean reward."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from artreplay.algorithms.budget import best_choice
from artreplay.algorithms.point_algorithms import checked_levels
from artreplay.cells import lattice
from artreplay.compiling import Floats, Ints, Loop, Words
from artreplay.environments.arm_environments import world_keys
from artreplay.environments.stack import Bernoulli, Certain
from artreplay.errors import InvalidParameter, checked_count, checked_number
from artreplay.history import History
from artreplay.parameters import Count, Share, checked
from artreplay.streams import LOG_LEVEL, LOG_REWARD, LOG_SIDE, LOG_UNIT, uniform

Noise = Literal["bernoulli", "none"]

MAX_GRID_BITS = 16  # log2 of the boxes of the default grid on which the best single point is looked for
MAX_BOXES = 1 << 22  # boxes of any such grid
MAX_MEANS = 1 << 24  # boxes of a grid times levels
MAX_ATTEMPTS = 10_000  # attempts to draw a point on the right side of the worst fifth
_NO_FIFTH = "bad_share needs a mean reward that is lower in a fifth of the space than in the rest, got one that is not"


class PointEnvironment:
    """Simulate a mean reward in [0, 1] for each point of a box, or for each point at each level of effort.

    This is the base class of `Metric`, `PiecewiseLinear` and `Quadratic`. The points of a log are uniform on the box,
    and their levels are uniform too. Regret is measured against the best centre of a box of a grid or, with levels,
    against the best affordable choice of such centres.

    Parameters
    ----------
    function
        The mean rewards of an array of points of shape (n, d). With levels it also takes an array of n levels.
    dim
        The number of coordinates.
    box
        The space, as one pair (low, high) for each coordinate, by default the unit cube.
    levels, budget, max_units
        The levels of effort, the effort there is in one round, and the most points in one round. Give all or none.
    noise
        `"bernoulli"` for rewards of 0 and 1, or `"none"` for rewards that equal the mean.
    bad_share
        The share of the log that lies where the mean is in its lowest fifth. At a level where all means are equal, such
        as level 0, points stay uniform.
    finest
        The number of boxes of the grid along each axis.
    """

    @checked
    def __init__(
        self,
        function: Callable[..., Any],
        dim: Count,
        box: Any,
        levels: Sequence[float] | None,
        budget: float | None,
        max_units: Count | None,
        noise: Noise,
        bad_share: Share | None,
        finest: Count | None,
    ) -> None:
        self.dim = dim
        self.levels = None if levels is None else checked_levels(levels)
        if (self.levels is None) != (budget is None) or (self.levels is None) != (max_units is None):
            raise InvalidParameter(
                "levels, budget and max_units must be given together, got some of them without others"
            )
        self.budget = None if budget is None else checked_number("budget", budget)
        self.max_units = max_units
        self.noise: Noise = noise
        self.bad_share = bad_share
        self.function = function
        points = [np.zeros((1, self.dim))]
        _check_takes(function, points if self.levels is None else [*points, np.ones(1)])
        usual = 32 if self.levels is not None else 1 << min(max(MAX_GRID_BITS // self.dim, 1), 12)
        self.finest = usual if finest is None else finest
        n_boxes, n_levels = self.finest**self.dim, len(self.level_values())
        if n_boxes > MAX_BOXES or n_boxes * n_levels > MAX_MEANS:
            means = f"{MAX_MEANS:,} boxes over all {n_levels} levels"
            most = f"{MAX_BOXES:,} boxes" if n_boxes > MAX_BOXES else means
            raise InvalidParameter(f"finest must make at most {most}, got {self.finest} along {self.dim} axes")
        self.lattice = lattice(box, self.dim, self.finest)
        self.box = None if box is None else tuple((float(low), float(high)) for low, high in box)
        self._centres = self._grid()
        table = self.level_values()
        self._means = np.stack([self.means(self._centres, np.full(len(self._centres), level)) for level in table], 1)
        self.optimum = self._optimum()
        self._bad = np.quantile(self._means, 0.2, axis=0)
        self._alike = self._means.min(axis=0) == self._means.max(axis=0)
        none_better = (self._means <= self._bad).all(axis=0)
        if self.bad_share is not None and (self._alike.all() or (none_better & ~self._alike).any()):
            raise InvalidParameter(_NO_FIFTH)

    @property
    def width(self) -> int:
        """The most units in one action."""
        return 1 if self.max_units is None else self.max_units

    def level_values(self) -> tuple[float, ...]:
        """The levels, or a single 1 where there are none."""
        return (1.0,) if self.levels is None else self.levels

    @property
    def law(self) -> Bernoulli | Certain:
        """The distribution of a reward around its mean."""
        return Bernoulli() if self.noise == "bernoulli" else Certain()

    def means(self, points: Floats, levels: Floats) -> Floats:
        """Compute the mean rewards of these points at these levels. The function gets copies, which it may change."""
        arguments = [points.copy()] if self.levels is None else [points.copy(), levels.copy()]
        values: Any = self.function(*arguments)
        try:
            array = np.asarray(values)
            if array.dtype.kind not in "fiubO":  # texts, dates, complex numbers
                raise TypeError
            means: Floats = array.astype(np.float64)
            got = f"an array of shape {means.shape}"
        except (TypeError, ValueError):
            means, got = np.empty(0), f"no numbers ({type(values).__name__})"
        if means.shape != (len(points),):
            raise InvalidParameter(
                f"the function must return one number per point, got {got} for {len(points)} points. "
                "Its argument is an array of shape (n, d)"
            )
        bad = np.flatnonzero(~((means >= 0.0) & (means <= 1.0)))
        if len(bad):
            where = points[bad[0]].tolist()
            raise InvalidParameter(f"mean rewards must lie in [0, 1], got {means[bad[0]]} at {where}")
        return means

    def draw_log(self, key: np.uint64, rows: int) -> tuple[Floats, Ints, Floats]:
        """Draw points, the numbers of their levels, and rewards. A shorter log is the beginning of a longer one."""
        numbers = np.arange(rows)
        values = np.array(self.level_values())
        points, levels = self.draw_places(key, numbers)
        means = self.means(points, values[levels])
        if self.bad_share is not None:
            on_bad_side = log_draws(key, LOG_SIDE, 0, numbers, 1)[:, 0] < self.bad_share
            wrong = np.flatnonzero(((means <= self._bad[levels]) != on_bad_side) & ~self._alike[levels])
            attempt = 0
            while len(wrong):
                attempt += 1
                if attempt > MAX_ATTEMPTS:
                    raise InvalidParameter(_NO_FIFTH)
                points[wrong] = self._scaled(log_draws(key, LOG_UNIT, 64 * attempt, wrong, self.dim))
                means[wrong] = self.means(points[wrong], values[levels[wrong]])
                wrong = wrong[(means[wrong] <= self._bad[levels[wrong]]) != on_bad_side[wrong]]
        if self.noise == "none":
            return points, levels, means
        return points, levels, (log_draws(key, LOG_REWARD, 0, numbers, 1)[:, 0] < means).astype(np.float64)

    def draw_places(self, key: np.uint64, numbers: Ints) -> tuple[Floats, Ints]:
        """Draw the points of these rows of a log and the numbers of their levels, both uniformly."""
        count = len(self.level_values())
        levels = np.minimum((log_draws(key, LOG_LEVEL, 0, numbers, 1)[:, 0] * count).astype(np.int64), count - 1)
        return self._scaled(log_draws(key, LOG_UNIT, 0, numbers, self.dim)), levels

    def draw_history(self, size: int, seed: int = 0, replication: int = 0) -> History:
        """Draw the log that `simulate(seed=seed)` uses in one replication, to look at it or to use it elsewhere.

        Parameters
        ----------
        size
            The number of rows.
        seed
            The seed of the simulation.
        replication
            The number of the replication, counted from 0.

        >>> Quadratic().draw_history(5, seed=1)
        <History of 5 rows at points of dimension 2, at 2 levels>
        """
        key = world_keys(seed, np.array([checked_count("replication", replication, least=0)]))[0]
        return self.history_of(key, checked_count("size", size, least=0))

    def history_of(self, key: np.uint64, rows: int) -> History:
        """Draw the log of the replication with this key."""
        points, levels, rewards = self.draw_log(key, rows)
        values = np.array(self.level_values())[levels]
        return History(points, rewards, levels=None if self.levels is None else values)

    def _scaled(self, draws: Floats) -> Floats:
        points: Floats = np.minimum(self.lattice.low + self.lattice.span * draws, self.lattice.high)
        return points

    def _grid(self) -> Floats:
        """The centres of the boxes of the grid."""
        axes = np.meshgrid(*[(np.arange(self.finest) + 0.5) / self.finest] * self.dim, indexing="ij")
        return self._scaled(np.stack([axis.ravel() for axis in axes], axis=1))

    def _optimum(self) -> float:
        if self.levels is None or self.budget is None or self.max_units is None:
            return float(self._means.max())
        best = best_choice(self._means, self.levels, self.budget, self.max_units, "for the optimum to be found")
        return float(sum(self._means[box, level] for box, level in best))

    def __repr__(self) -> str:
        levels = "" if self.levels is None else f", levels {', '.join(f'{level:g}' for level in self.levels)}"
        return f"<{type(self).__name__} in dimension {self.dim}{levels}, noise {self.noise}>"


class Metric(PointEnvironment):
    """Simulate any mean reward that you write as a function of points.

    Parameters
    ----------
    function
        A function that takes an array of points of shape (n, d), and with `levels` a second array of their levels. It
        returns n mean rewards in [0, 1].
    dim
        The number of coordinates.
    box
        The space, as one pair (low, high) for each coordinate, by default the unit cube.
    levels, budget, max_units
        The levels of effort, the effort there is in one round, and the most points in one round. Give all or none.
    noise
        `"bernoulli"` for rewards of 0 and 1, or `"none"` for rewards that equal the mean.
    bad_share
        The share of the log that lies where the mean is in its lowest fifth. By default points are uniform.
    finest
        The number of boxes along each axis of the grid on which the best action is looked for.

    >>> env = Metric(lambda points: 1 - abs(points[:, 0] - 0.3), dim=1)
    >>> round(env.optimum, 3)
    1.0
    """

    @checked
    def __init__(
        self,
        function: Callable[..., Any],
        dim: int = 1,
        box: Any = None,
        levels: Sequence[float] | None = None,
        budget: float | None = None,
        max_units: int | None = None,
        noise: Noise = "bernoulli",
        bad_share: float | None = None,
        finest: int | None = None,
    ) -> None:
        if not callable(function):
            raise InvalidParameter(f"function must be a function of an array of points, got {function!r}")
        super().__init__(function, dim, box, levels, budget, max_units, noise, bad_share, finest)


class _Allocations(PointEnvironment):
    """An environment in which a budget of effort is split over points in the unit cube."""

    max_dims = 22  # a grid of 2 boxes along more axes would have more than MAX_BOXES

    @checked
    def __init__(
        self,
        levels: Sequence[float] = (0.5, 1.0),
        budget: float = 2.0,
        max_units: int = 5,
        dim: Count = 2,
        noise: Noise = "bernoulli",
        bad_share: float | None = None,
        finest: int = 32,
    ) -> None:
        if max(checked_levels(levels)) > 1.0:
            raise InvalidParameter(f"levels must be at most 1 for {type(self).__name__}, got {levels!r}")
        if dim > self.max_dims:
            raise InvalidParameter(f"dim must be at most {self.max_dims} for {type(self).__name__}, got {dim}")
        super().__init__(self.surface, dim, None, levels, budget, max_units, noise, bad_share, finest)

    @staticmethod
    def surface(points: Floats, levels: Floats) -> Floats:
        """Compute the mean rewards."""
        raise NotImplementedError


class PiecewiseLinear(_Allocations):
    """Simulate the mean reward β·(p₁ + … + p_d)/d at effort β. The best point is a corner.

    Parameters
    ----------
    levels
        The levels of effort, at most 1.
    budget
        The effort there is in one round.
    max_units
        The most points in one round.
    dim
        The number of coordinates.
    noise
        `"bernoulli"` for rewards of 0 and 1, or `"none"` for rewards that equal the mean.
    bad_share
        The share of the log that lies where the mean is in its lowest fifth. By default points are uniform.
    finest
        The number of boxes along each axis of the grid on which the best action is looked for.

    >>> PiecewiseLinear()
    <PiecewiseLinear in dimension 2, levels 0.5, 1, noise bernoulli>
    """

    @staticmethod
    def surface(points: Floats, levels: Floats) -> Floats:
        """Compute β times the mean of the coordinates."""
        means: Floats = levels * points.mean(axis=1)
        return means


class Quadratic(_Allocations):
    """Simulate the mean reward β·(1 − (p₁ − ½)² − … − (p_d − ½)²) at effort β. The best point is the middle.

    Parameters
    ----------
    levels
        The levels of effort, at most 1.
    budget
        The effort there is in one round.
    max_units
        The most points in one round.
    dim
        The number of coordinates, at most 4.
    noise
        `"bernoulli"` for rewards of 0 and 1, or `"none"` for rewards that equal the mean.
    bad_share
        The share of the log that lies where the mean is in its lowest fifth. By default points are uniform.
    finest
        The number of boxes along each axis of the grid on which the best action is looked for.

    >>> round(Quadratic(noise="none").optimum, 2)
    2.0
    """

    max_dims = 4  # in five dimensions the mean rewards of the corners would be negative

    @staticmethod
    def surface(points: Floats, levels: Floats) -> Floats:
        """Compute β times (1 minus the squared distance from the middle)."""
        means: Floats = levels * (1.0 - ((points - 0.5) ** 2).sum(axis=1))
        return means


def _check_takes(function: Callable[..., Any], arguments: list[Floats]) -> None:
    """Refuse a function whose signature does not take these arguments."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some built-in functions do not say
        return
    try:
        signature.bind(*arguments)
    except TypeError as error:
        what = (
            "an array of points" if len(arguments) == 1 else "an array of points and, with levels, one of their levels"
        )
        raise InvalidParameter(f"the function must take {what}, got one that does not: {error}") from None


@Loop
def fill_draws(key: Words, purpose: int, first: int, numbers: Ints, out: Floats) -> int:
    """Write uniform draws, with one row for each number and one column for each unit from `first` on."""
    for row in range(len(numbers)):
        for column in range(out.shape[1]):
            out[row, column] = uniform(key[0], purpose, first + column, numbers[row])
    return len(numbers)


def log_draws(key: np.uint64, purpose: int, first: int, numbers: Ints, columns: int) -> Floats:
    """Make `columns` uniform draws for each of these rows of a log."""
    out = np.empty((len(numbers), columns))
    fill_draws(np.array([key], np.uint64), purpose, first, np.ascontiguousarray(numbers, np.int64), out)
    return out
