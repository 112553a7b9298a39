"""How the tests of policies drive one, over arms or over points: ways to start, playing rounds, looking at it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import artreplay as ar

RewardOf = Callable[[Any, int], float]  # (unit, online round) → reward

STARTS: dict[str, Callable[[Any, ar.History], Any]] = {
    "ignorant": lambda base, history: ar.Ignorant(base),
    "full start": ar.FullStart,
    "replay": ar.ArtificialReplay,
}


def tell_by(policy: Any, action: Any, reward_of: RewardOf) -> None:
    """Tell an action that was played in this round."""
    units = action if isinstance(action, list) else [action]
    rewards = [reward_of(unit, policy.rounds) for unit in units]
    policy.tell(action, rewards if isinstance(action, list) else rewards[0])


def play_by(policy: Any, rounds: int, reward_of: RewardOf) -> list[Any]:
    """The actions of this many rounds."""
    actions = []
    for _ in range(rounds):
        action = policy.ask()
        actions.append(action)
        tell_by(policy, action, reward_of)
    return actions


def counts(policy: Any) -> dict[str, Any]:
    """What any policy says of its rounds and of its log."""
    return {
        "rounds": policy.rounds,
        "used": policy.used,
        "unused": policy.unused,
        "unused rows": policy.unused_rows(),
        "used by cell": policy.used_by_cell(),
    }
