"""A study in PostgreSQL, on a real server: the same promises as in SQLite; and a study over a log in PostgreSQL."""

from __future__ import annotations

import random
import threading
import warnings
from collections.abc import Iterator
from datetime import timedelta

import psycopg
import pytest
from bases import CERTIFIED, EXACT
from journals import Shelf
from point_bases import EXACT_POINTS
from store_logs import random_log
from study_journals import live

import artreplay as ar
from artreplay.errors import InvalidParameter, StudyRefused, StudyUnavailable
from postgres_server import execute, fill, opened, running_server

pytestmark = pytest.mark.long

ALL = {**EXACT, **EXACT_POINTS}
ARMS = {**EXACT, **CERTIFIED}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    yield from running_server()


@pytest.mark.parametrize("name", ["MonUCB", "TopUCB", "TreeUCB", "GridAllocation, d=2"])
def test_every_decision_is_that_of_the_whole_journal(name, address, tmp_path):
    rng = random.Random(name)
    shelf = Shelf(ALL[name], tmp_path, logs=20, stores=2)
    with ar.compiling.using("interpreted"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*past the horizon")
        for case in range(20):
            log, whole = shelf.take(rng, from_store=case % 4 == 0)
            live(ALL[name], log, whole, rng, f"{address}#s{case}_{list(ALL).index(name)}")


@pytest.mark.filterwarnings("ignore:.*past the horizon")
@pytest.mark.parametrize("name", ["KLUCB", "MonUCB, labels", "TopUCB", "ThompsonSampling"])
def test_every_decision_is_that_of_the_whole_journal_over_a_log_in_postgres(name, address):
    rng, grown = random.Random(name), 0
    with ar.compiling.using("interpreted"):
        for case in range(20):
            log = random_log(ARMS[name](), 18, case)
            fill(address, log.table)
            grown += live(ARMS[name], opened(address).first, log.history(), rng, ":memory:")["grow"]
    assert grown > 10


def test_a_study_goes_on_over_a_log_in_postgres_that_is_given_again(address, tmp_path):
    """The study keeps no row of it. It says so, and takes the table as it stands now, or as it stood."""
    log = random_log(ar.MonUCB(3, 100), 40, 1)
    fill(address, log.table[:30])
    base = ar.MonUCB(3, 100, bonus=ar.bonus.practical(0.5))
    with (
        ar.Study.create(tmp_path / "over.study", base, opened(address), wait=None) as over,
        ar.Study.create(tmp_path / "within.study", base, log.history().first(30), wait=None) as within,
    ):
        assert [over.decide().action for _ in range(3)] == [within.decide().action for _ in range(3)]
    not_kept = r"the log of this study, .* \(log\), is not kept in it.*history="
    with pytest.raises(StudyUnavailable, match=not_kept), ar.Study.open(tmp_path / "over.study") as over:
        over.decide()
    rest = zip(*log.table[30:].to_pydict().values(), strict=True)
    later = ", ".join(f"({arm}, {click}, {1000 + place})" for place, (arm, click) in enumerate(rest))
    execute(address, f"INSERT INTO log VALUES {later}")
    with (
        ar.Study.open(tmp_path / "over.study", opened(address)) as over,
        ar.Study.open(tmp_path / "within.study") as within,
    ):
        assert over.facts()["log"]["rows"] == within.facts()["log"]["rows"] == 30
        for study, grown in ((over, opened(address)), (within, log.history())):
            study.reward(study.decide().id, 1.0)
            study.extend(grown)
        assert [over.decide().action for _ in range(5)] == [within.decide().action for _ in range(5)]
        assert over.facts()["log"]["rows"] == within.facts()["log"]["rows"] == 40


def made(address: str, name: str, **given: object) -> ar.Study:
    return ar.Study.create(f"{address}#{name}", ar.MonUCB(3, horizon=10_000), **{"wait": None} | given)


def test_threads_and_owners(address):
    with made(address, "shared") as study:
        with pytest.raises(StudyUnavailable, match=r"#shared is in use by process \d+"):
            ar.Study.open(f"{address}#shared", timeout=0.1)
        with ar.Study.open(f"{address}#shared", read_only=True) as other:
            assert other.decisions() == []

        def work() -> None:
            for _ in range(20):
                study.reward(study.decide().id, 1.0)

        threads = [threading.Thread(target=work) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [one.state for one in study.decisions()] == ["rewarded"] * 320
        assert sum(arm.online for arm in study.arms()) == 320
    with pytest.raises(StudyRefused, match="is already a study"):
        made(address, "shared")


def cut_connections(address: str) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'artreplay study'"
        )


def test_a_connection_that_is_lost_and_comes_back(address):
    with made(address, "lost", wait=timedelta(hours=1)) as study:
        first = study.decide()
        cut_connections(address)
        with pytest.raises(StudyUnavailable, match="#lost cannot be "):
            study.reward(first.id, 1.0)
        assert study.open_decisions() == [first]
        study.reward(first.id, 1.0)
        assert study._journal.query("SELECT COUNT(*) FROM entry WHERE kind = 'part'") == [(1,)]  # its window is open


def test_an_owner_whose_lock_went_with_its_connection_is_refused(address):
    with made(address, "taken") as study:
        study.decide()
        cut_connections(address)
        with ar.Study.open(f"{address}#taken", timeout=5) as other:
            other.decide()
            for _ in range(3):
                with pytest.raises(StudyUnavailable):
                    study.decide()
            assert len(other.decisions()) == 2
        with pytest.raises(StudyUnavailable, match="taken over by another process"):
            study.decide()


def test_bad_addresses(address):
    with pytest.raises(InvalidParameter, match="must end in # and its name"):
        ar.Study.open(address)
    with pytest.raises(StudyUnavailable, match=r"postgresql://localhost:1/x#s cannot be read: ") as refused:
        ar.Study.open("postgresql://me:secret@localhost:1/x#s")
    assert "secret" not in str(refused.value)
