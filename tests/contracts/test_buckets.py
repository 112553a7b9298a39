"""Stores in a bucket: made, read, appended to and compacted at an address; what crosses the wire is counted.

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
from artreplay.history.stores import check_store
from store_logs import Log, played, random_log, stands

import artreplay as ar
from artreplay.errors import InvalidFile
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


@pytest.mark.parametrize(("layout", "share"), [(None, 0.1), ("store", 0.15)])
def test_little_crosses_the_wire_and_all_of_it_is_counted(wire, million, layout, share):
    address = f"s3://bucket/million-{layout}"
    ar.index_history(million, address, unit="arm", reward="click", format=layout)
    folder = sum(fsspec.filesystem("s3").du("bucket/" + address.rpartition("/")[2], total=False).values())
    bytes_before, requests_before = wire.bytes, wire.requests
    policy = ar.ArtificialReplay(ar.MonUCB(1000, 1000), ar.open_history(address))
    action = policy.ask()
    transferred, requests = wire.bytes - bytes_before, wire.requests - requests_before
    assert action == ar.ArtificialReplay(ar.MonUCB(1000, 1000), ar.History.from_frame(million, "arm", "click")).ask()
    assert policy.reading.bytes <= transferred <= 1.5 * policy.reading.bytes
    assert transferred <= share * folder
    assert requests <= 1.5 * policy.reading.requests
    assert requests <= 100


@pytest.mark.parametrize("layout", ["parquet", "store"])
def test_a_bucket_is_indexed_from_and_to_and_grows(wire, tmp_path, layout):
    log, address = random_log(BASE, 300, 1), f"s3://bucket/grows-{layout}"
    system = fsspec.filesystem("s3")
    for first in (0, 100):
        pq.write_table(log.table[first : first + 100], tmp_path / "part.parquet")
        system.put_file(str(tmp_path / "part.parquet"), f"bucket/raw-{layout}/part-{first}.parquet")
    ar.index_history(f"s3://bucket/raw-{layout}", address, format=layout, **log.columns)
    as_in_memory(log._replace(table=log.table[:200]), address)
    with pytest.raises(InvalidFile, match="exists already"):
        ar.index_history(log.table, address, **log.columns)
    before = ar.ArtificialReplay(BASE, ar.open_history(address))
    for first in range(200, 300, 20):
        assert ar.append_history(log.table[first : first + 20], address) == 20
    as_in_memory(log, address)
    assert ar.compact_history(address) > 1
    as_in_memory(log, address)
    assert check_store(address)["rows"] == 300
    expected = ar.ArtificialReplay(BASE, log._replace(table=log.table[:200]).history())
    with contextlib.suppress(InvalidFile):  # what it needs may be gone: then that is said
        assert played(before, 8, 1) == played(expected, 8, 1)


def test_a_raw_prefix_is_read_with_a_warning_that_it_is_scanned(wire, tmp_path):
    log = random_log(BASE, 100, 2)
    pq.write_table(log.table, tmp_path / "part.parquet")
    fsspec.filesystem("s3").put_file(str(tmp_path / "part.parquet"), "bucket/raw/part.parquet")
    with pytest.warns(UserWarning, match="is read whole each time"):
        history: Any = ar.open_history("s3://bucket/raw", **log.columns)
    assert ar.ArtificialReplay(BASE, history).ask() == ar.ArtificialReplay(BASE, log.history()).ask()
