"""Clients must be prompt: the head of a request that does not arrive in time, or has no end, ends their connection."""

from __future__ import annotations

import asyncio
from asyncio.events import TimerHandle

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from artreplay.serving.problems import JSON, Problem, description_of

HEAD_SECONDS = 10.0  # within which the line and the headers of a request must arrive
MAX_HEAD = 64 * 1024  # bytes of them


class PromptProtocol(HttpToolsProtocol):
    """The protocol of uvicorn, which by itself waits for ever for a client that sends a byte a minute, or nothing."""

    _late: TimerHandle | None = None  # while the head of a request is arriving
    _size = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Close a connection on which nothing is ever sent, as one that is idle after an answer."""
        super().connection_made(transport)
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def on_message_begin(self) -> None:
        """Start to wait for the head of a request."""
        super().on_message_begin()
        self._size = 0
        late = Problem(408, f"the headers of a request must arrive within {HEAD_SECONDS:g} seconds")
        self._late = self.loop.call_later(HEAD_SECONDS, self._refuse, late)

    def data_received(self, data: bytes) -> None:
        """Refuse headers without an end."""
        waits = self._late is not None
        super().data_received(data)
        if waits and self._late is not None:
            self._size += len(data)
            if self._size > MAX_HEAD:
                self._refuse(Problem(431, f"the headers of a request may have at most {MAX_HEAD:,} bytes"))

    def on_headers_complete(self) -> None:
        """Stop waiting, because the head is there."""
        self._stop_waiting()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting, because nothing more can come."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _stop_waiting(self) -> None:
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
