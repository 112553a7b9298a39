"""KLUCB: its index against bisections, its levels, and what its horizon counts."""

from __future__ import annotations

import math
import warnings
from itertools import product

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


def test_a_log_longer_than_the_horizon_is_said():
    log = ar.History([0, 1] * 60, [0.0, 1.0] * 60)
    said = "the horizon of KLUCB must count the rounds to come and the rows of the log, but it is 100 and the log alone"
    for make in (ar.ArtificialReplay, ar.FullStart):
        with pytest.warns(UserWarning, match=said) as caught:
            make(ar.KLUCB(2, 100), log)
        assert [warning.filename for warning in caught] == [__file__]
    policy = ar.ArtificialReplay(ar.KLUCB(2, 100), log.rows(range(50)))
    with pytest.warns(UserWarning, match=said):
        policy.extend(log)
    with pytest.warns(UserWarning, match=said), ar.compiling.using("interpreted"):
        ar.simulate(ar.KLUCB(2, 100), ar.environments.KArmed(2), history=log, horizon=2, replications=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ar.ArtificialReplay(ar.KLUCB(2, 120), log)
        ar.ArtificialReplay(ar.KLUCB(2, 100, level="log"), log)
        ar.ArtificialReplay(ar.MonUCB(2, 100), log)
