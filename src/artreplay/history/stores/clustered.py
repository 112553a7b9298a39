"""Clustered Parquet by other engines: what they must write so that `ar.open_history` reads it.

A folder holds `part-*.parquet` with the columns `row` and `reward`, sorted by (arm, row) over all files in the order of
their names, in row groups of about `GROUP` rows; `directory.parquet` with the columns `arm` and `count`, in the same
order of arms; and `manifest.json`, which `describe` writes. `artreplay index --format parquet` adds running sums,
fingerprints and checksums, which other engines leave out.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

from artreplay.errors import InvalidFile
from artreplay.history.stores.layouts import GROUP
from artreplay.history.stores.manifest import FORMAT, MAGIC, MANIFEST

__all__ = ["DIRECTORY", "GROUP", "MANIFEST", "describe", "directory_bytes", "write_directory"]

DIRECTORY = "directory.parquet"


def describe(
    rows: int, files: list[str], rewards: tuple[float, float] | None, columns: dict[str, Any], **more: Any
) -> str:
    """The manifest of a folder, as JSON."""
    generation = {
        "name": "",
        "first": 0,
        "rows": rows,
        "parquet": files,
        "files": {name: {} for name in (*files, DIRECTORY)},
    }
    entry = {"magic": MAGIC, "format": FORMAT, "kind": "arms", "rows": rows, "columns": columns, "until": None}
    entry |= {"seed": None, "rewards": list(rewards or (None, None)), "ends": [], "generations": [generation]}
    return json.dumps(entry | more, indent=1)


def directory_bytes(labels: list[Any], counts: list[int]) -> bytes:
    """Which arms there are, in the order in which they are sorted, as a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        try:
            arms = pa.array(labels)
        except (pa.ArrowException, OverflowError):
            if not all(isinstance(label, int) for label in labels):
                raise
            arms = pa.array(labels, pa.uint64())  # too large for a number with a sign
    except (pa.ArrowException, TypeError, OverflowError) as error:
        raise InvalidFile(f"labels must be of one type to be written as Parquet: {error}") from error
    file = io.BytesIO()
    pq.write_table(pa.table({"arm": arms, "count": pa.array(counts, pa.int64())}), file)
    return file.getvalue()


def write_directory(folder: Path, labels: list[Any], counts: list[int]) -> None:
    """Write which arms there are, in the order in which they are sorted."""
    (folder / DIRECTORY).write_bytes(directory_bytes(labels, counts))
