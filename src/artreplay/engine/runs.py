"""`Runs`: what a simulation returns."""

from __future__ import annotations

import dataclasses
import itertools
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from artreplay.cells import Lattice
from artreplay.cells.boxes import box_of
from artreplay.compiling import Floats, Ints
from artreplay.engine.runs_file import PER_REPLICATION, read_runs, write_runs
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
    rewards
        The reward of each unit of `actions`, in the same shape, padded with nan. None with `keep="final"`.
    first_replication
        The number of the replication in the first row.
    stopped, recommended, simple_regret
            With `stop=`, of each replication: the number of rounds that were played before the rule stopped it, the
            number of the arm that it recommended, and how much less than the best arm that arm earns on average. They
            are nan, −1 and nan where the rule did not stop. After it stopped no action is played, which is −1, and its
            reward is nan.
    settings
            What was simulated: the base, the environment, the start, the log and the seed, and the versions of
            artreplay, numpy and numba. Things are described by text, which differs if they were made in another way.

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
    rewards: Floats | None = None
    stopped: Floats | None = None
    recommended: Ints | None = None
    simple_regret: Floats | None = None
    first_replication: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def replications(self) -> int:
        """The number of replications."""
        return len(self.regret)

    @property
    def last_replication(self) -> int:
        """The number of the replication in the last row."""
        return self.first_replication + self.replications - 1

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

        If several units are played, `action` and `reward` hold lists, and so does `level`, if units have levels.

        >>> import artreplay as ar
        >>> runs = ar.simulate(ar.MonUCB(2, 3), ar.environments.KArmed(2), horizon=3, replications=2)
        >>> runs.to_frame().column_names
        ['replication', 'round', 'regret', 'used', 'action', 'reward']
        """
        import pyarrow as pa

        rounds = self.rounds_kept
        columns: dict[str, Any] = {
            "replication": np.repeat(np.arange(self.replications) + self.first_replication, len(rounds)),
            "round": np.tile(rounds, self.replications),
            "regret": self.regret.ravel(),
            "used": self.used.ravel(),
        }
        for name, values in (("action", self.actions), ("level", self.levels), ("reward", self.rewards)):
            if values is not None:
                columns[name] = values.ravel() if values.ndim == 2 else _lists(values)
        return pa.table(columns)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one Parquet file, with a row for each replication.

        Parameters
        ----------
        path
            The file.

        >>> import artreplay as ar, tempfile, pathlib
        >>> runs = ar.simulate(ar.MonUCB(2, 3), ar.environments.KArmed(2), horizon=3, replications=2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     runs.save(pathlib.Path(folder) / "runs.parquet")
        ...     again = ar.Runs.load(pathlib.Path(folder) / "runs.parquet")
        >>> bool((again.regret == runs.regret).all()), again.settings == runs.settings
        (True, True)
        """
        fields = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        write_runs(Path(path), fields)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Runs:
        """Read what `save` wrote. Nothing in the file is executed.

        Parameters
        ----------
        path
            The file.
        """
        return cls(**read_runs(Path(path), {each.name for each in dataclasses.fields(cls)}))

    @classmethod
    def join(cls, *parts: Runs) -> Runs:
        """Put runs of adjacent replications together, such as those of 60 replications and `first_replication=60`.

        The result is the same as that of one simulation, except for `seconds`, which are added up. Runs with different
        settings are refused.

        Parameters
        ----------
        parts
            The runs, in any order.

        >>> import artreplay as ar
        >>> def play(first, count):
        ...     base, env = ar.UCB1(2), ar.environments.KArmed(2)
        ...     return ar.simulate(base, env, horizon=3, replications=count, first_replication=first)
        >>> whole, joined = play(0, 5), ar.Runs.join(play(0, 2), play(2, 3))
        >>> bool((whole.regret == joined.regret).all())
        True
        """
        if len(parts) == 0:
            raise InvalidParameter("join needs at least one Runs, got none")
        for runs in parts:
            if not isinstance(runs, Runs):
                raise InvalidParameter(
                    f"join needs runs one by one, as in ar.Runs.join(first, second), got {type(runs).__name__}"
                )
        ordered = sorted(parts, key=lambda runs: runs.first_replication)
        first = ordered[0]
        for before, runs in itertools.pairwise(ordered):
            _check_joins(first, runs)
            if runs.first_replication != before.last_replication + 1:
                ends = f"{before.first_replication}..{before.last_replication}"
                raise InvalidParameter(
                    "the replications of joined runs must be adjacent, "
                    f"got {ends} and {runs.first_replication}..{runs.last_replication}"
                )
        columns = {name: [getattr(runs, name) for runs in ordered] for name in PER_REPLICATION}
        joined: dict[str, Any] = {
            name: None if values[0] is None else np.concatenate(values) for name, values in columns.items()
        }
        return dataclasses.replace(first, **joined, seconds=sum(runs.seconds for runs in ordered))


def _check_joins(one: Runs, other: Runs) -> None:
    """Refuse runs of different settings."""
    for name in sorted(one.settings.keys() | other.settings.keys()):
        mine, theirs = one.settings.get(name), other.settings.get(name)
        if mine != theirs:
            raise InvalidParameter(f"joined runs must have the same {name}, got {mine} and {theirs}")
    if one.horizon != other.horizon:
        raise InvalidParameter(f"joined runs must have the same horizon, got {one.horizon} and {other.horizon}")
    if not np.array_equal(one.rounds_kept, other.rounds_kept):
        got = " and ".join(f"{len(runs.rounds_kept):,} of {runs.horizon:,}" for runs in (one, other))
        raise InvalidParameter(f"joined runs must have kept the same rounds, got {got}")
    shapes = [[np.shape(getattr(runs, name))[1:] for name in PER_REPLICATION] for runs in (one, other)]
    if shapes[0] != shapes[1]:
        raise InvalidParameter("joined runs must keep the same arrays")


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
