"""Every decision is the one that would be made after reading the whole journal so far, row by row and in order."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from bases import CERTIFIED, EXACT
from journals import Difference, Shelf, play
from point_bases import EXACT_POINTS, REGRESSIONS

import artreplay as ar
from artreplay.history.stores import Store
from artreplay.history.stores.indexed_points import Cut
from artreplay.history.stores.layouts import PointLayout

ALL = {**EXACT, **CERTIFIED, **EXACT_POINTS}
# Every algorithm that is marked exact.
SOON = (
    "KLUCB",
    "MonUCB",
    "PsiUCB, Bernoulli KL",
    "TopUCB",
    "LinUCB",
    "ThompsonSampling",
    "UCB1",
    "GridUCB",
    "TreeUCB, d=2",
    "GridAllocation, greedy",
    "TreeAllocation",
)
FEW, CASES, MANY = 100, 300, 3000


class ShowsAtOnce(ar.ArtificialReplay):
    """What replay did before: what is told is shown at once, before rows of its cell that came earlier."""

    def _show_what_comes_before(self, samples: Any) -> None:
        pass


@pytest.fixture(autouse=True)
def small_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few rows of a store are many portions."""
    monkeypatch.setattr(PointLayout, "cut", Cut(4, 16, 2))
    monkeypatch.setattr(Store, "first_prefetch", 1)


def check(name: str, cases: int, mode: ar.compiling.Mode, folder: Path, seed: int) -> Counter[str]:
    """All cases hold; how often each kind of thing happened."""
    rng = random.Random(f"{name} {seed}")
    shelf = Shelf(ALL[name], folder, logs=40, stores=3, seed=seed)
    happened: Counter[str] = Counter()
    with ar.compiling.using(mode):
        for case in range(cases):
            opened, whole = shelf.take(rng, from_store=case % 4 == 0)
            happened.update(
                play(ALL[name], opened, whole, rng, folder, make_full=ar.FullStart if case % 3 == 0 else None)._asdict()
            )
    return happened


@pytest.mark.parametrize("name", SOON)
def test_every_decision_is_that_of_the_whole_journal(name, tmp_path):
    happened = check(name, FEW, "interpreted", tmp_path, seed=1)
    assert min(happened.values()) > FEW / 5, f"too little happened: {happened}"


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in ALL if name not in REGRESSIONS])  # test_while_open.py
def test_every_decision_is_that_of_the_whole_journal_in_many_cases(name, tmp_path):
    check(name, MANY, "interpreted", tmp_path, seed=2)


@pytest.mark.long
@pytest.mark.parametrize(
    "name", ["MonUCB", "TopUCB", "LinUCB", "AnchorThompson", "TreeUCB", "GridAllocation", "TreeAllocation"]
)
def test_the_same_holds_compiled(name, tmp_path):
    check(name, CASES, "compiled", tmp_path, seed=3)


@pytest.mark.parametrize("name", ["MonUCB", "TopUCB", "LinUCB", "GridUCB", "TreeUCB", "TreeAllocation"])
def test_without_reading_first_what_comes_before_it_would_not_hold(name, tmp_path):
    rng, found = random.Random(0), 0
    shelf = Shelf(ALL[name], tmp_path, logs=40, stores=0)
    with ar.compiling.using("interpreted"):
        for _ in range(60):
            opened, whole = shelf.take(rng, from_store=False)
            try:
                play(ALL[name], opened, whole, rng, tmp_path, ShowsAtOnce)
            except Difference:
                found += 1
    assert found > 10


def test_a_foreign_action_is_shown_behind_the_rows_of_its_arm():
    log = ar.History([0, 0, 0, 0], [0.0, 0.0, 0.0, 0.0])
    replay, full = (make(ar.MonUCB(2, 3), log) for make in (ar.ArtificialReplay, ar.FullStart))
    for policy in (replay, full):
        policy.tell(0, 1.0)
    assert replay.used == 4
    assert [cell.index for cell in replay.cells()] == [cell.index for cell in full.cells()]


def test_rows_that_come_between_ask_and_tell_come_before_what_is_told():
    log = ar.History([0, 0, 0, 1], [0.0, 0.0, 0.0, 1.0])
    grown = ar.History([0, 0, 0, 1, 1, 1], [0.0, 0.0, 0.0, 1.0, 0.0, 0.0])
    replay, full = (make(ar.MonUCB(2, 3), log) for make in (ar.ArtificialReplay, ar.FullStart))
    for policy in (replay, full):
        action = policy.ask()
        policy.extend(grown)
        assert policy.ask() == action
        policy.tell(action, 1.0)
    assert action == 1
    assert [cell.index for cell in replay.cells()][1] == [cell.index for cell in full.cells()][1]
