"""`View`: what a map shows, in the unit square. Pictures and pages are drawn from it and from nothing else."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from artreplay.compiling import Floats, Ints
from artreplay.patrol.area import Bools
from artreplay.patrol.plan import Plan, blurred, blurred_points
from artreplay.patrol.site import Site
from artreplay.replay import ArtificialReplay, Cell

MOST_DOTS = 4_000  # of each kind on one map
_LENGTHS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200)  # km


@dataclass(frozen=True)
class View:
    """A park on a map: what was done and found in each finest box; with a plan, also what the planner makes of it."""

    site: Site
    mask: Bools  # (side, side): the boxes that overlap the area; x first
    effort: Floats  # (side, side): of all visits together
    visits: Ints
    finds: Ints  # visits with a find
    used: Floats  # the samples the plan was made from, thinned
    unused: Floats
    n_used: int
    n_unused: int
    cells: tuple[Cell, ...] = ()
    plan: Plan | None = None
    places: Floats | None = None  # of the plan's items

    @property
    def scale_km(self) -> float:
        """A round length for the scale of a map: a quarter of the square at most."""
        return max(size for size in _LENGTHS if size <= max(self.site.area.side_km / 4.0, _LENGTHS[0]))

    @property
    def coverage(self) -> float:
        """The share of the area's boxes that was ever visited."""
        return float((self.visits[self.mask] > 0).mean())


def view_of(
    site: Site, rows: Any, plan: Plan | None = None, policy: ArtificialReplay | None = None, blur_m: float = 0.0
) -> View:
    """The view of a park from its samples' rows; with a plan and the policy that made it, of both.

    With `blur_m` positions of samples and of places are rounded, as they are in the plan's files.
    """
    side = site.finest
    box = np.asarray(rows["box_x"]) * side + np.asarray(rows["box_y"])
    observed = np.asarray(rows["observed"]).astype(np.float64)
    effort, finds = (
        np.bincount(box, weights, side * side).reshape(side, side) for weights in (np.asarray(rows["effort"]), observed)
    )
    visits = np.bincount(box, minlength=side * side).reshape(side, side)
    points = np.stack([np.asarray(rows["x"]), np.asarray(rows["y"])], axis=1)
    is_used = np.zeros(len(points), np.bool_)
    if policy is not None:
        is_used[:] = True
        is_used[policy.unused_rows()] = False
    dots = [_thinned(blurred_points(points[which], site, blur_m)) for which in (is_used, ~is_used)]
    counts = (int(is_used.sum()), int((~is_used).sum()))
    made = View(
        site=site,
        mask=site.area.mask(side),
        effort=effort.astype(np.float64),
        visits=visits,
        finds=finds.astype(np.int64),
        used=dots[0],
        unused=dots[1],
        n_used=counts[0],
        n_unused=counts[1],
    )
    if plan is None or policy is None:
        return made
    shown = blurred(plan, site, blur_m)
    places = site.area.to_unit([item.lon for item in shown.items], [item.lat for item in shown.items])
    return replace(made, cells=tuple(policy.cells()), plan=shown, places=places)


def corners(cell: Cell) -> tuple[tuple[float, float], tuple[float, float]]:
    """The south-west and the north-east corner of a cell."""
    (west, south), (east, north) = cell.low or (0.0, 0.0), cell.high or (1.0, 1.0)
    return (west, south), (east, north)


def _thinned(points: Floats) -> Floats:
    """At most so many points, always the same ones."""
    if len(points) <= MOST_DOTS:
        return points
    kept = np.random.default_rng(0).permutation(len(points))[:MOST_DOTS]
    return points[np.sort(kept)]
