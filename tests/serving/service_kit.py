"""A service on this machine: in a thread of the tests, or as a process of its own that can be killed."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

import artreplay as ar
from artreplay.serving.access import Tokens
from artreplay.serving.service import make_app, owners_of, server_of

COLOURS = ["red", "blue", "green"]
SECONDS = 30.0


def colours(place: Path, **given: Any) -> str:
    """Make a study of three arms in a file, and return its place."""
    log = ar.History(["red", "blue", "blue", "green"], [0.0, 1.0, 0.0, 1.0])
    ar.Study.create(place, ar.KLUCB(arms=COLOURS, horizon=100_000), log, **{"wait": None} | given).close()
    return str(place)


class Answer(NamedTuple):
    status: int
    body: Any
    headers: dict[str, str]


class Client:
    """Asks a service over one connection."""

    def __init__(self, port: int, token: str | None = None) -> None:
        self.port, self.token = port, token
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)

    def ask(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Answer:
        """Ask, and read the answer. A body that is no text is sent as JSON."""
        sent = {} if headers is None else dict(headers)
        if self.token is not None:
            sent.setdefault("Authorization", f"Bearer {self.token}")
        if body is not None:
            sent.setdefault("Content-Type", "application/json")
        data = body if body is None or isinstance(body, (str, bytes)) else json.dumps(body)
        with suppress(BrokenPipeError, ConnectionResetError):  # the service may answer before it has the whole body
            self._connection.request(method, path, data, sent)
        answer = self._connection.getresponse()
        got = answer.read()
        kind = answer.headers.get("Content-Type", "")
        parsed = json.loads(got) if "json" in kind else got
        return Answer(answer.status, parsed, {name.lower(): value for name, value in answer.headers.items()})

    def decide(self, request_id: str, study: str = "colours") -> Any:
        """Make a decision."""
        return self.ask("POST", f"/v1/studies/{study}/decisions", {"request_id": request_id}).body

    def close(self) -> None:
        self._connection.close()


@contextmanager
def serving(*places: str, tokens: str = "") -> Iterator[Client]:
    """Serve studies from a thread."""
    owners = owners_of(places)
    for owner in owners.values():
        owner.own(SECONDS)
    app = make_app(owners, Tokens.parse(tokens) if tokens else Tokens({}))
    server = server_of(app)
    server.config.port = 0
    thread = threading.Thread(target=server.run)
    thread.start()
    until = time.monotonic() + SECONDS
    while not server.started and thread.is_alive() and time.monotonic() < until:
        time.sleep(0.01)
    client = Client(server.servers[0].sockets[0].getsockname()[1])
    try:
        yield client
    finally:
        client.close()
        server.should_exit = True
        thread.join(SECONDS)


class Process:
    """`artreplay serve` as a process of its own."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "artreplay", "serve", "--port", "0", *arguments]
        environment = os.environ | {"ARTREPLAY_INTERPRETED": "1"}
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, env=environment, text=True)
        assert self.process.stderr is not None
        self.said: list[str] = []
        self.port = 0
        for line in self.process.stderr:
            self.said.append(line)
            if (found := re.search(r"on http://[^ ]*:(\d+)$", line.strip())) is not None:
                self.port = int(found[1])
                break
        self._reading = threading.Thread(target=self.said.extend, args=[self.process.stderr], daemon=True)
        self._reading.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.stop(signal.SIGKILL)

    def stop(self, with_signal: int = signal.SIGTERM) -> int:
        """Send a signal, and return the exit code."""
        self.process.send_signal(with_signal)
        code = self.process.wait(SECONDS)
        self._reading.join(SECONDS)
        assert self.process.stderr is not None
        self.process.stderr.close()
        return code

    def ready(self, status: int = 200) -> Client:
        """Return a client, once the service says of itself that it is ready, or that it is not."""
        until = time.monotonic() + SECONDS
        while True:
            client = Client(self.port)
            try:
                if client.ask("GET", "/healthz").status == status:
                    return client
            except OSError:
                pass
            client.close()
            assert time.monotonic() < until, self.said
            time.sleep(0.05)
