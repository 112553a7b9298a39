"""Arrays that can fill up: a component says how much room it has, and Python doubles it between slices of a loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from artreplay.compiling.components import is_component
from artreplay.errors import ArtReplayError

T = TypeVar("T")
Scalar = TypeVar("Scalar", bound=np.generic)

UNBOUNDED = 1 << 62  # the room of a component that cannot fill


Growers = Mapping[type, Callable[[Any], Any]]


def with_room(component: T, need: int, growers: Growers | None = None) -> T:
    """The component able to be shown `need` more samples: each part that is short is replaced by a larger one.

    A part grows by its own `grown()`, or, where that takes something a component cannot hold (a callable), by the
    function `growers` has for its class.
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
            raise ArtReplayError(f"{type(part).__qualname__} has room for {before} samples and offers no grown()")
        part = grow(part)
        if part.room() <= before:
            raise ArtReplayError(f"{type(part).__qualname__}.grown() must make room, but {before} became {part.room()}")
    grown: T = part
    return grown


def resized(array: NDArray[Scalar], size: int) -> NDArray[Scalar]:
    """A longer array that begins with this one and goes on with zeros."""
    longer = np.zeros(size, array.dtype)
    longer[: len(array)] = array
    return longer
