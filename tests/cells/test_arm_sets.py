"""The arms of an algorithm: numbers, or labels in the order given."""

from __future__ import annotations

import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from artreplay.cells import Arms, ArmSet
from artreplay.errors import InvalidParameter

labels = st.one_of(st.integers(), st.text(), st.tuples(st.integers(), st.text()), st.binary())


@given(st.lists(labels, min_size=1, max_size=20, unique=True))
def test_labels_have_the_numbers_of_their_places(names):
    arms = ArmSet(labels=names)
    assert len(arms) == len(names)
    assert list(arms.labels) == names
    assert [arms.number(name) for name in names] == list(range(len(names)))


@given(st.integers(1, 50), st.integers(-100, 100))
def test_without_labels_a_number_is_itself(size, number):
    arms = ArmSet(size)
    assert arms.number(number) == (number if 0 <= number < size else -1)
    assert arms.number(np.int64(number)) == arms.number(number)
    assert list(arms.labels) == list(range(size))


@pytest.mark.parametrize("label", ["0", 0.0, 0.5, None, [0], {}, np.array([0]), math.nan, b"0"], ids=repr)
def test_what_is_no_integer_is_no_numbered_arm(label):
    assert ArmSet(3).number(label) == -1


@pytest.mark.parametrize("label", ["c", 1, None, ["a"], {}, np.array(["a"])], ids=repr)
def test_a_label_that_was_not_given_has_no_number(label):
    assert ArmSet(labels=["a", "b"]).number(label) == -1


@pytest.mark.parametrize(
    "names", [iter(["a", "b"]), (n for n in "ab"), {"a": 1, "b": 2}, np.array(["a", "b"]), ("a", "b")]
)
def test_labels_may_come_from_anything_that_is_gone_through_once(names):
    arms = ArmSet(labels=names)
    assert list(arms.labels) == ["a", "b"]
    assert arms.number("b") == 1


def test_numpy_labels_are_plain_ones():
    assert [type(label) for label in ArmSet(labels=np.array([3, 4])).labels] == [int, int]
    assert [type(label) for label in ArmSet(labels=np.array(["x"])).labels] == [str]
    assert ArmSet(labels=[np.float64(0.5)]).labels == [0.5]


@pytest.mark.parametrize(
    ("size", "names", "words"),
    [
        (1, None, "0 alone"),
        (5, None, "0..4"),
        (None, ["a", "b"], "'a', 'b'"),
        (None, list("abcdefg"), "'a', 'b', 'c', 'd', 'e' and 2 more"),
    ],
)
def test_arms_are_described_in_a_few_words(size, names, words):
    assert ArmSet(size, names).describe() == words


@pytest.mark.parametrize("twice", [["a", "a"], [1, True], [0, 0.0], [(1,), (1,)]], ids=repr)
def test_equal_labels_are_refused(twice):
    with pytest.raises(InvalidParameter, match="arms must be distinct"):
        ArmSet(labels=twice)


def test_each_arm_is_its_own_cell():
    assert [Arms(4).locate(arm) for arm in range(4)] == [0, 1, 2, 3]
