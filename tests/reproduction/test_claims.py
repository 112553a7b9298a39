"""Verdicts follow from results: each can come out either way."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from reproduction.catalogue import CELLS, FINEST, FULL_SCALE, LEAVES, Experiment, Scale, experiments
from reproduction.caveats import where_history_does_not_help, where_replay_does_not_win, where_the_regressor_wins
from reproduction.claims import claims, half_of_samples
from reproduction.judging import Claim, judged
from reproduction.numbers import Number, numbers
from reproduction.result_store import Result, Store
from reproduction.results import Estimate, Results, difference, larger, share_found, shown, slower
from reproduction.setting import FULL, REBUILT, REPLAY, Setting


def result(regret: float, digest: float = 1.0, used: float = 5.0, cells: float = 4.0, spent: float = 2.0) -> Result:
    """A made-up result of three replications, around these values."""
    around = np.array([[-0.1], [0.0], [0.1]])
    one, two = np.array([1000.0]), np.array([1.0, 1000.0])
    return Result(
        {
            "regret": (two, np.hstack([around * 0.0, regret + around])),
            "used": (two, np.hstack([used / 2 + around, used + around])),
            "digest": (one, np.full((3, 1), digest)),
            "cells": (one, cells + around),
            "spent": (one, spent + around),
        },
        seconds=1.0,
    )


def told(folder: Path, name: str, made, learnt: bool = False) -> tuple[list[Claim], list[Number], Results]:
    """Claims and numbers about made-up results of an experiment, at full scale; with those that are trained, or not."""
    (experiment,) = experiments(FULL_SCALE, [name])
    store = Store(folder)
    for setting in experiment.settings:
        if setting.kind in ("simulate", REBUILT) and (setting.needs is None or learnt):
            store.write(setting, made(setting))
    results = Results(FULL_SCALE, [experiment], store)
    return claims(results), numbers(results), results


def verdict(found: list[Claim], words: str) -> str:
    """The verdict of the claims with these words, which must be the same for all."""
    (one,) = {claim.verdict for claim in found if words in claim.text}
    return one


@pytest.mark.parametrize("equal", [True, False])
def test_equality_is_about_actions_not_regret(tmp_path: Path, equal: bool) -> None:
    def made(setting: Setting) -> Result:
        return result(30.0, digest=1.0 if equal or setting["start"] != FULL else 2.0)

    found, found_numbers, _ = told(tmp_path, "karmed", made)
    expected = "agrees" if equal else "differs"
    assert verdict(found, "has the regret of Full Start") == expected
    shares = [number for number in found_numbers if "actions of full start" in number.name]
    assert {number.verdict for number in shares} == {expected}
    assert {number.ours.mean for number in shares} == {100.0 if equal else 0.0}


@pytest.mark.parametrize(("share", "expected"), [(0.4, "agrees"), (0.6, "differs")])
def test_half_of_the_log(tmp_path: Path, share: float, expected: str) -> None:
    found, _, _ = told(tmp_path, "top-arms", lambda setting: result(30.0, used=share * max(setting["history"], 1)))
    assert verdict(found, "less than half") == expected


@pytest.mark.parametrize(("unused", "expected"), [(0.582, "agrees"), (0.8, "slip")])
def test_the_irrelevant_share(tmp_path: Path, unused: float, expected: str) -> None:
    found, _, _ = told(tmp_path, "karmed", lambda setting: result(30.0, used=(1 - unused) * max(setting["history"], 1)))
    assert verdict(found, "58.2 %") == expected


@pytest.mark.parametrize(("regret", "expected"), [(92.0, "agrees"), (20.0, "differs")])
def test_a_number_of_the_authors_code(tmp_path: Path, regret: float, expected: str) -> None:
    _, found, _ = told(tmp_path, "karmed", lambda _: result(regret))
    (number,) = [number for number in found if number.name == "regret, full start, H=100"]
    assert (number.verdict, number.authors) == (expected, (92, 8))
    assert (number.reason == "") == (expected == "agrees")
    assert number.found == pytest.approx(4.34 * 8.0, rel=0.01)


def test_an_error_as_large_as_the_number_cannot_tell(tmp_path: Path) -> None:
    """2.9 ± 1.0 would be met by everything up to 6."""
    _, found, _ = told(tmp_path, "karmed", lambda _: result(2.9))
    (number,) = [number for number in found if number.name == "regret, full start, H=10,000"]
    assert number.verdict == "cannot tell"


@pytest.mark.parametrize(
    ("means", "expected"),
    [((4.0, 5.0), "agrees"), ((4.0, 2.0), "cannot tell"), ((4.0, -2.0), "cannot tell"), ((4.0, -4.0), "differs")],
)
def test_a_claim_about_several_means(means: tuple[float, ...], expected: str) -> None:
    margins = {str(mean): Estimate(mean, 1.0, 60) for mean in means}
    claim = judged("karmed", "", margins, "")
    assert (claim.verdict, claim.found) == (expected, "3.8 in regret")
    assert judged("karmed", "", {"": Estimate(0.0, 0.0, 60)}, "").verdict == "differs"


def test_what_would_be_found_is_found_four_times_in_five() -> None:
    draws = np.random.default_rng(0)
    found = Estimate(0.0, 1.0, 60).found(0.0)
    assert (draws.normal(found, 1.0, 100_000) > 3.5).mean() == pytest.approx(0.8, abs=0.005)
    assert (draws.random((10_000, 60)) < share_found(60)).any(axis=1).mean() == pytest.approx(0.8, abs=0.02)


def test_explosions_and_where_replay_does_not_win(tmp_path: Path) -> None:
    def exploding(setting: Setting) -> Result:
        return result(100.0 if setting["start"] == FULL else 5.0)

    def losing(setting: Setting) -> Result:
        return result(5.0 if setting["start"] == FULL else 6.0)

    found, _, results = told(tmp_path / "one", "thompson-ids", exploding)
    assert verdict(found, "explodes") == verdict(found, "too sure of a bad arm") == "agrees"
    assert where_replay_does_not_win(results) == []
    assert len(where_history_does_not_help(results) or []) == 16
    found, _, results = told(tmp_path / "two", "thompson-ids", losing)
    assert verdict(found, "explodes") == "differs"
    assert verdict(found, "does as well as") == "differs"
    assert len(where_replay_does_not_win(results)) == 16


@pytest.mark.parametrize("helps", [True, False])
def test_where_history_does_not_help(tmp_path: Path, helps: bool) -> None:
    def made(setting: Setting) -> Result:
        return result((50.0 if helps else 100.2) if setting["start"] in (FULL, REPLAY) else 100.0)

    found, _, results = told(tmp_path, "performance", made)
    assert verdict(found, "reduce regret considerably") == ("agrees" if helps else "differs")
    assert len(where_history_does_not_help(results) or []) == (0 if helps else 28)


def test_each_rule_is_judged_by_itself(tmp_path: Path) -> None:
    def made(setting: Setting) -> Result:
        ours = setting.get("algorithm") == "TreeAllocation" and setting.get("options") is None
        return result(100.0 if ours or setting["start"] == "ignorant" else 50.0)

    found, _, _ = told(tmp_path, "performance", made)
    about = [claim for claim in found if "reduce regret considerably" in claim.text]
    assert len(about) == len(CELLS) + 1  # and the authors' code
    (against,) = [claim.text for claim in about if claim.verdict == "differs"]
    assert against.startswith("(Ours, not the paper's.)")
    assert against.endswith(f"{FINEST}.")
    assert verdict(found, f"{LEAVES}.") == "agrees"


@pytest.mark.parametrize(("regret", "expected"), [(992.0, "agrees"), (992.4, "agrees"), (995.0, "differs")])
def test_numbers_of_one_run(tmp_path: Path, regret: float, expected: str) -> None:
    _, found, _ = told(tmp_path, "performance", lambda _: result(regret))
    (number,) = [one for one in found if "rebuilt, fixed cells, quadratic, ignorant" in one.name]
    assert (number.verdict, number.authors) == (expected, (992, pytest.approx(0.1)))


@pytest.mark.parametrize(("greedy", "expected"), [(10.0, "agrees"), (30.0, "differs")])
def test_greedy_choice(tmp_path: Path, greedy: float, expected: str) -> None:
    def made(setting: Setting) -> Result:
        return result(greedy if ("solver", "greedy") in setting.get("options", ()) else 10.0)

    found, _, _ = told(tmp_path, "performance", made)
    assert verdict(found, "greedily") == expected


@pytest.mark.parametrize("fewer", [True, False])
def test_regions_and_use_of_imbalanced_logs(tmp_path: Path, fewer: bool) -> None:
    def made(setting: Setting) -> Result:
        share = setting.get("bad_share", 0.0)
        used = 1000 * (1 - share) if fewer else 1000 * share
        return result(60.0, used=used, cells=100.0 if fewer == (setting["start"] == REPLAY) else 500.0)

    found, found_numbers, _ = told(tmp_path, "imbalanced", made)
    expected = "agrees" if fewer else "differs"
    assert verdict(found, "fewer regions") == verdict(found, "the less of it is used") == expected
    compared = [number for number in found_numbers if number.authors is not None]
    assert len(compared) == 24
    assert all("rebuilt" in number.name for number in compared)
    leaves = {number.name: number.authors[0] for number in compared if "regions" in number.name and number.authors}
    assert leaves["regions, full start, the authors' code rebuilt, bad share 0.1"] == 600


def test_half_of_the_samples() -> None:
    cells = np.array([[0, 0, 0.5, 1, 1, 0, 1], [0.5, 0, 1, 0.5, 1, 0, 1], [0.5, 0.5, 1, 1, 1, 0, 1]])
    samples = np.array([[0.6, 0.6, 1, 0]] * 3 + [[0.1, 0.1, 1, 0]])
    flat = {name: (np.arange(rows.size), rows.reshape(1, -1)) for name, rows in (("cell", cells), ("sample", samples))}
    assert half_of_samples(Result(flat, 0.0)) == pytest.approx(0.25)


def test_a_log_that_helps_a_little_does_not_help_considerably(tmp_path: Path) -> None:
    found, _, results = told(tmp_path, "performance", lambda one: result(100.0 if one["start"] == "ignorant" else 97.0))
    assert verdict(found, "reduce regret considerably") == "differs"
    assert where_history_does_not_help(results) == []


def test_the_rule_of_the_paper_can_lose(tmp_path: Path) -> None:
    def made(setting: Setting) -> Result:
        papers = ("rule", "paper") in setting.get("options", ())
        return result(60.0 if papers and setting["start"] == REPLAY else 50.0)

    _, _, results = told(tmp_path, "theory", made)
    assert [line.split(":")[0] for line in where_replay_does_not_win(results) or []] == ["allocation rule paper"]


@pytest.mark.parametrize(("regret", "wins"), [(20.0, 36), (50.0, 0), (80.0, 0)])
def test_where_the_regressor_wins(tmp_path: Path, regret: float, wins: int) -> None:
    """Six domains with their noise, three kinds of cells, two sizes of log. The claim is about the authors' network."""

    def made(setting: Setting) -> Result:
        own = {"Regressor": regret, "published_network": 60.0}
        return result(own.get(setting.get("algorithm", ""), 50.0))

    found, _, results = told(tmp_path, "performance", made, learnt=True)
    assert len(where_the_regressor_wins(results) or []) == wins
    assert verdict(found, "does poorly") == "agrees"
    assert "synthetic park" in next(claim.text for claim in found if "performs as Full Start" in claim.text)


def test_a_log_made_to_be_uneven_tests_nothing(tmp_path: Path) -> None:
    (experiment,) = experiments(FULL_SCALE, ["discretisation"])
    store = Store(tmp_path)
    cells = np.array([[0.0, 0.0, 0.5, 1.0, 1.0, 0.0, 1.0], [0.5, 0.0, 1.0, 1.0, 1.0, 0.0, 1.0]])
    samples = np.array([[0.6, 0.6, 1.0, 0.0]])
    flat = {name: (np.arange(rows.size), rows.reshape(1, -1)) for name, rows in (("cell", cells), ("sample", samples))}
    for setting in experiment.settings:
        store.write(setting, Result(flat, 0.0))
    (claim,) = claims(Results(FULL_SCALE, [experiment], store))
    assert claim.verdict == "not tested"
    assert "synthetic park" in claim.reason


def test_every_number_says_which_stored_settings_it_comes_from(tmp_path: Path) -> None:
    for name in ("karmed", "thompson-ids", "performance", "imbalanced", "theory"):
        _, found, results = told(tmp_path, name, lambda _: result(30.0), learnt=True)
        keys = {setting.key for setting in results.settings()}
        assert found
        assert all(number.settings and set(number.settings) <= keys for number in found), name


def test_where_nothing_was_compared_nothing_is_said(tmp_path: Path) -> None:
    _, _, results = told(tmp_path, "domains", lambda _: pytest.fail("nothing is simulated here"))
    assert where_history_does_not_help(results) is None
    assert where_replay_does_not_win(results) is None


def test_slower_is_beyond_two_standard_errors() -> None:
    quick, same, slow = (Result({}, 0.0, timings) for timings in ((1.0, 1.1, 0.9), (1.05, 1.0, 1.1), (2.0, 2.1, 1.9)))
    assert slower(slow, quick)
    assert not slower(same, quick)
    assert not slower(quick, slow)
    assert not slower(Result({}, 0.0), quick)


def test_a_small_run_is_compared_with_nothing(tmp_path: Path) -> None:
    scale = Scale(horizon=10, sizes=(1, 2, 100, 1000))
    (experiment,) = experiments(scale, ["karmed"])
    store = Store(tmp_path)
    for setting in experiment.settings:
        store.write(setting, result(30.0))
    found = numbers(Results(scale, [Experiment("karmed", experiment.settings)], store))
    assert found
    assert all(number.verdict is number.paper is number.authors is None for number in found)


def test_estimates() -> None:
    assert Estimate(10.0, 1.0, 60).agrees(14.0, 1.0)
    assert not Estimate(10.0, 1.0, 60).agrees(14.0, None)
    assert Estimate(10.0, math.nan, 1).agrees(10.0, None)
    assert shown(Estimate(-3.25, 0.5, 4)) == "−3.25 ± 0.50"
    assert shown(Estimate(1234.5, math.nan, 1)) == "1,234"
    assert shown(Estimate(64.0, math.nan, 1)) == "64"
    assert shown(Estimate(0.125, math.nan, 1)) == "0.12"
    assert larger(result(2.0), result(1.0))
    assert not larger(result(1.0), result(1.0))
    assert difference(result(2.0), result(1.0)).mean == pytest.approx(1.0)
