"""Policies on disk: they go on as if nothing had happened."""

from __future__ import annotations

from typing import Any

import pytest
from saving_kit import (
    POLICIES,
    always,
    check_same_future,
    log_for,
    narrow,
    play,
    policy_of,
    small_policy,
    state,
)

import artreplay as ar


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


def test_a_table_that_has_grown_is_saved_grown(path):
    policy = ar.Ignorant(ar.MonUCB(2, 100, bonus=narrow))
    for _ in range(500):
        policy.tell(0, 1.0)
    policy.save(path)
    check_same_future(policy, ar.load(path, base=ar.MonUCB(2, 100, bonus=narrow)), 600)


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
