"""Environments with arms. They draw mean rewards and logs, and know the best expected reward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np

from artreplay.compiling import Floats, Ints, Loop, Words
from artreplay.environments.stack import AHEAD, ArmRewards, Bernoulli, Beta, Law, TruncatedNormal, Worlds, true_means
from artreplay.errors import InvalidParameter, checked_count
from artreplay.history import History
from artreplay.parameters import Count, Seed, Share, checked, checked_seed
from artreplay.streams import FEATURES, LOG_WEIGHT, MEANS, THETA, fold, fold_each, uniforms

Rewards = Literal["bernoulli", "beta", "normal"]
LogShares = Literal["uniform", "random"]
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
        How often each arm is in a log: `"uniform"` for equally often, `"random"` for weights drawn in each replication,
        or a list of weights.
    rewards
        The distribution of the rewards around the mean of an arm: `"bernoulli"`, `"beta"`, or `"normal"`, which is
        truncated to [0, 1].
    bad_share
        The share of the log on the worst fifth of the arms. The other arms share the rest in the proportions of `log`.
    """

    reward_range: tuple[float, float] = (0.0, 1.0)

    @checked
    def __init__(
        self,
        n_arms: Count,
        budget: Count,
        log: str | Sequence[float],
        rewards: Rewards,
        bad_share: Share | None,
    ) -> None:
        self.n_arms, self.budget = n_arms, budget
        if self.budget > self.n_arms:
            raise InvalidParameter(f"budget must be at most the number of arms, got {self.budget} of {self.n_arms}")
        self.rewards: Rewards = rewards
        self.log: str | Floats = log if isinstance(log, str) else _checked_weights(log, self.n_arms)
        if isinstance(log, str) and log not in get_args(LogShares):
            raise InvalidParameter(f'log must be "uniform", "random" or one weight per arm, got {log!r}')
        self.bad_share = bad_share
        if bad_share is not None and n_arms < 2:
            raise InvalidParameter(f"bad_share needs at least 2 arms, got {n_arms}")

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
        return Worlds(keys, base_keys, means, truth, optimum, self._cumulative_shares(keys, means))

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
        rewards = self.stack(self.worlds(keys, keys))
        size = checked_count("size", size, least=0)
        arms, values = np.empty(size, np.int64), np.empty(size)
        draw_log(rewards, arms, values)
        return History(arms, values)

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

    def _cumulative_shares(self, keys: Words, means: Floats) -> Floats:
        if isinstance(self.log, str) and self.log == "uniform" and self.bad_share is None:
            return np.empty((len(keys), 0))
        weights = np.ones(means.shape)
        if isinstance(self.log, np.ndarray):
            weights[:] = self.log
        elif self.log == "random":
            weights = uniforms(keys, LOG_WEIGHT, self.n_arms)
        if self.bad_share is not None:
            n_bad = max(1, self.n_arms // 5)
            for row, mean in zip(weights, means, strict=True):
                order = np.argsort(mean, kind="stable")
                for group, share in ((order[:n_bad], self.bad_share), (order[n_bad:], 1.0 - self.bad_share)):
                    total = row[group].sum()
                    row[group] = row[group] / total * share if total > 0 else share / len(group)
        shares = np.cumsum(weights, axis=1)
        shares /= shares[:, -1:]
        for row, weight in zip(shares, weights, strict=True):
            row[np.flatnonzero(weight)[-1] :] = 1.0  # rounding must not leave a gap above the last arm
        return shares

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
        How often each arm is in a log: `"uniform"` for equally often, `"random"` for weights drawn in each replication,
        or a list of weights.
    rewards
        The distribution of the rewards around the mean of an arm: `"bernoulli"`, `"beta"`, or `"normal"`, which is
        truncated to [0, 1].
    bad_share
        The share of the log on the worst fifth of the arms. The other arms share the rest in the proportions of `log`.
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
        log: str | Sequence[float] = "uniform",
        rewards: Rewards = "bernoulli",
        bad_share: float | None = None,
        *,
        budget: int = 1,
    ) -> None:
        super().__init__(n_arms, budget, log, rewards, bad_share)
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
    log, rewards, bad_share
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
        log: str | Sequence[float] = "uniform",
        rewards: Rewards = "bernoulli",
        bad_share: float | None = None,
    ) -> None:
        super().__init__(n_arms, means, log, rewards, bad_share, budget=budget)


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
    log, rewards, bad_share
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
        log: str | Sequence[float] = "uniform",
        rewards: Rewards = "bernoulli",
        bad_share: float | None = None,
        seed: Seed = 0,
    ) -> None:
        super().__init__(n_arms, 1, log, rewards, bad_share)
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
def draw_log(rewards: Any, arms: Ints, values: Floats) -> int:
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


def _checked_weights(weights: Sequence[float], n_arms: int) -> Floats:
    values = _numbers("log", weights)
    if values.shape != (n_arms,) or not np.isfinite(values).all() or (values < 0.0).any() or values.sum() <= 0.0:
        raise InvalidParameter(
            f"log must have one weight of at least 0 for each of {n_arms} arms, and one above 0, got {values.tolist()}"
        )
    return values
