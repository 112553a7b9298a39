"""A policy recognises its log, also with rows appended, and says where another log differs."""

from __future__ import annotations

import datetime
import decimal
import enum
import json
import os
import re
import subprocess
import sys
import uuid

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

import artreplay as ar
from artreplay.errors import ChangedHistory, InvalidHistory
from artreplay.history import Fingerprint
from artreplay.history.fingerprint import MAX_BLOCKS

labels = st.sampled_from(["a", "b", "", "ü", 0, 1, -1, "0", "1", b"a", ("a", 0), ("a", "0"), 2**70, False])
rewards = st.sampled_from([0.0, -0.0, 0.5, 1.0, 1e-300, 5e-324, -1.0, 1e300]) | st.floats(-1e9, 1e9)
rows = st.tuples(labels, rewards)


def log_of(samples: list[tuple]) -> ar.History:
    return ar.History([unit for unit, _ in samples], [reward for _, reward in samples])


def changed_rows(known: Fingerprint, log: ar.History, old: ar.History | None = None) -> tuple[int, int]:
    """The rows an error names, first and last."""
    with pytest.raises(ChangedHistory) as refused:
        log.check_continues(known, old)
    numbers = [int(number) for number in re.findall(r"(?:row|between|and) (\d+)", str(refused.value))]
    assert numbers, str(refused.value)
    return numbers[0], numbers[-1]


def same(one: Fingerprint, other: Fingerprint) -> bool:
    return (one.rows, one.block) == (other.rows, other.block) and one.digests.tolist() == other.digests.tolist()


# -- small logs ---------------------------------------------------------------------------------------------


@given(st.lists(rows, max_size=20))
def test_the_same_log_has_the_same_fingerprint(samples):
    assert same(log_of(samples).fingerprint, log_of(list(samples)).fingerprint)
    log_of(samples).check_continues(log_of(samples).fingerprint)


@given(st.lists(rows, max_size=15), st.lists(rows, max_size=15))
def test_appended_rows_are_accepted_and_a_shorter_log_is_not(samples, more):
    log, longer = log_of(samples), log_of(samples + more)
    longer.check_continues(log.fingerprint)
    longer.check_continues(log.fingerprint, log)
    if more:
        with pytest.raises(ChangedHistory, match=rf"has {len(log)} rows and had {len(longer)}"):
            log.check_continues(longer.fingerprint)


@given(st.lists(rows, min_size=1, max_size=15), st.data())
def test_a_changed_row_is_named_exactly(samples, data):
    place = data.draw(st.integers(0, len(samples) - 1))
    new = data.draw(rows)
    assume(new != samples[place])
    other = log_of([*samples[:place], new, *samples[place + 1 :]])
    assert changed_rows(log_of(samples).fingerprint, other) == (place, place)
    assert changed_rows(log_of(samples).fingerprint, other, log_of(samples)) == (place, place)


@given(st.lists(rows, min_size=2, max_size=15), st.data())
def test_swapped_rows_are_noticed_at_the_first_of_them(samples, data):
    first, second = sorted(data.draw(st.lists(st.integers(0, len(samples) - 1), min_size=2, max_size=2, unique=True)))
    assume(samples[first] != samples[second])
    swapped = list(samples)
    swapped[first], swapped[second] = samples[second], samples[first]
    assert changed_rows(log_of(samples).fingerprint, log_of(swapped)) == (first, first)


def test_minus_zero_is_zero():
    one, other = ar.History(["a"], [0.0]), ar.History(["a"], [-0.0])
    assert same(one.fingerprint, other.fingerprint)
    points = [ar.History(np.array([[zero, 0.5]]), [1.0]) for zero in (0.0, -0.0)]
    assert same(points[0].fingerprint, points[1].fingerprint)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1", 1),
        ("a", b"a"),
        (("a", "b"), "ab"),
        (("a", ("b",)), ("a", "b")),
        ("None", ("None",)),
        ("meet at 0x1", "meet at 0x2"),
        (("at", "x at 0x1"), ("at", "x at 0x2")),
        ("#0", "<object object at 0x0>"),
        (b" at 0x1", b" at 0x2"),
        (frozenset([1]), frozenset([2])),
        (2**64, 2**65),
    ],
)
def test_labels_that_differ_have_fingerprints_that_differ(one, other):
    assert one != other
    assert changed_rows(ar.History([one], [0.5]).fingerprint, ar.History([other], [0.5])) == (0, 0)


def test_the_place_of_a_label_among_the_labels_plays_no_part():
    """Whether a label was met earlier in the log says nothing about a row."""
    samples = [("b", 0.0), ("a", 1.0)]
    hashes = log_of(samples).row_hashes
    assert log_of(samples[::-1]).row_hashes.tolist() == hashes[::-1].tolist()
    shuffled = log_of(samples * 5).shuffled(1)
    again = ar.History([shuffled.unit(row) for row in range(10)], shuffled.rewards)
    assert same(shuffled.fingerprint, again.fingerprint)


def test_objects_that_have_no_lasting_text_are_known_by_their_place():
    class Arm:
        pass

    first, second = [Arm() for _ in range(3)], [Arm() for _ in range(3)]
    one = ar.History([first[0], first[1], first[0]], [0.0, 0.5, 1.0])
    ar.History([second[2], second[0], second[2], second[1]], [0.0, 0.5, 1.0, 0.0]).check_continues(one.fingerprint)
    other = ar.History([second[2], second[0], second[0]], [0.0, 0.5, 1.0])
    assert changed_rows(one.fingerprint, other) == (2, 2)


def test_the_same_moments_are_the_same_log_in_every_resolution():
    """Files and libraries keep times in microseconds or in nanoseconds, and change their minds about it."""
    moments = [datetime.datetime(2020, 1, 2, 3, 4, 5, 678), datetime.datetime(1999, 1, 1)]
    known = ar.History(moments, [0.0, 1.0])
    for unit in ("us", "ns"):
        stored = np.array(moments, f"datetime64[{unit}]")
        for units in (stored, pd.Series(stored), pa.array(stored), pl.Series(stored)):
            log = ar.History(units, [0.0, 1.0])
            assert log.labels == known.labels
            log.check_continues(known.fingerprint)
            known.check_continues(log.fingerprint)


def test_flags_are_the_same_log_as_the_numbers_they_equal():
    one, other = ar.History([False, True], [0.0, 1.0]), ar.History([0, 1], [0.0, 1.0])
    assert one.labels == other.labels
    assert same(one.fingerprint, other.fingerprint)


# -- points -------------------------------------------------------------------------------------------------


@given(
    st.integers(1, 3).flatmap(
        lambda d: st.lists(st.tuples(*[st.floats(-1e6, 1e6)] * (d + 1)), min_size=1, max_size=10)
    ),
    st.data(),
)
def test_a_changed_coordinate_is_named_exactly(samples, data):
    table = np.array(samples)
    log = ar.History(table[:, :-1], table[:, -1])
    log.check_continues(ar.History(table[:, :-1].copy(), table[:, -1].copy()).fingerprint)
    row, column = data.draw(st.integers(0, len(table) - 1)), data.draw(st.integers(0, table.shape[1] - 1))
    other = table.copy()
    other[row, column] = data.draw(st.floats(-1e6, 1e6))
    assume(other[row, column] != table[row, column])
    assert changed_rows(log.fingerprint, ar.History(other[:, :-1], other[:, -1])) == (row, row)


# -- long logs ----------------------------------------------------------------------------------------------

LONG = 3 * MAX_BLOCKS + 17


@pytest.fixture(scope="module")
def long_log() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    return rng.integers(0, 50, LONG), rng.random(LONG)


@pytest.mark.parametrize("size", [MAX_BLOCKS, MAX_BLOCKS + 1, LONG])
@pytest.mark.parametrize("row", [0, 3, 40_000, -1])
@pytest.mark.parametrize("what", ["label", "reward"])
def test_a_changed_row_of_a_long_log_lies_in_a_narrow_block_that_is_named(long_log, size, row, what):
    units, values = long_log[0][:size].copy(), long_log[1][:size].copy()
    known = ar.History(units, values).fingerprint
    assert len(known.digests) <= MAX_BLOCKS
    row %= size
    if what == "label":
        units[row] += 1
    else:
        values[row] = np.nextafter(values[row], 2.0)
    first, last = changed_rows(known, ar.History(units, values))
    assert first <= row <= last < size
    assert last - first < -(-size // MAX_BLOCKS)
    if size <= MAX_BLOCKS:
        assert first == last


def test_with_the_old_log_at_hand_the_very_row_of_a_long_log_is_named(long_log):
    units, values = long_log
    old = ar.History(units, values)
    for row in (0, 1, 2, 100_001, LONG - 1):
        other = values.copy()
        other[row] += 1.0
        assert changed_rows(old.fingerprint, ar.History(units, other), old) == (row, row)


def test_swapped_rows_inside_a_block_of_a_long_log_are_noticed(long_log):
    units, values = long_log
    known = ar.History(units, values).fingerprint
    order = np.arange(LONG)
    order[[4, 5]] = 5, 4  # both in one block
    first, last = changed_rows(known, ar.History(units[order], values[order]))
    assert first <= 4 <= last
    order = np.arange(LONG)
    order[[5, LONG - 3]] = LONG - 3, 5
    first, last = changed_rows(known, ar.History(units[order], values[order]))
    assert first <= 5 <= last


@given(st.integers(1, 5_000), st.integers(1, 40), st.integers(0, 4_999), st.integers(0, 100))
@example(5, 5, 4, 0)
def test_any_block_that_is_named_holds_the_change(size, block, row, more):
    """Also for fingerprints made with other blocks than today's."""
    assume(row < size)
    hashes = np.random.default_rng(size).integers(0, 2**63, size + more).astype(np.uint64)
    known = made_of(hashes, size, block)
    assert known.first_difference(made_of(hashes, size, block)) is None
    hashes[row] ^= np.uint64(1)
    first, last = known.first_difference(made_of(hashes, size, block))
    assert first <= row <= last < min(first + block, size)


def made_of(hashes: np.ndarray, size: int, block: int) -> Fingerprint:
    made = Fingerprint(size, block)
    made.add(hashes)
    return made


# -- what a policy says -------------------------------------------------------------------------------------


def test_a_policy_goes_on_with_a_grown_log_and_refuses_a_changed_one():
    samples = [("a", 0.0), ("b", 1.0), ("a", 0.5)]
    for make in (ar.ArtificialReplay, ar.FullStart):
        policy = make(ar.MonUCB(arms=["a", "b"], horizon=10), log_of(samples))
        asked = policy.ask()
        used = policy.used
        for other in (samples[:2], [*samples[:2], ("b", 0.5)], [("b", 1.0), ("a", 0.0), ("a", 0.5)]):
            with pytest.raises(ChangedHistory):
                policy.extend(log_of(other))
            assert (policy.ask(), policy.used, policy.unused) == (asked, used, 3 - used)
        with pytest.raises(InvalidHistory):
            policy.extend(log_of([*samples, ("c", 0.5)]))
        assert (policy.ask(), policy.used, policy.unused) == (asked, used, 3 - used)
        policy.extend(log_of([*samples, ("a", 1.0), ("b", 0.0)]))
        assert (policy.used, policy.unused) == (used, 5 - used)


# -- other processes ----------------------------------------------------------------------------------------


class Colour(enum.Enum):
    RED = 1
    BLUE = "b"


EVERYWHERE = {
    "integers": [0, 1, -1, 2**70],
    "texts": ["a", "ü", "", "\udcff"],
    "bytes": [b"a", b"\xff"],
    "tuples": [("a", 1), ("a", (2, "b"))],
    "flags": [True, False],
    "days": [datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)],
    "decimals": [decimal.Decimal("0.5"), uuid.UUID(int=5)],
    "members": [Colour.RED, Colour.BLUE],
    "sets": [frozenset(["apple", "pear", "plum", "fig"]), frozenset(["x"])],
    "tuples of sets": [("basket", frozenset(["apple", "pear", "plum", "fig"]))],
    "objects": [object(), object()],
}


def digests_by_kind() -> dict[str, list[int]]:
    return {
        kind: ar.History(units, [0.5] * len(units)).fingerprint.digests.tolist() for kind, units in EVERYWHERE.items()
    }


@pytest.fixture(scope="module")
def elsewhere() -> list[dict[str, list[int]]]:
    """What two other processes say, whose texts hash otherwise."""
    found = []
    for seed in ("1", "4"):
        done = subprocess.run(
            [sys.executable, __file__],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        found.append(json.loads(done.stdout))
    return found


@pytest.mark.long
@pytest.mark.xdist_group("processes of their own")
@pytest.mark.parametrize("kind", EVERYWHERE)
def test_a_log_has_the_same_fingerprint_in_every_process(elsewhere, kind):
    assert elsewhere[0][kind] == elsewhere[1][kind] == digests_by_kind()[kind]


if __name__ == "__main__":
    print(json.dumps(digests_by_kind()))
