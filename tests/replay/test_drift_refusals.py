"""Allowances that cannot be: one sentence, and nothing has changed. What contradicts a log, and how it is kept."""

from __future__ import annotations

import math
from datetime import datetime
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest

import artreplay as ar
from artreplay.errors import InvalidHistory, InvalidParameter

LOG = ar.History(["red", "blue", "red"], [0.0, 1.0, 1.0])


def base() -> ar.KLUCB:
    return ar.KLUCB(arms=["red", "blue"], horizon=50)


@pytest.mark.parametrize(
    ("drift", "said"),
    [
        (-0.1, "drift must be finite and at least 0, got -0.1"),
        (math.inf, "drift must be finite and at least 0, got inf"),
        (math.nan, "drift must be finite and at least 0, got nan"),
        ("much", "drift must be a number, got 'much'"),
        (None, "drift must be a number, got None"),
        ({"green": 0.1}, "drift has 'green', which is not an arm; the arms are 'red', 'blue'"),
        ({"red": -1}, "drift of 'red' must be finite and at least 0, got -1"),
        ([0.1, 0.2], "drift must have one number for each row, got 2 for 3 rows"),
        ([0.1, 0.2, -0.3], r"drift must be finite and at least 0, got -0.3 for row 2"),
        (["a", "b", "c"], "drift must be a number, or one for each arm or row"),
        (ar.drift.age(0.1, 5, [1, 2]), "drift must have one number for each row, got 2 for 3 rows"),
        (ar.drift.age(0.1, 5, None), "ages need a column of times, one for each row of the log, got None"),
        (ar.drift.age(0.1, 5, "when"), "ages need a column of times, one for each row of the log, got 'when'"),
        (ar.drift.age(0.1, datetime(2024, 1, 1), [1, 2, 3]), "ages need one time for each row, of the same kind"),
    ],
)
def test_what_is_no_drift_is_refused(drift, said):
    for policy in (ar.ArtificialReplay, ar.FullStart):
        with pytest.raises(InvalidParameter, match=said):
            policy(base(), LOG, drift=drift)


def test_a_time_after_now_is_refused_with_its_row():
    with pytest.raises(InvalidHistory, match="the time in row 1 must not lie after now"):
        ar.ArtificialReplay(base(), LOG, drift=ar.drift.age(0.1, 5, [1, 6, 2]))
    with pytest.raises(InvalidParameter, match="rate must be finite and at least 0, got -1"):
        ar.drift.age(-1, 5, [1, 2, 3])


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: ar.LinUCB([[1, 0], [0, 1]], 50), "LinUCB has no place for an allowance"),
        (lambda: ar.UCB1(2), "UCB1 has no place for"),
        (lambda: ar.ThompsonSampling(2), "ThompsonSampling has no place for"),
    ],
)
def test_bases_without_a_place_for_it_refuse_it(make, said):
    log = ar.History([0, 1], [0.0, 1.0])
    with pytest.raises(InvalidParameter, match=said):
        ar.ArtificialReplay(make(), log, drift=0.1)
    ar.ArtificialReplay(make(), log, drift=0)


def test_a_word_is_no_drift_and_drift_by_arm_is_for_arms():
    with pytest.raises(InvalidParameter, match="drift must be a number, got 'auto'"):
        ar.ArtificialReplay(base(), LOG, drift="auto")
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
    policy = ar.ArtificialReplay(Plain(), LOG, drift=[0.1, 0.2, 0.3])
    policy.ask()
    assert policy.base.seen == [("red", 0.0, 0.1), ("red", 1.0, 0.3)]
    assert ar.FullStart(Plain(), LOG, drift=0.25).ask() == "red"
    with pytest.raises(InvalidParameter, match="must offer update_logged for drift, Deaf does not"):
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


def test_rows_of_their_own_need_a_log_in_memory(tmp_path):
    table = pa.table({"arm": ["red", "blue", "red"], "reward": [0, 1, 1]})
    ar.index_history(table, tmp_path / "log", unit="arm", reward="reward")
    store = ar.open_history(tmp_path / "log")
    with pytest.raises(InvalidParameter, match="drift by row needs a log in memory"):
        ar.ArtificialReplay(base(), store, drift=[0.1, 0.2, 0.3])
    assert ar.ArtificialReplay(base(), store, drift={"red": 1.0}).skipped == 2
    with pytest.raises(InvalidParameter, match="drift is as wide as the range of rewards"):
        ar.ArtificialReplay(base(), store, drift=1.5)


def test_what_extend_is_given_must_fit():
    more = ar.History(["red", "blue", "red", "blue"], [0.0, 1.0, 1.0, 0.0])
    policy = ar.ArtificialReplay(base(), LOG, drift=[0.1, 0.1, 0.1])
    with pytest.raises(InvalidParameter, match=r"extend\(history, drift=\) needs one number for each row"):
        policy.extend(more)
    with pytest.raises(InvalidParameter, match=r"extend\(history, drift=\) needs one number for each row"):
        policy.extend(more, drift=ar.drift.age(0.1, 4, [1, 2, 3, 4]))
    policy.extend(more, drift=[0.9, 0.9, 0.9, 0.2])
    assert policy._drift.kept()[1].tolist() == [0.1, 0.1, 0.1, 0.2]  # what is known stays as it was
    fixed = ar.ArtificialReplay(base(), LOG, drift=0.1)
    with pytest.raises(InvalidParameter, match="drift was fixed when the policy was made"):
        fixed.extend(more, drift=0.2)
    fixed.extend(more)


def test_the_newest_rows_are_read_first():
    log = ar.History([0] * 6, [0.0, 0.0, 0.0, 1.0, 1.0, 1.0])
    when = np.array(
        ["2024-01-01", "2024-01-02", "2024-01-03", "2024-03-01", "2024-03-02", "2024-03-03"], "datetime64[D]"
    )
    policy = ar.ArtificialReplay(ar.KLUCB(2, 50), log, drift=ar.drift.age(0.001, datetime(2024, 3, 4), when))
    policy.ask()
    assert policy.used == 5
    assert policy.unused_rows() == [0]


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
    gap = math.sqrt(math.log(1000) / 2 / policy.rounds) + math.sqrt(math.log(1000) / 200)
    before = math.sqrt(math.log(1000) / 2 / (policy.rounds - 1)) + math.sqrt(math.log(1000) / 200)
    assert gap < 0.5 <= before  # half of the range: noticed at the first sample that chance does not explain
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


def test_drift_allows_for_what_would_contradict():
    log = ar.History([0, 1] * 500, [0.5, 0.0] * 500)
    noticed = {}
    for drift in (0, 0.1, 0.4):
        policy = ar.ArtificialReplay(ar.MonUCB(2, 1000), log, drift=drift)
        for _ in range(300):
            policy.tell(0, 0.1)
        noticed[drift] = len(policy.contradictions())
    assert noticed == {0: 1, 0.1: 1, 0.4: 0}
