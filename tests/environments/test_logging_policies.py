"""Logging policies: what each writes down, the same for every algorithm, in every environment of arms."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import artreplay as ar
from artreplay.environments import KArmed, OwnEnvironment, SmoothContexts, TopArms, logs, world_keys
from artreplay.environments.stack import Worlds
from artreplay.errors import InvalidParameter

MEANS = [0.2, 0.8, 0.5]


def by_turns(past: Any) -> Any:
    arms = np.arange(past.rows) % past.n_arms
    return arms, past.rewards(arms)


POLICIES: dict[str, Any] = {
    "shares": logs.Shares([1, 0, 2], bad_share=0.5),
    "ε-greedy": logs.EpsilonGreedy(0.3, noise=0.4),
    "UCB": logs.Adaptive(ar.MonUCB(3, 200)),
    "Thompson": logs.Adaptive(ar.ThompsonSampling(3)),
    "missing": logs.Missing("best", of=logs.EpsilonGreedy(0.2)),
    "biased": logs.Biased(0.2),
    "permuted": logs.Permuted(),
    "confounded": logs.Confounded(0.3, of=[1, 2, 3]),
    "poisoned at the front": logs.Poisoned(3, at_front=True),
    "poisoned": logs.Poisoned(3),
    "drifted": logs.Drifted({"best": -0.3, "others": 0.1}),
    "all of it": logs.Poisoned(2, of=logs.Permuted(of=logs.Confounded(0.2, of=logs.Biased(0.1)))),
    "a function": by_turns,
}
DEPENDS_ON_LENGTH = ("poisoned", "drifted", "all of it")


class Coins:
    """The same arms as those of KArmed, as a world of one's own."""

    n_arms = 3

    def mean(self, arm: int, round_: int) -> float:
        return MEANS[arm]

    def reward(self, arm: int, round_: int, u: float) -> float:
        return float(u < MEANS[arm])


def drawn(env: Any, rows: int, seed: int = 0, replication: int = 0) -> tuple[Any, Any]:
    history = env.draw_history(rows, seed=seed, replication=replication)
    return np.array([history.unit(row) for row in range(rows)], int), history.rewards


@pytest.mark.parametrize("name", [name for name in POLICIES if name not in DEPENDS_ON_LENGTH])
@given(seed=st.integers(0, 2**70), rows=st.integers(0, 20))
def test_a_shorter_log_begins_a_longer_one(name: str, seed: int, rows: int) -> None:
    env = KArmed(3, log=POLICIES[name])
    short, long = drawn(env, rows, seed), drawn(env, 25, seed)
    assert all((mine == theirs[:rows]).all() for mine, theirs in zip(short, long, strict=True))


@pytest.mark.parametrize("name", POLICIES)
def test_every_world_has_a_log_of_its_own_and_a_seed_gives_it_again(name: str) -> None:
    env = KArmed(3, log=POLICIES[name])
    found = [b"".join(part.tobytes() for part in drawn(env, 40, 5, replication)) for replication in (0, 1, 2, 0)]
    assert len(set(found)) == 3
    assert found[0] == found[3]


@pytest.mark.parametrize("name", POLICIES)
def test_simulations_play_the_log_that_draw_history_shows(name: str) -> None:
    env: Any = KArmed(3, log=POLICIES[name])
    for base in (ar.KLUCB(3, 20), ar.ThompsonSampling(3, seed=1)):
        runs = ar.simulate(base, env, history=40, horizon=15, replications=2, seed=3)
        for replication in range(2):
            key = world_keys(3, np.array([replication]))
            means = env.worlds(key, key).truth[0]
            log = env.draw_history(40, seed=3, replication=replication)
            alone = KArmed(3, means=means)
            given = ar.simulate(base, alone, history=log, horizon=15, replications=replication + 1, seed=3)
            assert (runs.actions[replication] == given.actions[replication]).all()
            assert (runs.used[replication] == given.used[replication]).all()


@pytest.mark.parametrize("name", POLICIES)
def test_a_world_of_ones_own_has_the_same_logs_in_distribution(name: str) -> None:
    """Logs of changed means move rewards in a world of one's own, and draw them anew in ours."""
    ours, own = KArmed(3, means=MEANS, log=POLICIES[name]), OwnEnvironment(Coins(), log=POLICIES[name])
    rewards = [np.concatenate([drawn(env, 400, 1, r)[1] for r in range(8)]).mean() for env in (ours, own)]
    assert abs(rewards[0] - rewards[1]) < 0.05
    runs = ar.simulate(ar.KLUCB(3, 20), own, history=40, horizon=10, replications=2)
    assert (runs.used[:, -1] > 0).all()


def test_both_speeds_draw_the_same_logs() -> None:
    for name in ("UCB", "Thompson", "all of it"):
        found = []
        for mode in ("interpreted", "compiled"):
            with ar.compiling.using(mode):  # type: ignore[arg-type]
                found.append(drawn(KArmed(3, log=POLICIES[name], rewards="beta"), 60, 2))
        assert all((one == other).all() for one, other in zip(*found, strict=True))


@given(seed=st.integers(0, 2**70), weights=st.sampled_from(["uniform", "random", (1.0, 0.0, 2.0)]))
def test_shares_are_drawn_alike_in_the_loop_and_in_python(seed: int, weights: Any) -> None:
    in_loop = KArmed(3, log=weights)
    in_python = KArmed(3, log=lambda past: logs.Shares(weights).draw(past))
    assert in_loop.draws_logs_in_loops
    assert not in_python.draws_logs_in_loops
    assert all(
        (one == other).all() for one, other in zip(drawn(in_loop, 50, seed), drawn(in_python, 50, seed), strict=True)
    )


def test_all_policies_and_starts_meet_the_same_log() -> None:
    env = TopArms(4, 2, log=logs.Permuted(of=logs.EpsilonGreedy(0.5)))
    starts = ("artificial-replay", "full-start")
    replay, full = (ar.simulate(ar.TopUCB(4, 2, 30), env, start, 60, 30, 5, seed=2) for start in starts)
    assert (replay.actions == full.actions).all()


def test_a_log_may_stand_under_labels_and_have_allowances() -> None:
    env = KArmed(3, log=logs.Biased({"worst": 0.4}))
    named = ar.simulate(ar.KLUCB(horizon=30, arms=["a", "b", "c"]), env, history=60, horizon=20, replications=3)
    plain = ar.simulate(ar.KLUCB(3, 30), env, history=60, horizon=20, replications=3)
    assert (named.actions == plain.actions).all()
    allowed = ar.simulate(ar.KLUCB(3, 30), env, history=60, horizon=20, replications=3, drift=0.4)
    assert (allowed.used != plain.used).any()


# -- what each writes down ---------------------------------------------------------------------------------------------


def means_by_arm(policy: Any, rows: int = 6_000) -> Any:
    arms, rewards = drawn(KArmed(3, means=MEANS, log=policy), rows)
    return [rewards[arms == arm].mean() if (arms == arm).any() else None for arm in range(3)]


def test_what_is_wrong_with_a_log_is_as_it_says() -> None:
    assert means_by_arm(logs.Biased([0.1, -0.3, 0.0])) == pytest.approx([0.3, 0.5, 0.5], abs=0.05)
    assert means_by_arm(logs.Drifted([0.4, -0.4, 0.0])) == pytest.approx([0.4, 0.6, 0.5], abs=0.05)
    assert means_by_arm(logs.Permuted(shift=1)) == pytest.approx([0.5, 0.2, 0.8], abs=0.05)
    assert means_by_arm(logs.Missing([0, 2])) == [None, pytest.approx(0.8, abs=0.05), None]
    assert means_by_arm(logs.Poisoned(2_000, arm=1)) == pytest.approx([0.2, 0.32, 0.5], abs=0.05)
    confounded = means_by_arm(logs.Confounded(0.2, arm="worst", share=0.8))
    assert confounded[0] > 0.28
    assert confounded[1] < 0.75
    arms, rewards = drawn(KArmed(3, means=MEANS, log=logs.Confounded(0.2, share=0.0)), 6_000)
    assert [rewards[arms == arm].mean() for arm in range(3)] == pytest.approx(MEANS, abs=0.05)


def test_an_adaptive_log_ends_on_the_best_arm_and_is_that_of_the_algorithm() -> None:
    env = KArmed(3, means=MEANS, log=logs.Adaptive(ar.UCB1(3)))
    arms, rewards = drawn(env, 800)
    assert (arms[-200:] == 1).mean() > 0.7
    policy = ar.Ignorant(ar.UCB1(3))
    for arm, reward in zip(arms.tolist(), rewards.tolist(), strict=True):
        assert policy.ask() == arm
        policy.tell(arm, reward)


def test_contexts_choose_the_best_arm_of_the_context() -> None:
    env = SmoothContexts(3, log=logs.EpsilonGreedy(0.0))
    key = world_keys(1, np.array([0]))[0]
    rows = env.log_rows(key, 50)
    assert rows.chances is not None
    assert (rows.chances == 1.0).all()
    assert rows.rewards.mean() > SmoothContexts(3).log_rows(key, 50).rewards.mean()


def test_rewards_without_bounds_are_moved_by_adding() -> None:
    class Normal:
        n_arms = 2
        reward_range = (-np.inf, np.inf)

        def mean(self, arm: int, round_: int) -> float:
            return float(arm)

        def reward(self, arm: int, round_: int, u: float) -> float:
            return arm + (u - 0.5)

    plain, moved = (OwnEnvironment(Normal(), log=log) for log in ("uniform", logs.Biased([3.0, -1.0])))
    assert drawn(moved, 30)[1] == pytest.approx(drawn(plain, 30)[1] + np.where(drawn(plain, 30)[0] == 0, 3.0, -1.0))


def test_a_compiled_world_of_ones_own_takes_any_log() -> None:
    @ar.compiled
    class Compiled(NamedTuple):
        chance: np.ndarray
        n_arms: int

        def enter(self, key: Any) -> None:
            pass

        def mean(self, arm: int, round_: int) -> float:
            return self.chance[arm]

        def reward(self, arm: int, round_: int, u: float) -> float:
            return 1.0 if u < self.chance[arm] else 0.0

    own = OwnEnvironment(Compiled(np.array(MEANS), 3), log=logs.Missing("best"))
    plain = OwnEnvironment(Coins(), log=logs.Missing("best"))
    one, other = (ar.simulate(ar.KLUCB(3, 30), env, history=30, horizon=20, replications=2) for env in (own, plain))
    assert (one.actions == other.actions).all()
    assert one.used_by_arm is not None
    assert (one.used_by_arm[:, 1] == 0).all()


WRONG: dict[str, tuple[Any, str]] = {
    "a share above 1": (lambda: logs.EpsilonGreedy(1.5), r"epsilon must lie in \[0, 1\], got 1.5"),
    "a negative noise": (lambda: logs.EpsilonGreedy(0.1, noise=-1.0), "noise must be finite and at least 0"),
    "half a row": (lambda: logs.Poisoned(0.5), "rows must be an integer"),  # type: ignore[arg-type]
    "no algorithm": (lambda: logs.Adaptive("ucb"), "algorithm must be one of ar over arms"),  # type: ignore[arg-type]
    "several arms a round": (lambda: logs.Adaptive(ar.TopUCB(3, 2, 9)), "plays one arm a round"),
    "other arms": (lambda: drawn(KArmed(3, log=logs.Adaptive(ar.UCB1(4))), 5), "has 4 arms, and there are 3"),
    "an arm too many": (lambda: drawn(KArmed(3, log=logs.Missing(3)), 5), "must be below 3, the number of arms, got 3"),
    "all missing": (lambda: drawn(KArmed(2, log=logs.Missing([0, 1])), 5), "at least one arm, and all are missing"),
    "too few offsets": (lambda: drawn(KArmed(3, log=logs.Biased([0.1])), 5), "one for each of 3 arms"),
    "a reward out of range": (
        lambda: drawn(KArmed(3, log=logs.Poisoned(1, reward=2.0)), 5),
        r"reward must lie in \[0, 1\]",
    ),
    "arms alone": (lambda: drawn(KArmed(3, log=lambda past: np.zeros(5)), 5), "must return arms and rewards"),
    "too few rows": (lambda: drawn(KArmed(3, log=lambda past: ([0], [0.0])), 5), "must return 5 numbers of arms"),
    "an unknown arm": (
        lambda: drawn(KArmed(2, log=lambda past: ([1, 5], [0.0, 1.0])), 2),
        r"must return arms below 2 and finite rewards in \[0, 1\], got arm 5 and reward 1.0 in row 1",
    ),
    "an arm below 0": (lambda: drawn(KArmed(2, log=lambda past: ([-1], [0.0])), 1), "got arm -1 and reward 0.0 in row"),
    "a reward above 1": (lambda: drawn(KArmed(2, log=lambda past: ([1], [1.5])), 1), "got arm 1 and reward 1.5 in row"),
    "nan": (lambda: drawn(KArmed(2, log=lambda past: ([1], [np.nan])), 1), "got arm 1 and reward nan in row 0"),
    "rewards as text": (lambda: drawn(KArmed(2, log=lambda past: ([1], ["a"])), 1), "1 numbers of arms and as many"),
    "a class": (lambda: KArmed(2, log=logs.Permuted), "log must be .* got <class"),  # type: ignore[arg-type]
    "half an arm missing": (lambda: drawn(KArmed(3, log=logs.Missing(1.5)), 5), "must be an integer of at least 0"),  # type: ignore[arg-type]
    "an offset as text": (lambda: drawn(KArmed(3, log=logs.Biased("a")), 5), "one for each of 3 arms, got 'a'"),  # type: ignore[arg-type]
    "an offset of an arm as text": (
        lambda: drawn(KArmed(3, log=logs.Biased({"best": "a"})), 5),  # type: ignore[dict-item]
        "by must be a number, got 'a'",
    ),
    "a reward as text": (
        lambda: drawn(KArmed(3, log=logs.Poisoned(1, reward="a")), 5),  # type: ignore[arg-type]
        "reward must be a number, got 'a'",
    ),
    "weights for other arms": (lambda: drawn(KArmed(3, log=logs.Biased(0.1, of=[1, 1])), 5), "for each of 3 arms"),
}


@pytest.mark.parametrize("given", [(1.0, 0.0), (0.0, np.nan), (0, 1, 2), 1, ("a", "b")], ids=str)
def test_the_range_of_a_world_of_ones_own_is_a_pair(given: Any) -> None:
    class Odd(Coins):
        reward_range = given

    with pytest.raises(InvalidParameter, match=r"Odd.reward_range must be \(low, high\) with low < high, got "):
        OwnEnvironment(Odd())


def test_an_arm_and_an_offset_may_be_those_of_numpy() -> None:
    for one, other in (
        (logs.Missing(1), logs.Missing(np.int64(1))),  # type: ignore[arg-type]
        (logs.Biased(0.25), logs.Biased(np.float32(0.25))),  # type: ignore[arg-type]
    ):
        assert all(
            (a == b).all() for a, b in zip(*(drawn(KArmed(3, log=log), 30) for log in (one, other)), strict=True)
        )


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_said_in_one_sentence(what: str) -> None:
    make, sentence = WRONG[what]
    with pytest.raises(InvalidParameter, match=sentence) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_worlds_have_no_shares_where_another_policy_logs() -> None:
    keys = world_keys(0, np.arange(2))
    worlds = KArmed(3, log=logs.Permuted()).worlds(keys, keys)
    assert isinstance(worlds, Worlds)
    assert worlds.share.shape == (2, 0)
