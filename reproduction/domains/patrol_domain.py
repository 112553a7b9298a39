"""`Patrol`: a fitted surface of chances to find something, and a log that lies where invented patrols went."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np

from artreplay.algorithms.point_algorithms import checked_levels
from artreplay.compiling import Floats, Ints
from artreplay.environments.point_environments import Noise, PointEnvironment, log_draws
from artreplay.errors import InvalidHistory, InvalidParameter, exact
from artreplay.history import History
from artreplay.parameters import checked
from artreplay.streams import LOG_UNIT
from artreplay_patrol.site import midway_thresholds
from artreplay_patrol.synthetic import WAYPOINTS, SyntheticPark
from reproduction.domains.park_surface import ParkSurface

_FULL = 0.95  # the share of waypoints with less effort than level 1 stands for
_MASK = 64  # boxes per side


class FittedSurface(Protocol):
    """Anything that knows the mean reward of points of the unit square at levels of effort."""

    def means(self, points: Floats, levels: Floats) -> Floats:
        """One mean in [0, 1] for each point at its level."""


class Patrol(PointEnvironment):
    """Green security: effort is split over places in the unit square, and a fitted surface gives the mean rewards.

    `log` holds past records with levels. Places and levels of a simulated log are drawn from its rows, so that it lies
    where patrols went; its rewards come from the surface. By default, logged places are uniform.

    >>> class Flat:
    ...     def means(self, points, levels):
    ...         return 0.5 * levels
    >>> Patrol(Flat(), log=History([(0.1, 0.1), (0.1, 0.2)], [0, 1], levels=[1, 0.5])).draw_history(100)
    <History of 100 rows at points of dimension 2, at 2 levels>
    """

    @checked
    def __init__(
        self,
        surface: FittedSurface,
        levels: Sequence[float] = (0.5, 1.0),
        budget: float = 2.0,
        max_units: int = 5,
        log: History | None = None,
        noise: Noise = "bernoulli",
        bad_share: float | None = None,
        finest: int = 32,
    ) -> None:
        if not callable(getattr(surface, "means", None)):
            raise InvalidParameter(f"surface must offer means(points, levels), got {surface!r}")
        super().__init__(surface.means, 2, None, levels, budget, max_units, noise, bad_share, finest)
        self.log = log
        if log is not None:
            self._log_levels = self._checked_log(log)

    def _checked_log(self, log: History) -> Ints:
        """The numbers of the levels of its rows."""
        if self.bad_share is not None:
            raise InvalidParameter("bad_share is for uniform logs. Give it or a log, not both")
        if log.points is None or log.levels is None or log.points.shape[1] != 2 or len(log) == 0:
            raise InvalidParameter(f"log must hold samples at points of dimension 2, with levels, got {log!r}")
        if not ((log.points >= 0.0) & (log.points <= 1.0)).all():
            raise InvalidParameter("the points of the log must lie in the unit square, and some do not")
        values = np.array(self.level_values())
        numbers: Ints = np.minimum(np.searchsorted(values, log.levels), len(values) - 1)
        wrong = np.flatnonzero(values[numbers] != log.levels)
        if len(wrong):
            row, known = wrong[0], ", ".join(map(exact, values))
            raise InvalidHistory(f"is {exact(log.levels[row])}, the levels are {known}", what="level", row=row)
        return numbers

    def draw_places(self, key: np.uint64, numbers: Ints) -> tuple[Floats, Ints]:
        """Points and numbers of levels: rows of the log, drawn one by one, if there is one."""
        if self.log is None or self.log.points is None:
            return super().draw_places(key, numbers)
        draws = log_draws(key, LOG_UNIT, 0, numbers, 1)[:, 0] * len(self.log)
        rows = np.minimum(draws.astype(np.int64), len(self.log) - 1)
        places: Any = self.log.points[rows]
        return places, self._log_levels[rows]


class PatrolWorld(NamedTuple):
    """A surface, and the waypoints it was fitted to; efforts are such that level 1 is a lot for one waypoint."""

    surface: ParkSurface
    points: Floats
    efforts: Floats
    observed: Floats


@lru_cache(maxsize=4)
def synthetic_world(seed: int = 0, waypoints: int = WAYPOINTS) -> PatrolWorld:
    """The surface of a synthetic park; the same for the same seed, and fitted once in a process."""
    park = SyntheticPark(seed, waypoints)
    walks = park.walks
    efforts = walks.effort_km / np.quantile(walks.effort_km, _FULL)
    observed = (walks.snare | walks.animal).astype(np.float64)
    axis = (np.arange(_MASK) + 0.5) / _MASK
    centres = np.stack([grid.ravel() for grid in np.meshgrid(axis, axis, indexing="ij")], axis=1)
    mask = park.terrain.inside(centres).reshape(_MASK, _MASK)
    surface = ParkSurface.fit(walks.points, efforts, observed, mask=mask, seed=seed)
    return PatrolWorld(surface, walks.points, efforts, observed)


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
