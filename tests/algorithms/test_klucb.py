"""KLUCB: its index against bisections, its levels, and what its horizon counts."""

from __future__ import annotations

import math
import warnings
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import artreplay as ar
from artreplay.algorithms.bounds import FIXED, lowered_to


def kl(p, q):
    first = p * math.log(p / q) if p > 0 else 0.0
    return first + ((1 - p) * math.log((1 - p) / (1 - q)) if q < 1 else math.inf)


def bisected(mean, allowed):
    """The largest q ≥ m with kl(m, q) ≤ `allowed`, for m < 1, by 60 halvings."""
    low, high = mean, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if kl(mean, middle) <= allowed else (low, middle)
    return high


COUNTS = [1, 2, 3, 5, 10, 33, 100, 999, 10_000, 1_000_000]
LEVELS = [1e-9, 1e-3, 0.1, 0.7, 2.0, 9.2, 14.0, 40.0]


@pytest.mark.parametrize("n", COUNTS)
def test_the_bound_is_what_sixty_bisections_find(n):
    means = sorted({round(n * share) / n for share in (0, 1e-6, 0.002, 0.1, 0.5, 0.77, 0.98, 0.999_999)})
    for mean, level in product(means, LEVELS):
        if mean < 1.0:
            expected = bisected(mean, level / n)
            assert lowered_to(mean, level / n, 1.0) == pytest.approx(expected, abs=1e-9)
            for index in (mean, 0.5 * (mean + expected), expected, 0.5 * (1.0 + expected), 0.999_999):
                assert lowered_to(mean, level / n, index) == pytest.approx(min(index, expected), abs=1e-9)


def test_without_a_level_the_bound_is_the_mean_and_a_mean_of_one_stays():
    assert lowered_to(0.3, 0.0, 1.0) == 0.3
    assert lowered_to(1.0, 0.5, 1.0) == 1.0
    assert lowered_to(0.3, 1e-40, 1.0) == pytest.approx(0.3)


def indices(base, rewards):
    """The index of the first arm after each reward."""
    found = []
    for reward in rewards:
        base.update(0, reward)
        found.append(float(base.component.index.value[0]))
    return found


def expected_indices(rewards, level):
    """Running minima of the bound at g(n)."""
    found, index, total = [], 1.0, 0.0
    for n, reward in enumerate(rewards, start=1):
        total += reward
        mean = total / n
        index = min(index, 1.0 if mean == 1.0 else bisected(mean, level(n) / n))
        found.append(index)
    return found


def plus_plus(n, horizon=300, arms=4):
    ratio = horizon / (arms * n)
    log = max(0.0, math.log(ratio))
    return max(0.0, math.log(ratio * (log * log + 1)))


@pytest.mark.parametrize(
    ("level", "height"),
    [("++", plus_plus), ("log", lambda n: math.log(300)), ("moss", lambda n: max(0.0, math.log(300 / (4 * n))))],
)
@settings(max_examples=20)
@given(rewards=st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=120))
def test_the_index_is_the_running_minimum_at_its_level(level, height, rewards):
    found = indices(ar.KLUCB(4, 300, level=level), rewards)
    assert found == pytest.approx(expected_indices(rewards, height), abs=1e-9)


@pytest.mark.parametrize("level", ["++", "log", "moss"])
@pytest.mark.parametrize("horizon", [3, 30, 3000])
def test_it_never_explores_more_than_the_paper_s_index(level, horizon):
    for rewards in ([0.0] * 30, [0.0, 1.0] * 20, [1.0, 1.0, 1.0, 0.0] * 10, [0.5] * 30):
        sharp, wide = indices(ar.KLUCB(3, horizon, level=level), rewards), indices(ar.MonUCB(3, horizon), rewards)
        assert all(one <= other + 1e-12 for one, other in zip(sharp, wide, strict=True))


def test_rewards_of_another_range_are_scaled():
    plain, scaled = ar.KLUCB(2, 50), ar.KLUCB(2, 50, reward_range=(-1, 3))
    for reward in (0.0, 1.0, 0.25, 0.5):
        plain.update(0, reward)
        scaled.update(0, 4 * reward - 1)
    assert plain.component.index.value.tolist() == scaled.component.index.value.tolist()


def test_a_choice_among_too_many_cells_has_the_level_of_the_whole():
    def level_of(base):
        bound = base.algorithm.index.bound if hasattr(base, "algorithm") else base.component.index.bound
        return getattr(bound, "bound", bound).kind

    effort = {"levels": (1, 2), "budget": 3, "max_units": 2, "bonus": ar.bonus.kl()}
    assert level_of(ar.KLUCB(10, 100)) != FIXED
    assert level_of(ar.KLUCB(10, 99)) == FIXED
    assert level_of(ar.TopUCB(10, 2, 100, bonus=ar.bonus.kl("moss"))) != FIXED
    assert level_of(ar.GridUCB(1, 100, 10, bonus=ar.bonus.kl())) != FIXED
    assert level_of(ar.GridUCB(1, 100, 11, bonus=ar.bonus.kl())) == FIXED
    assert level_of(ar.GridAllocation(1, horizon=60, cells_per_side=3, **effort)) != FIXED
    assert level_of(ar.GridAllocation(1, horizon=60, cells_per_side=4, **effort)) == FIXED
    assert level_of(ar.TreeUCB(1, 10_000, bonus=ar.bonus.kl())) == FIXED
    assert level_of(ar.TreeAllocation(1, horizon=10_000, epsilon=0.25, **effort)) == FIXED


def test_another_level_is_refused():
    for make in (lambda: ar.KLUCB(3, 100, level="loglog"), lambda: ar.bonus.kl(2.0)):
        with pytest.raises(ar.errors.InvalidParameter, match=r'level must be "\+\+", "log" or "moss", got'):
            make()


BY_LOG = [
    lambda: ar.KLUCB(3, 60),
    lambda: ar.KLUCB(3, 60, level="log"),
    lambda: ar.TopUCB(3, 2, 60, bonus=ar.bonus.kl("moss")),
    lambda: ar.GridUCB(1, 60, 3, bonus=ar.bonus.kl()),
    lambda: ar.TreeUCB(1, 60, epsilon=0.25, bonus=ar.bonus.kl()),
    lambda: ar.GridAllocation(1, (1, 2), 3, 2, horizon=60, cells_per_side=2, bonus=ar.bonus.kl()),
    lambda: ar.BayesUCB(3, 60, power=5),
]


def scalars(base):
    component = base.component.rule if hasattr(base.component, "forget") else base.component
    return ar.compiling.scalars_of(component)


def with_horizon(base, horizon):
    return type(base)(**(base.parameters() | {"horizon": horizon}))


@pytest.mark.parametrize("make", BY_LOG)
def test_the_rows_a_policy_is_made_with_are_added_to_the_horizon(make, tmp_path):
    base = make()
    units = [[0.1], [0.6], [0.9]] * 30 if isinstance(base, ar.algorithms.PointAlgorithm) else [0, 1, 2] * 30
    levels = [1.0] * 90 if getattr(base, "levels", None) else None
    log = ar.History(units, [0.0, 1.0, 0.5] * 30, levels=levels)
    first = log.rows(range(40))
    longer = scalars(with_horizon(base, 100))
    assert scalars(base) == scalars(ar.Ignorant(base).base) == scalars(with_horizon(base, 60)) != longer
    for start in (ar.ArtificialReplay, ar.FullStart):
        policy = start(base, first)
        policy.ask()
        assert scalars(policy.base) == longer
        policy.save(tmp_path / "policy")
        policy.extend(log)
        again = ar.load(tmp_path / "policy", log)
        assert scalars(policy.base) == scalars(again.base) == longer
        assert policy.ask() == again.ask()
        assert (policy.base.horizon, again.base.horizon) == (60, 60)
    assert scalars(base) == scalars(with_horizon(base, 60))


def test_skipped_rows_are_not_counted_and_totals_count_samples():
    log = ar.History([0, 1, 5, 5] * 10, [0.0, 1.0, 0.0, 0.0] * 10)
    skipping = ar.ArtificialReplay(ar.KLUCB(2, 80), log, unknown="skip")
    totals = ar.ArtificialReplay(ar.KLUCB(2, 80), ar.Totals([0, 1], [5, 15], [1, 2]))
    assert scalars(skipping.base) == scalars(totals.base) == scalars(ar.KLUCB(2, 100))


def test_the_rules_of_the_paper_do_not_count_the_log():
    log = ar.History([0, 1] * 60, [0.0, 1.0] * 60)
    for base in (ar.MonUCB(2, 100), ar.PsiUCB(2, 100), ar.TopUCB(2, 1, 100), ar.BayesUCB(2, 100)):
        assert scalars(ar.ArtificialReplay(base, log).base) == scalars(base)


@pytest.mark.parametrize("start", ["artificial-replay", "full-start", "ignorant"])
def test_a_simulation_adds_the_rows_of_a_log(start):
    env, setting = ar.environments.KArmed(4), {"start": start, "horizon": 40, "replications": 3}
    found = ar.simulate(ar.KLUCB(4, 60), env, history=50, **setting)
    added = 0 if start == "ignorant" else 50
    base = ar.KLUCB(4, 60 + added)
    base.log_rows = 0  # nothing is counted any more
    assert (found.actions == ar.simulate(base, env, history=50, **setting).actions).all()


@pytest.mark.parametrize(
    ("base", "rows", "said"),
    [
        (ar.KLUCB(80, 500), 10_000, "horizon is 500, far fewer than the 10,000 rows of the log. KLUCB stops exploring "
         "an arm once it has 132 samples, rows of the log included."),
        (ar.KLUCB(80, 500), 400, "horizon is 500, fewer than 10 rounds for each of 80 arms. KLUCB stops exploring an "
         "arm once it has 12 samples"),
        (ar.KLUCB(80, 500), 0, "horizon is 500, fewer than 10 rounds for each of 80 arms. KLUCB explores more than "
         'usual, as with level="log".'),
        (ar.TopUCB(2, 1, 20, bonus=ar.bonus.kl()), 202, "horizon is 20, far fewer than the 202 rows of the log."),
        (ar.KLUCB(80, 800), 8_000, None),
        (ar.KLUCB(80, 500, level="log"), 10_000, None),
        (ar.MonUCB(80, 500), 10_000, None),
    ],
)  # fmt: skip
def test_a_horizon_that_is_too_short_says_what_it_does(base, rows, said):
    log = ar.History(np.arange(rows) % base.n_arms, np.ones(rows))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for make in (ar.ArtificialReplay, ar.FullStart):
            make(base, log)
        ar.simulate(base, ar.environments.TopArms(base.n_arms, base.width), history=log, horizon=2, replications=1)
    assert [str(warning.message).startswith(said or "") for warning in caught] == [True] * (3 if said else 0)
    assert {warning.filename for warning in caught} <= {__file__}


def test_a_log_that_grows_beyond_a_horizon_says_so_once():
    log = ar.History([0, 1] * 400, [0.0, 1.0] * 400)
    policy = ar.ArtificialReplay(ar.KLUCB(2, 20), log.rows(range(50)))
    for rows, many in ((200, 0), (201, 1), (800, 0)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            policy.extend(log.rows(range(rows)))
        assert len(caught) == many
