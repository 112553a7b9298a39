"""Policies on disk: they go on as if nothing had happened."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from saving_kit import (
    FEATURES,
    POLICIES,
    always,
    check_same_future,
    log_for,
    narrow,
    play,
    policy_of,
    small_log,
    small_policy,
    state,
)

import artreplay as ar


def quadratic(x: float) -> float:
    return x * x / 50


Make = Callable[..., Any]

ALGORITHMS: dict[str, tuple[Make, int]] = {  # made from four arms; decisions
    "MonUCB": (lambda **arms: ar.MonUCB(horizon=500, **arms), 1000),
    "MonUCB, practical": (lambda **arms: ar.MonUCB(horizon=500, bonus=ar.bonus.practical(0.3), **arms), 1000),
    "MonUCB, anytime": (lambda **arms: ar.MonUCB(horizon=50, bonus=ar.bonus.anytime(0.3, history=9), **arms), 1000),
    "MonUCB, own bonus": (lambda **arms: ar.MonUCB(horizon=500, bonus=narrow, **arms), 1000),
    "PsiUCB, Hoeffding": (lambda **arms: ar.PsiUCB(horizon=20, **arms), 1000),
    "PsiUCB, Bernoulli KL": (lambda **arms: ar.PsiUCB(horizon=20, psi=ar.psi.bernoulli_kl, **arms), 1000),
    "PsiUCB, own": (lambda **arms: ar.PsiUCB(horizon=20, psi=quadratic, **arms), 300),
    "TopUCB": (lambda **arms: ar.TopUCB(budget=2, horizon=50, bonus=ar.bonus.practical(0.5), **arms), 1000),
    "TopUCB, own bonus": (lambda **arms: ar.TopUCB(budget=3, horizon=9, bonus=narrow, **arms), 1000),
    "UCB1": (lambda **arms: ar.UCB1(**arms), 1000),
    "ThompsonSampling": (lambda **arms: ar.ThompsonSampling(seed=2**70, **arms), 1000),
    "IDS": (lambda **arms: ar.IDS(seed=3, **arms), 30),
    "RandomChoice": (lambda **arms: ar.RandomChoice(seed=5, **arms), 1000),
    "RandomChoice of two": (lambda **arms: ar.RandomChoice(budget=2, seed=5, **arms), 1000),
    "LinUCB": (
        lambda n_arms=None, **arms: ar.LinUCB(FEATURES, horizon=50, alpha=0.4, ridge=2.0, **arms),
        1000,
    ),
}  # fmt: skip

LABELS: list[dict[str, Any]] = [
    {"n_arms": 4},
    {"arms": ["red", "blü", "", "🙂"]},
    {"arms": [("a", 1), ("a", (2, b"x")), b"\xff", -(2**70)]},
    {"arms": [10, 20, True, "x"], "reward_range": (-2, 3)},
]


@pytest.mark.parametrize("kind", POLICIES)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_loaded_policy_decides_like_the_one_that_was_saved(path, name, kind):
    make, rounds = ALGORITHMS[name]
    slow = rounds < 100
    favourite = len(name) % 4  # all decisions with one kind of labels, a few, if any, with the others
    for number in [favourite] if slow else range(4):
        base = make(**LABELS[number])
        log = log_for(base, 4 if slow else 60)
        policy = policy_of(kind, base, log)
        play(policy, min(rounds, 20) // 2, seed=9)
        policy.save(path)
        given = make(**LABELS[number]) if "own" in name else None
        loaded = ar.load(path, None if kind == "ignorant" else log, base=given)
        assert [type(arm) for arm in loaded.base.arms] == [type(arm) for arm in policy.base.arms]
        check_same_future(policy, loaded, rounds if number == favourite else 10)


@pytest.mark.parametrize("kind", POLICIES)
def test_rewards_without_bounds_are_saved_too(path, kind):
    base = ar.PsiUCB(4, 50, psi=ar.psi.sub_gaussian(0.7))
    log = log_for(base)
    policy = policy_of(kind, base, log)
    play(policy, 20)
    policy.save(path)
    check_same_future(policy, ar.load(path, None if kind == "ignorant" else log), 1000)


@pytest.mark.parametrize("kind", [*POLICIES, "totals", "always related"])
@pytest.mark.parametrize("moment", ["fresh", "asked", "told", "asked again"])
def test_a_policy_can_be_saved_at_any_moment(path, kind, moment):
    """Also with an action that was asked for and not played yet, and before anything was read."""
    for make in (lambda: ar.MonUCB(4, 30, bonus=ar.bonus.practical(0.4)), lambda: ar.TopUCB(4, 2, 30)):
        log: Any = log_for(make())
        if kind == "totals":
            log = ar.Totals.of(log)
        policy = {
            "totals": lambda: ar.FullStart(make(), log),  # noqa: B023
            "always related": lambda: ar.ArtificialReplay(make(), log, relation=always),  # noqa: B023
        }.get(kind, lambda: policy_of(kind, make(), log))()  # noqa: B023
        if moment != "fresh":
            action = policy.ask()
            if moment in ("told", "asked again"):
                policy.tell(action, [0.5] * 2 if isinstance(action, list) else 0.5)
            if moment == "asked again":
                policy.ask()
        policy.save(path)
        again = {"base": make(), "relation": always} if kind == "always related" else {}
        loaded = ar.load(path, None if kind == "ignorant" else log, **again)
        if moment in ("asked", "asked again"):
            used = loaded.used
            assert loaded.ask() == policy.ask()
            assert loaded.used == used == policy.used
        check_same_future(policy, loaded, 60)


def test_saving_changes_nothing(path):
    policy, other = small_policy(), small_policy()
    for _ in range(20):
        policy.save(path)
        assert policy.ask() == other.ask()
        policy.save(path)
        policy.tell(policy.ask(), 0.5)
        other.tell(other.ask(), 0.5)
        assert state(policy) == state(other)


def test_a_loaded_policy_can_be_saved_and_loaded_again_and_again(path):
    policy = small_policy()
    again = policy
    for round_ in range(6):
        again.save(path)
        again = ar.load(path, small_log())
        assert again.ask() == policy.ask()
        again.tell(policy.ask(), round_ / 6)
        policy.tell(policy.ask(), round_ / 6)
        assert state(again) == state(policy)


def test_a_table_that_has_grown_is_saved_grown(path):
    policy = ar.Ignorant(ar.MonUCB(2, 100, bonus=narrow))
    for _ in range(500):
        policy.tell(0, 1.0)
    policy.save(path)
    check_same_future(policy, ar.load(path, base=ar.MonUCB(2, 100, bonus=narrow)), 600)


def test_a_policy_is_saved_at_both_speeds(path):
    log = log_for(ar.MonUCB(4, 30))
    policies = []
    for mode in ("compiled", "interpreted"):
        policy = ar.ArtificialReplay(ar.MonUCB(4, 30, bonus=ar.bonus.practical(0.4)), log)
        with ar.compiling.using(mode):
            play(policy, 20)
            policy.save(path)
            policies.append(ar.load(path, log))
    assert state(policies[0]) == state(policies[1])
    assert play(policies[0], 50) == play(policies[1], 50)


def test_rows_that_were_skipped_stay_skipped(path):
    log = ar.History(["a", "retired", "b", "retired", "a", "b"], [0.0, 1.0, 0.5, 1.0, 1.0, 0.0])
    for make in (ar.ArtificialReplay, ar.FullStart):
        policy = make(ar.MonUCB(arms=["a", "b"], horizon=10), log, unknown="skip")
        policy.tell(policy.ask(), 0.5)
        policy.save(path)
        loaded = ar.load(path, log)
        assert loaded.skipped == policy.skipped == 2
        assert loaded.unused == policy.unused
        check_same_future(policy, loaded, 20)
