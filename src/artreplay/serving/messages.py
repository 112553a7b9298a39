"""What goes over the wire: the bodies of requests, and studies, arms and decisions as JSON."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from artreplay.studies import ArmState, Decision
from artreplay.studies.remote_study import to_wire
from artreplay.studies.terms import LONGEST_WAIT

MAX_ID = 256
MAX_MANY = 1000  # decisions or rewards in one request
MAX_HORIZON = 10**15  # no study makes as many decisions, and larger numbers do not fit everywhere

LabelJson = Annotated[
    bool | int | float | str, Field(description="The label of an arm, of the type it has in the log.")
]
Name = Annotated[str, Field(min_length=1, max_length=MAX_ID)]
Value = Annotated[float | list[float], Field(description="The reward, or one for each unit if the decision is a list.")]


ContextJson = dict[str, bool | int | float | str | None]


class Body(BaseModel):
    """The body of a request. A member that is not known is refused, so that a typing error does not pass."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class DecideBody(Body):
    """A request for decisions."""

    request_id: Name | None = Field(None, description="A retry with the same name gets the same decision.")
    among: list[LabelJson] | None = Field(None, description="The arms that can be chosen now.")
    count: Annotated[int, Field(ge=1, le=MAX_MANY)] | None = Field(None, description="How many decisions to make.")
    context: ContextJson | None = Field(None, description="What is known of the one who asks.")
    contexts: list[ContextJson] | None = Field(None, max_length=MAX_MANY, description="One decision for each of these.")
    subject: Name | None = Field(None, description="Who is asking. A subject stays in one group of the hold-out.")
    info: dict[str, Any] | None = Field(None, description="Your own JSON, at most 4 kB. Nothing is learnt from it.")
    deferred: bool = Field(False, description="Whether the decision may never be shown, and waits to be activated.")


class RewardBody(Body):
    """The reward of one decision."""

    value: Value


class PartBody(RewardBody):
    """A part of a reward, where the parts are added up."""

    key: Name = Field(description="What names this part. The same key with the same value counts once.")


class RewardOf(RewardBody):
    """A reward in a list of rewards. Either `id` or `request_id` says which decision it is for."""

    id: str | None = None
    request_id: Name | None = None
    key: Name | None = None


class RequestBody(Body):
    """A decision, by the request it was made for."""

    request_id: Name


class VoidBody(RequestBody):
    """A decision to take out, by the request it was made for."""

    erase: bool = Field(False, description="Whether to remove its subject, context and info as well.")


class ObservationBody(RewardBody):
    """The reward of an action that nobody asked for."""

    action: Any = Field(description="An arm, a point as {point: […]}, or a list of them.")
    request_id: Name | None = None
    context: ContextJson | None = Field(None, description="What was known of the one who got it.")


class ArmBody(Body):
    """An arm to add."""

    label: LabelJson
    features: list[float] | None = Field(None, description="The features of the arm, if the algorithm has any.")


class RetireBody(Body):
    """An arm to retire."""

    label: LabelJson


class ShareOfArm(Body):
    """An arm of control, and how often control plays it."""

    label: LabelJson
    share: float


class ChangeBody(Body):
    """Settings to change. What is left out stays as it is."""

    wait: Annotated[float, Field(gt=0.0, le=LONGEST_WAIT.total_seconds())] | None = Field(
        None, description="How many seconds to wait for a reward. null waits for ever."
    )
    on_timeout: str | None = None
    default: float | None = None
    holdout: float | None = None
    control: list[ShareOfArm] | LabelJson | None = Field(None, description='"uniform", an arm, or shares of arms.')
    horizon: Annotated[int, Field(le=MAX_HORIZON)] | None = None
    unknown: str | None = None
    drift: float | None = None
    note: dict[str, Any] | None = None

    def settings(self) -> dict[str, Any]:
        """Return the settings as a study takes them."""
        settings = {name: getattr(self, name) for name in self.model_fields_set}
        if settings.get("wait") is not None:
            settings["wait"] = timedelta(seconds=settings["wait"])
        if isinstance(self.control, list):
            settings["control"] = {arm.label: arm.share for arm in self.control}
        return settings


class DecisionJson(BaseModel):
    """A decision, as the service answers."""

    id: str
    number: int
    action: Any
    asked: str
    due: str | None = Field(description="Until when a reward is taken. null is for ever.")
    state: str = Field(description="open, deferred, rewarded, expired or void.")
    group: str = Field(description="policy, or control if it belongs to the hold-out.")
    propensity: float | None = Field(description="How likely this action was, where that is known.")
    policy_action: Any
    request_id: str | None
    subject: str | None
    info: dict[str, Any] | None
    context: dict[str, Any] | None
    repeated: bool = Field(description="Whether an earlier request of this name made it.")


class DecisionsJson(BaseModel):
    """Several decisions."""

    decisions: list[DecisionJson]
    next: int | None = Field(None, description="The value of after= for the next page, or null if this is the last.")


def decision_as_json(decision: Decision) -> dict[str, Any]:
    """Write a decision as JSON."""
    return {
        "id": decision.id,
        "number": decision.number,
        "action": to_wire(decision.action),
        "asked": decision.asked.isoformat(),
        "due": None if decision.due is None else decision.due.isoformat(),
        "state": decision.state,
        "group": decision.group,
        "propensity": decision.propensity,
        "policy_action": to_wire(decision.policy_action),
        "request_id": decision.request_id,
        "subject": decision.subject,
        "info": decision.info,
        "context": decision.context,
        "repeated": decision.repeated,
    }


def arm_as_json(arm: ArmState) -> dict[str, Any]:
    """Write an arm as JSON. Numbers that do not exist are null."""
    return {
        "label": to_wire(arm.label),
        "retired": arm.retired,
        "logged": arm.logged,
        "used": arm.used,
        "online": arm.online,
        "open": arm.open,
        "mean": None if math.isnan(arm.mean) else arm.mean,
        "index": arm.index if math.isfinite(arm.index) else None,
    }
