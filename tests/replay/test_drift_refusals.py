"""Allowances that cannot be: one sentence, and nothing has changed. What contradicts a log, and how it is kept."""

from __future__ import annotations

import math
from datetime import datetime
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest

import artreplay as ar
from artreplay.algorithms.bounds import likelihood_interval
from artreplay.errors import ChangedHistory, InvalidHistory, InvalidParameter
from artreplay.history.sources.parts import joined

LOG = ar.History(["red", "blue", "red"], [0.0, 1.0, 1.0])


def with_allowances(allowances: list[float]) -> ar.History:
    return ar.History(["red", "blue", "red"], [0.0, 1.0, 1.0], allowance=allowances)


def base() -> ar.KLUCB:
    return ar.KLUCB(arms=["red", "blue"], horizon=50)


@pytest.mark.parametrize(
    ("drift", "said"),
    [
        (-0.1, "drift must be finite and at least 0, got -0.1"),
        (math.inf, "drift must be finite and at least 0, got inf"),
        (math.nan, "drift must be finite and at least 0, got nan"),
        ("much", r"got 'much'. Name a column where you open the log: open_history\(..., allowance='much'\)"),
        (None, "drift must be a number, got None"),
        ({"green": 0.1}, "drift has 'green', which is not an arm; the arms are 'red', 'blue'"),
        ({"red": -1}, "drift of 'red' must be finite and at least 0, got -1"),
        ([0.1, 0.2, 0.3], r"Allowances of rows belong to the log: History\(..., allowance=\)"),
        (ar.drift.age(0.1, 5, [1, 2, 3]), r"Allowances of rows belong to the log: History\(..., allowance=\)"),
        (1.0, "drift must be less than the width of the range of rewards"),
    ],
)
def test_what_is_no_drift_is_refused(drift, said):
    for policy in (ar.ArtificialReplay, ar.FullStart):
        with pytest.raises(InvalidParameter, match=said):
            policy(base(), LOG, drift=drift)


@pytest.mark.parametrize(
    ("allowance", "said"),
    [
        ([0.1, 0.2], "allowance must have one number for each of 3 rows, got 2"),
        ([0.1, 0.2, -0.3], "allowance in row 2 is -0.3, expected a finite number of at least 0"),
        ([0.1, math.inf, 0.0], "allowance in row 1 is inf, expected a finite number of at least 0"),
        ([0.1, None, 0.0], "allowance in row 1 is (missing|nan)"),
        (["a", "b", "c"], "allowance in row 0 is 'a', expected a number"),
        ("stale", "allowance must be one number per row, got 'stale'"),
    ],
)
def test_what_is_no_column_of_allowances_is_refused(allowance, said):
    with pytest.raises(InvalidHistory, match=said):
        ar.History(["red", "blue", "red"], [0.0, 1.0, 1.0], allowance=allowance)


def test_a_column_of_a_table_has_allowances(tmp_path):
    table = pa.table({"arm": ["red", "blue", "red"], "click": [0, 1, 1], "stale": [0.5, 0.0, 0.25], "at": [2, 1, 0]})
    opened = ar.open_history(table, "arm", "click", order="at", allowance="stale")
    assert opened.allowances.tolist() == [0.25, 0.0, 0.5]
    framed = ar.History.from_frame(table, "arm", "click", allowance="stale", until=2)
    assert framed.allowances.tolist() == [0.5, 0.0]
    assert (
        ar.open_history(table, "arm", "click", allowance="stale", until=2).fingerprint.first_difference(
            framed.fingerprint
        )
        is None
    )
    again = opened.shuffled(3).rows(np.argsort(opened.shuffled(3).rewards, kind="stable"))
    assert sorted(again.allowances.tolist()) == [0.0, 0.25, 0.5]
    points = ar.open_history(pa.table({"x": [0.5], "y": [1], "v": [0.1]}), ["x"], "y", allowance="v")
    assert points.allowances.tolist() == [0.1]
    for wrong, said in (
        ({"allowance": "click"}, "allowance must be a column other than unit, reward and level, got 'click'"),
        ({"allowance": 3}, "allowance must name a column, got 3"),
        ({"allowance": "none"}, "allowance must name one column, got 'none'"),
    ):
        with pytest.raises(ValueError, match=said):
            ar.open_history(table, "arm", "click", **wrong)
    (tmp_path / "log.csv").write_text("arm,click,stale\nred,1,0.5\nred,0,-1\n")
    with pytest.raises(
        InvalidHistory, match=r"allowance \(column 'stale'\) in row 1 is -1.0, expected a finite number"
    ):
        ar.open_history(tmp_path / "log.csv", "arm", "click", allowance="stale")
    with pytest.raises(InvalidParameter, match="allowance must be left out for a table of totals"):
        ar.open_history(table, "arm", count="click", sum="at", allowance="stale")


def test_parts_of_a_log_all_have_allowances_or_none():
    with pytest.raises(InvalidHistory, match="the parts of a log must all have allowances, or none"):
        joined([LOG, with_allowances([0.1, 0.2, 0.3])])
    both = joined([with_allowances([0.1, 0.2, 0.3]), with_allowances([0.4, 0.5, 0.6])])
    assert both.allowances.tolist() == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]


def test_ages_are_a_column():
    assert ar.drift.age(0.5, 5, [1, 2, 5]).tolist() == [2.0, 1.5, 0.0]
    days = ar.drift.age(0.5, datetime(2024, 1, 3), [datetime(2024, 1, 1), datetime(2024, 1, 2, 12)])
    assert days.tolist() == [1.0, 0.25]
    for times, now, said in (
        (None, 5, "times must hold one time for each row of the log, got None"),
        ("when", 5, "times must hold one time for each row of the log, got 'when'"),
        ([1, 2, 3], datetime(2024, 1, 1), "times must hold one time for each row, of the same kind as now"),
    ):
        with pytest.raises(InvalidParameter, match=said):
            ar.drift.age(0.1, now, times)


def test_a_time_after_now_is_refused_with_its_row():
    with pytest.raises(InvalidHistory, match="the time in row 1 must not lie after now"):
        ar.drift.age(0.1, 5, [1, 6, 2])
    with pytest.raises(InvalidParameter, match="rate must be finite and at least 0, got -1"):
        ar.drift.age(-1, 5, [1, 2, 3])


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: ar.LinUCB([[1, 0], [0, 1]], 50), "LinUCB, which has no place for an allowance"),
        (lambda: ar.UCB1(2), "UCB1, which has no place for"),
        (lambda: ar.ThompsonSampling(2), "ThompsonSampling, which has no place for"),
    ],
)
def test_bases_without_a_place_for_it_refuse_it(make, said):
    log = ar.History([0, 1], [0.0, 1.0])
    with pytest.raises(InvalidParameter, match=said):
        ar.ArtificialReplay(make(), log, drift=0.1)
    ar.ArtificialReplay(make(), log, drift=0)
    with pytest.raises(InvalidParameter, match=said):
        ar.ArtificialReplay(make(), ar.History([0, 1], [0.0, 1.0], allowance=[0.0, 0.1]))


def test_drift_by_arm_is_for_arms():
    with pytest.raises(InvalidParameter, match="drift by arm is for algorithms over arms"):
        ar.ArtificialReplay(ar.TreeUCB(1, 50), ar.History([[0.1]], [1.0]), drift={0: 0.1})


@pytest.mark.parametrize("make", [ar.FullStart, ar.ArtificialReplay])
def test_totals_have_no_place_for_drift(make):
    with pytest.raises(InvalidParameter, match="drift is for rows that are shown one at a time"):
        make(base(), ar.Totals(["red", "blue"], [3, 4], [1, 2]), drift=0.1)


class Plain:
    """An object that is told where samples come from."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, float, float]] = []

    def propose(self) -> str:
        return "red"

    def update(self, unit: str, reward: float) -> None:
        self.seen.append((unit, reward, -1.0))

    def update_logged(self, unit: str, reward: float, allowance: float) -> None:
        self.seen.append((unit, reward, allowance))


class Deaf(Plain):
    update_logged = None  # type: ignore[assignment]


def test_an_object_of_the_users_own_hears_allowances_if_it_offers_to():
    policy = ar.ArtificialReplay(Plain(), with_allowances([0.1, 0.2, 0.3]))
    policy.ask()
    assert policy.base.seen == [("red", 0.0, 0.1), ("red", 1.0, 0.3)]
    assert ar.FullStart(Plain(), LOG, drift=0.25).ask() == "red"
    with pytest.raises(InvalidParameter, match="must offer update_logged for drift, and Deaf does not"):
        ar.ArtificialReplay(Deaf(), LOG, drift=0.1)


@ar.compiled
class Component(NamedTuple):
    """A component that adds allowances up."""

    allowed: np.ndarray
    n_arms = 2

    def propose(self, out):
        out[0] = 0
        return 1

    def update(self, unit, reward):
        pass

    def update_logged(self, unit, reward, allowance):
        self.allowed[unit] += allowance


def test_a_component_hears_allowances_too():
    policy = ar.ArtificialReplay(Component(np.zeros(2)), ar.History([0, 1, 0], [1.0, 1.0, 0.0]), drift=0.25)
    policy.ask()
    assert policy.base.allowed.tolist() == [0.5, 0.0]


def test_stores_take_a_number_or_numbers_by_arm(tmp_path):
    table = pa.table({"arm": ["red", "blue", "red"], "reward": [0, 1, 1]})
    ar.index_history(table, tmp_path / "log", unit="arm", reward="reward")
    store = ar.open_history(tmp_path / "log")
    assert ar.ArtificialReplay(base(), store, drift={"red": 1.0}).skipped == 2
    with pytest.raises(InvalidParameter, match="drift must be less than the width of the range of rewards"):
        ar.ArtificialReplay(base(), store, drift=1.5)


def test_beside_allowances_of_the_log_there_is_no_drift():
    log = with_allowances([0.1, 0.0, 0.1])
    numbered = ar.History([0, 1], [0.0, 1.0], allowance=[0.1, 0.1])
    for drift in (0.1, {"red": 0.1}):
        with pytest.raises(InvalidParameter, match="drift must be left out where the log has allowances of its own"):
            ar.FullStart(base(), log, drift=drift)
        with pytest.raises(InvalidParameter, match="drift must be left out where the log has allowances of its own"):
            ar.simulate(ar.KLUCB(2, 9), ar.environments.KArmed(2), history=numbered, drift=0.1)
    ar.FullStart(base(), log, drift=0.0)
    with pytest.raises(InvalidParameter, match="a relation and drift do not go together"):
        ar.ArtificialReplay(base(), log, relation=lambda *_: True)


def test_whether_rows_have_allowances_is_fixed(tmp_path):
    more, allowed = LOG.rows(np.array([0, 1, 2, 1])), with_allowances([0.1, 0.2, 0.3]).rows(np.array([0, 1, 2, 1]))
    for drift in (0.0, 0.1):
        without = ar.ArtificialReplay(base(), LOG, drift=drift)
        with pytest.raises(InvalidParameter, match="the log has allowances now, and had none when the policy was made"):
            without.extend(allowed)
        without.extend(more)
    policy = ar.ArtificialReplay(base(), with_allowances([0.1, 0.2, 0.3]))
    policy.save(tmp_path / "policy")
    for one in (policy, ar.load(tmp_path / "policy", with_allowances([0.1, 0.2, 0.3]))):
        with pytest.raises(
            InvalidParameter, match="the log must have allowances, because it had them when the policy was made"
        ):
            one.extend(more)
        one.extend(allowed)
        assert one.ask() == policy.ask()
    changed = ar.History(["red", "blue", "red", "blue"], [0.0, 1.0, 1.0, 1.0], allowance=[0.1, 0.2, 0.4, 0.0])
    with pytest.raises(ChangedHistory, match="row 2 has changed"):
        policy.extend(changed)


@pytest.mark.parametrize("drift", [0.25, {"red": 0.5, "blue": 0.0}, {"red": 1.0}])
def test_a_policy_keeps_its_drift_for_new_rows(drift, tmp_path):
    more = LOG.rows(np.array([0, 1, 2, 1, 0, 0]))
    policy = ar.ArtificialReplay(base(), LOG, drift=drift)
    policy.ask()
    policy.save(tmp_path / "policy")
    again, fresh = ar.load(tmp_path / "policy", more), ar.FullStart(base(), more, drift=drift)
    policy.extend(more)
    for one in (policy, again, fresh):
        one.tell("red", 0.0)
        one.tell("blue", 0.0)
    assert again.cells() == policy.cells()
    assert (again.skipped, again.used) == (policy.skipped, policy.used) == (fresh.skipped, fresh.used)


def test_simulations_over_drawn_logs_leave_no_arm_out():
    with pytest.raises(InvalidParameter, match="drift must be less than the range of rewards if history= is a number"):
        ar.simulate(ar.KLUCB(2, 9), ar.environments.KArmed(2), history=5, drift={0: 1.0})


def test_contradictions_are_what_chance_does_not_explain(tmp_path):
    log = ar.History([0, 1] * 100, [1.0, 0.0] * 100)
    policy = ar.ArtificialReplay(ar.KLUCB(2, 1000, reward_range=(0, 2)), log)
    policy.ask()
    noticed = []
    while not noticed:
        policy.tell(0, 0.0)
        noticed = policy.contradictions()
    (found,) = noticed
    assert (found.unit, found.logged_mean, found.logged_count) == (0, pytest.approx(1.0), 100)
    assert (found.online_mean, found.online_count) == (0.0, policy.rounds)
    # Of n rewards of 0, the true mean may be as high as 1 − .001^(1/n). Half of the range, 100 times, may be .5 − .18.
    now, before = (1.0 - 0.001 ** (1.0 / n) for n in (policy.rounds, policy.rounds - 1))
    (lowest,), _ = likelihood_interval(np.array([0.5]), np.array([100]), math.log(1000.0))
    assert now < lowest <= before  # noticed at the first sample that chance does not explain
    assert str(found).startswith("0 earned 0 on average in")
    policy.save(tmp_path / "policy")
    again = ar.load(tmp_path / "policy", log)
    assert again.contradictions() == policy.contradictions() == noticed
    for _ in range(again.rounds):
        again.tell(0, 2.0)
    assert again.contradictions() == []  # the means are compared as they are now
    assert ar.Ignorant(ar.KLUCB(2, 100)).contradictions() == []


@pytest.mark.parametrize("drift", [0.0, 0.1])
def test_what_a_base_was_shown_before_is_not_taken_for_the_log(drift, tmp_path):
    base = ar.KLUCB(2, 4000)
    for _ in range(200):
        base.update(0, 0.0)
    policy = ar.ArtificialReplay(base, ar.History([0] * 50, [1.0] * 50), drift=drift)
    for _ in range(60):
        policy.tell(0, 1.0)
    policy.save(tmp_path / "policy")
    again = ar.load(tmp_path / "policy", policy.history)
    for one in (policy, again):
        one.tell(0, 1.0)
        assert one.contradictions() == []  # the log and the rounds agree
    nothing_logged = ar.ArtificialReplay(base, ar.History([1], [1.0]), drift=drift)
    for _ in range(60):
        nothing_logged.tell(0, 1.0)
    assert nothing_logged.contradictions() == []


def test_contradictions_are_noticed_at_click_rates_and_not_by_chance():
    """An arm that fell from 11 % to 2 % is found, and of 400 arms that stayed at 5 % none."""
    log = ar.History(np.repeat([0, 1], [1200, 1000]), np.repeat([1.0, 0.0, 1.0, 0.0], [132, 1068, 100, 900]))
    policy = ar.FullStart(ar.KLUCB(2, 2000), log)
    for round_ in range(350):
        policy.tell(0, float(round_ % 50 == 0))
    assert [found.unit for found in policy.contradictions()] == [0]
    rng = np.random.default_rng(5)
    honest = ar.FullStart(ar.KLUCB(400, 1000), ar.History(np.tile(np.arange(400), 300), rng.random(120_000) < 0.05))
    honest.tell_rounds(np.tile(np.arange(400), 200), (rng.random(80_000) < 0.05).astype(float))
    assert honest.contradictions() == []


def test_drift_allows_for_what_would_contradict():
    log = ar.History([0, 1] * 500, [0.5, 0.0] * 500)
    noticed = {}
    for drift in (0, 0.1, 0.4):
        policy = ar.ArtificialReplay(ar.MonUCB(2, 1000), log, drift=drift)
        for _ in range(300):
            policy.tell(0, 0.1)
        noticed[drift] = len(policy.contradictions())
    assert noticed == {0: 1, 0.1: 1, 0.4: 0}
