"""Objects of a user's own that check what they are to be shown: asked about all of it before they are shown any."""

from __future__ import annotations

import pytest

import artreplay as ar
from artreplay.errors import InvalidAction, InvalidHistory


class Choosy:
    """Knows whole numbers below 3 and rewards that are not 0.5."""

    def __init__(self):
        self.shown = []

    def propose(self):
        return [0, 1]

    def update(self, unit, reward):
        self.shown.append((unit, reward))

    def check_unit(self, unit):
        if unit not in (0, 1, 2):
            raise ValueError(f"{unit!r} is not below 3")

    def check_reward(self, reward):
        if reward == 0.5:
            raise ValueError("half a reward is none")


@pytest.mark.parametrize("start", [ar.FullStart, ar.ArtificialReplay])
def test_what_is_wrong_with_a_log_is_said_in_the_objects_words_with_the_row(start):
    with pytest.raises(InvalidHistory, match=r"^unit in row 3 is refused: 7 is not below 3$"):
        start(Choosy(), ar.History([0, 1, 1, 7, 8], [1] * 5))
    with pytest.raises(InvalidHistory, match=r"^reward in row 2 is refused: half a reward is none$"):
        start(Choosy(), ar.History([0, 1, 1, 0], [1, 0, 0.5, 0.5]))


def test_rows_it_refuses_can_be_skipped():
    policy = ar.FullStart(Choosy(), ar.History([7, 1, 7, 2], [1, 1, 0, 0]), unknown="skip")
    policy.ask()
    assert policy.base.shown == [(1, 1.0), (2, 0.0)]
    assert policy.skipped == 2
    sentence = "reward in row 4 is refused: half a reward is none"  # units are skipped, rewards never
    with pytest.raises(InvalidHistory, match=f"^{sentence}$"):
        ar.FullStart(Choosy(), ar.History([7, 1, 7, 2, 2], [1, 1, 0, 0, 0.5]), unknown="skip")
    with pytest.raises(InvalidHistory, match=r"^unit in row 0 is refused: 7 is not below 3. So is every other unit"):
        ar.FullStart(Choosy(), ar.History([7, 8], [1, 1]), unknown="skip")


@pytest.mark.parametrize(("units", "rewards"), [([0, 7], [1, 1]), ([0, 1], [1, 0.5])])
def test_nothing_of_an_action_is_shown_if_a_part_of_it_is_refused(units, rewards):
    policy = ar.Ignorant(Choosy())
    for _ in range(2):  # a unit that was refused is refused again
        with pytest.raises(InvalidAction, match=r"is not below 3|half a reward"):
            policy.tell(units, rewards)
    assert (policy.rounds, policy.base.shown) == (0, [])
    policy.tell([0, 2], [1, 0])
    assert policy.base.shown == [(0, 1.0), (2, 0.0)]
