"""A log that does not fit into memory is refused, with its size and that of the memory, before the machine suffers."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import artreplay as ar
from artreplay.errors import InvalidFile, InvalidHistory
from artreplay.history.memory import check_fits, memory_of_machine


def test_half_of_the_memory_fits():
    memory = memory_of_machine()
    assert memory is not None
    check_fits("log", memory // 2 // 10, 10)
    with pytest.raises(InvalidHistory, match=rf"half of the {memory / 1e9:.1f} GB .* {memory:,} or more rows of log"):
        check_fits("log", memory, 10)


def test_a_log_that_cannot_fit_is_refused_before_it_is_read(tmp_path, monkeypatch):
    pq.write_table(pa.table({"arm": [1], "click": [1]}), tmp_path / "log.parquet")
    monkeypatch.setattr("artreplay.history.sources.files.ArrowFiles.rows", lambda self: 10**12)
    with pytest.raises(
        InvalidHistory, match=r"1,000,000,000,000 or more rows .* take about 64000.0 GB.* `artreplay index`"
    ):
        ar.open_history(tmp_path / "log.parquet", "arm", "click")


def test_rows_are_counted_as_they_come(tmp_path, monkeypatch):
    (tmp_path / "log.csv").write_text("arm,click\n" + "red,1\n" * 300_000)
    monkeypatch.setattr("artreplay.history.memory.memory_of_machine", lambda: 2 * 64 * 280_000)
    with pytest.raises(InvalidHistory, match="the 300,000 or more rows"):
        ar.open_history(tmp_path / "log.csv", "arm", "click")
    assert len(ar.open_history(tmp_path / "log.csv", "arm", "click", until=280_000)) == 280_000


@pytest.mark.parametrize("kind", [".gz", ".zst", ".bz2", ".lz4"])
def test_what_unpacks_to_more_than_half_of_the_disk_is_refused(kind, tmp_path, monkeypatch):
    path = tmp_path / f"log.csv{kind}"
    with pa.output_stream(str(path), compression="detect") as stream:
        stream.write(b"arm,click\n" + b"red,1\n" * 1_000_000)
    monkeypatch.setattr("shutil.disk_usage", lambda path: pa_usage(8 << 20))
    with pytest.raises(InvalidFile, match="must take at most half of the free disk"):
        ar.open_history(path, "arm", "click")


def pa_usage(free: int) -> object:
    return type("usage", (), {"free": free})


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux says what a process has taken")
def test_a_line_that_unpacks_to_much_is_not_taken_into_memory(tmp_path):
    with pa.output_stream(str(tmp_path / "log.csv.zst"), compression="detect") as stream:
        stream.write(b"arm,click\nred,1\n")
        for _ in range(1 << 8):
            stream.write(bytes(1 << 20))
    assert (tmp_path / "log.csv.zst").stat().st_size < 1 << 20
    before = peak()
    with pytest.raises(InvalidFile, match="must have lines of less than 2 MB"):
        ar.open_history(tmp_path / "log.csv.zst", "arm", "click")
    assert peak() - before < 100_000_000


def peak() -> int:
    """The most memory this process has ever taken, in bytes."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) << 10
