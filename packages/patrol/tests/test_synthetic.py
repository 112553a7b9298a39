"""The synthetic park: in the format of real records, as skewed as real ones, and the same for the same seed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from artreplay.errors import InvalidFile, InvalidParameter
from artreplay_patrol import Site
from artreplay_patrol.readers.records import read_all
from artreplay_patrol.synthetic import SyntheticPark, synthetic_park
from artreplay_patrol.terrain import SIDE_KM, Terrain


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> tuple[Path, SyntheticPark]:
    folder = tmp_path_factory.mktemp("park")
    return folder, synthetic_park(folder, seed=2, waypoints=6000)


def test_it_is_read_back_as_it_was_walked(written) -> None:
    folder, park = written
    table, quality, site = read_all(folder / "records", Site.load(folder / "site.yaml"))
    walks = park.walks
    assert quality.waypoints == 6000
    assert (quality.outside, quality.bad_days, quality.bad_times, quality.broken_tracks) == (0, 0, 0, 0)
    assert quality.observations == int((walks.snare | walks.animal).sum())
    assert quality.km == pytest.approx(2.0 * walks.effort_km.sum() / 2.0, rel=0.002)
    assert site.area.side_km == pytest.approx(SIDE_KM, rel=0.01)
    assert set(table["category"].unique().to_pylist()) == {None, "Snare", "Animal sign"}
    assert quality.warnings() + quality.doubts() == []


def test_coverage_is_skewed(written) -> None:
    folder, _ = written
    quality = read_all(folder / "records", Site.load(folder / "site.yaml")).quality
    assert quality.share_in_busiest_tenth > 0.6
    assert quality.share_visited < 0.7


def test_the_same_seed_writes_the_same_bytes(written, tmp_path: Path) -> None:
    folder, _ = written
    synthetic_park(tmp_path, seed=2, waypoints=6000)
    for path in sorted(folder.rglob("*.*")):
        assert path.read_bytes() == (tmp_path / path.relative_to(folder)).read_bytes(), path.name
    synthetic_park(tmp_path, seed=3, waypoints=6000)
    assert (folder / "records/SMARTdata.csv").read_bytes() != (tmp_path / "records/SMARTdata.csv").read_bytes()


@pytest.mark.parametrize("seed", range(8))
def test_any_seed_makes_a_park_that_can_be_walked(seed: int) -> None:
    park = SyntheticPark(seed, waypoints=1500)
    terrain, walks = Terrain(seed), park.walks
    assert terrain.inside(walks.points).all()
    crossed = np.diff(terrain.north_of_river(walks.points).astype(int)) != 0
    same = walks.patrol[1:] == walks.patrol[:-1]
    assert terrain.look_up(terrain.crossing, walks.points[1:][crossed & same]).all()
    assert (walks.effort_km <= 1.7 + 1e-9).all()
    chance = park.risk(walks.points, 1.0)
    assert ((chance > 0.0) & (chance < 1.0)).all()
    assert (park.risk(walks.points, 2.0) > chance).all()


def test_a_single_waypoint_is_a_park_too() -> None:
    assert len(SyntheticPark(0, waypoints=1).walks.patrol) == 1


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="waypoints must be at least 1"):
        synthetic_park(tmp_path, waypoints=0)
    with pytest.raises(InvalidParameter, match="seed"):
        synthetic_park(tmp_path, seed=-1)
    (tmp_path / "taken").write_text("")
    with pytest.raises(InvalidFile, match="cannot be made"):
        synthetic_park(tmp_path / "taken")
