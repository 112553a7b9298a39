"""A process that is killed while it writes a log leaves the log before or the one after, and nothing for long."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import artreplay as ar
from artreplay.history.parquet import parquet_files, parquet_log, sorter
from artreplay.history.parquet.manifest import MANIFEST, listed_files, read_manifest
from artreplay.history.parquet.store_folder import StoreFolder

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no way to begin many processes soon")
COLUMNS = {"unit": "arm", "reward": "click"}
ROWS, MORE = 2000, 500


def log_of(rows: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table({"arm": rng.integers(0, 4, rows).astype(str), "click": rng.integers(0, 9, rows) / 8})


BEFORE, NEW = log_of(ROWS, 0), log_of(MORE, 1)
WHOLE = pa.concat_tables([BEFORE, NEW])


def index(place: Path) -> None:
    ar.index_history(BEFORE, place, **COLUMNS)


def append(place: Path) -> None:
    ar.append_history(NEW, place, grown=False)


def adopt(place: Path) -> None:
    ar.index_history(place, already_sorted=True, order="at", **COLUMNS)


def in_child(work: Callable[[Path], object], place: Path) -> int:
    """The number of a process that works on a place; it ends with 0 if that went well."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work(place)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    return child


def ended(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed(work: Callable[[Path], object], place: Path, seconds: float) -> None:
    """Kill a process that works on a place, after some time."""
    child = in_child(work, place)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    ended(child)


def rubbish(place: Path) -> set[str]:
    """What is in a log's folder, or beside it, and belongs to no log."""
    beside = {path.name for path in place.parent.iterdir()} - {place.name}
    return beside | {path.name for path in place.iterdir()} - {
        MANIFEST,
        *listed_files(read_manifest(StoreFolder(place))),
    }


def check_log(place: Path, expected: pa.Table) -> None:
    log, memory = ar.open_history(place), ar.open_history(expected, **COLUMNS)
    log.check()
    assert log.labels == memory.labels
    assert log.load().rewards.tolist() == memory.rewards.tolist()
    assert log.fingerprint.digests.tolist() == memory.fingerprint.digests.tolist()


def kill_index(place: Path, seconds: float) -> None:
    killed(index, place, seconds)
    if place.exists():
        check_log(place, BEFORE)
        append(place)
        check_log(place, WHOLE)
    else:
        index(place)
        check_log(place, BEFORE)


def kill_append(place: Path, seconds: float) -> None:
    index(place)
    killed(append, place, seconds)
    rows = len(ar.open_history(place))
    assert rows in (ROWS, ROWS + MORE)
    check_log(place, BEFORE if rows == ROWS else WHOLE)
    if rows == ROWS:
        append(place)
    else:
        ar.compact_history(place)
    check_log(place, WHOLE)


def kill_compact(place: Path, seconds: float) -> None:
    index(place)
    append(place)
    killed(ar.compact_history, place, seconds)
    check_log(place, WHOLE)
    ar.append_history(NEW, place, grown=False)
    check_log(place, pa.concat_tables([WHOLE, NEW]))
    ar.compact_history(place)
    check_log(place, pa.concat_tables([WHOLE, NEW]))


def kill_adopt(place: Path, seconds: float) -> None:
    write_sorted(place)
    killed(adopt, place, seconds)
    adopt(place)
    assert ar.open_history(place).load().rewards.tolist() == ar.open_history(BEFORE, **COLUMNS).rewards.tolist()


def write_sorted(place: Path) -> None:
    """What another engine would write."""
    place.mkdir()
    numbered = BEFORE.append_column("at", pa.array(np.arange(ROWS))).sort_by(
        [("arm", "ascending"), ("at", "ascending")]
    )
    pq.write_table(numbered, place / "part-0.parquet", row_group_size=100)


KILLS = {"index": kill_index, "append": kill_append, "compact": kill_compact, "adopt": kill_adopt}


def durations(folder: Path) -> dict[str, float]:
    """How long each takes on this machine."""
    own, other, found = folder / "own", folder / "other", {}
    write_sorted(other)
    for work, place in ((index, own), (append, own), (ar.compact_history, own), (adopt, other)):
        begun = time.monotonic()
        assert ended(in_child(work, place)) == 0
        found[work.__name__.removesuffix("_history")] = time.monotonic() - begun
    return found


def check_case(what: str, place: Path, seconds: float) -> None:
    KILLS[what](place, seconds)
    assert rubbish(place) == set(), what


def kill_many(folder: Path, times: int, seed: int) -> None:
    """In a process that has no threads, kill others. Each time somebody else looks at what is left."""
    import duckdb  # noqa: F401 - what takes time to import is there before the first one begins

    parquet_files.ROWS_PER_GROUP, parquet_log._BATCH_ROWS, sorter._BATCH_ROWS = 64, 300, 400
    rng, lasting = random.Random(seed), durations(folder)
    for number in range(times):
        place = folder / str(number) / "log"
        place.parent.mkdir()
        what = [*KILLS][number % len(KILLS)]
        seconds = rng.random() * lasting[what]
        child = in_child(lambda place: check_case(what, place, seconds), place)  # noqa: B023
        assert ended(child) == 0, (what, place, seconds)


def run_kills(folder: Path, times: int, seed: int) -> None:
    call = "kill_many(pathlib.Path(sys.argv[1]), *map(int, sys.argv[2:]))"
    lines = f"import {Path(__file__).stem} as kills, pathlib, sys; kills.{call}"
    where = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    found = subprocess.run(
        [sys.executable, "-c", lines, str(folder), str(times), str(seed)],
        env=os.environ | {"PYTHONPATH": where},
        capture_output=True,
    )
    assert found.returncode == 0, found.stderr.decode()[-4000:]


def test_whoever_is_killed_leaves_the_log_before_or_the_one_after(tmp_path):
    run_kills(tmp_path, 4, 1)


@pytest.mark.long
def test_whoever_is_killed_leaves_the_log_before_or_the_one_after_in_many_cases(tmp_path):
    run_kills(tmp_path, 400, 2)  # 300 while a log is indexed, appended to or compacted, 100 while one is adopted
