"""Opening an indexed store, and checking it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from artreplay.errors import InvalidParameter
from artreplay.history.addresses import check_address, is_address, shown
from artreplay.history.stores.clustered import ClusteredArms, check_clustered, is_clustered
from artreplay.history.stores.indexed_arms import IndexedArms
from artreplay.history.stores.indexed_points import IndexedPoints
from artreplay.history.stores.manifest import check_files, is_store, listed_files, read_manifest
from artreplay.history.stores.store import Store


def open_store(path: str | os.PathLike[str], given: dict[str, Any], until: int | None = None) -> Store:
    """The store at a path; columns that are `given` must be those it was made of."""
    folder = Path(path)
    manifest = read_manifest(folder)
    check_given(str(folder), manifest, given)
    return IndexedArms(folder, until) if manifest["kind"] == "arms" else IndexedPoints(folder, until)


def open_clustered(path: str | os.PathLike[str], given: dict[str, Any], until: int | None = None) -> Store:
    """The clustered Parquet at a path or an address; columns that are `given` must be those it was made of."""
    if until is not None:
        raise InvalidParameter("until= does not go with clustered Parquet: write the first rows only")
    store = ClusteredArms(path)
    check_given(store.name, store.manifest, given)
    return store


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
    if is_address(path):
        raise InvalidParameter(f"{shown(str(path))} must be a folder on a disk to be checked")
    folder = Path(path)
    if not is_store(folder) and is_clustered(os.fspath(path)):
        return check_clustered(os.fspath(path), advance)
    manifest = read_manifest(folder)
    check_files(listed_files(folder, manifest), advance)
    return manifest
