"""The service: studies behind one address, from start to stop."""

from __future__ import annotations

import logging
import re
import signal
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import PurePath
from typing import Any

import uvicorn
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from artreplay.errors import ArtReplayError, InvalidParameter, StudyUnavailable
from artreplay.serving.access import Tokens
from artreplay.serving.direct_paths import DirectPaths
from artreplay.serving.http_guard import HttpGuard
from artreplay.serving.owner import Owner
from artreplay.serving.page_routes import LivePage, page_routes
from artreplay.serving.personalizer import PersonalizerPaths
from artreplay.serving.problems import JSON, PERSONALIZER, Problem, answer_to, malformed
from artreplay.serving.prompt_clients import PromptProtocol
from artreplay.serving.study_metrics import ServiceMetrics
from artreplay.serving.study_routes import study_routes
from artreplay.studies.study_databases import IN_MEMORY

LOCAL = "127.0.0.1"
OWN_SECONDS = 10.0  # how long a start waits for a study that another process owns
STOP_SECONDS = 30.0  # how long a stop waits for requests that are being answered
KEEP_SECONDS = 75  # how long a connection may be idle after an answer
BACKLOG = 4096  # connections that wait to be accepted
_WORDS = {
    400: "the body must be JSON of a usual depth and size",
    404: "this service has no such address. /docs lists all",
    405: "this address does not take requests of this method. /docs lists all",
}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def name_of_study(place: str) -> str:
    """Return the name of a study in addresses: its file without the ending, or its name in PostgreSQL.

    >>> name_of_study("/var/lib/shop/banners.study"), name_of_study("postgresql://db/shop#prices")
    ('banners', 'prices')
    """
    if place == IN_MEMORY:
        raise InvalidParameter("a study in memory cannot be served. Name a file, or an address of PostgreSQL")
    _, hash_, schema = place.rpartition("#")
    name = schema if hash_ and "://" in place else PurePath(place).stem
    if not _NAME.fullmatch(name):
        raise InvalidParameter(f"the file of a study must have a name of letters, digits, _, - and ., got {name!r}")
    return name


def owners_of(places: Sequence[str], algorithm: str | None = None) -> dict[str, Owner]:
    """Return an owner for each study, by its name. They are over an algorithm of the user's own if one is named."""
    owners: dict[str, Owner] = {}
    for place in places:
        name = name_of_study(place)
        if name in owners:
            raise InvalidParameter(f"studies must have different names, and two are called {name!r}")
        owners[name] = Owner(name, place, algorithm)
    return owners


def make_app(owners: Mapping[str, Owner], tokens: Tokens, adds_arms: bool = True) -> Any:
    """Make the ASGI application that serves some studies. A rank of Personalizer may bring in arms."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        for name, owner in owners.items():
            owner.start(pages[name].read)
        yield
        for owner in owners.values():
            owner.stop()

    app = FastAPI(
        title="artreplay", version=_version(), lifespan=lifespan, docs_url=None, redoc_url=None,
        summary="Decisions of studies, and their rewards.",
    )  # fmt: skip
    aliases = {name: PersonalizerPaths(owner, adds_arms) for name, owner in owners.items()}
    metrics = ServiceMetrics(owners, aliases)
    pages = {name: LivePage(owner) for name, owner in owners.items()}
    app.include_router(study_routes(owners))
    app.include_router(page_routes(owners, app, pages))
    for name, paths in aliases.items():
        app.include_router(paths.routes(f"/v1/studies/{name}{PERSONALIZER}"))
        if len(aliases) == 1:
            app.include_router(paths.routes(PERSONALIZER), include_in_schema=False)

    @app.get("/healthz", tags=["operation"])
    async def healthz() -> Response:
        """Say whether every study can be written to: 200, or 503 with the reason."""
        for owner in owners.values():
            await owner.look(lambda study: study.ping())
        return JSON({"status": "ok"})

    @app.get("/metrics", tags=["operation"])
    def counters() -> Response:  # not async, because a study may be busy for a while
        """Count decisions, rewards and requests for Prometheus."""
        return Response(metrics.text(), media_type=metrics.content_type)

    async def say(request: Request, error: Exception) -> Response:
        if isinstance(error, RequestValidationError):
            error = malformed(error.errors())
        elif isinstance(error, HTTPException):
            is_unreadable = error.status_code == 400  # a number of a million digits, or brackets without an end
            words = _WORDS.get(error.status_code, str(error.detail))
            error = Problem(422 if is_unreadable else error.status_code, words, error.headers)
        return answer_to(error, request.url.path)

    for kind in (ArtReplayError, Problem, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, say)
    _declare_tokens(app)
    return metrics.counting(HttpGuard(DirectPaths(app, owners), tokens))


def _declare_tokens(app: FastAPI) -> None:
    """Let the description of the service say that requests carry a token."""
    describe = app.openapi

    def described() -> dict[str, Any]:
        schema = describe()
        schemes = {"token": {"type": "http", "scheme": "bearer"}}
        schema.setdefault("components", {})["securitySchemes"] = schemes
        schema["security"] = [{"token": []}]
        return schema

    app.openapi = described  # type: ignore[method-assign]


def run_service(
    places: Sequence[str],
    host: str = LOCAL,
    port: int = 8080,
    tokens: Tokens | None = None,
    wait_for_owner: bool = False,
    adds_arms: bool = True,
    algorithm: str | None = None,
) -> None:
    """Serve studies until SIGTERM or Ctrl-C.

    Parameters
    ----------
    places
        The files or addresses of the studies.
    host, port
        Where to listen. Without tokens this must be this machine.
    tokens
        Who may do what.
    wait_for_owner
        Whether to start although another process owns a study, and to take over when it ends.
    adds_arms
        Whether clients of Personalizer may add arms.
    algorithm
        The function that makes the algorithm of these studies, if it is the user's own.
    """
    if not tokens and host not in (LOCAL, "localhost", "::1"):
        raise InvalidParameter(f"needs tokens to listen on {host}. Name a file with --tokens", parameter="host")
    owners = owners_of(places, algorithm)
    opened: list[Owner] = []
    try:
        for owner in [] if wait_for_owner else owners.values():
            owner.own(OWN_SECONDS)
            opened.append(owner)
        _raise_file_limit()
        listener = _listening(host, port)
        app = make_app(owners, tokens or Tokens({}), adds_arms)
        server = server_of(app)
    except BaseException:
        for owner in opened:
            owner.give_up()
        raise
    logging.getLogger("artreplay").info(
        "serving %s on http://%s:%s", ", ".join(owners), host, listener.getsockname()[1]
    )
    signal.signal(signal.SIGTERM, lambda *_: None)  # uvicorn stops on it, and afterwards hands it on to this handler
    server.run(sockets=[listener])


def server_of(app: Any) -> uvicorn.Server:
    """Return a server for an application, which does not wait for slow clients."""
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, lifespan="on", backlog=BACKLOG,
        proxy_headers=False, http=PromptProtocol, timeout_keep_alive=KEEP_SECONDS,
        timeout_graceful_shutdown=int(STOP_SECONDS),
    )  # fmt: skip
    return uvicorn.Server(config)


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(BACKLOG)  # so that those who connect before the service is ready wait for it
    except (OSError, OverflowError) as error:
        listener.close()
        words = getattr(error, "strerror", None) or str(error)
        raise StudyUnavailable(f"cannot listen on {host}:{port}: {words}") from None
    return listener


def _raise_file_limit() -> None:
    """Allow as many open connections as the system lets this process have."""
    with suppress(ImportError, ValueError, OSError):  # not on Windows
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _version() -> str:
    from artreplay import __version__

    return __version__
