"""Studies whose algorithm hears of contexts: each decision is that of the whole journal, each entry in its context."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import artreplay as ar
from artreplay.errors import InvalidHistory, InvalidParameter
from contexts.context_journals import ARMS, Entry, Fold, log_of, random_rows
from contexts.context_kit import random_context
from contexts.test_context_journals import CONTEXTS, SEGMENTS, segmented

pytestmark = [
    pytest.mark.filterwarnings("ignore:the log has .* rows for each of:UserWarning"),
    pytest.mark.filterwarnings("ignore:.* of the values of:UserWarning"),
    pytest.mark.filterwarnings("ignore:decision .* is past the horizon:UserWarning"),
]
BASES: dict[str, Callable[[], Any]] = {name: segmented(name) for name in SEGMENTS if name != "TopUCB"} | {
    "regression": lambda: ar.ContextRegression(ARMS, CONTEXTS),
    "regression that draws": lambda: ar.ContextRegression(ARMS, CONTEXTS, explore="thompson", seed=3),
}


def crashed(study: ar.Study, place: Path) -> ar.Study:
    study._journal.close()
    study._journal.disown()
    return ar.Study.open(place)


@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("seed", range(2))
def test_a_decision_is_that_of_the_whole_journal(name, seed, tmp_path):
    g, make, place = random.Random(f"{name} {seed}"), BASES[name], tmp_path / "s"
    rows = random_rows(g, 12)
    study = ar.Study.create(place, make(), log_of(rows), wait=None)
    journal: list[Entry] = list(rows)
    counted = len(journal)
    first = list(journal)  # what the horizon counts
    for number in range(14):
        if g.random() < 0.2:
            more = random_rows(g, g.randrange(1, 4))
            rows += more
            journal += more
            study.extend(log_of(rows))
        if g.random() < 0.4:
            told = random_rows(g, 1)[0]
            study.observe(told.arm, told.reward, context=told.context)
            journal.append(told._replace(played=True))
        if g.random() < 0.3:
            study = crashed(study, place) if g.random() < 0.5 else reopened(study, place)
        context, among = random_context(g), g.choice([None, None, sorted(g.sample(range(ARMS), 2))])
        oracle = Fold(make, first)
        expected = oracle.decide(journal, context, number, among)
        decision = study.decide(context=context | {"unknown": number}, among=among)
        assert decision.action == expected, number
        if g.random() < 0.3:
            study.void(decision.id)
        else:
            reward = g.choice([0.0, 1.0, 0.5])
            study.reward(decision.id, reward)
            journal.append(Entry(decision.action, reward, context, True))
    assert study.facts()["contexts"]["unknown"] == {"unknown": 14}
    assert counted == 12
    study.close()


def reopened(study: ar.Study, place: Path) -> ar.Study:
    study.close()
    return ar.Study.open(place)


@pytest.mark.parametrize("name", BASES)
def test_a_restart_decides_the_same_with_many_decisions_open(name, tmp_path, monkeypatch):
    g, made = random.Random(name), []
    monkeypatch.setattr("artreplay.studies.study_state.ENTRIES_BETWEEN_SNAPSHOTS", 5)
    rows = log_of(random_rows(g, 10))
    stays = ar.Study.create(tmp_path / "stays", BASES[name](), rows, wait=None, holdout=0.2)
    moves = ar.Study.create(tmp_path / "moves", BASES[name](), rows, wait=None, holdout=0.2)
    for turn in range(10):
        contexts = [random_context(g) for _ in range(3)]
        both = [study.decide(contexts=contexts) for study in (stays, moves)]
        assert [one.action for one in both[0]] == [one.action for one in both[1]]
        assert [one.context for one in both[0]] == contexts
        made.append(both)
        for pair in zip(*made[g.randrange(len(made))], strict=True):
            reward = g.choice([0.0, 1.0])
            for study, one in zip((stays, moves), pair, strict=True):
                if study.decision(one.id).state == "open":
                    study.reward(one.id, reward)
        if turn == 6:
            for study, one in zip((stays, moves), (both[0][0], both[1][0]), strict=True):
                study.void(one.id)
        moves = crashed(moves, tmp_path / "moves") if turn % 2 else reopened(moves, tmp_path / "moves")
    assert [arm.open for arm in stays.arms()] == [arm.open for arm in moves.arms()]
    stays.close()
    moves.close()


def test_contexts_are_kept_exported_and_erased_and_absent_columns_are_missing(tmp_path):
    given: dict[str, Any] = {"contexts": CONTEXTS}
    base = ar.KLUCB(ARMS, horizon=40, **given)
    with ar.Study.create(tmp_path / "s", base, wait=None) as study:
        one = study.decide(context={"country": "NL", "age": None, "who": "x", "device": "erika"})
        two = study.decide(context={"country": "NL", "age": None, "device": None}, among=[one.action])
        facts = study.facts()["contexts"]
        assert (facts["unknown"], facts["absent"]) == ({"who": 1}, {})
        study.export(tmp_path / "out.parquet")
        kept = [(row["country"], row["age"]) for row in pq.read_table(tmp_path / "out.parquet").to_pylist()]
        assert kept == [("NL", None), ("NL", None)]
        assert two.context == {"country": "NL", "age": None, "device": None}
        study.reward(one.id, 1.0)
        study.void(one.id, erase=True)
        assert study.decision(one.id).context is None
        with pytest.raises(InvalidParameter, match="KLUCB with contexts needs a context"):
            study.decide()
        with pytest.raises(InvalidParameter, match="KLUCB with contexts needs a context"):
            study.observe(0, 1.0)
        for wrong in ({"age": object()}, {1: 2}, [1], {"country": "x" * 20_000}):
            with pytest.raises(InvalidParameter, match="context must"):
                study.decide(context=wrong)  # type: ignore[call-overload]
        with pytest.raises(InvalidParameter, match="context must be left out"):
            study.decide(context={}, contexts=[{}])  # type: ignore[call-overload]
        with pytest.raises(InvalidHistory, match="must have the contexts"):
            study.extend(ar.History([0, 1], [1.0, 0.0]))
    for file in tmp_path.glob("s*"):
        assert b"erika" not in file.read_bytes()


def test_other_contexts_fold_the_journal_again(tmp_path):
    wider = ar.Contexts(
        {"age": ar.Numeric(0, 2, missing=True)},
        {"country": ["NL", "DE", "BE"], "device": ["phone", "desk"]},
        segments=["country"],
    )
    g = random.Random(1)
    told = random_rows(g, 30)
    made = []
    for contexts in (CONTEXTS, wider):
        base = ar.MonUCB(ARMS, horizon=40, contexts=contexts)
        with ar.Study.create(":memory:", base, wait=None) as study:
            for row in told:
                study.observe(row.arm, row.reward, context=row.context)
            study.change(contexts=wider)
            made.append([study.decide(context=random_context(random.Random(n))).action for n in range(8)])
            assert study.base.contexts == wider
    assert made[0] == made[1]


def test_arms_come_and_go_in_every_segment():
    base = ar.KLUCB(arms=["a", "b"], horizon=40, contexts=CONTEXTS)
    with ar.Study.create(":memory:", base, wait=None) as study:
        study.retire_arm("a")
        study.add_arm("c")
        contexts = [{"country": country} for country in ("NL", "DE", "XX")] * 4
        assert {one.action for one in study.decide(contexts=contexts)} == {"b", "c"}
        assert sum(arm.open for arm in study.arms()) == 12
        assert [cell.unit[0] for cell in study.cells()][::3] == ["a", "b", "c"]


def test_stopping_is_of_each_segment():
    base = ar.KLUCB(arms=["a", "b"], horizon=1000, contexts=CONTEXTS)
    with ar.Study.create(":memory:", base, wait=None) as study:
        for country, best in (("NL", "a"), ("DE", "b")):
            for arm in "ab":
                for _ in range(40):
                    study.observe(arm, float(arm == best), context={"country": country})
        made = study.decide(context={"country": "NL"})
        study.reward(made.id, 1.0)
        assert study.stopping() is None
        found = {one.segment: (one.leader, one.chance > 0.99) for one in study.stopping_by_segment()}
        assert found == {("NL",): ("a", True), ("DE",): ("b", True)}
        earned = dict(study._state.earned.sums)
        study.change(contexts=ar.Contexts({}, {"country": ["DE", "NL"]}, segments=["country"]))
        assert {one.segment: one.leader for one in study.stopping_by_segment()} == {("NL",): "a", ("DE",): "b"}
        assert sorted(earned.values()) == sorted(study._state.earned.sums.values())
    with ar.Study.create(":memory:", ar.ContextRegression(arms=["a", "b"], contexts=CONTEXTS), wait=None) as study:
        study.observe("a", 1.0, context={})
        assert study.decide(context={}).propensity == 1.0
        assert (study.stopping(), study.stopping_by_segment()) == (None, [])
