"""The directory of a log. It has the labels, their numbers of rows in each file and each append, and checksums."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from artreplay.compiling import Ints
from artreplay.errors import InvalidFile
from artreplay.history.labels import Label
from artreplay.history.parquet.manifest import decode_labels, encode_labels_as_json, read_arrays, write_arrays
from artreplay.history.parquet.store_folder import StoredFile

_CHECKS_PREFIX = "checks_"


class LabelRuns(NamedTuple):
    """Labels, by their numbers, and how many rows each has."""

    codes: Ints
    counts: Ints


class LogFile(NamedTuple):
    """A file of a log, with its entry in the manifest, its runs in the order of the file, and checksums.

    A run consists of all rows of one label in a file. Each row group of each column that is read has a checksum.
    """

    entry: dict[str, Any]
    runs: LabelRuns
    checks: dict[str, Ints]


class Directory(NamedTuple):
    """Labels in the order in which they first appear, the files, and how many rows of each label each append added."""

    labels: list[Label]
    files: list[LogFile]
    appends: list[LabelRuns]

    def write(self, folder: Path) -> dict[str, Any]:
        """Write the directory to a file of its own, and return its entry for the manifest."""
        arrays: dict[str, Any] = {"labels": np.frombuffer(encode_labels_as_json(self.labels), np.uint8)}
        arrays |= _as_arrays("file", [file.runs for file in self.files])
        arrays |= _as_arrays("append", self.appends)
        for role in self.files[0].checks if self.files else ():
            arrays[_CHECKS_PREFIX + role] = np.concatenate([file.checks[role] for file in self.files])
        return write_arrays(folder, "directory", arrays)


def read_directory(file: StoredFile, manifest: dict[str, Any]) -> Directory:
    """Read the directory that a manifest names."""
    arrays = read_arrays(file, manifest["directory"])
    labels = decode_labels(arrays.pop("labels").tobytes())
    if not isinstance(labels, list) or len(set(labels)) < len(labels):
        raise InvalidFile("must have distinct labels, got one twice. Index the log again", file=file.name)
    if any(array.ndim != 1 or array.dtype != np.int64 for array in arrays.values()):
        raise InvalidFile("must have lists of whole numbers, got other arrays. Index the log again", file=file.name)
    entries = manifest["files"]
    groups = np.cumsum([entry["groups"] for entry in entries])[:-1]
    checks = {
        name.removeprefix(_CHECKS_PREFIX): np.split(arrays[name], groups) for name in arrays if _CHECKS_PREFIX in name
    }
    runs = _from_arrays("file", arrays, len(labels), file)
    appends = _from_arrays("append", arrays, len(labels), file)
    rows = [sum(one.counts.tolist()) for one in runs], [sum(one.counts.tolist()) for one in appends]
    by_label = [sum(np.bincount(one.codes, one.counts, len(labels)) for one in parts) for parts in (runs, appends)]
    if rows != ([entry["rows"] for entry in entries], [entry["rows"] for entry in manifest["appends"]]) or np.any(
        by_label[0] != by_label[1]
    ):
        raise InvalidFile("must have as many rows as the manifest says. Index the log again", file=file.name)
    files = [
        LogFile(entry, runs[number], {role: found[number] for role, found in checks.items()})
        for number, entry in enumerate(entries)
    ]
    return Directory(labels, files, appends)


def _as_arrays(what: str, parts: Sequence[LabelRuns]) -> dict[str, Any]:
    empty = np.empty(0, np.int64)
    return {
        f"{what}_sizes": np.array([len(part.codes) for part in parts], np.int64),
        f"{what}_codes": np.concatenate([empty, *(part.codes for part in parts)]),
        f"{what}_counts": np.concatenate([empty, *(part.counts for part in parts)]),
    }


def _from_arrays(what: str, arrays: dict[str, Any], labels: int, file: StoredFile) -> list[LabelRuns]:
    """Read the parts back. Labels and counts are used as indices later, so they are checked here."""
    sizes, codes, counts = (arrays[f"{what}_{name}"] for name in ("sizes", "codes", "counts"))
    fits = len(codes) == len(counts) == sizes.sum() and (sizes >= 0).all() and (counts > 0).all()
    if not fits or (len(codes) and not 0 <= codes.min() <= codes.max() < labels):
        raise InvalidFile("has counts that do not fit its labels. Index the log again", file=file.name)
    ends = np.cumsum(sizes)[:-1]
    return [LabelRuns(*part) for part in zip(np.split(codes, ends), np.split(counts, ends), strict=True)][: len(sizes)]
