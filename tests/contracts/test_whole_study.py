"""Every decision of a study is a function of the journal, the open decisions and its number."""

from __future__ import annotations

import random
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bases import EXACT
from journals import Difference, Shelf
from point_bases import EXACT_POINTS, PRACTICAL
from study_journals import live

import artreplay as ar
from artreplay.replay import reader
from artreplay.studies import folding
from artreplay.studies.study_databases import SQLiteJournal


def with_kept_bonus(make: Callable[[], Any]) -> Callable[[], Any]:
    """The same algorithm with a bonus that a database can keep, which a callable is not."""
    base = make()
    return make if base.table is None else lambda: type(base)(**base.parameters() | {"bonus": PRACTICAL})


EVERY = {name: with_kept_bonus(make) for name, make in {**EXACT, **EXACT_POINTS}.items() if name != "PsiUCB, own"}
OTHERS = {
    "UCB1": lambda: ar.UCB1(4),
    "AnchorThompson": lambda: ar.AnchorThompson(4, seed=3),
    "Greedy": lambda: ar.Greedy(4),
    "BayesUCB": lambda: ar.BayesUCB(4, horizon=20),
    "ThompsonSampling": lambda: ar.ThompsonSampling(4, seed=3),
    "IDS": lambda: ar.IDS(3, seed=3),
    "RandomChoice": lambda: ar.RandomChoice(5, budget=2, seed=3),
    "RandomAllocation": lambda: ar.RandomAllocation(1, (0, 0.5, 1), budget=1.5, max_units=2, cells_per_side=4),
}
SOON = ("KLUCB", "TopUCB", "LinUCB", "TreeUCB, uniform", "GridAllocation, greedy, d=2", "UCB1")
CASES, MANY = 5, 150


@pytest.fixture(autouse=True)
def small_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few rows of a store are many portions; a study is not forced to disk; past the horizon is no matter."""
    monkeypatch.setattr(SQLiteJournal, "synchronous", "OFF")
    monkeypatch.setattr(reader, "_FIRST_ROWS", 1)


def some_lives(name: str, shelf: Shelf, rng: random.Random) -> None:
    """A hundred of them, until one differs."""
    for _ in range(100):
        opened, whole = shelf.take(rng, from_store=False)
        live(EVERY[name], opened, whole, rng, ":memory:")


def check(name: str, cases: int, mode: ar.compiling.Mode, folder: Path, seed: int, **given: Any) -> Counter[str]:
    """All cases hold; how often each kind of thing happened."""
    rng = random.Random(f"{name} {seed} {given}" if given else f"{name} {seed}")
    make = {**EVERY, **OTHERS}[name]
    shelf = Shelf(make, folder, logs=min(cases, 40), stores=1 + cases // 100, seed=seed)
    happened: Counter[str] = Counter()
    with ar.compiling.using(mode), warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*past the horizon")
        for case in range(cases):
            opened, whole = shelf.take(rng, from_store=case % 4 == 0)
            place = ":memory:" if case % 2 else folder / f"{case}.study"
            happened += live(make, opened, whole, rng, place, **given)
    return happened


@pytest.mark.parametrize("name", SOON)
def test_every_decision_of_a_study_is_that_of_the_whole_journal(name, tmp_path):
    happened = check(name, CASES, "interpreted", tmp_path, seed=1)
    assert happened["decide"] > CASES
    assert happened["reward"] > CASES
    assert min(happened["grow"], happened["crash"] + happened["reopen"]) > 0


@pytest.mark.long
@pytest.mark.parametrize("name", [*EVERY, *OTHERS])
def test_every_decision_of_a_study_is_that_of_the_whole_journal_in_many_cases(name, tmp_path):
    check(name, MANY, "interpreted", tmp_path, seed=2)


LOGS = {
    "drift": {"drift": 0.05},
    "drift by arm": {"drift": {0: 0.3, 2: 0.05}},
    "allowances": {"allowances": True},
    "totals": {"totals": True},
}


@pytest.mark.parametrize("log", ["drift by arm", "allowances", "totals"])
def test_the_same_holds_for_logs_that_are_stale_or_totals(log, tmp_path):
    happened = check("MonUCB", 3, "interpreted", tmp_path, seed=1, **LOGS[log])
    assert happened["decide"] > 3


@pytest.mark.long
@pytest.mark.parametrize("log", LOGS)
@pytest.mark.parametrize("name", ["KLUCB", "MonUCB", "TopUCB, KL", "PsiUCB, Bernoulli KL"])
def test_the_same_holds_for_logs_that_are_stale_or_totals_in_many_cases(name, log, tmp_path):
    check(name, 60, "interpreted", tmp_path, seed=2, **LOGS[log])


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "log"),
    [
        ("TreeUCB, d=2", "drift"),
        ("TreeUCB, d=2", "allowances"),
        ("GridUCB", "drift"),
        ("UCB1", "totals"),
        ("ThompsonSampling", "totals"),
    ],
)
def test_the_same_holds_for_points_and_for_certified_reading(name, log, tmp_path):
    check(name, 60, "interpreted", tmp_path, seed=2, **LOGS[log])


@pytest.mark.long
@pytest.mark.parametrize("name", ["MonUCB", "LinUCB", "TreeUCB", "TreeAllocation"])
def test_the_same_holds_compiled(name, tmp_path):
    check(name, 40, "compiled", tmp_path, seed=3)


@pytest.mark.parametrize("name", ["MonUCB", pytest.param("TopUCB", marks=pytest.mark.long)])
def test_unless_cells_with_open_units_are_read_first_it_would_not_hold(name, tmp_path, monkeypatch):
    monkeypatch.setattr(folding.Fold, "read_open_cells", lambda self: None)
    rng = random.Random(0)
    shelf = Shelf(EVERY[name], tmp_path, logs=20, stores=0)
    with ar.compiling.using("interpreted"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*past the horizon")
        with pytest.raises(Difference):
            some_lives(name, shelf, rng)
