"""`RemoteStudy`: a study that a service owns, with the calls of a study in this process."""

from __future__ import annotations

import http.client
import json
import math
import os
import shutil
import time
import uuid
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Self, overload
from urllib.parse import SplitResult, quote, urlencode, urlsplit

from artreplay import errors
from artreplay.errors import (
    ArtReplayError,
    InvalidAction,
    InvalidParameter,
    StudyRefused,
    StudyUnavailable,
    UnknownDecision,
)
from artreplay.history import Action, Allocation, Label
from artreplay.history.labels import is_missing, plain_label
from artreplay.parameters import REQUIRED
from artreplay.studies.arms_and_log import ArmState
from artreplay.studies.decisions import Decision, Info
from artreplay.studies.names_and_labels import MAX_NAME, shown
from artreplay.studies.study_contexts import list_of_contexts
from artreplay.whole_files import write_whole

FIRST_PAUSE = 0.02  # seconds before the second attempt after the first; each further pause is twice as long
EXPORT_SECONDS = 600.0  # how long the service may take to write a file of all decisions
PAGE = 1000  # decisions in one answer
MAX_ANSWER = 1 << 26  # bytes of an answer that is kept in memory


class RemoteStudy:
    """A study of `artreplay serve`. `Study.connect` makes one.

    Threads may share it: calls at the same time have a connection each. A call that gets no answer is repeated until
    `timeout` is over. This is safe: the service knows a repeated request by its name.
    """

    def __init__(self, url: str, token: str | None, timeout: float) -> None:
        """Do not call this. Use `Study.connect`."""
        parts = _split(url)
        words = parts.path.strip("/").split("/")
        if parts.scheme not in ("http", "https") or not parts.hostname or words[-3:-1] != ["v1", "studies"]:
            raise InvalidParameter(
                f"must be the address of a study, as in http://host:8080/v1/studies/banners, got {url!r}",
                parameter="url",
            )
        if parts.username is not None or parts.password is not None:
            raise InvalidParameter("must not have a password in it. Use token=", parameter="url")
        if not (isinstance(timeout, (int, float)) and 0.0 < timeout < math.inf):
            raise InvalidParameter(f"must be a number of seconds above 0, got {timeout!r}", parameter="timeout")
        if token is not None and not (isinstance(token, str) and token.isascii() and token.isprintable()):
            raise InvalidParameter("must be one line of ASCII characters, without the line break", parameter="token")
        self.place = url
        self._parts, self._path, self._timeout = parts, parts.path.rstrip("/"), float(timeout)
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        self._idle: deque[http.client.HTTPConnection] = deque()  # connections that no call uses now

    # -- decisions and what comes of them ---------------------------------------------------------------------------

    @overload
    def decide(
        self, request_id: str | None = None, *, context: Mapping[str, Any] | None = None, contexts: None = None,
        among: Iterable[Label] | None = None, count: None = None, subject: str | None = None,
        info: Info | None = None, deferred: bool = False,
    ) -> Decision: ...  # fmt: skip
    @overload
    def decide(
        self, request_id: str | None = None, *, context: Mapping[str, Any] | None = None, contexts: None = None,
        among: Iterable[Label] | None = None, count: int, subject: str | None = None,
        info: Info | None = None, deferred: bool = False,
    ) -> list[Decision]: ...  # fmt: skip
    @overload
    def decide(
        self, request_id: str | None = None, *, context: None = None, contexts: Any,
        among: Iterable[Label] | None = None, count: None = None, subject: str | None = None,
        info: Info | None = None, deferred: bool = False,
    ) -> list[Decision]: ...  # fmt: skip
    def decide(
        self, request_id: str | None = None, *, context: Mapping[str, Any] | None = None,
        contexts: Any = None, among: Iterable[Label] | None = None, count: int | None = None,
        subject: str | None = None, info: Info | None = None, deferred: bool = False,
    ) -> Decision | list[Decision]:  # fmt: skip
        """Decide what to do next. See `Study.decide`. A request without a name gets one, so that it can be repeated."""
        body = {
            "request_id": _new_name() if request_id is None else request_id,
            "among": None if among is None else [plain_label(label) for label in among],
            "count": count,
            "context": _written(context),
            "contexts": None if contexts is None else [_written(one) for one in list_of_contexts(contexts)],
            "subject": subject,
            "info": info,
            "deferred": deferred,
        }
        answer = self._ask("POST", "/decisions", body)
        return [_decision(one) for one in answer["decisions"]] if "decisions" in answer else _decision(answer)

    def reward(
        self, decision_id: str | None = None, value: float | Sequence[float] = REQUIRED, key: str | None = None, *,
        request_id: str | None = None,
    ) -> None:  # fmt: skip
        """Tell the reward of a decision, or a part of it. See `Study.reward`."""
        if value is REQUIRED:
            raise InvalidParameter("is missing", parameter="value")
        sent = {"id": decision_id, "request_id": request_id, "value": _value(value), "key": key}
        (outcome,) = self._ask("POST", "/rewards", [sent])
        if outcome["status"] >= 400:
            raise error_in(outcome, self.place)

    def activate(self, decision_id: str | None = None, *, request_id: str | None = None) -> None:
        """Open a decision that was deferred. See `Study.activate`."""
        _check_one(decision_id, request_id)
        if request_id is None:
            self._ask("POST", f"/decisions/{_quoted(decision_id)}/activate")
        else:
            self._ask("POST", "/decisions/activate", {"request_id": request_id})

    def void(self, decision_id: str | None = None, *, request_id: str | None = None, erase: bool = False) -> None:
        """Take a decision out, together with its reward if it has one. See `Study.void`."""
        _check_one(decision_id, request_id)
        if request_id is None:
            self._ask("POST", f"/decisions/{_quoted(decision_id)}/void{'?erase=true' * erase}")
        else:
            self._ask("POST", "/decisions/void", {"request_id": request_id, "erase": erase})

    def observe(
        self, action: Action, value: float | Sequence[float], request_id: str | None = None, *,
        context: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        """Tell the reward of an action that nobody asked for. See `Study.observe`."""
        name = _new_name() if request_id is None else request_id
        sent = {
            "action": to_wire(action),
            "value": _value(value),
            "request_id": name,
            "context": _written(context),
        }
        self._ask("POST", "/observations", sent)

    # -- the study itself -------------------------------------------------------------------------------------------

    def add_arm(self, label: Label, features: Sequence[float] | None = None) -> None:
        """Let an arm be chosen from now on. This is tried once."""
        self._ask("POST", "/arms", {"label": plain_label(label), "features": features}, is_repeatable=False)

    def retire_arm(self, label: Label) -> None:
        """Never choose an arm again. This is tried once."""
        self._ask("POST", "/arms/retire", {"label": plain_label(label)}, is_repeatable=False)

    def change(self, **settings: Any) -> None:
        """Change settings. See `Study.change`. This is tried once."""
        sent = dict(settings)
        if isinstance(sent.get("wait"), timedelta):
            sent["wait"] = sent["wait"].total_seconds()
        if isinstance(sent.get("control"), Mapping):
            sent["control"] = [{"label": plain_label(arm), "share": share} for arm, share in sent["control"].items()]
        self._ask("PATCH", "", sent, is_repeatable=False)

    # -- looking at it ----------------------------------------------------------------------------------------------

    def decision(self, decision_id: str) -> Decision:
        """Find a decision by its id, in its current state."""
        return _decision(self._ask("GET", f"/decisions/{_quoted(decision_id)}"))

    def decisions(self, after: int = 0, state: str | None = None, limit: int | None = None) -> list[Decision]:
        """List decisions in order. See `Study.decisions`."""
        found: list[Decision] = []
        while limit is None or len(found) < limit:
            page = PAGE if limit is None else min(PAGE, limit - len(found))
            query = {"after": after, "limit": page} | ({} if state is None else {"state": state})
            answer = self._ask("GET", f"/decisions?{urlencode(query)}")
            found += map(_decision, answer["decisions"])
            if (after := answer["next"]) is None:
                break
        return found

    def arms(self) -> list[ArmState]:
        """List the arms in order, retired ones as well."""
        return [_arm(one) for one in self._ask("GET", "/arms")["arms"]]

    def facts(self) -> dict[str, Any]:
        """Collect a few numbers and the settings."""
        facts: dict[str, Any] = self._ask("GET", "")
        return facts

    def export(self, path: str | os.PathLike[str]) -> None:
        """Write decisions and observations to a Parquet file here, one row for each unit."""
        connection = self._connection(max(self._timeout, EXPORT_SECONDS))
        try:
            connection.request("GET", f"{self._path}/export", headers=self._headers)
            answer = connection.getresponse()
            if answer.status != 200:
                raise _error(answer.status, answer.read(MAX_ANSWER), self.place)
            write_whole(Path(path), lambda file: shutil.copyfileobj(answer, file))
        except (http.client.HTTPException, OSError) as error:
            raise StudyUnavailable(f"{self.place} cannot be read: {error}") from None
        finally:
            connection.close()

    def close(self) -> None:
        """Close all connections. One that another thread still uses is closed when its call is over."""
        idle, self._idle = self._idle, deque()
        for connection in idle:
            connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<RemoteStudy {self.place}>"

    # -- the connection ---------------------------------------------------------------------------------------------

    def _ask(self, method: str, path: str, body: object = None, *, is_repeatable: bool = True) -> Any:
        """Send a request until it is answered, and return the answer or raise the error of the study."""
        try:
            data = None if body is None else json.dumps(body).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidParameter(f"a request must hold only what JSON can hold: {error}") from None
        until, pause, last = time.monotonic() + self._timeout, 0.0, "no answer"
        idle, has_failed = self._idle, False
        while (left := until - time.monotonic() - pause) > 0.0:
            time.sleep(pause)
            pause = max(FIRST_PAUSE, 2 * pause)
            connection = self._connection(left)
            if is_repeatable and not has_failed:  # the service may have closed an idle connection
                with suppress(IndexError):
                    connection = idle.pop()
            try:
                status, headers, got = _exchange(connection, method, self._path + path, data, self._headers, left)
            except (http.client.HTTPException, OSError) as error:
                connection.close()
                has_failed, last = True, str(error) or type(error).__name__
                if not is_repeatable:
                    break
                continue
            if idle is self._idle:
                idle.append(connection)
            else:  # the study was closed meanwhile
                connection.close()
            if status != 503:
                if status >= 400:
                    raise _error(status, got, self.place)
                return json.loads(got) if got else None
            last = str(_error(status, got, self.place))
            pause = max(pause, float(headers.get("Retry-After") or 0) / 10)
            if not is_repeatable:
                break
        raise StudyUnavailable(f"{self.place} did not answer within {self._timeout:g} seconds: {last}")

    def _connection(self, seconds: float) -> http.client.HTTPConnection:
        """Return a new connection."""
        kind = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
        return kind(self._parts.hostname or "", self._parts.port, timeout=seconds)


def _exchange(
    connection: http.client.HTTPConnection, method: str, path: str, data: bytes | None, headers: dict[str, str],
    seconds: float,
) -> tuple[int, http.client.HTTPMessage, bytes]:  # fmt: skip
    connection.timeout = seconds
    if connection.sock is not None:
        connection.sock.settimeout(seconds)
    connection.request(method, path, data, headers)
    answer = connection.getresponse()
    return answer.status, answer.headers, answer.read(MAX_ANSWER)


def _error(status: int, got: bytes, place: str) -> ArtReplayError:
    try:
        problem = json.loads(got)
    except ValueError:
        problem = None
    return error_in({"status": status} | (problem if isinstance(problem, dict) else {}), place)


def error_in(problem: Mapping[str, Any], place: str) -> ArtReplayError:
    """Return the error that a study in this process would have raised, from a description of it."""
    status = problem["status"]
    detail = str(problem.get("detail", f"{place} answered with status {status}"))
    kind = getattr(errors, str(problem.get("error")), None)
    if not (isinstance(kind, type) and issubclass(kind, ArtReplayError)):
        kind = StudyUnavailable if status >= 500 else InvalidParameter if status == 422 else StudyRefused
    parameter = problem.get("parameter")
    error = kind(detail if parameter is None else detail.removeprefix(f"{parameter} "))
    error.parameter = parameter
    return error


def _split(url: object) -> SplitResult:
    """Divide an address into its parts. What is none has none."""
    try:
        parts = urlsplit(str(url))
        _ = parts.port
        return parts
    except ValueError:
        return urlsplit("")


def _quoted(decision_id: object) -> str:
    """Write an id as a part of an address. What no id can be is refused as a study refuses it."""
    if (
        not isinstance(decision_id, str)
        or not 0 < len(decision_id) <= MAX_NAME
        or not decision_id.isprintable()
        or "/" in decision_id
    ):
        raise UnknownDecision(f"this study has made no decision {shown(decision_id)}")
    return quote(decision_id, safe="")


def _new_name() -> str:
    return uuid.uuid4().hex


def _check_one(decision_id: str | None, request_id: str | None) -> None:
    if (decision_id is None) == (request_id is None):
        raise InvalidParameter("give the id of the decision, or the request_id that it was made for")


def _written(context: object) -> dict[str, Any] | None:
    """Write a context as JSON, with null for a value that is missing."""
    if context is None:
        return None
    if not isinstance(context, Mapping):
        raise InvalidParameter(f"must be a mapping of column names to values, got {context!r}", parameter="context")
    return {name: None if is_missing(value) else plain_label(value) for name, value in context.items()}


def _decision(written: dict[str, Any]) -> Decision:
    times = {name: written[name] and datetime.fromisoformat(written[name]) for name in ("asked", "due")}
    actions = {name: from_wire(written[name]) for name in ("action", "policy_action")}
    return Decision(**written | times | actions)


def _arm(written: dict[str, Any]) -> ArmState:
    numbers = {name: math.nan if written[name] is None else written[name] for name in ("mean", "index")}
    return ArmState(**written | numbers | {"label": from_wire(written["label"])})


def _value(value: Any) -> float | list[float]:
    is_list = hasattr(value, "__len__") and not isinstance(value, (str, bytes)) and getattr(value, "ndim", 1) > 0
    return [_number(one) for one in value] if is_list else _number(value)


def _number(value: Any) -> float:
    try:
        number = math.nan if isinstance(value, (str, bytes)) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise InvalidAction(f"reward is {shown(value)}, expected a finite number")
    return number


# -- actions over the wire --------------------------------------------------------------------------------------------


def to_wire(action: Action) -> Any:
    """Write an action as JSON: labels as they are, and points as {"point": [0.25, 0.5]}.

    >>> to_wire("blue"), to_wire((0.25, 0.5)), to_wire([1, 2])
    ('blue', {'point': [0.25, 0.5]}, [1, 2])
    """
    if isinstance(action, list):
        return [to_wire(unit) for unit in action]
    if isinstance(action, Allocation):
        return {"point": [float(value) for value in action.point], "level": float(action.level)}
    plain = plain_label(action)
    return {"point": list(plain)} if isinstance(plain, tuple) else plain


def from_wire(written: Any) -> Action:
    """Read an action from JSON.

    >>> from_wire({"point": [0.25, 0.5]})
    (0.25, 0.5)
    """
    if isinstance(written, list):
        return [_unit_from_wire(unit) for unit in written]
    return _unit_from_wire(written)


def _unit_from_wire(written: Any) -> Label:
    if isinstance(written, dict) and isinstance(written.get("point"), list):
        point = tuple(written["point"])
        return Allocation(point, written["level"]) if "level" in written else point
    label: Label = written
    return label
