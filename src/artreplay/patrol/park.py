"""`Park`: the folder in which a park's records, plans and outcomes are kept. It only ever grows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import date, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from artreplay.errors import InvalidFile, InvalidParameter
from artreplay.history import History
from artreplay.patrol.area import Bools
from artreplay.patrol.journal import Journal
from artreplay.patrol.plan import Plan, make_plan
from artreplay.patrol.samples import all_box_rows, box_samples
from artreplay.patrol.site import SITE_FILE, Site
from artreplay.patrol.waypoints import DIGITS, FORM, form_of, no_waypoints
from artreplay.replay import ArtificialReplay
from artreplay.replay.saving import write_whole

JOURNAL_FILE = "journal.jsonl"
_KEY = ("patrol", "day", "time", "waypoint", "category", "lon", "lat")  # rows that agree in these are the same


@dataclass(frozen=True)
class Added:
    """What became of records that were added: rows in the park that are new, and rows it had already."""

    new: int
    known: int


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
        self.site = Site.load(self.folder)
        self.journal = Journal(self.folder / JOURNAL_FILE)

    @classmethod
    def create(cls, folder: Path | str, site: Site) -> Park:
        """A new park folder; or the one that is there, if it is for the same site."""
        folder = Path(folder)
        if (folder / JOURNAL_FILE).exists():
            park = cls(folder)
            if park.site._document() != site._document():
                raise InvalidParameter(
                    f"{folder} was made with another site file: use that one ({folder / SITE_FILE}), or another folder"
                )
            return park
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InvalidFile(f"{folder} must be a park folder, an empty one or a new one: something else is there")
        try:
            for part in (folder, folder / "records", folder / "plans"):
                part.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidFile(f"{folder} cannot be made: {error.strerror or error}") from error
        site.save(folder)
        Journal(folder / JOURNAL_FILE).append("made", site=site.name)
        return cls(folder)

    # -- records ------------------------------------------------------------------------------------------------

    def add_records(self, table: Any, quality: Any = None, source: str = "") -> Added:
        """Keep the rows of a table of waypoints that the park does not have; the same table again changes nothing."""
        known = self._known(table)
        fresh = table.filter(pa.array(~known))
        if len(fresh):
            name = f"records/{_digest(fresh)}.parquet"
            write_whole(self.folder / name, lambda file: pq.write_table(fresh, file, compression="zstd"))
            report = {} if quality is None else {"quality": quality.to_dict()}
            self.journal.append("records", file=name, rows=len(fresh), source=source, **report)
            self.__dict__.pop("waypoints", None)
            self.__dict__.pop("samples", None)
        inside = np.asarray(table["inside"])
        return Added(int(pc.sum(fresh["inside"], min_count=0).as_py()), int((known & inside).sum()))

    @cached_property
    def waypoints(self) -> Any:
        """All waypoints, in the order in which they came in."""
        files = [self.folder / entry["file"] for entry in self.journal.of_kind("records")]
        try:
            tables = [pq.read_table(file) for file in files]
        except (OSError, pa.ArrowException) as error:
            raise InvalidFile(f"the records in {self.folder} cannot be read: {error}") from error
        for table in tables:
            if form_of(table.schema) != FORM:
                raise InvalidFile(
                    f"{self.folder} was made by another version of artreplay, which keeps records in another form "
                    f"({form_of(table.schema)}; this one has {FORM}): import the records again, into a new folder"
                )
        return pa.concat_tables(tables) if tables else no_waypoints()

    @cached_property
    def samples(self) -> tuple[History, Any]:
        """One sample per patrol, day and finest box, with a table that has a row for each of them."""
        return box_samples(self.waypoints, self.site)

    def _known(self, table: Any) -> Bools:
        if not len(self.waypoints):
            return np.zeros(len(table), np.bool_)
        return np.asarray(pc.is_in(_keys(table), value_set=_keys(self.waypoints)))

    def last_day(self) -> date:
        """The day of the latest record."""
        if not len(self.waypoints):
            raise InvalidParameter(f"{self.folder} has no records yet: import some first")
        latest: date = pc.max(self.waypoints.filter(self.waypoints["inside"])["day"]).as_py()
        return latest

    # -- plans --------------------------------------------------------------------------------------------------

    def plan(
        self, budget: float, places: int, start: date | None = None, now: datetime | None = None
    ) -> tuple[Plan, ArtificialReplay]:
        """Make a plan from all records and keep it, with the samples it used; and the policy that made it.

        It is for the days after the last record unless `start` says otherwise. Asked again with nothing new it is the
        plan that is there already.
        """
        first = self.last_day() + timedelta(days=1) if start is None else start
        moment = (now or datetime.now()).isoformat(timespec="seconds")
        history, rows = self.samples
        made, policy = make_plan(self.site, history, rows, budget=budget, places=places, start=first, made_at=moment)
        if made.plan_id in self.plans():
            return self.plans()[made.plan_id], policy
        used = np.setdiff1d(np.arange(len(history)), policy.unused_rows())
        name = f"plans/{made.plan_id}.json"
        document = json.dumps({"plan": made.to_dict(), "used_samples": used.tolist()}, ensure_ascii=False)
        write_whole(self.folder / name, lambda file: file.write(document.encode()))
        self.journal.append("plan", plan_id=made.plan_id, file=name, effort=made.effort, used=len(used))
        return made, policy

    def plans(self) -> dict[str, Plan]:
        """All plans by their names, in the order in which they were made."""
        return {entry["plan_id"]: self._read_plan(entry)[0] for entry in self.journal.of_kind("plan")}

    def used_samples(self, plan_id: str) -> list[int]:
        """The rows of the samples that a plan was made from."""
        entry = next((one for one in self.journal.of_kind("plan") if one["plan_id"] == plan_id), None)
        if entry is None:
            raise InvalidParameter(f"{self.folder} has no plan {plan_id!r}")
        return self._read_plan(entry)[1]

    def _read_plan(self, entry: dict[str, Any]) -> tuple[Plan, list[int]]:
        path = self.folder / entry["file"]
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            return Plan.from_dict(document["plan"]), document["used_samples"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InvalidFile(f"the plan {path} cannot be read: {error}") from error

    # -- what came of them --------------------------------------------------------------------------------------

    def record(self, plan: Plan, table: Any, quality: Any = None, source: str = "") -> Outcome:
        """Add the records of a plan's period, and note for each of its places what was done there, and found."""
        added = self.add_records(table, quality, source)
        visits = all_box_rows(self.waypoints, self.site)
        day = np.asarray(visits["day"]).astype("datetime64[D]")
        during = (day >= np.datetime64(plan.start)) & (day <= np.datetime64(plan.end))
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
        outcome = Outcome(plan.plan_id, tuple(done), float(effort[during & ~planned].sum()), added)
        noted = {"plan_id": plan.plan_id, "items": [asdict(one) for one in done], "elsewhere": outcome.elsewhere}
        if noted not in [_without_kind(entry) for entry in self.journal.of_kind("outcome")[-1:]]:
            self.journal.append("outcome", **noted)
        return outcome

    def outcomes(self) -> Iterable[dict[str, Any]]:
        """What came of the plans, in the order in which it was recorded."""
        return [_without_kind(entry) for entry in self.journal.of_kind("outcome")]


def _without_kind(entry: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name != "kind"}


def _keys(table: Any) -> Any:
    """One text for each row, equal where the rows are the same."""
    parts = [pc.fill_null(pc.cast(_rounded(table[name]), pa.string()), "") for name in _KEY]
    return pc.binary_join_element_wise(*parts, "\x1f")


def _rounded(column: Any) -> Any:
    """Positions to a centimetre; others as they are."""
    return pc.round(column, DIGITS) if pa.types.is_floating(column.type) else column


def _digest(table: Any) -> str:
    found = hashlib.blake2b(digest_size=8)
    for key in _keys(table).to_pylist():
        found.update(key.encode() + b"\n")
    return found.hexdigest()
