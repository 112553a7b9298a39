"""`patrol import` and `patrol demo`, as a ranger types them."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest
import shapely
from parks import PARK, PAWS, paws_row, straight, write_lines

from artreplay.cli import main
from artreplay_patrol.park import Park
from artreplay_patrol.site import Site, proposed_levels


class Said(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def run(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "park.geojson").write_text(shapely.to_geojson(PARK))
    (tmp_path / "site.yaml").write_text("name: Park\nboundary: park.geojson\nbox_km: 5.5\neffort: {levels: [1, 3]}\n")

    def run_command(*words: object) -> Said:
        code = main(["patrol", *map(str, words)])
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        assert "31." not in said.out + said.err  # positions are sensitive
        return Said(code, said.out, said.err)

    return run_command


@pytest.fixture
def week(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "week.csv", PAWS, [*straight(6), *straight(4, patrol="P2", day="2016-03-17")])


@pytest.fixture
def undrawn(monkeypatch) -> None:
    """Without pictures, which take longer than all the rest."""
    monkeypatch.setattr("artreplay_patrol.writers.folder.png_bytes", lambda view: b"drawn")


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_records_become_a_park_and_the_report_is_told(run, week: Path) -> None:
    said = run("import", week, "--site", "site.yaml", "-o", "park")
    assert said.code == 0
    assert "10 rows read" in said.out
    assert "10 new rows in park, 0 it had already" in said.out
    assert "of the rest nothing is known" in said.out
    assert len(Park("park").waypoints) == 10


def test_the_same_records_again_change_nothing(run, week: Path, tmp_path: Path) -> None:
    run("import", week, "--site", "site.yaml", "-o", "park")
    before = files(tmp_path / "park")
    assert "0 new rows in park, 10 it had already" in run("import", week, "-o", "park").out
    assert "0 new rows" in run("import", week, "--site", "site.yaml", "-o", "park").out
    assert files(tmp_path / "park") == before


def test_more_records_are_added(run, week: Path, tmp_path: Path) -> None:
    run("import", week, "--site", "site.yaml", "-o", "park")
    more = write_lines(tmp_path / "more.csv", PAWS, straight(5, day="2016-04-20"))
    said = run("import", more, "-o", "park", "--json")
    found = json.loads(said.out)
    assert (found["new"], found["known"], found["quality"]["rows"]) == (5, 0, 5)
    assert len(Park("park").waypoints) == 15


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("none.csv", "--site", "site.yaml", "-o", "park"), "none.csv does not exist"),
        (("week.csv", "-o", "park"), "--site must name a site file, for there is no park in park yet"),
        (("week.csv", "--site", "none.yaml", "-o", "park"), "the site file none.yaml does not exist"),
        (("doubt.csv", "--site", "site.yaml", "-o", "park"), "give --date-format"),
        (("week.csv", "--site", "site.yaml", "-o", "week.csv"), "week.csv"),
    ],
)
def test_what_is_refused_leaves_nothing(run, week: Path, tmp_path: Path, words, sentence: str) -> None:
    write_lines(tmp_path / "doubt.csv", PAWS, [paws_row("03/04/2016")])
    before = files(tmp_path)
    said = run("import", *words)
    assert said.code == 2
    assert said.err.startswith("error: ")
    assert said.err.count("\n") == 1
    assert sentence in said.err
    assert files(tmp_path) == before


def test_the_date_format_is_an_option(run, tmp_path: Path) -> None:
    write_lines(tmp_path / "doubt.csv", PAWS, [paws_row("03/04/2016")])
    said = run("import", "doubt.csv", "--site", "site.yaml", "-o", "park", "--date-format", "%m/%d/%Y")
    assert "from 2016-03-04 to 2016-03-04" in said.out


def test_the_demo_goes_the_whole_way(run, tmp_path: Path) -> None:
    said = run("demo", "--waypoints", 1500, "--out", "demo")
    assert said.code == 0, said.err
    for words in (
        "$ artreplay patrol import",
        " of 20 km, ",
        " on the way",
        "a week goes by",
        "1 of 3 places was not visited",
    ):
        assert words in said.out
    park = Park("demo/park")
    plans = park.plans()
    assert len(plans) == 2
    done = next(iter(park.outcomes()))["items"]
    assert [one["effort"] == pytest.approx(one["planned"], rel=0.01) for one in done] == [True] * (len(done) - 1) + [
        False
    ]
    assert done[-1]["found"] is None
    assert (tmp_path / "demo/plan-2/plan.html").exists()
    again = run("demo", "--out", "demo")
    assert again.code == 2
    assert "must be a new folder or an empty one" in again.err


def test_the_folder_with_everything_in_it_can_be_imported_again_and_again(
    run, week: Path, tmp_path: Path, undrawn
) -> None:
    """Records, boundary and site file lie in one folder; later the park and a plan do, too."""
    write_lines(tmp_path / ".hidden.csv", "a", ["b"])
    assert "10 new rows in park" in run("import", ".", "--site", "site.yaml", "-o", "park").out
    assert run("plan", "park", "--budget", 5, "-o", "plan").code == 0
    assert run("map", "park").code == 0
    assert "0 new rows in park, 10 it had already" in run("import", ".", "--site", "site.yaml", "-o", "park").out
    assert "0 new rows in park, 10 it had already" in run("import", ".", "-o", "park").out
    assert "holds no records" in run("import", "park", "-o", "park").err


def test_a_boundary_without_an_area_is_refused(run, week: Path, tmp_path: Path) -> None:
    (tmp_path / "park.geojson").write_text(shapely.to_geojson(shapely.Polygon()))
    assert "the boundary must enclose an area" in run("import", week, "--site", "site.yaml", "-o", "park").err


def test_a_boundary_is_no_record(run) -> None:
    said = run("import", "park.geojson", "--site", "site.yaml", "-o", "park")
    assert "park.geojson holds areas only: records are points or lines" in said.err


def test_what_is_said_of_a_zip_is_said_of_the_zip(run, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.writestr("notes.docx", "nothing")
    said = run("import", "export.zip", "--site", "site.yaml", "-o", "park")
    assert said.err.startswith("error: export.zip holds no records: they are")


def test_levels_that_the_site_file_leaves_open_are_proposed_once_and_kept(run, tmp_path: Path) -> None:
    (tmp_path / "open.yaml").write_text("name: Park\nboundary: park.geojson\nbox_km: 5.5\n")
    write_lines(tmp_path / "long.csv", PAWS, [row for day in range(1, 9) for row in straight(8, day=f"2016-03-0{day}")])
    write_lines(tmp_path / "short.csv", PAWS, straight(8, km=0.1, day="2016-04-01"))
    said = run("import", "long.csv", "--site", "open.yaml", "-o", "new")
    assert "the site file names no levels of effort: plans of this park ask for" in said.out
    levels = Park("new").site.levels
    assert levels == proposed_levels(Park("new").visits["effort"]) != Site.levels
    run("import", "short.csv", "--site", "open.yaml", "-o", "new")
    run("import", "short.csv", "-o", "new")
    assert Park("new").site.levels == levels
    assert not Park("new").site.levels_are_open
    assert "site" not in [entry["kind"] for entry in Park("new").journal.entries]
