"""Labels: a history stores them, the policy maps them by the base's arms."""

from __future__ import annotations

import math
from datetime import date
from typing import Any

import numpy as np
import pytest
from policy_kit import BASES, DETERMINISTIC, LeastSeen, log, play, seen

import artreplay as ar
from artreplay.errors import InvalidAction, InvalidHistory, InvalidParameter

COLOURS = ["red", "green", "blue", "white"]
history_policies = pytest.mark.parametrize("start", [ar.FullStart, ar.ArtificialReplay])

LABELLED = {
    "MonUCB": lambda arms: ar.MonUCB(arms=arms, horizon=20, bonus=ar.bonus.practical(0.5)),
    "TopUCB": lambda arms: ar.TopUCB(arms=arms, budget=2, horizon=20, bonus=ar.bonus.practical(0.5)),
    "LinUCB": lambda arms: ar.LinUCB([[1, 0], [0.5, 0], [0, 1], [0, 0.5]], 20, alpha=0.3, arms=arms),
    "Thompson": lambda arms: ar.ThompsonSampling(arms=arms, seed=1),
    "UCB1": lambda arms: ar.UCB1(arms=arms),
    "RandomChoice": lambda arms: ar.RandomChoice(arms=arms, seed=1),
}


class Odd:
    """A label that is only equal to itself."""


MANY_LABELS: dict[str, list[Any]] = {
    "text": COLOURS,
    "integers that are no positions": [10, 20, 30, 40],
    "integers in another order": [3, 2, 1, 0],
    "tuples": [("a", 1), ("a", 2), ("b", 1), ("b", 2)],
    "dates": [date(2024, 1, day) for day in range(1, 5)],
    "mixed": ["red", 7, ("x",), None.__class__],
    "objects": [Odd(), Odd(), Odd(), Odd()],
    "numpy integers": list(np.array([10, 20, 30, 40])),
    "numpy text": list(np.array(COLOURS)),
}


@history_policies
@pytest.mark.parametrize("base", LABELLED)
@pytest.mark.parametrize("labels", MANY_LABELS)
def test_labels_change_nothing_but_names(start, base, labels):
    names = MANY_LABELS[labels]
    numbered = log()
    named = ar.History([names[numbered.unit(row)] for row in range(len(numbered))], numbered.rewards)
    plain = start(LABELLED[base](range(4)), numbered)
    policy = start(LABELLED[base](names), named)
    for round_ in range(6):
        expected, action = plain.ask(), policy.ask()
        reward = (round_ % 3) / 2
        if base == "TopUCB":
            assert action == [names[arm] for arm in expected]
            policy.tell(action, [reward, reward])
            plain.tell(expected, [reward, reward])
        else:
            assert action == names[expected]
            policy.tell(action, reward)
            plain.tell(expected, reward)
    assert policy.unused_rows() == plain.unused_rows()
    assert [cell.unit for cell in policy.cells()] == names


def test_arms_10_and_20_are_labels_and_not_positions():
    policy = ar.ArtificialReplay(ar.MonUCB(arms=[10, 20], horizon=10), ar.History([20, 10, 20], [1, 0, 1]))
    assert policy.ask() in (10, 20)
    for wrong in (0, 1):
        with pytest.raises(InvalidAction, match="The arms are 10, 20"):
            policy.tell(wrong, 1.0)
    with pytest.raises(InvalidHistory, match="label 0 in row 1 is not an arm"):
        ar.ArtificialReplay(ar.MonUCB(arms=[10, 20], horizon=10), ar.History([20, 0], [1, 0]))


def test_arms_are_given_back_as_plain_values():
    policy = ar.Ignorant(ar.MonUCB(arms=np.array([10, 20]), horizon=10))
    assert type(policy.ask()) is int
    policy = ar.Ignorant(ar.MonUCB(arms=np.array(["a", "b"]), horizon=10))
    assert type(policy.ask()) is str
    assert type(ar.Ignorant(ar.MonUCB(3, 10)).ask()) is int
    assert all(type(arm) is int for arm in ar.Ignorant(ar.TopUCB(3, 2, 10)).ask())


@history_policies
@pytest.mark.parametrize("base", LABELLED)
def test_a_label_the_base_lacks_is_named_with_its_first_row(start, base):
    history = ar.History(["red", "green", "mauve", "pink", "mauve"], [0, 0, 0, 0, 0])
    with pytest.raises(InvalidHistory, match=r"label 'mauve' in row 2 is not an arm. The arms are 'red', 'green'"):
        start(LABELLED[base](COLOURS), history)


@history_policies
@pytest.mark.parametrize("unit", [4, -1, 10**30, "red"], ids=repr)
def test_an_arm_outside_the_numbers_is_named_with_its_row(start, unit):
    with pytest.raises(InvalidHistory, match=r"in row 1 is not an arm. The arms are 0\.\.3"):
        start(BASES["MonUCB"](), ar.History([0, unit], [0, 0]))


@history_policies
@pytest.mark.parametrize("base", LABELLED)
def test_rows_of_retired_arms_can_be_skipped(start, base):
    units = ["red", "mauve", "green", "pink", "blue", "mauve", "red", "white"]
    rewards = [0, 1, 0.5, 1, 1, 1, 0, 0.5]
    kept = [row for row, unit in enumerate(units) if unit in COLOURS]
    policy = start(LABELLED[base](COLOURS), ar.History(units, rewards), unknown="skip")
    other = start(LABELLED[base](COLOURS), ar.History([units[r] for r in kept], [rewards[r] for r in kept]))
    assert policy.skipped == 3
    assert other.skipped == 0
    for _ in range(5):
        action = policy.ask()
        assert action == other.ask()
        assert (policy.used, policy.unused) == (other.used, other.unused)
        assert policy.unused_rows() == [kept[row] for row in other.unused_rows()]
        assert policy.used_by_cell() == other.used_by_cell()
        for one in (policy, other):
            one.tell(action, [0.5] * len(action) if isinstance(action, list) else 0.5)


@history_policies
def test_a_log_of_retired_arms_only_equals_ignorance(start):
    policy = start(BASES["MonUCB"](), ar.History(["old", "older"], [1, 1]), unknown="skip")
    assert (policy.skipped, policy.unused, policy.unused_rows()) == (2, 0, [])
    assert play(policy, 5) == play(ar.Ignorant(BASES["MonUCB"]()), 5)


@history_policies
@pytest.mark.parametrize("unknown", ["ignore", None, True, 0])
def test_what_happens_to_unknown_labels_is_one_of_two_words(start, unknown):
    with pytest.raises(InvalidParameter, match='unknown must be "error" or "skip"'):
        start(BASES["MonUCB"](), log(), unknown=unknown)


@history_policies
def test_a_label_that_is_in_no_row_any_more_does_no_harm(start):
    history = ar.History(["red", "mauve", "red"], [0, 1, 1]).rows(np.array([0, 2]))
    policy = start(ar.MonUCB(arms=["red", "blue"], horizon=10), history)
    policy.ask()
    assert (policy.used, policy.skipped) == (2, 0) if start is ar.FullStart else (policy.used <= 2)


@history_policies
@pytest.mark.parametrize(
    ("reward", "shown"), [(1.5, "1.5"), (-0.25, "-0.25"), (1.0000001, "1"), (2, "2")], ids=lambda v: str(v)
)
def test_a_logged_reward_outside_the_range_is_named_with_its_row(start, reward, shown):
    with pytest.raises(InvalidHistory, match=rf"reward in row 2 is {shown}.*, expected a number in \[0, 1\]"):
        start(BASES["MonUCB"](), ar.History([0, 1, 2], [0, 1, reward]))


def test_a_history_serves_many_policies_and_is_never_changed():
    history = log(size=40)
    rewards, codes = history.rewards.copy(), history.codes.copy()
    for name in DETERMINISTIC:
        play(ar.ArtificialReplay(BASES[name](), history), 5)
        play(ar.FullStart(BASES[name](), history), 5)
    assert (history.rewards == rewards).all()
    assert (history.codes == codes).all()


def test_equal_labels_of_other_types_are_the_same_arm():
    policy = ar.Ignorant(ar.MonUCB(arms=["a", "b"], horizon=10))
    policy.tell(np.str_("b"), 1.0)
    assert policy.cells()[1].count == 1


def test_a_missing_label_is_no_arm():
    policy = ar.Ignorant(ar.MonUCB(arms=["a", "b"], horizon=10))
    for label in (None, math.nan, ["a"], {"a": 1}):
        with pytest.raises(InvalidAction):
            policy.tell(label, 1.0)
    assert policy.rounds == 0


def test_a_plain_object_takes_any_label_of_the_log():
    policy = ar.FullStart(LeastSeen(), ar.History([3, 2, 2], [1, 0, 1]), unknown="skip")
    policy.ask()
    assert policy.skipped == 0
    assert policy.base.counts == [0, 0, 2, 1]
    assert seen(policy)["used by cell"] == {3: 1, 2: 2}
