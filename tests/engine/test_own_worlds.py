"""Worlds of the user's own: drifting means, rewards without bounds, rewards that are late; compiled where marked."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import pytest

import artreplay as ar
from artreplay.errors import InvalidParameter, NotCompilable

NORMAL = NormalDist()


class Coins:
    """Bernoulli arms, as KArmed has them."""

    n_arms = 3
    chances = (0.2, 0.5, 0.8)

    def mean(self, arm: int, round: int) -> float:
        return self.chances[arm]

    def reward(self, arm: int, round: int, u: float) -> float:
        return float(u < self.chances[arm])


class Drifting(Coins):
    """The best arm falls behind after ten rounds, and the log was made when it was best."""

    def mean(self, arm: int, round: int) -> float:
        return 0.5 if arm == 0 else 0.9 if round < 10 and arm == 1 else 0.1

    def reward(self, arm: int, round: int, u: float) -> float:
        return float(u < self.mean(arm, round))


class Unbounded(Coins):
    """Normal rewards around 0, 1 and 2."""

    reward_range = (-math.inf, math.inf)

    def mean(self, arm: int, round: int) -> float:
        return float(arm)

    def reward(self, arm: int, round: int, u: float) -> float:
        return arm + NORMAL.inv_cdf(u)


class Late(Coins):
    """Rewards come up to four rounds late."""

    def delay(self, arm: int, round: int, u: float) -> int:
        return int(5 * u)


@ar.compiled
class Marked(NamedTuple):
    """The coins as a component."""

    chance: Any
    n_arms: int

    def enter(self, key):
        pass

    def mean(self, arm, round_):
        return self.chance[arm]

    def reward(self, arm, round_, u):
        return 1.0 if u < self.chance[arm] else 0.0


def run(env: Any, base: Any = None, **more: Any) -> ar.Runs:
    base = ar.MonUCB(3, 40) if base is None else base
    return ar.simulate(base, env, **({"history": 30, "horizon": 40, "replications": 5, "seed": 3} | more))


def test_own_coins_are_the_coins_of_the_package() -> None:
    mine, theirs = run(Coins()), run(ar.environments.KArmed(3, means=Coins.chances))
    assert (mine.actions == theirs.actions).all()
    assert np.allclose(mine.regret, theirs.regret)
    assert (mine.used == theirs.used).all()


def test_a_marked_world_is_the_same() -> None:
    marked = Marked(np.array(Coins.chances), 3)
    with ar.compiling.using("interpreted"):
        assert (run(marked).actions == run(Coins()).actions).all()


def test_a_marked_world_with_a_list_is_refused() -> None:
    with pytest.raises(NotCompilable, match=r"Marked\.chance must be .* got a list"):
        run(Marked([0.2, 0.5, 0.8], 3))


@pytest.mark.long
def test_a_marked_world_is_compiled() -> None:
    with ar.compiling.using("compiled"):
        assert (run(Marked(np.array(Coins.chances), 3)).actions == run(Coins()).actions).all()


@pytest.mark.parametrize("env", [Coins(), Drifting(), Late()], ids=["coins", "drifting", "late"])
def test_replay_is_full_start_in_any_world(env) -> None:
    for base in (ar.MonUCB(3, 40), ar.UCB1(3)):
        replay, full = (run(env, base, start=start) for start in ("artificial-replay", "full-start"))
        assert (replay.actions == full.actions).all()


def test_regret_follows_means_that_drift() -> None:
    runs = run(Drifting(), ar.RandomChoice(3), start="ignorant")
    steps = np.diff(runs.regret, axis=1, prepend=0.0)
    best = np.where(np.arange(40) < 10, 0.9, 0.5)
    means = np.vectorize(Drifting().mean)(runs.actions, np.arange(40)[None, :])
    assert np.allclose(steps, best - means)


def test_rewards_without_bounds() -> None:
    base = ar.PsiUCB(3, 40, psi=ar.psi.sub_gaussian(1.0), reward_range=(-math.inf, math.inf))
    runs = run(Unbounded(), base, history=200)
    assert (runs.actions[:, -1] == 2).mean() > 0.5
    with pytest.raises(InvalidParameter, match=r"reward_range must cover the environment's \[-inf, inf\]"):
        run(Unbounded())


def test_late_rewards_cost_something() -> None:
    soon, late = (run(env, history=0, replications=30).regret[:, -1].mean() for env in (Coins(), Late()))
    assert late > soon


def test_replay_is_full_start_where_rewards_are_late_and_the_log_drifts() -> None:
    replay, full = (
        run(Late(), ar.KLUCB(3, 70), start=start, drift=0.1) for start in ("artificial-replay", "full-start")
    )
    assert (replay.actions == full.actions).all()
    assert (run(Late(), ar.KLUCB(3, 70)).actions != full.actions).any()


def test_labelled_arms_in_a_world_with_delays() -> None:
    runs = run(Late(), ar.MonUCB(arms=["a", "b", "c"], horizon=40))
    assert set(np.unique(runs.actions)) <= {0, 1, 2}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"reward": lambda self, arm, round, u: [u, u]}, r"Wrong.reward must return one number, got \["),
        ({"reward": lambda self, arm, round, u: 2.0}, r"what Wrong.reward returns must lie in its reward_range"),
        ({"mean": lambda self, arm, round: math.nan}, r"what Wrong.mean returns must be finite, got nan"),
        ({"delay": lambda self, arm, round, u: -1}, r"Wrong.delay must return a number of rounds, at least 0, got -1"),
        ({"n_arms": 0}, r"Wrong.n_arms must be at least 1, got 0"),
    ],
)
def test_a_world_that_says_nonsense_is_refused(change, sentence) -> None:
    wrong = type("Wrong", (Coins,), change)
    with pytest.raises(InvalidParameter, match=sentence):
        run(wrong())


def test_rounds_to_keep() -> None:
    env = ar.environments.KArmed(3)
    whole, some = run(env), run(env, keep=[0, 9, 39])
    for name in ("regret", "used", "actions"):
        assert (getattr(some, name) == getattr(whole, name)[:, [0, 9, 39]]).all()
    assert some.to_frame()["round"].to_pylist()[:3] == [0, 9, 39]
    for bad in ([], [40], [3, 3], [2, 1], "some", [0.5]):
        with pytest.raises(InvalidParameter, match="keep"):
            run(env, keep=bad)


class Slate(Coins):
    """Two arms a round, whose means change places after ten rounds."""

    budget = 2

    def mean(self, arm: int, round: int) -> float:
        return self.chances[arm if round < 10 else 2 - arm]

    def reward(self, arm: int, round: int, u: float) -> float:
        return float(u < self.mean(arm, round))


@ar.compiled
class MarkedSlate(NamedTuple):
    """The same as a component."""

    chance: Any
    n_arms: int
    budget: int

    def enter(self, key):
        pass

    def mean(self, arm, round_):
        return self.chance[arm if round_ < 10 else 2 - arm]

    def reward(self, arm, round_, u):
        return 1.0 if u < self.chance[arm if round_ < 10 else 2 - arm] else 0.0


class Noisy(Unbounded):
    """Means with noise of heavy tails, made of several draws."""

    def reward(self, arm: int, round: int, u: float) -> float:
        draws = np.random.default_rng(int(u * 2**53))
        return arm + float(draws.standard_t(3) + draws.laplace())


def test_several_arms_a_round() -> None:
    base = ar.TopUCB(3, 2, 40)
    mine, theirs = (
        run(Slate(), base, horizon=10),
        run(ar.environments.TopArms(3, 2, means=Coins.chances), base, horizon=10),
    )
    assert (mine.actions == theirs.actions).all()
    assert np.allclose(mine.regret, theirs.regret)
    runs = run(Slate(), ar.RandomChoice(3, 2), start="ignorant")
    assert runs.actions.shape == (5, 40, 2) == runs.rewards.shape
    means = np.vectorize(Slate().mean)(runs.actions, np.arange(40)[None, :, None]).sum(axis=2)
    assert np.allclose(np.diff(runs.regret, axis=1, prepend=0.0), 1.3 - means)
    with pytest.raises(InvalidParameter, match="the algorithm plays 1 arms in a round, and the environment expects 2"):
        run(Slate())
    with pytest.raises(InvalidParameter, match="budget must be at most the number of arms, got 4 of 3"):
        run(type("Wide", (Slate,), {"budget": 4})(), base)


@pytest.mark.parametrize("mode", ["interpreted", pytest.param("compiled", marks=pytest.mark.long)])
def test_a_marked_world_of_several_arms_is_the_same(mode) -> None:
    base, marked = ar.TopUCB(3, 2, 40), MarkedSlate(np.array(Coins.chances), 3, 2)
    with ar.compiling.using(mode):
        one, other = run(marked, base), run(Slate(), base)
    assert (one.actions == other.actions).all()
    assert (one.regret == other.regret).all()


def test_late_rewards_of_several_arms() -> None:
    late = type("LateSlate", (Slate,), {"delay": lambda self, arm, round, u: int(5 * u)})
    replay, full = (run(late(), ar.TopUCB(3, 2, 40), start=start) for start in ("artificial-replay", "full-start"))
    assert (replay.actions == full.actions).all()


def test_noise_of_any_kind_is_the_same_for_every_policy() -> None:
    base = ar.PsiUCB(3, 40, psi=ar.psi.sub_gaussian(2.0), reward_range=(-math.inf, math.inf))
    replay, other = run(Noisy(), base), run(Noisy(), ar.RandomChoice(3, reward_range=(-math.inf, math.inf)))
    assert abs(replay.rewards).max() > 4.0
    for world in range(5):
        for arm in range(3):
            pulls = [runs.rewards[world][runs.actions[world] == arm] for runs in (replay, other)]
            shared = min(map(len, pulls))
            assert (pulls[0][:shared] == pulls[1][:shared]).all()
