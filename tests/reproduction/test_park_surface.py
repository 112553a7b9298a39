"""The network that stands for a park: what it learns and what it promises."""

from __future__ import annotations

import numpy as np
import pytest

from artreplay_patrol.errors import InvalidRecords
from reproduction.domains.park_surface import ParkSurface
from reproduction.domains.patrol_domain import synthetic_domain, synthetic_world


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(0)
    points, efforts = rng.random((2000, 2)), rng.random(2000) * 3.0
    chance = 1.0 - np.exp(-efforts * points[:, 0])
    return points, efforts, rng.random(2000) < chance


@pytest.fixture(scope="module")
def surface(samples) -> ParkSurface:
    mask = np.ones((4, 4), np.bool_)
    mask[0, 0] = False
    return ParkSurface.fit(*samples, mask=mask)


def test_it_learns_the_chances(surface: ParkSurface, samples) -> None:
    points, efforts, _ = samples
    away = points.max(axis=1) > 0.25
    truth = 1.0 - np.exp(-efforts * points[:, 0])
    assert np.abs(surface.means(points, efforts) - truth)[away].mean() < 0.06


def test_no_effort_and_no_park_find_nothing(surface: ParkSurface) -> None:
    assert surface.means([(0.9, 0.9)], 0.0).tolist() == [0.0]
    assert surface.means([(0.1, 0.1)], 2.0).tolist() == [0.0]
    assert surface.means([(0.9, 0.9)], 2.0)[0] > 0.3


def test_more_effort_never_finds_less(samples) -> None:
    rng = np.random.default_rng(1)
    some = [part[:800] for part in samples]
    noise = ParkSurface.fit(some[0], some[1], rng.random(800) < 0.5)  # nothing there to learn
    points = rng.random((200, 2))
    chances = np.stack([noise.means(points, effort) for effort in np.linspace(0.0, 4.0, 90)])
    assert (np.diff(chances, axis=0) >= 0.0).all()
    assert ((chances >= 0.0) & (chances <= 1.0)).all()


def test_a_chance_does_not_depend_on_what_else_is_asked(surface: ParkSurface, samples) -> None:
    points, efforts, _ = samples
    together = surface.means(points[:33], efforts[:33])
    alone = [surface.means(point, effort)[0] for point, effort in zip(points[:33], efforts[:33], strict=True)]
    assert together.tolist() == pytest.approx(alone, abs=1e-15)


def test_the_same_seed_gives_the_same_surface(samples) -> None:
    some = [part[:400] for part in samples]
    one, same, other = (ParkSurface.fit(*some, seed=seed).means(samples[0], 1.0) for seed in (3, 3, 4))
    assert (one == same).all()
    assert (one != other).any()


def test_one_kind_of_outcome_is_refused(samples) -> None:
    with pytest.raises(InvalidRecords, match="with and without an observation"):
        ParkSurface.fit(samples[0], samples[1], np.zeros(2000))


def test_the_domain_of_a_synthetic_park() -> None:
    env = synthetic_domain(seed=1, waypoints=2000, finest=8)
    assert env.log is not None
    assert len(env.log) == 2000
    assert 0.0 < env.optimum <= 2.0
    again = synthetic_world(1, 2000)
    assert synthetic_world(1, 2000) is again
    drawn = env.draw_history(300, seed=5)
    logged = {tuple(point) for point in again.points.tolist()}
    assert drawn.points is not None
    assert {tuple(point) for point in drawn.points.tolist()} <= logged
