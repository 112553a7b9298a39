"""A study over an algorithm of the user's own: made again at every start, and never imported unasked."""

from __future__ import annotations

import random
import sys

import my_bandits
import pytest
from study_kit import LOG

import artreplay as ar
from artreplay.cli import main
from artreplay.errors import InvalidParameter, StudyRefused, StudyUnavailable

OBJECT, ALGORITHM = "my_bandits:counting", "my_bandits:practical"
MODEL, OF_SKLEARN = "my_bandits:scoring", "my_bandits:sklearn"


@pytest.mark.parametrize(
    ("place", "given"),
    [
        (OBJECT, {"arguments": {"units": ["red", "blue", "green"]}}),
        (ALGORITHM, {"arms": ["red", "blue", "green"], "arguments": {"horizon": 50}}),
    ],
)
def test_a_restart_decides_the_same_and_an_object_is_shown_the_whole_log(place, given, tmp_path):
    stays = ar.Study.create(tmp_path / "stays", place, LOG, wait=None, **given)
    ar.Study.create(tmp_path / "restarts", place, LOG, wait=None, **given).close()
    assert stays.policy_kind == ("full-start" if place == OBJECT else "artificial-replay")
    for turn in range(12):
        with ar.Study.open(tmp_path / "restarts", algorithm=place) as restarts:
            made = [study.decide() for study in (stays, restarts)]
            assert made[0].action == made[1].action
            if turn % 3:
                for study, decision in zip((stays, restarts), made, strict=True):
                    study.reward(decision.id, float(turn % 2))
    assert stays.facts()["log"]["used"] == 4 or place == ALGORITHM
    assert {one.propensity for one in stays.decisions()} <= {None, 1.0}
    stays.close()


def test_open_decisions_count_for_an_object_too():
    given = {"units": ["a", "b", "c"]}
    with ar.Study.create(":memory:", OBJECT, wait=None, arguments=given) as study:
        assert [one.action for one in study.decide(count=3)] == ["a", "b", "c"]
        with pytest.raises(InvalidParameter, match="is for arms"):
            study.decide(among=["a"])


def test_many_rewards_of_an_object_are_folded_as_they_were_told(tmp_path):
    place, log = "my_bandits:counting_arms", ar.History(["c", "b"], [1.0, 0.0])
    with ar.Study.create(tmp_path / "s", place, log, arms=["a", "b", "c"], wait=None) as study:
        assert study.decide().action == "a"
        for turn in range(100):
            study.observe("cab"[turn % 3], float(turn % 3 == 2))
        assert [row["action"] for row in study.rows()] == ["a", *("cab"[turn % 3] for turn in range(100))]
        before = vars(study.policy.base)
        assert before == {"n": {"a": 33, "b": 34, "c": 35}, "total": {"a": 0.0, "b": 33.0, "c": 1.0}}
        with pytest.raises(InvalidParameter, match=r"arms\(\) is for arms, and my_bandits:counting_arms chooses its"):
            study.arms()
    with ar.Study.open(tmp_path / "s", log, algorithm=place) as study:
        assert vars(study.policy.base) == before
        assert study.decide().action == "b"  # a is open, and was played as often


def test_arms_of_ones_own_algorithm_come_and_go(tmp_path):
    given = {"arms": ["red", "blue"], "arguments": {"horizon": 50}}
    with ar.Study.create(tmp_path / "s", ALGORITHM, wait=None, **given) as study:
        study.retire_arm("red")
        study.add_arm("green")
        assert {one.action for one in study.decide(count=4)} == {"blue", "green"}
    with ar.Study.open(tmp_path / "s", algorithm=ALGORITHM) as study:
        assert [arm.label for arm in study.arms()] == ["red", "blue", "green"]


def test_what_was_not_named_is_not_imported_and_can_only_be_looked_at(tmp_path):
    given = {"arguments": {"units": ["a", "b"]}}
    with ar.Study.create(tmp_path / "s", OBJECT, wait=None, **given) as study:
        decision = study.decide()
    sys.modules.pop("my_bandits")
    with ar.Study.open(tmp_path / "s") as study:
        assert "my_bandits" not in sys.modules
        assert study.decisions() == [decision]
        assert study.facts()["log"] is None
        assert study.groups() == study.contradictions() == []
        with pytest.raises(StudyUnavailable, match=r'Study.open\(place, algorithm="my_bandits:counting"\) does'):
            study.cells()
        with pytest.raises(StudyUnavailable, match="opened for reading only"):
            study.void(decision.id)
    with pytest.raises(StudyRefused, match="was made with the algorithm my_bandits:counting, got os:system"):
        ar.Study.open(tmp_path / "s", algorithm="os:system")
    assert "my_bandits" not in sys.modules


@pytest.mark.parametrize("place", ["my_bandits:nothing", "no_such_module:make", "my_bandits:OBJECT.x", ":", "json:"])
def test_a_place_that_has_no_function_is_refused(place, tmp_path):
    with pytest.raises(InvalidParameter, match="algorithm must be the place of a function"):
        ar.Study.create(tmp_path / "s", place, wait=None)
    assert not list(tmp_path.iterdir())


# -- models of contexts -----------------------------------------------------------------------------------------------


def some_context(g):
    return {"age": g.choice([20, 40, None]), "country": g.choice(["NL", "DE", "FR"])}


def log_of_contexts(g, rows):
    contexts = [some_context(g) for _ in range(rows)]
    columns = {name: [one[name] for one in contexts] for name in ("age", "country")} | {"more": ["x"] * rows}
    arms, rewards = [g.choice(["red", "blue"]) for _ in contexts], [float(g.random() < 0.4) for _ in contexts]
    return ar.History(arms, rewards, contexts=columns), list(zip(arms, rewards, contexts, strict=True))


def oracle_of(place, arms, shown, opened):
    """A model that was shown everything in order, and the lowest reward for what is open."""
    model = getattr(my_bandits, place.partition(":")[2])(arms)
    for arm, reward, context in [*shown, *((arm, 0.0, context) for arm, context in opened)]:
        model.update(arm, reward, context)
    return model


@pytest.mark.parametrize(("place", "turns"), [(MODEL, 60), (OF_SKLEARN, 25)])
def test_a_model_of_contexts_decides_as_one_that_was_shown_the_whole_journal(place, turns, tmp_path):
    g = random.Random(0)
    log, shown = log_of_contexts(g, 30)
    arms, retired = ["red", "blue"], set()
    study = ar.Study.create(tmp_path / "s", place, log, arms=arms, wait=None)
    opened = {}
    for turn in range(turns):
        context = some_context(g)
        allowed = [arm for arm in arms if arm not in retired]
        among = g.sample(allowed, 2) if turn % 5 == 4 else None
        model = oracle_of(place, arms, shown, opened.values())
        made = study.decide(context=context | {"unknown": 1}, among=among)
        scores = {arm: model.score(arm, context, turn) for arm in allowed if among is None or arm in among}
        assert made.action == max(scores, key=scores.get)
        opened[made.id] = made.action, context
        if g.random() < 0.7:
            known = g.choice(list(opened))
            arm, at = opened.pop(known)
            reward = float(g.random() < 0.4)
            study.reward(known, reward)
            shown.append((arm, reward, at))
        if turn == turns // 2:
            study.add_arm("green")
            arms = [*arms, "green"]
        if turn == turns * 2 // 3:
            study.retire_arm("red")
            retired.add("red")
        if turn % 7 == 6:
            study.close()
            study = ar.Study.open(tmp_path / "s", log, algorithm=place)
    assert {(arm.label, arm.logged > 0) for arm in study.arms()} == {("red", True), ("blue", True), ("green", False)}
    assert sum(arm.online for arm in study.arms()) + sum(arm.open for arm in study.arms()) == turns
    study.close()


def test_many_rewards_of_a_model_are_folded_as_they_were_told(tmp_path):
    g = random.Random(1)
    study = ar.Study.create(tmp_path / "s", MODEL, arms=["red", "blue"], wait=None)
    for _ in range(100):
        study.observe(g.choice(["red", "blue"]), float(g.random() < 0.5), context=some_context(g))
    questions = [some_context(g) for _ in range(9)]
    before = [study.policy.ask(one) for one in questions]
    study.close()
    with ar.Study.open(tmp_path / "s", algorithm=MODEL) as study:
        assert [study.policy.ask(one) for one in questions] == before


@pytest.mark.parametrize(
    ("place", "given", "why"),
    [
        (MODEL, {}, "arms must be given"),
        ("my_bandits:without_columns", {"arms": ["red"]}, "must say its columns in a study"),
        ("my_bandits:turned_round", {"arms": ["red", "blue"]}, "in the order in which it is given them"),
    ],
)
def test_a_model_must_say_its_columns_and_its_arms(place, given, why, tmp_path):
    with pytest.raises(InvalidParameter, match=why):
        ar.Study.create(tmp_path / "s", place, wait=None, **given)
    assert not list(tmp_path.iterdir())


def test_what_a_model_cannot_be_asked_is_refused():
    with ar.Study.create(":memory:", MODEL, arms=["red", "blue"], wait=None) as study:
        for wrong, why in [({"age": "old", "country": "NL"}, "finite number as 'age'"), (None, "needs a context")]:
            with pytest.raises(InvalidParameter, match=why):
                study.decide(context=wrong)
        with pytest.raises(StudyRefused, match="has contexts that its function gives it"):
            study.change(contexts=my_bandits.CONTEXTS)
        assert study.facts()["decisions"] == {}


def test_the_shell_shows_the_arms_of_a_model_and_leaves_out_those_of_other_objects(tmp_path, capsys):
    for place in (MODEL, "my_bandits:counting_arms"):
        study = str(tmp_path / place.partition(":")[2])
        ar.Study.create(study, place, arms=["red", "blue"], wait=None).close()
        assert not main(["study", "show", study, "--algorithm", place])
        assert ("blue" in capsys.readouterr().out) == (place == MODEL)
