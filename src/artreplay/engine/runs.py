"""`Runs`: what a simulation returns."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from artreplay.cells import Lattice
from artreplay.cells.boxes import box_of
from artreplay.compiling import Floats, Ints
from artreplay.errors import InvalidParameter

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class Runs:
    """Holds the replications of one policy in one environment.

    Parameters
    ----------
    regret
        Cumulative regret of shape (R, T), with a row for each replication and a column for each round in `rounds_kept`.
    used
        Samples shown before a round is played, of the same shape. `used[:, 0]` is before the first online action.
    actions
            The actions, of shape (R, T), or (R, T, N) padded with −1 if several units are played. None with
            `keep="final"`. In a continuous space they are boxes, numbered `1 << (depth · d) | Z-order code`, and
            `points()` returns points.
    levels
        The level of each unit, padded with nan, if units have levels.
    used_by_arm
        Samples shown of each arm, of shape (R, K). None with `keep="final"` and in a continuous space.

    >>> import artreplay as ar
    >>> runs = ar.simulate(ar.UCB1(2), ar.environments.KArmed(2), history=5, horizon=10, replications=3)
    >>> runs.regret.shape, runs.replications
    ((3, 10), 3)
    """

    regret: Floats
    used: Ints
    actions: Ints | None
    horizon: int
    history: int  # samples in each log
    seconds: float = field(repr=False)
    levels: Floats | None = None  # of each unit of the actions, if units have levels
    cells: Ints | None = None  # how many boxes each replication ends with, if cells are boxes
    rounds: Ints | None = None  # the rounds kept, if `keep` was a list
    used_by_arm: Ints | None = None
    lattice: Lattice | None = field(default=None, repr=False)  # of the boxes, if actions are boxes

    @property
    def replications(self) -> int:
        """The number of replications."""
        return len(self.regret)

    @property
    def rounds_kept(self) -> Ints:
        """The round of each column, counted from 0."""
        if self.rounds is not None:
            return self.rounds
        return np.arange(self.horizon) if self.regret.shape[1] == self.horizon else np.array([self.horizon - 1])

    @property
    def unused_share(self) -> Floats:
        """The share of each log that was not shown by the last round that was kept, or nan without a log."""
        if self.history == 0:
            return np.full(self.replications, np.nan)
        return 1.0 - self.used[:, -1] / self.history

    def final_regret(self) -> tuple[float, float]:
        """Compute the mean regret over replications, and its standard error, at the last round that was kept.

        >>> import artreplay as ar
        >>> runs = ar.simulate(ar.MonUCB(2, 3), ar.environments.KArmed(2, means=[0.5, 0.5]), horizon=3, replications=2)
        >>> runs.final_regret()
        (0.0, 0.0)
        """
        return mean_and_error(self.regret[:, -1])

    def points(self) -> Floats:
        """Return the centres of the boxes in `actions`, with one more axis for coordinates. Padding becomes nan.

        A centre is the point that was played, unless the algorithm has `play="uniform"` or is an object of your own.

        >>> import artreplay as ar
        >>> env = ar.environments.Metric(lambda points: points[:, 0], dim=1)
        >>> runs = ar.simulate(ar.GridUCB(1, 4, cells_per_side=2), env, history=0, horizon=2, replications=1)
        >>> runs.points().tolist()
        [[[0.25], [0.25]]]
        """
        if self.lattice is None or self.actions is None:
            has = "its actions are arms" if self.lattice is None else 'keep="final" keeps no actions'
            raise InvalidParameter(f"points() needs a simulation over points that keeps its actions, and {has}")
        numbers, at = np.unique(self.actions, return_inverse=True)
        nowhere = (np.nan,) * len(self.lattice.low)
        centres = [box_of(self.lattice, box, None).centre if box > 0 else nowhere for box in numbers.tolist()]
        corners: Floats = np.array(centres)[at].reshape(*self.actions.shape, len(nowhere))
        return corners

    def to_frame(self) -> pa.Table:
        """Make a pyarrow table with a row per replication and round. `.to_pandas()` turns it into a pandas frame.

        If several units are played, `action` holds lists, and so does `level`, if units have levels.

        >>> import artreplay as ar
        >>> runs = ar.simulate(ar.MonUCB(2, 3), ar.environments.KArmed(2), horizon=3, replications=2)
        >>> runs.to_frame().column_names
        ['replication', 'round', 'regret', 'used', 'action']
        """
        import pyarrow as pa

        rounds = self.rounds_kept
        columns: dict[str, Any] = {
            "replication": np.repeat(np.arange(self.replications), len(rounds)),
            "round": np.tile(rounds, self.replications),
            "regret": self.regret.ravel(),
            "used": self.used.ravel(),
        }
        if self.actions is not None and self.actions.ndim == 2:
            columns["action"] = self.actions.ravel()
        elif self.actions is not None:
            columns["action"] = _lists(self.actions)
        if self.levels is not None:
            columns["level"] = _lists(self.levels)
        return pa.table(columns)


def _lists(values: Floats | Ints) -> pa.Array:
    """Make a column with one list for each round of each replication."""
    import pyarrow as pa

    return pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values.shape[2])


def mean_and_error(values: ArrayLike) -> tuple[float, float]:
    """Return the mean and its standard error, which is nan for a single value."""
    values = np.asarray(values, dtype=np.float64)
    error = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
    return float(values.mean()), error


_NO_ERROR = 1e-9  # standard errors below this are rounding, as of differences that are 0


def rounded(mean: float, error: float, sign: str = "") -> list[str]:
    """Write a mean and its standard error with two digits of the error. An error that is nan is left out.

    Parameters
    ----------
    mean, error
        The two numbers.
    sign
        "+" to write the sign of a positive mean.

    >>> rounded(14.0382, 0.2137), rounded(1234.5, 41.7), rounded(0.5, float("nan"))
    (['14.04', '0.21'], ['1234', '42'], ['0.5'])
    """
    if math.isnan(error) or error < _NO_ERROR:
        exact = f"{round(mean, 9) + 0.0:{sign}.6g}"
        return [exact] if math.isnan(error) else [exact, "0"]
    decimals = max(0, 1 - math.floor(math.log10(error)))
    return [f"{mean:{sign}.{decimals}f}", f"{error:.{decimals}f}"]
