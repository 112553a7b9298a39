"""Logs in a bucket: laid out, read, appended to and compacted at an address; what crosses the wire is counted.

The bucket is a local S3, behind a proxy that counts.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from store_logs import Log, played, random_log, sorted_files, stands

import artreplay as ar
from artreplay.errors import InvalidFile
from artreplay.history.parquet import check_files
from real_parts import needed_package

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
BASE = ar.MonUCB(4, 20, bonus=ar.bonus.practical(0.5))


class Wire:
    """A proxy in front of a server: how many bytes came back through it, and how many requests were made."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.bytes = self.requests = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._port))
            threading.Thread(target=self._pass, args=(client, server, True), daemon=True).start()
            threading.Thread(target=self._pass, args=(server, client, False), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, up: bool) -> None:
        try:
            while data := source.recv(1 << 16):
                if up:
                    self.requests += data.count(b" HTTP/1.1\r\n")
                else:
                    self.bytes += len(data)
                target.sendall(data)
        except OSError:
            pass
        finally:
            target.close()

    def close(self) -> None:
        self._listening.close()


@pytest.fixture(scope="module")
def wire() -> Iterator[Wire]:
    needed_package("moto")
    needed_package("s3fs")
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    counting = Wire(server.get_host_and_port()[1])
    kept = fsspec.config.conf.get("s3")
    address = f"http://127.0.0.1:{counting.port}"
    fsspec.config.conf["s3"] = {"endpoint_url": address, "key": "key", "secret": "secret"}
    fsspec.filesystem("s3").mkdir("bucket")
    try:
        yield counting
    finally:
        fsspec.config.conf.pop("s3") if kept is None else fsspec.config.conf.update({"s3": kept})
        counting.close()
        server.stop()


def as_in_memory(log: Log, address: str) -> None:
    for policy in (ar.ArtificialReplay, ar.FullStart):
        in_memory, in_parts = policy(BASE, log.history()), policy(BASE, ar.open_history(address))
        assert played(in_parts, 8, 1) == played(in_memory, 8, 1)
        assert stands(in_parts) == stands(in_memory)


@pytest.fixture(scope="module")
def million() -> pa.Table:
    rng = np.random.default_rng(0)
    share = 1 / np.arange(1, 1001)
    arms = rng.choice(1000, 1_000_000, p=share / share.sum())
    clicks = (rng.random(1_000_000) < np.random.default_rng(1).random(1000)[arms]).astype(float)
    return pa.table({"arm": arms, "click": clicks})


@pytest.mark.parametrize("rewards", ["0/1", "real"])
def test_little_crosses_the_wire(wire, million, rewards):
    """A first decision over 10⁶ rows on 1,000 arms. Rewards of 0 and 1 are one bit each on disk, real ones 8 bytes."""
    address = f"s3://bucket/million-{rewards.replace('/', '')}"
    if rewards == "real":
        million = million.set_column(1, "click", pa.array(np.random.default_rng(2).random(1_000_000)))
    ar.index_history(million, address, unit="arm", reward="click")
    folder = sum(fsspec.filesystem("s3").du("bucket/" + address.rpartition("/")[2], total=False).values())
    bytes_before, requests_before = wire.bytes, wire.requests
    policy = ar.ArtificialReplay(ar.MonUCB(1000, 1000), ar.open_history(address))
    action = policy.ask()
    transferred, requests = wire.bytes - bytes_before, wire.requests - requests_before
    assert action == ar.ArtificialReplay(ar.MonUCB(1000, 1000), ar.History.from_frame(million, "arm", "click")).ask()
    print(f"{rewards}: {transferred:,} of {folder:,} bytes, {transferred / folder:.1%}, {requests} requests")
    assert transferred <= (0.1 if rewards == "0/1" else 0.8) * folder
    assert requests <= 60


def test_a_bucket_is_indexed_from_and_to_and_grows(wire, tmp_path):
    log, address = random_log(BASE, 300, 1), "s3://bucket/grows"
    system = fsspec.filesystem("s3")
    for first in (0, 100):
        pq.write_table(log.table[first : first + 100], tmp_path / "part.parquet")
        system.put_file(str(tmp_path / "part.parquet"), f"bucket/raw-parts/part-{first}.parquet")
    ar.index_history("s3://bucket/raw-parts", address, **log.columns)
    as_in_memory(log._replace(table=log.table[:200]), address)
    with pytest.raises(InvalidFile, match="exists already"):
        ar.index_history(log.table, address, **log.columns)
    before = ar.ArtificialReplay(BASE, ar.open_history(address))
    for first in range(200, 300, 20):
        assert ar.append_history(log.table[first : first + 20], address) == 20
    as_in_memory(log, address)
    assert ar.compact_history(address) > 1
    as_in_memory(log, address)
    assert len(check_files(address)) == 300
    expected = ar.ArtificialReplay(BASE, log._replace(table=log.table[:200]).history())
    with contextlib.suppress(InvalidFile):  # what it needs may be gone: then that is said
        assert played(before, 8, 1) == played(expected, 8, 1)


def test_a_bucket_that_another_engine_wrote_is_looked_through(wire, tmp_path):
    log = random_log(BASE, 300, 1)
    place = sorted_files(log, tmp_path, files=5, group=20)
    system = fsspec.filesystem("s3")
    for number in range(4):
        system.put_file(str(place / f"part-{number}.parquet"), f"bucket/adopted/part-{number}.parquet")
    ar.index_history("s3://bucket/adopted", already_sorted=True, order="at", **log.columns)
    as_in_memory(log._replace(table=log.table[:240]), "s3://bucket/adopted")
    system.put_file(str(place / "part-4.parquet"), "bucket/adopted/part-4.parquet")
    ar.index_history("s3://bucket/adopted", already_sorted=True)
    as_in_memory(log, "s3://bucket/adopted")
    assert len(system.glob("bucket/adopted/directory-*.npz")) == 1


def test_a_raw_prefix_is_read_with_a_warning_that_it_is_scanned(wire, tmp_path):
    log = random_log(BASE, 100, 2)
    pq.write_table(log.table, tmp_path / "part.parquet")
    fsspec.filesystem("s3").put_file(str(tmp_path / "part.parquet"), "bucket/raw/part.parquet")
    with pytest.warns(UserWarning, match="is read whole each time"):
        history: Any = ar.open_history("s3://bucket/raw", **log.columns)
    assert ar.ArtificialReplay(BASE, history).ask() == ar.ArtificialReplay(BASE, log.history()).ask()
