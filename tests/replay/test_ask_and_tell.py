"""What `ask` and `tell` promise, for every policy over every kind of base."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from driving import STARTS
from policy_kit import BASES, SEVERAL, log, play, reward_of, seen, state, tell

import artreplay as ar
from artreplay.errors import InvalidAction
from artreplay.replay import is_certified

bases = pytest.mark.parametrize("base", BASES)
starts = pytest.mark.parametrize("start", STARTS)
single_bases = pytest.mark.parametrize("base", [name for name in BASES if name not in SEVERAL])
several_bases = pytest.mark.parametrize("base", SEVERAL)
arm_bases = pytest.mark.parametrize("base", ["MonUCB", "LinUCB", "Thompson"])


def make(start, base, history=None):
    return STARTS[start](BASES[base](), log() if history is None else history)


@starts
@pytest.mark.parametrize("base", BASES)
def test_asking_again_gives_the_same_action_and_shows_no_further_sample(start, base):
    policy = make(start, base)
    for _ in range(3):
        action = policy.ask()
        before = seen(policy)
        assert [policy.ask() for _ in range(3)] == [action] * 3
        assert seen(policy) == before
        tell(policy, action)


@starts
@several_bases
def test_the_list_that_ask_returns_belongs_to_the_caller(start, base):
    policy = make(start, base)
    first = policy.ask()
    kept = list(first)
    first.clear()
    assert policy.ask() == kept


@starts
@bases
def test_tell_counts_a_round_and_clears_what_was_asked(start, base):
    policy, other = make(start, base), make(start, base)
    for round_ in range(4):
        assert policy.rounds == round_
        action = policy.ask()
        tell(policy, action)
        tell(other, other.ask())
    assert policy.rounds == 4
    assert seen(policy) == seen(other)


UNKNOWN = [99, -1, 4, "red", None, 0.5, math.nan, (0,), [0], [0, 1], np.array([0]), {0}]
BAD_REWARDS = [math.nan, math.inf, -math.inf, -0.1, 1.1, "good", None, [0.5], 1j, np.array([0.5])]


@starts
@arm_bases
@pytest.mark.parametrize("asked", [True, False], ids=["asked", "not asked"])
@pytest.mark.parametrize("action", UNKNOWN, ids=lambda value: re.sub(" at 0x[0-9a-f]+", "", repr(value)))
def test_an_unknown_arm_is_refused_and_nothing_changes(start, base, asked, action):
    policy = make(start, base)
    pending = policy.ask() if asked else None
    before = seen(policy)
    with pytest.raises(InvalidAction, match="not an arm"):
        policy.tell(action, 0.5)
    assert seen(policy) == before
    assert not asked or policy.ask() == pending
    assert not asked or seen(policy) == before


@starts
@arm_bases
@pytest.mark.parametrize("reward", BAD_REWARDS, ids=lambda r: repr(r)[:12])
def test_a_reward_that_is_no_number_in_the_range_is_refused_and_nothing_changes(start, base, reward):
    policy = make(start, base)
    before = seen(policy)
    with pytest.raises(InvalidAction, match=r"reward is .*, expected a number in \[0, 1\]"):
        policy.tell(0, reward)
    assert seen(policy) == before
    pending = policy.ask()
    before = seen(policy)
    with pytest.raises(InvalidAction):
        policy.tell(pending, reward)
    assert seen(policy) == before
    assert policy.ask() == pending
    assert seen(policy) == before


@starts
@pytest.mark.parametrize("reward", ["0.5", "1", b"1"])
def test_a_number_written_as_text_is_no_reward(start, reward):
    policy = make(start, "MonUCB")
    before = seen(policy)
    with pytest.raises(InvalidAction, match=r"reward is .*, expected a number in \[0, 1\]"):
        policy.tell(0, reward)
    assert seen(policy) == before


@starts
def test_an_integer_too_large_for_a_float_is_out_of_range(start):
    policy = make(start, "MonUCB")
    with pytest.raises(InvalidAction, match="expected a number in"):
        policy.tell(0, 10**400)
    assert policy.rounds == 0


BAD_PAIRS = [
    ([0, 1], [0.5]),
    ([0, 1], [0.5, 0.5, 0.5]),
    ([0, 1], 0.5),
    ([0, 1], []),
    ([0, 1], "10"),
    ([0, 1], None),
    ([0, 1], [0.5, math.nan]),
    ([0, 1], [0.5, -1e-9]),
    ([0, 1], [0.5, "1"]),
    ([0, 99], [0.5, 0.5]),
    ([99, 0], [0.5, 0.5]),
    ([0, -1], [0.5, 0.5]),
    ([0, [1]], [0.5, 0.5]),
    ([], []),
    (0, 0.5),
    (0, [0.5]),
    ("01", [0.5, 0.5]),
    ({0, 1}, [0.5, 0.5]),
    (None, [0.5]),
]


@starts
@pytest.mark.parametrize("base", ["TopUCB", "RandomChoice of 2"])
@pytest.mark.parametrize(("action", "rewards"), BAD_PAIRS, ids=lambda value: re.sub(" at 0x[0-9a-f]+", "", repr(value)))
def test_wrong_lists_are_refused_and_nothing_changes(start, base, action, rewards):
    policy = make(start, base)
    before = seen(policy)
    with pytest.raises(InvalidAction):
        policy.tell(action, rewards)
    assert seen(policy) == before
    pending = policy.ask()
    before = seen(policy)
    with pytest.raises(InvalidAction):
        policy.tell(action, rewards)
    assert seen(policy) == before
    assert policy.ask() == pending


@starts
@pytest.mark.parametrize(
    "action",
    [(0, 1), np.array([0, 1]), [np.int64(0), np.int32(1)]],
    ids=lambda value: re.sub(" at 0x[0-9a-f]+", "", repr(value)),
)
@pytest.mark.parametrize(
    "rewards",
    [(0.5, 1.0), np.array([0.5, 1.0]), [np.float32(0.5), True]],
    ids=lambda value: re.sub(" at 0x[0-9a-f]+", "", repr(value)),
)
def test_tuples_and_arrays_are_lists_too(start, action, rewards):
    policy, other = make(start, "TopUCB"), make(start, "TopUCB")
    policy.tell(action, rewards)
    other.tell([0, 1], [0.5, 1.0])
    assert seen(policy) == seen(other)


def reads_until_certain(policy):
    return is_certified(policy.drive.base.component)


@starts
@single_bases
def test_any_arm_can_be_told_because_it_is_data(start, base):
    policy = make(start, base)
    asked = policy.ask()
    used = policy.used
    other = (asked + 1) % 4
    left = [row for row in policy.unused_rows() if policy.history.unit(row) == other]
    policy.tell(other, 1.0)  # behind the rows of its cell
    shown = 0 if reads_until_certain(policy) else len(left)  # which need not be shown where they are kept apart
    assert (policy.rounds, policy.used) == (1, used + shown)
    if base != "plain":
        cell = policy.cells()[other]
        assert cell.count == cell.used + 1
    policy.ask()
    assert policy.rounds == 1


def test_what_is_told_without_being_asked_shows_in_the_next_action():
    policy = ar.Ignorant(ar.MonUCB(2, 2, bonus=ar.bonus.practical(0.9)))
    assert policy.ask() == 0
    policy.tell(0, 0.0)
    policy.tell(1, 0.0)
    policy.tell(1, 0.0)
    assert policy.ask() == 0
    assert policy.rounds == 3


@several_bases
def test_a_list_that_was_told_may_be_shorter_longer_or_name_an_arm_twice(base):
    policy = ar.Ignorant(BASES[base]())
    policy.tell([2], [1.0])
    policy.tell([0, 1, 2, 3], [0.0, 0.0, 0.0, 0.0])
    policy.tell([1, 1], [1.0, 0.0])
    assert policy.rounds == 3
    assert [cell.count for cell in policy.cells()] == [1, 3, 2, 1]


@bases
@pytest.mark.parametrize("first", ["ask", "tell", "failed tell then ask"])
def test_full_start_has_used_nothing_before_and_the_whole_log_after(base, first):
    policy = ar.FullStart(BASES[base](), log(size=9))
    assert (policy.used, policy.unused, policy.unused_rows()) == (0, 9, list(range(9)))
    told = 0
    if first == "failed tell then ask":
        with pytest.raises(InvalidAction):
            policy.tell([0, 1] if base in SEVERAL else 0, math.nan)
        assert policy.used == 0
        policy.ask()
    elif first == "ask":
        policy.ask()
    else:
        tell(policy, [0, 1] if base in SEVERAL else 0)
        told = 1
    assert (policy.used, policy.unused, policy.unused_rows(), policy.rounds) == (9, 0, [], told)


@bases
@pytest.mark.parametrize("size", [0, 1, 9, 300])
def test_full_start_may_be_told_first(base, size):
    """The log, then what was told, in this order, and nothing of either is lost."""
    history = log(size=size)
    policy = ar.FullStart(BASES[base](), history)
    alone = ar.Ignorant(BASES[base]())
    action = [3] if base in SEVERAL else 3
    tell(policy, action)
    for row in range(size):
        unit, reward = history.unit(row), float(history.rewards[row])
        alone.tell([unit] if base in SEVERAL else unit, [reward] if base in SEVERAL else reward)
    told = reward_of(3, 0)
    alone.tell(action, [told] if base in SEVERAL else told)
    assert policy.rounds == 1
    assert policy.used == size
    if not reads_until_certain(policy):  # which keeps rows of the log apart
        assert state(policy.base) == state(alone.base)


@pytest.mark.parametrize("base", ["MonUCB", "MonUCB, tabulated", "PsiUCB", "TopUCB", "TopUCB, tabulated"])
@pytest.mark.parametrize("size", [0, 9, 300])
def test_full_start_from_totals_may_be_told_first(base, size):
    told, asked = (ar.FullStart(BASES[base](), ar.Totals.of(log(size=size))) for _ in range(2))
    asked.ask()
    for policy in (told, asked):
        policy.tell([3] if base in SEVERAL else 3, [1.0] if base in SEVERAL else 1.0)
        assert (policy.rounds, policy.used) == (1, size)
        assert sum(cell.count for cell in policy.cells()) == size + 1
    assert seen(told) == seen(asked)
    assert told.ask() == asked.ask()


def test_totals_are_loaded_as_one_count_and_one_sum_per_arm():
    history = ar.History([0, 0, 1], [0.0, 0.25, 1.0])
    policy = ar.FullStart(ar.MonUCB(2, 10, bonus=lambda n: 0.3 / math.sqrt(n)), ar.Totals.of(history))
    policy.ask()
    assert [cell.count for cell in policy.cells()] == [2, 1]
    assert policy.cells()[0].index == pytest.approx(0.125 + 0.3 / math.sqrt(2))


@pytest.mark.parametrize("base", ["LinUCB", "plain"])
def test_totals_are_for_means_per_arm_only(base):
    with pytest.raises(ar.errors.InvalidParameter, match="totals are for"):
        ar.FullStart(BASES[base](), ar.Totals.of(log()))


@starts
@bases
def test_a_policy_never_changes_the_base_it_was_given(start, base):
    given = BASES[base]()
    before = state(given)
    play(STARTS[start](given, log()), 5)
    assert state(given) == before
    assert state(given) == state(BASES[base]())


@starts
@bases
def test_a_policy_is_not_changed_by_what_happens_to_the_base_later(start, base):
    given = BASES[base]()
    policy = STARTS[start](given, log())
    for _ in range(5):
        given.update(1, 1.0)
    assert play(policy, 5) == play(make(start, base), 5)


@starts
@bases
def test_a_base_that_has_seen_samples_goes_on_from_there(start, base):
    trained = BASES[base]()
    trained.update(1, 1.0)
    trained.update(0, 0.0)
    policy = STARTS[start](trained, ar.History([], []))
    assert state(policy.base) == state(trained)
    assert (policy.rounds, policy.used) == (0, 0)


@bases
@pytest.mark.parametrize("start", [ar.FullStart, ar.ArtificialReplay])
def test_an_empty_history_equals_ignorance(base, start):
    policy, alone = start(BASES[base](), ar.History([], [])), ar.Ignorant(BASES[base]())
    assert play(policy, 8) == play(alone, 8)
    assert (policy.used, policy.unused) == (0, 0)
    assert state(policy.base) == state(alone.base)


@starts
@bases
def test_rounds_past_the_horizon_go_on(start, base):
    policy = make(start, base)
    play(policy, 25)
    assert policy.rounds == 25


@starts
@pytest.mark.parametrize(
    "kind", [int, bool, np.bool_, np.int64, np.int8, np.float32, np.array], ids=lambda k: k.__name__
)
def test_clicks_of_any_kind_are_rewards(start, kind):
    rewards = [0, 1, 1, 0, 1]
    units = [0, 1, 2, 3, 1]
    policy = STARTS[start](BASES["MonUCB"](), ar.History(units, [float(r) for r in rewards]))
    other = STARTS[start](BASES["MonUCB"](), ar.History(units, [r if kind is np.array else kind(r) for r in rewards]))
    for reward in rewards:
        assert policy.ask() == other.ask()
        policy.tell(policy.ask(), float(reward))
        other.tell(other.ask(), kind(reward))
    assert seen(policy) == seen(other)


@starts
def test_a_policy_says_what_it_is(start):
    policy = make(start, "MonUCB")
    tell(policy, policy.ask())
    assert type(policy).__name__ in repr(policy)
    assert "1 rounds" in repr(policy)
    assert f"{policy.used} of" in repr(policy)


@pytest.mark.parametrize("base", [None, 3, "MonUCB", ar.MonUCB, object(), np.zeros(3)], ids=lambda b: repr(b)[:20])
def test_something_that_is_no_base_is_refused(base):
    with pytest.raises(ar.errors.InvalidParameter, match=r"propose\(\) and update\(unit, reward\)"):
        ar.Ignorant(base)


@pytest.mark.parametrize(
    "history",
    [None, [(0, 1.0)], {"arm": [0]}, np.zeros(3)],
    ids=lambda value: re.sub(" at 0x[0-9a-f]+", "", repr(value)),
)
@pytest.mark.parametrize("start", [ar.FullStart, ar.ArtificialReplay])
def test_something_that_is_no_history_is_refused(start, history):
    with pytest.raises(
        ar.errors.InvalidHistory, match="history must be a History, Totals, or a log from open_history, got"
    ):
        start(BASES["MonUCB"](), history)
