"""`Plan`: where to go in the next period and with what effort, each place with the reason why."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, timedelta
from typing import Any

import numpy as np

from artreplay.algorithms import TreeAllocation
from artreplay.errors import InvalidFile, InvalidParameter, checked_count, checked_number
from artreplay.history import Allocation, History
from artreplay.patrol.area import Bools
from artreplay.patrol.reasons import BONUS, ROUNDS, Seen, reason, seen_around
from artreplay.patrol.site import Site
from artreplay.replay import ArtificialReplay, Cell

_LEAST_INSIDE = 0.01  # of a box, or of the largest overlap where the park is so narrow that all are small
PLANNED = "item_id="  # marks a place of a plan, so that one a device brings home again is not taken for a find


@dataclass(frozen=True)
class Item:
    """One place of a plan, with what the records say of it and what its index was made from.

    The index is of the cell the place lies in, a square of `box_km`; `box_visits` are those in it with the effort of
    the place, `wider_visits` those in the rest of the smallest square around it that has any. The index counts the
    former and, of the latter and of squares still wider, those taken in before the cell was split off:
    `index_count` in all, a share `index_mean` of them with a find.
    """

    item_id: str
    number: int  # from 1
    lon: float
    lat: float
    level: float  # the effort, in the unit of the plan
    index: float  # how good the place may still be, from 0 to 1
    index_mean: float | None  # None without a visit
    index_count: int
    box_km: float
    box_visits: int
    box_finds: int
    wider_km: float | None  # None if nowhere else in the park a visit had this effort
    wider_visits: int
    wider_finds: int
    visits: int  # in the finest box, with any effort
    finds: int
    box: tuple[int, int] | None  # the finest box, counted from the south-west corner of the square; None if blurred
    why: str


@dataclass(frozen=True)
class Plan:
    """Places for one period that share a budget of effort."""

    plan_id: str
    site: str
    made_at: str
    start: str  # the first day
    days: int
    unit: str
    budget: float
    places: int
    samples: int  # in the records
    used: int  # of these, the ones the plan was made from
    items: tuple[Item, ...]
    blur_m: float = 0.0  # how far positions are rounded, in metres

    @property
    def effort(self) -> float:
        """The effort of all places together."""
        return math.fsum(item.level for item in self.items)

    @property
    def end(self) -> str:
        """The last day."""
        return (date.fromisoformat(self.start) + timedelta(days=self.days - 1)).isoformat()

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain values, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, document: Any) -> Plan:
        """The plan that `to_dict` gave."""
        try:
            items = tuple(Item(**{**item, "box": item["box"] and tuple(item["box"])}) for item in document["items"])
            return cls(**{**document, "items": items})
        except (KeyError, TypeError) as error:
            raise InvalidFile(f"this is not a plan: {error}") from error


def choosable(site: Site) -> Bools:
    """The finest boxes a plan may choose: those that overlap the area by more than a sliver nobody could patrol."""
    return site.area.mask(site.finest, least=_LEAST_INSIDE)


def base_for(site: Site, budget: float, places: int) -> TreeAllocation:
    """The algorithm that plans: a tree for each level, the exact choice, and only boxes of the area."""
    least = min(level for level in site.levels if level > 0.0)
    if not checked_number("the budget", budget) >= least:
        raise InvalidParameter(
            f"the budget must pay for one place at the smallest level, {least:g} {site.unit}, got {budget:g}"
        )
    return TreeAllocation(
        2,
        levels=site.levels,
        budget=budget,
        max_units=min(checked_count("places", places), site.finest**2),
        horizon=ROUNDS,
        epsilon=1.0 / site.finest,
        bonus=BONUS,
        mask=choosable(site),
    )


def choose(site: Site, history: History, budget: float, places: int) -> tuple[ArtificialReplay, list[Allocation]]:
    """The places to go to by what was logged, and the policy that chose them."""
    policy = ArtificialReplay(base_for(site, budget, places), history)
    return policy, policy.ask()


def make_plan(
    site: Site, history: History, visits: Any, *, budget: float, places: int, start: date, made_at: str
) -> tuple[Plan, ArtificialReplay]:
    """The plan for a period that starts on a day, from samples and all visits (the rows that `all_box_rows` gives).

    The same samples and the same parameters give the same plan, and the same `plan_id`.
    """
    policy, action = choose(site, history, budget, places)
    plan_id = _name_of(site, history, budget, places, start)
    cells = policy.cells()
    ordered = sorted(action, key=lambda unit: (-unit.level, -_cell_of(cells, unit).index))
    items = tuple(
        _item(f"{plan_id}-{number:02d}", number, unit.point, _cell_of(cells, unit), site, history, visits)
        for number, unit in enumerate(ordered, start=1)
    )
    when = (made_at, start.isoformat(), site.period, site.unit)
    return Plan(plan_id, site.name, *when, budget, places, len(history), policy.used, items), policy


def _item(
    item_id: str, number: int, point: Sequence[float], cell: Cell, site: Site, history: History, visits: Any
) -> Item:
    """A chosen place with all there is to say about it."""
    box = (int(point[0] * site.finest), int(point[1] * site.finest))
    at_place = (np.asarray(visits["box_x"]) == box[0]) & (np.asarray(visits["box_y"]) == box[1])
    finds = int(np.asarray(visits["observed"])[at_place].sum())
    place = Seen(site.area.side_km / site.finest, int(at_place.sum()), finds)
    here, wider = seen_around(cell, history, site.area.side_km)
    at_level = history.rewards[history.levels == cell.level]
    average = float(at_level.mean()) if len(at_level) else math.nan
    lon, lat = site.area.place_in([at / site.finest for at in box], [(at + 1) / site.finest for at in box])
    return Item(
        item_id=item_id,
        number=number,
        lon=lon,
        lat=lat,
        level=float(cell.level or 0.0),
        index=cell.index,
        index_mean=None if cell.count == 0 else cell.mean,
        index_count=cell.count,
        box_km=here.km,
        box_visits=here.visits,
        box_finds=here.finds,
        wider_km=None if wider is None else wider.km,
        wider_visits=0 if wider is None else wider.visits,
        wider_finds=0 if wider is None else wider.finds,
        visits=place.visits,
        finds=place.finds,
        box=box,
        why=reason(cell, here, wider, place, average, site),
    )


def _name_of(site: Site, history: History, budget: float, places: int, start: date) -> str:
    """A short name that no other plan of the park has."""
    known = history.fingerprint
    parts = [start.isoformat(), budget, places, site.levels, site.finest, site.period, known.rows]
    digest = hashlib.blake2b(json.dumps(parts).encode() + known.digests.tobytes(), digest_size=3).hexdigest()
    return f"{start:%y%m%d}-{digest}"


def _cell_of(cells: Sequence[Cell], unit: Allocation) -> Cell:
    """The cell a chosen place lies in."""
    return next(
        cell
        for cell in cells
        if cell.level == unit.level
        and all(low <= x < high for low, x, high in zip(cell.low or (), unit.point, cell.high or (), strict=True))
    )


def checked_blur(blur_m: float, site: Site) -> float:
    """How far positions are to be rounded, in metres."""
    side = 1000.0 * site.area.side_km
    if not 0.0 <= checked_number("blur-m", blur_m) <= side:
        raise InvalidParameter(f"blur-m must be from 0 to {side:.0f} metres, the width of the park, got {blur_m!r}")
    return float(blur_m)


def squares_for(site: Site, blur_m: float) -> int:
    """How many squares of at least so many metres lie along the side of the area: a power of two.

    So they are boxes of the grid, or parts of them, and no two roundings together say more than one.
    """
    return 1 << int(math.log2(1000.0 * site.area.side_km / checked_blur(blur_m, site)))


def blurred(plan: Plan, site: Site, blur_m: float) -> Plan:
    """The plan with places only known to a square of at least so many metres; 0 changes nothing.

    Each goes to the middle of its square, or to another point of it that is the same for all, if that lies outside.
    """
    if checked_blur(blur_m, site) == 0.0 or not plan.items:
        return replace(plan, blur_m=0.0)
    side = squares_for(site, blur_m)
    points = site.area.to_unit([item.lon for item in plan.items], [item.lat for item in plan.items])
    items = []
    for item, (x, y) in zip(plan.items, np.floor(points * side).tolist(), strict=True):
        lon, lat = site.area.place_in((x / side, y / side), ((x + 1) / side, (y + 1) / side))
        items.append(replace(item, lon=lon, lat=lat, box=None))
    return replace(plan, items=tuple(items), blur_m=float(blur_m))


def blurred_points(points: Any, site: Site, blur_m: float) -> Any:
    """Points of the unit square, each in the middle of such a square."""
    if checked_blur(blur_m, site) == 0.0:
        return points
    side = squares_for(site, blur_m)
    return (np.minimum(np.floor(np.asarray(points) * side), side - 1) + 0.5) / side
