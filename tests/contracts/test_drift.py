"""Logs with allowances: decisions of the whole journal, as without them."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bases import EXACT
from journals import Difference, DriftOracle, Opened, Shelf, play, some_allowances, with_allowances
from point_bases import EXACT_POINTS

import artreplay as ar

ALL = {**EXACT, **EXACT_POINTS}
ARMS = [name for name in EXACT if not name.startswith("LinUCB")]
POINTS = [name for name in EXACT_POINTS if "Regression" not in name and "sharp" not in name]  # which refuse drift
BY_ARM = {0: 0.3, 2: 0.05}


def check(name: str, drift: Any, cases: int, mode: ar.compiling.Mode, folder: Path, seed: int) -> None:
    """All cases hold, and in many of them rows are left over."""
    rng = random.Random(f"{name} {drift} {seed}")
    shelf = Shelf(ALL[name], folder, logs=40, stores=2, seed=seed)
    replay, full = (partial(policy, drift=drift) for policy in (ar.ArtificialReplay, ar.FullStart))
    grown = 0
    with ar.compiling.using(mode):
        for case in range(cases):
            log = shelf.take(rng, from_store=case % 4 == 0)
            make_full = full if case % 3 == 0 else None
            outcome = play(ALL[name], *log, rng, folder, replay, make_full, lambda base: DriftOracle(base, drift))
            grown += outcome.grown
    assert grown > cases / 4


def check_columns(name: str, cases: int, mode: ar.compiling.Mode, folder: Path, seed: int) -> None:
    """The same for logs whose rows have allowances of their own, some of which are as wide as rewards are."""
    rng = random.Random(f"{name} column {seed}")
    shelf = Shelf(ALL[name], folder, logs=40, stores=0, seed=seed)
    passed_over = left_over = 0
    with ar.compiling.using(mode):
        for case in range(cases):
            _, plain = shelf.take(rng, from_store=False)
            whole = some_allowances(plain, rng)
            make_full = ar.FullStart if case % 3 == 0 else None
            outcome = play(ALL[name], first(whole), whole, rng, folder, make_full=make_full, make_oracle=DriftOracle)
            left_over += outcome.left_over
            passed_over += int((whole.allowances >= 1.0).sum())
    assert passed_over > cases
    assert left_over > cases / 4


def first(whole: ar.History) -> Opened:
    """Opens the first rows of a log."""
    return lambda rows: whole.rows(np.arange(rows))


@pytest.mark.parametrize(
    ("name", "drift"),
    [("KLUCB", 0.05), ("TopUCB, KL", 0.05), ("MonUCB", BY_ARM), ("TreeUCB, d=2", 0.3)],
)
def test_every_decision_is_that_of_the_whole_journal_with_drift(name, drift, tmp_path):
    check(name, drift, 30, "interpreted", tmp_path, seed=1)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "drift"),
    [
        *((name, drift) for name in [*ARMS, *POINTS] for drift in (0.05, 0.3)),
        *((name, BY_ARM) for name in ("KLUCB", "MonUCB, theory", "PsiUCB, own", "TopUCB")),
    ],
)
def test_the_same_holds_in_many_cases(name, drift, tmp_path):
    check(name, drift, 300, "interpreted", tmp_path, seed=2)


@pytest.mark.long
@pytest.mark.parametrize(("name", "drift"), [("KLUCB", 0.05), ("TopUCB, KL", 0.3), ("MonUCB, callable", BY_ARM)])
def test_the_same_holds_compiled(name, drift, tmp_path):
    check(name, drift, 150, "compiled", tmp_path, seed=3)


class ShowsAtOnce(ar.ArtificialReplay):
    """What is told is shown at once, before rows of its arm that came earlier."""

    def show_before(self, units: Any) -> None:
        pass


@pytest.mark.parametrize(("name", "drift"), [("KLUCB", 0.05), ("TopUCB, KL", 0.05)])
def test_without_reading_first_what_comes_before_it_would_not_hold(name, drift, tmp_path):
    rng, found = random.Random(0), 0
    shelf = Shelf(ALL[name], tmp_path, logs=40, stores=0)
    with ar.compiling.using("interpreted"):
        for _ in range(60):
            log = shelf.take(rng, from_store=False)
            try:
                make_oracle = partial(DriftOracle, drift=drift)
                play(ALL[name], *log, rng, tmp_path, partial(ShowsAtOnce, drift=drift), make_oracle=make_oracle)
            except Difference:
                found += 1
    assert found > 10


@pytest.mark.parametrize("name", ["KLUCB", "TopUCB, KL", "TreeUCB, d=2", "GridUCB"])
def test_rows_with_allowances_of_their_own_are_exact_too(name, tmp_path):
    check_columns(name, 30, "interpreted", tmp_path, seed=4)


@pytest.mark.long
@pytest.mark.parametrize("name", [*ARMS, *POINTS])
def test_they_are_in_many_cases(name, tmp_path):
    check_columns(name, 300, "interpreted", tmp_path, seed=5)


@pytest.mark.long
@pytest.mark.parametrize("name", ["KLUCB", "TopUCB, KL", "TreeUCB, d=2"])
def test_they_are_in_compiled_code(name, tmp_path):
    check_columns(name, 150, "compiled", tmp_path, seed=6)


LOG = ar.History([0, 1, 2, 1] * 15, [0.0, 1.0, 0.5, 0.0] * 15)


@pytest.mark.parametrize(
    ("drift", "column"),
    [(0.1, np.full(60, 0.1)), (BY_ARM, [0.3, 0.0, 0.05, 0.0] * 15), ({1: 1.0}, [0.0, 1.0, 0.0, 1.0] * 15)],
    ids=["a number", "by arm", "an arm that says nothing"],
)
@pytest.mark.parametrize("make", [lambda: ar.KLUCB(3, 90), lambda: ar.MonUCB(3, 90, reward_range=(0, 1))])
def test_a_number_is_a_column(make, drift, column):
    """A number, or numbers by arm, are what a column of the same numbers is; in simulations as well."""
    whole = with_allowances(LOG, column)
    for start in (ar.ArtificialReplay, ar.FullStart):
        one, other = start(make(), LOG, drift=drift), start(make(), whole)
        for round_ in range(20):
            assert one.ask() == other.ask()
            assert (one.used, one.skipped, one.unused_rows()) == (other.used, other.skipped, other.unused_rows())
            for policy in (one, other):
                policy.tell(round_ % 3, float(round_ % 2))
    env = ar.environments.KArmed(3, [0.2, 0.5, 0.6])
    how = {"horizon": 40, "replications": 3, "keep": "all"}
    played = [
        ar.simulate(make(), env, start=start, history=log, drift=given, **how).actions
        for start in ("artificial-replay", "full-start")
        for log, given in ((LOG, drift), (whole, 0.0))
    ]
    assert all((actions == played[0]).all() for actions in played)


@pytest.mark.parametrize("drift", [0.1, {0: 0.3, 2: 0.05}])
def test_simulations_over_logs_that_are_drawn_are_exact(drift):
    env, how = ar.environments.KArmed(4), {"history": 60, "horizon": 50, "replications": 5, "drift": drift}
    replay, full = (
        ar.simulate(ar.KLUCB(4, 110), env, start=start, **how) for start in ("artificial-replay", "full-start")
    )
    assert (replay.actions == full.actions).all()
    assert (replay.used[:, -1] < full.used[:, -1]).any()
    without = ar.simulate(ar.KLUCB(4, 110), env, **(how | {"drift": 0.0}))
    assert not (without.actions == replay.actions).all()


METRIC = ar.environments.Metric(lambda points: 1 - abs(points[:, 0] - 0.3))


@pytest.mark.parametrize("make", [lambda: ar.TreeUCB(1, 200, epsilon=0.1), lambda: ar.GridUCB(1, 200, 4)])
def test_simulations_of_points_are_exact_with_allowances(make):
    rng = np.random.default_rng(3)
    log = ar.History(rng.random((120, 1)), rng.integers(0, 2, 120), allowance=rng.choice([0.0, 0.2, 1.0], 120))
    replay, full = (
        ar.simulate(make(), METRIC, start=start, history=log, horizon=60, replications=2)
        for start in ("artificial-replay", "full-start")
    )
    assert (replay.actions == full.actions).all()
    assert full.used[0, -1] == np.count_nonzero(log.allowances < 1.0)


def test_a_column_of_times_by_which_rows_are_sorted():
    """Who wants the newest rows first sorts the log: rows are read in its order."""
    days = np.arange(60.0)
    newest_first = np.argsort(-days, kind="stable")
    log = with_allowances(LOG, ar.drift.age(0.01, 60, days)).rows(newest_first)
    policy = ar.ArtificialReplay(ar.KLUCB(3, 90), log)
    policy.ask()
    assert policy.unused > 0
    assert log.allowances[policy.unused_rows()].mean() > log.allowances.mean()


def test_with_no_drift_nothing_is_kept_beside():
    plain = ar.ArtificialReplay(ar.KLUCB(3, 60), LOG)
    for drift in (0, 0.0, {}, {1: 0}):
        other = ar.ArtificialReplay(ar.KLUCB(3, 60), LOG, drift=drift)
        assert type(other.base.component.index) is type(plain.base.component.index)
        assert other.ask() == plain.ask()
        assert other.drive.ledger.allowance_step == 0
