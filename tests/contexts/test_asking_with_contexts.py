"""What policies refuse of contexts, what they warn of, and what people see."""

from __future__ import annotations

import random
import re
import warnings
from typing import Any

import numpy as np
import pytest

import artreplay as ar
from artreplay.errors import ArtReplayError, InvalidAction, InvalidHistory, InvalidParameter
from artreplay.studies.pending import Pending
from contexts.context_journals import Counts, log_of, random_rows
from contexts.context_kit import PlainRegression, random_context

# Of logs of a few rows, some of whose values are new.
pytestmark = [
    pytest.mark.filterwarnings("ignore:the log has .* rows for each of:UserWarning"),
    pytest.mark.filterwarnings("ignore:.* of the values of:UserWarning"),
]
COLUMNS: dict[str, Any] = {"country": ["NL", "DE"], "device": ["phone", "desk"]}
PLAIN = ar.Contexts({"age": ar.Numeric(0, 2)}, COLUMNS, cosines=3)
APART = ar.Contexts({"age": ar.Numeric(0, 2)}, COLUMNS, segments=["country"], cosines=3)
HERE = {"age": 1.0, "country": "NL", "device": "desk"}
THERE = HERE | {"country": "DE"}


def rows(n: int = 12) -> ar.History:
    return log_of(random_rows(random.Random(4), n))


def regression(**options: Any) -> ar.ArtificialReplay:
    return ar.ArtificialReplay(ar.ContextRegression(3, PLAIN, **options), rows())


class Nothing:
    contextual = True
    arms = ("red", "blue")

    def score(self, arm: str, context: dict[str, Any], round: int) -> float:
        return float("nan") if context["x"] == 0 else 1.0

    def update(self, arm: str, reward: float, context: dict[str, Any]) -> None:
        pass


class TooShort(Nothing):
    def score(self, arm: str, context: dict[str, Any]) -> float:  # type: ignore[override]
        return 1.0


class Armless(Nothing):
    arms = None  # type: ignore[assignment]


REFUSED: list[tuple[Any, str]] = [
    (lambda: regression().ask(), "a ContextRegression with contexts needs a context, got None"),
    (lambda: regression().ask({"age": 1.0}), "context must have 'country'. If its value is missing, give None"),
    (lambda: regression().ask(HERE | {"city": "x"}), "context must have only the columns 'age', 'country'"),
    (lambda: regression().tell(0, 1.0), "not the action that was asked for last: say which context"),
    (lambda: regression().ask(HERE, among=[]), "among must list at least 1 arms, got 0"),
    (lambda: regression().ask(HERE, among=[5]), "5 is not an arm"),
    (lambda: regression().ask(HERE, among="red"), "among must be a list of arms, got 'red'"),
    (lambda: ar.Ignorant(ar.KLUCB(3, 100)).ask(HERE), "context must be left out for a KLUCB without contexts"),
    (lambda: ar.Ignorant(ar.KLUCB(3, 100)).tell(0, 1.0, HERE), "context must be left out for a KLUCB without contexts"),
    (lambda: ar.Ignorant(ar.GridUCB(1, 100)).ask(among=[1]), "among is for algorithms over arms"),
    (lambda: ar.FullStart(ar.ContextRegression(3, PLAIN), ar.History([0], [1])), "must have the contexts of this"),
    (lambda: ar.FullStart(Counts(), ar.History([0], [1])), "the log must have contexts for Counts"),
    (
        lambda: ar.FullStart(ar.ContextRegression(3, PLAIN), ar.History([0], [1], contexts={"age": [1]})),
        "lacks 'country', 'device'",
    ),
    (lambda: ar.KLUCB(3, 100, contexts=PLAIN), "contexts must make segments for KLUCB"),
    (
        lambda: ar.KLUCB(10**6, 10**8, contexts=ar.Contexts(categories={"c": list(range(20))}, segments=["c"])),
        "contexts must make at most 10,000,000 cells of 1,000,000 arms, got 21 segments",
    ),
    (lambda: ar.ThompsonSampling(3, prior="log", contexts=APART), "prior must be a pair (a, b) with contexts"),
    (lambda: ar.FullStart(ar.KLUCB(3, 100, contexts=APART), ar.Totals([0], [1], [1])), "totals are for algorithms"),
    (
        lambda: ar.ArtificialReplay(ar.ContextRegression(3, PLAIN), rows(), relation=lambda *_: True),
        "a relation and contexts do not go together",
    ),
    (lambda: ar.Ignorant(ar.KLUCB(3, 100)).values(HERE), "values(context=...) needs a ContextRegression"),
    (lambda: ar.Ignorant(Nothing()).ask({"x": 0}), "must return a number, got nan"),
    (lambda: ar.Ignorant(Nothing()).ask({"x": 1}, among=["green"]), "'green' is not one of the 2 arms of Nothing"),
    (lambda: ar.Ignorant(TooShort()), "must be score(self, arm, context, round), got score"),
    (lambda: ar.Ignorant(Armless()), "Armless must say which arms it scores, as arms or n_arms, got None"),
    (lambda: ar.ArtificialReplay(Counts(), rows()).ask({"x": 1}), "must have the columns of the log"),
    (lambda: ar.Ignorant(Counts()).ask([1]), "context must be a mapping of names to values, got [1]"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "says"), REFUSED, ids=[says for _, says in REFUSED])
def test_what_cannot_be_is_refused(call: Any, says: str) -> None:
    with pytest.raises(ArtReplayError, match=re.escape(says)):
        call()


def test_a_refused_question_changes_nothing() -> None:
    policy, other = regression(), regression()
    policy.ask(HERE)
    for wrong in (THERE | {"age": "x"}, {}, None):
        with pytest.raises(InvalidParameter):
            policy.ask(wrong)
    with pytest.raises(InvalidAction):
        policy.tell(0, 7.0)
    policy.tell(other.ask(HERE), 1.0)
    other.tell(other.ask(HERE), 1.0)
    assert policy.values(THERE) == other.values(THERE)


def test_a_reward_belongs_to_the_only_context_that_was_asked_for() -> None:
    policy = regression()
    policy.tell(policy.ask(HERE), 1.0)
    arm = policy.ask(HERE)
    assert policy.ask(dict(HERE)) == arm
    other = next(number for number in range(3) if number != arm)
    with pytest.raises(InvalidAction, match="this is not the action that was asked for last"):
        policy.tell(other, 1.0)
    policy.tell(other, 1.0, HERE)
    policy.ask(HERE)
    arm = policy.ask(THERE)
    with pytest.raises(InvalidAction, match="more than one context was asked since the last tell"):
        policy.tell(arm, 1.0)
    policy.tell(arm, 1.0, context=THERE)
    assert policy.rounds == 3


def test_some_of_the_arms_are_another_question() -> None:
    for base in (ar.KLUCB(3, 100), ar.UCB1(3), ar.ThompsonSampling(3), ar.IDS(3), ar.TopUCB(3, 2, 100)):
        policy, plain = (ar.ArtificialReplay(base, ar.History([0, 1, 2, 2] * 9, [0, 0, 1, 0] * 9)) for _ in range(2))
        free = policy.ask()
        chosen = policy.ask(among=[0, 1])
        assert set(np.atleast_1d(chosen).tolist()) <= {0, 1}
        assert policy.ask(among=(1, 0)) == chosen
        if base.exact:
            assert policy.ask() == free == plain.ask()


def test_a_log_that_knows_more_is_told_once() -> None:
    with pytest.warns(UserWarning, match=r"the log has contexts \(age, country, device\), and KLUCB does not use them"):
        policy = ar.ArtificialReplay(ar.KLUCB(3, 100), rows())
    policy.extend(rows(20))  # nothing more is said


@pytest.mark.filterwarnings("default::UserWarning")
def test_a_log_is_told_what_is_odd_about_its_contexts() -> None:
    table = {"country": ["NL", "DE"] * 30, "age": [0.0, 30.0, 60.0] * 20}
    log = ar.History([0] * 20 + [1] * 20 + [2] * 20, [0.0, 0.0, 1.0, 1.0] * 15, contexts=table)
    contexts = ar.Contexts.from_history(log, segments=["country"])
    with pytest.warns(UserWarning, match=r"the log has 10.0 rows for each of 3 arms in the 2 segments that occur"):
        ar.ArtificialReplay(ar.KLUCB(3, 100, contexts=contexts), log)
    narrow = ar.Contexts({"age": ar.Numeric(0, 1)}, {"country": ["NL", "DE"]})
    with pytest.warns(UserWarning, match=r"67% of the values of 'age' in the log lie beyond its scale"):
        ar.ArtificialReplay(ar.ContextRegression(3, narrow), log)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ar.ArtificialReplay(ar.ContextRegression(3, ar.Contexts.from_history(log)), log)


def test_a_column_that_gives_the_arm_or_the_reward_away_is_told() -> None:
    arms, rewards = [0, 1, 2] * 20, [0.0, 1.0] * 30
    log = ar.History(arms, rewards, contexts={"slot": [f"s{arm}" for arm in arms], "revenue": [9 * r for r in rewards]})
    base = ar.ContextRegression(3, ar.Contexts.from_history(log))
    with (
        pytest.warns(UserWarning, match="the column slot holds the arm"),
        pytest.warns(match="revenue holds the reward"),
    ):
        ar.ArtificialReplay(base, log)


def test_contexts_are_saved_with_a_policy(tmp_path: Any) -> None:
    policy = regression(explore="thompson")
    policy.tell(policy.ask(HERE), 1.0)
    asked = policy.ask(HERE | {"age": None}, among=[0, 2])
    policy.save(tmp_path / "policy")
    loaded = ar.load(tmp_path / "policy", rows())
    assert loaded.base.contexts == PLAIN
    assert loaded.ask(HERE | {"age": None}, among=[0, 2]) == asked
    loaded.tell(asked, 1.0)
    with pytest.raises(InvalidParameter, match="base= must be made as the saved ContextRegression was"):
        ar.load(tmp_path / "policy", rows(), base=ar.ContextRegression(3, APART, explore="thompson"))
    whole = rows()
    table = {name: whole.contexts.column(name).to_pylist() for name in whole.context_names}  # type: ignore[union-attr]
    table["age"][0] = 1.5
    with pytest.raises(InvalidHistory, match="changed"):
        ar.load(tmp_path / "policy", ar.History(whole.codes, whole.rewards, contexts=table))


@pytest.mark.parametrize("in_flight", [100, 1000])
def test_open_decisions_narrow_the_widths_of_their_arms(in_flight: int) -> None:
    g = random.Random(in_flight)
    policy = ar.ArtificialReplay(ar.ContextRegression(3, APART), rows(30))
    fold = PlainRegression(3, APART)
    for row in random_rows(random.Random(4), 30):
        fold.show(row.arm, row.reward, row.context, False)
    base, open_ = policy.drive.base, Pending(policy)
    counts: dict[tuple[int, str], int] = {}
    for number in range(in_flight):
        context = random_context(g)
        country = str(context["country"]) if context["country"] in ("NL", "DE") else "other"
        if number % (in_flight // 10) == 0:
            worth = [fold.worth(arm, context, number, counts.get((arm, country), 0)) for arm in range(3)]
            expected = worth.index(max(worth))
        else:
            expected = None
        known = base.checked_context(context)
        arm = policy.choose(open_ if counts else None, number, known)
        assert expected in (None, arm)
        unit = base.in_context(arm, known)
        open_.open(number, [unit])
        counts[arm, country] = counts.get((arm, country), 0) + 1
        if number % 7 == 0:
            open_.close(number)
            counts[arm, country] -= 1
    assert not base.component.open.any()  # the base knows nothing of them
    assert len({arm for (arm, _), times in counts.items() if times}) == 3


def test_an_arm_whose_log_is_contradicted_is_named() -> None:
    table = {name: [value] * 120 for name, value in HERE.items()}
    log = ar.History(["red", "blue"] * 60, [1.0, 0.0] * 60, contexts=table)
    policy = ar.ArtificialReplay(ar.ContextRegression(arms=["red", "blue"], contexts=PLAIN), log)
    assert policy.contradictions() == []
    for _ in range(80):
        policy.tell("red", 0.0, HERE)
    (found,) = policy.contradictions()
    assert str(found).startswith("'red' earned 0 on average in 80 rounds, but 1 in the 60 rows of the log")
    assert policy.values(HERE)["red"].source == "online"
    assert policy.values(HERE)["blue"].source == "all"
