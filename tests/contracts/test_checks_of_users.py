"""Checks one can trust: of right algorithms none is accused, of wrong ones hardly any is missed."""

from __future__ import annotations

from typing import Any

import pytest
from written_by_users import RIGHT, WRONG

import artreplay as ar
from artreplay.testing import (
    CheckFailed,
    check_completion,
    check_coupling,
    check_irrelevant_data,
    check_journal,
    check_values,
)

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


def test_a_counterexample_can_be_run(capsys: pytest.CaptureFixture[str]) -> None:
    for check in (check_coupling, check_journal, check_irrelevant_data):
        with pytest.raises(CheckFailed) as found:
            check(WRONG["NoMinimum"])
        exec(found.value.snippet, {"make_base": WRONG["NoMinimum"]})
        first, second = capsys.readouterr().out.split()
        assert first != second, found.value.snippet
        assert found.value.snippet.splitlines()[0] in str(found.value)


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
