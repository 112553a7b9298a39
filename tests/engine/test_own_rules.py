"""Simulations with rules of the user's own: a relation in place of cells, and a rule that stops and recommends."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import artreplay as ar
from artreplay.errors import InvalidAction, InvalidParameter

ENV = ar.environments.KArmed(3, means=[0.2, 0.5, 0.8])


def equal(logged: Any, proposed: Any, base: Any) -> bool:
    return bool(logged == proposed)


def enough_of_each(policy: Any) -> Any:
    """Recommend the arm with the highest mean once each arm has ten samples."""
    cells = policy.cells()
    if min(cell.count for cell in cells) < 10:
        return None
    return max(cells, key=lambda cell: cell.mean).unit


class PlainTurns:
    """A plain object that plays three arms in turn."""

    def __init__(self) -> None:
        self.seen = 0

    def propose(self) -> int:
        return self.seen % 3

    def update(self, arm: int, reward: float) -> None:
        self.seen += 1


def run(base: Any = None, env: Any = ENV, **more: Any) -> ar.Runs:
    base = ar.MonUCB(3, 30) if base is None else base
    return ar.simulate(base, env, **({"history": 40, "horizon": 60, "replications": 4} | more))


# -- relations --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("keep", ["all", "final"])
def test_equality_as_a_relation_is_what_cells_are(keep) -> None:
    with ar.compiling.using("interpreted"):
        cells = run(keep=keep, horizon=20)
    related = run(keep=keep, horizon=20, relation=equal)
    for name in ("regret", "used", "actions", "rewards", "used_by_arm"):
        np.testing.assert_array_equal(getattr(cells, name), getattr(related, name))


def test_a_relation_over_points_is_what_cells_are() -> None:
    space = ar.environments.Metric(lambda points: points[:, 0], dim=1)
    base = ar.GridUCB(1, 20, cells_per_side=4)
    with ar.compiling.using("interpreted"):
        cells = run(base, space, horizon=20)
    related = run(
        base, space, horizon=20, relation=lambda logged, proposed, _: int(4 * logged[0]) == int(4 * proposed[0])
    )
    np.testing.assert_array_equal(cells.regret, related.regret)
    np.testing.assert_array_equal(cells.used, related.used)
    assert abs(cells.points() - related.points()).max() < 1e-3  # the centre, and the finest box it lies in


def test_a_relation_may_read_less_or_more_than_the_cells() -> None:
    nothing = run(relation=lambda logged, proposed, base: False)
    assert (nothing.used == 0).all()
    np.testing.assert_array_equal(nothing.regret, run(start="ignorant").regret)
    assert (run(relation=lambda logged, proposed, base: True).used[:, 0] == 40).all()


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"relation": equal, "start": "full-start"}, "relation needs start=\"artificial-replay\", got 'full-start'"),
        ({"relation": 3}, "relation must be a callable (logged unit, proposed unit, base) or None, got 3"),
        ({"relation": equal, "drift": 0.1}, "a relation and drift do not go together"),
        ({"relation": equal, "history": ar.Totals([0], [3], [1])}, "a relation needs rows in memory"),
        ({"stop": 3}, "stop must be a function of a policy that returns an arm or None, got 3"),
        ({"stop": lambda policy: False}, "stop must return the arm to recommend, or None to go on, got False"),
        ({"stop": enough_of_each, "env": ar.environments.Quadratic()}, "stop needs a world of arms without contexts"),
        ({"stop": enough_of_each, "env": ar.environments.LinearContexts(3, 2)}, "stop needs a world of arms without"),
    ],
)
def test_what_does_not_go_together_is_refused(more, sentence) -> None:
    with pytest.raises(InvalidParameter, match=re.escape(sentence)):
        run(**more)


# -- stopping ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", ["ignorant", "full-start", "artificial-replay"])
def test_a_replication_ends_where_the_rule_recommends_an_arm(start) -> None:
    """Up to there it is the simulation without the rule, and then nothing is played."""
    whole = run(ar.RandomChoice(3), start=start)
    runs = run(ar.RandomChoice(3), start=start, stop=enough_of_each)
    assert (runs.recommended >= 0).all()
    for world, stopped in enumerate(runs.stopped.astype(int).tolist()):
        before = np.bincount(whole.actions[world, :stopped], minlength=3) + runs.used_by_arm[world]
        assert before.min() == 10 or (before.min() > 10 and start != "ignorant")
        for name in ("regret", "used", "actions", "rewards"):
            mine, theirs = getattr(runs, name)[world], getattr(whole, name)[world]
            np.testing.assert_array_equal(mine[:stopped], theirs[:stopped])
        assert (runs.actions[world, stopped:] == -1).all()
        assert np.isnan(runs.rewards[world, stopped:]).all()
        last = whole.regret[world, stopped - 1] if stopped else 0.0
        assert (runs.regret[world, stopped:] == last).all()
        assert (np.diff(runs.used[world, stopped:]) == 0).all()
    np.testing.assert_allclose(runs.simple_regret, 0.8 - np.array([0.2, 0.5, 0.8])[runs.recommended])
    final = run(ar.RandomChoice(3), start=start, stop=enough_of_each, keep="final")
    for name in ("stopped", "recommended", "simple_regret"):
        np.testing.assert_array_equal(getattr(final, name), getattr(runs, name))
    for name in ("regret", "used"):
        np.testing.assert_array_equal(getattr(final, name)[:, 0], getattr(runs, name)[:, -1])


def test_a_rule_that_never_stops_changes_nothing() -> None:
    runs = run(stop=lambda policy: None)
    assert np.isnan(runs.stopped).all()
    assert (runs.recommended == -1).all()
    assert np.isnan(runs.simple_regret).all()
    np.testing.assert_array_equal(runs.regret, run().regret)
    assert run().stopped is None
    assert run().recommended is None


def test_a_rule_is_asked_once_more_after_the_last_round() -> None:
    runs = run(horizon=5, stop=lambda policy: 1 if policy.rounds == 5 else None)
    assert runs.stopped.tolist() == [5.0] * 4
    assert (runs.actions >= 0).all()
    np.testing.assert_allclose(runs.simple_regret, 0.3)


def test_labels_are_recommended_by_name_and_must_be_arms() -> None:
    base = ar.UCB1(arms=["a", "b", "c"])
    assert run(base, stop=lambda policy: "b").recommended.tolist() == [1] * 4
    for odd in ("d", 7, [1], 1.0):
        sentence = re.escape(f"stop must return one of the arms, or None to go on, got {odd!r}")
        for each in (base, PlainTurns()):
            with pytest.raises(InvalidAction, match=sentence):
                run(each, stop=lambda policy, odd=odd: odd)


def test_stopped_runs_are_saved_joined_and_compared(tmp_path) -> None:
    parts = [run(stop=enough_of_each, first_replication=first) for first in (0, 4)]
    joined = ar.Runs.join(*parts)
    joined.save(tmp_path / "runs.parquet")
    again = ar.Runs.load(tmp_path / "runs.parquet")
    np.testing.assert_array_equal(again.stopped, run(stop=enough_of_each, replications=8).stopped)
    assert again.recommended.tolist() == joined.recommended.tolist()
    with pytest.raises(InvalidParameter, match="joined runs must have the same stop"):
        ar.Runs.join(parts[0], run(stop=lambda policy: 0, first_replication=4))
