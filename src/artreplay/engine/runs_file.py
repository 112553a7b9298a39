"""The Parquet file of `Runs`. It has a row for each replication, with arrays as lists, and JSON in its metadata."""

from __future__ import annotations

import json
from collections.abc import Set
from pathlib import Path
from typing import Any

import numpy as np

from artreplay.cells import Lattice
from artreplay.errors import InvalidFile
from artreplay.whole_files import write_whole

FORMAT = 1
_KEY = b"artreplay runs"
# The arrays with a row for each replication, and what they hold.
PER_REPLICATION = {
    "regret": np.float64,
    "used": np.int64,
    "actions": np.int64,
    "levels": np.float64,
    "cells": np.int64,
    "used_by_arm": np.int64,
    "rewards": np.float64,
    "stopped": np.float64,
    "recommended": np.int64,
    "simple_regret": np.float64,
}


def write_runs(path: Path, fields: dict[str, Any]) -> None:
    """Write the fields of `Runs` to a file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrays = {name: fields[name] for name in PER_REPLICATION if fields[name] is not None}
    document = {name: value for name, value in fields.items() if name not in PER_REPLICATION}
    document["settings"] = dict(fields["settings"])
    document["rounds"] = None if fields["rounds"] is None else fields["rounds"].tolist()
    if fields["lattice"] is not None:
        parts = fields["lattice"]._asdict()
        document["lattice"] = {name: np.asarray(part).tolist() for name, part in parts.items()}
    document["shapes"] = {name: array.shape[1:] for name, array in arrays.items()}
    columns: dict[str, Any] = {"replication": np.arange(len(fields["regret"])) + fields["first_replication"]}
    for name, array in arrays.items():
        values = pa.array(array.ravel())
        size = array.size // len(array)
        columns[name] = values if array.ndim == 1 else pa.FixedSizeListArray.from_arrays(values, size)
    text = json.dumps({"format": FORMAT, **document})
    table = pa.table(columns).replace_schema_metadata({_KEY: text.encode()})
    write_whole(path, lambda file: pq.write_table(table, file, write_page_checksum=True))


def read_runs(path: Path, names: Set[str]) -> dict[str, Any]:
    """Read the fields of `Runs`, which have these names, from a file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with path.open("rb") as file:
            table = pq.ParquetFile(file, page_checksum_verification=True).read()
    except OSError as error:  # pyarrow's ArrowIOError too
        raise InvalidFile(f"cannot be read: {error.strerror or _first_line(error)}", file=path) from error
    except (pa.ArrowException, UnicodeDecodeError) as error:  # damage to the name of a column
        raise InvalidFile(f"is not a Parquet file: {_first_line(error)}", file=path) from error
    document = _document_of(table.schema.metadata or {}, path)
    try:
        return _fields_of(table, document, names)
    except (KeyError, TypeError, ValueError, AttributeError, pa.ArrowException) as error:
        raise InvalidFile(f"is not a whole file of runs: {type(error).__name__}: {error}", file=path) from error


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _document_of(metadata: dict[bytes, bytes], path: Path) -> dict[str, Any]:
    """Return what the metadata say, and refuse a file of another kind or version."""
    try:
        document = json.loads(metadata[_KEY])
        number = document.pop("format")
    except (KeyError, ValueError, AttributeError):
        raise InvalidFile("is not a file that Runs.save wrote", file=path) from None
    if number != FORMAT:
        raise InvalidFile(f"has version {number!r} of the file of runs, and this artreplay reads {FORMAT}", file=path)
    return dict(document)


def _fields_of(table: Any, document: dict[str, Any], names: Set[str]) -> dict[str, Any]:
    """Return the fields of `Runs`."""
    arrays: dict[str, Any] = dict.fromkeys(PER_REPLICATION)
    for name, shape in document.pop("shapes").items():
        column = table.column(name).combine_chunks()
        values = column if len(shape) == 0 else column.flatten()
        array = values.to_numpy(zero_copy_only=False).astype(PER_REPLICATION[name])
        arrays[name] = array.reshape(len(table), *shape)
    if document.keys() != names - PER_REPLICATION.keys():
        raise ValueError("its metadata have other names")
    if document["rounds"] is not None:
        document["rounds"] = np.array(document["rounds"], np.int64)
    if document["lattice"] is not None:
        low, high, span, side, bits = (document["lattice"][name] for name in Lattice._fields)
        document["lattice"] = Lattice(np.array(low), np.array(high), np.array(span), int(side), int(bits))
    if arrays["regret"].shape != arrays["used"].shape or not isinstance(document["settings"], dict):
        raise ValueError("its arrays do not fit each other")
    return {**arrays, **document}
