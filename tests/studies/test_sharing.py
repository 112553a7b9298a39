"""Threads that share a study: one does the work of all who wait, and each hears what came of its own call."""

from __future__ import annotations

import contextlib
import gc
import signal
import threading
import time
import warnings

import pytest
from study_kit import colours

import artreplay as ar
from artreplay.errors import InvalidAction, StudyUnavailable, UnknownDecision
from artreplay.studies import deciding
from artreplay.studies.decisions import PastHorizon


def in_threads(study, *works):
    """What each of these returns or raises, begun one after the other while the study is in use."""
    said = [None] * len(works)

    def do(at):
        try:
            said[at] = works[at]()
        except Exception as error:
            said[at] = error

    threads = [threading.Thread(target=do, args=(at,)) for at in range(len(works))]
    with study._mutex:
        for thread in threads:
            already = len(study._waiting)
            thread.start()
            while len(study._waiting) == already and thread.is_alive():  # a call may be refused before it waits
                time.sleep(0.001)
    for thread in threads:
        thread.join()
    return said


def rewarding(study, decision, said):
    """A thread that rewards a decision, and keeps what is said to it where the study is gone."""

    def reward():
        try:
            study.reward(decision.id, 1.0)
        except StudyUnavailable as error:
            said.append(str(error))

    return threading.Thread(target=reward, daemon=True)


def test_calls_that_wait_share_a_commit_and_a_refusal_is_for_its_caller_alone(tmp_path, monkeypatch):
    with colours(tmp_path / "s") as study:
        first = study.decide()
        commits, commit = [], study._journal.commit
        monkeypatch.setattr(study._journal, "commit", lambda: commits.append(1) or commit())
        works = (study.decide, lambda: study.reward(first.id, 7.0), lambda: study.reward(first.id, 1.0), study.decide)
        second, refused, nothing, third = in_threads(study, *works)
        assert len(commits) == 1
        assert isinstance(refused, InvalidAction)
        assert nothing is None
        assert [one.number for one in (second, third)] == [2, 3]
        assert [one.state for one in study.decisions()] == ["rewarded", "open", "open"]


@pytest.mark.parametrize("again", [lambda study: study.decide(), lambda study: study.facts(), lambda study: None])
def test_together_fails_whole_though_its_work_catches_that_the_study_is_gone(tmp_path, monkeypatch, again):
    with colours(tmp_path / "s") as study:
        study.decide()
        execute = study._journal._executed

        def gone(statement, values):
            if statement.startswith("INSERT INTO entry") and 3 in values[3::13]:
                raise OSError("the disk is gone")
            return execute(statement, values)

        def work(inside):
            inside.decide()
            with contextlib.suppress(StudyUnavailable):
                inside.decide()
                inside.decisions()  # for which the database must have got all that was decided
            monkeypatch.setattr(study._journal, "_executed", execute)
            with contextlib.suppress(StudyUnavailable):
                again(inside)
            return "all is well"

        monkeypatch.setattr(study._journal, "_executed", gone)
        with pytest.raises(StudyUnavailable, match="the disk is gone"):
            study.together(work)
        assert len(study.decisions()) == 1
        assert study.decide().number == 2
        assert len(study.decisions()) == 2


def test_what_a_call_breaks_has_not_happened_for_those_who_share_its_commit(tmp_path, monkeypatch):
    with colours(tmp_path / "s") as study:
        first = study.decide()
        broken = ZeroDivisionError("of an algorithm")

        def breaks(*_):
            raise broken

        monkeypatch.setattr(deciding, "reward", breaks)
        shared, own = in_threads(study, study.decide, lambda: study.reward(first.id, 1.0))
        assert own is broken
        assert shared.number == 2  # nothing was half done, so only the caller hears of it

        def breaks_midway(state, *_):
            state.enter("late", decision=1)
            raise broken

        monkeypatch.setattr(deciding, "reward", breaks_midway)
        shared, own = in_threads(study, study.decide, lambda: study.reward(first.id, 1.0))
        assert own is broken
        assert isinstance(shared, StudyUnavailable)
        assert "cut short" in str(shared)
        assert study.late_rewards == 0
        assert study.decide().number == 3


def test_an_interrupt_is_for_the_thread_that_was_interrupted(tmp_path, monkeypatch):
    with colours(tmp_path / "s") as study:
        first = study.decide()

        def interrupted(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr(deciding, "reward", interrupted)
        with study._mutex:  # which lets this thread do what another waits for
            said = []
            other = rewarding(study, first, said)
            other.start()
            while not study._waiting:
                time.sleep(0.001)
            with pytest.raises(KeyboardInterrupt):
                study.decide()
        other.join()
        monkeypatch.undo()
        assert said == ["a call was cut short: KeyboardInterrupt()"]
        assert study.decisions() == [first]
        study.reward(first.id, 1.0)


def test_several_things_together_are_done_by_the_thread_that_wants_them(tmp_path):
    with colours(tmp_path / "s") as study:

        def work():
            threads = {study.together(lambda study: study.decide() and threading.get_ident()) for _ in range(20)}
            assert threads == {threading.get_ident()}
            study.decide()
            done.append(1)

        done: list[int] = []
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(done) == 4
        assert [one.number for one in study.decisions()] == list(range(1, 85))


def test_threads_that_read_all_the_time_do_not_keep_a_call_waiting(tmp_path):
    with colours(tmp_path / "s") as study:
        over = threading.Event()

        def look():
            while not over.is_set():
                study.facts()

        threads = [threading.Thread(target=look) for _ in range(2)]
        for thread in threads:
            thread.start()
        since = time.monotonic()
        for _ in range(5):
            study.decide()
        took = time.monotonic() - since
        over.set()
        for thread in threads:
            thread.join()
        assert took < 5.0


def test_a_second_interrupt_leaves_nobody_waiting(tmp_path, monkeypatch):
    with colours(tmp_path / "s") as study:
        first = study.decide()

        def interrupted(*_):
            signal.raise_signal(signal.SIGINT)

        undo = study._journal.undo
        monkeypatch.setattr(deciding, "decide", interrupted)
        monkeypatch.setattr(study._journal, "undo", lambda: interrupted() or undo())
        said = []
        other = rewarding(study, first, said)
        with study._mutex:
            other.start()
            while not study._waiting:
                time.sleep(0.001)
            with pytest.raises(KeyboardInterrupt):
                study.decide()
        other.join(10.0)
        monkeypatch.undo()
        assert said == ["a call was cut short: KeyboardInterrupt()"]
        assert study.open_decisions() == [first]


def test_an_interrupt_during_a_commit_comes_after_it_and_costs_nothing(monkeypatch):
    with colours() as study:
        study.decide()
        live, commit = study._state, study._journal.commit
        monkeypatch.setattr(study._journal, "commit", lambda: commit() or signal.raise_signal(signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            study.decide()
        monkeypatch.undo()
        assert study._state is live
        assert len(study.decisions()) == 2


def test_a_study_that_refused_something_is_let_go_with_its_last_user(tmp_path):
    gc.disable()
    try:
        study = colours(tmp_path / "s")
        with contextlib.suppress(UnknownDecision):
            study.reward("7-00", 1.0)
        del study
        ar.Study.open(tmp_path / "s", timeout=0.0).close()
    finally:
        gc.enable()


def test_a_warning_that_is_an_error_is_for_its_caller_alone(tmp_path):
    with colours(tmp_path / "s", horizon=1) as study, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = study.decide()
        study._state.warned = False
        warnings.simplefilter("error")
        nothing, refused = in_threads(study, lambda: study.reward(first.id, 1.0), study.decide)
        assert nothing is None
        assert isinstance(refused, PastHorizon)
        assert [one.state for one in study.decisions()] == ["rewarded"]
