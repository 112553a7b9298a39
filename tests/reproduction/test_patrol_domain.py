"""The `Patrol` domain: mean rewards of a surface, and a log that lies where patrols went."""

from __future__ import annotations

import numpy as np
import pytest

import artreplay as ar
from artreplay.errors import InvalidHistory, InvalidParameter
from reproduction.domains.patrol_domain import Patrol


class Slope:
    """Better in the east, in proportion to effort."""

    def means(self, points, levels):
        return points[:, 0] * np.minimum(levels, 1.0)


LOG = ar.History([(0.1, 0.1), (0.2, 0.9), (0.1, 0.1)], [1, 0, 0], levels=[1.0, 0.5, 0.5])


def test_a_log_is_drawn_from_the_records() -> None:
    drawn = Patrol(Slope(), log=LOG).draw_history(500, seed=3)
    assert drawn.points is not None
    assert drawn.levels is not None
    rows = {(*point, level) for point, level in zip(drawn.points.tolist(), drawn.levels.tolist(), strict=True)}
    assert rows == {(0.1, 0.1, 1.0), (0.2, 0.9, 0.5), (0.1, 0.1, 0.5)}
    assert drawn.rewards.mean() == pytest.approx((0.1 + 0.1 + 0.05) / 3, abs=0.04)  # of the surface, not of the log


def test_a_shorter_log_is_a_prefix() -> None:
    env = Patrol(Slope(), log=LOG)
    env.draw_history(50, seed=1).check_continues(env.draw_history(20, seed=1).fingerprint)


def test_without_records_the_log_is_uniform() -> None:
    drawn = Patrol(Slope()).draw_history(400)
    assert drawn.points is not None
    assert drawn.points.mean(axis=0) == pytest.approx([0.5, 0.5], abs=0.06)


def test_the_optimum_is_the_best_affordable_choice() -> None:
    env = Patrol(Slope(), levels=(0.5, 1.0), budget=2.0, max_units=5, finest=4, noise="none")
    assert env.optimum == pytest.approx(2 * 0.875)


def test_replay_is_full_start_in_it() -> None:
    env = Patrol(Slope(), log=LOG, finest=4)
    base = ar.TreeAllocation(2, levels=(0.5, 1.0), budget=2.0, max_units=5, horizon=20, epsilon=0.25)
    with ar.compiling.using("interpreted"):
        replay, full = (
            ar.simulate(base, env, start=start, history=30, horizon=20, replications=2, threads=1)
            for start in ("artificial-replay", "full-start")
        )
    assert replay.actions is not None
    assert (replay.actions == full.actions).all()
    assert (replay.regret == full.regret).all()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"surface": 3}, "surface must offer means"),
        ({"log": ar.History([0, 1], [0, 1])}, "log must hold samples at points of dimension 2"),
        ({"log": ar.History([(2.0, 0.0)], [0], levels=[1])}, "must lie in the unit square"),
        ({"log": ar.History([(0.5, 0.0)], [0], levels=[7])}, "level in row 0 is 7, the levels are"),
        ({"log": LOG, "bad_share": 0.5}, "bad_share is for uniform logs"),
        ({"budget": -1.0}, "budget"),
    ],
)
def test_refusals(options, sentence: str) -> None:
    with pytest.raises((InvalidHistory, InvalidParameter), match=sentence):
        Patrol(**({"surface": Slope()} | options))
