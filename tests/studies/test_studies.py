"""A study: what it promises to those who decide, reward, and come back later."""

from __future__ import annotations

import math
import threading
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from study_kit import COLOURS, LOG, Clock, colours, timed

import artreplay as ar
from artreplay.errors import (
    ArtReplayError,
    InvalidAction,
    InvalidFile,
    InvalidHistory,
    InvalidParameter,
    StudyRefused,
    StudyUnavailable,
    UnknownDecision,
)


def state_of(study: ar.Study) -> str:
    return repr([study.arms(), study.open_decisions(), study.decisions()])


def test_the_same_request_gives_the_same_decision():
    with colours() as study:
        first = study.decide(request_id="visitor 1")
        assert study.decide(request_id="visitor 1") == first
        assert study.decide(request_id="visitor 2") != first
        several = study.decide(request_id="visitor 3", count=3)
        assert study.decide(request_id="visitor 3", count=3) == several
        study.reward(first.id, 1.0)
        assert study.decide(request_id="visitor 1").id == first.id
        assert len(study.decisions()) == 5


def test_open_decisions_spread_over_the_arms():
    with ar.Study.create(":memory:", ar.MonUCB(4, horizon=1000, bonus=ar.bonus.practical(0.5)), wait=None) as study:
        assert {decision.action for decision in study.decide(count=40)} == {0, 1, 2, 3}


def test_a_reward_is_final_and_counts_once():
    with colours() as study:
        decision = study.decide()
        study.reward(decision.id, 1.0)
        study.reward(decision.id, 1.0)
        before = state_of(study)
        with pytest.raises(StudyRefused, match=r"already has the reward 1.0, and that is final, got 0.0"):
            study.reward(decision.id, 0.0)
        assert state_of(study) == before
        assert sum(arm.online for arm in study.arms()) == 1


def test_a_decision_past_its_time_gets_the_default_reward():
    clock = Clock()
    with timed(clock, default=0.25) as study:
        decision = study.decide()
        clock.now += 3600
        with pytest.raises(StudyRefused, match=r"expired at .*, so its reward comes too late"):
            study.reward(decision.id, 1.0)
        assert study.decision(decision.id).state == "expired"
        assert [arm.online for arm in study.arms() if arm.label == decision.action] == [1]
        assert study.late_rewards == 1


def test_a_decision_past_its_time_can_be_dropped():
    clock = Clock()
    with timed(clock, "discard") as study:
        study.decide()
        clock.now += 3601
        study.decide()
        assert [decision.state for decision in study.decisions()] == ["expired", "open"]
        assert sum(arm.online for arm in study.arms()) == 0


def test_with_windows_it_does_not_matter_when_rewards_come(tmp_path):
    learnt = []
    for order in ([0, 1, 2], [2, 0, 1]):
        clock, place = Clock(), tmp_path / f"{order}"
        with timed(clock, place=place, close="window") as study:
            made = study.decide(count=3)
            for turn in order:
                clock.now += 60
                study.reward(made[turn].id, float(turn % 2))
                study.reward(made[turn].id, float(turn % 2))
                with pytest.raises(StudyRefused, match="that is final"):
                    study.reward(made[turn].id, 0.5)
            assert sum(arm.online for arm in study.arms()) == 0
            assert len(study.open_decisions()) == 3
        clock.now += 3600
        with ar.Study.open(place, clock=clock) as study:
            study.decide()
            assert [one.state for one in study.decisions()] == ["rewarded"] * 3 + ["open"]
            learnt.append([(arm.online, arm.mean, arm.index) for arm in study.arms()])
    assert learnt[0] == learnt[1]
    with pytest.raises(InvalidParameter, match='close="window" needs wait='):
        colours(close="window")


def test_a_void_decision_leaves_no_trace_in_what_was_learnt():
    with colours() as study:
        before = study.cells()
        open_, rewarded = study.decide(count=2)
        study.reward(rewarded.id, 0.0)
        study.void(open_.id)
        study.void(rewarded.id)
        study.void(rewarded.id)
        assert [(cell.count, cell.index) for cell in study.cells()] == [(cell.count, cell.index) for cell in before]
        with pytest.raises(StudyRefused, match="was taken out and takes no reward"):
            study.reward(open_.id, 1.0)


def test_an_arm_that_comes_later_starts_with_the_rows_of_the_log():
    with colours() as study:
        for _ in range(4):
            study.observe("blue", 0.0)
            study.observe("red", 0.0)
        study.add_arm("green")
        assert study.decide().action == "green"
        assert [(arm.logged, arm.used) for arm in study.arms()][2] == (1, 1)


def test_rewards_that_contradict_the_log_are_noticed_also_after_an_arm_has_come(tmp_path):
    with colours(tmp_path / "s", history=ar.History(["blue"] * 40, [1.0] * 40)) as study:
        for turn in range(20):
            study.observe("blue", 0.0)
            if turn == 10:
                study.add_arm("green")
        found = study.contradictions()
        assert [one.unit for one in found] == ["blue"]
    with ar.Study.open(tmp_path / "s") as study:
        assert study.contradictions() == found


def test_a_retired_arm_is_never_chosen_and_can_come_back():
    with colours() as study:
        held = study.decide(among=["red"])
        study.retire_arm("red")
        assert {decision.action for decision in study.decide(count=10)} == {"blue"}
        study.reward(held.id, 1.0)
        assert study.arms()[0].online == 1
        study.add_arm("red")
        assert study.decide(among=["red"]).action == "red"


@pytest.mark.parametrize("base", [ar.ThompsonSampling(4, seed=1), ar.IDS(3, seed=1), ar.UCB1(4), ar.RandomChoice(4, 2)])
def test_arms_come_and_go_for_algorithms_without_a_standing_index(base):
    with ar.Study.create(":memory:", base, wait=None) as study:
        study.retire_arm(0)
        study.add_arm("new")
        played = [study.decide() for _ in range(12)]
        flat = [arm for decision in played for arm in (decision.action if base.proposes_list else [decision.action])]
        assert 0 not in flat
        for decision in played:
            study.reward(decision.id, [1.0, 0.0] if base.proposes_list else 1.0)
        chosen = study.decide(among=["new", 1]).action
        assert set(chosen if base.proposes_list else [chosen]) <= {"new", 1}


def test_the_number_of_arms_that_an_index_is_made_with_stays(tmp_path):
    base = ar.PsiUCB(arms=COLOURS, horizon=50, psi=ar.psi.bernoulli_kl)
    with ar.Study.create(tmp_path / "s", base, wait=None) as study:
        study.observe("red", 0.0)
        before = study.cells()[0].index
        study.add_arm("green")
        study.observe("green", 0.0)
        assert study.cells()[0].index == study.cells()[2].index == before
    with ar.Study.open(tmp_path / "s") as study:
        assert study.cells()[2].index == before
        study.set_horizon(50)
        assert study.cells()[2].index > before


def test_linucb_takes_an_arm_that_joins_nothing():
    with ar.Study.create(":memory:", ar.LinUCB([[1, 0, 0], [0, 1, 0]], horizon=20), wait=None) as study:
        study.observe(0, 1.0)
        study.add_arm("half", features=[0.5, 0, 0])
        assert study.cells()[2].index < 1.0 or study.cells()[2].count == 0
        with pytest.raises(StudyRefused, match="must not join arms that were learnt separately"):
            study.add_arm("both", features=[1, 1, 0])
        with pytest.raises(InvalidParameter, match="features must be 3 finite numbers"):
            study.add_arm("none")


def test_rows_that_the_study_produced_itself_are_left_out():
    with colours(history=ar.History(["red"], [0.0])) as study:
        mine = study.decide()
        study.reward(mine.id, 1.0)
        frame = pa.table({"arm": ["red", mine.action, "blue"], "r": [0.0, 1.0, 1.0], "id": [None, mine.id, "another"]})
        study.extend(frame, unit="arm", reward="r", exclude="id")
        assert sum(arm.logged for arm in study.arms()) == 2
        study.extend(ar.History.from_frame(frame, "arm", "r"), exclude=[None, mine.id, None])
        assert sum(arm.logged for arm in study.arms()) == 2
        with pytest.raises(InvalidParameter, match="exclude must name a column of the log, got 'who'"):
            study.extend(frame, unit="arm", reward="r", exclude="who")


@pytest.mark.long
def test_rows_of_a_file_that_the_study_produced_itself_are_left_out(tmp_path):
    with colours(history=ar.History(["red"], [0.0])) as study:
        mine = study.decide()
        rows = {"arm": ["red", mine.action, "blue"], "r": [0.0, 1.0, 1.0], "id": ["", mine.id, "another"]}
        pq.write_table(pa.table(rows), tmp_path / "log.parquet")
        study.extend(tmp_path / "log.parquet", unit="arm", reward="r", exclude="id")
        assert sum(arm.logged for arm in study.arms()) == 2


def test_a_study_continues_where_it_was(tmp_path):
    with colours(tmp_path / "a") as study:
        decisions = study.decide(count=3)
        study.reward(decisions[1].id, 1.0)
        expected = study.decisions(), study.open_decisions()
        with ar.Study.open(tmp_path / "a", read_only=True) as other:
            assert (other.decisions(), other.open_decisions()) == expected
            assert other.cells() == study.cells()
            with pytest.raises(StudyUnavailable, match="opened for reading only"):
                other.decide()
        study.backup(tmp_path / "b")
    for name in "ab":
        with ar.Study.open(tmp_path / name) as again:
            assert (again.decisions(), again.open_decisions()) == expected


def test_only_one_owner_writes(tmp_path):
    with colours(tmp_path / "s") as study:
        with pytest.raises(StudyUnavailable, match=r"is in use by process \d+ on .* Only one process"):
            ar.Study.open(tmp_path / "s", timeout=0.05)
        # An owner whose lock was lost finds out before it has written anything.
        study._journal.disown()
        with ar.Study.open(tmp_path / "s") as other:
            other.decide()
            with pytest.raises(StudyUnavailable, match="was taken over by another process"):
                study.decide()
            assert len(other.decisions()) == 1


def test_threads_lose_and_double_nothing(tmp_path):
    each, failed = 12, []

    def work(number: int) -> None:
        try:
            for turn in range(each):
                decision = study.decide(request_id=f"{number} {turn}")
                assert study.decide(request_id=f"{number} {turn}") == decision
                study.reward(decision.id, 1.0)
        except BaseException as error:
            failed.append(error)

    with colours(tmp_path / "s") as study:
        threads = [threading.Thread(target=work, args=[number]) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failed
        assert sorted(decision.number for decision in study.decisions()) == list(range(1, 16 * each + 1))
        assert sum(arm.online for arm in study.arms()) == 16 * each
        learnt = [(cell.count, cell.index) for cell in study.cells()]
    with ar.Study.open(tmp_path / "s") as again:
        assert [(cell.count, cell.index) for cell in again.cells()] == learnt


def test_export_has_a_row_for_each_unit(tmp_path):
    with ar.Study.create(":memory:", ar.TopUCB(4, budget=2, horizon=100), wait=None) as study:
        study.reward(study.decide().id, [1.0, 0.0])
        study.decide(request_id="r")
        study.observe([3], [0.5])
        study.export(tmp_path / "out.parquet")
    rows = pq.read_table(tmp_path / "out.parquet").to_pylist()
    by_state = {state: [row for row in rows if row["state"] == state] for state in ("rewarded", "open", "observed")}
    assert [row["reward"] for row in by_state["rewarded"]] == [1.0, 0.0]
    assert {row["request_id"] for row in by_state["open"]} == {"r"}
    assert [(row["action"], row["reward"]) for row in by_state["observed"]] == [("3", 0.5)]


REFUSED = {
    "an unknown decision": (lambda s, d: s.reward("7-none", 1.0), UnknownDecision, "has made no decision '7-none'"),
    "an id that is no text": (lambda s, d: s.reward(7, 1.0), UnknownDecision, "has made no decision 7"),
    "a reward outside the range": (lambda s, d: s.reward(d.id, 2.0), InvalidAction, r"expected a number in \[0, 1\]"),
    "a reward that is no number": (lambda s, d: s.reward(d.id, math.nan), InvalidAction, "expected a number"),
    "an unknown arm": (lambda s, d: s.observe("pink", 1.0), InvalidAction, "'pink' is not an arm"),
    "a label that is there": (lambda s, d: s.add_arm("red"), StudyRefused, "'red' is already an arm of this study"),
    "features nobody wants": (lambda s, d: s.add_arm("x", [1]), InvalidParameter, "MonUCB has none"),
    "an arm that must stay": (lambda s, d: [s.retire_arm(x) for x in COLOURS], StudyRefused, "must stay"),
    "an unknown arm to retire": (lambda s, d: s.retire_arm("pink"), InvalidAction, "'pink' is not an arm"),
    "an empty choice": (lambda s, d: s.decide(among=[]), InvalidParameter, "at least 1 different arm"),
    "a choice of an unknown arm": (lambda s, d: s.decide(among=["pink"]), InvalidAction, "'pink' is not an arm"),
    "a choice that is a text": (lambda s, d: s.decide(among="red"), InvalidParameter, "among must be a list of arms"),
    "no decisions": (lambda s, d: s.decide(count=0), InvalidParameter, "count must be at least 1"),
    "an odd request": (lambda s, d: s.decide(request_id=7), InvalidParameter, "request_id must be a text"),
    "a request that no database can keep": (lambda s, d: s.decide("\ud800"), InvalidParameter, "control characters"),
    "an arm without a label": (lambda s, d: s.add_arm(None), InvalidParameter, "one of them is missing"),
    "a label that is no number": (lambda s, d: s.add_arm(math.nan), InvalidParameter, "one of them is missing"),
    "a note that JSON cannot hold": (lambda s, d: s.change(note={"x": math.nan}), InvalidParameter, "note must be"),
    "a log that changed": (
        lambda s, d: s.extend(ar.History(["blue"] * 5, [0] * 5)),
        InvalidHistory,
        "row 0 has changed",
    ),
    "a shorter log": (lambda s, d: s.extend(LOG.rows([0])), InvalidHistory, "had 4"),
    "a horizon of nothing": (lambda s, d: s.set_horizon(0), InvalidParameter, "horizon must be at least 1"),
}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"wait": timedelta.max}, "at most a hundred years"),
        ({"note": {1: object()}}, "note must be a dict that JSON can hold"),
        ({"note": [1]}, "note must be a dict"),
    ],
)
def test_a_study_that_could_not_go_on_is_not_made(given, sentence, tmp_path):
    with pytest.raises(InvalidParameter, match=sentence):
        ar.Study.create(tmp_path / "s", ar.MonUCB(2, 10), **{"wait": None} | given)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_refused_in_a_sentence_and_nothing_changes(name):
    act, error, sentence = REFUSED[name]
    with colours() as study:
        decision = study.decide()
        before = [] if name == "an arm that must stay" else state_of(study)
        with pytest.raises(error, match=sentence):
            act(study, decision)
        if before:
            assert state_of(study) == before


def test_a_retired_arm_is_refused_where_it_is_named():
    with colours() as study:
        study.retire_arm("red")
        for act in (lambda: study.decide(among=["red"]), lambda: study.retire_arm("red")):
            with pytest.raises(StudyRefused, match=r"'red' is a retired arm\. add_arm brings it back"):
                act()


def test_a_clock_that_jumps_back_is_refused():
    clock = Clock()
    with timed(clock) as study:
        first = study.decide()
        clock.now -= 30
        assert study.decide().asked == first.asked
        clock.now -= 100
        with pytest.raises(StudyRefused, match=r"the clock says 1970-01-12 13:44:30, .* study.reset_clock\(\) goes on"):
            study.decide()
        clock.now += 200
        study.decide()


def test_past_the_horizon_is_said_once():
    with colours(horizon=2) as study:
        study.decide(count=2)
        with pytest.warns(UserWarning, match="decision 3 is past the horizon of 2"):
            study.decide()
        study.decide()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"wait": 3}, "wait must be a timedelta above 0"),
        ({"wait": timedelta(0)}, "wait must be a timedelta above 0"),
        ({"on_timeout": "forget"}, 'on_timeout must be "default" or "discard"'),
        ({"default": 2.0}, "reward is 2.0, expected a number in"),
        ({"history": ar.History([[0.5]], [1.0])}, "needs a log of arms"),
        ({"history": [1, 2]}, "history must be a History, Totals, or a log from open_history, got list"),
        ({"drift": -1.0}, "drift must be finite and at least 0, got -1.0"),
        ({"drift": {"pink": 0.1}}, "drift has 'pink', which is not an arm"),
        ({"drift": [0.1, 0.2]}, "Allowances of rows belong to the log"),
        ({"drift": np.array([0.1, 0.2])}, "Allowances of rows belong to the log"),
        ({"history": ar.Totals(COLOURS, [1, 2], [0, 3])}, "expected a sum of 2 rewards"),
        ({"history": ar.Totals(COLOURS, [1, 2], [0, 1]), "drift": 0.1}, "drift is for rows"),
    ],
)
def test_what_a_study_cannot_be_made_with(given, sentence, tmp_path):
    with pytest.raises(ArtReplayError, match=sentence):
        colours(tmp_path / "s", **given)
    with pytest.raises(InvalidFile, match="is not a study"):
        ar.Study.open(tmp_path / "s")


def test_a_change_of_how_the_log_is_treated_folds_the_journal_again(tmp_path):
    log = ar.History(["red", "blue"] * 30, [0.0, 1.0] * 30)
    made = {}
    for name, given in (("first", {"drift": 0.2}), ("changed", {})):
        with ar.Study.create(tmp_path / name, ar.KLUCB(arms=COLOURS, horizon=100), log, wait=None, **given) as study:
            study.observe("blue", 0.0)
            if name == "changed":
                study.change(drift=0.2)
            made[name] = [(cell.count, cell.index) for cell in study.cells()]
    assert made["first"] == made["changed"]
    with ar.Study.open(tmp_path / "changed") as study:
        assert study.drift == 0.2
        assert [(cell.count, cell.index) for cell in study.cells()] == made["changed"]
        study.change(drift={"blue": 0.1})
        assert study.drift == {"blue": 0.1}
        for change, sentence in (
            ({"drift": [0.1] * 60}, "Allowances of rows belong to the log"),
            ({"drift": math.inf}, "drift must be finite"),
        ):
            with pytest.raises(InvalidParameter, match=sentence):
                study.change(**change)
            assert study.drift == {"blue": 0.1}
            study.decide()


def test_rows_of_the_log_that_are_no_arms_cannot_be_refused_afterwards():
    with colours() as study:
        before = study.decide()
        with pytest.raises(InvalidHistory, match="'green'"):
            study.change(unknown="error")
        assert study.open_decisions() == [before]
        study.decide()
        study.add_arm("green")
        study.change(unknown="error")
        assert study.decide().action in (*COLOURS, "green")


def test_rows_with_allowances_of_their_own_are_those_of_a_policy(tmp_path):
    arms, rewards = ["red", "blue", "blue"] * 8, [0.0, 1.0, 0.5] * 8
    allowances = [0.1, 0.0, 0.3, 1.0] * 6

    def log(rows):
        return ar.History(arms[:rows], rewards[:rows], allowance=allowances[:rows])

    policy = ar.ArtificialReplay(ar.KLUCB(arms=COLOURS, horizon=200), log(9))
    study = ar.Study.create(tmp_path / "s", ar.KLUCB(arms=COLOURS, horizon=200), log(9), wait=None)
    for round_ in range(12):
        if round_ == 5:
            policy.extend(log(24))
            with pytest.raises(InvalidParameter, match="the log must have allowances"):
                study.extend(ar.History(arms, rewards))
            with pytest.raises(InvalidParameter, match="drift must be left out"):
                study.change(drift=0.1)
            ids = ["mine"] * 24
            study.extend(log(24), exclude=ids)
        if round_ in (3, 8):
            study._journal.close() if round_ == 3 else study.close()
            study._journal.disown()
            study = ar.Study.open(tmp_path / "s")
        decision = study.decide()
        assert decision.action == policy.ask()
        study.reward(decision.id, round_ % 2)
        policy.tell(decision.action, round_ % 2)
    assert study.drift == 0.0
    assert study.facts()["allowances"]
    assert study.facts()["log"]["skipped"] == policy.skipped == 6
    assert [(cell.used, cell.index) for cell in study.cells()] == [(cell.used, cell.index) for cell in policy.cells()]
    study.close()


def test_a_study_without_allowances_stays_without():
    log = ar.History(["red"], [1.0], allowance=[0.1])
    refused = pytest.raises(InvalidParameter, match="the log has allowances now, and had none")
    with colours(history=None) as study, refused:
        study.extend(log)
    with colours(history=ar.History([], [], allowance=[])) as study:
        study.extend(log)
        assert study.facts()["log"]["rows"] == 1


def test_totals_may_grow_and_are_no_rows():
    with colours(history=ar.Totals(COLOURS, [100, 50], [10, 10])) as study:
        assert study.decide().action == "blue"
        study.extend(ar.Totals([*COLOURS, "blue"], [100, 50, 50], [10, 10, 0]))
        assert {arm.label: arm.logged for arm in study.arms()} == {"red": 100, "blue": 100}
        with pytest.raises(StudyRefused, match="the log of this study has totals, and cannot go on with rows"):
            study.extend(ar.History(["red"] * 9, [0.0] * 9))


def test_what_is_no_study(tmp_path):
    (tmp_path / "text").write_text("not a database, but a text that is long enough to be looked at" * 20)
    with pytest.raises(StudyUnavailable, match="file is not a database"):
        ar.Study.open(tmp_path / "text")
    with pytest.raises(InvalidFile, match="is not a study"):
        ar.Study.open(tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()
    with pytest.raises(StudyUnavailable, match="cannot be written"):
        colours(tmp_path / "no folder" / "s")
    with pytest.raises(InvalidParameter, match="must be over an algorithm of this package"):
        ar.Study.create(tmp_path / "s", object(), wait=None)
    with pytest.raises(ArtReplayError, match="needs an algorithm that a database can keep"):
        ar.Study.create(tmp_path / "s", ar.MonUCB(2, 10, bonus=lambda n: 1 / n), wait=None)
    with pytest.raises(InvalidParameter, match="must lie in a file or in PostgreSQL, got mysql://host/x"):
        ar.Study.open("mysql://me:secret@host/x")


def test_a_study_of_another_version_is_refused(tmp_path):
    with colours(tmp_path / "s") as study:
        study._journal.run("UPDATE study SET version = 9")
        study._journal.commit()
    with pytest.raises(InvalidFile, match=r"is a study of version 9, and this version of artreplay reads version 4"):
        ar.Study.open(tmp_path / "s")
    with pytest.raises(StudyRefused, match="is already a study"):
        colours(tmp_path / "s")


def test_arms_are_not_for_points():
    with ar.Study.create(":memory:", ar.TreeUCB(1, horizon=100), wait=None) as study:
        for act in (lambda: study.add_arm("x"), lambda: study.decide(among=[(0.5,)]), lambda: study.arms()):
            with pytest.raises(InvalidParameter, match="is for arms, and TreeUCB plays points"):
                act()
