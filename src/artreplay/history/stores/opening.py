"""Opening an indexed store, and checking it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from artreplay.errors import InvalidParameter
from artreplay.history.stores.indexed_arms import IndexedArms
from artreplay.history.stores.indexed_points import IndexedPoints
from artreplay.history.stores.manifest import check_files, read_manifest
from artreplay.history.stores.store import Store


def open_store(path: str | os.PathLike[str], given: dict[str, Any], until: int | None = None) -> Store:
    """The store at a path; columns that are `given` must be those it was made of."""
    folder = Path(path)
    manifest = read_manifest(folder)
    for name, value in given.items():
        held = manifest["columns"][name] if name in manifest["columns"] else manifest[name]
        value = list(value) if isinstance(value, tuple) else value
        if value is not None and value != held:
            raise InvalidParameter(f"{folder} was indexed with {name}={held!r}, got {value!r}: leave it out")
    return IndexedArms(folder, until) if manifest["kind"] == "arms" else IndexedPoints(folder, until)


def check_store(
    path: str | os.PathLike[str], advance: Callable[[int, int], None] = lambda done, size: None
) -> dict[str, Any]:
    """Compare every file of a store with its checksum; the manifest.

    `advance` is told how many bytes were read, and how many there are.
    """
    folder = Path(path)
    manifest = read_manifest(folder)
    check_files(folder, manifest, advance)
    return manifest
