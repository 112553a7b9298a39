"""The index algorithms over arms, which are named compositions of cells, index and selector."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from artreplay.algorithms.algorithm import ArmAlgorithm, RewardRange
from artreplay.algorithms.bonus import Bonus, Level, Theory, kl, theory
from artreplay.algorithms.composition import IndexAlgorithm
from artreplay.algorithms.drift_indices import DriftIndex, drift_index
from artreplay.algorithms.indices import MeanIndex, linear_index, mean_index
from artreplay.algorithms.open_index import Available, OpenIndex, write_best_of
from artreplay.algorithms.psi import Psi, SubGaussian, bound_of_psi, hoeffding
from artreplay.algorithms.segments import TopInSegment, best_in_segment
from artreplay.algorithms.selectors import best, top
from artreplay.algorithms.tally import Tally
from artreplay.cells import Arms, feature_components
from artreplay.compiling import Floats, Ints
from artreplay.errors import InvalidParameter
from artreplay.history import Label
from artreplay.parameters import REQUIRED, Count, NotNegative, Positive, checked


class IndexArmAlgorithm(ArmAlgorithm):
    """An algorithm whose component is an `IndexAlgorithm`."""

    exact = True
    takes_totals = True
    component: IndexAlgorithm

    def allow_drift(self) -> None:
        """Let rows of a log have allowances for drift. Call this before anything is shown."""
        self.component = self.component._replace(index=drift_index(self.component.index))

    def with_open(self, units: Iterable[int]) -> Any:
        """Return an object that chooses while these units are open, by lower indices or, for `LinUCB`, by a copy."""
        if isinstance(self.component.index, (MeanIndex, DriftIndex)):
            return OpenIndex(self, units)
        return super().with_open(units)

    def propose_among(self, out: Ints, round_: int, available: Available | None) -> int:
        """Write the available arms with the highest indices, and return how many there are."""
        if available is None:
            return super().propose_among(out, round_, None)
        return write_best_of(self, self.component.index.value, available, out)

    @property
    def segment_at_hand(self) -> int:
        """From which segment is chosen; 0 where there are none."""
        return 0 if self.contexts is None else int(self.component.selector.segment[0])

    def best_selector(self, value: Floats) -> Any:
        """The selector of one arm."""
        return best(value) if self.contexts is None else best_in_segment(value, self.n_segments)

    @property
    def tally(self) -> Tally:
        """The count and the sum of the samples of each arm."""
        tally: Tally = self.component.index.tally
        return tally

    def _values(self) -> Floats | None:
        values: Floats = self.component.index.value[:-1]
        return values


class MonUCB(IndexArmAlgorithm):
    """Play the arm with the highest index, where index ← min(index, mean + √(2 log T / n)): the paper's algorithm.

    Among equals it plays the first arm.

    Parameters
    ----------
    n_arms
        The number of arms, which are then called 0 to n − 1. Leave it out where `arms` names them.
    horizon
        The number of rounds to come. The order of magnitude is enough.
    arms
        The names of the arms, as they stand in the log.
    contexts
        An `ar.Contexts` with segments, for an algorithm that is asked and told with a context and is one algorithm for
        each segment. The horizon is then the number of rounds to come in each segment.
    bonus
        How far an index lies above the mean: one of `ar.bonus`, or a function of the number of samples.
    reward_range
        The lowest and the highest reward there can be.

    >>> import artreplay as ar
    >>> history = ar.History(["red", "red", "blue"], [0.0, 0.0, 1.0])
    >>> policy = ar.ArtificialReplay(ar.MonUCB(arms=["red", "blue"], horizon=2), history)
    >>> policy.ask()
    'blue'
    """

    summary = "highest index mean + √(2 log T / n), never rising"

    @checked
    def __init__(
        self,
        n_arms: int | None = None,
        horizon: Count = REQUIRED,
        *,
        arms: Iterable[Label] | None = None,
        contexts: Any = None,
        bonus: Bonus = theory,
        reward_range: RewardRange = (0.0, 1.0),
    ) -> None:
        super().__init__(n_arms, arms, reward_range)
        self.horizon = horizon
        self.hear_segments(contexts)
        index = mean_index(self.n_units, self._bound_of(bonus, self.n_arms, _scale))
        self.component = IndexAlgorithm(
            Arms(self.n_units), index, self.best_selector(index.value), np.zeros(1, np.int64)
        )


class KLUCB(IndexArmAlgorithm):
    """Play the arm with the highest index by the Kullback-Leibler divergence: the algorithm to begin with.

    The index of an arm is the lowest value that the largest q with n·kl(mean, q) ≤ g(n) has had so far; `ar.bonus.kl`
    explains the levels g. Among equals it plays the first arm. It explores far less than `MonUCB`, and learns from rare
    rewards, such as clicks. After the horizon it goes on as before, and explores less and less.

    Parameters
    ----------
    n_arms
        The number of arms, which are then called 0 to n − 1. Leave it out where `arms` names them.
    horizon
        The number of rounds to come. A policy adds the rows of the log it is made with.
    level
        How much it explores: "++", "log" (more) or "moss" (less). See `ar.bonus.kl`.
    arms
        The names of the arms, as they stand in the log.
    contexts
        An `ar.Contexts` with segments, for an algorithm that is asked and told with a context and is one algorithm for
        each segment. The horizon is then the number of rounds to come in each segment.
    reward_range
        The lowest and the highest reward there can be.

    >>> import artreplay as ar
    >>> history = ar.History(["red", "blue"] * 50, [0, 1, 0, 0] * 25)
    >>> policy = ar.ArtificialReplay(ar.KLUCB(arms=["red", "blue"], horizon=1000), history)
    >>> policy.ask(), policy.used
    ('blue', 57)
    """

    summary = "highest bound by the Kullback-Leibler divergence, never rising; recommended"

    @checked
    def __init__(
        self,
        n_arms: int | None = None,
        horizon: Count = REQUIRED,
        *,
        level: Level = "++",
        arms: Iterable[Label] | None = None,
        contexts: Any = None,
        reward_range: RewardRange = (0.0, 1.0),
    ) -> None:
        super().__init__(n_arms, arms, reward_range)
        self.horizon = horizon
        self.hear_segments(contexts)
        self.level = level
        index = mean_index(self.n_units, self._bound_of(kl(level), self.n_arms, _scale))
        self.component = IndexAlgorithm(
            Arms(self.n_units), index, self.best_selector(index.value), np.zeros(1, np.int64)
        )


class TopUCB(IndexArmAlgorithm):
    """Play the `budget` arms with the highest indices of `MonUCB`. Each arm has a reward of its own.

    Parameters
    ----------
    n_arms
        The number of arms, which are then called 0 to n − 1. Leave it out where `arms` names them.
    budget
        The number of arms in one round.
    horizon
        The number of rounds to come. The order of magnitude is enough.
    arms
        The names of the arms, as they stand in the log.
    contexts
        An `ar.Contexts` with segments, for an algorithm that is asked and told with a context and is one algorithm for
        each segment. The horizon is then the number of rounds to come in each segment.
    bonus
        How far an index lies above the mean: one of `ar.bonus`, or a function of the number of samples.
    reward_range
        The lowest and the highest reward there can be.

    >>> import artreplay as ar
    >>> ar.TopUCB(5, budget=2, horizon=100).propose()
    [0, 1]
    """

    summary = "the B highest indices of MonUCB"
    proposes_list = True

    @checked
    def __init__(
        self,
        n_arms: int | None = None,
        budget: Count = REQUIRED,
        horizon: Count = REQUIRED,
        *,
        arms: Iterable[Label] | None = None,
        contexts: Any = None,
        bonus: Bonus = theory,
        reward_range: RewardRange = (0.0, 1.0),
    ) -> None:
        super().__init__(n_arms, arms, reward_range)
        self.budget = checked_budget(budget, self.n_arms)
        self.horizon = horizon
        self.hear_segments(contexts)
        index = mean_index(self.n_units, self._bound_of(bonus, self.n_arms, _scale))
        if self.contexts is None:
            selector: Any = top(index.value, self.budget)
        else:
            selector = TopInSegment(np.zeros(1, np.int64), self.n_segments, self.budget)
        self.component = IndexAlgorithm(Arms(self.n_units), index, selector, np.zeros(1, np.int64))

    @property
    def width(self) -> int:
        """The most units in one proposal."""
        return self.budget


class PsiUCB(IndexArmAlgorithm):
    """Play the arm with the highest index mean + (ψ*)⁻¹(2 log(TK)/n), which never rises.

    Parameters
    ----------
    n_arms
        The number of arms, which are then called 0 to n − 1. Leave it out where `arms` names them.
    horizon
        The number of rounds to come. The order of magnitude is enough.
    psi
        What is known of the rewards: one of `ar.psi`, or a function of your own.
    arms
        The names of the arms, as they stand in the log.
    contexts
        An `ar.Contexts` with segments, for an algorithm that is asked and told with a context and is one algorithm for
        each segment. The horizon is then the number of rounds to come in each segment.
    reward_range
        The lowest and the highest reward there can be. Leave it out with `ar.psi.sub_gaussian`.

    >>> import artreplay as ar
    >>> ar.PsiUCB(3, horizon=100, psi=ar.psi.bernoulli_kl).propose()
    0
    """

    summary = "highest index mean + (ψ*)⁻¹(2 log(TK)/n), never rising"

    @checked
    def __init__(
        self,
        n_arms: int | None = None,
        horizon: Count = REQUIRED,
        psi: Psi = hoeffding,
        *,
        arms: Iterable[Label] | None = None,
        contexts: Any = None,
        reward_range: RewardRange | None = None,
    ) -> None:
        bounded = not isinstance(psi, SubGaussian)
        if reward_range is None:
            reward_range = (0.0, 1.0) if bounded else (-math.inf, math.inf)
        super().__init__(n_arms, arms, reward_range, bounded)
        if not bounded and self.reward_range[1] != math.inf:
            raise InvalidParameter("reward_range must be left out with sub_gaussian, which takes all rewards")
        self.horizon = horizon
        self.hear_segments(contexts)
        self.psi = psi
        bound, self.table = bound_of_psi(psi, 2.0 * math.log(self.horizon * self.n_arms))
        index = mean_index(self.n_units, bound, start=1.0 if bounded else math.inf)
        self.component = IndexAlgorithm(
            Arms(self.n_units), index, self.best_selector(index.value), np.zeros(1, np.int64)
        )


class LinUCB(IndexArmAlgorithm):
    """Play the arm with the highest index φ·θ̂ + α√(φᵀV⁻¹φ), which never rises, where rewards are linear in features φ.

    Arms whose features are connected share one cell and one regression. With dense features that is one cell, and
    Artificial Replay reads the whole log, as Full Start does; it pays where features are block-sparse.

    Parameters
    ----------
    features
        A matrix with one row of features for each arm.
    horizon
        The number of rounds to come. The order of magnitude is enough.
    alpha
        How far an index lies above the estimate; by default 1 + √(log(2T)/2), where T is the horizon.
    ridge
        The weight of the prior, a multiple of the identity.
    arms
        The names of the arms, as they stand in the log.
    reward_range
        The lowest and the highest reward there can be.

    >>> import artreplay as ar
    >>> ar.LinUCB([[1, 0], [0, 1], [0.5, 0]], horizon=100).cell_of_arms().tolist()
    [0, 1, 0]
    """

    summary = "highest φ·θ̂ + α√(φᵀV⁻¹φ), never rising; cells are feature components"
    takes_totals = False

    @checked
    def __init__(
        self,
        features: Any,
        horizon: Count,
        alpha: NotNegative | None = None,
        ridge: Positive = 1.0,
        *,
        arms: Iterable[Label] | None = None,
        reward_range: RewardRange = (0.0, 1.0),
    ) -> None:
        try:
            self.features = np.array(features, dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidParameter("features must be a matrix of numbers with one row per arm") from None
        if self.features.ndim != 2 or self.features.size == 0:
            raise InvalidParameter(f"features must have shape (arms, d), got {self.features.shape}")
        if not np.isfinite(self.features).all():
            arm = int(np.flatnonzero(~np.isfinite(self.features).all(axis=1))[0])
            raise InvalidParameter(f"features of arm {arm} must be finite, got {self.features[arm].tolist()}")
        super().__init__(None if arms is not None else len(self.features), arms, reward_range)
        if len(self.features) != self.n_arms:
            raise InvalidParameter(
                f"features must have one row per arm, got {len(self.features)} for {self.n_arms} arms"
            )
        self.horizon = horizon
        self.alpha = 1.0 + math.sqrt(math.log(2 * horizon) / 2.0) if alpha is None else alpha
        self.ridge = ridge
        cells = feature_components(self.features)
        index = linear_index(self.features, cells, self.alpha, self.ridge)
        self.component = IndexAlgorithm(cells, index, best(index.value), np.zeros(self.n_arms, np.int64))

    allow_drift = ArmAlgorithm.allow_drift  # a regression is shared by arms, and has no two means to compare

    def cell_of_arms(self) -> Ints:
        """The feature component of each arm."""
        cells: Ints = self.component.cells.cell.copy()
        return cells


def _scale(theory: Theory, horizon: int) -> float:
    """b(n)²·n of the paper's √(2 log T / n)."""
    return 2.0 * math.log(horizon)


def checked_budget(budget: int, n_arms: int) -> int:
    """Check the number of arms in one round."""
    if budget > n_arms:
        raise InvalidParameter(f"budget must be at most the number of arms, got {budget} of {n_arms}")
    return budget
