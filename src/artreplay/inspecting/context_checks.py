"""What the context columns of a log are good for, before anything is learnt from them: segments, cells, trouble."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from artreplay.compiling import Ints
from artreplay.errors import InvalidHistory, callers_level
from artreplay.history import Contexts, History, Label
from artreplay.history.context_values import ContextColumn, context_columns
from artreplay.inspecting.confounding import Confounding, Strata, confounding, strata_of
from artreplay.inspecting.inspection import MAX_LOOKED_AT
from artreplay.inspecting.misleading_logs import LEAST_ROWS
from artreplay.inspecting.weighted_rewards import ERROR_CHANCE, mean_of_counts

THIN = 20  # rows of a segment and an arm, below which hardly anything can be learnt
MAX_ODD = 0.05  # the share of clipped and unknown values above which a column has drifted
REPEATED = 10  # rows for each distinct value, from which a value may give something away
GIVES_AWAY = 0.99  # the share of rows, or of the variance, from which a column holds the arm, or the reward


@dataclass(frozen=True)
class Segment:
    """The rows with one value of a column."""

    column: str
    value: str
    rows: int
    arms: int  # that were played in it
    best: Label  # of those
    is_told_apart: bool  # whether the best is better than every other one that was played, beyond chance


@dataclass(frozen=True)
class CellSizes:
    """How many rows there are for each segment and arm, if some columns make the segments."""

    columns: list[str]
    cells: int
    rows_per_cell: float
    thin: float  # the share of cells with few rows


@dataclass(frozen=True)
class ContextChecks:
    """What is found in the context columns of a log."""

    columns: list[str]
    segments: list[Segment]
    cells: list[CellSizes]  # for each column, then for all of them together
    confounding: Confounding
    warnings: list[str]


def check_contexts(history: History, leader: Label, reward_range: tuple[float, float] = (0.0, 1.0)) -> ContextChecks:
    """Look at the context columns of a log in memory.

    Parameters
    ----------
    history
        A log of arms with contexts.
    leader
        The arm that leads by plain means.
    reward_range
        The lowest and the highest reward.
    """
    columns = context_columns(history.contexts)
    strata = [strata_of(name, column) for name, column in columns.items()]
    cells = [_cell_sizes([each], history) for each in strata]
    if len(strata) > 1:
        cells.append(_cell_sizes(strata, history))
    leaks = list(_leaks(history, columns))
    leaking = {name for name, _ in leaks}
    usable = [each for each in strata if each.column not in leaking]
    ranking = confounding(history.labels, history.codes, history.rewards, usable, leader)
    warnings = [sentence for _, sentence in leaks]
    warnings += [
        f"the values of {name} never share an arm: nothing can tell what it does from what the arm does"
        for name in ranking.cannot_adjust
    ]
    warnings += _drifts(history, columns)
    if len(strata) > 1 and cells[-1].thin > 0.5:
        warnings.append(
            f"crossing {', '.join(columns)} makes {cells[-1].cells:,} segments × arms, and "
            f"{cells[-1].thin:.0%} of them have fewer than {THIN} rows: take one column as segments, or a regression"
        )
    segments = [one for each in strata for one in _segments(each, history, reward_range)]
    return ContextChecks(list(columns), segments, cells, ranking, warnings)


def warn_of_leaks(history: object, names: Sequence[str]) -> None:
    """Warn of those of the named context columns of a log in memory that hold the arm or the reward."""
    if isinstance(history, History) and LEAST_ROWS <= len(history) <= MAX_LOOKED_AT:
        for _, sentence in _leaks(history, context_columns(history.contexts, names)):
            warnings.warn(sentence, stacklevel=callers_level())


def _segments(strata: Strata, history: History, reward_range: tuple[float, float]) -> Iterator[Segment]:
    """Report on each value of a column, in order, or the most frequent first."""
    n_arms = len(history.labels)
    low, high = reward_range
    pairs = strata.codes * n_arms + history.codes
    shape = (len(strata.names), n_arms)
    counts = np.bincount(pairs, minlength=shape[0] * n_arms).reshape(shape)
    rewards = (history.rewards - low) / (high - low)
    sums = np.bincount(pairs, rewards, minlength=shape[0] * n_arms).reshape(shape)
    order = np.arange(shape[0]) if strata.is_ordered else np.argsort(-counts.sum(axis=1), kind="stable")
    for value in order.tolist():
        arms = np.flatnonzero(counts[value]).tolist()
        if not arms:
            continue
        chance = ERROR_CHANCE / len(arms)
        means = {arm: mean_of_counts(int(counts[value, arm]), float(sums[value, arm]), chance) for arm in arms}
        best = max(arms, key=lambda arm: (means[arm].low, means[arm].value))
        apart = len(arms) > 1 and all(means[arm].high < means[best].low for arm in arms if arm != best)
        yield Segment(
            strata.column,
            strata.names[value],
            int(counts[value].sum()),
            len(arms),
            history.labels[best],
            apart,
        )


def _cell_sizes(strata: Sequence[Strata], history: History) -> CellSizes:
    """Count the rows of each combination of values and arm. Combinations that never occur are thin."""
    n_arms = len(history.labels)
    cells = n_arms * math.prod(len(each.names) for each in strata)
    codes: Ints = history.codes
    for each in strata:
        codes = np.unique(codes, return_inverse=True)[1] * len(each.names) + each.codes
    filled = int((np.unique(codes, return_counts=True)[1] >= THIN).sum())
    return CellSizes([each.column for each in strata], cells, len(history) / cells, 1.0 - filled / cells)


def _leaks(history: History, columns: dict[str, ContextColumn]) -> Iterator[tuple[str, str]]:
    """Find columns that hold the arm or the reward, each with a sentence."""
    rewards = history.rewards
    variance = float(rewards.var())
    for name, column in columns.items():
        if column.numbers is not None and not np.isnan(column.numbers).all() and variance > 0.0:
            numbers = np.where(np.isnan(column.numbers), np.nanmean(column.numbers), column.numbers)
            if numbers.std() > 0.0 and abs(float(np.corrcoef(numbers, rewards)[0, 1])) > math.sqrt(GIVES_AWAY):
                yield name, f"the column {name} holds the reward: nobody knows it when the arm is chosen, leave it out"
                continue
        values = column.as_categories()
        if len(values.values) < 2 or len(values.values) * REPEATED > len(history):
            continue
        counts = np.bincount(values.codes)
        means = np.bincount(values.codes, rewards) / counts
        if variance > 0.0 and float(((means[values.codes] - rewards) ** 2).mean()) < (1.0 - GIVES_AWAY) * variance:
            yield name, f"the column {name} holds the reward: nobody knows it when the arm is chosen, leave it out"
        elif len(history.labels) > 1 and _held(values.codes, history.codes) >= GIVES_AWAY:
            yield name, f"the column {name} holds the arm: each of its values has one arm only, leave it out"


def _held(codes: Ints, arms: Ints) -> float:
    """Return the share of rows in which the value gives the arm away, or 0 if one arm is nearly all of the log."""
    n_arms = int(arms.max()) + 1
    pairs = np.bincount(codes * n_arms + arms, minlength=(int(codes.max()) + 1) * n_arms).reshape(-1, n_arms)
    commonest = float(pairs.sum(axis=0).max()) / len(arms)
    return float(pairs.max(axis=1).sum()) / len(arms) if commonest < GIVES_AWAY else 0.0


def _drifts(history: History, columns: dict[str, ContextColumn]) -> Iterator[str]:
    """Find columns whose second half does not fit scales that are frozen after the first half."""
    half = len(history) // 2
    for name, column in columns.items():
        first, second = _part(column, slice(0, half)), _part(column, slice(half, None))
        try:
            frozen = Contexts.from_table({name: first})
        except InvalidHistory:
            continue  # one value only, or ids: there is no scale to drift from
        odd = frozen.oddities(frozen.encode({name: second}))[name] / max(len(history) - half, 1)
        if odd > MAX_ODD:
            yield (
                f"the column {name} has drifted: {odd:.0%} of its values in the second half of the log are unknown to "
                "the first half, or far outside: take scales from the recent part"
            )


def _part(column: ContextColumn, rows: slice) -> ContextColumn:
    """Return some rows of a column, with the values that occur in them."""
    if column.numbers is not None:
        return ContextColumn(column.numbers[rows], column.codes, column.values)
    values, codes = np.unique(column.codes[rows], return_inverse=True)
    return ContextColumn(None, codes.astype(np.int64), [column.values[code] for code in values.tolist()])
