"""The catalogue holds every line of every panel, at both scales."""

from __future__ import annotations

import pytest

from artreplay.errors import InvalidParameter
from reproduction.catalogue import FULL_SCALE, NETWORKS, SMOKE, Experiment, experiments, padded_weights, scale_of
from reproduction.setting import Setting

NAMES = [
    *("karmed", "top-arms", "thompson-ids", "performance", "imbalanced", "surfaces"),
    *("discretisation", "fixed-vs-adaptive", "domains", "theory"),
]


@pytest.fixture(scope="module")
def full() -> dict[str, Experiment]:
    return {experiment.name: experiment for experiment in experiments(FULL_SCALE)}


def values(experiment: Experiment, name: str) -> set[object]:
    return {setting.get(name) for setting in experiment.settings}


def test_every_experiment_is_there_at_both_scales(full) -> None:
    assert list(full) == NAMES == [experiment.name for experiment in experiments(SMOKE)]
    for large, small in zip(full.values(), experiments(SMOKE), strict=True):
        assert {setting.kind for setting in large.settings} == {setting.kind for setting in small.settings}


def test_all_keys_differ_within_an_experiment_and_between_scales(full) -> None:
    for experiment in full.values():
        assert len({setting.key for setting in experiment.settings}) == len(experiment.settings)
    tiny = {one.key for experiment in experiments(SMOKE) for one in experiment.settings if one.kind == "simulate"}
    assert tiny.isdisjoint(setting.key for experiment in full.values() for setting in experiment.settings)


@pytest.mark.parametrize("name", ["karmed", "top-arms"])
def test_arms_have_logs_of_ten_to_ten_thousand_and_all_policies(full, name: str) -> None:
    assert values(full[name], "history") == {0, 10, 100, 1000, 10_000}
    assert values(full[name], "start") == {"artificial-replay", "full-start", "ignorant"}
    assert "RandomChoice" in values(full[name], "algorithm")
    assert {setting.replications for setting in full[name].settings} == {400}


def test_thompson_and_ids_have_two_logs_and_three_forms(full) -> None:
    assert values(full["thompson-ids"], "log") == {"uniform", "random", None}
    forms = {(setting["algorithm"], setting.get("options")) for setting in full["thompson-ids"].settings}
    assert len(forms) == 4  # Thompson sampling has one


def test_allocations_have_domains_cells_noises_and_the_binding_setting(full) -> None:
    experiment = full["performance"]
    assert values(experiment, "environment") == {"piecewise linear", "quadratic", "patrol", "detection"}
    algorithms = {"GridAllocation", "TreeAllocation", "Regressor", "RandomAllocation", "published_network", None}
    assert values(experiment, "algorithm") == algorithms
    assert values(experiment, "noise") == {"bernoulli", "none"}
    assert values(experiment, "history") == {0, 300, 600, 3000}
    assert values(full["imbalanced"], "bad_share") == {None, 0.1, 0.5, 0.7, 0.9}


def test_a_rule_of_ours_plays_on_the_domains_of_the_paper(full) -> None:
    assert values(full["surfaces"], "environment") == {"piecewise linear", "quadratic"}
    assert values(full["surfaces"], "algorithm") == {"CellRegression"}
    assert values(full["surfaces"], "history") == {0, 300, 3000}


def test_what_needs_something_says_so(full) -> None:
    for experiment in full.values():
        for setting in experiment.settings:
            learnt = setting.get("algorithm") in NETWORKS or setting.get("environment") == "patrol"
            assert setting.needs == ("scikit-learn" if learnt else None)


def test_padding_reaches_ten_million(full) -> None:
    assert max(setting.get("history") or 0 for setting in full["theory"].settings) == 10**7
    for rows in FULL_SCALE.paddings:
        assert sum(padded_weights(rows)) == pytest.approx(1.0)
        assert sum(padded_weights(rows)[1:]) * rows == pytest.approx(900)


def test_scales() -> None:
    assert scale_of(smoke=False, replications=None, seed=0) == FULL_SCALE
    changed = scale_of(smoke=True, replications=7, seed=3)
    settings: list[Setting] = [one for experiment in experiments(changed, ["karmed"]) for one in experiment.settings]
    assert {setting.replications for setting in settings} == {7}
    assert {setting.seed for setting in settings} == {3}


def test_an_unknown_experiment_is_refused() -> None:
    with pytest.raises(InvalidParameter, match=r"an experiment must be one of karmed, top-arms, .*, got 'figure 1'"):
        experiments(FULL_SCALE, ["figure 1"])
