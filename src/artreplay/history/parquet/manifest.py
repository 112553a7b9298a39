"""Reads and writes `manifest.json`, which describes a log in a folder, and files of arrays. All have checksums."""

from __future__ import annotations

import datetime
import io
import json
import os
import secrets
import zlib
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from artreplay.errors import CannotSave, InvalidFile
from artreplay.history.labels import Label
from artreplay.history.parquet.store_folder import StoredFile, StoreFolder, check_own, check_plain
from artreplay.history.sources import Columns
from artreplay.whole_files import private_opener

FORMAT = 8
MANIFEST = "manifest.json"
MAGIC = "artreplay log"
DAMAGED = "does not fit its checksum. Index the log again"
_OLDER = "artreplay store"

_ROLES = {"unit", "row", "reward", "allowance"}  # of the columns of the files; the roles of contexts are numbered
_SIZE = range(1 << 62)
_WORD_RANGE = range(1 << 64)
_ARRAYS = {"name": str, "bytes": _SIZE, "checksum": _WORD_RANGE}
_NAME = (str, None)
_BOUNDS = ([float], None)
_SHAPE: dict[str, Any] = {  # of a manifest; all entries of a list have the shape in it, and a tuple has alternatives
    "magic": str,
    "format": _SIZE,
    "columns": {"unit": str, "reward": str, "level": None, "order": _NAME, "allowance": _NAME, "contexts": [str]}
    | {"segments": [str]},
    "kinds": [("double", "string", "bool", "null")],
    "source": str,
    "until": (_SIZE, None),
    "seed": (int, None),
    "adopted": bool,
    "rows": _SIZE,
    "rewards": _BOUNDS,
    "allowances": _BOUNDS,
    "block": _SIZE,
    "appends": [{"rows": _SIZE, "partial": _WORD_RANGE, "own": _WORD_RANGE}],
    "files": [_ARRAYS | {"footer": _SIZE, "rows": _SIZE, "groups": _SIZE}],
    "directory": _ARRAYS,
    "digests": (_ARRAYS, None),
    "replaced": [str],
}


def read_manifest(folder: StoreFolder) -> dict[str, Any]:
    """Read the manifest of a log, and refuse one that is damaged or of another version."""
    if not folder.has(MANIFEST):
        what = "is not an indexed log, because it has no manifest.json" if folder.exists() else "does not exist"
        raise InvalidFile(what, file=folder.name)
    path = f"{folder.name}/{MANIFEST}"
    try:
        document = json.loads(folder.read(MANIFEST))
    except (ValueError, RecursionError):
        raise InvalidFile("is damaged. Index the log again", file=path) from None
    if not isinstance(document, dict) or document.get("magic") not in (MAGIC, _OLDER):
        raise InvalidFile("is not an indexed log", file=folder.name)
    if document.get("format") != FORMAT:
        raise InvalidFile(
            f"was laid out in format {document.get('format')!r}, and this version of artreplay reads {FORMAT}. Index "
            "the log again",
            file=folder.name,
        )
    if document.pop("checksum", None) != zlib.crc32(_text(document)):
        raise InvalidFile(DAMAGED, file=path)
    names = document.get("names")
    roles = names.keys() if isinstance(names, dict) else set()
    shape = _SHAPE | {"names": dict.fromkeys(roles, str)} | ({"last": int} if document.get("adopted") else {})
    fits = _fits(document, shape) and ({"reward"} if document["adopted"] else {"unit", "row", "reward"}) <= roles
    contexts = set(map(context_role, range(len(document["kinds"])))) if fits else set()
    fits = fits and len(contexts) == len(document["columns"]["contexts"]) and contexts <= roles <= _ROLES | contexts
    if not fits or document["block"] == 0:
        raise InvalidFile("is not a manifest. Index the log again", file=path)
    theirs = {entry["name"] for entry in document["files"]} if document["adopted"] else set()
    for name in [*listed_files(document), *document["replaced"]]:
        check_plain(name, path) if name in theirs else check_own(name, path)
    return document


def _fits(value: Any, shape: Any) -> bool:
    """Whether a value of JSON fits a shape."""
    if isinstance(shape, dict):
        return (
            isinstance(value, dict)
            and value.keys() == shape.keys()
            and all(_fits(value[name], shape[name]) for name in shape)
        )
    if isinstance(shape, list):
        return isinstance(value, list) and all(_fits(one, shape[0]) for one in value)
    if isinstance(shape, tuple):
        return any(_fits(value, one) for one in shape)
    if isinstance(shape, range):
        return type(value) is int and value in shape
    if isinstance(shape, str):
        return bool(value == shape)
    return value is None if shape is None else type(value) is shape


def context_role(place: int) -> str:
    """The role that a manifest gives to a column of contexts, from its place among them."""
    return f"context_{place}"


def columns_in(manifest: dict[str, Any]) -> Columns:
    """The columns of the source that a log was made from."""
    columns = manifest["columns"]
    return Columns(**columns | {name: tuple(columns[name]) for name in ("contexts", "segments")})


def write_manifest(folder: StoreFolder, document: dict[str, Any]) -> None:
    """Write a manifest. A reader finds either the old one or the new one, and both are whole."""
    document = {"magic": MAGIC, "format": FORMAT, **document}
    document["checksum"] = zlib.crc32(_text(document))
    folder.write(MANIFEST, _text(document))


def listed_files(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The files that a manifest names, with the entry of each."""
    entries = [*document["files"], document["directory"], *([document["digests"]] if document["digests"] else [])]
    return {entry["name"]: entry for entry in entries}


def _text(document: dict[str, Any]) -> bytes:
    return json.dumps(document, indent=1, sort_keys=True).encode()


# -- arrays ---------------------------------------------------------------------------------------------------------


def new_name(kind: str, ending: str) -> str:
    """Make a name for a file that was never used before."""
    return f"{kind}-{secrets.token_hex(8)}.{ending}"


def write_arrays(folder: Path, kind: str, arrays: dict[str, np.ndarray[Any, Any]]) -> dict[str, Any]:
    """Write arrays to a file of their own, and return its entry for the manifest."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    name, data = new_name(kind, "npz"), buffer.getvalue()
    with open(folder / name, "xb", opener=private_opener) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return {"name": name, "bytes": len(data), "checksum": zlib.crc32(data)}


def read_arrays(file: StoredFile, entry: dict[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
    """Read the arrays of a file, after a comparison with its checksum."""
    data = file.read(0, file.size)
    if file.size != entry["bytes"] or zlib.crc32(data) != entry["checksum"]:
        raise InvalidFile(DAMAGED, file=file.name)
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            return dict(arrays)
    except Exception as error:  # a damaged file can raise any error
        raise InvalidFile(f"is not a file of arrays ({type(error).__name__})", file=file.name) from None


# -- labels ---------------------------------------------------------------------------------------------------------


def encode_labels_as_json(labels: Sequence[Label]) -> bytes:
    """Write labels as JSON, with their types."""
    return json.dumps([_encoded(label) for label in labels], ensure_ascii=True).encode("ascii")


def decode_labels(data: bytes) -> list[Label]:
    """Read the labels that `encode_labels_as_json` wrote."""
    labels: list[Any] = json.loads(data)
    return [_decoded(value) if isinstance(value, dict) else value for value in labels] if b"{" in data else labels


def _encoded(label: Any) -> Any:
    if isinstance(label, (bool, int, str)):
        return label
    if isinstance(label, tuple):  # values of the segment columns and an arm
        *values, arm = label
        return {"segment": values, "arm": _encoded(arm)}
    if isinstance(label, Decimal) and label.is_finite() and label == label.to_integral_value():
        return int(label)  # equals the Decimal, and hashes the same
    if isinstance(label, bytes):
        return {"bytes": label.hex()}
    if isinstance(label, datetime.datetime):
        if getattr(label, "nanosecond", 0):  # only times of pandas have them
            raise CannotSave(f"labels that are times must be whole microseconds to be stored, got {label}")
        return {"datetime": label.isoformat()}
    if isinstance(label, datetime.date):
        return {"date": label.isoformat()}
    raise CannotSave(f"labels must be whole numbers, texts, bytes or dates to be stored, got {label!r}")


def _decoded(value: dict[str, Any]) -> Label:
    if "segment" in value:
        arm = value["arm"]
        return *value["segment"], _decoded(arm) if isinstance(arm, dict) else arm
    ((kind, text),) = value.items()
    if kind == "bytes":
        return bytes.fromhex(text)
    return datetime.datetime.fromisoformat(text) if kind == "datetime" else datetime.date.fromisoformat(text)
