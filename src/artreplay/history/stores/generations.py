"""What all indexed stores share: a folder with a manifest, and a fingerprint of each generation of rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from artreplay.history.fingerprint import Fingerprint
from artreplay.history.stores.manifest import read_array, read_manifest
from artreplay.history.stores.reading import Reading
from artreplay.history.stores.store import Store


class Indexed(Store):
    """A folder that `artreplay index` made."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = str(folder)
        self.reading = Reading()
        self.manifest = read_manifest(folder)
        low, high = self.manifest["rewards"]
        self.reward_bounds = None if low is None else (low, high)
        self._rows: int = self.manifest["rows"]

    def known_fingerprints(self) -> Sequence[Fingerprint]:
        """Those of the log as it stood after each time rows were added."""
        return [fingerprint_of(self.folder, generation) for generation in self.manifest["generations"]]

    @property
    def fingerprint(self) -> Fingerprint:
        """What a policy remembers of this log."""
        last = self.manifest["generations"][-1]
        return fingerprint_of(self.folder, last) if self._rows == self.manifest["rows"] else super().fingerprint


def fingerprint_of(folder: Path, generation: dict[str, Any]) -> Fingerprint:
    """The fingerprint of the log up to the end of a generation."""
    digests = read_array(folder, generation, "digests.u8", "<u8").astype(np.uint64)
    return Fingerprint(generation["first"] + generation["rows"], generation["block"], digests)
