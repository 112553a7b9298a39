"""What policies over points say of what they cannot use: with every digit that matters; and what is no error at all."""

from __future__ import annotations

import numpy as np
import pytest

import artreplay as ar
from artreplay.errors import InvalidAction, InvalidHistory

UTM = [(500_000, 510_000), (4_000_001, 4_010_001)]


def test_a_level_is_told_from_another_by_every_digit():
    base = ar.GridAllocation(1, (0.1, 0.2, 0.3), 0.6, 1, 10, 2)
    with pytest.raises(
        InvalidHistory, match=r"level in row 0 is 0\.30000000000000004, expected one of 0\.1, 0\.2, 0\.3$"
    ):
        ar.FullStart(base, ar.History([[0.5]], [1], levels=[0.1 + 0.2]))
    with pytest.raises(InvalidAction, match=r"level must be one of 0\.1, 0\.2, 0\.3, got 0\.30000000000000004$"):
        ar.Ignorant(base).tell([((0.5,), 0.1 + 0.2)], [1])


def test_a_box_of_large_numbers_is_named_with_every_digit():
    base = ar.TreeUCB(2, 100, box=UTM)
    with pytest.raises(InvalidAction, match=r"\[505000\.0, 4010001\.5\] must lie in .* × \[4000001, 4010001\]$"):
        ar.Ignorant(base).tell((505_000.0, 4_010_001.5), 1)
    with pytest.raises(
        InvalidHistory, match=r"row 0 is .*4010001\.5\], .*\[500000, 510000\] × \[4000001, 4010001\]\. Give another box"
    ):
        ar.FullStart(base, ar.History([[505_000.0, 4_010_001.5]], [1]))


def test_a_reward_just_outside_its_range_is_named_with_every_digit():
    with pytest.raises(InvalidHistory, match=r"reward in row 0 is 1\.0000000000000002, expected a number in \[0, 1\]"):
        ar.FullStart(ar.MonUCB(2, 10), ar.History([0], [np.nextafter(1, 2)]))


def test_one_allocation_by_itself_is_to_be_wrapped_in_a_list():
    policy = ar.Ignorant(ar.GridAllocation(1, (1, 2), 3, 2, 10, 2))
    for reward in (1, [1, 0]):
        with pytest.raises(InvalidAction, match=r"got Allocation.* alone. Put it in a list"):
            policy.tell(ar.Allocation((0.5,), 1), reward)
    assert policy.rounds == 0


@pytest.mark.parametrize(
    "base",
    [ar.TreeUCB(1, 10), ar.GridAllocation(1, (1, 2), 3, 2, 10, 2), ar.MonUCB(3, 10)],
    ids=["points", "allocations", "arms"],
)
@pytest.mark.parametrize(
    "history",
    [ar.History(np.empty((0, 2)), []), ar.History(np.empty((0, 1)), [], levels=[]), ar.History([], [])],
    ids=["two dimensions", "levels", "nothing"],
)
@pytest.mark.parametrize("start", [ar.FullStart, ar.ArtificialReplay])
def test_a_log_without_rows_is_like_no_log_whatever_its_shape(base, history, start):
    assert start(base, history).ask() == ar.Ignorant(base).ask()
