"""Algorithms that play the arm with the highest value, where no value falls when a reward rises.

The value of an arm depends on its rows of the log, its online rewards, and the time. Bounds on the rewards of unread
rows then give bounds on the value, so that Artificial Replay can stop reading once the choice is certain.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple, Self

import numpy as np

from artreplay.algorithms.algorithm import ArmAlgorithm, RewardRange
from artreplay.algorithms.beta_quantile import beta_quantile, quantile_bounds
from artreplay.algorithms.tally import Tally, tally
from artreplay.compiling import Floats, Ints, Words, compiled, state_of
from artreplay.history import Label
from artreplay.parameters import REQUIRED, Count, NotNegative, Seed, checked
from artreplay.streams import POSTERIOR, pair, uniform

_HIGHEST = 1.0 - 2.0**-53  # below 1


@compiled(scratch=("unread", "segment"))
class ValuedArms(NamedTuple):
    """Two tallies, so that no sum depends on when a row of the log was read, and the rule that values an arm.

    Where contexts make segments, a unit is arm · n_segments + segment, and time is counted within each segment.
    """

    rule: Any
    logged: Tally
    online: Tally
    shown: Ints  # of each segment: samples of the log; then of each segment: samples that were played
    unread: Ints  # of each segment: rows of the log that are still to be shown
    segment: Ints  # the current segment, in one entry
    n_segments: int  # 1 where contexts make none

    def value(self, arm: int, round_: int, unread: int, fill: float) -> float:
        """What an arm is worth if `unread` more rows of the log, each with the reward `fill`, were shown."""
        value: float = self.value_bounds(arm, round_, unread, fill, True)[0]
        return value

    def value_bounds(self, arm: int, round_: int, unread: int, fill: float, exact: bool) -> tuple[float, float]:
        """Two numbers that this value lies between, which take less time; `exact` makes both of them the value."""
        segment = arm % self.n_segments
        bounds: tuple[float, float] = self.rule.score(
            arm,
            round_,
            self.shown[segment] + self.shown[self.n_segments + segment] + self.unread[segment],
            self.logged.counts[arm] + unread,
            self.logged.totals[arm] + unread * fill,
            self.online.counts[arm],
            self.online.totals[arm],
            exact,
        )
        return bounds

    def set_context(self, encoded: Floats) -> None:
        """Choose in the segment of this context from now on."""
        self.segment[0] = int(encoded[0])

    def note_unread(self, rows: int) -> None:
        """Note that `rows` rows of the log are still to be shown. The time counts them too."""
        self.unread[self.segment[0]] = rows

    def propose(self, out: Ints) -> int:
        """Propose the arm with the highest value now, or the lowest arm among equals."""
        round_ = self.rounds()
        first = self.segment[0]
        out[0] = first
        highest = self.value(first, round_, 0, 0.0)
        for unit in range(first + self.n_segments, len(self.logged.counts), self.n_segments):
            value = self.value(unit, round_, 0, 0.0)
            if value > highest:
                highest = value
                out[0] = unit
        return 1

    def rounds(self) -> int:
        """How many online rewards there were."""
        rounds = 0
        for segment in range(self.n_segments):
            rounds += self.shown[self.n_segments + segment]
        return rounds

    def reseed(self, key: np.uint64) -> None:
        """Draw from another stream from now on."""
        self.rule.reseed(key)

    def update(self, unit: int, reward: float) -> None:
        """Learn from an online reward."""
        self.online.add(unit, reward)
        self.shown[self.n_segments + unit % self.n_segments] += 1

    def update_logged(self, unit: int, reward: float, allowance: float) -> None:
        """Learn from a row of the log."""
        self.logged.add(unit, reward)
        self.shown[unit % self.n_segments] += 1

    def load(self, unit: int, samples: int, total: float) -> None:
        """Learn from `samples` rows of the log, by the sum of their rewards."""
        self.logged.add_block(unit, samples, total)
        self.shown[unit % self.n_segments] += samples


def valued_arms(rule: Any, n_arms: int, n_segments: int = 1) -> ValuedArms:
    """Nothing shown yet."""
    units, shown, unread = n_arms * n_segments, np.zeros(2 * n_segments, np.int64), np.zeros(n_segments, np.int64)
    return ValuedArms(rule, tally(units), tally(units), shown, unread, np.zeros(1, np.int64), n_segments)


# -- the rules ---------------------------------------------------------------------------------------------------------
# The time is the number of rows of the log plus the number of online rewards.


@compiled
def quantile(a: float, b: float, u: float, exact: bool) -> tuple[float, float]:
    """Two numbers that the quantile of Beta(a, b) at u lies between; `exact` makes both of them the quantile."""
    if exact:
        x = beta_quantile(a, b, u)
        return x, x
    return quantile_bounds(a, b, u)


@compiled
def median(x: float, y: float, z: float) -> Any:
    """The middle one of three numbers."""
    return max(min(x, y), min(max(x, y), z))


@compiled
class PosteriorDraw(NamedTuple):
    """A draw from the posterior of the mean: its quantile at a uniform draw keyed by round and arm."""

    key: Words
    a: float  # of the prior, a Beta distribution
    b: float

    def score(
        self, arm: int, round_: int, time: int, rows: int, row_sum: float, online: int, online_sum: float, exact: bool
    ) -> Any:
        """The quantile; a reward inside (0, 1) counts as a part of a success."""
        successes = row_sum + online_sum
        failures = max(rows + online - successes, 0.0)
        u = uniform(self.key[0], POSTERIOR, arm, round_)
        return quantile(self.a + successes, self.b + failures, u, exact)

    def reseed(self, key: np.uint64) -> None:
        """Draw from another stream from now on."""
        self.key[0] = key


@compiled
class AnchoredDraw(NamedTuple):
    """The median of a draw from the posterior of online rewards, one from that of all rewards, and the online mean."""

    key: Words

    def score(
        self, arm: int, round_: int, time: int, rows: int, row_sum: float, online: int, online_sum: float, exact: bool
    ) -> Any:
        """The median; infinite before an arm was played."""
        if online == 0:
            return math.inf, math.inf
        u, v = pair(self.key[0], POSTERIOR, arm, round_, 0)
        successes = row_sum + online_sum
        alone = quantile(1.0 + online_sum, 1.0 + max(online - online_sum, 0.0), u, exact)
        together = quantile(1.0 + successes, 1.0 + max(rows + online - successes, 0.0), v, exact)
        mean = online_sum / online
        return median(alone[0], together[0], mean), median(alone[1], together[1], mean)

    def reseed(self, key: np.uint64) -> None:
        """Draw from another stream from now on."""
        self.key[0] = key


@compiled
class OptimisticMean(NamedTuple):
    """m + √(width · log t / n), t the time; infinite without samples. Without a width, the mean alone."""

    width: float

    def score(
        self, arm: int, round_: int, time: int, rows: int, row_sum: float, online: int, online_sum: float, exact: bool
    ) -> Any:
        """The optimistic mean, which is always exact."""
        count = rows + online
        if count == 0:
            return math.inf, math.inf
        value: float = (row_sum + online_sum) / count
        if self.width > 0.0:
            value += math.sqrt(self.width * math.log(time) / count)
        return value, value


@compiled
class UpperQuantile(NamedTuple):
    """The quantile of the posterior, from Beta(1, 1), that only a share 1 / (t · scale) lies above."""

    scale: float

    def score(
        self, arm: int, round_: int, time: int, rows: int, row_sum: float, online: int, online_sum: float, exact: bool
    ) -> Any:
        """The quantile, always exact: the values of good arms come so close that bounds cannot tell them apart."""
        successes = row_sum + online_sum
        failures = max(rows + online - successes, 0.0)
        level = min(1.0 - 1.0 / ((time + 2.0) * self.scale), _HIGHEST)
        value: float = beta_quantile(1.0 + successes, 1.0 + failures, level)
        return value, value


@compiled
class SegmentQuantile(NamedTuple):
    """The same, where the rows of each segment have a scale of their own; see `UpperQuantile`."""

    scale: Floats  # of each segment

    def score(
        self, arm: int, round_: int, time: int, rows: int, row_sum: float, online: int, online_sum: float, exact: bool
    ) -> Any:
        """The quantile in the segment of an arm."""
        rule = UpperQuantile(self.scale[arm % len(self.scale)])
        return rule.score(arm, round_, time, rows, row_sum, online, online_sum, exact)


# -- the algorithms ----------------------------------------------------------------------------------------------------


class ValuedAlgorithm(ArmAlgorithm):
    """The base class of algorithms that play the arm with the highest value, or the lowest arm among equals."""

    exact = True
    offers_value = True
    takes_totals = True
    component: Any

    def __init__(
        self, n_arms: int | None, arms: Iterable[Label] | None, reward_range: RewardRange, bounded: bool = True
    ) -> None:
        super().__init__(n_arms, arms, reward_range, bounded)
        # Rewards without bounds give no bounds on a value.
        self.exact = self.offers_value = self.reward_range[1] < math.inf

    def duplicate(self) -> Self:
        """The same algorithm with a state of its own."""
        new = super().duplicate()
        if new._is_certified:
            new.component = new.component.rule
        return new

    @property
    def valued(self) -> ValuedArms:
        """The tallies and the rule. A policy wraps them in a component that reads rows until the choice is certain."""
        valued: ValuedArms = self.component if isinstance(self.component, ValuedArms) else self.component.rule
        return valued

    @property
    def reads_cell_before_tell(self) -> bool:
        """Whether a policy shows the unread rows of a cell before an online reward, which it need not do here."""
        return not self._is_certified

    def log_changed(self) -> None:
        """Note that the log has grown, or that the policy has another one."""
        if self._is_certified:
            self.component.forget()

    @property
    def _is_certified(self) -> bool:
        return hasattr(self.component, "forget")

    def state(self) -> dict[str, Any]:
        """What was learnt, in a form that can be compared: equal if and only if the same was learnt."""
        return state_of(self.component.rule if self._is_certified else self.component)

    @property
    def tally(self) -> Tally:
        """The count and the sum of the samples of each arm."""
        logged, online = self.valued.logged, self.valued.online
        return Tally(logged.counts + online.counts, logged.totals + online.totals)

    def _values(self) -> Floats | None:
        round_, units = self.valued.rounds(), len(self.valued.logged.counts)
        return np.array([self.valued.value(unit, round_, 0, 0.0) for unit in range(units)])


class UCB1(ValuedAlgorithm):
    """Play the arm with the highest mean + √(2 log t / n), where t counts the rows of the log and the rounds so far.

    Artificial Replay is exact if `reward_range` is finite, because it reads rows until they cannot change the choice.

    Parameters
    ----------
    n_arms
        The number of arms, which are then called 0 to n − 1. Leave it out where `arms` names them.
    arms
        The names of the arms, as they stand in the log.
    contexts
        An `ar.Contexts` with segments, for an algorithm that is asked and told with a context and is one algorithm for
        each segment.
    reward_range
        The lowest and the highest reward there can be.

    >>> UCB1(3).propose()
    0
    """

    summary = "highest mean + √(2 log t / n)"

    @checked
    def __init__(
        self,
        n_arms: int | None = None,
        *,
        arms: Iterable[Label] | None = None,
        contexts: Any = None,
        reward_range: RewardRange = (0.0, 1.0),
    ) -> None:
        super().__init__(n_arms, arms, reward_range, bounded=False)
        self.hear_segments(contexts)
        self.component = valued_arms(OptimisticMean(2.0), self.n_arms, self.n_segments)


class Greedy(ValuedAlgorithm):
    """Play the arm with the highest mean, after each arm once. It does not explore.

    Parameters
    ----------
    n_arms
        The number of arms, which are then called 0 to n − 1. Leave it out where `arms` names them.
    arms
        The names of the arms, as they stand in the log.
    contexts
        An `ar.Contexts` with segments, for an algorithm that is asked and told with a context and is one algorithm for
        each segment.
    reward_range
        The lowest and the highest reward there can be.

    >>> import artreplay as ar
    >>> policy = ar.ArtificialReplay(ar.Greedy(2), ar.History([0, 0, 1, 1, 1], [0, 0, 1, 1, 1]))
    >>> policy.ask(), policy.used
    (1, 3)
    """

    summary = "highest mean, no exploration"

    @checked
    def __init__(
        self,
        n_arms: int | None = None,
        *,
        arms: Iterable[Label] | None = None,
        contexts: Any = None,
        reward_range: RewardRange = (0.0, 1.0),
    ) -> None:
        super().__init__(n_arms, arms, reward_range, bounded=False)
        self.hear_segments(contexts)
        self.component = valued_arms(OptimisticMean(0.0), self.n_arms, self.n_segments)


class BayesUCB(ValuedAlgorithm):
    """Play the arm with the highest quantile of its posterior, at 1 − 1 / (t · log(horizon)^power), from Beta(1, 1).

    t counts the rows of the log and the rounds so far. The analysis of Kaufmann, Cappé and Garivier (2012) has the
    power 5. The default is 0, which they recommend in practice.

    Parameters
    ----------
    n_arms
        The number of arms, which are then called 0 to n − 1. Leave it out where `arms` names them.
    horizon
        The number of rounds to come. A policy adds the rows of the log it is made with.
    power
        The power of the logarithm of the horizon in the level.
    arms
        The names of the arms, as they stand in the log.
    contexts
        An `ar.Contexts` with segments, for an algorithm that is asked and told with a context and is one algorithm for
        each segment.
    reward_range
        The lowest and the highest reward there can be.

    >>> BayesUCB(3, horizon=1000).propose()
    0
    """

    summary = "highest posterior quantile at 1 − 1/t"

    @checked
    def __init__(
        self,
        n_arms: int | None = None,
        horizon: Count = REQUIRED,
        *,
        power: NotNegative = 0.0,
        arms: Iterable[Label] | None = None,
        contexts: Any = None,
        reward_range: RewardRange = (0.0, 1.0),
    ) -> None:
        super().__init__(n_arms, arms, reward_range)
        self.hear_segments(contexts)
        self.horizon, self.power = horizon, power
        self.component = valued_arms(self._part_for_rows(0), self.n_arms, self.n_segments)

    @property
    def counts_log(self) -> bool:
        """Whether the horizon matters."""
        return self.power > 0.0

    def _part_for(self, total: int) -> UpperQuantile:
        """The rule, where log and rounds together have this length."""
        return UpperQuantile(max(math.log(total), 1.0) ** self.power)

    def _joined(self, parts: list[UpperQuantile]) -> SegmentQuantile:
        """One rule for all segments, made of one for each."""
        return SegmentQuantile(np.array([part.scale for part in parts]))


class AnchorThompson(ValuedAlgorithm):
    """Draw from posteriors as Thompson sampling does, and let online rewards limit what the log can say.

    The value of an arm is the median of three numbers: a draw from the posterior of its online rewards, a draw from the
    posterior of all its rewards, and its online mean. Every arm is played once first. A log that is wrong can mislead
    it only as far as the online rewards allow. Artificial Replay is exact, because it reads rows until they cannot
    change the choice.

    Parameters
    ----------
    n_arms
        The number of arms, which are then called 0 to n − 1. Leave it out where `arms` names them.
    seed
        The seed of everything it draws at random.
    arms
        The names of the arms, as they stand in the log.
    contexts
        An `ar.Contexts` with segments, for an algorithm that is asked and told with a context and is one algorithm for
        each segment.
    reward_range
        The lowest and the highest reward there can be.

    >>> AnchorThompson(3).propose()
    0
    """

    summary = "median of online draw, draw with the log, online mean"

    @checked
    def __init__(
        self,
        n_arms: int | None = None,
        seed: Seed = 0,
        *,
        arms: Iterable[Label] | None = None,
        contexts: Any = None,
        reward_range: RewardRange = (0.0, 1.0),
    ) -> None:
        super().__init__(n_arms, arms, reward_range)
        self.hear_segments(contexts)
        self.seed = seed
        self.component = valued_arms(AnchoredDraw(np.zeros(1, np.uint64)), self.n_arms, self.n_segments)
        self.reseed(self.seed)
