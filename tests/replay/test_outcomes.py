"""What can come of a piece of work: one enumeration, in which no number has two meanings."""

from __future__ import annotations

from artreplay.algorithms import regression_parts
from artreplay.replay import step

PLACES = ("USED", "ROUND", "PENDING", "SERVING", "SLOT", "SHOWN", "READ_UNITS", "PLACES", "SAVE_SIZE")


def test_no_number_has_two_meanings():
    names = [name for name, value in vars(step).items() if name.isupper() and isinstance(value, int)]
    outcomes = [name for name in names if name not in (*PLACES, "UNBOUNDED")]
    numbers = [getattr(step, name) for name in outcomes]
    assert len(outcomes) >= 9
    assert len(set(numbers)) == len(numbers)
    assert max(numbers) == step.AGAIN == 0  # a number above it counts units
    assert regression_parts.NEEDS_ROOM == step.NEEDS_ROOM  # which algorithms cannot import
