"""What a log can decide: which arms it tells apart, and how much of it replay will read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Protocol

import numpy as np

from artreplay.algorithms import ArmAlgorithm
from artreplay.algorithms.tally import Tally
from artreplay.algorithms.thompson import fitted_prior
from artreplay.compiling import Flags, Floats, Ints
from artreplay.history import Label, Totals

ERROR_CHANCE = 0.05  # the chance of calling equal arms different, for all arms together
BISECTIONS = 60
INDEX_SIZES = 48  # numbers of samples at which an index is computed
TOP_INDEX = 1.0 - 1e-9  # an index above it is at the top of the range
MAX_INDICES = 1000  # above this, only every second, or third, arm is computed and stands for the others


class Bound(Protocol):
    """How wide the interval around the mean of an arm is."""

    def width(self, tally: Tally, arm: int) -> float: ...


@dataclass(frozen=True)
class Standing:
    """An arm of a log: its samples, their mean, and bounds between which the true mean very probably lies."""

    arm: Label
    samples: int
    mean: float
    low: float
    high: float
    is_worse: bool  # whether it is worse than the leader beyond chance


@dataclass(frozen=True)
class Outlook:
    """What a log can decide for an algorithm. Means and differences are in units of the reward."""

    standings: list[Standing]  # the highest mean first
    leader: Label | None  # the arm with the highest lower bound, the first among equals
    undecided: int  # arms that may be as good as the leader
    rows_for_half: float  # rows after which such a log could decide half of the undecided arms; nan if there are none
    successes: float  # the sum of all rewards, in units of the highest
    spread: float  # the standard deviation of the true means, without what chance adds
    rounds: int
    read_share: float  # the share of the log that replay will have read after these rounds; nan if unknown
    bonus: float  # the bonus of an arm with an average number of samples at the end; nan without a bonus
    differences: float  # the highest mean less the lowest, without what chance adds

    @property
    def bonus_is_too_wide(self) -> bool:
        """Whether the algorithm will play nearly at random, because its bonus dwarfs the differences between arms."""
        return self.bonus > self.differences


def outlook(totals: Totals, base: ArmAlgorithm, rounds: int, drift: Mapping[Label, float] | None = None) -> Outlook:
    """Say what a log with these totals can decide for an algorithm over its arms, with `rounds` rounds to come.

    `drift` says for each arm how far the mean of its rows may lie from today's, in units of the reward.
    """
    whole = Totals.of(totals)
    base = base.duplicate()
    base.count_log(len(whole))
    counts, sums = whole.counts, base.scaled_sums(whole.sums, whole.counts)
    means = sums / np.maximum(counts, 1)
    unit = base.reward_range[1] - base.reward_range[0] if base.scales else 1.0
    allowed = np.array([(drift or {}).get(label, 0.0) / unit for label in whole.labels], np.float64)
    low, high = _bounds(means, counts)
    low, high = np.maximum(low - allowed, 0.0), np.minimum(high + allowed, 1.0)
    best = int(np.argmax(low + 1e-12 * means)) if counts.any() else -1
    worse = high < (low[best] if best >= 0 else -1.0)
    a, b = fitted_prior(counts, sums)
    shrunk = (sums + a) / (counts + a + b)
    undecided = ~worse & (np.arange(len(counts)) != best)
    columns = (base.unscaled(column).tolist() for column in (means, low, high))
    standings = list(map(Standing, whole.labels, counts.tolist(), *columns, worse.tolist()))
    bound = getattr(getattr(base.component, "index", None), "bound", None) if base.takes_totals else None
    average = max(int((counts.sum() + rounds) / max(len(counts), 1)), 1)
    middle = float(sums.sum() / max(counts.sum(), 1))
    order = np.argsort([base.number(label) for label in whole.labels])  # ties go to the lowest number
    return Outlook(
        standings=sorted(standings, key=lambda one: (one.samples == 0, -one.mean)),
        leader=whole.labels[best] if best >= 0 else None,
        undecided=int(undecided.sum()),
        rows_for_half=_rows_for_half(shrunk, counts, best, undecided, allowed),
        successes=float(sums.sum()),
        spread=unit * math.sqrt(a * b / ((a + b) ** 2 * (a + b + 1.0))),
        rounds=rounds,
        read_share=math.nan
        if bound is None
        else _read_share(bound, counts[order], sums[order], shrunk[order], allowed[order], rounds),
        bonus=math.nan if bound is None else unit * (_upper(bound, middle, average) - middle),
        differences=unit * float(np.ptp(shrunk[counts > 0])) if counts.any() else 0.0,
    )


def _bounds(means: Floats, counts: Ints) -> tuple[Floats, Floats]:
    """Return bounds on the true means, by Wilson's formula. All hold together, except with a small probability."""
    n = np.maximum(counts, 1)
    z2 = _squared_quantile(len(counts))
    centre = (means + z2 / (2 * n)) / (1 + z2 / n)
    half = np.sqrt(z2 * means * (1 - means) / n + z2 * z2 / (4 * n * n)) / (1 + z2 / n)
    return np.where(counts > 0, centre - half, 0.0), np.where(counts > 0, centre + half, 1.0)


def _squared_quantile(arms: int) -> float:
    """Return the square of how many standard errors a mean may be off, if all arms share the error probability."""
    return NormalDist().inv_cdf(1.0 - ERROR_CHANCE / (2.0 * max(arms, 1))) ** 2


def _rows_for_half(means: Floats, counts: Ints, best: int, undecided: Flags, allowed: Floats) -> float:
    """Return how many rows, shared among arms as in this log, could decide half of the undecided arms.

    No log can decide between means that lie closer together than the allowance for drift.
    """
    if not undecided.any() or best < 0:
        return math.nan
    z2 = _squared_quantile(len(counts))
    shares = np.maximum(counts, 1) / np.maximum(counts, 1).sum()
    noise = np.sqrt(means * (1 - means) / shares)  # the standard error of a mean if the log had one row
    gaps = np.maximum(means[best] - means[undecided] - allowed[best] - allowed[undecided], 1e-9)
    return float(np.median(z2 * (noise[best] + noise[undecided]) ** 2 / gaps**2))


# -- what replay will read ------------------------------------------------------------------------------------------


def _upper(bound: Bound, mean: float, count: int) -> float:
    """Return the index of an arm with `count` samples of this mean."""
    return min(mean + float(bound.width(Tally(np.array([count]), np.array([mean * count])), 0)), 1.0)


def _read_share(bound: Bound, counts: Ints, sums: Floats, shrunk: Floats, allowed: Floats, rounds: int) -> float:
    """Return the share of a log that replay will have read after `rounds` rounds.

    Replay and play push the indices of all arms down to one level. Replay reads an arm until its index reaches the
    level. If the rows of the arm run out first, it is played until then, and the forecast assumes rewards as in the
    log. The right level is the one at which all arms together are played in as many rounds as there are.
    """
    stride = -(-len(counts) // MAX_INDICES)
    counts, sums, shrunk, allowed = counts[::stride], sums[::stride], shrunk[::stride], allowed[::stride]
    total, rounds = int(counts.sum()), rounds // stride
    if total == 0:
        return math.nan
    indices = _Indices(bound, counts, sums, shrunk, allowed, total + rounds)
    low, high = 0.0, TOP_INDEX
    for _ in range(BISECTIONS):
        level = 0.5 * (low + high)
        if np.maximum(indices.samples_to(level) - counts, 0.0).sum() > rounds:
            low = level
        else:
            high = level
    needed = indices.samples_to(high)
    if high == TOP_INDEX:  # some index never falls, and the arm with the lowest number wins ties
        played = np.cumsum(np.maximum(needed - counts, 0.0))
        needed = needed[: int(np.searchsorted(played, rounds)) + 1]
    return float(np.minimum(needed, counts[: len(needed)]).sum() / total)


class _Indices:
    """The index of each arm as a function of its number of samples: first those of the log, then online ones.

    With drift it is the lower of two bounds: one from all samples with their mean allowance, one from online samples
    alone.
    """

    def __init__(self, bound: Bound, counts: Ints, sums: Floats, shrunk: Floats, allowed: Floats, most: int) -> None:
        self.sizes = np.unique(np.geomspace(1, most, INDEX_SIZES).astype(np.int64))
        # Online samples, which come after those of the log.
        later = np.maximum(self.sizes[None, :] - counts[:, None], 0)
        logged = (sums / np.maximum(counts, 1))[:, None] * (self.sizes[None, :] - later)
        means = (logged + shrunk[:, None] * later) / self.sizes
        upper = np.array(
            [[_upper(bound, m, n) for m, n in zip(row, self.sizes.tolist(), strict=True)] for row in means.tolist()]
        )
        for arm in np.flatnonzero(allowed).tolist():
            upper[arm] += allowed[arm] * (1.0 - later[arm] / self.sizes)
            played = [_upper(bound, shrunk[arm], n) if n else 1.0 for n in later[arm].tolist()]
            upper[arm] = np.minimum(np.minimum(upper[arm], played), 1.0)
        self.values: Floats = np.minimum.accumulate(upper, axis=1)

    def samples_to(self, level: float) -> Floats:
        """Return how many samples push the index of each arm down to a level, or a huge number if none do."""
        logs = np.log(self.sizes)
        above = (self.values > level).sum(axis=1)  # the position of the first size that is not above
        inside, rows = above.clip(1, len(logs) - 1), np.arange(len(above))
        before, after = self.values[rows, inside - 1], self.values[rows, inside]
        with np.errstate(invalid="ignore", divide="ignore"):
            part = np.where(before > after, (before - level) / (before - after), 1.0).clip(0.0, 1.0)
        samples = np.exp(logs[inside - 1] + part * (logs[inside] - logs[inside - 1]))
        samples = np.where(above == 0, 1.0, samples)
        return np.asarray(np.where(above == len(logs), 2.0 * self.sizes[-1], samples))
