"""Opening an indexed store, and checking it."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from artreplay.addresses import check_address
from artreplay.errors import InvalidFile, InvalidParameter
from artreplay.history.stores.indexed_arms import IndexedArms
from artreplay.history.stores.indexed_points import IndexedPoints
from artreplay.history.stores.manifest import check_files, read_manifest
from artreplay.history.stores.places import Place

_TRIES = 5


def open_store(
    path: str | os.PathLike[str], given: dict[str, Any] | None = None, until: int | None = None
) -> IndexedArms | IndexedPoints:
    """The store at a path or an address; columns that are `given` must be those it was made of."""
    place = Place(path)
    for tries in range(_TRIES):
        manifest = read_manifest(place)
        check_given(place.name, manifest, given or {})
        kind = IndexedArms if manifest["kind"] == "arms" else IndexedPoints
        try:
            store = kind(place, manifest, until)
        except InvalidFile:
            if tries + 1 < _TRIES and read_manifest(place) != manifest:
                continue  # it was compacted, or made anew, between the manifest and the files
            raise
        store.opening = place.bytes, place.requests
        return store
    raise InvalidFile("changes all the time", file=place.name)


def check_given(where: str, manifest: dict[str, Any], given: dict[str, Any]) -> None:
    """Refuse columns, an order or a seed that are not those a log was laid out with."""
    for name, value in given.items():
        held = manifest["columns"].get(name, manifest.get(name))
        value = list(value) if isinstance(value, tuple) else value
        if value is not None and value != held:
            raise InvalidParameter(f"{where} was indexed with {name}={held!r}, got {value!r}: leave it out")


def check_store(
    path: str | os.PathLike[str], advance: Callable[[int, int], None] = lambda done, size: None
) -> dict[str, Any]:
    """Compare every file of a store with its checksum; the manifest.

    `advance` is told how many bytes were read, and how many there are.
    """
    check_address(path)
    place = Place(path)
    manifest = read_manifest(place)
    check_files(place, manifest, advance)
    return manifest
