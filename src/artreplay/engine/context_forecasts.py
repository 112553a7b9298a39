"""Whether contexts forecast rewards: the error of forecasts one row ahead, with and without the context."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from artreplay.algorithms.context_features import context_features
from artreplay.algorithms.logistic_fits import ALL, logistic, logistic_fits
from artreplay.compiling import Floats, Loop, can_compile, current_mode
from artreplay.errors import callers_level
from artreplay.history import Contexts, History, Label
from artreplay.optional_packages import is_installed

BLOCKS = 20  # of consecutive rows of an arm, whose differences say how far the gain may be off
MAX_ROWS = 200_000  # that are forecast: the first ones
MAX_ROWS_INTERPRETED = 2_000  # where there is no compiler
FEW_ROWS = 400  # that are interpreted, because compiling takes longer
FEW_REWARDS = 100  # for each arm, below which nothing can be told
RARE = 0.01  # share of rewards below which contexts hardly ever pay
MEAN, BETTER = 0, 1  # forecasts: the mean, the map that was better so far, and then each map


@dataclass(frozen=True)
class ArmForecasts:
    """How far forecasts of an arm are off: the mean of squared errors, each row forecast before it is learnt from."""

    arm: Label
    rows: int
    rewards: float  # their sum, in units of the reward range
    mean: float  # the error of the mean of the rows before
    linear: float
    cosines: float  # nan where there are none
    gain: float  # how much less the map that was better so far is off than the mean, as a share
    gain_error: float  # of the gain, by blocks


@dataclass(frozen=True)
class Forecasts:
    """What contexts are worth as forecasts, over all arms together and for each."""

    arms: list[ArmForecasts]
    rows: int
    gain: float
    gain_error: float

    @property
    def rewards_per_arm(self) -> float:
        """Rewards of an arm in the middle, or rows without one if those are rarer."""
        return float(np.median([min(arm.rewards, arm.rows - arm.rewards) for arm in self.arms]))

    @property
    def outcome(self) -> str:
        """What follows: "better", "not better" or "cannot tell"."""
        rewards = self.rewards_per_arm
        rate = rewards / max(float(np.median([arm.rows for arm in self.arms])), 1.0)
        if rewards < FEW_REWARDS or rate < RARE or math.isnan(self.gain_error):
            return "cannot tell"
        return "better" if self.gain > 2.0 * self.gain_error else "not better"

    @property
    def sentence(self) -> str:
        """The outcome in a sentence that says what to do."""
        by = f"{100 * self.gain:.1f} % ± {100 * self.gain_error:.1f}"
        if self.outcome == "better":
            return f"Contexts forecast {by} better than the mean: use them."
        if self.outcome == "not better":
            return f"Contexts forecast no better than the mean ({by} better): leave them out."
        return (
            f"{self.rewards_per_arm:,.0f} rewards per arm cannot tell whether contexts forecast better than the mean: "
            "use KLUCB without them until there are more."
        )


def context_forecasts(history: History, reward_range: tuple[float, float] = (0.0, 1.0)) -> Forecasts:
    """Forecast each row of a log with contexts before learning from it, arm by arm, and compare the errors.

    Parameters
    ----------
    history
        A log of arms with contexts, in memory.
    reward_range
        The lowest and the highest reward.
    """
    most = MAX_ROWS if can_compile() else min(MAX_ROWS, MAX_ROWS_INTERPRETED)
    if most < len(history) and not is_installed("numba"):
        warnings.warn(
            f"without numba only the first {most:,} of {len(history):,} rows are forecast. "
            'Run pip install "artreplay[fast]"',
            stacklevel=callers_level(),
        )
    history = history if len(history) <= most else history.rows(np.arange(most))
    contexts = Contexts.from_table(history.contexts)
    encoded = contexts.encode(history.contexts)
    low, high = reward_range
    rewards = (history.rewards - low) / (high - low)
    features = context_features(contexts)
    n_maps = 2 if contexts.cosines else 1
    arms, gains, spreads, total = [], [], [], 0.0
    for code, label in enumerate(history.labels):
        rows = np.flatnonzero(history.codes == code)
        if len(rows) == 0:
            continue
        squares = np.zeros((len(rows), 2 + n_maps))
        fits = logistic_fits(contexts.n_linear, contexts.n_features, 1)
        few = len(history) <= FEW_ROWS and not forecast_rows.is_at_hand(features, fits)
        loop = forecast_rows.interpreted if few and current_mode() != "compiled" else forecast_rows
        loop(features, fits, np.ascontiguousarray(encoded[rows]), rewards[rows], squares)
        sums = squares.sum(axis=0)
        gain, error = _gain(squares[:, MEAN], squares[:, BETTER])
        means = (squares.mean(axis=0)).tolist()
        arms.append(
            ArmForecasts(
                label, len(rows), float(rewards[rows].sum()), means[MEAN], means[2],
                means[3] if n_maps > 1 else math.nan, gain, error,
            )
        )  # fmt: skip
        total += float(sums[MEAN])
        gains.append(gain * float(sums[MEAN]))
        spreads.append(error * float(sums[MEAN]))
    total = max(total, 1e-12)
    return Forecasts(arms, len(history), sum(gains) / total, math.sqrt(sum(e * e for e in spreads)) / total)


def _gain(mean: Floats, better: Floats) -> tuple[float, float]:
    """Return the gain over the mean as a share of its error, and how far it may be off by what it is in each block."""
    total = max(float(mean.sum()), 1e-12)
    gains = [float(part.sum()) for part in _blocks(mean - better)]
    spread = float(np.std(gains, ddof=1)) if len(gains) > 1 else math.nan
    return sum(gains) / total, spread * math.sqrt(len(gains)) / total


def _blocks(values: Floats) -> Iterator[Floats]:
    yield from np.array_split(values, min(BLOCKS, len(values)))


@Loop
def forecast_rows(features: Any, fits: Any, encoded: Any, rewards: Any, squares: Any) -> int:
    """Forecast the rows of one arm by the mean so far and by each map, and then learn from it."""
    total = 0.5
    for row in range(len(rewards)):
        for at in range(encoded.shape[1]):
            features.encoded[at] = encoded[row, at]
        features.expand()
        squares[row, 0] = (rewards[row] - total / (row + 1.0)) ** 2
        best = fits.best(0)
        for map_ in range(fits.n_maps):
            forecast = logistic(fits.logit(0, map_, features.features))
            squares[row, 2 + map_] = (rewards[row] - forecast) ** 2
            if map_ == best:
                squares[row, 1] = squares[row, 2 + map_]
        fits.learn(0, ALL, features.features, rewards[row], False)
        total += rewards[row]
    return len(rewards)
