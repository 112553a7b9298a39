"""Certified reading, stores, drift, worlds of one's own: what went wrong once where two of them met."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from test_certified import OwnUCB

import artreplay as ar
from artreplay.errors import ChangedHistory, InvalidAction, InvalidHistory, InvalidParameter
from artreplay.history.parquet import ParquetLog


@pytest.fixture
def store(tmp_path) -> Any:
    rng = random.Random(1)
    arms = [rng.randrange(3) for _ in range(60)]
    table = pa.table({"arm": arms, "reward": [float(rng.random() < (0.3, 0.5, 0.6)[arm]) for arm in arms]})
    ar.index_history(table, tmp_path / "log", unit="arm", reward="reward")
    return ar.open_history(tmp_path / "log")


def test_a_log_that_has_fewer_rows_than_it_counted_is_refused_and_not_asked_for_ever(store, monkeypatch) -> None:
    counts = store.counts
    monkeypatch.setattr(ParquetLog, "counts", property(lambda self: counts + 1))
    policy = ar.ArtificialReplay(ar.UCB1(3), store)
    with pytest.raises(ChangedHistory, match="as many rows of each arm as were counted"):
        policy.ask()


def test_an_object_with_values_knows_its_arms_only() -> None:
    log = ar.History(["red", "pink", "blue"], [0.0, 1.0, 1.0])
    with pytest.raises(InvalidHistory, match="'pink' is not one of the 3 arms that OwnUCB chooses among"):
        ar.ArtificialReplay(OwnUCB(), log)
    policy = ar.ArtificialReplay(OwnUCB(), log, unknown="skip")
    assert policy.skipped == 1
    with pytest.raises(InvalidAction, match="'pink' is not one of"):
        policy.tell("pink", 1.0)


@ar.compiled
class Wary(NamedTuple):
    """A component that hears of allowances."""

    count: Any
    total: Any
    n_arms: int
    reward_range: tuple[float, float]

    def value(self, arm, round_, unread, fill):
        return (1.0 + self.total[arm] + unread * fill) / (2.0 + self.count[arm] + unread)

    def update(self, arm, reward):
        self.count[arm] += 1
        self.total[arm] += reward

    def update_logged(self, arm, reward, allowance):
        self.update(arm, reward)


@pytest.mark.parametrize("drift", [0.1, [0.1, 0.2, 0.1, 0.1]])
def test_a_component_with_values_can_have_drift(drift) -> None:
    column = drift if isinstance(drift, list) else None
    log = ar.History([0, 1, 1, 2], [0.0, 1.0, 0.0, 1.0], allowance=column)
    base = Wary(np.zeros(3, np.int64), np.zeros(3), 3, (0.0, 1.0))
    replay, full = (policy(base, log, drift=0 if column else drift) for policy in (ar.ArtificialReplay, ar.FullStart))
    assert replay.ask() == full.ask()


def test_with_allowances_people_see_the_rows_that_were_used() -> None:
    rng = random.Random(2)
    log = ar.History([rng.randrange(2) for _ in range(40)], [rng.random() for _ in range(40)], allowance=[0.1] * 40)
    policy = ar.ArtificialReplay(ar.KLUCB(2, 100), log)
    policy.ask()
    assert sum(policy.used_by_cell().values()) == policy.used == sum(cell.used for cell in policy.cells())


def test_bayes_ucb_at_the_end_of_time() -> None:
    totals = ar.Totals([0, 1], [10**11, 10**11], [4e10, 5e10])
    assert ar.ArtificialReplay(ar.BayesUCB(2, 10**6, power=5), totals).ask() == 1


class Second:
    """A plain object that always plays arm 2."""

    def propose(self) -> int:
        return 2

    def update(self, arm: int, reward: float) -> None:
        pass


class LateCoins:
    n_arms = 3

    def mean(self, arm: int, round: int) -> float:
        return (0.1, 0.2, 0.9)[arm]

    def reward(self, arm: int, round: int, u: float) -> float:
        return float(u < self.mean(arm, round))

    def delay(self, arm: int, round: int, u: float) -> int:
        return 1


def test_late_rewards_are_those_of_the_arm_that_was_played() -> None:
    runs = ar.simulate(Second(), LateCoins(), history=5, horizon=6, replications=2)
    assert (runs.actions == 2).all()
    assert (runs.regret == 0.0).all()


def test_rewards_that_come_late_are_simulated_with_drift() -> None:
    def play(start: str, drift: float) -> list[int]:
        base, options = ar.MonUCB(3, 60), {"history": 60, "horizon": 40, "replications": 3, "drift": drift}
        return ar.simulate(base, LateCoins(), start=start, **options).actions.ravel().tolist()

    assert play("artificial-replay", 0.3) == play("full-start", 0.3) != play("full-start", 0.0)


def test_a_base_of_ones_own_must_take_the_rewards_of_its_world() -> None:
    class Rich(LateCoins):
        reward_range = (0.0, 5.0)

    with pytest.raises(InvalidParameter, match=r"reward_range must cover the environment's \[0, 5\]"):
        ar.simulate(OwnUCB(range(3)), Rich(), horizon=3, replications=1)


def test_a_world_that_is_compiled_must_be_told_when_it_begins() -> None:
    @ar.compiled
    class Silent(NamedTuple):
        chance: Any
        n_arms: int

        def mean(self, arm, round_):
            return self.chance[arm]

        def reward(self, arm, round_, u):
            return 1.0

    with pytest.raises(InvalidParameter, match=r"Silent must have a method enter\(key\)"):
        ar.simulate(ar.MonUCB(2, 9), Silent(np.array([0.1, 0.2]), 2), horizon=3, replications=1)
