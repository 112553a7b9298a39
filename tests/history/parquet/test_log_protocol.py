"""A log that was laid out gives the answers of the same log in memory: read, scan, first, totals, fingerprint."""

from __future__ import annotations

import datetime
import itertools
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import artreplay as ar
from artreplay.errors import InvalidParameter
from artreplay.history.labels import is_arrow
from artreplay.history.parquet import ParquetLog, parquet_files, parquet_log, sorter

ALLOWANCES = (0.0, 0.125, 0.5)
EXAMPLES = settings().max_examples
LABELS: dict[str, list[Any]] = {
    "numbers": [3, -1, 0, 7, 2**62],
    "huge numbers": [2**63 + 1, 7, -(2**70), 2**64],
    "texts": ["red", "", "grün", "7", "a b"],
    "surrogates": ["red", "\ud800", "\udfff!", "\U0001f600"],
    "mixed": ["7", 7, "red", datetime.date(2024, 1, 2)],
    "bytes": [b"", b"\xff\0", b"red"],
    "dates": [datetime.date(2024, 1, 2), datetime.date(1, 1, 1), datetime.date(9999, 12, 31)],
    "times": [datetime.datetime(2024, 1, 2, 3), datetime.datetime(2024, 1, 2, 3, 0, 0, 1)],
    "flags": [True, False],
    "flags and texts": ["True", True, False, 7],
}


@pytest.fixture(autouse=True, scope="module")
def small_portions() -> Iterator[None]:
    """A few rows are many row groups, batches and ranges, and DuckDB sorts them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_files, "ROWS_PER_GROUP", 4)
        patch.setattr(parquet_files, "_GAP", 2)
        patch.setattr(parquet_log, "_BATCH_ROWS", 7)
        patch.setattr(sorter, "_BATCH_ROWS", 16)
        yield


class Rows:
    """Random rows of a log, which are laid out in several steps."""

    def __init__(self, labels: list[Any], rows: int, seed: int, with_allowances: bool) -> None:
        rng = np.random.default_rng(seed)
        self.units = [labels[place] for place in rng.integers(0, len(labels), rows)]
        self.rewards = rng.random(rows)
        self.allowances = rng.choice(ALLOWANCES, rows) if with_allowances else None

    def history(self, first: int = 0, last: int | None = None) -> ar.History:
        part = slice(first, last)
        allowance = None if self.allowances is None else self.allowances[part]
        return ar.History(self.units[part], self.rewards[part], allowance=allowance)

    def frame(self, first: int, last: int) -> Any:
        """The same rows as a source. Labels that arrow has no type for are a column of objects of pandas."""
        import pandas as pd

        units = pd.Series(self.units[first:last], dtype=object)
        columns = {"unit": units, "reward": self.rewards[first:last]}
        return pd.DataFrame(
            columns if self.allowances is None else columns | {"allowance": self.allowances[first:last]}
        )

    def lay_out(self, folder: Path, cuts: list[int], compact: bool) -> ParquetLog:
        edges = [0, *cuts, len(self.units)]
        allowance = None if self.allowances is None else "allowance"
        ar.index_history(self.frame(0, edges[1]), folder / "log", "unit", "reward", allowance=allowance)
        for first, last in itertools.pairwise(edges[1:]):
            ar.append_history(self.frame(first, last), folder / "log", grown=False)
        if compact:
            ar.compact_history(folder / "log")
        log = ar.open_history(folder / "log")
        assert isinstance(log, ParquetLog)
        return log


def same(one: Any, other: Any) -> bool:
    """Whether columns are the same, to the bit."""
    return all(
        (here is None and there is None) or np.asarray(here).tobytes() == np.asarray(there).tobytes()
        for here, there in zip(one, other, strict=True)
    )


def check_same(log: Any, memory: ar.History, rng: np.random.Generator) -> None:
    """All that a log can be asked has the answer of the one in memory."""
    assert [(type(label), label) for label in log.labels] == [(type(label), label) for label in memory.labels]
    assert len(log) == len(memory)
    assert log.counts.tolist() == memory.counts.tolist()
    assert log.fingerprint.digests.tolist() == memory.fingerprint.digests.tolist()
    assert same(log.totals().means(), memory.totals().means())
    assert same([log.totals().sums], [memory.totals().sums])
    for since in {0, int(rng.integers(0, len(memory) + 1))}:
        parts, (whole,) = list(log.scan(since)), list(memory.scan(since))
        codes = np.concatenate([np.empty(0, np.int64), *(part.codes for part in parts)])
        rewards = np.concatenate([np.empty(0), *(part.rewards for part in parts)])
        assert same([codes, rewards], whole[:2])
        if whole.allowances is not None and parts:
            assert same([np.concatenate([part.allowances for part in parts])], [whole.allowances])
    for _ in range(6):
        codes = rng.permutation(len(log.labels))[: rng.integers(0, len(log.labels) + 1)].astype(np.int64)
        after = rng.integers(0, log.counts[codes] + 1) if len(codes) else codes
        n = rng.integers(0, 9, len(codes))
        assert same(log.read(codes, after, n), memory.read(codes, after, n))


@given(
    kind=st.sampled_from(sorted(LABELS)),
    rows=st.integers(0, 60),
    cuts=st.lists(st.integers(0, 60), max_size=6),
    compact=st.booleans(),
    with_allowances=st.booleans(),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=max(EXAMPLES // 4, 12))
def test_whatever_is_asked_is_answered_as_in_memory(kind, rows, cuts, compact, with_allowances, seed, tmp_path_factory):
    made = Rows(LABELS[kind], rows, seed, with_allowances)
    cuts = sorted(min(cut, rows) for cut in cuts)
    log = made.lay_out(tmp_path_factory.mktemp("log"), cuts, compact)
    rng = np.random.default_rng(seed)
    check_same(log, made.history(), rng)
    check_same(pickle.loads(pickle.dumps(log)), made.history(), rng)
    for first in {0, *cuts[:1], *rng.integers(0, rows + 1, 2).tolist()}:
        check_same(log.first(first), made.history(0, first), rng)


@pytest.mark.parametrize("compact", [False, True])
def test_a_log_is_known_as_it_was_at_every_row(compact, tmp_path):
    made = Rows(["red", "blue", "grün"], 40, 3, True)
    made.units[33] = "late"
    log = made.lay_out(tmp_path, [5, 5, 19, 30, 36], compact)
    for rows in range(41):
        before, memory = log.first(rows), made.history().first(rows)
        assert memory.labels == made.history(0, rows).labels
        assert (before.labels, before.counts.tolist()) == (memory.labels, memory.counts.tolist())
        assert before.fingerprint.digests.tolist() == memory.fingerprint.digests.tolist()
        assert before.load().rewards.tobytes() == memory.rewards.tobytes()
        assert before.first(rows // 2).counts.tolist() == made.history(0, rows // 2).counts.tolist()
    for rows in (-1, 41):
        with pytest.raises(InvalidParameter, match=f"rows must be from 0 to 40, as many as .* has, got {rows}"):
            log.first(rows)
        with pytest.raises(InvalidParameter, match=f"rows must be from 0 to 40, as many as the log has, got {rows}"):
            made.history().first(rows)


def test_what_was_cut_to_its_first_rows_can_be_cut_again(tmp_path):
    made = Rows(["red", "blue", "grün"], 40, 4, False)
    log = made.lay_out(tmp_path, [5, 19, 30], False)
    for rows in range(0, 41, 6):
        for fewer in range(0, rows + 1, 5):
            check_same(log.first(rows).first(fewer), made.history().first(fewer), np.random.default_rng(rows))


def test_totals_have_the_bits_of_rewards_added_one_by_one(tmp_path):
    made = Rows([0, 1, 2], 500, 5, False)
    made.rewards = made.rewards * 10.0 ** np.random.default_rng(1).integers(-8, 9, 500)
    log = made.lay_out(tmp_path, [3, 100, 101, 350], False)
    sums = dict.fromkeys(range(3), 0.0)
    for unit, reward in zip(made.units, made.rewards.tolist(), strict=True):
        sums[unit] += reward
    assert dict(zip(log.labels, log.totals().sums.tolist(), strict=True)) == sums
    assert ar.Totals.of(log).sums.tolist() == made.history().totals().sums.tolist()


def test_the_fingerprint_is_known_each_time_the_log_grew(tmp_path):
    made = Rows(["red", "blue"], 300, 6, False)
    log = made.lay_out(tmp_path, [100, 101, 250], True)
    for rows in (100, 101, 250, 300):
        known = log.known_fingerprint(rows)
        assert known is not None
        assert known.digests.tolist() == made.history(0, rows).fingerprint.digests.tolist()
        log.check_continues(made.history(0, rows).fingerprint)
    assert log.known_fingerprint(99) is None
    log.check_continues(made.history(0, 99).fingerprint)


def test_an_arm_that_came_late_is_read_from_its_first_row(tmp_path):
    made = Rows([0], 30, 7, False)
    made.units[20:] = [1, 0] * 5
    log = made.lay_out(tmp_path, [10, 20, 25], False)
    read = log.read(np.array([1, 0]), np.array([1, 19]), np.array([2, 3]))
    assert read.sizes.tolist() == [2, 3]
    assert read.rewards.tolist() == made.rewards[[22, 24, 19, 21, 23]].tolist()


def test_labels_are_columns_of_their_own_type_where_parquet_has_one(tmp_path):
    for kind, expected in (("numbers", pa.int64()), ("texts", pa.string()), ("mixed", pa.string())):
        (tmp_path / kind).mkdir()
        log = Rows(LABELS[kind], 30, 1, False).lay_out(tmp_path / kind, [], False)
        (file,) = (tmp_path / kind / "log").glob("*.parquet")
        schema = pa.parquet.read_schema(file)
        assert schema.field("unit").type == expected
        assert schema.names == ["unit", "row", "reward"]
        assert not is_arrow(log.labels[0])
