"""Studies with contexts: every decision is that of the whole journal, each reward in the context of its decision."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import artreplay as ar
from artreplay.studies import deciding, folding, study_state
from artreplay.studies.study_databases import SQLiteJournal
from contexts.study_lives import Difference, Make, live


def regression(g: random.Random) -> Make:
    """A regression with options of its own."""
    explore, trust = g.choice(["ucb", "thompson", "greedy"]), g.choice(["auto", "log"])

    def make(contexts: ar.Contexts, arms: list[Any], horizon: int) -> Any:
        return ar.ContextRegression(arms=arms, contexts=contexts, explore=explore, trust=trust)  # type: ignore[arg-type]

    return make


def segmented(g: random.Random) -> Make:
    """An index in each segment."""
    return lambda contexts, arms, horizon: ar.KLUCB(arms=arms, horizon=horizon, contexts=contexts)


KINDS: dict[str, Callable[[random.Random], Make]] = {"regression": regression, "segments": segmented}


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SQLiteJournal, "synchronous", "OFF")


def check(name: str, lives: int, folder: Path, seed: int, mode: ar.compiling.Mode = "interpreted") -> Counter[str]:
    happened: Counter[str] = Counter()
    with ar.compiling.using(mode):
        for number in range(lives):
            g = random.Random(f"{name} {seed} {number}")
            place = ":memory:" if number % 2 else folder / f"{number}.study"
            stored = folder / f"{number}.log" if number % 4 == 0 else None
            happened += live(KINDS[name](g), g, place, stored)
    return happened


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("alone", [64, 0], ids=["one by one", "in one pass"])
def test_every_decision_is_that_of_the_whole_journal(name, alone, tmp_path, monkeypatch):
    monkeypatch.setattr(folding, "FEW_ROUNDS", alone)
    happened = check(name, 10, tmp_path, seed=alone)
    assert min(happened[event] for event in ("batch", "observe", "grow", "wait", "void open")) > 0
    assert happened["add"] + happened["change"] + happened["horizon"] > 0
    assert happened["reopen"] + happened["crash"] > 0


@pytest.mark.long
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("alone", [64, 0], ids=["one by one", "in one pass"])
def test_every_decision_is_that_of_the_whole_journal_in_many_cases(name, alone, tmp_path, monkeypatch):
    monkeypatch.setattr(folding, "FEW_ROUNDS", alone)
    check(name, 300, tmp_path, seed=2)


@pytest.mark.long
@pytest.mark.parametrize("name", KINDS)
def test_the_same_holds_compiled(name, tmp_path):
    check(name, 40, tmp_path, seed=3, mode="compiled")


def differing(name: str, folder: Path, lives: int) -> int:
    """In how many lives a decision is not that of the whole journal."""
    found = 0
    with ar.compiling.using("interpreted"):
        for number in range(lives):
            g = random.Random(f"control {number}")
            try:
                live(KINDS[name](g), g, ":memory:")
            except Difference:
                found += 1
    return found


@pytest.mark.parametrize("name", KINDS)
def test_a_reward_learnt_in_another_context_than_that_of_its_decision_makes_a_difference(name, tmp_path, monkeypatch):
    for module in (deciding, study_state):
        monkeypatch.setattr(module, "context_details", lambda entry: {"context": {"country": "NL", "device": "desk"}})
    assert differing(name, tmp_path, 12) > 0


@pytest.mark.parametrize("name", KINDS)
def test_an_open_decision_counted_in_another_segment_makes_a_difference(name, tmp_path, monkeypatch):
    numbers = folding.Fold.numbers
    monkeypatch.setattr(
        folding.Fold,
        "numbers",
        lambda self, action, encoded=None: numbers(self, action, None if encoded is None else encoded * 0),
    )
    assert differing(name, tmp_path, 30) > 0


def test_cells_with_open_decisions_must_be_read_before_the_next_choice(tmp_path, monkeypatch):
    monkeypatch.setattr(folding.Fold, "read_open_cells", lambda self: None)
    assert differing("segments", tmp_path, 60) > 0
