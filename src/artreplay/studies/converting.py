"""A study from a policy that was kept elsewhere: it goes on where that stands."""

from __future__ import annotations

from typing import Any

from artreplay.errors import InvalidParameter
from artreplay.replay import PENDING, ArtificialReplay, FullStart, policy_as_bytes
from artreplay.studies.live import Live


def check_convertible(policy: Any) -> None:
    """Refuse a policy that a study cannot go on with."""
    if not isinstance(policy, (ArtificialReplay, FullStart)) or policy.history is None:
        raise InvalidParameter("a study can be made from a policy that has its log, over an algorithm of this package")
    if policy.relation is not None:
        raise InvalidParameter("a study can be made from a policy without a relation of its own")


def drift_of(policy: Any) -> Any:
    """What a policy was told by `drift=`."""
    given = policy._drift.given
    return dict(zip(policy.base.arms, given, strict=True)) if isinstance(given, list) else given


def keep_policy(live: Live, policy: Any) -> None:
    """Keep what a policy has learnt as the origin of a fresh study; the action it waits for becomes a decision."""
    action = policy.ask() if policy.drive.position[PENDING] else None
    live.tables.run("INSERT INTO origin VALUES (?, ?, ?)", live.entries, policy.rounds, policy_as_bytes(policy))
    live.forget_fold()
    live.decisions = policy.rounds
    if action is not None:
        live.expire()
        live.keep_decided(live.opened(action))
