"""Thompson sampling with a Beta prior, which may be fitted to the log."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np

from artreplay.algorithms.algorithm import RewardRange
from artreplay.algorithms.valued import PosteriorDraw, ValuedAlgorithm, valued_arms
from artreplay.compiling import Floats, Ints
from artreplay.errors import InvalidParameter, checked_number
from artreplay.history import Label
from artreplay.parameters import Seed, checked

Prior = tuple[float, float] | Literal["log"]


class ThompsonSampling(ValuedAlgorithm):
    """Play the arm with the highest draw from the posterior of its mean, which begins at Beta(a, b).

    Artificial Replay is exact, because it reads rows until they cannot change which draw is the highest. A draw is a
    quantile of the posterior, which depends on the online round and the arm.

    Parameters
    ----------
    n_arms
        The number of arms, which are then called 0 to n − 1. Leave it out where `arms` names them.
    seed
        The seed of everything it draws at random.
    prior
        The pair (a, b), which counts as `a` rewards of 1 and `b` rewards of 0 for every arm. It matters where rewards
        are rare. With "log", a new policy reads the whole log and fits the pair to what the arms earned. Without a log
        it is (1, 1).
    arms
        The names of the arms, as they stand in the log.
    contexts
        An `ar.Contexts` with segments, for an algorithm that is asked and told with a context and is one algorithm for
        each segment.
    reward_range
        The lowest and the highest reward there can be.

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
        contexts: Any = None,
        reward_range: RewardRange = (0.0, 1.0),
    ) -> None:
        super().__init__(n_arms, arms, reward_range)
        self.hear_segments(contexts)
        self.seed = seed
        self.prior = checked_prior(prior)
        if self.prior == "log" and self.contexts is not None:
            raise InvalidParameter('must be a pair (a, b) with contexts, got "log"', parameter="prior")
        self.wants_totals = self.prior == "log"
        a, b = (1.0, 1.0) if self.prior == "log" else self.prior
        self.component = valued_arms(PosteriorDraw(np.zeros(1, np.uint64), a, b), self.n_arms, self.n_segments)
        self.reseed(self.seed)

    def take_totals(self, counts: Ints, totals: Floats) -> None:
        """Fit the prior to the number of rows of each arm and the sum of their rewards. It never changes again."""
        self.prior, self.wants_totals = fitted_prior(counts, totals), False
        a, b = self.prior
        valued = self.valued._replace(rule=self.valued.rule._replace(a=a, b=b))
        self.component = self.component._replace(rule=valued) if self._is_certified else valued

    def _values(self) -> Floats | None:
        return None  # the draws differ in every round


def checked_prior(prior: Any) -> Prior:
    """A prior as two positive numbers, or "log"."""
    if isinstance(prior, str) and prior == "log":
        return "log"
    pair = list(prior) if isinstance(prior, (tuple, list, np.ndarray)) else []
    if len(pair) != 2:
        raise InvalidParameter(f'must be a pair (a, b) of numbers above 0, or "log", got {prior!r}', parameter="prior")
    a, b = (checked_number("prior", value) for value in pair)
    if not (0.0 < a < math.inf and 0.0 < b < math.inf):
        raise InvalidParameter(f"must be two finite numbers above 0, got ({a}, {b})", parameter="prior")
    return a, b


def fitted_prior(counts: Ints, totals: Floats) -> tuple[float, float]:
    """Fit a Beta distribution to the mean and the spread of the arms' means, without what chance adds to the spread.

    It never weighs more than the rows of an average arm. It is (1, 1) if fewer than two arms have rows.

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
