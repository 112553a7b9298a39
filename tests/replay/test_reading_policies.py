"""Reading a policy: a file that is damaged is refused in one sentence, and nothing in it is executed."""

from __future__ import annotations

import io
import json
import random
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from saving_kit import small_log, small_policy, state

import artreplay as ar
from artreplay.errors import ArtReplayError, InvalidFile, InvalidParameter
from artreplay.replay import saving

# -- reading --------------------------------------------------------------------------------------------------


def rewritten(path: Path, change: Callable[[dict[str, Any], dict[str, bytes]], None]) -> None:
    """A policy file with something else in it."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    document = json.loads(parts.pop("policy.json"))
    change(document, parts)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("policy.json", json.dumps(document))
        for name, data in parts.items():
            archive.writestr(name, data)


def npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def asked_policy() -> Any:
    policy = small_policy()
    policy.ask()
    return policy


def test_a_file_that_is_not_there_is_said_in_one_sentence(path):
    with pytest.raises(InvalidFile, match=r"policy\.ar does not exist$"):
        ar.load(path)
    with pytest.raises(InvalidFile, match="cannot be read"):
        ar.load(path.parent)


def test_a_file_cut_short_anywhere_is_said_in_one_sentence(path):
    asked_policy().save(path)
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(InvalidFile, match="truncated, damaged, or not a policy file") as refused:
            ar.load(path, small_log())
        assert "\n" not in str(refused.value)


def test_a_file_that_would_take_far_more_memory_than_it_has_bytes_is_refused_before_it_is_read(path, monkeypatch):
    asked_policy().save(path)
    whole = path.read_bytes()
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (1 << 40,)})
    lies = {"base.huge.npy": header.getvalue(), "base.more.npy": header.getvalue() + b"\0" * 800}
    for name, content in lies.items():
        path.write_bytes(whole)
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr(name, content)
        with pytest.raises(InvalidFile, match="an array is not as long as it says"):
            ar.load(path, small_log())
    path.write_bytes(whole)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("base.zeros.npy", b"\0" * (64 << 20))
    monkeypatch.setattr(saving, "MAX_UNPACKED", 1 << 20)
    tracemalloc.start()
    with pytest.raises(InvalidFile, match="bytes of memory, and may take"):
        ar.load(path, small_log())
    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    tracemalloc.stop()


def test_a_file_that_speaks_of_more_arms_than_it_has_arrays_for_is_refused(path):
    asked_policy().save(path)
    rewritten(path, lambda document, _: document["base"]["made with"].update(n_arms=10**12))
    with pytest.raises(InvalidFile, match="says that there are 1,000,000,000,000 arms"):
        ar.load(path, small_log())


@pytest.mark.parametrize(("flip", "step"), [(0x01, 17), (0xFF, 13), pytest.param(0x80, 1, marks=pytest.mark.long)])
def test_a_byte_that_is_changed_anywhere_is_noticed_or_plays_no_part(path, flip, step):
    policy = asked_policy()
    policy.save(path)
    whole = path.read_bytes()
    for place in range(0, len(whole), step):
        damaged = bytearray(whole)
        damaged[place] ^= flip
        path.write_bytes(damaged)
        try:
            loaded = ar.load(path, small_log())
        except ArtReplayError as error:
            assert "\n" not in str(error)  # noqa: PT017
            continue
        assert state(loaded) == state(policy)
        assert loaded.ask() == policy.ask()


@pytest.mark.parametrize("size", [0, 1, 10, 1000, 100_000])
def test_garbage_is_said_to_be_garbage(path, size):
    path.write_bytes(random.Random(size).randbytes(size))
    with pytest.raises(InvalidFile, match="not a policy file"):
        ar.load(path)
    path.write_text("PK\x03\x04" + "x" * size)
    with pytest.raises(InvalidFile, match="not a policy file"):
        ar.load(path)


def test_other_archives_are_not_policies(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("other.json", "{}")
    with pytest.raises(InvalidFile, match="not a policy file"):
        ar.load(path)
    for text in ("{}", "[]", "5", "null", '{"magic": "other"}', "not json", "\xff"):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("policy.json", text.encode("latin-1"))
        with pytest.raises(InvalidFile, match="not a policy file"):
            ar.load(path)
    np.savez(path.with_suffix(".npz"), x=np.zeros(3))
    with pytest.raises(InvalidFile, match="not a policy file"):
        ar.load(path.with_suffix(".npz"))


@pytest.mark.parametrize("number", [0, 1, 99, "2", None])
def test_another_format_is_named(path, number):
    asked_policy().save(path)
    rewritten(path, lambda document, parts: document.update(format=number))
    with pytest.raises(InvalidFile, match=f"has format {number!r}, and this version of artreplay reads format 6"):
        ar.load(path, small_log())


COUNTS = "base.index.tally.counts.npy"

DAMAGE: dict[str, Callable[[dict[str, Any], dict[str, bytes]], Any]] = {
    "another algorithm": lambda d, parts: d["base"].update({"class": "Sorcery"}),
    "another policy": lambda d, parts: d.update(policy="clairvoyant"),
    "another kind of base": lambda d, parts: d["base"].update(kind="other"),
    "no policy": lambda d, parts: d.pop("policy"),
    "no base": lambda d, parts: d.pop("base"),
    "base is a number": lambda d, parts: d.update(base=5),
    "no parameters": lambda d, parts: d["base"].pop("made with"),
    "parameters are a list": lambda d, parts: d["base"].update({"made with": [1]}),
    "a parameter too many": lambda d, parts: d["base"]["made with"].update(colour=1),
    "a parameter of another type": lambda d, parts: d["base"]["made with"].update(horizon=[1]),
    "a parameter out of range": lambda d, parts: d["base"]["made with"].update(horizon=-1),
    "an unknown spec": lambda d, parts: d["base"]["made with"].update(bonus={"$spec": "Magic", "fields": {}}),
    "a spec of other fields": lambda d, parts: d["base"]["made with"]["bonus"].update(fields={"x": 1}),
    "bytes that are none": lambda d, parts: d["base"]["made with"].update(arms=[{"$bytes": "zz"}, "b"]),
    "no pending": lambda d, parts: d.pop("pending"),
    "pending is a number": lambda d, parts: d.update(pending=5),
    "pending has no units": lambda d, parts: d.update(pending={"units": [], "is_several": False}),
    "no history": lambda d, parts: d.pop("history"),
    "history is a list": lambda d, parts: d.update(history=[]),
    "rows are text": lambda d, parts: d["history"].update(rows="x"),
    "no position": lambda d, parts: parts.pop("position.npy"),
    "a short position": lambda d, parts: parts.update({"position.npy": npy(np.zeros(2, np.int64))}),
    "no digests": lambda d, parts: parts.pop("digests.npy"),
    "no marks": lambda d, parts: parts.pop("marks.npy"),
    "more marks than cells": lambda d, parts: parts.update({"marks.npy": npy(np.zeros(9, np.int64))}),
    "marks beyond the log": lambda d, parts: parts.update({"marks.npy": npy(np.array([99, 99]))}),
    "no counts": lambda d, parts: parts.pop(COUNTS),
    "counts of fewer arms": lambda d, parts: parts.update({COUNTS: npy(np.zeros(1, np.int64))}),
    "counts of two dimensions": lambda d, parts: parts.update({COUNTS: npy(np.zeros((2, 2), np.int64))}),
    "counts that are text": lambda d, parts: parts.update({COUNTS: npy(np.array(["a", "b"]))}),
    "an array cut short": lambda d, parts: parts.update({"marks.npy": parts["marks.npy"][:-3]}),
    "an array that is none": lambda d, parts: parts.update({"marks.npy": b"nothing"}),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_file_whose_parts_do_not_fit_is_said_in_one_sentence(path, damage):
    asked_policy().save(path)
    rewritten(path, damage)
    with pytest.raises(ArtReplayError) as refused:
        ar.load(path, small_log())
    assert isinstance(refused.value, (InvalidFile, InvalidParameter))
    assert "\n" not in str(refused.value)


class Trap:
    """What a pickled array would run."""

    def __reduce__(self):
        return (Path.touch, (Path("trapped"),))


@pytest.mark.parametrize("name", ["used", "position", "digests", "base.index.value", "anything"])
def test_nothing_is_executed_on_loading(path, monkeypatch, name):
    monkeypatch.chdir(path.parent)
    asked_policy().save(path)
    trap = npy(np.array([Trap()], dtype=object))
    rewritten(path, lambda document, parts: parts.update({f"{name}.npy": trap}))
    with pytest.raises(InvalidFile):
        ar.load(path, small_log())
    assert not Path("trapped").exists()
    np.load(io.BytesIO(trap), allow_pickle=True)  # the trap works
    assert Path("trapped").exists()


def test_a_file_holds_arrays_and_text_only(path):
    asked_policy().save(path)
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            data = archive.read(name)
            if name == "policy.json":
                json.loads(data)
            else:
                np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
