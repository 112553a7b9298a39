"""Every format tells the same story, and bad files are refused in a sentence."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import pytest
from parks import PARK, WEST, write_lines

from artreplay.errors import ArtReplayError
from artreplay_patrol import Area, Site, unpacking
from artreplay_patrol.readers import read_records
from artreplay_patrol.samples import all_box_rows

SAMPLES = Path(__file__).parent / "samples"
FORMATS = sorted(path.name for path in SAMPLES.iterdir() if path.is_dir())
COUNTED = tuple((name, True) for name in ("snare", "lion"))


def site(**options) -> Site:
    given = {"levels": (1.0, 3.0), "box_km": 5.5, "time_zone": "Africa/Kampala", "observations": COUNTED}
    return Site("Test park", **given | options).with_area(Area.around(PARK))


def read(name, path=None, nothing_found=False, **options):
    options = {"input_crs": "EPSG:32636"} | options if name == "utm" else options
    return read_records(path or SAMPLES / name, site(**options), nothing_found=nothing_found)


def refused(path, **options) -> str:
    with pytest.raises(ArtReplayError) as error:
        read_records(path, site(**options))
    text = str(error.value)
    assert "31." not in text.replace("31.csv", ""), "positions are sensitive"
    assert "\n" not in text
    return text


@pytest.mark.parametrize("name", FORMATS)
def test_the_two_patrols_are_the_same_in_every_format(name):
    table, quality = read(name)
    assert quality.km == pytest.approx(9.0, abs=0.05)
    assert quality.observations == 3
    assert quality.patrols == 2
    assert (quality.first_day, quality.last_day) == ("2016-03-15", "2016-03-16")
    rows = all_box_rows(table, site())
    assert sum(rows["observed"].to_pylist()) == len({(p, x, y) for p, x, y in found_in(rows)})
    assert len(quality.files) == len([path for path in (SAMPLES / name).iterdir() if path.suffix != ".json"])
    assert all("31." not in line for line in quality.sentences())


def found_in(rows):
    return [(row["patrol"], row["box_x"], row["box_y"]) for row in rows.filter(rows["observed"]).to_pylist()]


def test_files_are_said_to_be_what_they_were_taken_for():
    _, quality = read("smart-query")
    assert quality.files == (
        "observations.csv: 6 rows of sightings, which say what was seen",
        "tracks.csv: 11 rows of tracks, which say where patrols walked",
    )
    assert quality.duplicates == 3
    _, quality = read("ecoscope")
    assert (
        "relocations.csv names no patrols: its rows of one day and device are taken to be of one patrol"
        in quality.notes
    )


@pytest.mark.parametrize(
    ("name", "file", "said"),
    [
        ("smart-query", "observations.csv", "export the tracks of the same patrols too"),
        ("smart-query", "tracks.csv", "add --nothing-found"),
        ("ecoscope", "events.csv", "export the tracks of the same patrols too"),
        ("cybertracker", "track.csv", "add --nothing-found"),
    ],
)
def test_one_of_two_inputs_is_not_enough(name, file, said):
    assert said in refused(SAMPLES / name / file)
    if "nothing" in said:
        _, quality = read(name, SAMPLES / name / file, nothing_found=True)
        assert (round(quality.km), quality.observations) == (9, 0)


def test_the_site_file_can_say_what_a_file_is():
    _, quality = read("smart-query", SAMPLES / "smart-query/observations.csv", files=(("obs*", "waypoints"),))
    assert quality.km == pytest.approx(2.0, abs=0.1)
    assert "files can be tracks, sightings, waypoints" in _message(lambda: Site("x", files=(("*", "cows"),)))


def _message(call) -> str:
    with pytest.raises(ArtReplayError) as error:
        call()
    return str(error.value)


def test_a_sighting_far_from_every_track_is_a_visit_without_effort(tmp_path):
    shutil.copytree(SAMPLES / "smart-query", tmp_path / "query")
    path = tmp_path / "query/observations.csv"
    day = "15 Mar 2016"
    far = f"P-1,GROUND,{day},{day},Base,Team,1,9,{day},09:10:00,{WEST + 0.05},0.3,,Human activity,Snare\n"
    late = far.replace("15 Mar", "20 Mar")
    path.write_text(path.read_text() + far + late)
    table, quality = read("", tmp_path / "query")
    assert quality.km == pytest.approx(9.0, abs=0.05)
    assert quality.observations == 5
    assert any("1 sighting lay more than 1 km" in note for note in quality.notes)
    assert any("1 sighting had no track on the day" in note for note in quality.notes)
    loose = [row for row in all_box_rows(table, site()).to_pylist() if row["effort"] == 0.0]
    assert len(loose) == 2


class TestPositions:
    def test_metres_need_a_name(self):
        assert "say in the site file what they are" in refused(SAMPLES / "utm")

    def test_degrees_are_not_metres(self, tmp_path):
        path = write_lines(tmp_path / "a.csv", "Patrol,Date,X,Y,Observation", ["P,2016-03-15,31.1,0.1,"] * 2)
        assert "all of its positions look like longitude and latitude" in refused(path, input_crs="EPSG:32636")
        rows = ["P,2016-03-15,289000,11000,", "P,2016-03-15,31.1,0.1,"]
        assert "1 of its positions look like" in refused(
            write_lines(tmp_path / "b.csv", "Patrol,Date,X,Y,Observation", rows), input_crs="EPSG:32636"
        )

    def test_columns_named_longitude_and_latitude_are_that(self):
        _, quality = read("french", input_crs="EPSG:32636")
        assert quality.km == pytest.approx(9.0, abs=0.05)

    def test_a_projection_that_does_not_exist(self):
        assert "input_crs must name" in _message(lambda: Site("x", input_crs="EPSG:1"))


class TestMonths:
    @pytest.mark.parametrize(
        "text", ["15 mars 2016", "15 März 2016", "15 de março de 2016", "15-Mar-2016", "15 marzo 2016", "15 Machi 2016"]
    )
    def test_their_names_may_be_of_many_languages(self, tmp_path, text):
        path = write_lines(tmp_path / "a.csv", "Patrol,Date,X,Y,Observation", [f"P,{text},31.1,0.1,"])
        assert read("", path)[1].first_day == "2016-03-15"


class TestBadFiles:
    @pytest.mark.parametrize("name", ["P-1.xml", "device.gpx", "device.kml", "device.kmz", "tracks.geojson"])
    @pytest.mark.parametrize("share", [0.0, 0.6])
    def test_a_file_that_is_empty_or_cut_short(self, tmp_path, name, share):
        (source,) = SAMPLES.rglob(name)
        data = source.read_bytes()
        (tmp_path / name).write_bytes(data[: int(share * len(data))])
        assert name in refused(tmp_path / name)

    def test_definitions_in_xml(self, tmp_path):
        text = (SAMPLES / "kml/device.kml").read_text().replace("<kml", '<!DOCTYPE kml [<!ENTITY a "b">]><kml', 1)
        (tmp_path / "a.kml").write_text(text)
        assert "must hold no definitions of its own" in refused(tmp_path / "a.kml")

    def test_other_xml(self, tmp_path):
        (tmp_path / "a.xml").write_text("<html/>")
        assert "no patrol of SMART" in refused(tmp_path / "a.xml")


class TestZips:
    def test_one_that_is_too_large_leaves_nothing(self, tmp_path, monkeypatch):
        monkeypatch.setattr(unpacking, "_SMALL", 1 << 20)
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
        (tmp_path / "temporary").mkdir()
        with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a.csv", b"0" * (8 << 20))
        assert "a.zip unpacks to more than" in refused(tmp_path / "a.zip")
        assert not list((tmp_path / "temporary").iterdir())

    def test_too_many_files(self, tmp_path, monkeypatch):
        monkeypatch.setattr(unpacking, "MAX_FILES", 3)
        with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
            for number in range(4):
                archive.writestr(f"{number}.csv", "a")
        assert "must hold at most 3 files" in refused(tmp_path / "a.zip")

    def test_a_path_that_leads_outside_stays_inside(self, tmp_path):
        with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
            archive.write(SAMPLES / "gpx/device.gpx", "../../device.gpx")
        assert read("", tmp_path / "a.zip")[1].observations == 3

    @pytest.mark.long
    def test_a_command_that_is_terminated_leaves_nothing(self, tmp_path):
        with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a.csv", "a")
        script = (
            "import sys, time; from pathlib import Path; from artreplay_patrol.unpacking import unpacked\n"
            f"with unpacked(Path({str(tmp_path / 'a.zip')!r})):\n    print('there', flush=True); time.sleep(60)"
        )
        environment = {"TMPDIR": str(tmp_path / "temporary"), "PATH": ""}
        (tmp_path / "temporary").mkdir()
        with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env=environment) as process:
            process.stdout.readline()
            assert list((tmp_path / "temporary").iterdir())
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 128 + signal.SIGTERM
        assert not list((tmp_path / "temporary").iterdir())

    def test_what_a_killed_command_left_is_removed_by_the_next(self, tmp_path, monkeypatch):
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        left = tmp_path / "artreplay-records-old"
        left.mkdir()
        monkeypatch.setattr(unpacking, "_STALE", -1.0)
        with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
            archive.write(SAMPLES / "gpx/device.gpx", "device.gpx")
        read("", tmp_path / "a.zip")
        assert not left.exists()
