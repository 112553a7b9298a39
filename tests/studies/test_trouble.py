"""A full disk, a database that is gone and comes back: a sentence, nothing half-done, and on it goes."""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest
from study_kit import colours

import artreplay as ar
from artreplay.errors import InvalidFile, StudyUnavailable
from artreplay.history.parquet import ParquetLog
from artreplay.studies import study_journal


class Failing:
    """A connection of which a statement fails."""

    def __init__(self, connection, words, error):
        self.connection, self.words, self.error = connection, words, error

    def execute(self, statement, *values):
        if statement.startswith(self.words):
            raise self.error
        return self.connection.execute(statement, *values)

    def __getattr__(self, name):
        return getattr(self.connection, name)


@pytest.mark.parametrize("words", ["BEGIN", "INSERT INTO entry", "COMMIT"])
def test_what_fails_has_not_happened(words, tmp_path):
    with colours(tmp_path / "s") as study:
        decision = study.decide()
        tables, connection = study._journal, study._journal._connection
        tables._connection = Failing(connection, words, sqlite3.OperationalError("database or disk is full"))
        with pytest.raises(StudyUnavailable, match="s cannot be written: database or disk is full"):
            study.reward(decision.id, 1.0)
        assert study.open_decisions() == [decision]
        study.reward(decision.id, 0.0)
        assert next(arm.mean for arm in study.arms() if arm.label == decision.action) <= 0.5
        assert study._journal.query("SELECT COUNT(*) FROM entry WHERE kind = 'reward'") == [(1,)]


def test_a_full_disk_is_a_sentence(tmp_path):
    with colours(tmp_path / "s") as study:
        study.decide()
        pages = study._journal.query("PRAGMA page_count")[0][0]
        study._journal.query(f"PRAGMA max_page_count = {pages}")
        made = []

        def fill():
            while len(made) < 500:
                made.append(study.decide())

        with pytest.raises(StudyUnavailable, match="cannot be written: database or disk is full"):
            fill()
        assert len(study.decisions()) == 1 + len(made)  # the connection is new: there is room again
        study.decide()


def test_those_who_wait_for_a_commit_hear_that_it_failed(tmp_path):
    with colours(tmp_path / "s") as study:
        study.decide()
        tables = study._journal
        tables._connection = Failing(tables._connection, "COMMIT", sqlite3.OperationalError("disk I/O error"))
        heard = []

        def decide():
            try:
                heard.append(study.decide())
            except StudyUnavailable as error:
                heard.append(str(error))

        threads = [threading.Thread(target=decide) for _ in range(8)]
        with study._mutex:
            for thread in threads:
                thread.start()
        for thread in threads:
            thread.join()
        made = [one for one in heard if not isinstance(one, str)]
        assert len(heard) == 8 > len(made)
        assert len(study.decisions()) == 1 + len(made)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "folder").mkdir()
    colours(tmp_path / "folder" / "s").close()
    (tmp_path / "folder").chmod(0o500)
    with pytest.raises(StudyUnavailable, match="cannot be written"):
        ar.Study.open(tmp_path / "folder" / "s")
    (tmp_path / "folder").chmod(0o700)


def test_a_database_that_cannot_be_written(tmp_path, monkeypatch):
    with colours(tmp_path / "s") as study:
        study.decide()
        study._journal._connection.execute("PRAGMA query_only = ON")
        with pytest.raises(StudyUnavailable, match="cannot be written: attempt to write a readonly database"):
            study.decide()
        study.decide()
        assert len(study.decisions()) == 2

        def refused(*_, **__):
            raise OSError(errno.EROFS, "Read-only file system")

        study.close()
        monkeypatch.setattr("builtins.open", refused)
        with pytest.raises(StudyUnavailable, match="Read-only file system"):
            ar.Study.open(tmp_path / "s")


def test_a_file_that_is_gone_and_comes_back(tmp_path):
    with colours(tmp_path / "s") as study:
        study.decide()
        os.rename(tmp_path / "s", tmp_path / "elsewhere")
        for _ in range(2):
            with pytest.raises(StudyUnavailable, match="the file was removed or replaced while the study was open"):
                study.decide()
        os.rename(tmp_path / "elsewhere", tmp_path / "s")
        study.decide()
        assert len(study.decisions()) == 2


def test_a_call_that_is_interrupted_has_not_happened(tmp_path, monkeypatch):
    with colours(tmp_path / "s") as study:
        decision = study.decide()

        def interrupted(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr(study_journal, "checksum", interrupted)
        with pytest.raises(KeyboardInterrupt):
            study.reward(decision.id, 1.0)
        monkeypatch.undo()
        assert study.open_decisions() == [decision]


def test_a_snapshot_that_cannot_be_read_is_no_loss(tmp_path):
    with colours(tmp_path / "s") as study:
        for _ in range(4):
            study.reward(study.decide().id, 1.0)
        cells = [(cell.count, cell.index) for cell in study.cells()]
    with ar.Study.open(tmp_path / "s") as study:
        assert study._journal.query("SELECT kind, COUNT(*) FROM snapshot GROUP BY kind") == [
            ("policy", 1),
            ("state", 1),
        ]
        study._journal.run("UPDATE snapshot SET bytes = ?", b"rubbish")
        study._journal.commit()
    with ar.Study.open(tmp_path / "s") as study:
        assert [(cell.count, cell.index) for cell in study.cells()] == cells


def test_a_store_that_has_moved(tmp_path):
    log = ar.History(["red", "blue"] * 20, [0.0, 1.0] * 20)
    import pyarrow as pa

    table = pa.table({"arm": [log.unit(row) for row in range(40)], "r": log.rewards})
    ar.index_history(table, tmp_path / "log.arh", unit="arm", reward="r")
    with colours(tmp_path / "s", history=ar.open_history(tmp_path / "log.arh")) as study:
        first = study.decide()
    os.rename(tmp_path / "log.arh", tmp_path / "moved.arh")
    with ar.Study.open(tmp_path / "s") as study:
        study.reward(first.id, 1.0)  # a reward needs no log
        with pytest.raises(StudyUnavailable, match="the log of this study is not at "):
            study.decide()
        os.rename(tmp_path / "moved.arh", tmp_path / "log.arh")
        second = study.decide()  # it is back
        os.rename(tmp_path / "log.arh", tmp_path / "moved.arh")
    with ar.Study.open(tmp_path / "s", ar.open_history(tmp_path / "moved.arh")) as study:
        study.reward(second.id, 0.0)
        study.extend(ar.open_history(tmp_path / "moved.arh"))  # where it is from now on
    with ar.Study.open(tmp_path / "s") as study:
        study.decide()


def test_a_process_that_comes_from_the_owner_must_open_it_itself(tmp_path, monkeypatch):
    with colours(tmp_path / "s") as study:
        monkeypatch.setattr(os, "getpid", lambda: -1)
        with pytest.raises(StudyUnavailable, match="was opened by the parent of this process"):
            study.decide()
        monkeypatch.undo()


def test_a_read_that_fails_tells_nothing_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = "".join(f"{'ab'[row % 2]},{int(row % 3 == 0)}\n" for row in range(4000))
    (tmp_path / "log.csv").write_text("arm,reward\n" + rows)
    ar.index_history(tmp_path / "log.csv", tmp_path / "log.arh", unit="arm", reward="reward")
    log = ar.open_history(tmp_path / "log.arh")
    study = ar.Study.create(
        tmp_path / "own.study", ar.MonUCB(arms=["a", "b", "c"], horizon=10_000), history=log, wait=None
    )
    study.decide()

    def lost(*_: Any) -> Any:
        raise InvalidFile("cannot be read: the connection is lost")

    for arm in ("c", "c", "a"):  # of which "a" has unread rows, which are read first
        study.observe(arm, 1.0)
    monkeypatch.setattr(ParquetLog, "read", lost)
    with pytest.raises(InvalidFile, match="connection is lost"):
        study.decide()
    monkeypatch.undo()
    study.decide()
    assert {arm.label: arm.online for arm in study.arms()} == {"a": 1, "b": 0, "c": 2}
    study.close()
    with ar.Study.open(tmp_path / "own.study") as again:
        assert {arm.label: arm.online for arm in again.arms()} == {"a": 1, "b": 0, "c": 2}
