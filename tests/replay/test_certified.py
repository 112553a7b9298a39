"""Certified reading: rows are read until the choice is certain, for every rule whose value never falls."""

from __future__ import annotations

import math
import random
from typing import Any, NamedTuple

import numpy as np
import pytest

import artreplay as ar
from artreplay.algorithms.beta_quantile import beta_quantile, log_gamma
from artreplay.replay import certified, drive
from artreplay.testing import CheckFailed, check_completion, check_coupling, check_values

TENTHS = (0.1, 0.2, 0.7)  # whose sums depend on their order


class OwnUCB:
    """UCB1 as a user might write it, with a bonus of its own; infinite for what was never seen."""

    reward_range = (0.0, 1.0)

    def __init__(self, arms: Any = ("red", "green", "blue")) -> None:
        self.arms = list(arms)
        self.logged = {arm: [0, 0.0] for arm in self.arms}
        self.played = {arm: [0, 0.0] for arm in self.arms}

    def value(self, arm: Any, round: int, unread: int, fill: float) -> float:
        count = self.logged[arm][0] + self.played[arm][0] + unread
        if count == 0:
            return math.inf
        total = (self.logged[arm][1] + unread * fill) + self.played[arm][1]
        return total / count + math.sqrt(0.1 * math.log(2 + round) / count)

    def update(self, arm: Any, reward: float) -> None:
        self.played[arm][0] += 1
        self.played[arm][1] += reward

    def update_logged(self, arm: Any, reward: float, allowance: float) -> None:
        self.logged[arm][0] += 1
        self.logged[arm][1] += reward


@ar.compiled
class OwnComponent(NamedTuple):
    """The greedy rule with a doubtful start, as a component; rewards are whole numbers, so one sum will do."""

    count: Any
    total: Any
    n_arms: int
    reward_range: tuple[float, float]

    def value(self, arm, round_, unread, fill):
        return (1.0 + self.total[arm] + unread * fill) / (2.0 + self.count[arm] + unread)

    def update(self, arm, reward):
        self.count[arm] += 1
        self.total[arm] += reward


def own_component(n_arms: int = 3) -> OwnComponent:
    return OwnComponent(np.zeros(n_arms, np.int64), np.zeros(n_arms), n_arms, (0.0, 1.0))


class Contrarian(OwnUCB):
    """Its value falls when a reward rises."""

    def value(self, arm: Any, round: int, unread: int, fill: float) -> float:
        return -super().value(arm, round, unread, fill) if unread else 0.0


# -- the quantile ------------------------------------------------------------------------------------------------------


def test_quantiles_of_the_beta_distribution_are_right() -> None:
    special = pytest.importorskip("scipy.special")
    rng = np.random.default_rng(0)
    for size in (0.2, 3, 100, 10_000):
        a, b, u = rng.random(150) * size, rng.random(150) * size, rng.random(150)
        mine = [beta_quantile(*map(float, one)) for one in zip(a, b, u, strict=True)]
        assert np.abs(mine - special.betaincinv(a, b, u)).max() < 1e-11
        assert np.allclose([log_gamma(float(x)) for x in a], special.gammaln(a), rtol=1e-13, atol=1e-13)


def test_the_edges_of_the_quantile() -> None:
    assert beta_quantile(0.0, 1.0, 0.5) == 0.0
    assert beta_quantile(1.0, 0.0, 0.5) == 1.0
    assert beta_quantile(1.0, 1.0, 0.25) == pytest.approx(0.25, abs=1e-15)
    assert 0.0 <= beta_quantile(1e-3, 1e-3, 1e-15) < beta_quantile(1e-3, 1e-3, 1 - 1e-15) <= 1.0


# -- exactness ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [lambda: ar.UCB1(3), lambda: ar.Greedy(3), OwnUCB, own_component],
    ids=["UCB1", "Greedy", "own", "component"],
)
def test_it_plays_what_full_start_plays_and_ends_in_its_state(make) -> None:
    rewards = (0, 0.5, 1) if make is own_component else TENTHS
    for check in (check_coupling, check_completion):
        check(make, 3 if make is own_component else None, rewards=rewards, cases=40, max_history=30, seed=1)


@pytest.mark.long
@pytest.mark.parametrize(
    "make",
    [lambda: ar.ThompsonSampling(3), lambda: ar.AnchorThompson(3), lambda: ar.BayesUCB(3, 20), OwnUCB],
    ids=["ThompsonSampling", "AnchorThompson", "BayesUCB", "own"],
)
@pytest.mark.parametrize("rewards", [(0, 0.5, 1), (0, 1), TENTHS])
def test_it_does_so_in_many_cases(make, rewards) -> None:
    for check in (check_coupling, check_completion):
        check(make, rewards=rewards, cases=800, max_history=40, horizon=20, seed=2)


@pytest.mark.as_users_run
@pytest.mark.parametrize("mode", ["auto", "compiled"])
def test_an_object_with_values_is_never_compiled_however_slow_it_is(monkeypatch, mode) -> None:
    monkeypatch.setattr(drive, "SLOW_SLICE", 0.0)
    rng = random.Random(5)
    log = ar.History([rng.choice(("red", "green", "blue")) for _ in range(60)], [rng.random() for _ in range(60)])
    replay, full = (policy(OwnUCB(), log) for policy in (ar.ArtificialReplay, ar.FullStart))
    with ar.compiling.using(mode):
        for _ in range(5):
            assert replay.ask() == full.ask()
            for policy in (replay, full):
                policy.tell(full.ask(), 0.5)


@pytest.mark.parametrize("slack", [1e-9, 0.0])
def test_without_slack_a_sum_that_passes_its_bound_decides_wrongly(monkeypatch, slack) -> None:
    rewards = [0.03, 1.0, 1.0]
    assert (0.03 + 1.0) + 1.0 > 0.03 + 2.0, "added one by one, the ones come to more"
    log = ar.History([0] * len(rewards), rewards)
    policies = [make(ar.Greedy(2), log) for make in (ar.ArtificialReplay, ar.FullStart)]
    monkeypatch.setattr(certified, "_SLACK", slack)
    for policy in policies:
        for reward in rewards:
            policy.tell(1, reward)
    replayed, full = (policy.ask() for policy in policies)
    assert full == 0, "both arms have the same rewards"
    assert (replayed == full) is (slack > 0)


def test_values_are_checked_by_themselves() -> None:
    check_values(lambda: ar.BayesUCB(3, 20), cases=20)
    check_values(OwnUCB, cases=20)
    with pytest.raises(CheckFailed, match=r"the value of .* must lie between"):
        check_values(Contrarian)
    with pytest.raises(ar.errors.InvalidParameter, match="must offer value"):
        check_values(lambda: ar.MonUCB(3, 20))


def test_under_a_relation_of_ones_own_it_is_not_certified_and_not_exact() -> None:
    def related(logged: Any, proposed: Any, base: Any) -> bool:
        return bool(logged == proposed)

    for make in (lambda: ar.UCB1(3), lambda: ar.ThompsonSampling(3)):
        assert isinstance(make().propose(), int)
        policy = ar.ArtificialReplay(make(), ar.History([0, 1, 2], [1.0, 0.0, 1.0]), relation=related)
        assert not certified.is_certified(policy.drive.base.component)
        with pytest.raises(CheckFailed):
            check_coupling(make, relation=related, cases=60)


def test_an_arm_is_played_before_its_rows_are_read() -> None:
    log = ar.History([0] * 50 + [1] * 50, [1.0] * 50 + [0.0] * 50)
    policy = ar.ArtificialReplay(ar.Greedy(2), log)
    assert policy.ask() == 0
    assert 0 < policy.used < 100
    assert policy.unused_rows()[0] > 0


def test_what_is_told_reads_nothing() -> None:
    policy = ar.ArtificialReplay(ar.UCB1(2), ar.History([0, 0, 1], [1, 0, 1]))
    policy.tell(1, 0.5)
    assert policy.used == 0
    assert policy.rounds == 1


def test_a_saved_policy_goes_on(tmp_path) -> None:
    rng = random.Random(0)
    log = ar.History([rng.randrange(3) for _ in range(80)], [rng.random() for _ in range(80)])
    for make, full in ((ar.ThompsonSampling, False), (ar.AnchorThompson, True)):
        policy = (ar.FullStart if full else ar.ArtificialReplay)(make(3, seed=1), log)
        for _ in range(5):
            policy.tell(policy.ask(), rng.choice(TENTHS))
        policy.save(tmp_path / "policy")
        again = ar.load(tmp_path / "policy", log)
        again.tell(2, 0.7)
        policy.tell(2, 0.7)
        for _ in range(8):
            assert policy.ask() == again.ask()
            reward = rng.choice(TENTHS)
            policy.tell(policy.ask(), reward)
            again.tell(again.ask(), reward)
        assert policy.used == again.used


def test_a_store_is_read_as_far_as_needed(tmp_path) -> None:
    pa = pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    arms = rng.integers(0, 5, 600)
    rewards = (rng.random(600) < np.array([0.1, 0.2, 0.3, 0.4, 0.8])[arms]).astype(float)
    ar.index_history(pa.table({"arm": arms, "reward": rewards}), tmp_path / "log.arh", unit="arm", reward="reward")
    store = ar.ArtificialReplay(ar.Greedy(5), ar.open_history(tmp_path / "log.arh"))
    memory = ar.ArtificialReplay(ar.Greedy(5), ar.History(arms, rewards))
    for _ in range(5):
        assert store.ask() == memory.ask() == 4
        assert store.used == memory.used < 600
        for policy in (store, memory):
            policy.tell(4, 1.0)


def test_of_totals_replay_decides_what_full_start_does(tmp_path) -> None:
    rng = random.Random(3)
    counts = [rng.randrange(1, 400) for _ in range(8)]
    totals = ar.Totals(list(range(8)), counts, [float(rng.randrange(count + 1)) for count in counts])
    for make in (ar.Greedy, ar.UCB1, ar.ThompsonSampling):
        replay, full = (policy(make(8), totals) for policy in (ar.ArtificialReplay, ar.FullStart))
        for round_ in range(12):
            assert replay.ask() == full.ask()
            for policy in (replay, full):
                policy.tell(full.ask(), float(round_ % 3 == 0))
            replay.save(tmp_path / "policy")
            replay = ar.load(tmp_path / "policy", totals)
        assert full.used == sum(counts)


def test_simulations_read_like_policies() -> None:
    env = ar.environments.KArmed(4)
    with ar.compiling.using("interpreted"):
        for base in (ar.UCB1(4), OwnUCB(range(4)), own_component(4)):
            replay, full = (
                ar.simulate(base, env, start=start, history=60, horizon=20, replications=4, seed=1)
                for start in ("artificial-replay", "full-start")
            )
            assert (replay.actions == full.actions).all()
            assert (replay.used[:, -1] < 60).any()


def test_a_base_that_was_shown_something_before_keeps_it() -> None:
    base = ar.ThompsonSampling(2, seed=1)
    for _ in range(30):
        base.update(0, 0.0)
        base.update(1, 1.0)
    policy = ar.Ignorant(base)
    assert policy.ask() == 1
    assert [cell.count for cell in policy.cells()] == [30, 30]


# -- refusals ----------------------------------------------------------------------------------------------------------


def test_a_value_that_falls_when_a_reward_rises_is_refused() -> None:
    policy = ar.ArtificialReplay(Contrarian(), ar.History(["red", "red"], [0.0, 1.0]))
    with pytest.raises(ar.errors.InvalidAction, match=r"Contrarian.value must not fall when a reward rises.*'red'"):
        policy.ask()
    assert policy.used == 0
    with pytest.raises(ar.errors.InvalidAction, match=r"Contrarian.value must not fall"):
        ar.simulate(Contrarian(range(3)), ar.environments.KArmed(3), history=9, horizon=2, replications=1)


@pytest.mark.parametrize("value", [math.nan, -math.inf])
def test_a_value_that_is_no_number_is_refused(value) -> None:
    class Strange(OwnUCB):
        def value(self, arm: Any, round: int, unread: int, fill: float) -> float:
            return value

    with pytest.raises(ar.errors.InvalidAction, match=r"Strange.value must be a number.*'red'"):
        ar.Ignorant(Strange()).ask()


def test_what_a_base_with_values_must_say() -> None:
    class NoArms(OwnUCB):
        def __init__(self) -> None:
            super().__init__()
            del self.arms

    class NoRange(OwnUCB):
        reward_range = (-math.inf, math.inf)

    log = ar.History(["red"], [1.0])
    with pytest.raises(ar.errors.InvalidParameter, match=r"NoArms offers value.*arms, or n_arms"):
        ar.ArtificialReplay(NoArms(), log)
    with pytest.raises(ar.errors.InvalidParameter, match=r"NoRange offers value.*finite reward_range"):
        ar.ArtificialReplay(NoRange(), log)
    assert ar.ArtificialReplay(ar.UCB1(arms=["red"], reward_range=(-math.inf, math.inf)), log).ask() == "red"
    assert not ar.UCB1(2, reward_range=(-math.inf, math.inf)).exact
