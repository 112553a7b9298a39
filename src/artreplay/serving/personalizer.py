"""The paths of Azure Personalizer, so that its clients move by changing one address.

A rank is a decision whose request is the event, and a reward belongs to an event. Features of actions are ignored and
counted, and so are those of the context if the algorithm has no contexts. What the service cannot do as Personalizer
did is refused in a sentence.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Path
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from artreplay.algorithms import ArmAlgorithm
from artreplay.errors import StudyRefused
from artreplay.replay import decode
from artreplay.serving.messages import MAX_ID
from artreplay.serving.owner import Owner
from artreplay.serving.problems import JSON, Problem
from artreplay.studies import Study
from artreplay.studies.names_and_labels import checked_name, checked_new_label
from artreplay.studies.study_contexts import check_size, known_context
from artreplay.studies.study_views import arms_and_decision

MAX_ACTIONS = 1_000  # arms that ranks may bring in
_DONE: dict[str, Any] = {"status_code": 204, "response_class": Response}
Event = Annotated[str, Path(min_length=1, max_length=MAX_ID, alias="eventId")]


class _Sent(BaseModel):
    """What a client of Personalizer sends. It may send more, which is not looked at."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)


class RankableAction(_Sent):
    """An action that may be taken."""

    id: Annotated[str, Field(min_length=1, max_length=MAX_ID)]
    features: list[dict[str, Any]] | None = None


class RankRequest(_Sent):
    """A request to choose one of some actions."""

    actions: Annotated[list[RankableAction], Field(min_length=1, max_length=MAX_ACTIONS)]
    excluded_actions: list[str] | None = Field(None, alias="excludedActions")
    event_id: Annotated[str, Field(min_length=1, max_length=MAX_ID)] | None = Field(None, alias="eventId")
    defer_activation: bool | None = Field(None, alias="deferActivation")
    context_features: list[dict[str, Any]] | None = Field(None, alias="contextFeatures")


class RewardRequest(_Sent):
    """The reward of an event."""

    value: float


class PersonalizerPaths:
    """What clients of Personalizer ask of one study.

    Parameters
    ----------
    owner
        The study.
    adds_arms
        Whether an action that is no arm is added.
    """

    def __init__(self, owner: Owner, adds_arms: bool) -> None:
        self._owner, self._adds_arms = owner, adds_arms
        self.ignored_features = 0

    def routes(self, prefix: str) -> APIRouter:
        """Make the addresses."""
        router = APIRouter(prefix=prefix, tags=["Personalizer"])

        @router.post("/rank", status_code=201)
        async def rank(body: RankRequest) -> Response:
            """Choose an action. The features of actions are not learnt from."""
            self.ignored_features += sum(len(action.features or ()) for action in body.actions)
            return JSON(await self._owner.call(lambda study: self._rank(study, body), body.event_id), 201)

        @router.post("/events/{eventId}/reward", **_DONE)
        async def reward(event: Event, body: RewardRequest) -> Response:
            """Tell the reward of an event."""
            await self._owner.call(lambda study: study.reward(request_id=event, value=body.value), event)
            return Response(status_code=204)

        @router.post("/events/{eventId}/activate", **_DONE)
        async def activate(event: Event) -> Response:
            """Activate an event whose rank was deferred."""
            await self._owner.call(lambda study: study.activate(request_id=event), event)
            return Response(status_code=204)

        return router

    def _rank(self, study: Study, body: RankRequest) -> dict[str, Any]:
        if not isinstance(study.base, ArmAlgorithm) or study.base.proposes_list:
            raise StudyRefused("the paths of Personalizer need a study in which a decision is one arm")
        if study.base.draws:
            raise StudyRefused(
                f"the paths of Personalizer answer with probabilities that sum to 1, and {type(study.base).__name__} "
                "draws at random. Use an algorithm that does not, such as KLUCB"
            )
        ids = [action.id for action in body.actions]
        if len(set(ids)) < len(ids):
            raise Problem(422, "the ids of actions must be different")
        event = uuid.uuid4().hex if body.event_id is None else checked_name("eventId", body.event_id)
        arms, earlier = arms_and_decision(study, event)
        labels = {str(arm.label): arm.label for arm in arms}
        retired = {str(arm.label) for arm in arms if arm.retired}
        if earlier is not None:
            retired -= {str(earlier.action), str(earlier.policy_action)}
        excluded = retired.union(body.excluded_actions or ())
        available = [id_ for id_ in ids if id_ not in excluded]
        if not available:
            raise Problem(422, "at least one action must be neither excluded nor a retired arm")
        context = None
        if study.base.contexts is not None:
            context = context_of(body.context_features or ())
            check_size(context)
            known_context(study.base, context)  # refuses a wrong one before an arm is added
        else:
            self.ignored_features += len(body.context_features or ())
        new = [id_ for id_ in available if id_ not in labels]
        self._add(study, [] if earlier else new, len(arms))
        labels |= {id_: id_ for id_ in new}
        among = [labels[id_] for id_ in available]
        decision = study.decide(event, context=context, among=among, deferred=bool(body.defer_activation))
        chosen, of_policy = str(decision.action), str(decision.policy_action)
        if not {chosen, of_policy} <= set(available):
            raise StudyRefused(f"event {event!r} was ranked before, among other actions")
        shares = _probabilities(study, available, of_policy)
        # Excluded actions stay where they were sent, and the chosen one comes first among the others.
        others = iter([chosen, *(id_ for id_ in available if id_ != chosen)])
        order = [id_ if id_ in excluded else next(others) for id_ in ids]
        ranking = [{"id": id_, "probability": shares.get(id_, 0.0)} for id_ in order]
        return {"ranking": ranking, "eventId": event, "rewardActionId": chosen}

    def _add(self, study: Study, new: list[str], n_arms: int) -> None:
        """Add all actions that are no arms, or none of them."""
        if new and not self._adds_arms:
            raise StudyRefused(f"{new[0]!r} is not an arm of this study, and --new-actions refuse does not add it")
        if new and n_arms + len(new) > MAX_ACTIONS:
            raise StudyRefused(f"this study has {n_arms:,} arms, and ranks add no more than {MAX_ACTIONS:,} in all")
        for id_ in [checked_new_label(id_) for id_ in new]:
            study.add_arm(id_)


def context_of(features: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Make one context of a list of nested objects. Their names are joined by dots, and lists are left out.

    >>> context_of([{"device": {"kind": "phone", "width": 390}}, {"hour": 17}])
    {'device.kind': 'phone', 'device.width': 390, 'hour': 17}
    """
    context: dict[str, Any] = {}
    for one in features:
        for name, value in one.items():
            if isinstance(value, Mapping):
                context |= {f"{name}.{inner}": leaf for inner, leaf in context_of([value]).items()}
            elif not isinstance(value, list):
                context[name] = value
    return context


def _probabilities(study: Study, available: list[str], of_policy: str) -> dict[str, float]:
    """Return how likely each action was to be taken: by the policy, or by control if there is a hold-out."""
    settings = study.settings()
    holdout, control = settings["holdout"], settings["control"]
    known = {} if control == "uniform" else {str(decode(one["label"])): one["share"] for one in control}
    weights = {id_: known.get(id_, 0.0) for id_ in available}
    if not sum(weights.values()):
        weights = dict.fromkeys(available, 1.0)
    total = sum(weights.values())
    return {
        id_: holdout * weight / total + (1.0 - holdout) * (id_ == of_policy) for id_, weight in weights.items()
    }  # fmt: skip
