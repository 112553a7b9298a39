"""A log given as a list of allocations: the same as points with levels beside them."""

from __future__ import annotations

import pytest

import artreplay as ar
from artreplay.errors import InvalidHistory

UNITS = [ar.Allocation((0.1, 0.2), 1.0), ar.Allocation((0.2, 0.2), 0.5), ar.Allocation((0.1, 0.2), 1)]


def test_a_list_of_allocations_is_points_with_levels():
    history = ar.History(UNITS, [1, 0, 0.5])
    same = ar.History([unit.point for unit in UNITS], [1, 0, 0.5], levels=[1, 0.5, 1])
    same.check_continues(history.fingerprint)
    history.check_continues(same.fingerprint)
    assert [history.unit(row) for row in range(3)] == UNITS
    assert len(ar.History(UNITS, [1, 0, 0.5], until=2)) == 2
    base = ar.TreeAllocation(2, (0.5, 1), 2, 5, 100, 1 / 8)
    policy = ar.FullStart(base, history)
    policy.ask()
    assert policy.used == 3


def test_points_of_one_dimension_may_be_told_as_they_are_asked_for():
    history = ar.History((ar.Allocation((0.5,), 2), ar.Allocation((1.5,), 2)), [1, 0])
    assert history.points.tolist() == [[0.5], [1.5]]


@pytest.mark.parametrize(
    ("units", "given", "sentence"),
    [
        ([*UNITS, (0.1, 0.2)], {}, r"unit in row 3 is \(0.1, 0.2\), expected an allocation"),
        (UNITS, {"levels": [1, 1, 1]}, "levels must be left out where the units are allocations"),
        ([*UNITS, ar.Allocation((0.1,), 1)], {}, "unit in row 3 .*expected a point with as many coordinates"),
        ([ar.Allocation(0.1, 1)], {}, "unit in row 0 .*expected a point with as many coordinates"),
        ([ar.Allocation((0.1,), -1)], {}, "level in row 0 is -1.0, expected"),
        ([ar.Allocation((float("nan"),), 1)], {}, r"point in row 0 is \[nan\], expected finite"),
    ],
    ids=["mixed", "levels too", "dimensions", "no point", "level", "nan"],
)
def test_what_is_wrong_with_them_is_said_with_the_row(units, given, sentence):
    with pytest.raises(InvalidHistory, match=sentence):
        ar.History(units, [0.5] * len(units), **given)
