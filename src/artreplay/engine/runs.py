"""What a simulation returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from artreplay.compiling import Floats, Ints


@dataclass(frozen=True, eq=False)
class Runs:
    """Replications of one policy in one environment.

    `regret` (cumulative) and `used` have shape (R, T), or (R, 1) with `keep="final"`, or a column for each round of a
    list of rounds to keep; `rounds_kept` has their numbers. `used[:, t]` counts the samples
    shown before round t is played, so that `used[:, 0]` is before the first online action. `actions` has shape (R, T),
    or (R, T, N) where several units are played, padded with −1; it is None with `keep="final"`. Of a continuous space
    it holds boxes, numbered `1 << (depth · d) | Z-order code`, and `levels` the level of each, padded with nan.
    """

    regret: Floats
    used: Ints
    actions: Ints | None
    horizon: int
    history: int  # samples in each log
    seconds: float = field(repr=False)
    levels: Floats | None = None  # of each unit of the actions, where units have levels
    cells: Ints | None = None  # how many boxes each replication ends with, where cells are boxes
    rounds: Ints | None = None  # those that were kept, where a list of them was asked for

    @property
    def replications(self) -> int:
        """How many there are."""
        return len(self.regret)

    @property
    def rounds_kept(self) -> Ints:
        """The round of each column, counted from 0."""
        if self.rounds is not None:
            return self.rounds
        return np.arange(self.horizon) if self.regret.shape[1] == self.horizon else np.array([self.horizon - 1])

    @property
    def unused_share(self) -> Floats:
        """The share of each log that was never shown; nan without a log."""
        if self.history == 0:
            return np.full(self.replications, np.nan)
        return 1.0 - self.used[:, -1] / self.history

    def final_regret(self) -> tuple[float, float]:
        """The mean over replications of the regret at the horizon, and its standard error."""
        return mean_and_error(self.regret[:, -1])

    def to_frame(self) -> Any:
        """One row per replication and round, as a pyarrow table (`.to_pandas()` makes it a pandas frame).

        Where several units are played, `action` holds lists; where they have levels, so does `level`.

        >>> import artreplay as ar
        >>> runs = ar.simulate(ar.MonUCB(2, 3), ar.environments.KArmed(2), horizon=3, replications=2)
        >>> runs.to_frame().column_names
        ['replication', 'round', 'regret', 'used', 'action']
        """
        import pyarrow as pa

        rounds = self.rounds_kept
        kept = len(rounds)
        columns: dict[str, Any] = {
            "replication": np.repeat(np.arange(self.replications), kept),
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


def _lists(values: Any) -> Any:
    """A column with one list for each round of each replication."""
    import pyarrow as pa

    return pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values.shape[2])


def mean_and_error(values: Any) -> tuple[float, float]:
    """Mean and standard error; the error of one value is nan."""
    values = np.asarray(values, dtype=np.float64)
    error = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
    return float(values.mean()), error
