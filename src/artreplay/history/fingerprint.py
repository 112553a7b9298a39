"""Fingerprints of logs. They recognise a log, even after rows were appended, and find where it changed."""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from artreplay.compiling import Words
from artreplay.history.labels import Label

MAX_BLOCKS = 65_536  # digests of one fingerprint; a log of at most as many rows has a digest for each row


class Fingerprint:
    """The digests of consecutive blocks of `block` rows. The last block may be shorter.

    Without `digests`, the fingerprint starts empty, and `add` takes the rows one part after the other.
    """

    def __init__(self, rows: int, block: int | None = None, digests: Words | None = None) -> None:
        self.rows = rows
        self.block = _block_of(rows) if block is None else block
        self.digests: Words = np.zeros(-(-rows // self.block), np.uint64) if digests is None else digests
        self.seen = 0

    @classmethod
    def of(cls, parts: Iterable[Any], rows: int, block: int | None = None) -> Fingerprint:
        """Compute the fingerprint of the first `rows` rows of a log that comes in parts."""
        fingerprint = cls(rows, block)
        for part in parts:
            fingerprint.add(part.row_hashes)
            if fingerprint.seen >= rows:
                break
        return fingerprint

    def add(self, hashes: Words) -> None:
        """Add the hashes of the next rows. Rows beyond the length of the fingerprint are ignored."""
        hashes = hashes[: self.rows - self.seen]
        if len(hashes) == 0:
            return
        with np.errstate(over="ignore"):
            hashes = hashes if self.block == 1 else _placed(hashes, self.seen)
            blocks = np.arange(self.seen, self.seen + len(hashes), dtype=np.uint64) // np.uint64(self.block)
            starts = np.flatnonzero(np.diff(blocks, prepend=blocks[0] + np.uint64(1)))
            self.digests[blocks[starts].astype(np.int64)] += np.add.reduceat(hashes, starts)
        self.seen += len(hashes)

    def with_rows(self, hashes: Words) -> Fingerprint:
        """Return the fingerprint of the log after these rows are appended."""
        longer = Fingerprint(self.rows + len(hashes))
        digests = self.coarser(longer.block).digests
        longer.digests[: len(digests)] = digests
        longer.seen = self.rows
        longer.add(hashes)
        return longer

    def first_difference(self, other: Fingerprint) -> tuple[int, int] | None:
        """Find the first place where two logs of equal length differ, as a range of rows [first, last].

        Returns None if they do not differ.
        """
        block = max(self.block, other.block)
        wrong = np.flatnonzero(self.coarser(block).digests != other.coarser(block).digests)
        if len(wrong) == 0:
            return None
        first = int(wrong[0]) * block
        return first, min(first + block, self.rows) - 1

    def coarser(self, block: int) -> Fingerprint:
        """Return the fingerprint with larger blocks. `block` must be a multiple of their present length."""
        if block == self.block:
            return self
        with np.errstate(over="ignore"):
            digests = _placed(self.digests, 0) if self.block == 1 else self.digests
            starts = np.arange(0, len(digests), block // self.block)
            return Fingerprint(self.rows, block, np.add.reduceat(digests, starts) if len(starts) else digests)


def label_hashes(labels: Sequence[Label]) -> Words:
    """Compute a hash of each label that is the same in every process.

    For a label that prints differently in every process, its place among the labels is hashed instead.
    """
    texts = [_lasting_text(label) or f"#{place}" for place, label in enumerate(labels)]
    digests = [hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest() for text in texts]
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)


def _lasting_text(label: Any) -> str | None:
    """A text for a label that is the same in every process, or None for objects that print their address."""
    if isinstance(label, (str, bytes)):
        return f"{type(label).__name__} {label!r}"
    if isinstance(label, int):
        return repr(int(label))  # True equals 1, so both have the same text
    if isinstance(label, Decimal) and label.is_finite() and label == label.to_integral_value():
        return repr(int(label))
    if isinstance(label, datetime.datetime):
        return f"datetime {label.isoformat()}"  # a time of pandas equals one of Python, so both have the same text
    if isinstance(label, (tuple, frozenset)):
        parts = [_lasting_text(part) for part in label]
        if any(part is None for part in parts):
            return None
        ordered = sorted(map(str, parts)) if isinstance(label, frozenset) else map(str, parts)
        return f"{type(label).__name__}({', '.join(ordered)})"
    text = repr(label)
    return None if " at 0x" in text else text


def hashes_of(units: Words, columns: Sequence[np.ndarray[Any, Any]]) -> Words:
    """Compute a hash of each row from the hash of its unit and the bits of its float columns."""
    with np.errstate(over="ignore"):
        hashes = units
        for column in columns:
            bits = (column + 0.0).view(np.uint64)  # makes 0.0 of −0.0, because they are the same reward
            hashes = mixed(hashes * np.uint64(0x9E3779B97F4A7C15) + bits)
        return hashes


def _block_of(rows: int) -> int:
    """How many rows share a digest in a log of this length. It is a power of two, so that blocks can be joined."""
    return 1 << max(-(-rows // MAX_BLOCKS) - 1, 0).bit_length()


def _placed(hashes: Words, first: int) -> Words:
    """Mix the numbers of rows, from `first` on, into their hashes, so that the order inside a block counts too."""
    places = np.arange(first, first + len(hashes), dtype=np.uint64)
    return mixed(hashes + places * np.uint64(0xD1B54A32D192ED03))


def mixed(words: Words) -> Words:
    """Scramble each word by a bijection."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
