"""A decision, and how actions are kept."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from artreplay.history import Allocation
from artreplay.history.labels import plain_label
from artreplay.replay import decode, encode

COLUMNS = "number, id, action, asked, due, state"


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do, under an id that its reward is told by; `due` says until when, None if there is no end to it."""

    id: str
    action: Any
    due: datetime | None
    asked: datetime
    number: int  # counted from 1
    state: str = "open"  # "open", "rewarded", "expired" or "void"


class PastHorizon(UserWarning):
    """A study has made more decisions than its algorithm was made for; `in_shell` says it for the command line."""

    def __init__(self, decision: int, horizon: int) -> None:
        problem = f"decision {decision} is past the horizon of {horizon}"
        super().__init__(f"{problem}: give the study a longer one with set_horizon")
        self.in_shell = f"{problem}: `artreplay study change STUDY --horizon N` gives the study a longer one"


def decision_of(row: Sequence[Any]) -> Decision:
    """A decision from its row in the database."""
    number, id_, action, asked, due, state = row
    return Decision(id_, action_again(action), None if due is None else moment(due), moment(asked), number, state)


def moment(seconds: float) -> datetime:
    """A time of the clock as people know it."""
    return datetime.fromtimestamp(seconds, UTC)


def kept_action(action: Any) -> str:
    """An action as the database keeps it."""
    return json.dumps(_kept(action))


def _kept(action: Any) -> Any:
    if isinstance(action, list):
        return [_kept(unit) for unit in action]
    if isinstance(action, Allocation):
        return {"point": [float(value) for value in action.point], "level": float(action.level)}
    if isinstance(action, np.ndarray):
        return encode(tuple(action.tolist()))
    return encode(plain_label(action))


def action_again(kept: str) -> Any:
    """The action that was kept."""
    return _again(json.loads(kept))


def _again(found: Any) -> Any:
    if isinstance(found, list):
        return [_again(unit) for unit in found]
    if isinstance(found, dict) and "level" in found:
        return Allocation(tuple(found["point"]), found["level"])
    return decode(found)
