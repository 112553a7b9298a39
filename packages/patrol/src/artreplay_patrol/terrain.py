"""An invented park: its outline, river, roads, posts and bridges, and where there is something to find."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from artreplay.compiling import Floats
from artreplay_patrol.area import Bools

SIDE_KM = 64.0  # of the square around the park
POSTS = 6
_CORNERS = 96  # of the outline
_GRID = 128  # boxes per side of the maps that are looked up
_BRIDGE_KM = 2.5  # from which a bridge is used


@dataclass(frozen=True)
class Terrain:
    """A park drawn from a seed, in the unit square; everything in it is a function of the seed alone.

    >>> terrain = Terrain(seed=1)
    >>> bool(terrain.inside(terrain.posts).all())
    True
    """

    seed: int = 0

    def _rng(self, purpose: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, purpose])

    # -- the map ------------------------------------------------------------------------------------------------

    @cached_property
    def outline(self) -> Floats:
        """The corners of the boundary, counter-clockwise; it touches two sides of the unit square."""
        rng = self._rng(1)
        angle = 2.0 * np.pi * np.arange(_CORNERS) / _CORNERS
        radius = np.ones(_CORNERS)
        for order in (2, 3, 4, 5):
            radius += rng.uniform(-0.4, 0.4) / order * np.cos(order * angle + rng.uniform(0.0, 2.0 * np.pi))
        corners = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        low, high = corners.min(axis=0), corners.max(axis=0)
        outline: Floats = 0.5 + (corners - (low + high) / 2.0) / (high - low).max()
        return outline

    def inside(self, points: Floats) -> Bools:
        """Which points lie inside the boundary: those with an odd number of edges to the east of them."""
        odd = np.zeros(len(points), np.bool_)
        for (x1, y1), (x2, y2) in zip(self.outline, np.roll(self.outline, -1, axis=0), strict=True):
            if y1 != y2:
                at = x1 + (points[:, 1] - y1) * ((x2 - x1) / (y2 - y1))
                odd ^= ((y1 > points[:, 1]) != (y2 > points[:, 1])) & (points[:, 0] < at)
        return odd

    @cached_property
    def river(self) -> Floats:
        """Its course, from west to east."""
        rng = self._rng(2)
        x = np.linspace(0.0, 1.0, 65)
        y = rng.uniform(0.42, 0.62) + rng.uniform(-0.15, 0.15) * (x - 0.5)
        for order in (1, 2, 3):
            y = y + rng.uniform(0.02, 0.07) / order * np.sin(2.0 * np.pi * order * x + rng.uniform(0.0, 2.0 * np.pi))
        return np.stack([x, y], axis=1)

    def north_of_river(self, points: Floats) -> Bools:
        """On which bank points lie."""
        bank: Bools = points[..., 1] > np.interp(points[..., 0], self.river[:, 0], self.river[:, 1])
        return bank

    @cached_property
    def posts(self) -> Floats:
        """Where patrols start: inside the park, not far from its edge, and well apart."""
        rng = self._rng(3)
        middle = self.outline.mean(axis=0)
        spots = middle + (self.outline - middle) * rng.uniform(0.6, 0.85, (len(self.outline), 1))
        spots = spots[self.inside(spots)]
        chosen = [int(rng.integers(len(spots)))]
        while len(chosen) < POSTS:
            chosen.append(int(np.argmax(distance_km(spots, spots[chosen]))))
        posts: Floats = spots[chosen]
        return posts

    @cached_property
    def bridges(self) -> Floats:
        """Two places where the river can be crossed."""
        rng = self._rng(4)
        x = np.array([rng.uniform(0.2, 0.4), rng.uniform(0.6, 0.8)])
        return np.stack([x, np.interp(x, self.river[:, 0], self.river[:, 1])], axis=1)

    @cached_property
    def roads(self) -> list[Floats]:
        """Straight roads, as rows of points: from each post to the nearest bridge, and to the nearest other post."""
        roads = []
        for number, post in enumerate(self.posts):
            others = np.delete(self.posts, number, axis=0)
            for ends in (self.bridges, others):
                end = ends[int(np.argmin(np.hypot(*(ends - post).T)))]
                roads.append(post + np.linspace(0.0, 1.0, 33)[:, None] * (end - post))
        return roads

    # -- maps to look things up in ------------------------------------------------------------------------------

    @cached_property
    def _centres(self) -> Floats:
        axis = (np.arange(_GRID) + 0.5) / _GRID
        return np.stack([grid.ravel() for grid in np.meshgrid(axis, axis, indexing="ij")], axis=1)

    @cached_property
    def ease(self) -> Floats:
        """How easy it is to walk in each box: along roads and the river; −inf outside the park, and at its edge."""
        road = np.exp(-distance_km(self._centres, np.concatenate(self.roads)) / 1.5)
        river = np.exp(-distance_km(self._centres, self.river) / 2.0)
        rough = _hills(self._rng(5), self._centres, 9, (0.04, 0.12))
        ease = road + 0.5 * river - 0.8 * rough
        padded = np.pad(self.inside(self._centres).reshape(_GRID, _GRID), 1)
        shifts = [(dx, dy) for dx in range(3) for dy in range(3)]
        well_inside = np.all([padded[dx : dx + _GRID, dy : dy + _GRID] for dx, dy in shifts], axis=0)
        return np.where(well_inside, ease.reshape(_GRID, _GRID), -np.inf)

    @cached_property
    def crossing(self) -> Bools:
        """Where the river can be crossed: near a bridge."""
        near: Bools = distance_km(self._centres, self.bridges) < _BRIDGE_KM
        return near.reshape(_GRID, _GRID)

    @staticmethod
    def look_up(values: Any, points: Floats) -> Any:
        """The values of a map at points; points outside the square are taken to its edge."""
        box = np.clip((points * _GRID).astype(np.int64), 0, _GRID - 1)
        return values[box[..., 0], box[..., 1]]

    # -- what there is to find ----------------------------------------------------------------------------------

    def per_km(self, points: Floats) -> tuple[Floats, Floats]:
        """Snares and animal signs per kilometre walked: smooth, snares away from posts, animals near the river."""
        snares = 0.45 * _hills(self._rng(6), points, 6, (0.05, 0.12))
        snares = snares * (1.0 - 0.8 * np.exp(-distance_km(points, self.posts) / 6.0))
        animals = 0.02 + 0.12 * _hills(self._rng(7), points, 5, (0.08, 0.18))
        animals = animals + 0.06 * np.exp(-distance_km(points, self.river) / 3.0)
        return snares, animals

    def risk(self, points: Any, effort_km: Any) -> Floats:
        """The chance to find a snare or an animal sign at points, with this effort in km."""
        rows = np.atleast_2d(np.asarray(points, np.float64))
        chance: Floats = 1.0 - np.exp(-np.asarray(effort_km, np.float64) * np.add(*self.per_km(rows)))
        return chance


def distance_km(points: Floats, spots: Sequence[Any] | Floats) -> Floats:
    """The way from each point to the nearest of some spots."""
    nearest = np.full(len(points), np.inf)
    for x, y in np.asarray(spots):
        nearest = np.minimum(nearest, (points[:, 0] - x) ** 2 + (points[:, 1] - y) ** 2)
    away: Floats = np.sqrt(nearest) * SIDE_KM
    return away


def _hills(rng: np.random.Generator, points: Floats, count: int, widths: tuple[float, float]) -> Floats:
    """A smooth surface between 0 and 1, made of a few hills."""
    height = np.zeros(len(points))
    for _ in range(count):
        x, y = rng.uniform(0.1, 0.9, 2)
        width, top = rng.uniform(*widths), rng.uniform(0.5, 1.0)
        away = (points[:, 0] - x) ** 2 + (points[:, 1] - y) ** 2
        height = np.maximum(height, top * np.exp(-away / (2.0 * width**2)))
    return height
