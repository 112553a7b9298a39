"""`Park`: the folder in which a park's records, plans and outcomes are kept. It only ever grows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from artreplay.errors import InvalidFile, InvalidParameter
from artreplay.whole_files import write_whole
from artreplay_patrol.area import Bools
from artreplay_patrol.corrections import corrections, keys_of, of_days
from artreplay_patrol.counts_in_words import many
from artreplay_patrol.forecast import Forecast, Visits, forecast_of
from artreplay_patrol.journal import Journal
from artreplay_patrol.plan import Plan, Wish, make_plan
from artreplay_patrol.reasons import day_of
from artreplay_patrol.samples import all_box_rows, in_order
from artreplay_patrol.site import BOUNDARY_FILE, CHANGEABLE, SITE_FILE, Site
from artreplay_patrol.waypoints import FORM, form_of, no_waypoints

JOURNAL_FILE = "journal.jsonl"
_FOLDERS = ("records", "plans")
_TRIAL = "This plan is a trial: the park has records of its first day or of later ones, and does not keep it."


@dataclass(frozen=True)
class Added:
    """What became of records that were added: rows in the park that are new, and rows it had already."""

    new: int
    known: int
    replaced: int = 0  # days of patrols whose rows in the park went, because the import tells them otherwise
    gone: int = 0  # rows that were there and are in the park no more
    notes: tuple[str, ...] = ()

    def sentences(self, park: Path) -> list[str]:
        """What there is to say of it, beside the counts."""
        said = list(self.notes)
        if self.gone:
            said.append(
                f"this import corrects {many(self.replaced, 'day')} of patrols that the park had, and replaces them: "
                f"{many(self.gone, 'row')} went. artreplay patrol undo {park} takes the import back"
            )
        return said


@dataclass(frozen=True)
class Undone:
    """An import that was taken back."""

    source: str  # the name of its file or folder
    at: str  # when it was made
    rows: int  # that went
    back: int  # rows that it had replaced, and that are back


@dataclass(frozen=True)
class Done:
    """What was really done at a planned place; without a visit the effort is 0 and there is no finding."""

    item_id: str
    planned: float
    effort: float  # as walked
    visits: int  # patrols and days
    found: bool | None  # None without a visit: no data is not a zero


@dataclass(frozen=True)
class Outcome:
    """A plan beside what the records of its period say."""

    plan_id: str
    items: tuple[Done, ...]
    elsewhere: float  # effort at other places
    added: Added
    visits: int  # of patrols to boxes in the days of the plan, anywhere
    other_days: int  # new rows of days before the plan or after it


class Park:
    """A park folder: the site, the records that came in, the plans that went out, what was done and found.

    Everything that happens is a line in its journal, written after the files the line speaks of; what a crash leaves
    half done is not in the journal, and never happened.
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        if not (self.folder / JOURNAL_FILE).exists():
            raise InvalidFile(
                f"{self.folder} is not a park folder: make one with artreplay patrol import RECORDS --site site.yaml "
                f"-o {self.folder}"
            )
        self.journal = Journal(self.folder / JOURNAL_FILE)
        self.site_file = self.folder / next((entry["file"] for entry in self.journal.of_kind("site")[::-1]), SITE_FILE)
        self.site = Site.load(self.site_file)

    @classmethod
    def create(cls, folder: Path | str, site: Site) -> Park:
        """A new park folder; or the one that is there, if it is for the same site.

        What a site file says of plans may change in a park; what its records were read by may not.
        """
        folder = Path(folder)
        if (folder / JOURNAL_FILE).exists():
            cls(folder)._change_site(site)
            return cls(folder)
        if folder.exists() and not _is_unfinished(folder):
            raise InvalidFile(f"{folder} must be a park folder, an empty one or a new one: something else is there")
        try:
            for part in (folder, *(folder / name for name in _FOLDERS)):
                part.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidFile(f"{folder} cannot be made: {error.strerror or error}") from error
        site.save(folder)
        Journal(folder / JOURNAL_FILE).append("made", site=site.name)
        return cls(folder)

    def _change_site(self, site: Site) -> None:
        """Take over what may change in a site, as a file of its own that the journal names; refuse the rest."""
        old, new = self.site.document(), site.document()
        changed = [name for name in {**old, **new} if old.get(name) != new.get(name)]
        fixed = [name for name in changed if name not in CHANGEABLE]
        if site.unit != self.site.unit:
            fixed.append("unit of effort")
        if not site.area.is_like(self.site.area):
            fixed.append("boundary")
        if fixed:
            raise InvalidParameter(
                f"{self.folder} was made with another {' and another '.join(fixed)}: use what {self.site_file} says, "
                f"or another folder"
            )
        if changed:
            content = site.to_yaml()
            site.save_layers(self.folder)
            file = f"site-{hashlib.blake2b(content, digest_size=4).hexdigest()}.yaml"
            write_whole(self.folder / file, lambda opened: opened.write(content), private=True)
            self.journal.append("site", file=file, changed=changed)

    # -- records ------------------------------------------------------------------------------------------------

    def add_records(self, table: Any, quality: Any = None, source: str = "") -> Added:
        """Keep the rows of a table of waypoints that the park does not have; the same table again changes nothing."""
        found = corrections(self.waypoints, table)
        known = self._known(table)
        going = of_days(self.waypoints, found.replaced) if found.replaced else np.zeros(len(self.waypoints), np.bool_)
        fresh = table.filter(pa.array(~known | of_days(table, found.replaced)))
        leaving = self.waypoints.filter(pa.array(going))
        gone = len(leaving) - int(pc.sum(pc.is_in(keys_of(leaving), value_set=keys_of(table)), min_count=0).as_py())
        if len(fresh) or found.replaced:
            name = f"records/{_digest(fresh)}.parquet"
            write_whole(self.folder / name, lambda file: pq.write_table(fresh, file, compression="zstd"), private=True)
            report = {} if quality is None else {"quality": quality.to_dict()}
            replaced = {"replaces": found.replaced} if found.replaced else {}
            self.journal.append("records", file=name, rows=len(fresh), source=source, **replaced, **report)
            self._forget()
        inside = np.asarray(table["inside"])
        counts = int((~known & inside).sum()), int((known & inside).sum())
        return Added(*counts, len(found.replaced), gone, tuple(found.notes))

    def undo(self) -> Undone:
        """Take back the last import: its rows go, and what it replaced is back. The journal keeps both lines."""
        imports = self._imports()
        if not imports:
            raise InvalidParameter(f"{self.folder} has no import that could be taken back")
        last = imports[-1]
        with_it = len(self.waypoints)
        self.journal.append("undo", file=last["file"])
        self._forget()
        back = int(of_days(self.waypoints, last.get("replaces", [])).sum())
        rows = with_it - len(self.waypoints) + back
        return Undone(str(last.get("source", "")), str(last["at"]), rows, back)

    def _forget(self) -> None:
        """Read the records again when they are asked for."""
        for name in ("waypoints", "visits"):
            self.__dict__.pop(name, None)

    def _imports(self) -> list[dict[str, Any]]:
        """The imports that were not taken back, in the order in which they came."""
        stack: list[dict[str, Any]] = []
        for entry in self.journal.entries:
            if entry["kind"] == "records":
                stack.append(entry)
            elif entry["kind"] == "undo":
                stack.pop()
        return stack

    @cached_property
    def waypoints(self) -> Any:
        """All waypoints, in the order in which they came in."""
        found = no_waypoints()
        for entry in self._imports():
            if entry.get("replaces"):
                found = found.filter(pa.array(~of_days(found, [(patrol, day) for patrol, day in entry["replaces"]])))
            found = pa.concat_tables([found, self._read_records(self.folder / entry["file"])])
        return found

    def _read_records(self, file: Path) -> Any:
        try:
            table = pq.read_table(file)
        except (OSError, pa.ArrowException) as error:
            raise InvalidFile(f"the records in {self.folder} cannot be read: {error}") from error
        if form_of(table.schema) != FORM:
            raise InvalidFile(
                f"{self.folder} was made by another version of artreplay, which keeps records in another form "
                f"({form_of(table.schema)}; this one has {FORM}): import the records again, into a new folder"
            )
        return table

    @cached_property
    def visits(self) -> Any:
        """One row per patrol, day and finest box, in an order that only depends on which records there are."""
        return in_order(all_box_rows(self.waypoints, self.site))

    def _known(self, table: Any) -> Bools:
        if not len(self.waypoints):
            return np.zeros(len(table), np.bool_)
        return np.asarray(pc.is_in(keys_of(table), value_set=keys_of(self.waypoints)))

    def last_day(self) -> date:
        """The day of the latest record."""
        if not len(self.waypoints):
            raise InvalidParameter(f"{self.folder} has no records yet: import some first")
        latest: date = pc.max(self.waypoints.filter(self.waypoints["inside"])["day"]).as_py()
        return latest

    # -- plans --------------------------------------------------------------------------------------------------

    def plan(self, wish: Wish, start: date | None = None, now: datetime | None = None) -> tuple[Plan, Forecast]:
        """Make a plan from all records and keep it; and what it was made from.

        It is for the days after the last record unless `start` says otherwise. Asked again with nothing new it is the
        plan that is there already. A plan whose first day is in the records already is a trial, and nothing is kept.
        """
        day = self.last_day() + timedelta(days=1) if start is None else start
        plans = self.plans()
        made, forecast = make_plan(self.site, self.visits, wish, day, self._first_day(day, plans))
        if made.plan_id in plans:
            return plans[made.plan_id], forecast
        if len(self.waypoints) and day <= self.last_day():
            return replace(made, notes=(_TRIAL, *made.notes)), forecast
        name = f"plans/{made.plan_id}.json"
        document = json.dumps({"plan": made.to_dict()}, ensure_ascii=False)
        write_whole(self.folder / name, lambda file: file.write(document.encode()), private=True)
        moment = (now or datetime.now()).isoformat(timespec="seconds")
        self.journal.append("plan", plan_id=made.plan_id, file=name, made_at=moment, effort=made.effort)
        return made, forecast

    def forecast(self) -> Forecast:
        """What the records say of every box on the day after the last of them."""
        day = self.last_day() + timedelta(days=1)
        visits = Visits.of(self.visits, self.site.finest)
        return forecast_of(visits, self.site.finest, day_of(self._first_day(day, self.plans())), day_of(day))

    @staticmethod
    def _first_day(day: date, plans: Mapping[str, Plan]) -> date:
        """The first day that any plan of the park is for: from there on, visits tell what they do to a place."""
        return min([day, *(date.fromisoformat(plan.start) for plan in plans.values())])

    def plans(self) -> dict[str, Plan]:
        """All plans by their names, in the order in which they were made."""
        return {entry["plan_id"]: self._read_plan(entry) for entry in self.journal.of_kind("plan")}

    def _read_plan(self, entry: dict[str, Any]) -> Plan:
        path = self.folder / entry["file"]
        try:
            return Plan.from_dict(json.loads(path.read_text(encoding="utf-8"))["plan"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InvalidFile(f"the plan {path} cannot be read: {error}") from error

    # -- what came of them --------------------------------------------------------------------------------------

    def record(self, plan: Plan, table: Any, quality: Any = None, source: str = "") -> Outcome:
        """Add the records of a plan's period, and note for each of its places what was done there, and found."""
        fresh = table.filter(pc.and_(pa.array(~self._known(table)), table["inside"]))
        added = self.add_records(table, quality, source)
        visits = self.visits
        during = _during(plan, visits)
        boxes = np.stack([np.asarray(visits["box_x"]), np.asarray(visits["box_y"])], axis=1)
        effort, observed = np.asarray(visits["effort"]), np.asarray(visits["observed"])
        planned = np.zeros(len(boxes), np.bool_)
        done = []
        for item in plan.items:
            here = during & (boxes == item.box).all(axis=1)
            planned |= here
            count = int(here.sum())
            found = bool(observed[here].any()) if count else None
            done.append(Done(item.item_id, item.level, float(effort[here].sum()), count, found))
        elsewhere, other_days = float(effort[during & ~planned].sum()), int((~_during(plan, fresh)).sum())
        outcome = Outcome(plan.plan_id, tuple(done), elsewhere, added, int(during.sum()), other_days)
        noted = {"plan_id": plan.plan_id, "items": [asdict(one) for one in done], "elsewhere": outcome.elsewhere}
        earlier = [entry for entry in self.outcomes() if entry["plan_id"] == plan.plan_id]
        if noted not in earlier[-1:]:
            self.journal.append("outcome", **noted)
        return outcome

    def outcomes(self) -> Iterable[dict[str, Any]]:
        """What came of the plans, in the order in which it was recorded."""
        return [_content(entry) for entry in self.journal.of_kind("outcome")]


def _is_unfinished(folder: Path) -> bool:
    """Return whether a folder is empty, or holds only what an unfinished park left there."""
    try:
        names = {path.name for path in folder.iterdir() if not (path.name.startswith(".") and path.suffix == ".part")}
        inner = [path for part in _FOLDERS if part in names for path in (folder / part).iterdir()]
    except OSError:  # not a folder, or none we may look into
        return False
    rest = names - set(_FOLDERS)
    rest -= {name for name in rest if name.startswith("layer-")}
    begun = not rest or (rest <= {SITE_FILE, BOUNDARY_FILE} and names >= set(_FOLDERS))  # folders are made first
    return begun and not inner


def _during(plan: Plan, rows: Any) -> Bools:
    """Which rows are of the days of a plan."""
    day = np.asarray(rows["day"]).astype("datetime64[D]")
    found: Bools = (day >= np.datetime64(plan.start)) & (day <= np.datetime64(plan.end))
    return found


def _content(entry: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name not in ("kind", "at", "by")}


def _digest(table: Any) -> str:
    found = hashlib.blake2b(digest_size=8)
    for key in keys_of(table).to_pylist():
        found.update(key.encode() + b"\n")
    return found.hexdigest()
