"""What can be said of a study: what each group earns, whether one may stop, and what seems to be wrong."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from artreplay.algorithms import ArmAlgorithm, ContextRegression, RewardRange
from artreplay.history import History, Label
from artreplay.studies.chances import MAX_ARMS, chances_of
from artreplay.studies.earnings import CHANCE_95, NO_SUM, OBSERVED, Sum
from artreplay.studies.study_state import StudyState

DAY = 86_400.0
RECENT = 1_000  # decisions that a warning looks at
MIN_RECENT = 100
MAX_OPEN = 0.5  # the share of old decisions that may wait for a reward, in a study that waits for ever
MAX_EXPIRED = 0.99  # the share of decisions that may expire without a reward
FEW_OF_LOG = 0.25  # where the log says that rewards are rare, no warning comes above this share of what it says


@dataclass(frozen=True, slots=True)
class GroupState:
    """What the decisions of a group have earned whose window is over, with an interval of 95 % of their mean.

    >>> import artreplay as ar
    >>> with ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100), wait=None) as study:
    ...     for decision in study.decide(count=3):
    ...         study.reward(decision.id, 1.0)
    ...     [(group.name, group.decisions, group.mean) for group in study.groups()]
    [('policy', 3, 1.0)]
    """

    name: str  # "policy" or "control"
    decisions: int  # those with a reward
    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ControlComparison:
    """By how much the policy earns more than control on average, with an interval of 95 %.

    >>> import artreplay as ar
    >>> base = ar.KLUCB(arms=["red", "blue"], horizon=1000)
    >>> with ar.Study.create(":memory:", base, wait=None, holdout=0.5) as study:
    ...     for decision in study.decide(count=400):
    ...         study.reward(decision.id, float(decision.action == "red"))
    ...     study.comparison().low <= study.comparison().difference
    True
    """

    difference: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Stopping:
    """What stopping now would risk: how likely each arm is to be the best, and what playing the leader loses.

    >>> import artreplay as ar
    >>> log = ar.History(["red", "blue"] * 50, [0, 1] * 50)
    >>> with ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=1000), log, wait=None) as study:
    ...     stopping = study.stopping()
    ...     stopping.leader, stopping.chance > 0.99, stopping.is_approximate
    ('blue', True, False)
    """

    leader: Label
    chance: float  # that the leader is the best arm
    loss: float  # how much less the leader earns than the best arm, on average over what is possible
    chances: dict[Label, float]  # of every arm that is not retired
    is_approximate: bool  # whether there are rewards other than the lowest and the highest
    segment: tuple[Any, ...] = ()  # the values that make the segment, if the algorithm has segments


def groups_of(state: StudyState, now: float) -> list[GroupState]:
    """Return what each group has earned."""
    by_group, limits = _sums_by_group(state, now), _limits(state)
    return [
        GroupState(name, sums.n, sums.total / sums.n, *np.clip(_interval(*_moments(sums, limits)), *limits).tolist())
        for name, sums in by_group.items()
        if sums.n
    ]


def comparison_of(state: StudyState, now: float) -> ControlComparison | None:
    """Compare the policy with control, if both have earned something."""
    by_group = _sums_by_group(state, now)
    policy, control = (by_group.get(name, NO_SUM) for name in ("policy", "control"))
    if not (policy.n and control.n):
        return None
    limits = _limits(state)
    (mean, error), (other, other_error) = _moments(policy, limits), _moments(control, limits)
    difference = policy.total / policy.n - control.total / control.n
    return ControlComparison(difference, *_interval(mean - other, math.hypot(error, other_error)))


def _limits(state: StudyState) -> RewardRange:
    return state.base.reward_range if state.can_decide else (-math.inf, math.inf)


def _sums_by_group(state: StudyState, now: float) -> dict[str, Sum]:
    by_group: dict[str, Sum] = {}
    for (group, _), sums in state.earned.until(now).items():
        if group != OBSERVED:
            by_group[group] = by_group.get(group, NO_SUM).plus(sums)
    return dict(sorted(by_group.items(), reverse=True))


def _moments(sums: Sum, limits: RewardRange) -> tuple[float, float]:
    """Return a mean and its standard error. One lowest and one highest reward are added, so that no error is 0."""
    if all(map(math.isfinite, limits)):
        sums = sums.plus(Sum(2, sum(limits), sum(edge * edge for edge in limits)))
    mean = sums.total / sums.n
    return mean, math.sqrt(max(sums.squares / sums.n - mean * mean, 0.0) / sums.n)


def _interval(mean: float, error: float) -> tuple[float, float]:
    return mean - CHANCE_95 * error, mean + CHANCE_95 * error


def stoppings_of(state: StudyState, now: float) -> list[Stopping]:
    """Say what stopping now would risk, in each segment of which something is known. Nothing where it is not honest."""
    if not state.can_decide:
        return []
    base, (low, high) = state.base.thing, state.base.reward_range
    if not isinstance(base, ArmAlgorithm) or base.proposes_list or isinstance(base, ContextRegression):
        return []  # the arms of a regression have different audiences by design
    arms = np.array([number for number, arm in enumerate(state.arms) if not arm.retired])
    if not (math.isfinite(low) and math.isfinite(high)) or not 1 <= len(arms) <= MAX_ARMS:
        return []
    n, totals, is_approximate = _known(state, now)
    success = np.clip((totals - low * n) / (high - low), 0.0, n)
    found = []
    for segment in range(base.n_segments):
        units = arms * base.n_segments + segment
        if base.n_segments > 1 and not n[units].any():
            continue
        chances = chances_of(1.0 + success[units], 1.0 + (n - success)[units])
        leader = int(np.argmax(chances.best))
        mean = (1.0 + success[units][leader]) / (2.0 + n[units][leader])
        names = () if base.contexts is None else base.contexts.segment_values(segment)
        found.append(
            Stopping(
                state.arms[arms[leader]].label,
                float(chances.best[leader]),
                max(float(chances.highest_mean - mean), 0.0) * (high - low),
                {state.arms[arm].label: float(chance) for arm, chance in zip(arms, chances.best, strict=True)},
                bool(is_approximate),
                names,
            )
        )
    return found


def _known(state: StudyState, now: float) -> tuple[Any, Any, bool]:
    """Count and add up what is known of each arm in each segment: rows of the log that were read, and rewards whose
    window is over.

    A log that may be stale, or that contradicts what was seen since, is left out.
    """
    low, high = state.base.reward_range
    n, totals, squares = (np.zeros(state.base.thing.n_units) for _ in range(3))
    over = state.earned.until(now)
    for (_, unit), sums in over.items():
        if unit >= 0:
            n[unit], totals[unit], squares[unit] = (
                n[unit] + sums.n,
                totals[unit] + sums.total,
                squares[unit] + sums.squares,
            )
    edges = abs(squares.sum() - (low + high) * totals.sum() + low * high * n.sum())  # Σ (r − low)(r − high)
    is_approximate = edges > 1e-9 * max(n.sum(), 1.0)
    settings, policy = state.settings, state.settled()
    if settings.drift != 0.0 or settings.has_allowances or policy.contradictions():
        return n, totals, is_approximate
    online = totals.copy()
    for _, _, unit, value in state.earned.early.values():
        if unit >= 0:
            online[unit] += value
    for unit, cell in enumerate(policy.cells()):
        if cell.used:
            n[unit] += cell.used
            totals[unit] += cell.count * cell.mean - online[unit]
    log = policy.history
    if isinstance(log, History):
        is_approximate = is_approximate or not bool(np.isin(log.rewards, (low, high)).all())
    elif log is not None and policy.used:
        is_approximate = True  # whether the rewards of a log outside memory are all 0 or 1 is not known
    return n, totals, is_approximate


# -- what seems to be wrong -------------------------------------------------------------------------------------------


def warnings_of(state: StudyState, now: float) -> list[str]:
    """Say in a sentence if rewards seem to be missing. As long as they are, nothing is blamed on the log."""
    if state.terms.wait is None:
        return _never_rewarded(state, now)
    expired, n = sum(state.outcomes), len(state.outcomes)
    if n < MIN_RECENT or expired <= MAX_EXPIRED * n or n - expired > FEW_OF_LOG * n * _share_in_log(state):
        return []
    return [
        f"{expired:,} of the last {n:,} decisions got no reward in time. Rewards may not arrive, or may come later "
        "than the study waits"
    ]


def _share_in_log(state: StudyState) -> float:
    """Return which share of the log has a reward above the lowest. Infinite if there is no log in memory."""
    log = state.settled().history if state.can_decide else None
    if not isinstance(log, History) or not len(log):
        return math.inf
    return float((log.rewards > _limits(state)[0]).mean())


def _never_rewarded(state: StudyState, now: float) -> list[str]:
    last = _last_decision_before(state, now - DAY)
    first = max(last - RECENT, 0)
    n, waiting = last - first, sum(first < number <= last for number in state.open)
    if waiting < MIN_RECENT or waiting <= MAX_OPEN * n:
        return []
    return [
        f"{waiting:,} of the last {n:,} decisions that are older than a day have no reward, and this study waits for "
        "ever. If no reward means that there was no success, give it a time to wait"
    ]


def _last_decision_before(state: StudyState, time: float) -> int:
    """Return the number of the last decision that was made before a time, found by bisection."""
    low, high = 0, state.counts["decisions"]
    while low < high:
        middle = (low + high + 1) // 2
        made = next(state.journal.read(kinds=("decision",), decision=middle), None)
        if made is not None and made.written < time:
            low = middle
        else:
            high = middle - 1
    return low
