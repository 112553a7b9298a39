"""Logs with contexts, drawn from worlds of which it is known what is true."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import artreplay as ar

RATES = np.array([0.05, 0.08, 0.10])  # what arm 0, 1, 2 adds
POSITIONS = np.array([0.30, 0.05, 0.0])  # what position 1, 2, 3 adds
TRUE_MEANS = RATES + POSITIONS.mean()


class Shown(NamedTuple):
    """A log of arms shown at positions."""

    history: ar.History
    chances: np.ndarray
    positions: np.ndarray


def shown_by_position(seed: int, rows: int = 3_000, favour: float = 0.8) -> Shown:
    """The old policy shows the worst arm, 0, at position 1, where everything earns most: it looks best.

    With `favour` 1/3 the arm does not depend on the position.
    """
    rng = np.random.default_rng(seed)
    at = rng.integers(0, 3, rows)
    rest = (1.0 - favour) / 2.0
    table = np.array(
        [[favour, rest, rest], [rest, 0.5 - rest / 2, 0.5 - rest / 2], [rest, 0.5 - rest / 2, 0.5 - rest / 2]]
    )
    draws = rng.random(rows)
    arms = (draws[:, None] > np.cumsum(table[at], axis=1)).sum(axis=1).clip(0, 2)
    clicks = (rng.random(rows) < RATES[arms] + POSITIONS[at]).astype(float)
    chances = table[at, arms]
    contexts = {"position": (at + 1).tolist(), "noise": rng.random(rows), "p": chances}
    return Shown(ar.History(arms, clicks, contexts=contexts), chances, at + 1)


def linear_world(seed: int, rows: int, effect: float, rate: float = 0.3) -> ar.History:
    """Two arms; age moves them in opposite directions, if there is an effect."""
    rng = np.random.default_rng(seed)
    age, arms = rng.normal(40.0, 10.0, rows), rng.integers(0, 2, rows)
    moved = rate + effect * np.where(arms == 0, 1, -1) * (age - 40.0) / 10.0
    clicks = (rng.random(rows) < moved.clip(0.0, 1.0)).astype(float)
    country = rng.choice(["NL", "DE"], rows).tolist()
    return ar.History(arms, clicks, contexts={"age": age, "country": country})
