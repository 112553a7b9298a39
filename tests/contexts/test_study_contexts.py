"""Studies with contexts: every decision is that of the whole journal, each reward in the context of its decision."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import artreplay as ar
from artreplay.errors import InvalidParameter, StudyRefused
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


def test_columns_that_are_absent_or_unknown_are_counted_and_stay_so_after_a_restart(tmp_path):
    contexts = ar.Contexts({"age": ar.Numeric(0, 90)}, {"country": ["NL", "DE"]}, cosines=0)
    study = ar.Study.create(tmp_path / "s", ar.ContextRegression(2, contexts), wait=None)
    study.decide(contexts=[{"age": 3}, {"age": 3, "country": "NL", "shoe": 44}, {}])
    study.observe(0, 1.0, context={"country": None, "shoe": 1})
    for number in range(30):
        study.decide(context={"age": 1, "country": "NL", f"more {number}": 0})
    for _ in range(2):
        found = study.facts()["contexts"]
        assert found["absent"] == {"age": 2, "country": 2}
        assert found["unknown"]["shoe"] == 2
        assert sum(found["unknown"].values()) == 32
        assert len(found["unknown"]) <= 21  # a caller cannot fill the memory with names
        assert study.decision(study.decisions()[1].id).context == {"age": 3, "country": "NL"}
        study.close()
        study = ar.Study.open(tmp_path / "s")
    study.close()


WRONG: list[tuple[dict[str, Any], str]] = [
    ({}, "needs a context"),
    ({"context": {"age": "old"}}, "must have a finite number as 'age'"),
    ({"context": {"age": float("inf")}}, "must have a finite number as 'age'"),
    ({"context": {"age": True}}, "must have a finite number as 'age'"),
    ({"context": {"country": ["NL"]}}, "must have a text, a boolean or a number as 'country'"),
    ({"context": {"country": 10**400}}, "a number of at most"),
    ({"context": [3]}, "must be a mapping"),
    ({"context": {3: 1}}, "must be a mapping"),
    ({"contexts": []}, "at least one context"),
    ({"contexts": "NL"}, "must be a list of contexts"),
    ({"contexts": [{"age": 3}], "count": 2}, "count must be left out"),
    ({"contexts": [{"age": 3}], "context": {}}, "context must be left out"),
]


@pytest.mark.parametrize(("asked", "sentence"), WRONG)
def test_what_is_wrong_with_a_context_is_refused_before_anything_is_decided(asked, sentence):
    contexts = ar.Contexts({"age": ar.Numeric(0, 90)}, {"country": ["NL", "DE"]}, cosines=0)
    with ar.Study.create(":memory:", ar.ContextRegression(2, contexts), wait=None) as study:
        with pytest.raises(InvalidParameter, match=sentence):
            study.decide(**asked)
        assert study.decisions() == []


def test_a_study_without_contexts_refuses_one():
    with ar.Study.create(":memory:", ar.KLUCB(2, horizon=10), wait=None) as study:
        with pytest.raises(InvalidParameter, match="context must be left out"):
            study.decide(context={"age": 1})
        with pytest.raises(StudyRefused, match="has no contexts to change"):
            study.change(contexts=ar.Contexts({"age": ar.Numeric(0, 1)}))


def test_other_contexts_must_fit_what_was_kept():
    first = ar.Contexts(categories={"size": ["small", "large"]}, cosines=0)
    with ar.Study.create(":memory:", ar.ContextRegression(2, first), wait=None) as study:
        study.reward(study.decide(context={"size": "small"}).id, 1.0)
        with pytest.raises(InvalidParameter, match="must have a finite number as 'size'"):
            study.change(contexts=ar.Contexts({"size": ar.Numeric(0, 9)}))
        assert study.base.contexts == first


def test_regressions_beyond_64_megabytes_are_refused_with_their_size():
    contexts = ar.Contexts({f"x{number}": ar.Numeric(0, 1) for number in range(300)})
    with pytest.raises(InvalidParameter, match=r"must fit into 64 MB in a study, got \d+ MB"):
        ar.Study.create(":memory:", ar.ContextRegression(30, contexts), wait=None)


def test_an_export_is_a_log_with_the_same_contexts(tmp_path):
    contexts = ar.Contexts(
        {"age": ar.Numeric(0, 90)}, {"country": ["NL", "DE"], "member": [True, False], "state": [1, 2]}, cosines=0
    )
    asked = {"age": 31, "country": "NL", "member": True, "state": 2}
    with ar.Study.create(":memory:", ar.ContextRegression(arms=["a", "b"], contexts=contexts), wait=None) as study:
        for decision in study.decide(contexts=[asked] * 3):
            study.reward(decision.id, 1.0)
        study.export(tmp_path / "d.parquet")
    names = ["age", "country", "member", "context_state"]  # `state` is that of the decision
    log = ar.open_history(tmp_path / "d.parquet", unit="action", reward="reward", contexts=names)
    assert log.contexts.rename_columns([*asked]).to_pylist() == [asked] * 3


def test_a_frame_of_contexts_is_a_batch():
    import pyarrow as pa

    contexts = ar.Contexts({"age": ar.Numeric(0, 90)}, cosines=0)
    with ar.Study.create(":memory:", ar.ContextRegression(2, contexts), wait=None) as study:
        decisions = study.decide("batch", contexts=pa.table({"age": [3, None, 80]}))
        assert [one.context for one in decisions] == [{"age": 3}, {"age": None}, {"age": 80}]
        assert study.decide("batch", contexts=[{"age": 3}] * 3) == decisions  # it was asked before


def differs(name: str, lives: int) -> bool:
    """Whether a decision of some life is not that of the whole journal."""
    with ar.compiling.using("interpreted"):
        for number in range(lives):
            g = random.Random(f"control {number}")
            try:
                live(KINDS[name](g), g, ":memory:")
            except Difference:
                return True
    return False


@pytest.mark.parametrize("name", KINDS)
def test_a_reward_learnt_in_another_context_than_that_of_its_decision_makes_a_difference(name, monkeypatch):
    for module in (deciding, study_state):
        monkeypatch.setattr(module, "context_details", lambda entry: {"context": {"country": "NL", "device": "desk"}})
    assert differs(name, 12)


@pytest.mark.parametrize("name", KINDS)
def test_an_open_decision_counted_in_another_segment_makes_a_difference(name, monkeypatch):
    numbers = folding.Fold.numbers
    monkeypatch.setattr(
        folding.Fold,
        "numbers",
        lambda self, action, encoded=None: numbers(self, action, None if encoded is None else encoded * 0),
    )
    assert differs(name, 30)


def test_cells_with_open_decisions_must_be_read_before_the_next_choice(monkeypatch):
    monkeypatch.setattr(folding.Fold, "read_open_cells", lambda self: None)
    assert differs("segments", 60)
