"""A folder that somebody changed on purpose is refused in a sentence, and nothing outside it is read or removed."""

from __future__ import annotations

import copy
import io
import json
import os
import random
import stat
import subprocess
import sys
import textwrap
import warnings
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pytest

import artreplay as ar
from artreplay.errors import ArtReplayError, InvalidFile
from artreplay.history.parquet import check_files, laying_out, parquet_files, parquet_log
from artreplay.history.parquet.manifest import listed_files, read_arrays, read_manifest, write_manifest
from artreplay.history.parquet.store_folder import StoreFolder

COLUMNS = {"unit": "arm", "reward": "click"}
THOROUGH = bool(os.environ.get("ARTREPLAY_THOROUGH"))
NAMES: list[Any] = [
    "../../thesis", "../thesis.txt", "/etc/passwd", "..", ".", "", "..\\thesis.txt", "C:\\thesis.txt", "notes.txt",
    "manifest.json", "thesis\0.parquet", "sub/rows.parquet", "~", "rows-0123456789abcdef.parquet/../../thesis.txt",
    "//server/share", "file:///etc/passwd", "s3://bucket/thesis", "-rf", "*", "rows-*.parquet", " ", None, 7, ["a"],
]  # fmt: skip


@pytest.fixture(autouse=True)
def small_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows are several row groups."""
    monkeypatch.setattr(parquet_files, "ROWS_PER_GROUP", 16)
    monkeypatch.setattr(parquet_log, "_BATCH_ROWS", 50)


def log_of(rows: int, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table({"arm": rng.integers(0, 4, rows).astype(str), "click": rng.integers(0, 9, rows) / 8})


def lay_out(place: Any) -> None:
    """A log of two files."""
    ar.index_history(log_of(60), place, **COLUMNS)
    ar.append_history(log_of(20, 1), place)


def rows_of(place: Any) -> list[tuple[Any, float]]:
    whole = ar.open_history(place).load()
    return [(whole.unit(row), float(whole.rewards[row])) for row in range(len(whole))]


OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "open": ar.open_history,
    "load": rows_of,
    "decide": lambda place: ar.ArtificialReplay(ar.MonUCB(arms=list("0123"), horizon=99), ar.open_history(place)).ask(),
    "know again": lambda place: ar.open_history(place).fingerprint,
    "as it was": lambda place: rows_of_log(ar.open_history(place).first(30)),
    "append": lambda place: ar.append_history(log_of(50, 2), place),
    "compact": ar.compact_history,
    "check": check_files,
}


def rows_of_log(log: Any) -> list[float]:
    found: list[float] = (log if isinstance(log, ar.History) else log.load()).rewards.tolist()
    return found


def attempt(operation: str, place: Any) -> str:
    """What comes of it: it went well, or there is a sentence. Anything else comes out."""
    try:
        OPERATIONS[operation](place)
    except ArtReplayError as error:
        return str(error)
    return ""


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def renamed(manifest: dict[str, Any], name: Any, rng: random.Random) -> dict[str, Any]:
    """The manifest with a name in some place of it."""
    changed = json.loads(json.dumps(manifest))
    where = rng.choice(["files", "directory", "digests", "replaced", "more files"])
    if where == "replaced":
        changed["replaced"] = [name]
    elif where == "files":
        rng.choice(changed["files"])["name"] = name
    elif where == "more files":
        changed["files"].append({**changed["files"][0], "name": name})
    else:
        changed[where]["name"] = name
    return changed


def test_names_that_lead_elsewhere_are_refused_and_nothing_is_removed(tmp_path):
    rng = random.Random(1)
    place = tmp_path / "own" / "log"
    place.parent.mkdir()
    for name in ("thesis", "thesis.txt", "own/thesis.txt"):
        (tmp_path / name).write_text("years of work")
    lay_out(place)
    (place / "notes.txt").write_text("read me")
    folder = StoreFolder(place)
    manifest = read_manifest(folder)
    kept = contents(tmp_path)
    for case in range(100):
        name = rng.choice(NAMES) if case >= len(NAMES) else NAMES[case]
        write_manifest(folder, renamed(manifest, name, rng))
        tampered = contents(tmp_path)
        for operation in OPERATIONS:
            assert attempt(operation, place), (operation, name)
            assert contents(tmp_path) == tampered
    write_manifest(folder, manifest)
    assert contents(tmp_path) == kept
    assert len(rows_of(place)) == 80


def test_names_that_lead_elsewhere_are_refused_in_a_bucket_too():
    rng = random.Random(2)
    bucket = fsspec.filesystem("memory")
    try:
        bucket.pipe("/thesis.txt", b"years of work")
        bucket.pipe("/bucket/log/notes.txt", b"read me")
        bucket.rm("/bucket/log/notes.txt")
        lay_out("memory://bucket/log")
        bucket.pipe("/bucket/log/notes.txt", b"read me")
        folder = StoreFolder("memory://bucket/log")
        manifest = read_manifest(folder)
        for name in NAMES:
            write_manifest(folder, renamed(manifest, name, rng))
            tampered = {path: bucket.cat(path) for path in bucket.find("/")}
            for operation in OPERATIONS:
                assert attempt(operation, "memory://bucket/log"), (operation, name)
                assert {path: bucket.cat(path) for path in bucket.find("/")} == tampered
    finally:
        bucket.rm("/", recursive=True)


def test_a_file_of_ours_that_nobody_needs_any_more_may_be_named(tmp_path):
    lay_out(tmp_path / "log")
    folder = StoreFolder(tmp_path / "log")
    write_manifest(folder, read_manifest(folder) | {"replaced": ["rows-0123456789abcdef.parquet"]})
    assert ar.compact_history(tmp_path / "log") == 2
    assert len(rows_of(tmp_path / "log")) == 80


# -- manifests and directories of any content, with the right checksum ------------------------------------------------

VALUES: list[Any] = [
    None, -1, 0, 1, 7, 2**31, 2**62, 2**63, 2**64, 2**200, -(2**63), 0.5, float("nan"), float("inf"), "", "x", "9" * 99,
    True, [], [[]], {}, {"name": "x"}, [0.0], [0.0, 1.0, 2.0], [1, 2],
]  # fmt: skip


def places_in(value: Any) -> Iterator[tuple[Any, Any]]:
    """All that can be replaced in a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield value, key
        yield from places_in(inner)


def mutated(document: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """A document with some values that are others, gone or twice there."""
    changed: dict[str, Any] = json.loads(json.dumps(document))
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        found = list(places_in(changed))
        if not found:
            break
        within, key = rng.choice(found)
        what = rng.random()
        if what < 0.1:
            del within[key]
        elif what < 0.2 and isinstance(within, list):
            within.append(copy.deepcopy(within[key]))
        elif what < 0.3 and type(within[key]) is int:
            within[key] += rng.choice([-1, 1])
        else:
            within[key] = copy.deepcopy(rng.choice(VALUES))
    return changed


def check_mutated_manifests(place: Path, cases: int, seed: int) -> int:
    """Each is refused, or is of no consequence; how many were refused."""
    rng, folder = random.Random(seed), StoreFolder(place)
    manifest, refused = read_manifest(folder), 0
    for _ in range(cases):
        write_manifest(folder, mutated(manifest, rng))
        said = [attempt(operation, place) for operation in ("load", "decide", "know again", "as it was")]
        refused += all(said)
        write_manifest(folder, manifest)
    return refused


def test_a_manifest_of_any_content_is_a_sentence(tmp_path):
    lay_out(tmp_path / "log")
    assert check_mutated_manifests(tmp_path / "log", 60, 1) > 40


@pytest.mark.long
def test_a_manifest_of_any_content_is_a_sentence_in_many_cases(tmp_path):
    lay_out(tmp_path / "log")
    assert check_mutated_manifests(tmp_path / "log", 700, 2) > 450


@pytest.mark.parametrize("operation", ["append", "compact"])
def test_a_manifest_of_any_content_is_a_sentence_for_those_who_write(operation, tmp_path):
    rng = random.Random(operation)
    for case in range(300 if THOROUGH else 10):
        place = tmp_path / str(case)
        lay_out(place)
        folder = StoreFolder(place)
        write_manifest(folder, mutated(read_manifest(folder), rng))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "the rows were added, but could not be merged")
            attempt(operation, place)


def put_arrays(folder: StoreFolder, manifest: dict[str, Any], role: str, data: bytes) -> None:
    """Other arrays under the same name, with the right checksum."""
    Path(folder.address, manifest[role]["name"]).write_bytes(data)
    entry = manifest[role] | {"bytes": len(data), "checksum": zlib.crc32(data)}
    write_manifest(folder, manifest | {role: entry})


def as_npz(arrays: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def mutated_arrays(arrays: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Arrays of which one is gone, of another type or shape, longer, shorter, or has other numbers."""
    changed = {name: array.copy() for name, array in arrays.items()}
    name = str(rng.choice(sorted(changed)))
    array, kind = changed[name], rng.integers(9)
    if kind == 0:
        del changed[name]
    elif kind == 1:
        changed[name] = array.astype(rng.choice(["f8", "i4", "u8", "?", "U9", "c16"]))
    elif kind == 2:
        changed[name] = array.reshape(1, -1) if rng.random() < 0.5 else np.array(7)
    elif kind == 3:
        changed[name] = array[: rng.integers(0, len(array) + 1)]
    elif kind == 4:
        changed[name] = np.concatenate([array, array[:1]])
    elif kind == 5:
        changed[name] = rng.permutation(array)
    elif len(array):
        others = [-1, 0, 1, 2, 5, 2**31, 2**62, -(2**63), 2**63 - 1]
        for _ in range(rng.choice([1, 2, 4])):
            other = int(rng.choice(others))
            changed[name][rng.integers(len(array))] = np.array([other]).astype(array.dtype)[0]
    return changed


def check_mutated_arrays(place: Path, cases: int, seed: int) -> int:
    rng, folder = np.random.default_rng(seed), StoreFolder(place)
    manifest, kept, refused = read_manifest(folder), contents(place), 0
    expected = rows_of(place)
    for _ in range(cases):
        role = "directory" if rng.random() < 0.8 else "digests"
        arrays = read_arrays(folder.open(manifest[role]["name"]), manifest[role])
        put_arrays(folder, manifest, role, as_npz(mutated_arrays(arrays, rng)))
        said = [attempt(operation, place) for operation in ("load", "decide", "know again", "as it was", "check")]
        refused += any(said)
        for name, content in kept.items():
            (place / name).write_bytes(content)
    assert rows_of(place) == expected
    return refused


def test_a_directory_of_any_content_is_a_sentence(tmp_path):
    lay_out(tmp_path / "log")
    assert check_mutated_arrays(tmp_path / "log", 60, 1) > 30


@pytest.mark.long
def test_a_directory_of_any_content_is_a_sentence_in_many_cases(tmp_path):
    lay_out(tmp_path / "log")
    assert check_mutated_arrays(tmp_path / "log", 700, 2) > 350


@pytest.mark.parametrize(
    "labels",
    [b"", b"{", b"[" * 100_000, b'"0123"', b"7", b"null", b'["0", "0", "1", "2"]', b"[[], [], [], []]", b'[{"x": "y"}]',
     b'["0", "1", {"date": "no"}, "3"]', b"[0, 1]", b'["0", "1", "2", {"bytes": "zz"}]', b"\xff", b"9" * 9999],
    ids=lambda labels: str(labels[:20]),
)  # fmt: skip
def test_labels_of_any_content_are_a_sentence(labels, tmp_path):
    place = tmp_path / "log"
    lay_out(place)
    folder = StoreFolder(place)
    manifest = read_manifest(folder)
    arrays = read_arrays(folder.open(manifest["directory"]["name"]), manifest["directory"])
    put_arrays(folder, manifest, "directory", as_npz(arrays | {"labels": np.frombuffer(labels, np.uint8)}))
    for operation in ("open", "append", "compact", "check"):
        assert attempt(operation, place)


@pytest.mark.parametrize("data", [b"", b"PK", b"no archive", b"PK\3\4" + bytes(99)])
@pytest.mark.parametrize("role", ["directory", "digests"])
def test_what_is_no_file_of_arrays_is_a_sentence(data, role, tmp_path):
    place = tmp_path / "log"
    lay_out(place)
    put_arrays(StoreFolder(place), read_manifest(StoreFolder(place)), role, data)
    assert "is not a file of arrays" in attempt("know again", place)


def check_mutated_bytes(place: Path, cases: int, seed: int) -> None:
    """Files of any content under the right names, most of them with the right checksum. Run it where it may crash."""
    rng, folder = np.random.default_rng(seed), StoreFolder(place)
    manifest, kept = read_manifest(folder), contents(place)
    for _ in range(cases):
        name = str(rng.choice(sorted(kept)))
        data = bytearray(kept[name])
        for _ in range(int(rng.choice([1, 1, 3, 20]))):
            at = int(rng.integers(len(data) + 1))
            kind = rng.integers(4)
            if kind == 0:
                data[at : at + 1] = bytes([rng.integers(256)])
            elif kind == 1:
                data[at:at] = rng.bytes(int(rng.integers(1, 9)))
            elif kind == 2:
                del data[at : at + int(rng.integers(1, 99))]
            else:
                data[at:at] = data[:at][-int(rng.integers(1, 99)) :]
        (place / name).write_bytes(data)
        for entry in (manifest["directory"], manifest["digests"]):
            if entry["name"] == name:
                write_manifest(folder, retold(manifest, name, data))
        for operation in ("load", "decide", "know again", "as it was", "check"):
            attempt(operation, place)
        for path, content in kept.items():
            (place / path).write_bytes(content)


def retold(manifest: dict[str, Any], name: str, data: bytes) -> dict[str, Any]:
    """The manifest that says of a file what it is now."""
    changed: dict[str, Any] = json.loads(json.dumps(manifest))
    listed_files(changed)[name].update(bytes=len(data), checksum=zlib.crc32(data))
    return changed


def in_a_process(tmp_path: Path, code: str) -> None:
    """Run some lines elsewhere, because they may take the process with them."""
    lines = f"import {Path(__file__).stem} as t, pathlib, sys\nplace = pathlib.Path(sys.argv[1])\n" + textwrap.dedent(
        code
    )
    where = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    found = subprocess.run(
        [sys.executable, "-c", lines, str(tmp_path)], env=os.environ | {"PYTHONPATH": where}, capture_output=True
    )
    assert found.returncode == 0, found.stderr.decode()[-2000:]


@pytest.mark.long
def test_two_thousand_files_of_any_content_neither_crash_nor_trace_back(tmp_path):
    lay_out(tmp_path / "log")
    in_a_process(tmp_path, "t.check_mutated_bytes(place / 'log', 2000, 1)")


def test_files_of_any_content_neither_crash_nor_trace_back(tmp_path):
    lay_out(tmp_path / "log")
    check_mutated_bytes(tmp_path / "log", 30, 2)


# -- writing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("umask", [0, 0o022])
def test_nobody_else_can_read_the_files(umask, tmp_path):
    before = os.umask(umask)
    try:
        lay_out(tmp_path / "log")
        assert ar.compact_history(tmp_path / "log") == 2
        ar.append_history(log_of(3, 3), tmp_path / "log")
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "log").iterdir()}
    assert {path.rpartition(".")[2] for path in modes} == {"json", "npz", "parquet"}
    assert set(modes.values()) == {0o600}


@pytest.mark.parametrize("error", [InvalidFile("is gone"), OSError("disk full"), pa.ArrowInvalid("strange")])
def test_rows_are_there_once_even_if_they_cannot_be_merged(error, tmp_path, monkeypatch):
    def fails(*arguments: Any) -> None:
        raise error

    place = tmp_path / "log"
    ar.index_history(log_of(20), place, **COLUMNS)
    with monkeypatch.context() as patch:
        patch.setattr(laying_out, "_merge", fails)
        with pytest.warns(
            UserWarning, match=f"the rows were added, but could not be merged with earlier ones: .*{error}"
        ):
            assert ar.append_history(log_of(15, 1), place) == 15
    expected = rows_of_log(ar.open_history(pa.concat_tables([log_of(20), log_of(15, 1)]), **COLUMNS).first(35))
    assert rows_of_log(ar.open_history(place)) == expected
    with pytest.raises(ArtReplayError, match="same rows as an earlier one"):
        ar.append_history(log_of(15, 1), place)
    assert ar.compact_history(place) == 2
    assert rows_of_log(ar.open_history(place)) == expected
