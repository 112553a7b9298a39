"""Walking a component: copies, one buffer, views, states."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from artreplay.compiling import (
    arrays_of,
    classes_of,
    compiled,
    copied,
    is_component,
    overwrite,
    packed,
    scalars_of,
    state_of,
    views,
)
from artreplay.errors import ArtReplayError


@compiled
class Leaf(NamedTuple):
    numbers: np.ndarray
    scale: float


@compiled(scratch=("room_to_work",))
class Pair(NamedTuple):
    left: Any
    right: Any
    room_to_work: np.ndarray
    flag: bool = True


@compiled(scratch=("notes",))
class Desk(NamedTuple):
    notes: Any  # a whole component that is scratch
    value: np.ndarray


class Unmarked(NamedTuple):
    numbers: np.ndarray


dtypes = st.sampled_from([np.float64, np.int64, np.uint64, np.int8, np.bool_, np.float32])
arrays = dtypes.flatmap(
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4))
)
leaves = st.builds(Leaf, arrays, st.floats(-1, 1))
components = st.recursive(leaves, lambda inner: st.builds(Pair, inner, inner, arrays), max_leaves=4)


def bytes_of(component: Any) -> dict[str, tuple]:
    return {name: (a.dtype, a.shape, a.tobytes()) for name, a in arrays_of(component).items()}


def flipped(array: np.ndarray) -> np.ndarray:
    """Another array of the same kind that differs in every entry."""
    return (
        ~array
        if array.dtype != np.float64 and array.dtype != np.float32
        else np.where(array == 7, 8, 7).astype(array.dtype)
    )


@given(components)
@settings(max_examples=40)
def test_a_copy_is_equal_and_has_memory_of_its_own(component):
    before = bytes_of(component)
    copy = copied(component)
    assert type(copy) is type(component)
    assert bytes_of(copy) == before
    assert scalars_of(copy) == scalars_of(component)
    assert classes_of(copy) == classes_of(component)
    for array in arrays_of(copy).values():
        array[...] = flipped(array)
    assert bytes_of(component) == before


@given(components)
@settings(max_examples=40)
def test_the_buffer_of_a_packed_component_is_its_whole_state(component):
    before = bytes_of(component)
    seated, buffer = packed(component)
    assert bytes_of(seated) == before
    assert bytes_of(component) == before
    assert scalars_of(seated) == scalars_of(component)
    saved = buffer.copy()
    for array in arrays_of(seated).values():
        array[...] = flipped(array)
    assert bytes_of(component) == before
    changed = bytes_of(seated)
    assert all(changed[name] != before[name] for name, array in arrays_of(seated).items() if array.size)
    buffer[:] = saved
    assert bytes_of(seated) == before


@given(components)
@settings(max_examples=40)
def test_arrays_of_a_packed_component_do_not_overlap(component):
    seated, _ = packed(component)
    for name, array in arrays_of(seated).items():
        others = {other: value.tobytes() for other, value in arrays_of(seated).items() if other != name}
        array[...] = flipped(array)
        assert {other: value.tobytes() for other, value in arrays_of(seated).items() if other != name} == others
        assert array.flags.c_contiguous
        assert array.flags.writeable


@given(components)
@settings(max_examples=40)
def test_overwriting_brings_a_state_back(component):
    saved = {name: array.copy() for name, array in arrays_of(component).items()}
    before = bytes_of(component)
    for array in arrays_of(component).values():
        array[...] = flipped(array)
    places = {name: array.ctypes.data for name, array in arrays_of(component).items()}
    again = overwrite(component, saved)
    assert bytes_of(again) == before
    assert {name: array.ctypes.data for name, array in arrays_of(again).items()} == places


def test_overwriting_takes_arrays_that_have_grown():
    component = Pair(Leaf(np.zeros(2), 1.0), Leaf(np.zeros(1, np.int64), 2.0), np.zeros(1))
    grown = {"left.numbers": np.arange(5), "right.numbers": np.array([9]), "room_to_work": np.zeros((2, 2))}
    again = overwrite(component, grown)
    assert again.left.numbers.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert again.left.numbers.dtype == np.float64
    assert again.right.numbers.tolist() == [9]
    assert again.room_to_work.shape == (2, 2)


def test_overwriting_with_an_array_missing_is_an_error():
    with pytest.raises(KeyError):
        overwrite(Leaf(np.zeros(2), 1.0), {})


@given(components)
@settings(max_examples=40)
def test_a_state_is_the_arrays_without_scratch(component):
    state = state_of(component)
    everything = arrays_of(component)
    assert state.keys() == {name for name in everything if not name.endswith("room_to_work")}
    assert all(state[name] is everything[name] for name in state)


def test_a_component_can_be_scratch_as_a_whole():
    desk = Desk(Leaf(np.zeros(2), 1.0), np.ones(1))
    assert state_of(desk).keys() == {"value"}
    assert arrays_of(desk).keys() == {"notes.numbers", "value"}


def test_the_same_name_is_scratch_only_where_it_was_said():
    @compiled
    class Other(NamedTuple):
        room_to_work: np.ndarray
        inner: Any

    component = Other(np.zeros(1), Pair(Leaf(np.zeros(1), 0.0), Leaf(np.zeros(1), 0.0), np.zeros(1)))
    assert state_of(component).keys() == {"room_to_work", "inner.left.numbers", "inner.right.numbers"}


@given(leaves)
def test_views_show_the_same_memory_as_plain_numbers(component):
    seen = views(component)
    assert type(seen) is type(component)
    assert seen.scale == component.scale
    assert seen.numbers.shape == component.numbers.shape
    for place in np.ndindex(component.numbers.shape):
        assert seen.numbers[place] == component.numbers[place] or component.numbers[place] != component.numbers[place]
        assert type(seen.numbers[place]) in (int, float, bool)
        seen.numbers[place] = 1
    assert (component.numbers == 1).all()


def test_an_array_inside_an_array_of_a_component_keeps_its_layout():
    """Slices and transposes are laid out anew, in the order in which they are indexed."""
    component = Leaf(np.arange(12.0).reshape(3, 4).T[::2], 1.0)
    seated, _ = packed(component)
    assert seated.numbers.tolist() == component.numbers.tolist()
    assert copied(component).numbers.tolist() == component.numbers.tolist()


def test_what_is_a_component():
    leaf = Leaf(np.zeros(1), 1.0)
    assert is_component(leaf)
    assert not is_component(Leaf)
    assert not is_component(Unmarked(np.zeros(1)))
    assert not is_component((1, 2))
    assert not is_component(np.zeros(1))
    assert classes_of(Pair(leaf, Desk(leaf, np.zeros(1)), np.zeros(1))) == (Pair, Leaf, Desk, Leaf)


def test_a_copy_shares_no_array_whatever_holds_it():
    """A part that was not marked is refused or copied, never shared."""
    component = Pair(Unmarked(np.zeros(2)), Leaf(np.zeros(1), 0.0), np.zeros(1))
    with suppress(ArtReplayError):
        copied(component).left.numbers[0] = 5.0
    assert component.left.numbers[0] == 0.0
