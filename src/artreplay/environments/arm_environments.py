"""Environments with arms. They draw mean rewards and logs, and know the best expected reward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from artreplay.compiling import Floats, Ints, Loop, Words
from artreplay.environments.logs import Logged, LoggingPolicy, LogLike, Shares, as_logging_policy, drawn_log
from artreplay.environments.past_rounds import PastRounds, rewards_by_law
from artreplay.environments.stack import AHEAD, ArmRewards, Bernoulli, Beta, Law, TruncatedNormal, Worlds, true_means
from artreplay.errors import InvalidParameter, checked_count
from artreplay.history import History
from artreplay.parameters import Count, Seed, checked, checked_seed
from artreplay.streams import FEATURES, MEANS, THETA, fold, fold_each, uniforms

Rewards = Literal["bernoulli", "beta", "normal"]
_LAWS: dict[str, Law] = {"bernoulli": Bernoulli(), "beta": Beta(), "normal": TruncatedNormal()}


class ArmEnvironment:
    """Simulate finitely many arms with independent rewards in [0, 1]. This is the base class of `KArmed` and others.

    Parameters
    ----------
    n_arms
        The number of arms.
    budget
        The number of arms that are played in one round.
    log
        How the log was made: `"uniform"` for all arms equally often, `"random"` for shares drawn in each replication, a
        list of weights, or a logging policy of `ar.environments.logs`, such as `logs.EpsilonGreedy(0.1)`.
    rewards
        The distribution of the rewards around the mean of an arm: `"bernoulli"`, `"beta"`, or `"normal"`, which is
        truncated to [0, 1].
    """

    reward_range: tuple[float, float] = (0.0, 1.0)

    @checked
    def __init__(
        self,
        n_arms: Count,
        budget: Count,
        log: LogLike,
        rewards: Rewards,
    ) -> None:
        self.n_arms, self.budget = n_arms, budget
        if self.budget > self.n_arms:
            raise InvalidParameter(f"budget must be at most the number of arms, got {self.budget} of {self.n_arms}")
        self.rewards: Rewards = rewards
        self.log: LoggingPolicy = as_logging_policy(log, n_arms)

    @property
    def width(self) -> int:
        """The most units in one action."""
        return self.budget

    def draw_means(self, keys: Words) -> Floats:
        """Draw the parameter of each arm's reward distribution, in one row for each of these keys of replications."""
        raise NotImplementedError

    def worlds(self, keys: Words, base_keys: Words) -> Worlds:
        """Make the worlds of the replications with these keys."""
        means = np.ascontiguousarray(self.draw_means(keys), dtype=np.float64)
        truth = true_means(means, self.law)
        best = np.sort(truth, axis=1)[:, ::-1][:, : self.budget]
        optimum = np.zeros(len(keys))
        for place in range(self.budget):  # the order must not depend on the number of replications
            optimum += best[:, place]
        shares = self.log.cumulative(keys, means) if isinstance(self.log, Shares) else np.empty((len(keys), 0))
        return Worlds(keys, base_keys, means, truth, optimum, shares)

    @property
    def law(self) -> Law:
        """The distribution of a reward around its mean."""
        return _LAWS[self.rewards]

    def draw_history(self, size: int, seed: int = 0, replication: int = 0) -> History:
        """Draw the log that `simulate(seed=seed)` uses in one replication, to look at it or to use it elsewhere.

        Parameters
        ----------
        size
            The number of rows.
        seed
            The seed of the simulation.
        replication
            The number of the replication, counted from 0.

        >>> KArmed(3).draw_history(5, seed=1)
        <History of 5 rows on 3 arms>
        """
        keys = world_keys(seed, np.array([checked_count("replication", replication, least=0)]))
        size = checked_count("size", size, least=0)
        rewards = self.stack(self.worlds(keys, keys))
        rewards.enter(0)
        logged = self.draw_log(rewards, size)
        return History(logged.arms, logged.rewards)

    @property
    def draws_logs_in_loops(self) -> bool:
        """Whether the loop that plays draws the logs as well. Otherwise Python draws them, one after another."""
        return isinstance(self.log, Shares)

    def draw_log(self, rewards: Any, rows: int) -> Logged:
        """Draw the log of a world. `rewards` are those of the world, as `stack` makes them without another law."""
        if not self.draws_logs_in_loops:
            return drawn_log(self.log, self.past(rewards, rows))
        logged = Logged(np.empty(rows, np.int64), np.empty(rows))
        draw_all_rows(rewards, logged.arms, logged.rewards)
        return logged

    def past(self, rewards: Any, rows: int) -> PastRounds:
        """Return the rounds of a world in which its log is made."""
        law, key, mean = rewards.law, rewards.key[0], rewards.mean.copy()

        def draw(arms: Ints, means: Floats | None) -> Floats:
            return rewards_by_law(law, key, arms, mean[arms] if means is None else means)

        means = np.broadcast_to(mean, (rows, self.n_arms))
        return PastRounds(key, rows, self.n_arms, lambda: means, draw, self.reward_range)

    def history_of(self, rewards: Any, rows: int, base: Any) -> History:
        """Draw the log of a world with the labels of a base."""
        logged = self.draw_log(rewards, rows)
        labels = list(base.arms) if hasattr(base, "arms") else list(range(self.n_arms))
        return History.from_columns(logged.rewards, labels, logged.arms)

    def stack(self, worlds: Worlds, law: Law | None = None) -> ArmRewards:
        """Make the rewards of these worlds, beginning with the first. `law` replaces the distribution of rewards."""
        law = self.law if law is None else law
        return ArmRewards(
            worlds,
            world=np.zeros(1, np.int64),
            key=worlds.key[:1].copy(),
            mean=worlds.mean[0].copy(),
            truth=worlds.truth[0].copy(),
            pulls=np.zeros(self.n_arms, np.int64),
            ahead=np.empty((self.n_arms if isinstance(law, Bernoulli) else 0, AHEAD)),
            optimum=worlds.optimum[:1].copy(),
            law=law,
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.n_arms} arms, {self.budget} a round, {self.rewards} rewards>"


class KArmed(ArmEnvironment):
    """Simulate arms, one of which is played in each round.

    Parameters
    ----------
    n_arms
        The number of arms.
    means
        The mean reward of each arm. By default each replication draws them uniformly from [0, 1].
    log
        How the log was made: `"uniform"` for all arms equally often, `"random"` for shares drawn in each replication, a
        list of weights, or a logging policy of `ar.environments.logs`, such as `logs.EpsilonGreedy(0.1)`.
    rewards
        The distribution of the rewards around the mean of an arm: `"bernoulli"`, `"beta"`, or `"normal"`, which is
        truncated to [0, 1].
    budget
        The number of arms that are played in one round.

    >>> KArmed(3, means=[0.2, 0.5, 0.9], rewards="beta")
    <KArmed: 3 arms, 1 a round, beta rewards>
    """

    @checked
    def __init__(
        self,
        n_arms: int,
        means: Sequence[float] | None = None,
        log: LogLike = "uniform",
        rewards: Rewards = "bernoulli",
        *,
        budget: int = 1,
    ) -> None:
        super().__init__(n_arms, budget, log, rewards)
        self.means = None if means is None else _checked_means(means, self.n_arms)

    def draw_means(self, keys: Words) -> Floats:
        """Draw means uniformly from [0, 1], or use those of the user."""
        if self.means is None:
            return uniforms(keys, MEANS, self.n_arms)
        return np.broadcast_to(self.means, (len(keys), self.n_arms))


class TopArms(KArmed):
    """Simulate arms, `budget` of which are played in each round. Each of these has a reward of its own.

    Parameters
    ----------
    n_arms
        The number of arms.
    budget
        The number of arms that are played in one round.
    means
        The mean reward of each arm. By default each replication draws them uniformly from [0, 1].
    log, rewards
        As for `KArmed`.

    >>> TopArms(10, budget=3)
    <TopArms: 10 arms, 3 a round, bernoulli rewards>
    """

    @checked
    def __init__(
        self,
        n_arms: int,
        budget: int,
        means: Sequence[float] | None = None,
        log: LogLike = "uniform",
        rewards: Rewards = "bernoulli",
    ) -> None:
        super().__init__(n_arms, means, log, rewards, budget=budget)


class Linear(ArmEnvironment):
    """Simulate arms whose mean rewards are φ·θ, where φ are the features of an arm and θ is the same for all arms.

    Each replication draws a θ, whose entries are at least 0 and add up to 1. The features are the same in all
    replications. Give `env.features` to `LinUCB`.

    Parameters
    ----------
    n_arms
        The number of arms.
    dim
        The number of features of an arm.
    blocks
        With more than one block, arm a has nonzero features only in block a mod `blocks`, and θ adds up to 1 in every
        block.
    features
        The features in [0, 1], one row per arm. By default they are drawn uniformly, from `seed`.
    log, rewards
        As for `KArmed`.
    seed
        The seed of the features.

    >>> Linear(6, dim=4, blocks=2).features.round(1)[:2] > 0
    array([[ True,  True, False, False],
           [False, False,  True,  True]])
    """

    @checked
    def __init__(
        self,
        n_arms: int,
        dim: Count,
        blocks: Count = 1,
        features: Any = None,
        log: LogLike = "uniform",
        rewards: Rewards = "bernoulli",
        seed: Seed = 0,
    ) -> None:
        super().__init__(n_arms, 1, log, rewards)
        self.dim, self.blocks = dim, blocks
        if self.dim % self.blocks:
            raise InvalidParameter(f"dim must be a multiple of blocks, got {self.dim} and {self.blocks}")
        if features is None:
            key = np.array([fold(seed)], np.uint64)
            self.features = uniforms(key, FEATURES, n_arms * dim).reshape(n_arms, dim)
            own = np.arange(dim)[None, :] // (dim // self.blocks) == np.arange(n_arms)[:, None] % self.blocks
            self.features = np.where(own, self.features, 0.0)
        else:
            self.features = _numbers("features", features)
            if self.features.shape != (n_arms, dim) or not ((self.features >= 0) & (self.features <= 1)).all():
                raise InvalidParameter(
                    f"features must have shape ({n_arms}, {dim}) and lie in [0, 1], got shape {self.features.shape}"
                )

    def draw_means(self, keys: Words) -> Floats:
        """Draw a θ for each replication, and compute φ·θ."""
        theta = uniforms(keys, THETA, self.dim).reshape(len(keys), self.blocks, -1)
        shares = (theta / np.cumsum(theta, axis=2)[:, :, -1:]).reshape(len(keys), self.dim)
        means = np.zeros((len(keys), self.n_arms))
        for place in range(self.dim):  # the order must not depend on the number of replications
            means += self.features[:, place] * shares[:, place, None]
        return np.clip(means, 0.0, 1.0)


@Loop
def draw_all_rows(rewards: Any, arms: Ints, values: Floats) -> int:
    """Draw a whole log, in order."""
    rewards.draw_rows(0, len(arms), arms, values)
    return len(arms)


def world_keys(seed: int, replications: Ints) -> Words:
    """The keys of all random draws in these replications. They are the same for every policy and algorithm."""
    return fold_each(fold(checked_seed(seed)), replications)


def _numbers(name: str, values: Any) -> Floats:
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "fiub":
            raise ValueError
    except ValueError:
        raise InvalidParameter(f"{name} must be numbers, got {values!r}") from None
    return array.astype(np.float64)


def _checked_means(means: Sequence[float], n_arms: int) -> Floats:
    values = _numbers("means", means)
    if values.shape != (n_arms,):
        raise InvalidParameter(f"means must have one number for each of {n_arms} arms, got shape {values.shape}")
    if not ((values >= 0.0) & (values <= 1.0)).all():
        arm = int(np.flatnonzero(~((values >= 0.0) & (values <= 1.0)))[0])
        raise InvalidParameter(f"means must lie in [0, 1], got {values[arm]} for arm {arm}")
    return values
