"""What a setting gives: pure, the same in every mode, and what its name says."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import artreplay as ar
import artreplay_patrol
from reproduction import algorithms
from reproduction.computing import TIMINGS, code_fingerprint, compute, digests, rounds_kept, sources
from reproduction.setting import make_setting

ARMS = {"environment": "arms", "arms": 3, "budget": 1, "horizon": 20, "algorithm": "MonUCB"}


def test_curves_keep_the_first_and_the_last_round() -> None:
    assert rounds_kept(1).tolist() == [1]
    assert rounds_kept(7).tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert len(rounds_kept(1000)) == 101
    assert rounds_kept(1000)[[0, -1]].tolist() == [1, 1000]


def test_a_simulation_is_that_of_simulate() -> None:
    result = compute(make_setting("a", "simulate", 3, 1, start="artificial-replay", history=30, **ARMS))
    env, base = ar.environments.KArmed(3), ar.MonUCB(3, 20)
    runs = ar.simulate(base, env, history=30, horizon=20, replications=3, seed=1)
    np.testing.assert_array_equal(result.measured["regret"][1], runs.regret)
    np.testing.assert_array_equal(result.measured["used"][1], runs.used)
    assert result.seconds >= 0.0
    assert result.timings == ()
    assert result.code == code_fingerprint()


def test_the_time_of_a_replication_is_taken_several_times_where_it_is_shown() -> None:
    setting = make_setting("a", "simulate", 3, 1, start="full-start", history=30, timed=True, **ARMS)
    timings = compute(setting).timings
    assert len(timings) == TIMINGS
    assert all(each >= 0.0 for each in timings)


def test_the_fingerprint_covers_the_package_for_patrols(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artreplay_patrol, "__file__", str(tmp_path / "__init__.py"))
    assert code_fingerprint.__wrapped__() != code_fingerprint()


def test_digests_are_equal_for_equal_actions_only() -> None:
    env, base = ar.environments.KArmed(3), ar.MonUCB(3, 20)
    starts = ("artificial-replay", "full-start", "ignorant")
    replay, full, ignorant = (
        digests(ar.simulate(base, env, start, history=30, horizon=20, replications=5)) for start in starts
    )
    assert replay.tolist() == full.tolist()
    assert (replay != ignorant).any()
    assert len(set(replay)) > 1


def test_levels_are_part_of_the_digest() -> None:
    fields = {
        "regret": np.zeros((1, 2)),
        "used": np.zeros((1, 2), np.int64),
        "horizon": 2,
        "history": 0,
        "seconds": 0.0,
    }
    actions = np.array([[[5], [6]]])
    one, other = (ar.Runs(**fields, actions=actions, levels=np.array([[[level], [1.0]]])) for level in (0.5, 1.0))
    assert digests(one)[0] != digests(other)[0]


@pytest.mark.parametrize("algorithm", ["GridUCB", "TreeUCB"])
def test_a_partition_covers_the_square_once(algorithm: str) -> None:
    fixed = {"environment": "hills", "history": 40, "horizon": 20, "finest": 8}
    result = compute(make_setting("a", "partition", 1, 0, algorithm=algorithm, **fixed), mode="interpreted")
    cells, samples = result.cells(), result.samples()
    assert ((cells[:, 2] - cells[:, 0]) * (cells[:, 3] - cells[:, 1])).sum() == pytest.approx(1.0)
    assert samples.shape == (40, 4)


def test_a_surface_runs_along_the_first_coordinate() -> None:
    fixed = {"environment": "piecewise linear", "levels": (1.0,), "budget": 1.0, "max_units": 1, "finest": 4}
    means = compute(make_setting("a", "surface", 1, 0, shown=2, level=1.0, **fixed)).measured["mean"][1][0]
    np.testing.assert_allclose(means, [0.25, 0.5, 0.5, 0.75])
    hills = compute(make_setting("a", "surface", 1, 0, environment="hills", finest=4, shown=10)).measured["mean"][1][0]
    assert np.unravel_index(hills.argmax(), (10, 10)) == (6, 7) or hills.argmax() in (66, 67)


def test_pulls_are_beside_the_lemma() -> None:
    setting = make_setting("a", "pulls", 4, 2, start="artificial-replay", history=25, **ARMS | {"algorithm": "PsiUCB"})
    measured = compute(setting, mode="interpreted").measured
    gap, pulls, bound = (measured[name][1] for name in ("gap", "pulls", "bound"))
    assert (pulls.sum(axis=1) == 20).all()
    assert (gap.min(axis=1) == 0).all()
    env = ar.environments.KArmed(3)
    history = env.draw_history(25, seed=2, replication=3)
    logged = np.bincount([history.unit(row) for row in range(25)], minlength=3)
    needed = [
        1 + max(0.0, 4 * math.log(2 * 20 * 3) / g**2 - h) if g > 0 else 21 for g, h in zip(gap[3], logged, strict=True)
    ]
    np.testing.assert_allclose(bound[3], np.minimum(needed, 21))


def test_an_index_falls_below_the_mean_more_often_with_more_samples_and_less_with_a_wider_bonus() -> None:
    fixed = {"samples": (10, 100, 1000), "horizon": 1000}
    shares = {
        bonus: compute(make_setting("a", "below-mean", 5, 0, bonus=bonus, **fixed)).measured["share"][1].mean(axis=0)
        for bonus in ("practical", "anytime", "theory")
    }
    assert 0.0 < shares["practical"][0] < shares["practical"][1] < shares["practical"][2] < 0.25
    assert (shares["anytime"] == 0).all()
    assert (shares["theory"] == 0).all()


def test_modes_do_not_change_results() -> None:
    setting = make_setting("a", "simulate", 2, 0, start="full-start", history=10, **ARMS)
    one, other = (compute(setting, mode=mode).measured for mode in ("interpreted", "compiled"))
    for metric in one:
        np.testing.assert_array_equal(one[metric][1], other[metric][1])


def test_what_has_no_places_has_no_partition() -> None:
    for kind in ("partition", "surface"):
        with pytest.raises(TypeError, match=f"has no {kind}"):
            compute(make_setting("a", kind, 1, 0, shown=2, history=1, **ARMS))


def test_the_fingerprint_covers_all_that_is_played() -> None:
    names = {path.as_posix() for path in sources()}
    assert {"artreplay/algorithms/ucb.py", "artreplay/engine/play.py", "reproduction/computing.py"} <= names
    folder = Path(algorithms.__file__).parent
    assert {f"reproduction/algorithms/{path.name}" for path in folder.glob("*.py")} <= names
    assert not any(name.startswith("artreplay/cli/") for name in names)
