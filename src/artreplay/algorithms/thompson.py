"""Thompson sampling with a Beta prior: as the paper runs it, and by values that certified reading can bound."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from artreplay.algorithms.algorithm import RewardRange
from artreplay.algorithms.tally import Tally, tally
from artreplay.algorithms.valued import ONLINE, PosteriorDraw, ValuedAlgorithm, ValuedArms, valued_arms
from artreplay.compiling import Floats, Ints, Words, compiled
from artreplay.errors import InvalidParameter, checked_number
from artreplay.history import Label
from artreplay.parameters import Seed, checked
from artreplay.streams import POSTERIOR, ROUNDING, beta, uniform


@compiled
class BetaPosterior(NamedTuple):
    """The same Beta prior for every arm; a reward inside (0, 1) counts as a coin thrown with that chance."""

    tally: Tally
    successes: Floats
    prior_a: float
    prior_b: float

    def add(self, key: Any, arm: int, reward: float) -> None:
        """Take a sample in; the coin is keyed by the arm and its n-th sample."""
        success = reward
        if 0.0 < reward < 1.0:
            success = 1.0 if uniform(key, ROUNDING, arm, self.tally.counts[arm]) < reward else 0.0
        self.successes[arm] += success
        self.tally.add(arm, reward)

    def load(self, arm: int, count: int, total: float) -> None:
        """Take a block of samples in at once; the sum of their rewards is the number of successes."""
        self.successes[arm] += total
        self.tally.add_block(arm, count, total)

    def a(self, arm: int) -> float:
        """The first parameter of an arm's posterior."""
        a: float = self.prior_a + self.successes[arm]
        return a

    def b(self, arm: int) -> float:
        """The second parameter of an arm's posterior."""
        b: float = self.prior_b + (self.tally.counts[arm] - self.successes[arm])
        return b


def beta_posterior(n_arms: int, a: float = 1.0, b: float = 1.0) -> BetaPosterior:
    """The prior."""
    return BetaPosterior(tally(n_arms), np.zeros(n_arms), a, b)


@compiled
class PosteriorSampling(NamedTuple):
    """Draw a mean for every arm from its posterior, propose the arm with the highest."""

    key: Words
    posterior: BetaPosterior
    proposals: Ints  # made so far, in one entry

    def propose(self, out: Ints) -> int:
        """The arm whose drawn mean is highest; draws are keyed by arm and proposal number."""
        number = self.proposals[0]
        self.proposals[0] = number + 1
        highest = -1.0
        for arm in range(len(self.posterior.successes)):
            drawn = beta(self.key[0], POSTERIOR, arm, number, self.posterior.a(arm), self.posterior.b(arm))
            if drawn > highest:
                highest = drawn
                out[0] = arm
        return 1

    def reseed(self, key: Any) -> None:
        """Draw from another stream from now on."""
        self.key[0] = key

    def update(self, unit: int, reward: float) -> None:
        """Take one sample in."""
        self.posterior.add(self.key[0], unit, reward)

    def load(self, unit: int, count: int, total: float) -> None:
        """Take a block of samples in at once, as one count and one sum."""
        self.posterior.load(unit, count, total)


Prior = tuple[float, float] | Literal["log"]


class ThompsonSampling(ValuedAlgorithm):
    """Thompson sampling for rewards in the reward range, with a Beta(a, b) prior on the mean of each arm.

    `prior=(a, b)` counts as a rewards of 1 and b of 0 that every arm has seen; it matters where rewards are rare.
    `prior="log"` fits it to what the arms of the log earned, by moments, once, when a policy is made, which reads the
    whole log; without a log it is Beta(1, 1).

    Exact by certified reading: its draws are quantiles of the posterior, keyed by online round and arm. Under
    `reading="plain"`, as in the paper, draws are keyed by proposals: an arm must win again for every logged sample of
    it, so that arms with much data are proposed less often than under Full Start.

    >>> ThompsonSampling(3, seed=1).propose() in (0, 1, 2)
    True
    """

    summary = "highest draw from Beta posteriors"
    takes_totals = True

    @checked
    def __init__(
        self,
        n_arms: int | None = None,
        seed: Seed = 0,
        *,
        prior: Prior = (1.0, 1.0),
        arms: Iterable[Label] | None = None,
        reward_range: RewardRange = (0.0, 1.0),
    ) -> None:
        super().__init__(n_arms, arms, reward_range)
        self.seed = seed
        self.prior = checked_prior(prior)
        self.wants_totals = self.prior == "log"
        a, b = (1.0, 1.0) if self.prior == "log" else self.prior
        posterior = beta_posterior(self.n_arms, a, b)
        self.component = PosteriorSampling(np.zeros(1, np.uint64), posterior, np.zeros(1, np.int64))
        self.reseed(self.seed)

    def take_totals(self, counts: Ints, totals: Floats) -> None:
        """Fit the prior to the rows of each arm and the sums of their rewards; it stays as it is from now on."""
        self.prior, self.wants_totals = fitted_prior(counts, totals), False
        a, b = self.prior
        if self._is_certified or isinstance(self.component, ValuedArms):
            valued = self.valued._replace(rule=self.valued.rule._replace(a=a, b=b))
            self.component = self.component._replace(rule=valued) if self._is_certified else valued
        else:
            posterior = self.component.posterior._replace(prior_a=a, prior_b=b)
            self.component = self.component._replace(posterior=posterior)

    def for_reading(self, certified: bool) -> Self:
        """A copy for a policy; what was shown before counts as played."""
        new = super().for_reading(certified)
        drawn_by_round = isinstance(self.component, ValuedArms)
        if drawn_by_round and not certified:
            raise InvalidParameter(
                'a ThompsonSampling from a policy with certified reading cannot have reading="plain"'
            )
        if certified and not drawn_by_round:
            key, posterior = new.component.key, new.component.posterior
            shown = posterior.tally
            empty = valued_arms(PosteriorDraw(key, posterior.prior_a, posterior.prior_b), self.n_arms)
            empty.shown[ONLINE] = shown.counts.sum()
            new.component = empty._replace(online=shown)
        return new

    def _tally(self) -> Any:
        plain = isinstance(self.component, PosteriorSampling)
        return self.component.posterior.tally if plain else super()._tally()

    def _values(self) -> Floats | None:
        return None  # draws, which are others in every round


def checked_prior(prior: Any) -> Prior:
    """A prior as two positive numbers, or "log"."""
    if isinstance(prior, str) and prior == "log":
        return "log"
    pair = list(prior) if isinstance(prior, (tuple, list, np.ndarray)) else []
    if len(pair) != 2:
        raise InvalidParameter(f'prior must be a pair (a, b) of numbers above 0, or "log", got {prior!r}')
    a, b = (checked_number("prior", value) for value in pair)
    if not (0.0 < a < math.inf and 0.0 < b < math.inf):
        raise InvalidParameter(f"prior must be two finite numbers above 0, got ({a}, {b})")
    return a, b


def fitted_prior(counts: Ints, totals: Floats) -> tuple[float, float]:
    """The Beta distribution whose moments are those of the arms' means, less what chance adds to their spread.

    It never weighs more than the rows of an average arm; (1, 1) where fewer than two arms have rows.

    >>> fitted_prior(np.array([1000, 1000, 1000]), np.array([1.0, 5.0, 12.0]))[0] < 2
    True
    """
    n = counts[counts > 0].astype(np.float64)
    rows, arms = float(n.sum()), len(n)
    if arms < 2:
        return 1.0, 1.0
    mean = min(max(float(totals.sum()) / rows, 0.5 / rows), 1.0 - 0.5 / rows)
    spread = float((n * (totals[counts > 0] / n - mean) ** 2).sum()) / (mean * (1.0 - mean))
    # The expected spread is arms − 1 where all arms are alike, and grows with their correlation 1/(a + b + 1).
    most = rows - float((n * n).sum()) / rows - (arms - 1)
    weight = rows / arms
    correlation = (spread - (arms - 1)) / most if most > 0.0 else 0.0
    if correlation > 0.0:
        weight = max(min(weight, 1.0 / correlation - 1.0), 1.0)
    return weight * mean, weight * (1.0 - mean)
