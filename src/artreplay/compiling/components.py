"""Walks through a component: lists its arrays and numbers, copies it, compares its state, and lets its arrays grow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from artreplay.errors import ArtReplayError, NotCompilable

# The three kinds of array a component holds. Keeping to them keeps the number of compiled loops small.
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Words = NDArray[np.uint64]  # keys and counters of random draws

T = TypeVar("T")
Scalar = TypeVar("Scalar", bound=np.generic)
AnyArray = np.ndarray[Any, Any]

MARK = "__compiled__"  # the attribute that a marked class or function carries
SCRATCH = "__scratch__"  # the attribute that names the fields which do not belong to a component's state
_NUMBERS = "biufc"  # the kinds of dtype that are numbers


def is_component(thing: object) -> bool:
    """Whether `thing` is an instance of a class marked by `compiled`."""
    return isinstance(thing, tuple) and MARK in type(thing).__dict__


def classes_of(component: Any) -> tuple[type, ...]:
    """The class of a component and the classes of the components nested in it, in the order of the fields."""
    nested = [cls for field in component if isinstance(field, tuple) for cls in classes_of(field)]
    return (type(component), *nested) if is_component(component) else tuple(nested)


def _named(part: Any) -> Iterator[tuple[str, Any]]:
    """The fields of a component by name, or the entries of a plain tuple by number."""
    names = getattr(part, "_fields", None) or map(str, range(len(part)))
    return zip(names, part, strict=True)


def fields_of(component: Any, path: str = "", scratch: bool = True) -> Iterator[tuple[str, Any]]:
    """The arrays and numbers of a component under their dotted names, with or without scratch space."""
    left_out = () if scratch else getattr(type(component), SCRATCH, ())
    for name, value in _named(component):
        if name in left_out:
            continue
        if isinstance(value, tuple):
            yield from fields_of(value, f"{path}{name}.", scratch)
        else:
            yield path + name, value


def check_fields(component: Any) -> None:
    """Refuse a component with a field that compiled code cannot take. Copies of the component would share it."""
    for path, value in fields_of(component):
        if isinstance(value, np.ndarray):
            if value.dtype.kind not in _NUMBERS:
                what = f"must be an array of numbers, got one of dtype {value.dtype}"
                raise NotCompilable(f"{type(component).__qualname__}.{path} {what}")
        elif not isinstance(value, (int, float, complex, np.number, np.bool_)):
            kind = type(value).__name__
            what = "None" if value is None else f"{'an' if kind[0].lower() in 'aeiou' else 'a'} {kind}"
            raise NotCompilable(
                f"{type(component).__qualname__}.{path} must be a number, an array or a component, got {what}"
            )


def arrays_of(component: Any) -> dict[str, AnyArray]:
    """Every array of a component, including scratch space, by its dotted name."""
    return {name: value for name, value in fields_of(component) if isinstance(value, np.ndarray)}


def state_of(component: Any) -> dict[str, AnyArray]:
    """The arrays of a component without scratch space. Two components with equal arrays are in the same state."""
    return {name: value for name, value in fields_of(component, scratch=False) if isinstance(value, np.ndarray)}


def scalars_of(component: Any) -> dict[str, Any]:
    """The numbers of a component, by their dotted names. They are constants."""
    return {name: value for name, value in fields_of(component) if not isinstance(value, np.ndarray)}


def copied(component: T) -> T:
    """Copy a component. The copy has memory of its own."""
    copy: T = _map_arrays(component, lambda name, array: array.copy())
    return copy


def packed(component: T) -> tuple[T, Ints]:
    """Move all arrays of a component into one buffer, so that a single copy saves its whole state."""
    sizes = {name: -(-array.nbytes // 8) for name, array in arrays_of(component).items()}
    starts = dict(zip(sizes, np.cumsum([0, *sizes.values()]).tolist(), strict=False))
    buffer = np.zeros(sum(sizes.values()), np.int64)

    def place(name: str, array: AnyArray) -> AnyArray:
        """Copy an array to its span of the buffer."""
        span = buffer[starts[name] : starts[name] + sizes[name]]
        view: AnyArray = span.view(array.dtype)[: array.size].reshape(array.shape)
        view[...] = array
        return view

    return _map_arrays(component, place), buffer


def views(component: T) -> T:
    """Wrap the arrays of a component in memoryviews of the same memory, whose entries are plain numbers.

    Interpreted code that only indexes arrays and asks for `len()` and `shape` runs several times faster on them.
    """
    viewed: T = _map_arrays(component, lambda name, array: memoryview(cast(Any, array)))
    return viewed


def overwrite(component: T, arrays: dict[str, AnyArray]) -> T:
    """Replace the state of a component. Arrays of another length replace those it has."""

    def take(name: str, array: AnyArray) -> AnyArray:
        """Write the new values into the memory of an array, or return a new array if they do not fit."""
        new = arrays[name]
        if new.shape != array.shape:
            return np.ascontiguousarray(new, dtype=array.dtype)
        array[...] = new
        return array

    filled: T = _map_arrays(component, take)
    return filled


def _map_arrays(component: Any, change: Callable[[str, AnyArray], Any], path: str = "") -> Any:
    new = []
    for name, value in _named(component):
        if isinstance(value, tuple):
            new.append(_map_arrays(value, change, f"{path}{name}."))
        else:
            new.append(change(path + name, value) if isinstance(value, np.ndarray) else value)
    return component._make(new) if hasattr(component, "_make") else tuple(new)


# -- arrays that can fill up ------------------------------------------------------------------------------------------
# A component says how much room it has. When it has too little, Python doubles its arrays between slices of a loop.

UNBOUNDED = 1 << 62  # the room of a component that cannot fill


Growers = Mapping[type, Callable[[Any], Any]]


def with_room(component: T, need: int, growers: Growers | None = None) -> T:
    """Make room for `need` more samples in a component, by larger arrays in each part that has too little.

    A part grows by its own `grown()`. If growing it needs something that a component cannot hold, such as a function of
    the user, `growers` has a function for its class.
    """
    part: Any = component
    changed = {
        name: with_room(value, need, growers)
        for name, value in zip(part._fields, part, strict=True)
        if is_component(value) and value.room() < need
    }
    if changed:
        part = part._replace(**changed)
    while part.room() < need:
        before = part.room()
        grow = (growers or {}).get(type(part)) or getattr(type(part), "grown", None)
        if grow is None:
            raise ArtReplayError(
                f"{type(part).__qualname__} must have a method grown(), because it has room for only {before} samples"
            )
        part = grow(part)
        if part.room() <= before:
            raise ArtReplayError(
                f"{type(part).__qualname__}.grown() must make room for more than {before} samples, got {part.room()}"
            )
    grown: T = part
    return grown


def resized(array: NDArray[Scalar], size: int) -> NDArray[Scalar]:
    """Extend an array by zeros to this size."""
    longer = np.zeros(size, array.dtype)
    longer[: len(array)] = array
    return longer
