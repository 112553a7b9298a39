"""Whatever happens to the files of a log, there is a sentence or the very same decisions, never others."""

from __future__ import annotations

import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from store_logs import Log, played, random_log, sorted_files

import artreplay as ar
from artreplay.errors import ArtReplayError

ARMS = ar.MonUCB(4, 20, bonus=ar.bonus.practical(0.5))
FLIPS = 300 if os.environ.get("ARTREPLAY_THOROUGH") else 3


def decisions(base: Any, place: Path) -> list[Any]:
    history = ar.open_history(place)
    found = [played(policy(base, history), 6, 1) for policy in (ar.ArtificialReplay, ar.FullStart)]
    return [*found, *(log.fingerprint.digests.tolist() for log in (history.load(), history))]


def lay_out(log: Log, place: Path) -> None:
    """A log in two files."""
    cut = 3 * len(log.table) // 4
    ar.index_history(log.table[:cut], place, **log.columns)
    ar.append_history(log.table[cut:], place)


@pytest.mark.parametrize("layout", ["own", "adopted"])
def test_a_flipped_bit_is_a_sentence_and_never_a_decision(layout, tmp_path):
    log, rng = random_log(ARMS, 400, 1), np.random.default_rng(0)
    if layout == "own":
        place = tmp_path / "log"
        lay_out(log, place)
    else:
        place = sorted_files(log, tmp_path, files=2, group=100)
        ar.index_history(place, already_sorted=True, order="at", **log.columns)
    expected = decisions(ARMS, place)
    kinds: set[str] = set()
    for file in sorted(path for path in place.rglob("*") if path.is_file()):
        content, sentences = file.read_bytes(), 0
        for _ in range(FLIPS):
            damaged = bytearray(content)
            damaged[rng.integers(len(content))] ^= 1 << rng.integers(8)
            file.write_bytes(damaged)
            try:
                assert decisions(ARMS, place) == expected, file.name
            except ArtReplayError:
                sentences += 1
        file.write_bytes(content)
        kinds.add(file.name.partition("-")[0])
        assert sentences > FLIPS // 3, file.name  # much of what is damaged is read
    assert len(kinds) == (4 if layout == "own" else 3)  # the manifest, rows, the directory, digests
    assert decisions(ARMS, place) == expected


@pytest.mark.parametrize("change", ["made anew", "compacted", "removed", "grown"])
def test_a_policy_goes_on_with_the_log_it_was_made_of(change, tmp_path):
    log, other, place = random_log(ARMS, 400, 1), random_log(ARMS, 400, 2), tmp_path / "log"
    lay_out(log, place)
    policy = ar.ArtificialReplay(ARMS, ar.open_history(place))
    if change == "compacted":
        assert ar.compact_history(place) == 2
    elif change == "grown":
        assert ar.append_history(pa.table(other.table), place) == 400
    else:
        shutil.rmtree(place)
        if change == "made anew":
            lay_out(other, place)
    assert played(policy, 8, 1) == played(ar.ArtificialReplay(ARMS, log.history()), 8, 1)


def test_a_log_that_travels_notices_that_it_was_made_anew(tmp_path):
    log, place = random_log(ARMS, 400, 1), tmp_path / "log"
    lay_out(log, place)
    sent = pickle.dumps(ar.open_history(place))
    policy = ar.ArtificialReplay(ARMS, pickle.loads(sent))
    assert played(policy, 8, 1) == played(ar.ArtificialReplay(ARMS, log.history()), 8, 1)
    shutil.rmtree(place)
    lay_out(random_log(ARMS, 400, 2), place)
    with pytest.raises(ArtReplayError, match="does not exist"):
        ar.ArtificialReplay(ARMS, pickle.loads(sent)).ask()


@pytest.mark.long
def test_forty_days_are_few_files(tmp_path):
    log, place = random_log(ARMS, 400, 1), tmp_path / "log"
    ar.index_history(log.table[:10], place, unit="arm", reward="click")
    for first in range(10, 400, 10):
        ar.append_history(log.table[first : first + 10], place, grown=False)
    assert len(list(place.glob("*.parquet"))) <= 6
    saved = ar.ArtificialReplay(ARMS, ar.open_history(place).first(200))
    saved.ask()
    saved.save(tmp_path / "policy.ar")
    again = ar.load(tmp_path / "policy.ar", ar.open_history(place))  # known from when it had 200 rows
    assert again.unused + again.used == 400
    whole = played(ar.ArtificialReplay(ARMS, ar.open_history(place)), 8, 1)
    assert whole == played(ar.ArtificialReplay(ARMS, log.history()), 8, 1)


def test_rows_that_seem_to_be_there_already_are_refused_unless_it_is_said(tmp_path):
    log, place = random_log(ARMS, 60, 1).table, tmp_path / "log"
    ar.index_history(log[:30], place, unit="arm", reward="click")
    with pytest.raises(ArtReplayError, match="begins with all rows of the log"):
        ar.append_history(log, place)
    assert ar.append_history(log[30:40], place) == 10
    with pytest.raises(ArtReplayError, match="same rows as an earlier one"):
        ar.append_history(log[30:40], place)
    assert ar.append_history(log[30:40], place, grown=False) == 10
    with pytest.raises(ArtReplayError, match="changed"):
        ar.append_history(log, place, grown=True)
