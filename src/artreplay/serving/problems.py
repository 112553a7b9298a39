"""Turns errors into answers: a status, and one sentence as problem+json (RFC 9457)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from starlette.responses import Response

from artreplay.errors import (
    ArtReplayError,
    InvalidAction,
    InvalidHistory,
    InvalidParameter,
    StudyRefused,
    StudyUnavailable,
    UnknownDecision,
)

PERSONALIZER = "/personalizer/v1.0"  # in the addresses of its clients
RETRY_SECONDS = 1
MAX_SHOWN = 80  # letters of a wrong value that are shown
_TYPE = re.compile(r"bool|int|float|str|(list|union)\[.*")
_STATUS: tuple[tuple[type[ArtReplayError], int], ...] = (
    (UnknownDecision, 404),
    (StudyRefused, 409),
    (InvalidParameter, 422),
    (InvalidAction, 422),
    (InvalidHistory, 422),
    (StudyUnavailable, 503),
)


class JSON(Response):
    """An answer in JSON that any text survives, also one that UTF-8 cannot hold."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Write the answer as ASCII."""
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


class Problem(Exception):
    """A request that is refused before a study is asked.

    Parameters
    ----------
    status
        The status of the answer.
    detail
        One sentence.
    headers
        More headers of the answer.
    """

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, dict(headers or {})


def status_of(error: Exception) -> int:
    """Return the status of an answer about an error."""
    if isinstance(error, Problem):
        return error.status
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def description_of(error: Exception) -> dict[str, Any]:
    """Describe an error as the members of problem+json. `error` names its class in Python."""
    status = status_of(error)
    if status == 500 and not isinstance(error, ArtReplayError):
        detail = "the service failed. Its log says why"
    else:
        detail = error.detail if isinstance(error, Problem) else str(error)
    described: dict[str, Any] = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status}
    described["detail"] = detail
    if isinstance(error, ArtReplayError):
        described["error"] = type(error).__name__
        if error.parameter is not None:
            described["parameter"] = error.parameter
    return described


def answer_to(error: Exception, path: str) -> Response:
    """Return the answer to a request that failed. Clients of Personalizer get it as they expect it."""
    described = description_of(error)
    headers = dict(error.headers) if isinstance(error, Problem) else {}
    if described["status"] == 503:
        headers["retry-after"] = str(RETRY_SECONDS)
    if PERSONALIZER in path:
        code = HTTPStatus(described["status"]).phrase.replace(" ", "")
        return JSON({"error": {"code": code, "message": described["detail"]}}, described["status"], headers)
    return JSON(described, described["status"], headers, "application/problem+json")


def _place(error: Any) -> str:
    """Say which member of a body is wrong, without the names of the types that it could have."""
    parts = [str(part) for part in error["loc"] if part not in ("body", "query", "path")]
    return ".".join(part for part in parts if not _TYPE.fullmatch(part))


def malformed(errors: Sequence[Any]) -> Problem:
    """Say what is wrong with a body, by the first thing that pydantic found."""
    first = errors[0]
    if first["type"] == "json_invalid":
        return Problem(422, f"the body must be JSON: {first['ctx']['error']}")
    place = _place(first)
    if not place:
        return Problem(422, "the body must be a JSON object, or a list where this address takes one")
    said = [str(one["msg"]) for one in errors if _place(one) == place]  # one for each type that is possible
    words = f"{place}: " + ", or ".join(f"{one[:1].lower()}{one[1:]}" for one in said)
    if first["type"] != "missing":
        value = repr(first.get("input"))
        words += f", got {value if len(value) <= MAX_SHOWN else value[: MAX_SHOWN - 1] + '…'}"
    return Problem(422, words)
