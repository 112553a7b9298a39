"""What the tests of saving share: small policies, playing them, and comparing what they do next."""

from __future__ import annotations

import enum
import math
import random
from typing import Any

import artreplay as ar
from artreplay.compiling import arrays_of
from artreplay.replay import rule_of

FEATURES = [[1, 0, 0], [0.5, 0, 0], [0, 1, 0.5], [0, 0, 1]]


def narrow(n: int) -> float:
    return 0.3 / math.sqrt(n)


def equal(logged: Any, proposed: Any, base: Any) -> bool:
    return logged == proposed


def always(logged: Any, proposed: Any, base: Any) -> bool:
    return True


POLICIES = ["ignorant", "full start", "replay"]


def log_for(base: Any, size: int = 60, seed: int = 1) -> ar.History:
    rng = random.Random(seed)
    low, high = base.reward_range
    span = (low, high) if math.isfinite(high) else (-3.0, 3.0)
    rewards = [span[0], sum(span) / 2, span[1]]
    samples = [(rng.choice(base.arms), rng.choice(rewards)) for _ in range(size)]  # more of them begin with the same
    return ar.History([unit for unit, _ in samples], [reward for _, reward in samples])


def policy_of(kind: str, base: Any, log: ar.History) -> Any:
    if kind == "ignorant":
        return ar.Ignorant(base)
    return ar.FullStart(base, log) if kind == "full start" else ar.ArtificialReplay(base, log)


def play(policy: Any, rounds: int, seed: int = 0) -> list[Any]:
    """Play with rewards that depend on the round only; the actions, and how much of the log was used by then."""
    rng = random.Random(seed)
    low, high = getattr(policy.base, "reward_range", (0.0, 1.0))
    if not math.isfinite(high):
        low, high = -3.0, 3.0
    played = []
    for _ in range(rounds):
        action = policy.ask()
        played.append((action, policy.used))
        several = isinstance(action, list)
        rewards = [low + (high - low) * rng.choice([0.0, 0.3, 1.0]) for _ in (action if several else [action])]
        policy.tell(action, rewards if several else rewards[0])
    return played


def state(policy: Any) -> dict[str, Any]:
    component = rule_of(getattr(policy.base, "component", policy.base))
    arrays = {name: (array.dtype.str, array.shape, array.tobytes()) for name, array in arrays_of(component).items()}
    return {"arrays": arrays, "rounds": policy.rounds, "used": policy.used, "unused": policy.unused}


def check_same_future(policy: Any, again: Any, rounds: int) -> None:
    assert type(again) is type(policy)
    assert repr(again) == repr(policy)
    assert state(again) == state(policy)
    assert again.unused_rows() == policy.unused_rows()
    assert play(again, rounds) == play(policy, rounds)
    assert state(again) == state(policy)
    assert again.unused_rows() == policy.unused_rows()


def small_policy() -> Any:
    return ar.ArtificialReplay(ar.MonUCB(arms=["a", "b"], horizon=10), small_log())


def small_log(more: tuple = ()) -> ar.History:
    samples = [("a", 0.0), ("b", 1.0), ("a", 1.0), ("b", 0.5), *more]
    return ar.History([unit for unit, _ in samples], [reward for _, reward in samples])


class Colour(enum.Enum):
    RED = 1
    BLUE = 2
