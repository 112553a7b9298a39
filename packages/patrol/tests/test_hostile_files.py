"""Record files cannot make GDAL read other files or the network, and whatever is wrong with one is a sentence."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from parks import PARK, PAWS, THOROUGH, paws_row, refusal, site, straight, write_lines

from artreplay.errors import ArtReplayError, InvalidFile
from artreplay_patrol import Site, unpacking
from artreplay_patrol.readers import read_records
from artreplay_patrol.readers.records import read_all

SAMPLES = Path(__file__).parent / "samples"
ENDINGS = (".gpx", ".geojson", ".json", ".shp", ".gpkg", ".kml", ".xml")
POINT = {"type": "Feature", "properties": {"Patrol": "P", "Date": "2016-03-15"}}
POINT["geometry"] = {"type": "Point", "coordinates": [31.1, 0.1]}


def secret(folder: Path) -> Path:
    """Tracks that a record file must not lead to."""
    feature = {**POINT, "geometry": {"type": "LineString", "coordinates": [[31.1, 0.1], [31.2, 0.1]]}}
    path = folder / "secret.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    return path


def lures(path: Path) -> list[str]:
    """Files that lead GDAL to another one, or to the network."""
    virtual = (
        f'<OGRVRTDataSource><OGRVRTLayer name="secret"><SrcDataSource>{path}</SrcDataSource></OGRVRTLayer>'
        "</OGRVRTDataSource>"
    )
    network = "<OGRWFSDataSource><URL>http://127.0.0.1:9/</URL></OGRWFSDataSource>"
    pipeline = {"type": "gdal_streamed_alg", "command_line": f"gdal vector pipeline ! read {path}"}
    linked = {"type": "FeatureCollection", "features": [POINT]}
    linked["crs"] = {"type": "link", "properties": {"href": "http://127.0.0.1:9/crs"}}
    escaped = json.dumps(linked).replace('"link"', '"\\u006cink"').replace('"crs"', '"\\u0063rs"')
    made = [virtual, network, json.dumps(pipeline), json.dumps(linked), escaped, json.dumps(linked).replace("li", "LI")]
    return [*made, f"<gpx/>{virtual}", f"<gpx><!-- {virtual} --></gpx>", f"{{}}{virtual}", f"SQLite format 3{virtual}"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_no_record_file_leads_to_another_one(tmp_path: Path, ending: str) -> None:
    (tmp_path / "other").mkdir()
    for number, text in enumerate(lures(secret(tmp_path / "other"))):
        path = tmp_path / f"{number}{ending}"
        path.write_text(text)
        said = refusal(path)
        assert said.count("\n") == 0
        assert "127.0.0.1" not in said


@pytest.mark.parametrize("ending", [*ENDINGS, ".vrt", ".gml", ""])
def test_nor_does_a_boundary_that_comes_with_the_records(tmp_path: Path, ending: str) -> None:
    (tmp_path / "other").mkdir()
    folder = tmp_path / "package"
    write_lines(folder / "SMARTdata.csv", PAWS, straight(3))
    for text in lures(secret(tmp_path / "other")):
        with zipfile.ZipFile(folder / "ca_boundary.zip", "w") as archive:
            archive.writestr(f"ca_boundary{ending}", text)
        with pytest.raises(ArtReplayError):
            read_all(folder, Site("A park"))
        (tmp_path / f"boundary{ending}").write_text(text)
        with pytest.raises(InvalidFile, match="the boundary "):
            _ = Site("A park", boundary=tmp_path / f"boundary{ending}").area


def test_gdal_is_started_without_what_reads_elsewhere() -> None:
    """A second guard, in a process of its own: the first is that files are looked at before GDAL sees them."""
    code = "from artreplay_patrol.gis_files import gdal; print(*gdal().list_drivers(), sep=',')"
    drivers = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split(",")
    assert not {"OGR_VRT", "GDALG", "WFS", "OAPIF", "HTTP"} & set(drivers)
    assert {"GPKG", "GeoJSON", "GPX", "ESRI Shapefile"} <= set(drivers)


def test_geojson_that_names_its_projection_is_read(tmp_path: Path) -> None:
    named = {"type": "name", "properties": {"name": "urn:ogc:def:crs:OGC:1.3:CRS84"}}
    collection = {"type": "FeatureCollection", "crs": named, "features": [POINT]}
    (tmp_path / "a.geojson").write_bytes(b"\xef\xbb\xbf" + json.dumps(collection).encode())
    assert len(read_records(tmp_path / "a.geojson", site())[0]) == 1


def zipped(path: Path, *rows: str) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.csv", "\n".join([PAWS, *rows]))
    return path


class TestZips:
    def test_seven_megabytes_do_not_become_a_gigabyte(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Not by being large, nor by being packed tightly; the folder they went to is gone."""
        assert unpacking.MAX_BYTES == 256 << 20
        with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a.csv", b"0" * (20 << 20))
        assert "a.zip unpacks to more than 16 MB" in refusal(tmp_path / "a.zip")
        monkeypatch.setattr(unpacking, "MAX_BYTES", 1 << 20)
        monkeypatch.setattr(unpacking, "_SMALL", 1 << 20)
        noise = np.random.default_rng(0).bytes(2 << 20)
        with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
            archive.writestr("b.csv", noise)
        assert "b.zip unpacks to more than 1 MB" in refusal(tmp_path / "b.zip")

    @settings(max_examples=25 * THOROUGH, deadline=None)
    @given(st.data())
    def test_a_damaged_one_is_read_or_refused_in_a_sentence(self, tmp_path_factory: Any, data: st.DataObject) -> None:
        folder = tmp_path_factory.mktemp("zip")
        content = bytearray(zipped(folder / "a.zip", *straight(40)).read_bytes())
        for _ in range(data.draw(st.integers(1, 3))):
            content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
        (folder / "a.zip").write_bytes(content[: data.draw(st.integers(0, len(content)))])
        try:
            read_records(folder / "a.zip", site())
        except ArtReplayError as error:
            assert "\n" not in str(error)  # noqa: PT017
            assert "31." not in str(error)  # noqa: PT017


@pytest.mark.parametrize("name", ["device.gpx", "device.kml", "P-1.xml", "tracks.geojson", "tracks.csv"])
@pytest.mark.parametrize("end", ["\r", "\r\n"])
def test_lines_that_end_in_a_lone_carriage_return_are_lines(tmp_path: Path, name: str, end: str) -> None:
    (source,) = [path for path in SAMPLES.rglob(name) if "ecoscope" not in str(path)]
    folder = tmp_path / "records"
    shutil.copytree(source.parent, folder)
    before = read_records(folder, site(files=()), nothing_found=True)[1]
    (folder / name).write_bytes(source.read_bytes().replace(b"\r\n", b"\n").replace(b"\n", end.encode()))
    after = read_records(folder, site(files=()), nothing_found=True)[1]
    assert (after.rows, after.km) == (before.rows, before.km)


class TestPositions:
    """They are secrets, and sentences end up on screens, in logs and in mails."""

    @pytest.mark.parametrize(
        ("header", "row"),
        [
            ("P1,2016-03-15,31.12345,0.12345", "P1,2016-03-15,31.22345,0.1"),  # no line of names
            ("Patrol,Date,X,Y", "P1,31.12345,31.1,0.1"),  # the columns are shifted
            ("Patrol,Date,Easting", "P1,2016-03-15,289123"),
            ("289123,11123,Date,Patrol", "289123,11123,2016-03-15,P1"),
            ("Patrol,Date,X,Y", "P1,31° 07.5' E,31.1,0.1"),
        ],
    )
    def test_no_refusal_has_one(self, tmp_path: Path, header: str, row: str) -> None:
        said = refusal(write_lines(tmp_path / "a.csv", header, [row, row]))
        assert not any(part in said for part in ("31.", "0.12", "289123", "11123.", "31°"))

    def test_no_report_has_one(self, tmp_path: Path) -> None:
        rows = [paws_row(), paws_row(time="09:00:00", seen="N 0.12345 E 31.12345")]
        _, quality = read_records(write_lines(tmp_path / "a.csv", PAWS, rows), site(observations=(("Snare", True),)))
        assert not any("31.1" in line or "0.123" in line for line in quality.sentences())

    def test_what_gdal_says_is_not_repeated(self, tmp_path: Path) -> None:
        (tmp_path / "a.geojson").write_text('{"type": "FeatureCollection", "features": [{"lon": 31.12345, ')
        assert refusal(tmp_path / "a.geojson").endswith("which its name says it is: is it damaged?")

    def test_a_site_file_that_is_no_yaml_names_the_line_and_not_the_post(self, tmp_path: Path) -> None:
        (tmp_path / "park.geojson").write_text(shapely.to_geojson(PARK))
        (tmp_path / "site.yaml").write_text("name: x\nposts: [{name: Base, lon: 31.12345, lat: 0.1\n")
        with pytest.raises(InvalidFile, match=r"is not YAML: .* in line 3") as error:
            Site.load(tmp_path / "site.yaml")
        assert "31." not in str(error.value)
