"""The `Patrol` domain of a park: a surface fitted to its records, and a log that lies where its patrols went."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from artreplay.algorithms.point_algorithms import checked_levels
from artreplay.compiling import Floats
from artreplay.history import History
from artreplay_patrol.environment import Patrol
from artreplay_patrol.samples import walked_waypoints
from artreplay_patrol.site import Site, midway_thresholds
from artreplay_patrol.surface import Surface
from artreplay_patrol.synthetic import WAYPOINTS, SyntheticPark

_FULL = 0.95  # the share of waypoints with less effort than level 1 stands for
_MASK = 64  # boxes per side


class World(NamedTuple):
    """A surface, and the waypoints it was fitted to; efforts are such that level 1 is a lot for one waypoint."""

    surface: Surface
    points: Floats
    efforts: Floats
    observed: Floats


def fit_surface(table: Any, site: Site, *, monotone: bool = False, seed: int = 0) -> Surface:
    """The surface of a park's records, waypoint by waypoint; efforts are in the unit of the site."""
    found = walked_waypoints(table, site)
    points, effort, observed = (column[found.known] for column in (found.points, found.effort, found.observed))
    mask = site.area.mask(site.finest)
    return Surface.fit(points, effort, observed, monotone=monotone, mask=mask, seed=seed)


@lru_cache(maxsize=4)
def synthetic_world(seed: int = 0, waypoints: int = WAYPOINTS) -> World:
    """The surface of a synthetic park; the same for the same seed, and fitted once in a process."""
    park = SyntheticPark(seed, waypoints)
    walks = park.walks
    efforts = walks.effort_km / np.quantile(walks.effort_km, _FULL)
    observed = (walks.snare | walks.animal).astype(np.float64)
    axis = (np.arange(_MASK) + 0.5) / _MASK
    centres = np.stack([grid.ravel() for grid in np.meshgrid(axis, axis, indexing="ij")], axis=1)
    mask = park.terrain.inside(centres).reshape(_MASK, _MASK)
    surface = Surface.fit(walks.points, efforts, observed, monotone=True, mask=mask, seed=seed)
    return World(surface, walks.points, efforts, observed)


def synthetic_domain(
    seed: int = 0,
    waypoints: int = WAYPOINTS,
    levels: Sequence[float] = (0.0, 0.5, 1.0),
    budget: float = 2.0,
    max_units: int = 5,
    **options: Any,
) -> Patrol:
    """The `Patrol` domain of a synthetic park; a logged waypoint has the level that is nearest to its effort."""
    world = synthetic_world(seed, waypoints)
    values = checked_levels(levels)
    nearest = np.searchsorted(midway_thresholds(values), world.efforts, side="right") - 1
    log = History(world.points, world.observed, levels=np.array(values)[nearest])
    return Patrol(world.surface, levels, budget, max_units, log=log, **options)
