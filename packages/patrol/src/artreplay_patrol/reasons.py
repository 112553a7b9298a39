"""Why a place is in a plan, and what the park's visits say of rest, in sentences that a ranger understands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from artreplay_patrol.area import Bools
from artreplay_patrol.counts_in_words import amount, many
from artreplay_patrol.forecast import UNKNOWN, WEEK, Forecast, Visits

_BACK = 0.95  # a place that is thought to be back to more than this needs no word about rest
_MAX_ODDS = 99
_SEVERAL = 3  # places from which it is worth a word that they are all in one corner
_CORNER = 0.25  # of the side of the park
_EPOCH = date(1970, 1, 1).toordinal()


def date_of(day: int) -> date:
    """The date of a day since 1970."""
    return date.fromordinal(day + _EPOCH)


def day_of(when: date) -> int:
    """The day since 1970 of a date."""
    return when.toordinal() - _EPOCH


@dataclass(frozen=True)
class Told:
    """All there is to say of a box on the day of a forecast."""

    unit: str
    level: float  # the effort that chances are for
    visits: int  # so far
    finds: int  # of these, the ones that found something
    effort: float
    last_visit: str | None
    rate: float  # finds per unit of effort
    low: float  # the range that holds it in 8 of 10 such places
    high: float
    own_share: float  # of the forecast, from the box itself
    chance: float  # to find something with the effort
    beside: float  # the same in the boxes beside it, their mean
    average: float  # the same in the whole park
    met: float  # the share of what there is to find that is thought to be there after the last visits
    weeks_ago: int | None  # the last visit
    is_found: bool  # whether anything was ever found in the park

    @property
    def is_known(self) -> bool:
        """Whether the range is narrow enough to call the forecast one."""
        return self.high < UNKNOWN * self.low

    def sentence(self) -> str:
        """Why one would go there."""
        return " ".join([self._seen(), self._forecast(), self._chance(), *self._rest()])

    def _seen(self) -> str:
        if not self.visits:
            return "Nobody has walked here yet."
        alone = "with a find" if self.finds else "without a find"
        found = alone if self.visits == 1 else f"{self.finds:,} of them with a find"
        return f"{many(self.visits, 'visit')} so far, {found}, {amount(self.effort)} {self.unit} in all."

    def _forecast(self) -> str:
        around = f"{100 * (1.0 - self.own_share):.0f} % of it from the surroundings"
        source = "mostly from this box itself" if self.own_share > 0.5 else around
        range_ = f"between {self.low:.2g} and {self.high:.2g}"
        if not self.is_found:
            return "Nothing has been found in the park yet, and this is one of the places that were walked least."
        if not self.is_known:
            return f"So little is known that the true rate may be anything {range_} finds per {one_of(self.unit)}."
        return (
            f"Forecast: {self.rate:.2g} finds per {one_of(self.unit)}, {source}; in 8 of 10 such places it is {range_}."
        )

    def _chance(self) -> str:
        return (
            f"With {self.level:g} {self.unit} the chance to find something is {_percent(self.chance)}, in the boxes "
            f"beside it {_percent(self.beside)}, in an average box of the park {_percent(self.average)}."
        )

    def _rest(self) -> list[str]:
        if self.met >= _BACK:
            return []
        ago = "a visit nearby" if self.weeks_ago is None else f"the last visit, {_weeks(self.weeks_ago)},"
        return [f"After {ago} the place is thought to be back to {_percent(self.met)}."]


def told_of(forecast: Forecast, visits: Visits, mask: Bools, unit: str, box: int, level: float) -> Told:
    """What there is to say of a box; `visits` are those before the day of the forecast."""
    x, y = divmod(box, forecast.side)
    chances = forecast.chances([level])[..., 0]
    near = np.zeros(mask.shape, np.bool_)
    near[max(x - 1, 0) : x + 2, max(y - 1, 0) : y + 2] = True
    near[x, y] = False
    beside = chances[near & mask]
    here = visits.where(visits.box == box)
    low, high = forecast.range
    last = int(here.day.max()) if len(here.day) else None
    return Told(
        unit=unit,
        level=level,
        visits=len(here.box),
        finds=int(here.found.sum()),
        effort=float(here.effort.sum()),
        last_visit=None if last is None else date_of(last).isoformat(),
        rate=float(forecast.rate[x, y]),
        low=float(low[x, y]),
        high=float(high[x, y]),
        own_share=float(forecast.shares[-1, x, y]),
        chance=float(chances[x, y]),
        beside=float(beside.mean()) if len(beside) else float(chances[x, y]),
        average=float(chances[mask].mean()),
        met=float(forecast.met[forecast.likeliest, x, y]),
        weeks_ago=None if last is None else (forecast.day - last) // WEEK,
        is_found=bool(visits.found.any()),
    )


def belief_sentences(forecast: Forecast) -> list[str]:
    """What the visits say of the stories, and of the time of year if it matters."""
    said = [_belief(forecast)]
    if forecast.has_seasons:
        said.append(
            "In the records finds move with the time of year: visits of the same time of other years count most, and "
            "the ranges allow for a season that begins six weeks earlier or later."
        )
    return said


def _belief(forecast: Forecast) -> str:
    since = date_of(forecast.since)
    if not forecast.told and not forecast.told_by_records:
        return (
            f"The planner learns from visits since {since} whether places go quiet after a visit. There are none yet."
        )
    unchanged = float(forecast.belief[0])
    quiet = 1 + int(np.argmax(forecast.belief[1:])) if len(forecast.belief) > 1 else 0
    story = forecast.stories[quiet if unchanged < 0.5 else 0]
    odds = max(unchanged, 1.0 - unchanged) / max(min(unchanged, 1.0 - unchanged), 1e-9)
    said = f"more than {_MAX_ODDS}" if odds > _MAX_ODDS else f"{odds:.2g}"
    visits = f"The {many(forecast.told, 'visit')} since {since}"
    if forecast.told_by_records:
        visits = f"The records before {since}" + f" and the {many(forecast.told, 'visit')} since" * bool(forecast.told)
    make = "makes" if forecast.told == 1 and not forecast.told_by_records else "make"
    return f"{visits} {make} it {said} times as likely as not that {story}."


def spread_sentences(
    forecast: Forecast, mask: Bools, boxes: Sequence[int], levels: Sequence[float], side_km: float, unit: str
) -> list[str]:
    """If all places are near to each other: how large that corner is, and what the best place elsewhere promises."""
    x, y = np.divmod(np.asarray(boxes, np.int64), forecast.side)
    if len(boxes) < _SEVERAL or max(np.ptp(x), np.ptp(y)) >= forecast.side * _CORNER:
        return []
    wide = side_km / forecast.side * (1 + max(int(np.ptp(x)), int(np.ptp(y))))
    most = max(levels)
    chances = np.where(mask, forecast.chances([most])[..., 0], 0.0)
    here = float(chances[x, y].mean())
    near = int(forecast.side * _CORNER)
    chances[max(x.min() - near, 0) : x.max() + near + 1, max(y.min() - near, 0) : y.max() + near + 1] = 0.0
    said = f"All {len(boxes)} places lie within {wide:.2g} km of each other, because the forecast is highest there"
    if not chances.any():
        return [f"{said}."]
    elsewhere = _percent(float(chances.max()))
    return [
        f"{said}: with {most:g} {unit} the chance to find something is {_percent(here)} there on average, and "
        f"{elsewhere} at the best place in other parts of the park. To spread the places add --apart-km."
    ]


def one_of(unit: str) -> str:
    """A single one of a unit of effort."""
    return "hour" if unit == "hours" else unit


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.01 or share == 0.0 else "below 1 %"


def _weeks(count: int) -> str:
    return {0: "less than a week ago", 1: "a week ago"}.get(count, f"{count} weeks ago")
