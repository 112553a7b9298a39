"""What one caller, one process or one file can do to others: nothing."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import random
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from study_kit import Clock, colours, timed
from test_sharing import in_threads

import artreplay as ar
from artreplay.errors import ArtReplayError, InvalidFile, StudyRefused, StudyUnavailable
from artreplay.studies.study_databases import PostgresJournal

HUGE = 10**5000  # of more digits than Python writes
HOSTILE: dict[str, Any] = {
    "a request of 1 MB": lambda s, d: s.decide("x" * 1_000_000),
    "a request with NUL": lambda s, d: s.decide("a\0b"),
    "a request with a half of a character": lambda s, d: s.decide("\ud800"),
    "a request that is a number": lambda s, d: s.decide(HUGE),
    "a subject with a line feed": lambda s, d: s.decide(subject="a\nb"),
    "an id of 5,000 digits": lambda s, d: s.reward("9" * 5000 + "-ab", 1.0),
    "an id that is a number": lambda s, d: s.reward(HUGE, 1.0),
    "an id that is nearly one": lambda s, d: s.reward(f"{d.number}-\0", 1.0),
    "a huge reward": lambda s, d: s.reward(d.id, HUGE),
    "a reward that is a text": lambda s, d: s.reward(d.id, "1" * 1_000_000),
    "a reward that is a list": lambda s, d: s.reward(d.id, [HUGE]),
    "a huge label": lambda s, d: s.decide(among=[HUGE]),
    "a label that has no hash": lambda s, d: s.decide(among=[{}]),
    "an observation of a huge label": lambda s, d: s.observe(HUGE, 1.0),
    "an observation by a bad name": lambda s, d: s.observe("red", 1.0, "\x07"),
    "a new arm with NUL": lambda s, d: s.add_arm("a\0"),
    "a new arm of 1 MB": lambda s, d: s.add_arm("a" * 1_000_000),
    "a new arm that is huge": lambda s, d: s.add_arm(HUGE),
    "an info that is deep": lambda s, d: s.decide(info={"x": json.loads("[" * 900 + "]" * 900)} | {"y": object()}),
    "an info with a huge number": lambda s, d: s.decide(info={"x": HUGE}),
    "a control that is huge": lambda s, d: s.change(control=HUGE),
    "a note that is huge": lambda s, d: s.change(note={"x": HUGE}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_call_fails_alone_and_costs_nobody_the_policy(name, tmp_path):
    with colours(tmp_path / "s") as study:
        first = study.decide()
        state, fold = study._state, study._state._fold
        works = (study.decide, lambda: HOSTILE[name](study, first), lambda: study.reward(first.id, 1.0))
        if name.startswith(("a new arm", "a control", "a note")):  # these do not wait with the calls of others
            with pytest.raises(ArtReplayError):
                HOSTILE[name](study, first)
            second, nothing = in_threads(study, works[0], works[2])
        else:
            second, refused, nothing = in_threads(study, *works)  # in the same commit
            assert isinstance(refused, (ArtReplayError, TypeError, ValueError)), refused
            assert len(str(refused)) < 2_000_000
        assert (second.number, nothing) == (2, None)
        assert study._state is state
        assert state._fold is fold


def test_a_call_that_breaks_among_others_fails_alone(tmp_path, monkeypatch):
    with colours(tmp_path / "s") as study:
        first = study.decide()
        monkeypatch.setattr("artreplay.studies.deciding._checked_value", lambda *_: 1 / 0)
        second, broken, third = in_threads(study, study.decide, lambda: study.reward(first.id, 1.0), study.decide)
        assert isinstance(broken, ZeroDivisionError)
        assert [second.number, third.number] == [2, 3]


def test_a_request_made_with_others_is_refused_alone():
    with colours() as study:
        study.decide("x (2 of 2)")
        with pytest.raises(StudyRefused, match=r"request 'x \(1 of 2\)' was made before together with others"):
            study.decide("x", count=2)
        assert len(study.decisions()) == 1


# -- a transaction that fails ---------------------------------------------------------------------------------------


def test_a_failed_transaction_keeps_the_policy(tmp_path, monkeypatch):
    with colours(tmp_path / "s") as study, colours(tmp_path / "other") as other:
        for _ in range(5):
            for one in (study, other):
                one.reward(one.decide().id, 1.0)
        fold = study._state.fold()
        commit = study._journal.commit
        monkeypatch.setattr(study._journal, "commit", lambda: (_ for _ in ()).throw(OSError("the disk is gone")))
        for call in (study.decide, lambda: study.observe("red", 1.0), lambda: study.retire_arm("red")):
            with pytest.raises((StudyUnavailable, OSError), match="the disk is gone"):
                call()
        monkeypatch.setattr(study._journal, "commit", commit)
        assert [one.action for one in study.decide(count=4)] == [one.action for one in other.decide(count=4)]
        assert study._state._fold is fold
        assert study.cells() == other.cells()


def test_a_policy_that_has_learnt_what_was_undone_is_dropped(tmp_path):
    with colours(tmp_path / "s") as study, colours(tmp_path / "other") as other:

        def work(inside: ar.Study) -> None:
            inside.observe("red", 1.0)
            inside.cells()
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            study.together(work)
        assert study.rounds == 0
        assert study.cells() == other.cells()
        assert study.decide().action == other.decide().action


@pytest.mark.parametrize("place", [":memory:", "s"])
@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt, StudyRefused])
def test_together_rolls_back_whatever_its_work_raises(place, error, tmp_path):
    def work(study: ar.Study) -> None:
        study.decide(count=2)
        study.add_arm("green")
        raise error

    with colours(place if place == ":memory:" else tmp_path / place) as study:
        first = study.decide()
        with pytest.raises(error):
            study.together(work)
        assert study.decisions() == [first]
        assert len(study.arms()) == 2
        assert study.decide().number == 2


# -- a file that is damaged -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("UPDATE entry SET reward = 0.5 WHERE kind = 'reward'", "entry 6 of its journal has changed"),
        ("UPDATE entry SET propensity = 0.5 WHERE seq = 5", "entry 5 of its journal has changed"),
        ("DELETE FROM entry WHERE seq = 6", "entry 6 of its journal is missing"),
    ],
)
def test_a_check_finds_what_was_changed(change, sentence, tmp_path):
    with colours(tmp_path / "s") as study:
        study.reward(study.decide().id, 1.0)
        study.decide()
        assert study.check() == 7
    with sqlite3.connect(tmp_path / "s") as connection:
        connection.execute(change)
    connection.close()
    with ar.Study.open(tmp_path / "s", read_only=True) as study, pytest.raises(InvalidFile, match=sentence):
        study.check()


@pytest.mark.parametrize("flips", [20, pytest.param(300, marks=pytest.mark.long)])
def test_a_check_finds_flipped_bits_or_they_change_nothing(flips, tmp_path):
    place, rng = tmp_path / "s", random.Random(flips)
    with colours(place, clock=Clock(), holdout=0.3) as study:
        for _ in range(30):
            study.reward(study.decide(info={"x": 1}).id, 1.0)
        expected = repr([study.decisions(), study.rows(), study.arms()])
    good, silent = place.read_bytes(), 0
    for _ in range(flips):
        bad = bytearray(good)
        bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
        place.write_bytes(bad)
        try:
            with ar.Study.open(place, clock=Clock(), read_only=True) as study:
                study.check()
                assert repr([study.decisions(), study.rows(), study.arms()]) == expected
                silent += 1
        except ArtReplayError:
            pass
    assert silent < flips


# -- a clock that is wrong ------------------------------------------------------------------------------------------


def test_a_clock_that_was_ahead_for_a_moment_does_not_block_a_study(tmp_path):
    clock = Clock()
    with timed(clock, place=tmp_path / "s", on_timeout="discard") as study:
        clock.now += 10 * 365 * 86_400
        decision = study.decide()
    clock.now -= 10 * 365 * 86_400
    with ar.Study.open(tmp_path / "s", clock=clock) as study:
        with pytest.raises(StudyRefused, match=r"If the clock is right now, study.reset_clock\(\) goes on"):
            study.decide()
        study.reset_clock()
        assert study.decision(decision.id).due.timestamp() == clock.now + 3600
        assert study.decide().asked.timestamp() == clock.now
    clock.now += 3600
    with ar.Study.open(tmp_path / "s", clock=clock) as study:
        study.decide()
        assert [one.state for one in study.decisions()] == ["expired", "expired", "open"]


# -- processes that are forked --------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_neither_keeps_the_lock_nor_cuts_the_connection(tmp_path):
    code = f"""
import os, sys, time, warnings
warnings.simplefilter("ignore")
import artreplay as ar
study = ar.Study.open({str(tmp_path / "s")!r})
study.decide()
child = os.fork()
if child == 0:
    try:
        study.decide()
    except ar.errors.StudyUnavailable as error:
        print("refused", "opened by the parent" in str(error), flush=True)
    study.close()
    del study
    os.write(1, b"closed\\n")
    time.sleep(30)
    os._exit(0)
time.sleep(0.5)
study.decide()
print("decided", child, flush=True)
os._exit(0)
"""
    colours(tmp_path / "s").close()
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    words = [process.stdout.readline().split() for _ in range(3)]
    assert words[:2] == [["refused", "True"], ["closed"]]
    child = int(words[2][1])
    try:
        process.wait()
        with ar.Study.open(tmp_path / "s", timeout=0.0) as study:  # while the child lives
            os.kill(child, 0)
            assert len(study.decisions()) == 2
            assert study.decide().number == 3
    finally:
        os.kill(child, signal.SIGKILL)
        process.stdout.close()


# -- what others may read -------------------------------------------------------------------------------------------


def test_files_are_for_their_owner_alone(tmp_path):
    before = os.umask(0o022)
    try:
        with colours(tmp_path / "s") as study:
            study.decide()
            study.backup(tmp_path / "copy")
            study.export(tmp_path / "out.parquet")
            policy = ar.Ignorant(ar.KLUCB(2, horizon=10))
            policy.save(tmp_path / "policy.ar")
            (tmp_path / "log.csv").write_text("arm,reward\nred,1\n")
            ar.index_history(tmp_path / "log.csv", tmp_path / "log.arh", unit="arm", reward="reward")
            (tmp_path / "log.csv").unlink()
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*")}
        assert {"s", "s-wal", "s-shm", "s.lock", "copy", "out.parquet", "policy.ar", "log.arh"} <= modes.keys()
        assert {name for name, mode in modes.items() if mode & 0o077} == set()
    finally:
        os.umask(before)


def test_a_password_with_a_hash_is_in_no_message():
    pytest.importorskip("psycopg")
    secret = "se#cr%23et"
    for address in (
        f"postgresql://me:{secret}@localhost:1/shop#Bad Name",
        f"postgresql://me:{secret}@localhost:1/shop",
        f"postgresql://me:{secret}@localhost:1/shop#prices",
        f"postgresql://me:{secret}@localhost:port/shop#prices",
    ):
        with pytest.raises(ArtReplayError) as refused:
            ar.Study.open(address, timeout=0.0)
        chain: BaseException | None = refused.value
        while chain is not None:
            assert not any(part in str(chain) for part in ("se#cr", "cr%23et", "cr#et", "cr%23")), str(chain)
            chain = None if chain.__suppress_context__ else chain.__cause__ or chain.__context__
    journal = PostgresJournal(f"postgresql://me:{secret}@localhost/shop#prices")
    assert (journal.name, journal._schema) == ("postgresql://localhost/shop#prices", "prices")
    assert secret in journal._address


# -- a file system that cannot be written ---------------------------------------------------------------------------


@contextlib.contextmanager
def cannot_be_written(folder: Path) -> Iterator[None]:
    """A folder that nobody may write to. For root it must be a file system of its own."""
    if os.geteuid() != 0:
        folder.chmod(0o500)
        yield
        folder.chmod(0o700)
        return
    mounted = [subprocess.run(["mount", *how, str(folder)]).returncode for how in mounts_of(folder)]
    if any(mounted):
        pytest.skip("nothing can be mounted here, and root may write everywhere")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def mounts_of(folder: Path) -> list[list[str]]:
    return [["--bind", str(folder)], ["-o", "remount,ro,bind"]]


@pytest.mark.parametrize("was_killed", [False, True])
def test_a_study_on_a_read_only_file_system_can_be_looked_at(was_killed, tmp_path):
    with colours(tmp_path / "s") as study:
        made = study.decide(count=3)
        study.reward(made[0].id, 1.0)
        (tmp_path / "copy").mkdir()
        if was_killed:
            for end in ("", "-wal"):
                shutil.copy(tmp_path / f"s{end}", tmp_path / "copy" / f"s{end}")
    if not was_killed:
        shutil.copy(tmp_path / "s", tmp_path / "copy" / "s")
    before = sorted(path.name for path in (tmp_path / "copy").iterdir())
    with cannot_be_written(tmp_path / "copy"):
        with ar.Study.open(tmp_path / "copy" / "s", read_only=True) as look:
            assert [one.state for one in look.decisions()] == ["rewarded", "open", "open"]
            assert sum(arm.online for arm in look.arms()) == 1
            look.export(tmp_path / "out.parquet")
        assert sorted(path.name for path in (tmp_path / "copy").iterdir()) == before


# -- what is said and logged ----------------------------------------------------------------------------------------


def test_missing_rewards_are_told_and_the_log_is_not_blamed(tmp_path, caplog):
    clock = Clock()
    log = ar.History(["red", "blue"] * 200, [1.0] * 400)
    with colours(tmp_path / "s", clock=clock, history=log, horizon=10_000) as study:
        for decision in study.decide(count=300)[:60]:
            study.reward(decision.id, 0.0)
        assert study.contradictions()
        clock.now += 86_401
        (sentence,) = study.warnings()
        assert sentence.startswith("240 of the last 300 decisions that are older than a day have no reward")
        assert study.contradictions() == []
        study.decide(count=50)
        assert study.warnings() == [sentence]
    with caplog.at_level(logging.WARNING, "artreplay.studies"), ar.Study.open(tmp_path / "s", clock=clock) as study:
        assert sentence in caplog.text
    with timed(clock, horizon=10_000) as study:
        study.decide(count=99)
        clock.now += 7200
        study.decide()
        assert study.warnings() == []
        clock.now += 7200
        study.decide()
        (sentence,) = study.warnings()
        assert sentence.startswith("100 of the last 100 decisions got no reward in time")


def test_missing_rewards_are_told_although_the_algorithm_is_not_named(tmp_path, monkeypatch):
    (tmp_path / "shop_quiet.py").write_text("import artreplay as ar\ndef make(arms): return ar.UCB1(arms=arms)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    clock, given = Clock(), {"arms": ["red", "blue"], "wait": timedelta(hours=1)}
    with ar.Study.create(tmp_path / "s", "shop_quiet:make", clock=clock, **given) as study:
        study.decide(count=200)
        clock.now += 7200
        study.decide()
    with ar.Study.open(tmp_path / "s", clock=clock) as study:
        assert len(study.warnings()) == 1


@pytest.mark.parametrize(("rewarded", "warns"), [(4, False), (0, True)])
def test_rewards_that_are_as_rare_in_the_log_are_not_missing(rewarded: int, warns: bool) -> None:
    clock = Clock()
    log = ar.History(["red", "blue"] * 500, ([1.0] * 4 + [0.0] * 996))
    base = ar.KLUCB(arms=["red", "blue"], horizon=10_000)
    with ar.Study.create(":memory:", base, log, wait=timedelta(hours=1), clock=clock) as study:
        for decision in study.decide(count=1000)[:rewarded]:
            study.reward(decision.id, 1.0)
        clock.now += 7200
        study.decide()
        assert bool(study.warnings()) == warns


def test_a_log_file_has_no_rewards_and_nothing_personal(tmp_path, caplog):
    with caplog.at_level(logging.INFO, "artreplay"), colours(tmp_path / "s", holdout=0.5) as study:
        decision = study.decide(subject="erika", info={"name": "mustermann"})
        study.reward(decision.id, 0.625)
        study.change(note={"x": "mustermann"}, wait=timedelta(days=1))
        study.void(decision.id, erase=True)
        study.retire_arm("red")
    assert "settings" in caplog.text
    for word in ("erika", "mustermann", "0.625"):
        assert word not in caplog.text


def test_second_connections_do_not_wait_and_see_what_is_durable(tmp_path):
    with colours(tmp_path / "s") as study:
        study.decide(count=5)
        seen: list[int] = []

        def work(inside: ar.Study) -> None:
            inside.decide()
            seen.append(len(inside.decisions()))

        study.together(work)
        assert seen == [6]
        assert len(study.decisions()) == 6
