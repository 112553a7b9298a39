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
from artreplay.algorithms.bonus import practical
from artreplay.errors import InvalidFile, InvalidParameter, checked_count, checked_number
from artreplay.history import Allocation, History
from artreplay.patrol.site import Site
from artreplay.replay import ArtificialReplay, Cell

_ROUNDS = 52  # a year of weeks; the bonus in use does not depend on it
_BONUS = practical(0.1)
PLANNED = "item_id="  # marks a place of a plan, so that one a device brings home again is not taken for a find


@dataclass(frozen=True)
class Item:
    """One place of a plan. `count` and `mean` are of the cell it lies in, at its level; `visits` of its own box."""

    item_id: str
    number: int  # from 1
    lon: float
    lat: float
    level: float  # the effort, in the unit of the plan
    index: float  # how good the place may still be, from 0 to 1
    mean: float | None  # share of visits with a find; None without a visit
    count: int
    visits: int
    finds: int
    box: tuple[int, int]  # the finest box, counted from the south-west corner of the square
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
            items = tuple(Item(**{**item, "box": tuple(item["box"])}) for item in document["items"])
            return cls(**{**document, "items": items})
        except (KeyError, TypeError) as error:
            raise InvalidFile(f"this is not a plan: {error}") from error


def base_for(site: Site, budget: float, places: int) -> TreeAllocation:
    """The algorithm that plans: a tree for each level, the exact choice, and only boxes that overlap the area."""
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
        horizon=_ROUNDS,
        epsilon=1.0 / site.finest,
        bonus=_BONUS,
        mask=site.area.mask(site.finest),
    )


def doubt(count: int) -> float:
    """How much of an index can be lack of knowledge: all of it without samples, less the more there are."""
    return 1.0 if count == 0 else min(1.0, math.sqrt(_BONUS.scale(_ROUNDS) / count))


def choose(site: Site, history: History, budget: float, places: int) -> tuple[ArtificialReplay, list[Allocation]]:
    """The places to go to by what was logged, and the policy that chose them."""
    policy = ArtificialReplay(base_for(site, budget, places), history)
    return policy, policy.ask()


def make_plan(
    site: Site, history: History, rows: Any, *, budget: float, places: int, start: date, made_at: str
) -> tuple[Plan, ArtificialReplay]:
    """The plan for a period that starts on a day, from samples and the rows that `box_samples` gives with them.

    The same samples and the same parameters give the same plan, and the same `plan_id`.
    """
    policy, action = choose(site, history, budget, places)
    plan_id = _name_of(site, history, budget, places, start)
    cells = policy.cells()
    average = float(history.rewards.mean()) if len(history) else math.nan
    boxes = np.stack([np.asarray(rows["box_x"]), np.asarray(rows["box_y"])], axis=1)
    ordered = sorted(action, key=lambda unit: (-unit.level, -_cell_of(cells, unit).index))
    items = []
    for number, unit in enumerate(ordered, start=1):
        box = (int(unit.point[0] * site.finest), int(unit.point[1] * site.finest))
        here = (boxes == box).all(axis=1)
        cell = _cell_of(cells, unit)
        point = site.area.point_in([at / site.finest for at in box], [(at + 1) / site.finest for at in box])
        lon, lat = site.area.to_lonlat(point)[0].tolist()
        visits, finds = int(here.sum()), int(history.rewards[here].sum())
        why = _reason(cell, visits, finds, average, site)
        mean = None if cell.count == 0 else cell.mean
        numbers = (unit.level, cell.index, mean, cell.count, visits, finds)
        items.append(Item(f"{plan_id}-{number:02d}", number, lon, lat, *numbers, box, why))
    when = (made_at, start.isoformat(), site.period, site.unit)
    plan = Plan(plan_id, site.name, *when, budget, places, len(history), policy.used, tuple(items))
    return plan, policy


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


def _reason(cell: Cell, visits: int, finds: int, average: float, site: Site) -> str:
    """Why a place was chosen: for what was found around it, or because more than that is still in doubt."""
    low, high = cell.low or (0.0,), cell.high or (1.0,)
    width = (high[0] - low[0]) * site.area.side_km
    effort = f"{cell.level:g} {site.unit}"
    here = f"{_times(visits, 'visit')} here so far, {finds} with a find" if visits else "no visit here so far"
    around = f"in the {width:.2g} × {width:.2g} km around it"
    if cell.count == 0:
        return f"Little known: nobody has put {effort} into a place {around}; {here}."
    if cell.mean > doubt(cell.count):
        share = f"{100 * cell.mean:.0f} % of {_times(cell.count, 'visit')} with {effort} {around} found something"
        return f"High finds: {share}, {100 * average:.0f} % in the whole park; {here}."
    few = f"only {_times(cell.count, 'visit')} with {effort} {around}"
    return f"Little known: {few}, so that it may be worth up to {100 * cell.index:.0f} %; {here}."


def _times(count: int, thing: str) -> str:
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"


def checked_blur(blur_m: float) -> float:
    """How far positions are to be rounded, in metres."""
    if not 0.0 <= checked_number("blur-m", blur_m) < math.inf:
        raise InvalidParameter(f"blur-m must be 0 or more metres, got {blur_m!r}")
    return float(blur_m)


def blurred(plan: Plan, site: Site, blur_m: float) -> Plan:
    """The plan with positions rounded to the middle of squares of so many metres; 0 changes nothing."""
    if checked_blur(blur_m) == 0.0 or not plan.items:
        return replace(plan, blur_m=0.0)
    points = site.area.to_unit([item.lon for item in plan.items], [item.lat for item in plan.items])
    rounded = site.area.to_lonlat(blurred_points(points, site, blur_m)).tolist()
    items = tuple(replace(item, lon=lon, lat=lat) for item, (lon, lat) in zip(plan.items, rounded, strict=True))
    return replace(plan, items=items, blur_m=float(blur_m))


def blurred_points(points: Any, site: Site, blur_m: float) -> Any:
    """Points of the unit square, rounded in the same way."""
    if checked_blur(blur_m) == 0.0:
        return points
    step = blur_m / (1000.0 * site.area.side_km)
    return (np.floor(np.asarray(points) / step) + 0.5) * step
