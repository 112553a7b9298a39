"""What all indexed stores share: a place with a manifest, generations of rows, and a fingerprint of each end."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from artreplay.history.fingerprint import Fingerprint
from artreplay.history.stores.manifest import path_in, read_small
from artreplay.history.stores.places import OpenFile, Place
from artreplay.history.stores.store import Reading, Store

_AT_FIRST_FROM_AFAR = 1024  # samples of a cell: a request to a bucket costs more than they do


class Indexed(Store):
    """A folder that `artreplay index` made, on a disk or in a bucket.

    All its files are opened when it is opened: whatever is done to the folder later, this object reads the log as it
    was, or says that it cannot.
    """

    def __init__(self, place: Place, manifest: dict[str, Any]) -> None:
        self.place = place
        self.name = place.name
        self.manifest = manifest
        self.reading = Reading()
        low, high = manifest["rewards"]
        self.reward_bounds = None if low is None else (low, high)
        self._rows: int = manifest["rows"]
        last = manifest["generations"][-1]
        self._digests = self._open(last, "digests.u8") if "digests.u8" in last["files"] else None
        if place.folder is None:
            self.first_prefetch = _AT_FIRST_FROM_AFAR

    def _open(self, generation: dict[str, Any], name: str) -> OpenFile:
        return self.place.open(path_in(generation, name), generation["files"][name].get("bytes"))

    def _small(self, generation: dict[str, Any], name: str, dtype: str) -> np.ndarray[Any, Any]:
        """A small file that is read when the store is opened."""
        return np.frombuffer(read_small(self.place, generation, name), dtype)

    def known_fingerprint(self, rows: int) -> Fingerprint | None:
        """That of the log as it stood each time rows were added."""
        if self._digests is None:
            return None
        block, partial = self.manifest["block"], {end["rows"]: end["partial"] for end in self.manifest["ends"]}
        if rows not in partial:
            return None
        digests = self._all_digests[: -(-rows // block)].copy()
        digests[-1:] = partial[rows]
        return Fingerprint(rows, block, digests)

    @cached_property
    def _all_digests(self) -> np.ndarray[Any, Any]:
        data = read_small(self.place, self.manifest["generations"][-1], "digests.u8", self._digests)
        return np.frombuffer(data, "<u8").astype(np.uint64)

    @property
    def fingerprint(self) -> Fingerprint:
        """What a policy remembers of this log."""
        return self.known_fingerprint(self._rows) or super().fingerprint


def ends_after(store: Indexed, block: int) -> list[dict[str, int]]:
    """What is remembered of each time rows were added to a store, with `block` rows in a block."""
    found = []
    for end in store.manifest["ends"] or [{"rows": len(store), "own": 0}]:  # another engine remembers nothing
        known = store.known_fingerprint(end["rows"]) or store.fingerprint
        found.append(end | {"partial": int(known.coarser(block).digests[-1]) if end["rows"] else 0})
    return found
