"""A study over an algorithm of the user's own: made again at every start, and never imported unasked."""

from __future__ import annotations

import sys

import pytest
from study_kit import LOG

import artreplay as ar
from artreplay.errors import InvalidParameter, StudyRefused, StudyUnavailable

OBJECT, ALGORITHM = "my_bandits:counting", "my_bandits:practical"


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
