"""Policies, studies and commands warn of the same as `inspect`: once for each log, and in the same words."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import artreplay as ar
from artreplay.inspecting.inspection import inspected

ROWS = 1_200


def log_of(name: str) -> ar.History:
    rng = np.random.default_rng(0)
    arms, clicks = rng.integers(0, 3, ROWS), (rng.random(ROWS) < 0.3).astype(float)
    mine = np.flatnonzero(arms == 2)
    if name == "sorted":
        clicks[mine] = np.sort(clicks[mine])
    elif name == "drift":
        clicks[mine] = rng.random(len(mine)) < np.linspace(0.9, 0.1, len(mine))
    elif name == "opening":
        clicks[mine[:30]] = 0.0
    elif name == "twice":
        arms, clicks = np.tile(arms, 2), np.tile(clicks, 2)
    return ar.History(arms, clicks)


def made(base: Any, history: ar.History) -> None:
    ar.ArtificialReplay(base, history)


def started(base: Any, history: ar.History) -> None:
    ar.FullStart(base, history)


def studied(base: Any, history: ar.History) -> None:
    with ar.Study.create(":memory:", base, history, wait=None) as study:
        study.decide()


WORDS = {
    "sorted": "arm 2: its rewards are sorted",
    "drift": "arm 2: its rewards fall along the log",
    "opening": "arm 2: its first",
    "twice": "from row 1,200 on the log repeats its first rows",
}


def said_by(call: Callable[[Any, ar.History], None], history: ar.History) -> list[Any]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(ar.KLUCB(3, horizon=5_000), history)
    return caught


@pytest.mark.parametrize("name", WORDS)
@pytest.mark.parametrize("call", [made, started, studied])
def test_each_log_is_warned_of_once_in_the_words_of_inspect(name: str, call: Any) -> None:
    history = log_of(name)
    (warning,) = said_by(call, history)
    assert Path(warning.filename).name == Path(__file__).name  # it points at the code that is to be changed
    sentence = str(warning.message).removeprefix("the log may mislead: ")
    assert WORDS[name] in sentence
    assert sentence in inspected([history]).warnings
    assert said_by(call, history) == []
    assert said_by(made, history) == []


def test_a_fair_log_is_not_warned_of() -> None:
    assert said_by(studied, log_of("fair")) == []


def test_a_study_that_is_opened_again_does_not_repeat_itself(tmp_path: Path) -> None:
    place = tmp_path / "clicks.study"
    assert (
        len(said_by(lambda base, history: ar.Study.create(place, base, history, wait=None).close(), log_of("sorted")))
        == 1
    )

    def opened(base: Any, history: ar.History) -> None:
        with ar.Study.open(place) as study:
            study.decide()

    assert said_by(opened, log_of("fair")) == []


@pytest.mark.parametrize("part", [7, 100, ROWS])
def test_a_log_in_parts_is_seen_as_the_whole_one(part: int) -> None:
    for name in WORDS:
        history = log_of(name)
        pieces = [history.rows(np.arange(at, min(at + part, len(history)))) for at in range(0, len(history), part)]
        one, two = inspected([history]), inspected(pieces)
        assert one.warnings == two.warnings
        for mine, other in zip(one.groups, two.groups, strict=True):
            assert (mine.name, mine.rows, mine.is_sorted, mine.opening) == (
                other.name, other.rows, other.is_sorted, other.opening,
            )  # fmt: skip
            assert (mine.mean, mine.drift) == pytest.approx((other.mean, other.drift))


def test_one_click_at_the_end_is_not_sorted() -> None:
    rewards = [0.0] * 59 + [1.0]
    assert not any("sorted" in warning for warning in inspected([ar.History([0] * 60, rewards)]).warnings)


def test_many_arms_are_one_sentence() -> None:
    arms = np.repeat(np.arange(9), 40)
    found = inspected([ar.History(arms, np.tile(np.repeat([0.0, 1.0], 20), 9))])
    (sentence,) = [warning for warning in found.warnings if "sorted" in warning]
    assert sentence.startswith("arms 0, 1, 2 and 6 more: their rewards are sorted")
