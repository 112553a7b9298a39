"""What a study does besides learning: windows, parts of rewards, deferred decisions, a hold-out, information."""

from __future__ import annotations

import json
import math
import random
import shutil
from collections import Counter
from datetime import timedelta

import pyarrow.parquet as pq
import pytest
from study_kit import Clock, colours, timed

import artreplay as ar
from artreplay.errors import InvalidAction, InvalidParameter, StudyRefused, UnknownDecision
from artreplay.studies import Decisions
from artreplay.studies.study_databases import SQLiteJournal

DAY = 86_400.0


def test_how_long_to_wait_must_be_said():
    with pytest.raises(InvalidParameter, match="wait must be said: how long a reward may take") as refused:
        ar.Study.create(":memory:", ar.KLUCB(2, horizon=10))
    assert refused.value.parameter == "wait"


def test_with_a_wait_rewards_enter_when_the_window_is_over_unless_the_arrival_is_asked_for():
    for close, learnt in ((None, 0), ("window", 0), ("arrival", 1)):
        with timed(Clock(), close=close) as study:
            study.reward(study.decide().id, 1.0)
            assert sum(arm.online for arm in study.arms()) == learnt
    with colours() as study:  # it waits for ever, so there is no window
        study.reward(study.decide().id, 1.0)
        assert sum(arm.online for arm in study.arms()) == 1


def test_another_wait_is_for_decisions_to_come(tmp_path):
    clock = Clock()
    with timed(clock, place=tmp_path / "s") as study:
        before = study.decide()
        learnt = study.policy
        study.change(wait=timedelta(days=1))
        assert study.policy is learnt  # nothing was folded again
        after = study.decide()
        study.change(wait=None)
        assert study.wait is None
        assert [(one.due - one.asked) for one in (before, after)] == [timedelta(hours=1), timedelta(days=1)]
        assert study.decide().due is None
        clock.now += DAY + 1
    with ar.Study.open(tmp_path / "s", clock=clock) as study:
        assert study.wait is None
        study.decide()
        assert [one.state for one in study.decisions()] == ["expired", "expired", "open", "open"]


# -- parts of rewards -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rewards", "told", "whole"),
    [
        ("first", [(None, 0.5), (None, 0.5)], 0.5),
        ("last", [(None, 0.5), (None, 1.0), (None, 0.25)], 0.25),
        ("sum", [("a", 0.25), ("b", 0.5), ("a", 0.25)], 0.75),
        ("sum", [("a", 0.75), ("b", 0.75)], 1.0),
        ("sum", [("a", 0.75), ("refund", -0.5)], 0.25),
    ],
)
def test_parts_of_a_reward_are_one_row_when_the_window_is_over(rewards, told, whole, tmp_path):
    clock = Clock()
    with timed(clock, place=tmp_path / "s", rewards=rewards) as study:
        decision = study.decide(request_id="visit")
        for place, (key, value) in enumerate(told):
            which = {"decision_id": decision.id} if place % 2 else {"request_id": "visit"}
            study.reward(value=value, key=key, **which)
            if place == 0:
                study._journal.close()
                study._journal.disown()
                study = ar.Study.open(tmp_path / "s", clock=clock)
        assert sum(arm.online for arm in study.arms()) == 0
        clock.now += 3600
        study.decide()
        (row,) = (row for row in study.rows() if row["decision_id"] == decision.id)
        assert row["reward"] == whole
        assert study.facts()["clipped"] == (whole == 1.0)
        study.reward(decision.id, *told[-1][::-1])  # a retry after the window is over
        assert study.late_rewards == 0
        other = ("c", 0.125) if rewards == "sum" else (None, 0.125)
        with pytest.raises(StudyRefused, match="that is final" if rewards == "first" else "comes too late"):
            study.reward(decision.id, other[1], other[0])
        assert study.late_rewards == (rewards != "first")


def test_the_sum_of_parts_does_not_depend_on_their_order():
    parts, sums = [0.1, 0.2, 0.3, 1e-17, 0.05], set()
    for seed in range(5):
        random.Random(seed).shuffle(parts)
        clock = Clock()
        with timed(clock, rewards="sum") as study:
            decision = study.decide()
            for part in parts:
                study.reward(decision.id, part, str(part))
            clock.now += 3600
            study.decide()
            sums.add(study.rows()[0]["reward"])
    assert len(sums) == 1


def test_what_parts_may_not_be():
    with timed(Clock(), rewards="sum") as study:
        decision = study.decide()
        study.reward(decision.id, 0.5, "a")
        for refused, sentence in (
            (lambda: study.reward(decision.id, 0.25, "a"), "already has the reward 0.5 for 'a', and that is final"),
            (lambda: study.reward(decision.id, 0.25), "key must name each part"),
            (lambda: study.reward(decision.id, math.inf, "b"), "expected a finite number"),
            (lambda: study.reward(decision.id, 0.25, "\n"), "without control characters"),
        ):
            with pytest.raises((StudyRefused, InvalidAction, InvalidParameter), match=sentence):
                refused()
    with colours() as study, pytest.raises(StudyRefused, match='key is for rewards="sum"'):
        study.reward(study.decide().id, 1.0, "a")
    for given in ({"rewards": "sum"}, {"rewards": "last", "wait": timedelta(1), "close": "arrival"}):
        with pytest.raises(InvalidParameter, match='needs wait= and close="window"'):
            colours(**given)
    with timed(Clock(), rewards="sum") as study, pytest.raises(InvalidParameter, match="needs wait="):
        study.change(wait=None)


def test_a_reward_by_its_request():
    with colours() as study:
        decision = study.decide("visit")
        study.reward(request_id="visit", value=1.0)
        assert study.decision(decision.id).state == "rewarded"
        with pytest.raises(UnknownDecision, match="no decision for the request 'other'"):
            study.reward(request_id="other", value=1.0)
        for given in ({}, {"decision_id": decision.id, "request_id": "visit"}):
            with pytest.raises(InvalidParameter, match="give the id of the decision, or the request_id"):
                study.reward(value=1.0, **given)


# -- deferred decisions -----------------------------------------------------------------------------------------------


def test_a_deferred_decision_is_not_open_until_it_is_activated(tmp_path):
    clock = Clock()
    with timed(clock, place=tmp_path / "s") as study:
        deferred = study.decide(request_id="later", deferred=True)
        assert (deferred.state, deferred.due) == ("deferred", None)
        assert study.open_decisions() == []
        assert sum(arm.open for arm in study.arms()) == 0
        clock.now += 7200
        study._journal.close()
        study._journal.disown()
    with ar.Study.open(tmp_path / "s", clock=clock) as study:
        assert study.decide(request_id="later").state == "deferred"
        study.activate(request_id="later")
        study.activate(deferred.id)
        (opened,) = study.open_decisions()
        assert (opened.id, opened.state) == (deferred.id, "open")
        assert opened == study.decision(deferred.id) == study.decisions()[0]
        assert opened.due.timestamp() == clock.now + 3600
        assert sum(arm.open for arm in study.arms()) == 1
    with ar.Study.open(tmp_path / "s", clock=clock) as study:
        assert study.open_decisions() == [opened]
        clock.now += 3600
        study.decide()
        assert study.decision(deferred.id).state == "expired"


def test_a_reward_activates_a_deferred_decision_and_a_day_takes_it_out():
    clock = Clock()
    with timed(clock) as study:
        first, second = study.decide(count=2, deferred=True)
        study.reward(first.id, 1.0)
        assert [one.state for one in study.decisions()] == ["open", "deferred"]
        clock.now += DAY
        study.decide()
        assert [one.state for one in study.decisions()][:2] == ["rewarded", "void"]
        with pytest.raises(StudyRefused, match="was taken out and cannot be opened"):
            study.activate(second.id)
        assert study.facts()["decisions"] == {"open": 1, "rewarded": 1, "void": 1}


# -- information ------------------------------------------------------------------------------------------------------


def test_information_is_kept_exported_and_erased(tmp_path):
    place = tmp_path / "s"
    with colours(place) as study:
        first = study.decide(info={"page": "höme", "n": 1}, subject="visitor-4711")
        second = study.decide(info={"secret": "Erika Mustermann"}, subject="erika-m")
        study.export(tmp_path / "out.parquet")
        rows = pq.read_table(tmp_path / "out.parquet").to_pylist()
        assert json.loads(rows[0]["info"]) == first.info == {"page": "höme", "n": 1}
        assert rows[0]["subject"] == first.subject == "visitor-4711"
        study.reward(second.id, 1.0)
        study.void(second.id, erase=True)
        study.void(second.id, erase=True)
        found = study.decision(second.id)
        assert (found.state, found.info, found.subject) == ("void", None, None)
        assert study.decision(first.id).info == first.info
        assert study.check() > 0
        for file in tmp_path.glob("s*"):
            assert b"Mustermann" not in file.read_bytes()
            assert b"erika" not in file.read_bytes()
    with ar.Study.open(place) as study:
        assert [one.info for one in study.decisions()] == [first.info, None]


def test_several_things_are_erased_together_and_a_reader_only_delays_it(tmp_path):
    with colours(tmp_path / "s") as study:
        made = study.decide(count=3, info={"name": "Erika Mustermann"})
        reader = study._journal.reader()
        entries = reader.read()
        next(entries)  # a long list of which more is to come
        study.together(lambda inside: [inside.void(one.id, erase=True) for one in made])
        assert [one.info for one in study.decisions()] == [None] * 3
        entries.close()
        reader.close()
        study.decide()
        assert not any(b"Mustermann" in file.read_bytes() for file in tmp_path.glob("s*"))


def test_what_a_process_erased_before_it_was_killed_is_gone_when_the_study_is_opened(tmp_path, monkeypatch):
    with colours(tmp_path / "s") as study:
        decision = study.decide(info={"name": "Erika Mustermann"})
    monkeypatch.setattr(SQLiteJournal, "_scrub", lambda self: False)
    study = ar.Study.open(tmp_path / "s")
    study.void(decision.id, erase=True)
    for end in ("", "-wal"):
        shutil.copy(tmp_path / f"s{end}", tmp_path / f"killed{end}")
    study.close()
    monkeypatch.undo()
    with ar.Study.open(tmp_path / "killed"):
        assert not any(b"Mustermann" in file.read_bytes() for file in tmp_path.glob("killed*"))


@pytest.mark.parametrize("info", [{"x": "y" * 5000}, [1], {"x": math.nan}, {"x": object()}, "text"])
def test_information_that_is_refused(info):
    with colours() as study:
        with pytest.raises(InvalidParameter, match="info must be"):
            study.decide(info=info)
        assert study.decisions() == []


# -- the hold-out -----------------------------------------------------------------------------------------------------


def test_control_plays_its_shares_and_the_answer_of_the_policy_is_kept(tmp_path):
    shares = {"red": 3.0, "blue": 1.0}
    with colours(tmp_path / "s", holdout=0.3, control=shares, horizon=10_000) as study:
        made = study.decide(count=1500)
        again = study.decide(request_id="same")
        groups = Counter(one.group for one in made)
        assert abs(groups["control"] / 1500 - 0.3) < 0.05
        in_control = [one for one in made if one.group == "control"]
        assert abs(Counter(one.action for one in in_control)["red"] / len(in_control) - 0.75) < 0.1
        for one in made:
            share = shares[one.action] / 4
            assert one.propensity == pytest.approx(0.7 * (one.action == one.policy_action) + 0.3 * share)
            assert one.group == "control" or one.action == one.policy_action
        assert any(one.action != one.policy_action for one in in_control)
        study.export(tmp_path / "out.parquet")
        rows = pq.read_table(tmp_path / "out.parquet").to_pylist()
        kept = [(row["group"], row["propensity"], row["policy_action"]) for row in rows[:1500]]
        assert kept == [(one.group, one.propensity, one.policy_action) for one in made]
    with ar.Study.open(tmp_path / "s") as study:
        assert study.decisions()[:1500] == made
        assert study.decide(request_id="same") == again


def test_a_subject_stays_in_its_group_and_the_draw_does_not_depend_on_what_came_before(tmp_path):
    groups = []
    for name, before in (("a", 0), ("b", 7)):
        with colours(tmp_path / name, holdout=0.5, seed=3) as study:
            if before:
                study.decide(count=before)
            subjects = [f"visitor {number}" for number in range(40)]
            groups.append([study.decide(subject=one).group for one in subjects])
            assert [study.decide(subject=one).group for one in subjects] == groups[-1]
    assert groups[0] == groups[1]
    assert set(groups[0]) == {"policy", "control"}
    with colours(holdout=0.5, seed=4) as study:
        assert [study.decide(subject=one).group for one in subjects] != groups[0]


def test_control_stays_within_what_can_be_chosen():
    with colours(holdout=0.9, control="red") as study:
        assert {one.action for one in study.decide(count=30, among=["blue"])} == {"blue"}
        with pytest.raises(StudyRefused, match="'red' must stay, because it is the last arm of control"):
            study.retire_arm("red")
        study.change(control="blue")
        study.retire_arm("red")
        assert {one.propensity for one in study.decide(count=30)} == {1.0}


def test_lists_are_held_out_without_propensities_and_points_are_refused():
    base = ar.TopUCB(arms=list("abcdef"), budget=2, horizon=100)
    with ar.Study.create(":memory:", base, wait=None, holdout=0.5) as study:
        made = study.decide(count=60)
        assert {one.propensity for one in made} == {None}
        assert all(len(set(one.action)) == 2 for one in made)
        assert len({tuple(one.action) for one in made if one.group == "control"}) > 8
        with pytest.raises(InvalidParameter, match='control must be "uniform" where a decision is a list'):
            study.change(control="a")
    with pytest.raises(InvalidParameter, match="holdout is for studies of arms"):
        ar.Study.create(":memory:", ar.TreeUCB(1, horizon=10), wait=None, holdout=0.1)


def test_without_a_hold_out_the_propensity_is_one_unless_the_algorithm_draws():
    for base, expected in ((ar.KLUCB(3, horizon=10), 1.0), (ar.UCB1(3), 1.0), (ar.ThompsonSampling(3), None)):
        with ar.Study.create(":memory:", base, wait=None) as study:
            decision = study.decide()
            assert (decision.group, decision.propensity, decision.policy_action) == (
                "policy",
                expected,
                decision.action,
            )


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"holdout": 1.0}, "holdout must be a number from 0 to below 1"),
        ({"holdout": True}, "holdout must be a number"),
        ({"control": "pink"}, "control must be"),
        ({"control": {"red": -1.0}}, "shares of at least 0"),
        ({"control": {"red": 1e308, "blue": 1e308}}, "with a finite sum"),
        ({"control": {}}, "control must be"),
        ({"seed": -1}, "seed must be"),
        ({"rewards": "all"}, "rewards must be"),
        ({"close": "never"}, "close must be"),
        ({"on_timeout": "explode"}, "on_timeout must be"),
    ],
)
def test_terms_that_are_refused(given, sentence):
    with pytest.raises(InvalidParameter, match=sentence):
        colours(**given)
    if "holdout" in given or "control" in given:
        with colours() as study, pytest.raises(InvalidParameter, match=sentence):
            study.change(**given)


def test_settings_that_cannot_change_are_named():
    with colours() as study, pytest.raises(InvalidParameter, match="rewards is not a setting that can change"):
        study.change(rewards="sum")


def test_a_retry_gets_its_decision_although_its_arm_was_retired_since():
    with colours() as study:
        first = study.decide("visit", among=["red"])
        study.retire_arm("red")
        assert study.decide("visit", among=["red"]) == first


def test_a_retry_is_marked_as_repeated():
    with colours() as study:
        assert [study.decide("r").repeated, study.decide("r").repeated] == [False, True]


def test_lists_of_decisions_are_paged_and_filtered(monkeypatch):
    monkeypatch.setattr("artreplay.studies.decisions.PART", 4)
    with colours() as study:
        made = study.decide(count=11)
        for one in made[::3]:
            study.reward(one.id, 1.0)
        assert [one.number for one in study.decisions()] == list(range(1, 12))
        assert [one.number for one in study.decisions(after=3, limit=5)] == [4, 5, 6, 7, 8]
        assert [one.number for one in study.decisions(state="rewarded")] == [1, 4, 7, 10]
        assert study.decisions(after=11) == study.decisions(after=10**30) == []
        assert len(study.decisions(limit=10**30)) == 11
        with pytest.raises(InvalidParameter, match="state must be one of"):
            study.decisions(state="closed")


def test_a_study_offers_what_those_who_decide_share():
    decisions: Decisions = colours()
    decisions.close()
