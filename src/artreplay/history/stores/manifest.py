"""What an indexed store says of itself: a JSON file with versions, counts and checksums, and how it is checked."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from artreplay.errors import CannotSave, InvalidFile
from artreplay.history.labels import Label

FORMAT = 4
MANIFEST = "manifest.json"
_MAGIC = "artreplay store"
_PIECE = 1 << 24


def is_store(folder: Path) -> bool:
    """Whether a folder is an indexed store."""
    try:
        return (folder / MANIFEST).is_file()
    except OSError:  # a name too long for a file, such as an address can be
        return False


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a store, if it is whole and of a version that can be read, and the files it names are there."""
    path = folder / MANIFEST
    try:
        document = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        what = "is not an indexed store: it has no manifest.json" if folder.exists() else "does not exist"
        raise InvalidFile(what, file=folder) from None
    except OSError as error:
        raise InvalidFile(f"cannot be read: {error.strerror or error}", file=path) from error
    except ValueError:
        raise InvalidFile("is damaged: index the log again", file=path) from None
    if not isinstance(document, dict) or document.get("magic") != _MAGIC:
        raise InvalidFile("is not an indexed store", file=folder)
    version = document.get("format")
    if version != FORMAT:
        older = isinstance(version, int) and version < FORMAT
        raise InvalidFile(
            f"is a store of format {version!r}, this version of artreplay reads {FORMAT}"
            + (": index the log again" if older else ""),
            file=folder,
        )
    checksum = document.pop("checksum", None)
    if checksum != _digest_of(_text(document)):
        raise InvalidFile("does not fit its checksum: index the log again", file=path)
    for name, entry in listed_files(folder, document).items():
        check_size(name, entry["bytes"])
    return document


def write_manifest(folder: Path, document: dict[str, Any]) -> None:
    """Write a manifest under a temporary name, force it to disk, and rename it: the old one, or the new one."""
    document = {"magic": _MAGIC, "format": FORMAT, **document}
    document["checksum"] = _digest_of(_text(document))
    temporary = folder / f".{MANIFEST}.{os.getpid()}.part"
    with open(temporary, "wb") as file:
        file.write(_text(document))
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, folder / MANIFEST)
    sync_folder(folder)


def sync_folder(folder: Path) -> None:
    """Force the names in a folder to disk, where the file system can."""
    with suppress(OSError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def check_size(path: Path, size: int) -> None:
    """Refuse a file that is missing or cut short."""
    try:
        found = path.stat().st_size
    except OSError as error:
        raise InvalidFile(f"cannot be read: {error.strerror or error}", file=path) from error
    if found != size:
        raise InvalidFile(f"must have {size:,} bytes, it has {found:,}: index the log again", file=path)


def bytes_of(folder: Path, document: dict[str, Any]) -> int:
    """How many bytes a store has: its manifest, and the files that this names."""
    listed: int = sum(entry["bytes"] for entry in listed_files(folder, document).values())
    return (folder / MANIFEST).stat().st_size + listed


def check_files(
    files: dict[Path, dict[str, Any]], advance: Callable[[int, int], None] = lambda done, size: None
) -> None:
    """Compare files with their entries in a manifest; `advance` is told how many bytes were read, of how many."""
    done, size = 0, sum(entry["bytes"] for entry in files.values())

    def count(read: int) -> None:
        """Add up the bytes."""
        nonlocal done
        done += read
        advance(done, size)

    for path, entry in files.items():
        check_file(path, entry, count)


def listed_files(folder: Path, document: dict[str, Any]) -> dict[Path, dict[str, Any]]:
    """The files of a store, and what its manifest says of each."""
    return {
        folder / generation["name"] / name: entry
        for generation in document["generations"]
        for name, entry in generation["files"].items()
    }


def check_file(path: Path, entry: dict[str, Any], advance: Callable[[int], None] = lambda size: None) -> None:
    """Compare one file with its checksum."""
    try:
        with open(path, "rb") as file:
            found = _digest_of_file(file, advance)
    except OSError as error:
        raise InvalidFile(f"cannot be read: {error.strerror or error}", file=path) from error
    if found != entry["blake2b"]:
        raise InvalidFile("does not fit its checksum: index the log again", file=path)


def read_array(folder: Path, generation: dict[str, Any], name: str, dtype: str) -> np.ndarray[Any, Any]:
    """A small file of a store as an array, compared with its checksum."""
    path = folder / generation["name"] / name
    check_file(path, generation["files"][name])
    return np.fromfile(path, dtype=dtype)


class Written:
    """A file of a store while it is written: raw numbers, with a running checksum."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = open(path, "wb")  # noqa: SIM115 - closed by finish
        self._digest = hashlib.blake2b(digest_size=16)
        self._bytes = 0

    def write(self, array: np.ndarray[Any, Any]) -> None:
        """Append numbers."""
        data = np.ascontiguousarray(array).tobytes()
        self._file.write(data)
        self._digest.update(data)
        self._bytes += len(data)

    def finish(self) -> dict[str, Any]:
        """Force the file to disk and close it; what the manifest says of it."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        return {"bytes": self._bytes, "blake2b": self._digest.hexdigest()}

    def close(self) -> None:
        """Close the file, finished or not."""
        self._file.close()


def written_array(path: Path, array: np.ndarray[Any, Any]) -> dict[str, Any]:
    """Write a whole file of numbers; what the manifest says of it."""
    file = Written(path)
    try:
        file.write(array)
        return file.finish()
    finally:
        file.close()


def written_file(path: Path) -> dict[str, Any]:
    """Force a file that someone else wrote to disk; what the manifest says of it."""
    with open(path, "rb+") as file:
        os.fsync(file.fileno())
        return {"bytes": path.stat().st_size, "blake2b": _digest_of_file(file)}


def _digest_of_file(file: BinaryIO, advance: Callable[[int], None] = lambda size: None) -> str:
    digest = hashlib.blake2b(digest_size=16)
    while piece := file.read(_PIECE):
        digest.update(piece)
        advance(len(piece))
    return digest.hexdigest()


# -- labels -------------------------------------------------------------------------------------------------


def encode_label_list(labels: Sequence[Label]) -> np.ndarray[Any, Any]:
    """Labels as JSON that says what they were, as bytes."""
    text = json.dumps([_encoded(label) for label in labels], ensure_ascii=True)
    return np.frombuffer(text.encode("ascii"), np.uint8)


def decode_label_list(data: np.ndarray[Any, Any]) -> list[Label]:
    """The labels behind `encode_label_list`."""
    return [_decoded(value) for value in json.loads(data.tobytes())]


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


def _decoded(value: Any) -> Label:
    if not isinstance(value, dict):
        label: Label = value
        return label
    ((kind, text),) = value.items()
    if kind == "bytes":
        return bytes.fromhex(text)
    return datetime.datetime.fromisoformat(text) if kind == "datetime" else datetime.date.fromisoformat(text)


def _text(document: dict[str, Any]) -> bytes:
    return json.dumps(document, indent=1, sort_keys=True).encode()


def _digest_of(text: bytes) -> str:
    return hashlib.blake2b(text, digest_size=16).hexdigest()
