"""The finite-arm numbers of the authors' code, run again (60 seeds), against 400 replications of ours with seed 0.

They agree when |ours − theirs| ≤ 3.5 standard errors of the difference; the reproduction works that out itself. Where
their errors are so large that a difference of half of the number could be missed, it cannot tell.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from reproduction import comparisons, published
from reproduction.catalogue import FULL_SCALE, Experiment, experiments
from reproduction.claims import claims
from reproduction.numbers import Number, numbers
from reproduction.result_store import Store
from reproduction.results import Results, same_actions
from reproduction.runner import run
from reproduction.setting import Setting

pytestmark = [pytest.mark.xdist_group("golden arms"), pytest.mark.as_users_run]


def computed(folder: Path, name: str, wanted) -> Results:
    """The results of the settings of an experiment that are wanted, at full scale."""
    (experiment,) = experiments(FULL_SCALE, [name])
    chosen = Experiment(name, tuple(setting for setting in experiment.settings if wanted(setting)))
    store = Store(folder)
    run(chosen.settings, store, jobs=1)
    return Results(FULL_SCALE, [chosen], store)


def compared(results: Results) -> list[Number]:
    return [number for number in numbers(results) if number.authors is not None]


def check_that_none_differs(found: list[Number]) -> None:
    assert [(number.name, number.ours, number.authors) for number in found if number.verdict == "differs"] == []


@pytest.mark.parametrize(("name", "budget"), [("karmed", 1), pytest.param("top-arms", 3, marks=pytest.mark.long)])
def test_monotone_ucb(tmp_path: Path, name: str, budget: int) -> None:
    results = computed(tmp_path, name, lambda _: True)
    found = compared(results)
    assert len(found) == sum(len(told) for (arms, _), told in published.ARMS.items() if arms == budget)
    check_that_none_differs(found)
    assert sum(number.verdict == "cannot tell" for number in found) < len(found) / 2
    assert {number.ours.replications for number in found} == {400}
    for rows in FULL_SCALE.sizes:
        pair = comparisons.over_arms(results, name, rows).pair()
        assert pair is not None
        assert same_actions(*pair) == 1.0  # action by action, in all replications


def test_the_paper_slips_where_it_is_known_to(tmp_path: Path) -> None:
    """117 for 177, and 58.2 % from the wrong figure: both are told, neither is met."""
    results = computed(tmp_path, "karmed", lambda setting: setting["history"] in (1000, 10_000))
    printed = {number.name: number for number in compared(results) if number.paper is not None}
    assert {name: (number.paper, number.verdict) for name, number in printed.items()} == {
        "used before the first online action, H=1,000": (117, "slip"),
        "used by T, H=1,000": (396, "agrees"),
        "unused %, H=10,000": (58.2, "slip"),
    }
    verdicts = {claim.text: claim.verdict for claim in claims(results)}
    assert verdicts["Of 10,000 logged samples, 58.2 % are irrelevant."] == "slip"


@pytest.mark.long
def test_thompson_sampling(tmp_path: Path) -> None:
    results = computed(tmp_path, "thompson-ids", lambda one: one["algorithm"] == "PlainThompson")
    found = compared(results)
    assert len(found) == 5
    check_that_none_differs(found)


@pytest.mark.long
def test_published_ids_with_and_without_its_fallback(tmp_path: Path) -> None:
    """The explosion of Full Start in the paper's figure comes from one line: without it, it is not there."""

    def wanted(setting: Setting) -> bool:
        return setting["algorithm"] == "PublishedIDS" and setting.replications == 400

    results = computed(tmp_path, "thompson-ids", wanted)
    found = compared(results)
    assert len(found) == 5
    check_that_none_differs(found)
    exploding, quiet = (
        comparisons.randomised(results, name, "uniform", 1000).full
        for name in ("IDS published", "IDS without fallback")
    )
    assert exploding is not None
    assert quiet is not None
    assert exploding.at_end("regret").mean() > 20 * quiet.at_end("regret").mean()


@pytest.mark.long
def test_batch_full_start_differs_in_a_tenth_of_the_runs_for_one_arm_and_in_most_for_three(tmp_path: Path) -> None:
    """With bonus √(2 log T/n), K=10, H=1,000: exactness is never claimed against batch loading."""

    def wanted(setting: Setting) -> bool:
        plain = setting.get("options") is None and setting.get("log") is None
        return setting.kind == "simulate" and setting["environment"] == "arms" and plain

    results = computed(tmp_path, "theory", wanted)
    one, three = (comparisons.batched(results, budget, {}) for budget in (1, 3))
    assert one is not None
    assert three is not None
    assert 0.04 < 1.0 - same_actions(*one) < 0.2
    assert 1.0 - same_actions(*three) > 0.5
