"""Every decision is the one that would be made after reading the whole journal so far, row by row and in order."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from bases import CERTIFIED, EXACT
from journals import Difference, Oracle, OwnOracle, Shelf, play
from own_bases import OWN_ANY, OWN_EXACT, OWN_READ_ALL
from point_bases import EFFORT, EXACT_POINTS, REGRESSIONS

import artreplay as ar
from artreplay.replay import reader

# Full Start of these is the whole journal; replay need not be.
FULL_ONLY = {
    "IDS": lambda: ar.IDS(2, seed=3),
    "RandomChoice": lambda: ar.RandomChoice(4, seed=3),
    "RandomChoice, two": lambda: ar.RandomChoice(4, budget=2, seed=3),
    "RandomAllocation": lambda: ar.RandomAllocation(1, (0, 0.5, 1), budget=1.5, max_units=2, cells_per_side=4),
    "TreeAllocation, paper": lambda: ar.TreeAllocation(1, epsilon=0.25, rule="paper", **EFFORT),
    **OWN_ANY,
}
OWN = {**OWN_EXACT, **OWN_READ_ALL, **OWN_ANY}
PROPOSE = [name for name, make in OWN.items() if hasattr(make(), "propose")]
READ_ALL = {**REGRESSIONS, **OWN_READ_ALL}
ALL = {**EXACT, **CERTIFIED, **EXACT_POINTS, **FULL_ONLY, **OWN}
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
    "PointRegression",
    "CellRegression",
    *OWN_EXACT,
    *OWN_READ_ALL,
    *FULL_ONLY,
)
FEW, CASES, MANY = 100, 300, 3000


class ShowsAtOnce(ar.ArtificialReplay):
    """What replay did before: what is told is shown at once, before rows of its cell that came earlier."""

    def show_before(self, units: Any) -> None:
        pass


@pytest.fixture(autouse=True)
def small_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few rows of a store are many portions."""
    monkeypatch.setattr(reader, "_FIRST_ROWS", 1)


def check(name: str, cases: int, mode: ar.compiling.Mode, folder: Path, seed: int) -> Counter[str]:
    """All cases hold; how often each kind of thing happened."""
    rng = random.Random(f"{name} {seed}")
    make_replay = None if name in FULL_ONLY else ar.ArtificialReplay
    shelf = Shelf(ALL[name], folder, logs=40, stores=3, seed=seed)
    happened: Counter[str] = Counter()
    with ar.compiling.using(mode):
        for case in range(cases):
            opened, whole = shelf.take(rng, from_store=case % 4 == 0)
            make_full = ar.FullStart if make_replay is None or case % 3 == 0 else None
            outcome = play(ALL[name], opened, whole, rng, folder, make_replay, make_full, oracle_of(name))
            happened.update(outcome._asdict())
    return happened


def oracle_of(name: str) -> type[Oracle]:
    return OwnOracle if name in OWN else Oracle


@pytest.mark.parametrize("name", SOON)
def test_every_decision_is_that_of_the_whole_journal(name, tmp_path):
    happened = check(name, FEW, "interpreted", tmp_path, seed=1)
    if name in READ_ALL or name in FULL_ONLY:
        del happened["left_over"]  # what the log gained after the last call
    assert min(happened.values()) > FEW / 5, f"too little happened: {happened}"


@pytest.mark.long
@pytest.mark.parametrize("name", ALL)
def test_every_decision_is_that_of_the_whole_journal_in_many_cases(name, tmp_path):
    check(name, CASES if name in REGRESSIONS else MANY, "interpreted", tmp_path, seed=2)


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [
        *("MonUCB", "TopUCB", "LinUCB", "AnchorThompson", "TreeUCB", "GridAllocation", "TreeAllocation"),
        *("PointRegression", "IDS", "RandomChoice, two", "component", "component that reads all"),
    ],
)
def test_the_same_holds_compiled(name, tmp_path):
    check(name, CASES, "compiled", tmp_path, seed=3)


def differing(name: str, cases: int, folder: Path, make_replay: Any) -> int:
    """How many cases differ from the whole journal."""
    rng, found = random.Random(0), 0
    shelf = Shelf(ALL[name], folder, logs=40, stores=0)
    with ar.compiling.using("interpreted"):
        for _ in range(cases):
            opened, whole = shelf.take(rng, from_store=False)
            try:
                play(ALL[name], opened, whole, rng, folder, make_replay, make_oracle=oracle_of(name))
            except Difference:
                found += 1
    return found


@pytest.mark.parametrize("name", ["MonUCB", "LinUCB", "TreeAllocation", "PointRegression", *PROPOSE])
def test_with_everything_related_any_rule_is_that_of_the_whole_journal(name, tmp_path):
    def make_replay(base: Any, log: Any) -> Any:
        return ar.ArtificialReplay(base, log, lambda *_: True)

    cases = 20 if name in REGRESSIONS else 60
    assert differing(name, cases, tmp_path, make_replay) == 0


@pytest.mark.parametrize(
    "name", ["MonUCB", "TopUCB", "LinUCB", "GridUCB", "TreeUCB", "TreeAllocation", "object", *OWN_READ_ALL]
)
def test_without_reading_first_what_comes_before_it_would_not_hold(name, tmp_path):
    assert differing(name, 60, tmp_path, ShowsAtOnce) > 10


@pytest.mark.parametrize("name", ["IDS", "RandomChoice", *OWN_ANY])
def test_replay_of_what_is_not_exact_is_not_the_whole_journal(name, tmp_path):
    assert differing(name, 60, tmp_path, ar.ArtificialReplay) > 0


def test_a_foreign_action_is_shown_after_the_rows_of_its_arm():
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
