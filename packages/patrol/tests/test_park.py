"""The park folder: nothing is kept twice, nothing is lost, and what nobody visited is not a zero."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import shapely
import shapely.affinity
from walks import BOUNDARY, FIRST, bay_park, bay_site, walks

from artreplay.errors import InvalidFile, InvalidParameter
from artreplay_patrol import Area
from artreplay_patrol import park as parks
from artreplay_patrol import site as sites
from artreplay_patrol.park import JOURNAL_FILE, Park
from artreplay_patrol.plan import Wish
from artreplay_patrol.readers import read_records
from artreplay_patrol.samples import samples_of
from artreplay_patrol.view import view_of
from artreplay_patrol.writers import write_plan

NOW = datetime(2016, 5, 1, 12)


@pytest.fixture
def park(tmp_path):
    return bay_park(tmp_path / "park")


def snapshot(folder):
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_the_same_records_twice_change_nothing(park):
    before = snapshot(park.folder)
    again = Park(park.folder)
    added = again.add_records(walks(park.site))
    assert (added.new, added.known) == (0, len(park.waypoints))
    assert snapshot(park.folder) == before


def test_an_export_that_repeats_the_old_records_adds_only_the_new_ones(park):
    old = len(park.waypoints)
    longer = walks(park.site, patrols=45)
    added = park.add_records(longer)
    assert (added.new, added.known) == (len(longer) - old, old)
    together = samples_of(Park(park.folder).visits)[0]
    at_once = samples_of(bay_park(park.folder.parent / "other", patrols=45).visits)[0]
    assert np.array_equal(together.points, at_once.points)
    assert np.array_equal(together.rewards, at_once.rewards)


def test_a_park_made_again_with_the_same_site_is_the_one_there_is(park):
    before = snapshot(park.folder)
    assert len(Park.create(park.folder, bay_site()).waypoints) == len(park.waypoints)
    assert snapshot(park.folder) == before


def test_what_plans_depend_on_can_change_and_is_in_the_journal(park):
    """Stored records do not depend on levels, names, periods and on what counts."""
    old = samples_of(park.visits)[0]
    rare = bay_site(levels=(1.0, 2.0), observations=(("Lion", True),), period=14)
    changed = Park.create(park.folder, rare)
    assert (changed.site.levels, changed.site.period) == ((1.0, 2.0), 14)
    assert changed.journal.entries[-1]["kind"] == "site"
    assert changed.journal.entries[-1]["changed"] == ["effort", "period_days", "observations"]
    assert changed.waypoints.equals(park.waypoints)
    assert set(samples_of(changed.visits)[0].levels) <= {1.0, 2.0}
    assert samples_of(changed.visits)[0].rewards.sum() == 0.0 < old.rewards.sum()
    assert changed.plan(Wish(10, 5))[0].days == 14
    again = Park(park.folder)
    assert again.site.document() == changed.site.document()
    assert len(Park.create(park.folder, rare).journal.entries) == len(again.journal.entries)
    back = Park.create(park.folder, bay_site())
    assert np.array_equal(samples_of(back.visits)[0].rewards, old.rewards)
    assert [entry["kind"] for entry in back.journal.entries].count("site") == 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"unit": "hours"}, "another unit of effort: use what"),
        ({"box_km": 8.0}, "another box_km"),
        ({"max_gap_km": 2.0, "box_km": 8.0}, "another max_gap_km and another box_km"),
        ({"time_zone": "Africa/Kampala"}, "another time_zone"),
    ],
)
def test_what_the_records_were_read_by_cannot_change(park, change, said):
    before = snapshot(park.folder)
    with pytest.raises(InvalidParameter, match=said):
        Park.create(park.folder, bay_site(**change))
    assert snapshot(park.folder) == before


@pytest.mark.parametrize("shift", [0.001, 0.2, 3.0])
def test_another_boundary_under_the_same_site_file_is_refused(park, shift):
    """Its points would be moved to the edge of the park there is."""
    moved = bay_site().with_area(Area(shapely.affinity.translate(BOUNDARY, shift), park.site.area.crs))
    with pytest.raises(InvalidParameter, match="another boundary"):
        Park.create(park.folder, moved)
    turned = shapely.Polygon([*BOUNDARY.exterior.coords[3:], *BOUNDARY.exterior.coords[1:4]])
    Park.create(park.folder, bay_site().with_area(Area.around(turned)))  # the same, begun elsewhere


@pytest.mark.parametrize("step", range(5))
def test_cut_short_while_it_is_made_a_park_can_be_made_again(tmp_path, step, monkeypatch):
    folder, done = tmp_path / "park", []

    def stopping(real):
        def one(*args, **kwargs):
            if len(done) == step:
                raise KeyboardInterrupt
            done.append(real)
            return real(*args, **kwargs)

        return one

    with monkeypatch.context() as cut:
        cut.setattr(sites, "write_whole", stopping(sites.write_whole))
        cut.setattr(parks.Journal, "append", stopping(parks.Journal.append))
        cut.setattr(Path, "mkdir", stopping(Path.mkdir))
        with pytest.raises(KeyboardInterrupt):
            Park.create(folder, bay_site())
    assert not (folder / JOURNAL_FILE).exists()
    if folder.exists():
        (folder / ".12-34.part").write_bytes(b"half a file")
    assert Park.create(folder, bay_site()).add_records(walks(bay_site())).new > 0


@pytest.mark.parametrize("names", [["site.yaml"], ["records/mine.csv"], ["plans/a", "records/b"], ["records"]])
def test_a_folder_that_only_looks_like_an_unfinished_park_is_left_alone(tmp_path, names):
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("mine")
    before = snapshot(tmp_path)
    with pytest.raises(InvalidFile, match="something else is there"):
        Park.create(tmp_path, bay_site())
    assert snapshot(tmp_path) == before


def test_a_folder_with_something_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(InvalidFile, match="something else is there"):
        Park.create(tmp_path, bay_site())
    with pytest.raises(InvalidFile, match="not a park folder"):
        Park(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_plan_is_kept_and_made_once(park):
    plan, _ = park.plan(Wish(20, 5), now=NOW)
    assert plan.effort <= 20
    assert len(plan.items) <= 5
    again = Park(park.folder)
    assert again.plans() == {plan.plan_id: plan}
    before = snapshot(park.folder)
    assert again.plan(Wish(20, 5), now=NOW + timedelta(days=1))[0] == plan
    assert snapshot(park.folder) == before
    assert again.journal.entries[-1]["made_at"] == "2016-05-01T12:00:00"
    assert again.plan(Wish(21, 5), now=NOW)[0].plan_id != plan.plan_id


def test_planning_every_week_or_once_and_importing_in_any_order_give_the_same_bytes(tmp_path):
    """The first plan sets the day from which visits tell of rest; what is planned and imported between is the same."""
    site, first = bay_site(), FIRST + timedelta(days=40)
    weeks = [walks(site, patrols=7, seed=seed, first=first + timedelta(days=7 * seed - 7)) for seed in (1, 2, 3)]
    folders = [bay_park(tmp_path / name) for name in ("weekly", "once", "mixed")]
    for park in folders:
        park.plan(Wish(20, 5), now=NOW)
    for week in weeks:
        folders[0].add_records(week)
        folders[0].plan(Wish(20, 5), now=NOW)
    folders[1].add_records(pa.concat_tables(weeks))
    for week in (weeks[2], weeks[0].slice(40), weeks[1], weeks[0], weeks[2]):
        shuffled = np.random.default_rng(0).permutation(len(week))
        folders[2].add_records(week.take(shuffled))
    start, plans, forecasts = first + timedelta(days=21), [], []
    for park in folders:
        plan, forecast = Park(park.folder).plan(Wish(20, 5), start=start)
        plans.append((park.folder / "plans" / f"{plan.plan_id}.json").read_bytes())
        forecasts.append(forecast)
        assert plan.first == first.isoformat()
        assert plan.visits == len(park.visits)
    assert plans[0] == plans[1] == plans[2]
    assert all(np.array_equal(forecasts[0].belief, other.belief) for other in forecasts)
    assert forecasts[0].told > 0


def test_a_first_plan_for_days_far_ahead_does_not_keep_the_next_ones_from_learning(park):
    park.plan(Wish(20, 5), start=date(2999, 1, 1))
    plan, forecast = park.plan(Wish(20, 5))
    assert plan.first == plan.start == (FIRST + timedelta(days=40)).isoformat()
    assert forecast.told == 0
    park.add_records(walks(park.site, patrols=7, seed=4, first=FIRST + timedelta(days=41)))
    assert park.plan(Wish(20, 5))[1].told > 0


def test_a_plan_starts_after_the_last_record_unless_told(park):
    assert park.plan(Wish(20, 5))[0].start == (FIRST + timedelta(days=40)).isoformat()
    assert park.plan(Wish(20, 5), start=date(2016, 12, 1))[0].end == "2016-12-07"


def test_a_trial_for_days_that_are_in_the_records_changes_nothing_that_is_kept(park):
    kept = park.plan(Wish(20, 5))[0]
    before = snapshot(park.folder)
    trial, forecast = park.plan(Wish(20, 5), start=FIRST + timedelta(days=10))
    assert trial.items
    assert view_of(park.site, park.visits, forecast, trial).visits == trial.visits < kept.visits
    assert trial.notes[0].startswith("This plan is a trial")
    assert snapshot(park.folder) == before
    assert Park(park.folder).plan(Wish(20, 5))[0] == kept
    assert not kept.notes[0].startswith("This plan is a trial")


def test_a_park_without_records_has_no_plan(tmp_path):
    with pytest.raises(InvalidParameter, match="no records yet"):
        Park.create(tmp_path / "park", bay_site()).plan(Wish(20, 5))
    by_lot, forecast = Park(tmp_path / "park").plan(Wish(20, 5), start=date(2017, 1, 2))
    assert len(by_lot.items) == 5
    assert all(
        "Nobody has walked here yet. Nothing has been found in the park yet" in item.why for item in by_lot.items
    )
    assert np.ptp(forecast.rate) < 1e-12


def test_what_was_done_is_the_effort_as_walked_and_what_nobody_visited_is_no_data(park):
    plan, _ = park.plan(Wish(20, 5), now=NOW)
    start = date.fromisoformat(plan.start)
    goal = park.site.area.to_unit(plan.items[0].lon, plan.items[0].lat)[0]
    new = walks(park.site, patrols=3, steps=12, seed=9, first=start, post=goal)
    before = len(samples_of(park.visits)[0])
    outcome = park.record(plan, new)
    first, *others = outcome.items
    assert first.visits >= 1
    assert first.effort > 0.0
    assert first.effort != first.planned
    assert first.found in (True, False)
    missed = [one for one in others if one.visits == 0]
    assert missed, "three patrols from one place cannot be everywhere"
    assert all(one.found is None and one.effort == 0.0 for one in missed)
    walked = samples_of(park.visits)[1].slice(before)
    assert len(walked) > 0
    assert outcome.elsewhere > 0.0
    for one in missed:  # no sample came of what was only planned
        item = next(item for item in plan.items if item.item_id == one.item_id)
        boxes = zip(walked["box_x"].to_pylist(), walked["box_y"].to_pylist(), strict=True)
        assert item.box not in list(boxes)
    assert next(iter(Park(park.folder).outcomes()))["plan_id"] == plan.plan_id


def test_a_place_of_the_plan_that_a_device_brings_home_is_no_find(park, tmp_path):
    """It lies on the device beside the tracks, and would count as something that was seen there."""
    plan, forecast = park.plan(Wish(20, 5), now=NOW)
    write_plan(view_of(park.site, park.visits, forecast, plan), tmp_path / "plan")
    text = (tmp_path / "plan" / "plan.gpx").read_text(encoding="utf-8")
    home = park.site.area.to_lonlat([[0.3 + 0.02 * step, 0.3] for step in range(4)])
    points = "".join(
        f'<trkpt lat="{lat}" lon="{lon}"><time>2016-05-02T08:{10 + 10 * step}:00Z</time></trkpt>'
        for step, (lon, lat) in enumerate(home)
    )
    walked = f"<trk><trkseg>{points}</trkseg></trk></gpx>"
    alone = text[: text.index("<wpt")] + walked
    untimed = re.sub(r"(<wpt[^>]*>\s*)<time>[^<]*</time>", r"\1", text)
    snares = bay_site(observations=(("Snare", True),))
    kilometres = []
    for number, whole in enumerate((alone, text.replace("</gpx>", walked), untimed.replace("</gpx>", walked))):
        (tmp_path / f"{number}.gpx").write_text(whole, encoding="utf-8")
        table, quality = read_records(tmp_path / f"{number}.gpx", snares, nothing_found=True)
        kilometres.append(quality.km)
        assert (quality.planned, quality.broken_tracks, quality.unnamed_categories) == (5 * (number > 0), 0, ())
        assert (quality.last_day, len(table)) == ("2016-05-02", 4)
        assert number == 0 or "5 rows left out: places of a plan" in " ".join(quality.warnings())
    assert kilometres[0] > 0.0
    assert kilometres == [kilometres[0]] * 3


def test_recorded_twice_nothing_changes(park):
    plan, _ = park.plan(Wish(20, 5), now=NOW)
    new = walks(park.site, patrols=5, seed=9, first=date.fromisoformat(plan.start))
    once = park.record(plan, new)
    before = snapshot(park.folder)
    again = Park(park.folder).record(plan, new)
    assert (again.items, again.elsewhere, again.added.new) == (once.items, once.elsewhere, 0)
    assert snapshot(park.folder) == before


def test_records_before_the_plan_do_not_count_for_it(park):
    plan, _ = park.plan(Wish(20, 5), start=FIRST + timedelta(days=100), now=NOW)
    outcome = park.record(plan, walks(park.site, patrols=10, seed=3, first=FIRST + timedelta(days=50)))
    assert all(one.visits == 0 and one.found is None for one in outcome.items)
    assert outcome.elsewhere == 0.0


def test_an_outcome_is_noted_when_it_changed_whatever_was_recorded_meanwhile(park):
    first, second = park.plan(Wish(20, 5), now=NOW)[0], park.plan(Wish(10, 5), now=NOW)[0]
    nothing = walks(park.site, patrols=0)
    for plan in (first, second, first, second):
        park.record(plan, nothing)
    assert [one["plan_id"] for one in park.outcomes()] == [first.plan_id, second.plan_id]
    park.record(first, walks(park.site, patrols=3, seed=9, first=date.fromisoformat(first.start)))
    assert [one["plan_id"] for one in park.outcomes()] == [first.plan_id, second.plan_id, first.plan_id]


def test_records_of_other_days_than_the_plans_are_counted_apart(park):
    plan, _ = park.plan(Wish(20, 5), now=NOW)
    end = date.fromisoformat(plan.end)
    late = park.record(plan, walks(park.site, patrols=2, seed=9, first=end + timedelta(days=30)))
    assert late.added.new == late.other_days > 0
    assert late.visits == 0
    mixed = walks(park.site, patrols=2, seed=8, first=end)  # one day in the plan, one after it
    outcome = park.record(plan, mixed)
    assert outcome.other_days == sum(day > end for day in mixed["day"].to_pylist())
    assert outcome.visits > 0
    assert park.record(plan, mixed).other_days == 0, "nothing of it is new"


@pytest.mark.parametrize("step", ["write_whole", "append"])
def test_cut_short_at_any_step_the_park_is_as_it_was_or_has_it_all(park, step, monkeypatch):
    """A crash after the file and before the journal leaves a file that nothing speaks of."""
    entries = list(park.journal.entries)

    def stop(*args, **kwargs):
        raise KeyboardInterrupt

    with monkeypatch.context() as cut:
        cut.setattr(parks, "write_whole", stop) if step == "write_whole" else cut.setattr(parks.Journal, "append", stop)
        with pytest.raises(KeyboardInterrupt):
            park.plan(Wish(20, 5), now=NOW)
        with pytest.raises(KeyboardInterrupt):
            park.add_records(walks(park.site, patrols=50))
    again = Park(park.folder)
    assert again.journal.entries == entries
    assert again.plan(Wish(20, 5), now=NOW)[0].items
    assert again.add_records(walks(park.site, patrols=50)).new > 0


def test_damaged_files_are_named(park):
    plan, _ = park.plan(Wish(20, 5), now=NOW)
    (park.folder / "plans" / f"{plan.plan_id}.json").write_text("{")
    with pytest.raises(InvalidFile, match="cannot be read"):
        Park(park.folder).plans()
    next((park.folder / "records").iterdir()).write_bytes(b"PAR1")
    with pytest.raises(InvalidFile, match=r"records in .* cannot be read"):
        _ = Park(park.folder).waypoints
    (park.folder / JOURNAL_FILE).write_bytes(b"{}\n")
    with pytest.raises(InvalidFile, match="line 1"):
        Park(park.folder)
