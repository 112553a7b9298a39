"""The addresses under /v1: decisions, rewards, arms and settings of studies."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from fastapi.responses import FileResponse
from starlette.background import BackgroundTask
from starlette.responses import Response

from artreplay.errors import ArtReplayError, StudyUnavailable
from artreplay.serving.messages import (
    MAX_MANY,
    ArmBody,
    ChangeBody,
    DecideBody,
    DecisionJson,
    DecisionsJson,
    ObservationBody,
    PartBody,
    RequestBody,
    RetireBody,
    RewardBody,
    RewardOf,
    VoidBody,
    arm_as_json,
    decision_as_json,
)
from artreplay.serving.owner import Owner
from artreplay.serving.problems import JSON, Problem, description_of
from artreplay.studies import Decision, Study
from artreplay.studies.remote_study import from_wire

Name = Annotated[str, Path(description="The name of a study.")]
DecisionId = Annotated[str, Path(description="The id of a decision.")]
_DONE: dict[str, Any] = {"status_code": 204, "response_class": Response}


def study_routes(owners: Mapping[str, Owner]) -> APIRouter:
    """Make the addresses of some studies, by their names."""
    router = APIRouter(prefix="/v1/studies")

    def owner_of(name: str) -> Owner:
        if (owner := owners.get(name)) is None:
            raise Problem(404, f"this service has no study {name[:80]!r}. It has {', '.join(map(repr, owners))}")
        return owner

    # -- decisions and what comes of them ---------------------------------------------------------------------------

    @router.post(
        "/{study}/decisions", tags=["decisions"], status_code=201, response_model=DecisionJson | DecisionsJson,
        responses={200: {"model": DecisionJson | DecisionsJson}},
    )  # fmt: skip
    async def decide(study: Name, body: DecideBody) -> Response:
        """Decide what to do. A repeated request gets its first decision again, with status 200."""
        return await decided(owner_of(study), body)

    @router.put("/{study}/decisions/{decision_id}/reward", tags=["decisions"], **_DONE)
    async def reward(study: Name, decision_id: DecisionId, body: RewardBody) -> Response:
        """Tell the reward of a decision. Telling the same value again changes nothing."""
        return await rewarded(owner_of(study), body, decision_id)

    @router.post("/{study}/decisions/{decision_id}/rewards", tags=["decisions"], **_DONE)
    async def reward_part(study: Name, decision_id: DecisionId, body: PartBody) -> Response:
        """Tell a part of the reward of a decision, in a study with rewards="sum"."""
        await owner_of(study).call(lambda inside: inside.reward(decision_id, body.value, body.key))
        return Response(status_code=204)

    @router.post("/{study}/rewards", tags=["decisions"])
    async def reward_many(study: Name, body: list[RewardOf]) -> Response:
        """Tell up to 1,000 rewards in one commit. The answer has a status for each, in the same order."""
        if len(body) > MAX_MANY:
            raise Problem(413, f"a request may have at most {MAX_MANY:,} rewards, got {len(body):,}")

        def work(inside: Study) -> list[dict[str, Any]]:
            return [_outcome_of(inside, one) for one in body]

        return JSON(await owner_of(study).call(work, *(one.request_id for one in body)))

    @router.post("/{study}/decisions/{decision_id}/activate", tags=["decisions"], **_DONE)
    async def activate(study: Name, decision_id: DecisionId) -> Response:
        """Open a decision that was deferred, because it is shown now."""
        await owner_of(study).call(lambda inside: inside.activate(decision_id))
        return Response(status_code=204)

    @router.post("/{study}/decisions/activate", tags=["decisions"], **_DONE)
    async def activate_request(study: Name, body: RequestBody) -> Response:
        """Open the deferred decision of a request."""
        await owner_of(study).call(lambda inside: inside.activate(request_id=body.request_id))
        return Response(status_code=204)

    @router.post("/{study}/decisions/{decision_id}/void", tags=["decisions"], **_DONE)
    async def void(
        study: Name, decision_id: DecisionId,
        erase: Annotated[bool, Query(description="Whether to remove its subject, context and info as well.")] = False,
    ) -> Response:  # fmt: skip
        """Take a decision out, together with its reward if it has one."""
        await owner_of(study).call(lambda inside: inside.void(decision_id, erase=erase))
        return Response(status_code=204)

    @router.post("/{study}/decisions/void", tags=["decisions"], **_DONE)
    async def void_request(study: Name, body: VoidBody) -> Response:
        """Take the decision of a request out, together with its reward if it has one."""
        await owner_of(study).call(lambda inside: inside.void(request_id=body.request_id, erase=body.erase))
        return Response(status_code=204)

    @router.post("/{study}/observations", tags=["decisions"], **_DONE)
    async def observe(study: Name, body: ObservationBody) -> Response:
        """Tell the reward of an action that nobody asked for."""
        action = from_wire(body.action)
        await owner_of(study).call(
            lambda inside: inside.observe(action, body.value, body.request_id, context=body.context)
        )
        return Response(status_code=204)

    # -- looking ----------------------------------------------------------------------------------------------------

    @router.get("", tags=["looking"])
    async def studies() -> Response:
        """List the studies of this service."""
        return JSON({"studies": [{"name": name, "href": f"/v1/studies/{name}"} for name in owners]})

    @router.get("/{study}", tags=["looking"])
    async def facts(study: Name) -> Response:
        """Show a study: its algorithm, its settings, and how many decisions are in which state."""
        found = await owner_of(study).look(lambda inside: inside.facts() | {"settings": inside.settings()})
        return JSON({"name": study} | found)

    @router.get("/{study}/arms", tags=["looking"])
    async def arms(study: Name) -> Response:
        """List the arms in order, retired ones as well."""
        return JSON({"arms": [arm_as_json(arm) for arm in await owner_of(study).look(lambda inside: inside.arms())]})

    @router.get("/{study}/decisions/{decision_id}", tags=["looking"], response_model=DecisionJson)
    async def decision(study: Name, decision_id: DecisionId) -> Response:
        """Find a decision by its id."""
        return JSON(decision_as_json(await owner_of(study).look(lambda inside: inside.decision(decision_id))))

    @router.get("/{study}/decisions", tags=["looking"], response_model=DecisionsJson)
    async def decisions(
        study: Name,
        after: Annotated[int, Query(ge=0, description="The number of the last decision not to list.")] = 0,
        state: Annotated[str | None, Query(description="Only those in this state.")] = None,
        limit: Annotated[int, Query(ge=1, le=MAX_MANY)] = 100,
    ) -> Response:
        """List decisions in order, page by page."""
        found = await owner_of(study).look(lambda inside: inside.decisions(after, state, limit))
        last = found[-1].number if len(found) == limit else None
        return JSON({"decisions": [*map(decision_as_json, found)], "next": last})

    @router.get("/{study}/export", tags=["looking"], response_class=FileResponse)
    async def export(study: Name) -> Response:
        """Download decisions, rewards and observations as Parquet, one row for each unit."""
        handle, path = tempfile.mkstemp(suffix=".parquet")
        os.close(handle)
        remove = BackgroundTask(os.unlink, path)
        try:
            await owner_of(study).look(lambda inside: inside.export(path))
        except BaseException:
            os.unlink(path)
            raise
        media = "application/vnd.apache.parquet"
        return FileResponse(path, media_type=media, filename=f"{study}.parquet", background=remove)

    # -- changes to a study -----------------------------------------------------------------------------------------

    @router.post("/{study}/arms", tags=["changes"], **_DONE)
    async def add_arm(study: Name, body: ArmBody) -> Response:
        """Let an arm be chosen from now on. A retired arm comes back."""
        await owner_of(study).call(lambda inside: inside.add_arm(body.label, body.features))
        return Response(status_code=204)

    @router.post("/{study}/arms/retire", tags=["changes"], **_DONE)
    async def retire_arm(study: Name, body: RetireBody) -> Response:
        """Never choose an arm again. Its open decisions can still be rewarded."""
        await owner_of(study).call(lambda inside: inside.retire_arm(body.label))
        return Response(status_code=204)

    @router.patch("/{study}", tags=["changes"], **_DONE)
    async def change(study: Name, body: ChangeBody) -> Response:
        """Change settings for the decisions to come. See `Study.change`."""
        await owner_of(study).call(lambda inside: inside.change(**body.settings()))
        return Response(status_code=204)

    return router


async def decided(owner: Owner, body: DecideBody) -> Response:
    """Answer a request for decisions."""

    def work(inside: Study) -> Decision | list[Decision]:
        request: dict[str, Any] = {name: getattr(body, name) for name in body.model_fields_set}
        made: Decision | list[Decision] = inside.decide(**request)
        return made

    made = await owner.call(work, body.request_id)
    first = made[0] if isinstance(made, list) else made
    answer = {"decisions": [*map(decision_as_json, made)]} if isinstance(made, list) else decision_as_json(made)
    return JSON(answer, 200 if first.repeated else 201)


async def rewarded(owner: Owner, body: RewardBody, decision_id: str) -> Response:
    """Answer a request that tells the reward of a decision."""
    await owner.call(lambda inside: inside.reward(decision_id, body.value))
    return Response(status_code=204)


def _outcome_of(study: Study, one: RewardOf) -> dict[str, Any]:
    named = {name: value for name, value in (("id", one.id), ("request_id", one.request_id)) if value is not None}
    try:
        study.reward(one.id, one.value, one.key, request_id=one.request_id)
    except StudyUnavailable:
        raise
    except ArtReplayError as error:
        return named | description_of(error)
    return named | {"status": 204}
