"""What each generation of a store keeps besides its samples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from artreplay.history.fingerprint import Fingerprint
from artreplay.history.stores.manifest import read_array


def fingerprint_of(folder: Path, generation: dict[str, Any]) -> Fingerprint:
    """The fingerprint of the log up to the end of a generation."""
    digests = read_array(folder, generation, "digests.u8", "<u8").astype(np.uint64)
    return Fingerprint(generation["first"] + generation["rows"], generation["block"], digests)
