"""What a study offers to those who decide and reward, wherever it runs: in this process, or behind a service."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, overload

from artreplay.history import Action, Label
from artreplay.parameters import REQUIRED
from artreplay.studies.arms_and_log import ArmState
from artreplay.studies.decisions import Decision, Info


class Decisions(Protocol):
    """The calls that a `Study` and a study on another machine share. See `Study` for what they do.

    >>> import artreplay as ar
    >>> def click_through(decisions: Decisions) -> str:
    ...     decision = decisions.decide(request_id="visit 4711")
    ...     decisions.reward(decision.id, 1.0)
    ...     return decisions.decision(decision.id).state
    >>> with ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100), wait=None) as study:
    ...     click_through(study)
    'rewarded'
    """

    @overload
    def decide(
        self,
        request_id: str | None = None,
        *,
        context: Mapping[str, Any] | None = None,
        contexts: None = None,
        among: Iterable[Label] | None = None,
        count: None = None,
        subject: str | None = None,
        info: Info | None = None,
        deferred: bool = False,
    ) -> Decision: ...
    @overload
    def decide(
        self,
        request_id: str | None = None,
        *,
        context: Mapping[str, Any] | None = None,
        contexts: None = None,
        among: Iterable[Label] | None = None,
        count: int,
        subject: str | None = None,
        info: Info | None = None,
        deferred: bool = False,
    ) -> list[Decision]: ...
    @overload
    def decide(
        self,
        request_id: str | None = None,
        *,
        context: None = None,
        contexts: Any,
        among: Iterable[Label] | None = None,
        count: None = None,
        subject: str | None = None,
        info: Info | None = None,
        deferred: bool = False,
    ) -> list[Decision]: ...
    def activate(self, decision_id: str | None = None, *, request_id: str | None = None) -> None: ...
    def reward(
        self,
        decision_id: str | None = None,
        value: float | Sequence[float] = REQUIRED,
        key: str | None = None,
        *,
        request_id: str | None = None,
    ) -> None: ...
    def void(self, decision_id: str | None = None, *, request_id: str | None = None, erase: bool = False) -> None: ...
    def observe(
        self,
        action: Action,
        value: float | Sequence[float],
        request_id: str | None = None,
        *,
        context: Mapping[str, Any] | None = None,
    ) -> None: ...
    def arms(self) -> list[ArmState]: ...
    def add_arm(self, label: Label, features: Sequence[float] | None = None) -> None: ...
    def retire_arm(self, label: Label) -> None: ...
    def change(self, **settings: Any) -> None: ...
    def decision(self, decision_id: str) -> Decision: ...
    def decisions(self, after: int = 0, state: str | None = None, limit: int | None = None) -> list[Decision]: ...
    def export(self, path: str | os.PathLike[str]) -> None: ...
    def close(self) -> None: ...
