"""Stands before the service: who may ask, and how long a body may be."""

from __future__ import annotations

from typing import Any
from urllib.parse import SplitResult, urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from artreplay.serving.access import Tokens, role_for, token_of
from artreplay.serving.problems import Problem, answer_to

MAX_BODY = 64 * 1024
MAX_LIST_BODY = 1024 * 1024  # of paths that take lists
_LISTS = ("/rewards", "/decisions", "/rank")
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
_WITHOUT_BODY = frozenset({"GET", "HEAD", "OPTIONS"})


class HttpGuard:
    """Refuses requests before any of the service sees them, and hands over bodies in one piece.

    Parameters
    ----------
    app
        The service.
    tokens
        The tokens it knows. Without any, only this machine may ask.
    """

    def __init__(self, app: ASGIApp, tokens: Tokens) -> None:
        self._app, self._tokens = app, tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, and pass it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            headers = dict(scope["headers"])
            self._check_origin(scope, headers)
            self._check_token(scope, headers)
            body = b"" if scope["method"] in _WITHOUT_BODY else await _whole_body(scope, headers, receive)
        except Problem as problem:
            await answer_to(problem, scope["path"])(scope, receive, send)
            return
        await self._app(scope, once(body, receive), send)

    def _check_origin(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        """Refuse what a page of another site makes a browser send."""
        host = headers.get(b"host", b"").decode("latin-1")
        if not self._tokens and _parts(f"//{host}").hostname not in _LOCAL:
            raise Problem(403, "without --tokens this service answers only to localhost")
        origin = headers.get(b"origin")
        if origin is not None and _parts(origin.decode("latin-1")).netloc != host:
            raise Problem(403, "a page of another site may not call this service")

    def _check_token(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        role = role_for(scope["method"], scope["path"])
        if not self._tokens or role is None:
            return
        token = token_of(headers)
        asking = {"www-authenticate": 'Basic realm="artreplay", charset="UTF-8"', "connection": "close"}
        if token is None:
            raise Problem(401, "this service needs a token. Send it as Authorization: Bearer TOKEN", asking)
        roles = self._tokens.roles_of(token)
        if not roles:
            raise Problem(401, "this service does not know this token", asking)
        if not roles & {role, "admin"}:
            raise Problem(403, f"this needs a token with the role {role}, got one for {' and '.join(sorted(roles))}",
                          {"connection": "close"})  # fmt: skip


def _parts(address: str) -> SplitResult:
    """Divide an address into its parts. What is none, such as "http://[", has none."""
    try:
        return urlsplit(address)
    except ValueError:
        return urlsplit("")


async def _whole_body(scope: Scope, headers: dict[bytes, bytes], receive: Receive) -> bytes:
    """Read the body of a request, and refuse one that is too long, or no JSON."""
    most = MAX_LIST_BODY if scope["path"].endswith(_LISTS) else MAX_BODY
    length = headers.get(b"content-length", b"0")
    size = most + 1 if len(length) > len(str(most)) else int(length) if length.isdigit() else 0
    parts, more = [], True
    while more and size <= most:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Problem(400, "the client went away")
        parts.append(message.get("body", b""))
        size, more = sum(map(len, parts)), message.get("more_body", False)
    if size > most:
        raise Problem(413, f"a body may have at most {most:,} bytes here", {"connection": "close"})
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if size and kind != b"application/json" and not kind.endswith(b"+json"):
        raise Problem(415, "a body must be JSON, with Content-Type: application/json")
    return b"".join(parts)


def once(body: bytes, receive: Receive) -> Receive:
    """Return a receiver that first gives the whole body."""
    first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Any:
        return first.pop() if first else await receive()

    return next_message
