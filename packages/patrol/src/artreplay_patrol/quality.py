"""`Quality`: what became of the records on the way in, in numbers and in sentences a ranger understands."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

import numpy as np
import pyarrow.compute as pc

from artreplay_patrol.counts_in_words import many as _many
from artreplay_patrol.counts_in_words import quoted
from artreplay_patrol.samples import all_box_rows, walked_waypoints
from artreplay_patrol.site import Site, proposed_levels

_FIRST_CREDIBLE = date(2000, 1, 1)  # satellites were of little use to hikers before


@dataclass(frozen=True)
class Reading:
    """What became of the rows on the way to the table."""

    rows: int  # read
    planned: int  # places of a plan that a device brought back
    duplicates: int
    without_position: int  # none, or (0, 0)
    bad_days: int
    bad_times: int  # these rows stay
    outside: int  # the boundary
    without_patrol: int  # these rows stay
    in_utc: bool  # whether times are those of UTC, because nobody says which zone the park has
    files: tuple[str, ...]  # what each of them was taken for
    notes: tuple[str, ...]  # what else there is to say about the files


@dataclass(frozen=True)
class Quality(Reading):
    """The data-quality report of one import."""

    broken_tracks: int
    waypoints: int  # distinct ones, kept
    observations: int  # waypoints at which something that counts was seen
    patrols: int
    days: int
    first_day: str | None
    last_day: str | None
    after_today: int  # rows
    before_2000: int  # rows
    km: float
    hours: float
    unit: str
    share_visited: float  # of the finest boxes of the area
    share_in_busiest_tenth: float  # of the waypoints, in the tenth of these boxes with the most
    samples_per_level: tuple[tuple[float, int], ...]
    proposed_levels: tuple[float, ...]  # that would fit the efforts of these visits
    unknown_effort: int  # visits
    unnamed_categories: tuple[str, ...]  # seen in the records, not named in the site file
    without_times: int  # days of patrols that have no times
    loose: int  # rows without a time on days that have times

    def to_dict(self) -> dict[str, Any]:
        """The numbers, for a JSON file."""
        return asdict(self) | {"samples_per_level": {f"{level:g}": count for level, count in self.samples_per_level}}

    def sentences(self) -> list[str]:
        """The report, one sentence a line, what is unusual last; it names no place."""
        said = [
            *self.files,
            f"{_many(self.rows, 'row')} read",
            f"{_many(self.waypoints, 'waypoint')} of {_many(self.patrols, 'patrol')} kept",
            f"{_many(self.days, 'day')}" + (f", from {self.first_day} to {self.last_day}" if self.days else ""),
            f"{self.km:,.0f} km" + (f" in {self.hours:,.0f} hours" if self.hours > 0.0 else "") + " walked",
            f"{_many(self.observations, 'waypoint')} with an observation that counts",
            f"{_share(self.share_visited)} of the area was ever visited; of the rest nothing is known",
            f"the busiest tenth of the area has {_share(self.share_in_busiest_tenth)} of the waypoints",
            "visits (one patrol in one box on one day) by the nearest level of effort: "
            + ", ".join(f"{count:,} at {level:g} {self.unit}" for level, count in self.samples_per_level),
            self._fitting(),
        ]
        return said + self._losses() + self.warnings() + self.doubts()

    def _fitting(self) -> str:
        if len(self.proposed_levels) == 1:
            return f"one level of effort fits these visits: {self.proposed_levels[0]:g} {self.unit}"
        return (
            f"levels of effort that fit these visits are {', '.join(f'{level:g}' for level in self.proposed_levels)} "
            f"{self.unit}: in round numbers, half of them have no more than the first, 19 of 20 no more than the last"
        )

    def _losses(self) -> list[str]:
        return [
            f"{_many(count, 'row')} {words}"
            for count, words in (
                (self.duplicates, "left out: said the same as another (one sighting per team member, say)"),
                (self.without_position, "left out: no position that can be read, or (0, 0)"),
                (self.bad_days, "left out: no day that can be read"),
                (self.bad_times, "kept without a time, because it cannot be read"),
                (self.outside, "lay outside the boundary and count for nothing"),
            )
            if count
        ]

    def warnings(self) -> list[str]:
        """What is odd about the records."""
        said = []
        if self.planned:
            said.append(f"{_many(self.planned, 'row')} left out: places of a plan that the device brought back")
        if self.after_today:
            said.append(
                f"warning: {_many(self.after_today, 'row')} of days after today, the last of them {self.last_day}: is "
                "that date right? The next plan would be for the days after it"
            )
        if self.before_2000:
            said.append(
                f"warning: {_many(self.before_2000, 'row')} of days before 2000, the first of them {self.first_day}: "
                "is that date right? A device whose clock was never set writes 1970 or 1980"
            )
        if self.without_patrol:
            said.append(
                f"warning: {_many(self.without_patrol, 'row')} without the name of a patrol: all of a day are taken to "
                "be of one patrol"
            )
        said += [f"warning: {note}" for note in self.notes]
        if self.in_utc:
            said.append(
                "warning: times are in UTC, as devices write them, and so are days: say which zone the park has, for "
                "example time_zone: Africa/Kampala in the site file"
            )
        if self.broken_tracks:
            said.append(f"tracks were broken at {_many(self.broken_tracks, 'place')}: too far or too fast to be walked")
        if self.without_times:
            hours = ", and no effort in hours" if self.unit == "hours" else ""
            said.append(f"{_many(self.without_times, 'day')} of patrols without times: no speeds were checked{hours}")
        if self.loose:
            said.append(
                f"{_many(self.loose, 'row')} without a time on days that have times: what was seen there counts, "
                "the way there does not"
            )
        if self.unknown_effort:
            said.append(
                f"{_many(self.unknown_effort, 'visit')} had no times to tell the effort, and are no evidence for plans"
            )
        if self.unnamed_categories:
            some = ", ".join(quoted(one)[1:-1] for one in self.unnamed_categories[:8]) + (
                ", ..." if len(self.unnamed_categories) > 8 else ""
            )
            said.append(f"warning: categories the site file does not name, which do not count: {some}")
        return said

    def doubts(self) -> list[str]:
        """What makes one doubt the site file, if the records are of more than a few patrols."""
        said = []
        empty = [f"{level:g} {self.unit}" for level, count in self.samples_per_level if level > 0.0 and not count]
        if empty:
            said.append(
                f"no visit had an effort of {' or '.join(empty)}: a plan may still ask for it, and what it "
                "promises then comes from shorter or longer visits"
            )
        if self.waypoints and not self.observations:
            said.append("warning: nothing that counts was ever observed: are the observations of the site file right?")
        return said


def quality_of(table: Any, site: Site, reading: Reading) -> Quality:
    """The report on a table of waypoints, and on how it was read."""
    found = walked_waypoints(table, site)
    joined, km, hours = found.segments.joined, found.segments.km, found.segments.hours
    visits = all_box_rows(table, site, found)
    table = table.filter(table["inside"])
    days = table["day"].unique().to_pylist()
    levels = np.asarray(visits["level"].fill_null(np.nan))
    counts = tuple((level, int((levels == level).sum())) for level in site.levels)
    visited, busiest = _coverage(visits, site)
    categories = [text for text in table["category"].unique().to_pylist() if text is not None]
    timed = table.group_by(["patrol", "day"]).aggregate([("time", "count"), ([], "count_all")])
    lacking = timed.filter(pc.equal(timed["time_count"], 0))
    return Quality(
        **asdict(reading),
        broken_tracks=int(found.segments.broken.sum()),
        waypoints=len(found.row),
        observations=int(found.observed.sum()),
        patrols=len(table["patrol"].unique()),
        days=len(days),
        first_day=str(min(days)) if days else None,
        last_day=str(max(days)) if days else None,
        after_today=int(pc.sum(pc.greater(table["day"], date.today()), min_count=0).as_py()),
        before_2000=int(pc.sum(pc.less(table["day"], _FIRST_CREDIBLE), min_count=0).as_py()),
        km=float(km[joined].sum()),
        hours=float(np.nansum(hours[joined])),
        unit=site.unit,
        share_visited=visited,
        share_in_busiest_tenth=busiest,
        samples_per_level=counts,
        proposed_levels=proposed_levels(visits["effort"]),
        unknown_effort=int(np.isnan(levels).sum()),
        unnamed_categories=tuple(sorted({one for text in categories for one in site.unnamed(text)})),
        without_times=len(lacking),
        loose=table["time"].null_count - (pc.sum(lacking["count_all"]).as_py() or 0),
    )


def _coverage(visits: Any, site: Site) -> tuple[float, float]:
    """The share of the boxes of the area that were visited, and the share of the waypoints in the busiest tenth."""
    mask = site.area.mask(site.finest).ravel()
    box = np.asarray(visits["box_x"]) * site.finest + np.asarray(visits["box_y"])
    waypoints = np.sort(np.bincount(box, np.asarray(visits["waypoints"]), site.finest**2)[mask])[::-1]
    if waypoints.sum() == 0:
        return 0.0, 0.0
    visited = np.bincount(box, minlength=site.finest**2)[mask] > 0
    tenth = max(1, round(len(waypoints) / 10))
    return float(visited.mean()), float(waypoints[:tenth].sum() / waypoints.sum())


def _share(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.1 or share == 0.0 else f"{100 * share:.1f} %"
