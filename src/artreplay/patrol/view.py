"""`View`: what a map shows, in the unit square. Pictures and pages are drawn from it and from nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from artreplay.compiling import Floats, Ints
from artreplay.patrol.area import Bools
from artreplay.patrol.plan import Plan, blurred, blurred_points, squares_for
from artreplay.patrol.reasons import doubt
from artreplay.patrol.site import Site
from artreplay.replay import ArtificialReplay, Cell

MOST_DOTS = 4_000  # of each kind on one map
_LENGTHS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200)  # km


@dataclass(frozen=True)
class Patch:
    """A square of the map at one level of effort: what the planner makes of it, and what the records say of it."""

    x: float  # of the south-west corner
    y: float
    width: float
    level: float
    index: float
    doubt: float  # how much of the index can be lack of knowledge
    visits: int  # with this effort, in this square
    finds: int
    used: int  # of these visits, the ones the plan was made from


@dataclass(frozen=True)
class View:
    """A park on a map: what was done and found in each box; with a plan, also what the planner makes of it.

    The boxes are the finest ones of the site, or larger ones if positions are to be blurred.
    """

    site: Site
    side: int  # boxes along each side of the square
    mask: Bools  # (side, side): the boxes that overlap the area; x first
    effort: Floats  # (side, side): of all visits together
    visits: Ints
    finds: Ints  # visits with a find
    used: Floats  # the samples the plan was made from, thinned
    unused: Floats
    n_used: int
    n_unused: int
    coverage: float  # share of the area's finest boxes that was ever visited, blurred or not
    patches: tuple[Patch, ...] = ()
    plan: Plan | None = None
    places: Floats | None = None  # of the plan's items

    @property
    def scale_km(self) -> float:
        """A round length for the scale of a map: a quarter of the square at most."""
        return max(size for size in _LENGTHS if size <= max(self.site.area.side_km / 4.0, _LENGTHS[0]))


def view_of(
    site: Site, visits: Any, plan: Plan | None = None, policy: ArtificialReplay | None = None, blur_m: float = 0.0
) -> View:
    """The view of a park from all its visits (`all_box_rows`); with a plan and the policy that made it, of both.

    With `blur_m` positions of samples and of places are rounded, as they are in the plan's files, and no box is
    smaller than that.
    """
    side = min(site.finest, squares_for(site, blur_m)) if blur_m else site.finest
    points = np.stack([np.asarray(visits["x"]), np.asarray(visits["y"])], axis=1)
    is_sample = np.asarray(visits["level"].is_valid()) if policy is not None else np.ones(len(points), np.bool_)
    is_used = np.zeros(len(points), np.bool_)
    if policy is not None:
        is_used[is_sample] = True
        is_used[np.flatnonzero(is_sample)[policy.unused_rows()]] = False
    is_unused = is_sample & ~is_used
    grids = _Grids(visits, site.finest, side)
    made = View(
        site=site,
        side=side,
        mask=site.area.mask(side),
        effort=grids.effort,
        visits=grids.visits,
        finds=grids.finds,
        used=_thinned(blurred_points(points[is_used], site, blur_m)),
        unused=_thinned(blurred_points(points[is_unused], site, blur_m)),
        n_used=int(is_used.sum()),
        n_unused=int(is_unused.sum()),
        coverage=float((_Grids(visits, site.finest, site.finest).visits[site.area.mask(site.finest)] > 0).mean()),
    )
    if plan is None or policy is None:
        return made
    shown = blurred(plan, site, blur_m)
    places = site.area.to_unit([item.lon for item in shown.items], [item.lat for item in shown.items])
    return replace(made, patches=tuple(_patches(policy.cells(), grids)), plan=shown, places=places)


class _Grids:
    """Visits summed up over the boxes of a grid, also level by level."""

    def __init__(self, visits: Any, finest: int, side: int) -> None:
        self.side = side
        x, y = (np.asarray(visits[name]) * side // finest for name in ("box_x", "box_y"))
        self._box: Ints = x * side + y
        self._observed = np.asarray(visits["observed"]).astype(np.float64)
        self._level: Floats = np.asarray(visits["level"].fill_null(np.nan)).astype(np.float64)
        every = np.ones(len(self._box), np.bool_)
        self.effort = self._summed(np.asarray(visits["effort"]), every)
        self.visits, self.finds = self._counted(every)

    def at_level(self, level: float) -> tuple[Ints, Ints]:
        """The visits with one effort, and those of them with a find."""
        return self._counted(self._level == level)

    def _counted(self, which: Bools) -> tuple[Ints, Ints]:
        every = np.ones(len(self._box))
        return self._summed(every, which).astype(np.int64), self._summed(self._observed, which).astype(np.int64)

    def _summed(self, weights: Floats, which: Bools) -> Floats:
        summed = np.bincount(self._box[which], weights[which], self.side**2).reshape(self.side, self.side)
        return summed.astype(np.float64)


def _patches(cells: Iterable[Cell], grids: _Grids) -> Iterable[Patch]:
    """The cells of a tree as squares of the map; those smaller than a box of the grid become one."""
    together: dict[tuple[float, int, int, int], list[tuple[float, Cell]]] = {}
    for cell in cells:
        if not cell.level or cell.low is None or cell.high is None:
            continue
        part = (cell.high[0] - cell.low[0]) * grids.side  # its width, in boxes of the grid
        x, y = (int(edge * grids.side) for edge in cell.low)
        together.setdefault((cell.level, x, y, max(round(part), 1)), []).append((min(part, 1.0) ** 2, cell))
    known = {level: grids.at_level(level) for level in {key[0] for key in together}}
    for (level, x, y, boxes), parts in together.items():
        weight = sum(size for size, _ in parts)
        visits, finds = (int(grid[x : x + boxes, y : y + boxes].sum()) for grid in known[level])
        yield Patch(
            x=x / grids.side,
            y=y / grids.side,
            width=boxes / grids.side,
            level=level,
            index=sum(size * cell.index for size, cell in parts) / weight,
            doubt=sum(size * doubt(cell.count) for size, cell in parts) / weight,
            visits=visits,
            finds=finds,
            used=sum(cell.used for _, cell in parts),
        )


def _thinned(points: Floats) -> Floats:
    """At most so many points, always the same ones."""
    if len(points) <= MOST_DOTS:
        return points
    kept = np.random.default_rng(0).permutation(len(points))[:MOST_DOTS]
    return points[np.sort(kept)]
