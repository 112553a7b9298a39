"""The two requests that nearly all are, decisions and their rewards, past the framework that the others go through.

The framework takes two thirds of the time of such a request. Whatever is unusual about one goes through it as well, so
there is one place that says what is wrong with a request.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from pydantic import ValidationError
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from artreplay.errors import ArtReplayError
from artreplay.serving.http_guard import once
from artreplay.serving.messages import Body, DecideBody, RewardBody
from artreplay.serving.owner import Owner
from artreplay.serving.problems import Problem, answer_to
from artreplay.serving.study_routes import decided, rewarded

_log = logging.getLogger("artreplay.serving")


class DirectPath(NamedTuple):
    """An address that is answered directly."""

    path: str  # as the framework writes it
    pattern: re.Pattern[str]  # of the whole address: the study, and what else the answer needs
    body: type[Body]
    answer: Callable[..., Awaitable[Response]]


_DIRECT = {
    "POST": DirectPath(
        "/v1/studies/{study}/decisions", re.compile("/v1/studies/([^/]+)/decisions"), DecideBody, decided
    ),
    "PUT": DirectPath(
        "/v1/studies/{study}/decisions/{decision_id}/reward",
        re.compile("/v1/studies/([^/]+)/decisions/([^/]+)/reward"), RewardBody, rewarded,
    ),
}  # fmt: skip


class DirectPaths:
    """Answers decisions and rewards, and passes everything else on.

    Parameters
    ----------
    app
        The application with all addresses.
    owners
        The studies, by their names.
    """

    def __init__(self, app: ASGIApp, owners: Mapping[str, Owner]) -> None:
        self._app, self._owners = app, owners

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        direct = _DIRECT.get(scope.get("method", ""))
        found = None if direct is None else direct.pattern.fullmatch(scope["path"])
        owner = None if found is None else self._owners.get(found[1])
        if direct is None or found is None or owner is None:
            await self._app(scope, receive, send)
            return
        sent = (await receive()).get("body", b"")  # the guard hands it over in one piece
        try:
            body: Any = direct.body.model_validate_json(sent)
        except ValidationError:
            await self._app(scope, once(sent, receive), send)
            return
        scope["route"] = direct
        try:
            answer = await direct.answer(owner, body, *found.groups()[1:])
        except (ArtReplayError, Problem) as error:
            answer = answer_to(error, scope["path"])
        except Exception as error:
            _log.exception("a request failed")
            answer = answer_to(error, scope["path"])
        await answer(scope, receive, send)
