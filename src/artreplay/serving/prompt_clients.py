"""Clients must be prompt: a request that does not arrive in time, or whose head has no end, ends their connection."""

from __future__ import annotations

import asyncio
from asyncio.events import TimerHandle
from typing import Literal

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from artreplay.serving.problems import JSON, Problem, description_of

HEAD_SECONDS = 10.0  # within which the line and the headers of a request must arrive
BODY_SECONDS = 10.0  # within which its body must arrive after them
MAX_HEAD = 64 * 1024  # bytes of the line and the headers


class PromptProtocol(HttpToolsProtocol):
    """The protocol of uvicorn, which by itself waits for ever for a client that sends a byte a minute, or nothing."""

    _arriving: Literal["headers", "body"] | None = None  # what of a request is not whole yet
    _awaited: Literal["headers", "body"] | None = None  # what `_late` is for
    _late: TimerHandle | None = None
    _size = 0  # bytes of the head so far

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Close a connection on which nothing is ever sent, as one that is idle after an answer."""
        super().connection_made(transport)
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def on_message_begin(self) -> None:
        """Note that the head of a request begins."""
        super().on_message_begin()
        self._stop_waiting()
        self._arriving, self._size = "headers", 0

    def on_headers_complete(self) -> None:
        """Note that the head is there."""
        self._arriving = "body"
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Note that all of a request is there."""
        self._arriving = None
        super().on_message_complete()

    def data_received(self, data: bytes) -> None:
        """Wait for what is not whole yet, and refuse headers without an end. Most requests come in one piece."""
        super().data_received(data)
        if self._arriving != self._awaited:
            self._stop_waiting()
            self._awaited = self._arriving
            if self._arriving is not None:
                seconds = HEAD_SECONDS if self._arriving == "headers" else BODY_SECONDS
                late = Problem(408, f"the {self._arriving} of a request must arrive within {seconds:g} seconds")
                self._late = self.loop.call_later(seconds, self._refuse, late)
        if self._arriving == "headers":
            self._size += len(data)
            if self._size > MAX_HEAD:
                self._refuse(Problem(431, f"the headers of a request may have at most {MAX_HEAD:,} bytes"))

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting, because nothing more can come."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _stop_waiting(self) -> None:
        self._awaited = None
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _refuse(self, problem: Problem) -> None:
        self._stop_waiting()
        if self.transport.is_closing():
            return
        body = JSON(description_of(problem)).body
        head = f"content-type: application/problem+json\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
        self.transport.write(STATUS_LINE[problem.status] + head.encode() + bytes(body))
        self.transport.close()
