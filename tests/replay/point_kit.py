"""What the tests of policies over points share: small bases, logs with many points on edges, driving a policy."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from driving import counts, play_by, tell_by

import artreplay as ar

EFFORT = {"levels": (0, 0.5, 1), "budget": 2, "max_units": 3, "horizon": 100}


def narrow(n: int) -> float:
    return 0.3 / math.sqrt(n)


# One of each algorithm, and of each thing that is saved differently.
BASES: dict[str, Callable[[], Any]] = {
    "GridUCB": lambda: ar.GridUCB(2, 100, 5),
    "GridUCB, uniform, own bonus": lambda: ar.GridUCB(1, 100, gamma=0.1, bonus=narrow, play="uniform", seed=2**70),
    "TreeUCB": lambda: ar.TreeUCB(2, 100, box=[(-0.6, 0.8), (10, 11)]),
    "TreeUCB, uniform": lambda: ar.TreeUCB(1, 100, epsilon=2**-8, play="uniform", seed=4),
    "TreeUCB by confidence, own bonus": lambda: ar.TreeUCB(3, 100, split="confidence", bonus=narrow),
    "GridAllocation": lambda: ar.GridAllocation(1, cells_per_side=6, **EFFORT),
    "GridAllocation, greedy, uniform": lambda: ar.GridAllocation(
        2, cells_per_side=3, solver="greedy", play="uniform", **EFFORT
    ),
    "TreeAllocation": lambda: ar.TreeAllocation(1, epsilon=2**-5, reward_range=(-2, 3), **EFFORT),
    "TreeAllocation, greedy, own bonus": lambda: ar.TreeAllocation(
        2, epsilon=2**-3, solver="greedy", bonus=narrow, **EFFORT
    ),
    "TreeAllocation, the paper's rule": lambda: ar.TreeAllocation(2, epsilon=2**-3, rule="paper", **EFFORT),
    "TreeAllocation by confidence, uniform": lambda: ar.TreeAllocation(
        1, epsilon=2**-6, split="confidence", bonus=ar.bonus.practical(0.9), play="uniform", **EFFORT
    ),
}
SINGLE = [name for name in BASES if "UCB" in name]
SEVERAL = [name for name in BASES if "Allocation" in name]
TREES = [name for name in BASES if "Tree" in name]


def given_again(name: str) -> dict[str, Any]:
    return {"base": BASES[name]()} if "own bonus" in name else {}


def log_for(base: Any, rows: int = 60, seed: int = 0) -> ar.History:
    """Longer logs begin with the shorter ones."""
    rng = np.random.default_rng(seed)
    points, levels, rewards = [], [], []
    low_reward, high_reward = base.reward_range
    for _ in range(rows):
        kind = rng.random()
        parts = rng.integers(0, 9, base.dim) / 8 if kind < 0.5 else rng.random(base.dim)
        parts = np.full(base.dim, 0.3) if kind > 0.8 else parts
        sides = zip(base.edges(), parts, strict=True)
        points.append([min(low + (high - low) * part, high) for (low, high), part in sides])
        levels.append(float(rng.choice(base.levels or [0.0])))
        rewards.append(low_reward + (high_reward - low_reward) * rng.choice([0.0, 0.5, 1.0]))
    return ar.History(np.array(points).reshape(-1, base.dim), rewards, levels=None if base.levels is None else levels)


def reward_of(policy: Any, unit: Any, round_: int) -> float:
    low, high = policy.base.reward_range
    return low + (high - low) * (hashlib.blake2b(repr((unit, round_)).encode(), digest_size=1).digest()[0] % 3) / 2


def tell(policy: Any, action: Any) -> None:
    tell_by(policy, action, partial(reward_of, policy))


def play(policy: Any, rounds: int) -> list[Any]:
    return play_by(policy, rounds, partial(reward_of, policy))


def seen(policy: Any) -> dict[str, Any]:
    """Everything that can be seen of a policy without asking it."""
    return counts(policy) | {
        "cells": repr(policy.cells()),
        "state": {name: array.tobytes() for name, array in policy.base.state().items()},
    }
