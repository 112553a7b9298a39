"""Walking a component: what it is made of, copying it, filling it in place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np

from artreplay.compiling.arrays import Ints

T = TypeVar("T")

MARK = "__compiled__"  # the attribute that a marked class or function carries
SCRATCH = "__scratch__"  # the attribute that names the fields which are no part of a component's state


def is_component(thing: object) -> bool:
    """Whether `thing` is an instance of a class marked by `compiled`."""
    return isinstance(thing, tuple) and MARK in type(thing).__dict__


def classes_of(component: Any) -> tuple[type, ...]:
    """The class of a component and those of the components nested in it, in field order."""
    nested = [cls for field in component if is_component(field) for cls in classes_of(field)]
    return (type(component), *nested)


def fields_of(component: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The leaves of a component with their dotted names."""
    for name, value in zip(component._fields, component, strict=True):
        if is_component(value):
            yield from fields_of(value, f"{path}{name}.")
        else:
            yield path + name, value


def arrays_of(component: Any) -> dict[str, np.ndarray[Any, Any]]:
    """Every array of a component by its dotted name: together they are its state."""
    return {name: value for name, value in fields_of(component) if isinstance(value, np.ndarray)}


def state_of(component: Any) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays of a component without scratch space: equal if and only if the states are."""
    state: dict[str, np.ndarray[Any, Any]] = {}
    scratch = getattr(type(component), SCRATCH, ())
    for name, value in zip(component._fields, component, strict=True):
        if name in scratch:
            continue
        if is_component(value):
            state |= {f"{name}.{inner}": array for inner, array in state_of(value).items()}
        elif isinstance(value, np.ndarray):
            state[name] = value
    return state


def scalars_of(component: Any) -> dict[str, Any]:
    """Every other leaf of a component by its dotted name: constants that never change after it was made."""
    return {name: value for name, value in fields_of(component) if not isinstance(value, np.ndarray)}


def copied(component: T) -> T:
    """The same component over its own memory."""
    copy: T = _map_arrays(component, lambda name, array: array.copy())
    return copy


def packed(component: T) -> tuple[T, Ints]:
    """The same component with all its arrays inside one buffer, so that its whole state is copied in one stroke."""
    sizes = {name: -(-array.nbytes // 8) for name, array in arrays_of(component).items()}
    starts = dict(zip(sizes, np.cumsum([0, *sizes.values()]).tolist(), strict=False))
    buffer = np.zeros(sum(sizes.values()), np.int64)

    def place(name: str, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        span = buffer[starts[name] : starts[name] + sizes[name]]
        view: np.ndarray[Any, Any] = span.view(array.dtype)[: array.size].reshape(array.shape)
        view[...] = array
        return view

    return _map_arrays(component, place), buffer


def views(component: T) -> T:
    """The same component over the same memory through memoryviews, whose entries are plain numbers.

    Interpreted code that only indexes and asks for len() and shape runs several times faster on them.
    """
    viewed: T = _map_arrays(component, lambda name, array: memoryview(array))
    return viewed


def overwrite(component: T, arrays: dict[str, np.ndarray[Any, Any]]) -> T:
    """The component with its state replaced; arrays that have grown since take the place of the shorter ones."""

    def take(name: str, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        new = arrays[name]
        if new.shape != array.shape:
            return np.ascontiguousarray(new, dtype=array.dtype)
        array[...] = new
        return array

    filled: T = _map_arrays(component, take)
    return filled


def _map_arrays(component: Any, change: Any, path: str = "") -> Any:
    new = {}
    for name, value in zip(component._fields, component, strict=True):
        if is_component(value):
            new[name] = _map_arrays(value, change, f"{path}{name}.")
        elif isinstance(value, np.ndarray):
            new[name] = change(path + name, value)
    return component._replace(**new)
