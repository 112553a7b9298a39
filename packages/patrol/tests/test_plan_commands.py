"""map, plan, record, plan again: the commands as a ranger types them."""

from __future__ import annotations

import json
from datetime import date

import pyarrow.csv
import pytest
from walks import bay_park, bay_site, walks

from artreplay.cli import main
from artreplay_patrol.park import Park
from artreplay_patrol.writers import PLAN_FILES


@pytest.fixture
def folder(tmp_path, monkeypatch):
    bay_park(tmp_path / "park")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("artreplay_patrol.writers.folder.png_bytes", lambda view: b"drawn")  # it takes longest of all
    return tmp_path


def records(path, first, seed=7):
    """A plain CSV of a week of patrols."""
    table = walks(bay_site(), patrols=7, seed=seed, first=first).drop(["inside", "source", "leg"])
    names = ["patrol", "date", "time", "lon", "lat", "category", "waypoint"]
    pyarrow.csv.write_csv(table.rename_columns(names), path)
    return path


def run(capsys, *words):
    code = main(["patrol", *map(str, words)])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_from_a_map_to_a_plan_to_what_came_of_it_to_the_next_plan(folder, capsys):
    code, out, _ = run(capsys, "map", "park")
    assert code == 0
    assert "of the area was ever visited" in out
    assert (folder / "park" / "map" / "map.html").exists()

    code, out, _ = run(capsys, "plan", "park", "--budget", 20, "--places", 5, "-o", "plan")
    assert code == 0
    assert sorted(path.name for path in (folder / "plan").iterdir()) == sorted(PLAN_FILES)
    plan = next(iter(Park("park").plans().values()))
    assert all(item.item_id in out and item.why in out for item in plan.items)

    week = records(folder / "week.csv", date.fromisoformat(plan.start))
    code, out, _ = run(capsys, "record", "park", week, "--plan", "plan")
    assert code == 0
    assert "new rows" in out
    assert "not visited, so nothing is known about what is there" in out
    code, out, _ = run(capsys, "record", "park", week, "--plan", plan.plan_id)
    assert "0 new rows" in out

    code, out, _ = run(capsys, "plan", "park", "--budget", 20, "-o", "next", "--json")
    following = json.loads(out)
    assert code == 0
    assert following["plan_id"] != plan.plan_id
    assert following["start"] > plan.end
    assert following["visits"] > plan.visits
    assert following["first"] == plan.start


def test_records_of_other_days_are_not_said_to_be_places_that_nobody_visited(folder, capsys):
    run(capsys, "plan", "park", "--budget", 20)
    plan = next(iter(Park("park").plans().values()))
    late = records(folder / "late.csv", date(2017, 3, 29))
    _, out, _ = run(capsys, "record", "park", late, "--plan", "plan")
    said = " ".join(out.split())
    new = said.split(" new rows")[0].split()[-1]
    assert f"all {new} new rows are not of the days of the plan, {plan.start} to {plan.end}" in said
    assert "there are no records of the days of the plan" in said
    assert "were not visited" not in said
    assert "at other places" not in said


def test_a_plan_of_days_that_are_over_says_how_to_plan_days_to_come(folder, capsys):
    _, out, _ = run(capsys, "plan", "park", "--budget", 20)
    assert "note: these days are over" in out
    assert "--start" in out
    _, out, _ = run(capsys, "plan", "park", "--budget", 20, "--start", "2999-01-01")
    assert "days are over" not in out


def test_a_plan_far_ahead_is_doubted(folder, capsys):
    week = records(folder / "week.csv", date(2098, 6, 1))
    assert run(capsys, "import", week, "-o", "park")[0] == 0
    code, out, _ = run(capsys, "plan", "park", "--budget", 20)
    assert code == 0
    assert "note: these days are far ahead" in out
    code, out, _ = run(capsys, "plan", "park", "--budget", 20, "--start", "2016-04-15")
    assert code == 0
    assert "visits on 2016-04-15 or later: it is made from what was known before" in " ".join(out.split())


def test_levels_can_be_lowered_in_a_park_that_is_there(folder, capsys):
    """As the documentation says to do when no visit reaches a level."""
    lowered = bay_site(levels=(0.5, 1.0, 2.0))
    lowered.save(folder)
    week = records(folder / "week.csv", date(2016, 6, 1))
    assert run(capsys, "import", week, "--site", "site.yaml", "-o", "park")[0] == 0
    assert Park("park").site.levels == (0.5, 1.0, 2.0)
    assert run(capsys, "import", week, "-o", "park")[0] == 0
    assert Park("park").site.levels == (0.5, 1.0, 2.0)
    kinds = [entry["kind"] for entry in Park("park").journal.entries]
    assert kinds == ["made", "records", "site", "records"]


def test_positions_are_in_files_and_not_on_the_screen(folder, capsys):
    """What is on a screen ends up in logs and pictures of screens. (No other number there has three decimals.)"""
    _, out, err = run(capsys, "plan", "park", "--budget", 20)
    plan = next(iter(Park("park").plans().values()))
    for item in plan.items:
        assert f"{item.lon:.4f}"[:-1] not in out + err
        assert f"{item.lat:.4f}"[:-1] not in out + err


def test_a_budget_that_is_left_over_is_explained(folder, capsys):
    _, out, _ = run(capsys, "plan", "park", "--budget", 40, "--places", 3)
    assert "3 places at 6 km are 18; allow more with --places" in out


def test_blurred_positions_are_in_every_file(folder, capsys):
    assert run(capsys, "plan", "park", "--budget", 20, "--blur-m", 5000)[0] == 0
    shown = json.loads((folder / "plan" / "plan.json").read_text())
    kept = next(iter(Park("park").plans().values()))
    assert shown["blur_m"] == 5000.0
    assert [item["item_id"] for item in shown["items"]] == [item.item_id for item in kept.items]
    assert all(item["lon"] != other.lon for item, other in zip(shown["items"], kept.items, strict=True))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["map", "nowhere"], "nowhere is not a park folder"),
        (["plan", "park", "--budget", "0.1"], "the budget must pay for one place at the smallest level, 1 km"),
        (["plan", "park", "--budget", "nan"], "budget must pay"),
        (["plan", "park", "--budget", "5", "--places", "0"], "places must be at least 1"),
        (["plan", "park", "--budget", "5", "--apart-km", "nan"], "apart-km must be from 0 to 45 km"),
        (["plan", "park", "--budget", "5", "--blur-m", "-1"], "blur-m must be from 0 to 44532 metres"),
        (["map", "park", "--blur-m", "inf"], "blur-m must be from 0 to 44532 metres, the width of the park, got inf"),
        (["map", "park", "--blur-m", "1e12"], "blur-m must be from 0 to 44532 metres"),
        (["record", "park", "week.csv", "--plan", "no-such-plan"], "has no plan no-such-plan: its plans are none"),
        (["record", "park", "week.csv", "--plan", "no/plan"], "no/plan holds no plan"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_sentence(folder, capsys, words, said):
    journal = (folder / "park" / "journal.jsonl").read_bytes()
    code, out, err = run(capsys, *words)
    assert code == 2
    assert (folder / "park" / "journal.jsonl").read_bytes() == journal
    assert out == ""
    assert err.startswith("error: ")
    assert said in err
    assert err.count("\n") == 1
