"""Marks on a map that would lie on top of each other are moved apart."""

from __future__ import annotations

import numpy as np

from artreplay.compiling import Floats

_MOST = 200  # marks; more would not find room
_ROUNDS = 200
_TURN = 2.399963  # the golden angle: marks of one and the same point leave it in different directions


def spread(points: Floats, apart: float, low: Floats, high: Floats, still: Floats | None = None) -> Floats:
    """The points moved as little as it takes to lie `apart` from each other, within bounds where these have room.

    They keep away from the points that are `still`, too, which are not moved.

    >>> spread(np.array([[0.5, 0.5], [0.5, 0.5], [0.9, 0.1]]), 0.2, np.zeros(2), np.ones(2)).round(2).tolist()
    [[0.59, 0.46], [0.41, 0.54], [0.9, 0.1]]
    """
    others = np.empty((0, 2)) if still is None else still
    moved = np.concatenate([points, others])
    if len(moved) < 2 or len(points) > _MOST:
        return moved[: len(points)]
    is_still = np.arange(len(moved)) >= len(points)
    share = np.where(is_still[:, None], 0.0, np.where(is_still, 1.0, 0.5))  # of the way, for the first of two points
    angle = _TURN * np.arange(len(moved))
    aim = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    for _ in range(_ROUNDS):
        between = moved[:, None, :] - moved[None, :, :]
        distance = np.hypot(between[..., 0], between[..., 1])
        short = np.where(np.eye(len(moved), dtype=np.bool_), 0.0, np.maximum(apart - distance, 0.0)) * (share > 0.0)
        if short.max() <= 1e-3 * apart:
            break
        same = (distance == 0.0)[..., None]
        direction = np.where(same, aim[:, None, :] - aim[None, :, :], between)
        length = np.hypot(direction[..., 0], direction[..., 1])[..., None]
        push = ((share * short)[..., None] * direction / np.where(length == 0.0, 1.0, length)).sum(axis=1)
        moved = np.where(short.max(axis=1)[:, None] > 0.0, np.clip(moved + push, low, high), moved)
    return moved[: len(points)]
