"""Whether an arm looks good because of where it was shown: means by arm, and means adjusted for the context."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from artreplay.compiling import Floats, Ints
from artreplay.history import Label
from artreplay.history.context_values import ContextColumn

MAX_VALUES = 20  # of a column that are looked at one by one; the others are one more
FEW_NUMBERS = 10  # different numbers of a column up to which each is a value; more are cut into quarters
LEAST_ROWS = 20  # of an arm, from which it can lead
ERROR_CHANCE = 0.05
FAR = 3.1  # normal deviations beyond which chance does not explain that something depends on a column
MAX_ARMS = 300  # which are adjusted, those with the most rows


class Strata(NamedTuple):
    """A column of the context as a few values: the number of the value in each row, and the names of the values.

    Numbers are in order, categories as they first appear.
    """

    column: str
    codes: Ints
    names: list[str]
    is_ordered: bool = False

    @property
    def counts(self) -> Ints:
        """How many rows each value has."""
        return np.bincount(self.codes, minlength=len(self.names)).astype(np.int64)


def strata_of(column: str, values: ContextColumn) -> Strata:
    """Make a few values of a column: those it has, its most frequent ones, or quarters of its numbers.

    >>> strata_of("age", ContextColumn(np.arange(40.0), np.empty(0, np.int64), [])).names
    ['below 9.75', '9.75 to 19.5', '19.5 to 29.25', 'from 29.25']
    """
    if values.numbers is not None:
        there = values.numbers[~np.isnan(values.numbers)]
        if len(np.unique(there)) > FEW_NUMBERS:
            return _quarters(column, values.numbers, there)
        cuts = np.unique(there)
        codes = np.where(np.isnan(values.numbers), len(cuts), np.searchsorted(cuts, values.numbers))
        missing = ["missing"] if len(there) < len(values.numbers) else []
        return Strata(column, codes.astype(np.int64), [*(f"{cut:g}" for cut in cuts.tolist()), *missing], True)
    counts = np.bincount(values.codes, minlength=len(values.values))
    frequent = np.sort(np.argsort(-counts, kind="stable")[:MAX_VALUES])
    place = np.full(len(counts), len(frequent), np.int64)
    place[frequent] = np.arange(len(frequent))
    names = ["missing" if values.values[at] is None else str(values.values[at]) for at in frequent.tolist()]
    return Strata(column, place[values.codes], names if len(frequent) == len(counts) else [*names, "other"])


def _quarters(column: str, numbers: Floats, there: Floats) -> Strata:
    cuts = np.unique(np.quantile(there, [0.25, 0.5, 0.75]))
    codes = np.searchsorted(cuts, numbers, side="right")
    names = [f"below {cuts[0]:g}", *(f"{a:g} to {b:g}" for a, b in itertools.pairwise(cuts.tolist()))]
    names.append(f"from {cuts[-1]:g}")
    if len(there) < len(numbers):
        codes = np.where(np.isnan(numbers), len(names), codes)
        names.append("missing")
    return Strata(column, codes.astype(np.int64), names, True)


@dataclass(frozen=True)
class AdjustedArm:
    """An arm with its plain mean, and the mean it would have if it had been shown as all arms together were."""

    arm: Label
    rows: int
    mean: float
    adjusted: float


@dataclass(frozen=True)
class Confounding:
    """What moves both the choice of an arm and its reward, and what that does to the ranking of the arms."""

    columns: list[str]  # of the context, on which both depend
    arms: list[AdjustedArm]  # the highest adjusted mean first
    leader: Label  # by plain means
    best: Label  # by adjusted means
    is_certain: bool  # that the leader by plain means is not the best
    column: str | None  # that most flatters the leader, and the value at which it was shown
    value: str | None
    cannot_adjust: list[str]  # columns whose values never share an arm: nothing tells arm and column apart

    @property
    def disagrees(self) -> bool:
        """Whether the two rankings have different leaders."""
        return self.best != self.leader


def confounding(
    labels: Sequence[Label], codes: Ints, rewards: Floats, strata: Sequence[Strata], leader: Label
) -> Confounding:
    """Compare the ranking of arms by plain means with the one adjusted for columns of the context.

    Parameters
    ----------
    labels, codes, rewards
        The arms, the number of the arm in each row, and its reward.
    strata
        The columns, each as a few values.
    leader
        The arm that leads by plain means.
    """
    counts = np.bincount(codes, minlength=len(labels))
    frequent = np.sort(np.argsort(-counts, kind="stable")[:MAX_ARMS])
    if len(frequent) < len(labels):
        number = np.full(len(labels), -1)
        number[frequent] = np.arange(len(frequent))
        rows = np.flatnonzero(number[codes] >= 0)
        labels, codes, rewards = [labels[at] for at in frequent.tolist()], number[codes[rows]], rewards[rows]
        strata = [Strata(each.column, each.codes[rows], each.names) for each in strata]
        counts = counts[frequent]
    blocks = Strata("", codes, [str(label) for label in labels])
    means = np.bincount(codes, rewards, minlength=len(labels)) / np.maximum(counts, 1)
    arms_alone = _AdditiveFit([blocks], rewards)
    moves_both, cannot_adjust = [], []
    for each in strata:
        if not _depend(codes, each):
            continue
        alone = _AdditiveFit([blocks, each], rewards)
        if not alone.is_connected:
            cannot_adjust.append(each.column)
        if _is_better(arms_alone, alone):
            moves_both.append(each)
    can_lead = counts >= LEAST_ROWS
    if leader not in labels or not can_lead.any():
        can_lead = counts > 0
    column, value, adjusted = None, None, means
    leading = labels.index(leader) if leader in labels else int(np.argmax(np.where(can_lead, means, -math.inf)))
    best, is_certain = leading, False
    if moves_both:
        additive, in_cells = _AdditiveFit([blocks, *moves_both], rewards), _CellMeans(blocks, moves_both, rewards)
        column, value = _flattery(codes == leading, additive.effects, moves_both)
        # That columns add the same to all arms is assumed until the rewards say otherwise, because it needs fewer rows.
        everywhere = in_cells.counts[can_lead].min() >= LEAST_ROWS
        fit = in_cells if everywhere and _is_better(additive, in_cells) else additive
        adjusted = np.clip(fit.adjusted(), rewards.min(), rewards.max())
        is_rival = can_lead & (means <= means[leading])  # others lead by their means already, from fewer rows
        is_rival[leading] = False
        others = np.flatnonzero(is_rival).tolist()
        best = max(others, key=lambda arm: adjusted[arm], default=leading)
        best = leading if adjusted[leading] >= adjusted[best] else best
        limit = NormalDist().inv_cdf(1.0 - ERROR_CHANCE / (2.0 * max(len(others), 1)))
        is_certain = any(adjusted[arm] - adjusted[leading] > limit * fit.error(arm, leading) for arm in others)
    arms = [
        AdjustedArm(label, int(counts[at]), float(means[at]), float(adjusted[at])) for at, label in enumerate(labels)
    ]
    arms.sort(key=lambda each: -each.adjusted)
    names = [each.column for each in moves_both]
    return Confounding(names, arms, labels[leading], labels[best], is_certain, column, value, cannot_adjust)


def _flattery(is_leader: Floats, effects_of: Sequence[Floats], strata: Sequence[Strata]) -> tuple[str, str]:
    """Return the column and the value that add most to what the leader earned, beyond what they add to all rows."""
    gains = []
    for each, effects in zip(strata, effects_of[1:], strict=True):
        share = np.bincount(each.codes[is_leader], minlength=len(each.names)) / max(int(is_leader.sum()), 1)
        gain = (share - each.counts / len(each.codes)) * (effects - effects @ each.counts / len(each.codes))
        gains.append((float(gain.sum()), each, gain))
    _, each, gain = max(gains, key=lambda one: one[0])
    rows_there = np.bincount(each.codes[is_leader], minlength=len(each.names)) * (gain > 0)
    return each.column, each.names[int(np.argmax(rows_there))]


class _AdditiveFit:
    """Least squares in which each arm, and each value of each column, adds something of its own to the reward."""

    def __init__(self, blocks: Sequence[Strata], rewards: Floats) -> None:
        self._blocks = blocks
        self._sizes = [len(block.names) for block in blocks]
        gram = self._gram(np.ones(len(rewards)))
        values, vectors = np.linalg.eigh(gram)
        solid = values > 1e-9 * max(float(values[-1]), 1.0)
        self.rank = int(solid.sum())
        solid_vectors = vectors[:, solid]
        self._inverse = (solid_vectors / values[solid]) @ solid_vectors.T
        totals = np.concatenate([np.bincount(b.codes, rewards, minlength=len(b.names)) for b in blocks])
        weights = self._inverse @ totals
        self.effects = np.split(weights, np.cumsum(self._sizes)[:-1])
        residual = rewards - np.sum([e[b.codes] for e, b in zip(self.effects, blocks, strict=True)], axis=0)
        self.rows, self.left_over = len(rewards), float((residual * residual).sum())
        self._residual = residual
        self._covariance: Floats | None = None

    @property
    def is_connected(self) -> bool:
        """Whether arms and values can be told apart: each pair of arms was shown in contexts that are linked."""
        there = sum(int((block.counts > 0).sum()) for block in self._blocks)
        return self.rank == there - len(self._blocks) + 1

    def adjusted(self) -> Floats:
        """Return the mean of each arm if it had been shown in all rows."""
        base = sum(
            float(effects @ block.counts) / self.rows
            for effects, block in zip(self.effects[1:], self._blocks[1:], strict=True)
        )
        return np.asarray(self.effects[0] + base)

    def error(self, arm: int, other: int) -> float:
        """Return the standard error of the difference between two arms, for rewards of any variance."""
        if self._covariance is None:
            self._covariance = self._inverse @ self._gram(self._residual**2) @ self._inverse
        c = self._covariance
        return math.sqrt(max(float(c[arm, arm] + c[other, other] - 2.0 * c[arm, other]), 0.0))

    def _gram(self, weights: Floats) -> Floats:
        starts = np.concatenate([[0], np.cumsum(self._sizes)])
        gram = np.zeros((int(starts[-1]), int(starts[-1])))
        for i, one in enumerate(self._blocks):
            for j, two in enumerate(self._blocks[: i + 1]):
                pairs = np.bincount(
                    one.codes * len(two.names) + two.codes, weights, minlength=len(one.names) * len(two.names)
                ).reshape(len(one.names), len(two.names))
                gram[starts[i] : starts[i + 1], starts[j] : starts[j + 1]] = pairs
                gram[starts[j] : starts[j + 1], starts[i] : starts[i + 1]] = pairs.T
        return gram


class _CellMeans:
    """The mean of each arm at each combination of values, weighted as the combinations occur in the whole log.

    It is right whatever arms and columns do to each other, for example if they multiply, as click rates do. But each
    arm must have been shown at each combination.
    """

    def __init__(self, arms: Strata, columns: Sequence[Strata], rewards: Floats) -> None:
        cells = np.zeros(len(rewards), np.int64)
        for column in columns:
            cells = np.unique(cells * len(column.names) + column.codes, return_inverse=True)[1]
        shape = (len(arms.names), int(cells.max()) + 1)
        places = arms.codes * shape[1] + cells
        self.counts = np.bincount(places, minlength=shape[0] * shape[1]).reshape(shape)
        sums = np.bincount(places, rewards, minlength=self.counts.size).reshape(shape)
        self._means = sums / np.maximum(self.counts, 1)
        self._shares = self.counts.sum(axis=0) / len(rewards)
        residual = rewards - self._means.ravel()[places]
        self.rank, self.rows = int((self.counts > 0).sum()), len(rewards)
        self.left_over = float((residual * residual).sum())
        freedom = np.maximum(self.counts.sum(axis=0) - (self.counts > 0).sum(axis=0), 1)
        spread = np.bincount(cells, residual * residual, minlength=shape[1]) / freedom  # of all arms at a combination
        self._variances = (self._shares**2 * spread / np.maximum(self.counts, 1)).sum(axis=1)

    def adjusted(self) -> Floats:
        """Return the mean of each arm if it had been shown in all rows."""
        return np.asarray(self._means @ self._shares)

    def error(self, arm: int, other: int) -> float:
        """Return the standard error of the difference between two arms."""
        return math.sqrt(float(self._variances[arm] + self._variances[other]))


def _depend(codes: Ints, strata: Strata) -> bool:
    """Return whether the shares of the arms depend on a column, by Pearson's test."""
    n_arms, n_values = int(codes.max()) + 1, len(strata.names)
    table = np.bincount(codes * n_values + strata.codes, minlength=n_arms * n_values).reshape(n_arms, n_values)
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    freedom = (table.shape[0] - 1) * (table.shape[1] - 1)
    return _is_far(float(((table - expected) ** 2 / expected).sum()), freedom)


def _is_better(fit: _AdditiveFit, more: _AdditiveFit | _CellMeans) -> bool:
    """Return whether a finer fit explains more of the reward than chance lets one expect."""
    freedom, left = more.rank - fit.rank, more.rows - more.rank
    if freedom <= 0 or left <= 0:
        return False
    noise = max(more.left_over / left, 1e-12)
    return _is_far((fit.left_over - more.left_over) / noise, freedom)


def _is_far(statistic: float, freedom: int) -> bool:
    """Return whether a sum of squared normal draws is larger than chance explains, by Wilson and Hilferty."""
    if freedom <= 0:
        return False
    spread = 2.0 / (9.0 * freedom)
    return bool((max(statistic, 0.0) / freedom) ** (1.0 / 3.0) - (1.0 - spread) > FAR * math.sqrt(spread))
