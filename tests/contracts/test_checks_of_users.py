"""Checks one can trust: of right algorithms none is accused, of wrong ones hardly any is missed."""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

import numpy as np
import pytest
from written_by_users import ARMS, RIGHT, WRONG, Lists, bound

import artreplay as ar
from artreplay.testing import (
    CheckFailed,
    check_completion,
    check_coupling,
    check_irrelevant_data,
    check_journal,
    check_values,
)
from artreplay.testing.outcome import Odds

ALWAYS = (check_coupling, check_journal, check_completion)
MISSED: set[str] = set()  # at most one of the wrong ones may be here


def checks_of(make: Any) -> tuple[Any, ...]:
    return (*ALWAYS, check_values if hasattr(make(), "value") else check_irrelevant_data)


@pytest.mark.parametrize("name", RIGHT)
def test_no_right_algorithm_is_accused(name: str) -> None:
    for check in checks_of(RIGHT[name]):
        check(RIGHT[name], cases=10, seed=1)


@pytest.mark.long
@pytest.mark.parametrize("name", RIGHT)
def test_no_right_algorithm_is_accused_in_many_cases(name: str) -> None:
    for seed in range(5):
        for check in checks_of(RIGHT[name]):
            check(RIGHT[name], cases=400, seed=seed)


SLOW = ("LongMemory", "EveryThirtieth")  # whose counterexamples are long, and take long to shorten


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.long] * (name in SLOW)) for name in WRONG])
def test_wrong_algorithms_are_found_out(name: str) -> None:
    found = []
    for check in checks_of(WRONG[name]):
        try:
            check(WRONG[name])
        except CheckFailed as failure:
            found.append(failure)
            break
    assert bool(found) is (name not in MISSED)


class InSlots(Lists):
    """Neither a dictionary of attributes nor a running minimum."""

    __slots__ = ("count", "index", "total")

    def update(self, arm: int, reward: float) -> None:
        self.count[arm] += 1
        self.total[arm] += reward
        self.index[arm] = bound(self.total[arm], self.count[arm])


class TellsOrigins(InSlots):
    """Another update for rows of the log, and a state of its own."""

    def update_logged(self, arm: int, reward: float, allowance: float) -> None:
        self.update(arm, reward)

    def state(self) -> list[float]:
        return [*self.count, *self.index]


@ar.compiled
class Marked(NamedTuple):
    """A component."""

    count: Any
    total: Any
    index: Any
    n_arms = ARMS

    def propose(self, out):
        out[0] = np.argmax(self.index)
        return 1

    def update(self, arm, reward):
        self.count[arm] += 1
        self.total[arm] += reward
        self.index[arm] = self.total[arm] / self.count[arm] + 0.5 / math.sqrt(self.count[arm])


WRONG_KINDS: dict[str, Any] = {
    "NoMinimum": WRONG["NoMinimum"],
    "InSlots": InSlots,
    "TellsOrigins": TellsOrigins,
    "component": lambda: Marked(np.zeros(ARMS), np.zeros(ARMS), np.ones(ARMS)),
}


@pytest.mark.parametrize("name", WRONG_KINDS)
def test_a_counterexample_can_be_run(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """For every kind of base the program calls names that are there, and shows what differs."""
    for check in (check_coupling, check_journal, check_irrelevant_data, check_completion):
        with pytest.raises(CheckFailed) as found:
            check(WRONG_KINDS[name], rewards=(0, 1))
        exec(found.value.snippet, {"make_base": WRONG_KINDS[name]})
        out = capsys.readouterr().out.rstrip("\n")
        half = len(out) // 2  # a state may take more than a line
        assert out[half] == "\n" or check is check_completion
        assert out[:half] != out[half + 1 :], found.value.snippet
        assert found.value.snippet.splitlines()[0] in str(found.value)


def test_a_failure_says_how_often_it_happens_and_what_to_do() -> None:
    with pytest.raises(CheckFailed) as found:
        check_coupling(WRONG["NoMinimum"])
    odds = found.value.odds
    assert odds is not None
    assert 1 < odds.failures < odds.cases == 60
    assert len(odds.losses or ()) == odds.failures
    assert str(Odds(60, 2, (0.25, -0.25))).endswith("differed there by 0.250 on average, and over all 60 by nothing")
    assert str(Odds(60, 2, (3.0, 0.0))).endswith("and over all 60 was 0.050 higher")
    assert str(Odds(60, 2, None)) == "in 2 of 60 random worlds"
    assert "use ar.FullStart(base, history): it is right for any algorithm" in str(found.value)
    assert "what to do:" in str(found.value)
    declared = type("Declared", (WRONG["NoMinimum"],), {"exact": False})
    with pytest.raises(CheckFailed) as named:
        check_coupling(declared)
    assert [cure[:16] for cure in named.value.advice] == ["use ar.FullStart"]


class CountsUnread:
    """A right rule in which time is the length of the journal: rows of the log count before they are read."""

    reward_range = (0.0, 1.0)
    n_arms = ARMS

    def __init__(self) -> None:
        self.logged, self.played, self.count, self.unread = [0.0] * ARMS, [0.0] * ARMS, [0] * ARMS, 0

    def note_unread(self, rows: int) -> None:
        self.unread = rows

    def value(self, arm: int, round: int, unread: int, fill: float) -> float:
        count = self.count[arm] + unread
        total = self.logged[arm] + unread * fill + self.played[arm]
        time = sum(self.count) + self.unread
        return total / count + 0.5 * math.sqrt(math.log(1 + time) / count) if count else math.inf

    def update(self, arm: int, reward: float) -> None:
        self.count[arm] += 1
        self.played[arm] += reward

    def update_logged(self, arm: int, reward: float, allowance: float) -> None:
        self.count[arm] += 1
        self.logged[arm] += reward


def test_a_rule_that_counts_unread_rows_is_not_accused() -> None:
    for check in (*ALWAYS, check_values):
        check(CountsUnread, cases=40)


class OfTwoRewards(Lists):
    """Takes two rewards, neither of which is 0, .5 or 1."""

    reward_range = (-2.0, 3.0)

    def check_reward(self, reward: float) -> None:
        if reward not in (-2.0, 3.0):
            raise ValueError("only -2 and 3")


class Skewed(OfTwoRewards):
    def check_reward(self, reward: float) -> None:
        assert -2.0 <= reward <= 3.0


@pytest.mark.parametrize(
    ("make", "rewards"),
    [(OfTwoRewards, {-2.0, 3.0}), (Skewed, {-2.0, 0.5, 3.0}), (Lists, {0.0, 0.5, 1.0, 0.1, 0.2, 0.7})],
)
def test_rewards_are_guessed_from_the_range(make: Any, rewards: set[float]) -> None:
    seen: set[float] = set()

    class Notes(make):
        def update(self, arm: int, reward: float) -> None:
            seen.add(reward)
            super().update(arm, reward)

    check_coupling(Notes, cases=20)
    assert seen == rewards


def test_an_error_inside_the_algorithm_says_which_call_it_was() -> None:
    class Stumbles(Lists):
        def update(self, arm: int, reward: float) -> None:
            super().update(arm, reward)
            if self.count[arm] == 3:
                raise LookupError("lost")

    with pytest.raises(LookupError, match="lost") as found:
        check_coupling(Stumbles)
    (note,) = found.value.__notes__
    assert re.fullmatch(r"It was raised inside your algorithm, in .*Stumbles\.update\(arm=\d, reward=[\d.]+\)\.", note)


def test_a_difference_that_no_proposal_shows_is_a_note() -> None:
    summary = check_completion(RIGHT["CountsCalls"], cases=20)
    assert summary.notes
    assert "asked" in summary.notes[0]
    assert "note:" in str(summary)
    assert not check_completion(RIGHT["Nested"], cases=20).notes


def test_the_summary_says_how_long_a_fault_could_hide() -> None:
    summary = check_coupling(RIGHT["Lists"], cases=20, longest=50)
    assert 12 < summary.longest <= 50
    assert f"more than {summary.longest} logged rows could hide" in str(summary)


def test_states_are_compared_to_the_value_that_differs() -> None:
    with pytest.raises(CheckFailed, match=r"states differ in (index|total|count)"):
        check_completion(WRONG["Neighbours"])


def test_replay_that_shows_a_told_reward_at_once_breaks_the_journal() -> None:
    class ShowsAtOnce(ar.ArtificialReplay):
        def show_before(self, units: Any) -> None:
            pass

    check_coupling(RIGHT["Lists"], replay=ShowsAtOnce, cases=40)
    with pytest.raises(CheckFailed):
        check_journal(RIGHT["Lists"], replay=ShowsAtOnce)
