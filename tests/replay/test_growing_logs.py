"""A log that grows while a policy runs: rows appended join the unused ones, any other change is refused."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from policy_kit import BASES, DETERMINISTIC, SEVERAL, VALUED, LeastSeen, log, play, seen, state, tell

import artreplay as ar
from artreplay.errors import ChangedHistory, InvalidHistory

history_policies = pytest.mark.parametrize("start", [ar.FullStart, ar.ArtificialReplay])
bases = pytest.mark.parametrize("base", BASES)


def prefix(history: ar.History, size: int) -> ar.History:
    return ar.History([history.unit(row) for row in range(size)], history.rewards[:size])


@history_policies
@bases
def test_a_log_that_is_there_from_the_start_or_comes_before_anything_is_asked_is_the_same(start, base):
    whole = log(size=20)
    policy, other = start(BASES[base](), prefix(whole, 8)), start(BASES[base](), whole)
    policy.extend(whole)
    assert play(policy, 6) == play(other, 6)
    assert seen(policy) == seen(other)


@history_policies
@bases
def test_the_same_log_again_changes_nothing(start, base):
    history = log(size=20)
    policy, other = start(BASES[base](), history), start(BASES[base](), history)
    for _ in range(4):
        policy.extend(prefix(history, 20))
        before = seen(policy)
        assert play(policy, 1) == play(other, 1)
        policy.extend(history)
        assert before["rounds"] + 1 == policy.rounds
        assert seen(policy) == seen(other)


@history_policies
@bases
@pytest.mark.parametrize("rounds", [0, 1, 5])
def test_appended_rows_join_the_unused(start, base, rounds):
    whole = log(size=20)
    policy = start(BASES[base](), prefix(whole, 8))
    play(policy, rounds)
    used, left = policy.used, policy.unused_rows()
    policy.extend(whole)
    assert (policy.used, policy.unused, policy.rounds) == (used, 20 - used, rounds)
    assert policy.unused_rows() == left + list(range(8, 20))
    assert sum(policy.used_by_cell().values()) == used
    play(policy, 6)
    assert set(policy.unused_rows()) <= set(left) | set(range(8, 20))
    assert policy.rounds == rounds + 6


@settings(max_examples=60)
@given(st.lists(st.integers(0, 24), min_size=0, max_size=4).map(sorted), st.sampled_from(["MonUCB", "LinUCB", "plain"]))
def test_replay_over_a_growing_log_serves_each_row_once_and_in_order(sizes, base):
    whole = log(size=24)
    policy = ar.ArtificialReplay(BASES[base](), prefix(whole, 0))
    for size in sizes:
        policy.extend(prefix(whole, size))
        play(policy, 2)
    policy.extend(whole)
    play(policy, 40)
    left = policy.unused_rows()
    cell = lambda unit: unit // 2 if base == "LinUCB" else unit  # noqa: E731
    for row in range(24):
        if row not in left:  # every earlier row of its cell is used too
            assert not any(cell(whole.unit(other)) == cell(whole.unit(row)) for other in left if other < row)
    counts = policy.base.counts if base == "plain" else [c.count for c in policy.cells()]
    assert sum(counts) == policy.used + policy.rounds


@history_policies
@bases
def test_an_action_that_was_asked_stays_when_the_log_grows(start, base):
    whole = log(size=20)
    policy = start(BASES[base](), prefix(whole, 4))
    action = policy.ask()
    used = policy.used
    policy.extend(whole)
    assert policy.ask() == action
    assert policy.used == used
    tell(policy, action)
    assert policy.rounds == 1
    policy.ask()
    if start is ar.FullStart:
        assert policy.used == 20


@pytest.mark.parametrize("base", [name for name in BASES if name not in VALUED])  # which keep what was told apart
def test_full_start_shows_appended_rows_before_what_is_told_next(base):
    whole = log(size=20)
    policy, by_hand = ar.FullStart(BASES[base](), prefix(whole, 4)), ar.Ignorant(BASES[base]())
    action = [1] if base in SEVERAL else 1
    told = [0.5] if base in SEVERAL else 0.5
    policy.tell(action, told)
    policy.extend(whole)
    policy.tell(action, told)
    assert (policy.used, policy.rounds) == (20, 2)

    def show(first: int, last: int) -> None:
        for row in range(first, last):
            unit, reward = whole.unit(row), float(whole.rewards[row])
            by_hand.tell([unit] if base in SEVERAL else unit, [reward] if base in SEVERAL else reward)

    show(0, 4)
    by_hand.tell(action, told)
    show(4, 20)
    by_hand.tell(action, told)
    assert state(policy.base) == state(by_hand.base)


def changed(history: ar.History, row: int, what: str) -> ar.History:
    units = [history.unit(r) for r in range(len(history))]
    rewards = history.rewards.copy()
    if what == "unit":
        units[row] = (units[row] + 1) % 4
    else:
        rewards[row] = 0.125
    return ar.History(units, rewards)


@history_policies
@pytest.mark.parametrize("base", DETERMINISTIC)
@pytest.mark.parametrize("row", [0, 7, 19])
@pytest.mark.parametrize("what", ["unit", "reward"])
@pytest.mark.parametrize("grown", [0, 5])
def test_a_row_that_changed_is_named_and_nothing_changes(start, base, row, what, grown):
    whole = log(size=20 + grown)
    policy, other = (start(BASES[base](), prefix(whole, 20)) for _ in range(2))
    play(policy, 2)
    play(other, 2)
    action = policy.ask()
    assert action == other.ask()
    before = seen(policy)
    with pytest.raises(ChangedHistory, match=rf"row {row} has changed"):
        policy.extend(changed(whole, row, what))
    assert seen(policy) == before
    assert policy.ask() == action
    assert play(policy, 4) == play(other, 4)
    assert seen(policy) == seen(other)


@history_policies
def test_rows_that_changed_places_are_named(start):
    policy = start(BASES["MonUCB"](), ar.History([0, 1, 2], [0.5, 0.5, 0.5]))
    with pytest.raises(ChangedHistory, match="row 1 has changed"):
        policy.extend(ar.History([0, 2, 1], [0.5, 0.5, 0.5]))


@history_policies
def test_a_log_that_shrank_is_refused(start):
    policy = start(BASES["MonUCB"](), log(size=20))
    play(policy, 2)
    before = seen(policy)
    with pytest.raises(ChangedHistory, match=r"the log has 19 rows and had 20"):
        policy.extend(prefix(log(size=20), 19))
    with pytest.raises(ChangedHistory):
        policy.extend(ar.History([], []))
    assert seen(policy) == before


@history_policies
@pytest.mark.parametrize("wrong", [None, [0, 1], "log"])
def test_only_a_history_can_take_its_place(start, wrong):
    policy = start(BASES["MonUCB"](), log())
    with pytest.raises(InvalidHistory, match="history must be a History"):
        policy.extend(wrong)


@history_policies
@pytest.mark.parametrize("base", ["MonUCB", "LinUCB"])
@pytest.mark.parametrize(
    ("unit", "reward", "sentence"), [(9, 0.5, "in row 20 is not an arm"), (1, 1.5, "in row 20 is 1.5")]
)
def test_appended_rows_are_checked_before_anything_changes(start, base, unit, reward, sentence):
    history = log(size=20)
    policy, other = start(BASES[base](), history), start(BASES[base](), history)
    play(policy, 2)
    play(other, 2)
    before = seen(policy)
    units = [history.unit(row) for row in range(20)]
    with pytest.raises(InvalidHistory, match=sentence):
        policy.extend(ar.History([*units, unit], [*history.rewards, reward]))
    assert seen(policy) == before
    assert play(policy, 4) == play(other, 4)
    better = ar.History([*units, 1], [*history.rewards, 0.5])
    policy.extend(better)
    assert policy.unused == 21 - policy.used


@history_policies
def test_retired_arms_are_skipped_in_appended_rows_too(start):
    units = ["a", "old", "b", "a", "older", "b"]
    history = ar.History(units, [0.5] * 6)
    policy = start(ar.MonUCB(arms=["a", "b"], horizon=5), prefix(history, 3), unknown="skip")
    assert policy.skipped == 1
    play(policy, 1)
    used = policy.used
    policy.extend(history)
    assert (policy.skipped, policy.used, policy.unused) == (2, used, 4 - used)
    assert set(policy.unused_rows()) <= {0, 2, 3, 5}
    assert {3, 5} <= set(policy.unused_rows())


def test_a_relation_goes_on_over_a_log_that_grows():
    whole = log(size=20)
    policy = ar.ArtificialReplay(LeastSeen(), prefix(whole, 8), relation=lambda logged, proposed, base: True)
    policy.ask()
    assert policy.used == 8
    policy.extend(whole)
    assert (policy.used, policy.unused_rows()) == (8, list(range(8, 20)))
    tell(policy, policy.ask())
    policy.ask()
    assert policy.used == 20
    assert sum(policy.base.counts) == 21


@history_policies
def test_a_log_of_labels_cannot_become_one_of_points(start):
    policy = start(LeastSeen(), ar.History([0, 1], [0.5, 0.5]))
    with pytest.raises(InvalidHistory):
        policy.extend(ar.History([[0.0], [1.0], [0.5]], [0.5, 0.5, 0.5]))
