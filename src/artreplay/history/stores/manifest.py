"""What an indexed store says of itself: a JSON file with versions, counts and checksums, and how it is checked."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, BinaryIO

import numpy as np

from artreplay.addresses import is_postgres
from artreplay.errors import CannotSave, InvalidFile
from artreplay.history.labels import Label
from artreplay.history.stores.checked_columns import DAMAGED, checksums_of
from artreplay.history.stores.places import OpenFile, Place

FORMAT = 5
MANIFEST = "manifest.json"
MAGIC = "artreplay store"
_PIECE = 1 << 24  # bytes, many whole blocks


def is_store(where: str | os.PathLike[str]) -> bool:
    """Whether a folder, on a disk or behind an address, is an indexed store."""
    if is_postgres(where):
        return False
    place = Place(where)
    found = place.has(MANIFEST)
    folder = place.folder if place.folder and os.path.isdir(place.folder) else None  # a name too long for one is none
    if not found and folder is not None and any(folder.glob("g[0-9]*-*/digests.u8")):
        raise InvalidFile("looks like a store, but has no manifest.json: index the log again", file=place.name)
    return found


def read_manifest(place: Place) -> dict[str, Any]:
    """The manifest of a store, if it is whole and of a version that can be read."""
    if not place.has(MANIFEST):
        what = "is not an indexed store: it has no manifest.json" if place.exists() else "does not exist"
        raise InvalidFile(what, file=place.name)
    path = f"{place.name}/{MANIFEST}"
    try:
        document = json.loads(place.read(MANIFEST))
    except ValueError:
        raise InvalidFile("is damaged: index the log again", file=path) from None
    if not isinstance(document, dict) or document.get("magic") != MAGIC:
        raise InvalidFile("is not an indexed store", file=place.name)
    version = document.get("format")
    if version != FORMAT:
        older = isinstance(version, int) and version < FORMAT
        raise InvalidFile(
            f"is a store of format {version!r}, this version of artreplay reads {FORMAT}"
            + (": index the log again" if older else ""),
            file=place.name,
        )
    checksum = document.pop("checksum", None)  # which other engines leave out
    if checksum is not None and checksum != _digest_of(_text(document)):
        raise InvalidFile(DAMAGED, file=path)
    return document


def write_manifest(place: Place, document: dict[str, Any]) -> None:
    """Write a manifest, so that a reader finds the old one or the new one."""
    document = {"magic": MAGIC, "format": FORMAT, **document}
    document["checksum"] = _digest_of(_text(document))
    place.write(MANIFEST, _text(document))


def bytes_of(place: Place, document: dict[str, Any]) -> int:
    """How many bytes a store has: its manifest, and the files that this names."""
    return place.open(MANIFEST).size + sum(
        entry["bytes"] if "bytes" in entry else place.open(name).size for name, entry in listed_files(document).items()
    )


def listed_files(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The files of a store, and what its manifest says of each."""
    return {
        path_in(generation, name): entry
        for generation in document["generations"]
        for name, entry in generation["files"].items()
    }


def path_in(generation: dict[str, Any], name: str) -> str:
    """Where a file of a generation lies in its store."""
    return f"{generation['name']}/{name}" if generation["name"] else name


def check_files(place: Place, document: dict[str, Any], advance: Callable[[int, int], None]) -> None:
    """Compare all files with their checksums; `advance` is told how many bytes were read, of how many."""
    files = listed_files(document)
    done, size = 0, sum(entry.get("bytes", 0) for entry in files.values())
    for name, entry in files.items():
        if "blake2b" not in entry:
            raise InvalidFile("has no checksums: it was not written by `artreplay index`", file=place.name)
        file, digest = place.open(name, entry["bytes"]), hashlib.blake2b(digest_size=16)
        for at in range(0, file.size, _PIECE):
            digest.update(file.read(at, min(_PIECE, file.size - at)))
            done += min(_PIECE, file.size - at)
            advance(done, size)
        if digest.hexdigest() != entry["blake2b"]:
            raise InvalidFile(DAMAGED, file=file.name)


def read_small(place: Place, generation: dict[str, Any], name: str, file: OpenFile | None = None) -> bytes:
    """A small file of a store, which may be open already, compared with its checksum where it has one."""
    entry = generation["files"][name]
    path = path_in(generation, name)
    data = place.read(path) if file is None else file.read(0, file.size)
    if "blake2b" in entry and _digest_of(data) != entry["blake2b"]:
        raise InvalidFile(DAMAGED, file=f"{place.name}/{path}")
    return data


def finished(file: BinaryIO, column: bool = False) -> dict[str, Any]:
    """Force a file that was written to disk, a column with the checksums of its blocks behind it.

    What the manifest says of it.
    """
    digest, checksums = hashlib.blake2b(digest_size=16), []
    file.seek(0)
    while piece := file.read(_PIECE):
        digest.update(piece)
        checksums += checksums_of(piece) if column else []
    end = np.array(checksums, "<u4").tobytes()
    file.write(end)
    digest.update(end)
    file.flush()
    os.fsync(file.fileno())
    return {"bytes": file.tell(), "blake2b": digest.hexdigest()}


# -- labels -------------------------------------------------------------------------------------------------


def encode_label_list(labels: Sequence[Label]) -> bytes:
    """Labels as JSON that says what they were."""
    return json.dumps([_encoded(label) for label in labels], ensure_ascii=True).encode("ascii")


def decode_label_list(data: bytes) -> list[Label]:
    """The labels behind `encode_label_list`."""
    return [_decoded(value) if isinstance(value, dict) else value for value in json.loads(data)]


def _encoded(label: Any) -> Any:
    if isinstance(label, (bool, int, str)):
        return label
    if isinstance(label, Decimal) and label.is_finite() and label == label.to_integral_value():
        return int(label)  # which equals it
    if isinstance(label, bytes):
        return {"bytes": label.hex()}
    if isinstance(label, datetime.datetime):
        if getattr(label, "nanosecond", 0):  # of pandas
            raise CannotSave(f"labels that are times must be whole microseconds to be stored, got {label}")
        return {"datetime": label.isoformat()}
    if isinstance(label, datetime.date):
        return {"date": label.isoformat()}
    raise CannotSave(f"labels must be whole numbers, texts, bytes or dates to be stored, got {label!r}")


def _decoded(value: dict[str, str]) -> Label:
    ((kind, text),) = value.items()
    if kind == "bytes":
        return bytes.fromhex(text)
    return datetime.datetime.fromisoformat(text) if kind == "datetime" else datetime.date.fromisoformat(text)


def _text(document: dict[str, Any]) -> bytes:
    return json.dumps(document, indent=1, sort_keys=True).encode()


def _digest_of(text: bytes) -> str:
    return hashlib.blake2b(text, digest_size=16).hexdigest()
