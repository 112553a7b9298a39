"""What the page about a study shows: sums over its decisions, made once for the words, the charts and the tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from artreplay.algorithms import ArmAlgorithm
from artreplay.algorithms.bounds import likelihood_interval
from artreplay.compiling import Floats, Ints
from artreplay.history import History, Totals
from artreplay.replay import Contradiction
from artreplay.studies import ArmState, Decision, Study
from artreplay.studies.decision_columns import EXPIRED, VOID, DecisionColumns, DecisionRows, Event
from artreplay.studies.judging import ControlComparison, GroupState, Stopping

MAX_WINDOWS = 48  # the decisions are divided into at most this many parts of equal size
MAX_DRAWN = 7  # arms with their own area in the chart; all others share one
MAX_ROWS = 200  # arms in the table
MAX_JUDGED = 200  # arms; with more, the chances of being best take too long for a page that is read again and again
MAX_JUDGED_CELLS = 2_000  # arms in segments, for the same reason
MAX_LISTED = 50  # decisions in the list
RECENT = 1_000  # decisions that count as "now"
WEEK, HOURS_3 = 7 * 86_400.0, 3 * 3_600.0
UNLIKELY = 0.05  # an arm that is best with less than this is probably worse
LIKELIHOOD_95 = 1.920729  # half of the 95 % quantile of χ² with one degree of freedom


@dataclass(frozen=True)
class ArmRow:
    """An arm, as the table shows it. Numbers that do not exist are nan."""

    label: str
    state: ArmState
    share: float  # of the last decisions
    decided: int
    counted: int  # decisions with a reward whose window is over
    mean: float
    low: float
    high: float
    log_mean: float
    chance: float  # that it is the best


@dataclass(frozen=True)
class Windows:
    """The decisions in order, divided into parts of equal size."""

    ends: Floats  # when the last decision of each part was made
    starts: Floats
    numbers: Ints  # of the last decision of each part
    names: list[str]  # the arms that are drawn, and "others"
    shares: Floats  # of each name in each part
    policy: Floats  # means with their intervals; nan where there are no rewards
    low: Floats
    high: Floats
    control: Floats


@dataclass(frozen=True)
class StudyView:
    """Everything that the page shows."""

    name: str
    facts: dict[str, Any]
    now: float
    wait: float | None
    holdout: float
    is_binary: bool  # whether all rewards are 0 or 1
    arms: list[ArmRow]  # at most MAX_ROWS, the most played first
    n_arms: int
    windows: Windows | None
    groups: list[GroupState]
    comparison: ControlComparison | None
    stopping: Stopping | None
    segments: list[Stopping]  # the same for each segment, if there are segments
    explored: tuple[float, float] | None  # share of this week's decisions that went to worse arms, and what it cost
    warnings: list[str]
    is_misled: bool  # whether the study waits for ever, and most decisions have no reward
    contradictions: list[Contradiction]
    log_mean: float
    events: list[Event]
    delays: list[tuple[str, float]]  # how late rewards come: a share, in words, and seconds
    recent: list[Decision]
    settings: dict[str, Any]


def view_of(study: Study, columns: DecisionColumns | None = None) -> StudyView:
    """Collect what the page shows of a study.

    Parameters
    ----------
    study
        The study.
    columns
        Its decisions as they were read before, so that only new ones are read.
    """
    columns = DecisionColumns(study) if columns is None else columns
    rows, facts = columns.read(), study.facts()
    now = columns.now
    has_arms = facts["log"] is not None and isinstance(study.base, ArmAlgorithm)
    states = study.arms() if has_arms else []
    n_segments = study.base.n_segments if isinstance(study.base, ArmAlgorithm) else 1
    is_judged = len(states) <= MAX_JUDGED and len(states) * n_segments <= MAX_JUDGED_CELLS
    stopping = study.stopping() if is_judged else None
    is_counted = ~np.isnan(rows.reward) & ((rows.due <= now) | np.isinf(rows.due) | (rows.state == EXPIRED))
    log_mean, log_means = _means_of_log(study, states) if has_arms else (math.nan, {})
    arms = _arm_rows(rows, is_counted, states, log_means, stopping)
    last = int(rows.number[-1]) if len(rows.number) else 0
    by_use = sorted(arms, key=lambda arm: (arm.state.retired, -arm.decided, -arm.state.logged))
    contradictions = study.contradictions() if has_arms else []
    settings = study.settings()
    rewards = rows.reward[~np.isnan(rows.reward)]
    warnings = study.warnings()
    return StudyView(
        study.place,
        facts,
        now,
        settings["wait"],
        settings["holdout"],
        bool(np.isin(rewards, (0.0, 1.0)).all()) and math.isnan(log_mean) | (0.0 <= log_mean <= 1.0),
        by_use[:MAX_ROWS],
        len(arms),
        _windows(rows, is_counted, arms),
        study.groups(),
        study.comparison(),
        stopping,
        study.stopping_by_segment() if is_judged and n_segments > 1 else [],
        _explored(rows, arms, now) if stopping is not None else None,
        [*warnings, *_silence(rows, now), *_past_horizon(facts, settings)],
        settings["wait"] is None and bool(warnings),
        contradictions,
        log_mean,
        columns.events,
        _delays(rows),
        study.decisions(after=max(last - MAX_LISTED, 0))[::-1],
        settings,
    )


def _means_of_log(study: Study, states: Sequence[ArmState]) -> tuple[float, dict[Any, float]]:
    log = study.policy.history
    if log is None or not len(log):
        return math.nan, {}
    totals = Totals.of(log)
    means = dict(zip(totals.labels, (totals.sums / np.maximum(totals.counts, 1)).tolist(), strict=True))
    is_shown = {state.label for state in states}
    if isinstance(log, History):
        return float(log.rewards.mean()), {label: mean for label, mean in means.items() if label in is_shown}
    return float(totals.sums.sum() / totals.counts.sum()), means


def _arm_rows(
    rows: DecisionRows,
    is_counted: Any,
    states: Sequence[ArmState],
    log_means: dict[Any, float],
    stopping: Stopping | None,
) -> list[ArmRow]:
    n = len(states)
    if not n:
        return []
    is_arm = rows.arm >= 0
    decided = np.bincount(rows.arm[is_arm], minlength=n)
    last = rows.arm[max(len(rows.arm) - RECENT, 0) :]
    share = np.bincount(last[last >= 0], minlength=n) / max(len(last), 1)
    chosen = is_arm & is_counted
    counted = np.bincount(rows.arm[chosen], minlength=n)
    sums = np.bincount(rows.arm[chosen], rows.reward[chosen], minlength=n)
    means = np.divide(sums, counted, out=np.full(n, np.nan), where=counted > 0)
    low, high = likelihood_interval(means, counted, LIKELIHOOD_95)
    chances = {} if stopping is None else stopping.chances
    return [
        ArmRow(
            str(state.label), state, float(share[number]), int(decided[number]), int(counted[number]),
            float(means[number]), float(low[number]), float(high[number]),
            log_means.get(state.label, math.nan) if state.logged else math.nan, chances.get(state.label, math.nan),
        )
        for number, state in enumerate(states)
    ]  # fmt: skip


def _windows(rows: DecisionRows, is_counted: Any, arms: Sequence[ArmRow]) -> Windows | None:
    total = len(rows.number)
    if not total:
        return None
    begins = [part[0] for part in np.array_split(np.arange(total), min(MAX_WINDOWS, total))[1:]]
    # Decisions that were made at the same time are in one part.
    cuts = np.unique(np.searchsorted(rows.asked, rows.asked[begins]))
    parts = np.split(np.arange(total), cuts[cuts > 0])
    most = sorted(range(len(arms)), key=lambda number: -arms[number].decided)[:MAX_DRAWN]
    most = [number for number in most if arms[number].decided]
    others = sum(arm.decided > 0 for arm in arms) - len(most)
    names = [arms[number].label for number in most] + ([f"{others:,} others"] if others else [])
    shares = np.zeros((len(names), len(parts)))
    policy, low, high, control = (np.full(len(parts), np.nan) for _ in range(4))
    for place, part in enumerate(parts):
        counts = np.bincount(rows.arm[part][rows.arm[part] >= 0], minlength=len(arms))
        for row, number in enumerate(most):
            shares[row, place] = counts[number] / len(part)
        if others:
            shares[-1, place] = max(1.0 - float(shares[:-1, place].sum()), 0.0)
        counted = part[is_counted[part]]
        ours = rows.reward[counted[rows.is_control[counted] == 0]]
        if len(ours):
            error = 1.96 * float(ours.std()) / math.sqrt(len(ours))
            policy[place] = mean = float(ours.mean())
            low[place], high[place] = max(mean - error, float(ours.min())), min(mean + error, float(ours.max()))
        first = parts[max(place + 1 - max(len(parts) // 4, 1), 0)]  # control is small, so it is that of many parts
        theirs = np.arange(first[0], part[-1] + 1)
        theirs = rows.reward[theirs[is_counted[theirs] & (rows.is_control[theirs] == 1)]]
        if len(theirs):
            control[place] = float(theirs.mean())
    ends = np.array([part[-1] for part in parts])
    starts = np.minimum(rows.asked[[part[0] for part in parts]], rows.asked[ends] - 1.0)  # so that there is an area
    return Windows(rows.asked[ends], starts, rows.number[ends], names, shares, policy, low, high, control)


def _explored(rows: DecisionRows, arms: Sequence[ArmRow], now: float) -> tuple[float, float] | None:
    """Return which share of this week's decisions went to arms that are probably worse, and what it cost."""
    recent = rows.arm[(rows.asked > now - WEEK) & (rows.arm >= 0) & (rows.state != VOID) & (rows.is_control == 0)]
    known = [arm for arm in arms if not math.isnan(arm.state.mean) and not arm.state.retired]
    if not len(recent) or not known:
        return None
    leader = max(known, key=lambda arm: arm.chance if not math.isnan(arm.chance) else -1.0)
    counts = np.bincount(recent, minlength=len(arms))
    worse = [number for number, arm in enumerate(arms) if arm.chance < UNLIKELY and not math.isnan(arm.state.mean)]
    cost = sum(int(counts[number]) * max(leader.state.mean - arms[number].state.mean, 0.0) for number in worse)
    return float(counts[worse].sum()) / len(recent), cost


def _silence(rows: DecisionRows, now: float) -> list[str]:
    """Say so if decisions were made in the last three hours and no reward has come."""
    lately = rows.asked > now - HOURS_3
    answered = rows.answered[~np.isnan(rows.answered)]
    if lately.sum() < 100 or not len(answered) or answered.max() > now - HOURS_3:
        return []
    return [f"{int(lately.sum()):,} decisions were made in the last three hours, and no reward has come since"]


def _past_horizon(facts: dict[str, Any], settings: dict[str, Any]) -> list[str]:
    made, end = sum(facts["decisions"].values()), settings["ends_after"]
    if end is None or made <= end:
        return []
    return [f"{made:,} decisions have been made, and the study was made for {end:,}. Give it another horizon"]


def _delays(rows: DecisionRows) -> list[tuple[str, float]]:
    delays = (rows.answered - rows.asked)[~np.isnan(rows.answered)]
    if not len(delays):
        return []
    shares = (("half of the rewards", 0.5), ("nine in ten", 0.9), ("99 in 100", 0.99), ("all", 1.0))
    return [(words, float(np.quantile(delays, share))) for words, share in shares]
