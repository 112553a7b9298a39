"""A full disk, a database that restarts, thousands of connections: a sentence, nothing half-done, and on it goes."""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from load_worker import Load, assert_acknowledged
from service_kit import SECONDS, Answer, Client, Process, colours

from postgres_server import running_server, stopped

pytestmark = pytest.mark.long

IDLE = 10_000


def decide_until(client: Client, status: int) -> Answer:
    """Ask for decisions until one gets this answer, and return it."""
    until = time.monotonic() + SECONDS
    while True:
        answer = client.ask("POST", "/v1/studies/colours/decisions", {"request_id": uuid.uuid4().hex})
        if answer.status == status:
            return answer
        assert time.monotonic() < until, answer


@contextmanager
def a_full_disk(folder: Path, process: Process) -> Iterator[None]:
    """Fill the disk, and make room again."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    yield
    ballast.unlink()


@contextmanager
def a_full_quota(folder: Path, process: Process) -> Iterator[None]:
    """Let no file of the service grow, and allow it again."""
    pid, size = process.process.pid, max(path.stat().st_size for path in folder.iterdir())
    _, most = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, most))
    yield
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, most))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(tmp_path)], capture_output=True
    ).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        yield tmp_path
    finally:
        subprocess.run(["umount", "--lazy", str(tmp_path)], check=True)


@pytest.mark.parametrize("trouble", [a_full_disk, a_full_quota])
def test_a_disk_that_is_full_is_a_sentence_and_nothing_is_half_done(
    trouble: Callable[[Path, Process], Iterator[None]], request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if trouble is a_full_disk:
        request.getfixturevalue("small_disk")
    place = colours(tmp_path / "colours.study")
    with Process(place) as process:
        client = process.ready()
        load = Load(process.port, 16, "full")
        time.sleep(0.3)
        with trouble(tmp_path, process):
            refused = decide_until(client, 503)
            assert "colours.study cannot be written: " in refused.body["detail"]
            assert refused.headers["retry-after"] == "1"
            for path in ("/v1/studies/colours/decisions", "/v1/studies/colours/arms", "/studies/colours"):
                assert client.ask("GET", path).status == 200
        decide_until(client, 201)
        time.sleep(0.3)
        load.stop()
        client.close()
        assert process.stop() == 0
    assert load.decided
    assert_acknowledged(load, place)


@pytest.mark.parametrize("how", ["fast", "immediate"])
def test_a_database_that_is_restarted_under_load_loses_nothing(how: str) -> None:
    with contextmanager(running_server)() as address:
        place = colours(f"{address}#colours")  # type: ignore[arg-type]
        with Process(place) as process:
            client = process.ready()
            load = Load(process.port, 64, "restart")
            for _ in range(3):
                time.sleep(0.5)
                with stopped(address, how):
                    refused = decide_until(client, 503)
                    assert "cannot be " in refused.body["detail"]
                    assert client.ask("GET", "/healthz").status == 503
                decide_until(client, 201)
            load.stop()
            client.close()
            assert process.stop() == 0
        assert load.decided
        assert_acknowledged(load, place)


def test_ten_thousand_idle_connections_keep_nobody_from_being_served(tmp_path: Path) -> None:
    soft, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most < IDLE + 1000:
        pytest.skip(f"this machine allows {most:,} open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    place = colours(tmp_path / "colours.study")
    try:
        with ExitStack() as idle, Process(place) as process:
            for number in range(IDLE):
                connection = idle.enter_context(socket.create_connection(("127.0.0.1", process.port), SECONDS))
                if number % 2:
                    connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            until = time.monotonic() + SECONDS
            while len(os.listdir(f"/proc/{process.process.pid}/fd")) <= IDLE:
                assert time.monotonic() < until
                time.sleep(0.1)
            load = Load(process.port, 64, "idle")
            time.sleep(2.0)
            assert len(os.listdir(f"/proc/{process.process.pid}/fd")) > IDLE
            load.stop()
            assert process.stop() == 0
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, most))
    assert load.decided
    assert_acknowledged(load, place)
