"""Clients that ask a service as fast as it answers, or at a given rate, over raw sockets and from one thread."""

from __future__ import annotations

import json
import selectors
import socket
import time
from collections.abc import Callable
from typing import Any, NamedTuple

Request = tuple[str, str, Any]  # method, path, body


class Result(NamedTuple):
    """What a load came to."""

    pairs_per_second: float  # decisions with their rewards
    p50: float  # seconds until an answer
    p99: float
    errors: int


class Client:
    """One connection: it asks for a decision, then tells its reward, and so on."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.got, self.asked, self.answer, self.turn = b"", 0.0, None, 0

    def send(self, request: Request) -> None:
        """Send a request."""
        method, path, body = request
        data = json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        self.asked = time.perf_counter()
        self.socket.sendall(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)

    def receive(self) -> tuple[int, bytes] | None:
        """Return the status and the body of an answer, once all of it is there."""
        more = self.socket.recv(1 << 16)
        if not more:
            raise ConnectionError("the service closed a connection")
        self.got += more
        head, found, body = self.got.partition(b"\r\n\r\n")
        if not found:
            return None
        at = head.lower().find(b"content-length:")
        length = 0 if at < 0 else int(head[at + 15 :].split(b"\r\n", 1)[0])
        if len(body) < length:
            return None
        self.got = body[length:]
        return int(head[9:12]), body[:length]


def load(
    port: int, clients: int, seconds: float, decide: Callable[[int], Request],
    reward: Callable[[Any, int], Request], rate: float | None = None,
) -> Result:  # fmt: skip
    """Ask for decisions and tell their rewards for some seconds. With a rate, begin that many pairs a second."""
    selector = selectors.DefaultSelector()
    idle = [Client(port) for _ in range(clients)]
    for client in idle:
        selector.register(client.socket, selectors.EVENT_READ, client)
    waits: list[float] = []
    pairs = errors = begun = 0
    start = time.perf_counter()
    while (now := time.perf_counter()) < start + seconds:
        while idle and (rate is None or begun < (now - start) * rate):
            client = idle.pop(0)  # in turns, because servers close connections that are idle for 5 seconds
            begun += 1
            client.turn = begun
            client.answer = None
            client.send(decide(begun))
        for key, _ in selector.select(0.001):
            client = key.data
            answer = client.receive()
            if answer is None:
                continue
            waits.append(time.perf_counter() - client.asked)
            status, body = answer
            if status >= 300:
                errors += 1
                idle.append(client)
            elif client.answer is None:
                client.answer = json.loads(body)
                client.send(reward(client.answer, client.turn))
            else:
                pairs += 1
                idle.append(client)
    took = time.perf_counter() - start
    for key in list(selector.get_map().values()):
        key.data.socket.close()
    selector.close()
    waits.sort()
    return Result(pairs / took, waits[len(waits) // 2], waits[int(len(waits) * 0.99)], errors)
