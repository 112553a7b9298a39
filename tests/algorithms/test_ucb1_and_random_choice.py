"""UCB1 with log t, and uniformly random actions."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import hypothesis.strategies as st
import pytest
from budget_kit import examples
from hypothesis import given, settings
from scipy.stats import chisquare

import artreplay as ar


@settings(max_examples=examples(100))
@given(
    st.integers(1, 5).flatmap(
        lambda n: st.tuples(
            st.just(n), st.lists(st.tuples(st.integers(0, n - 1), st.sampled_from([0.0, 0.5, 1.0])), max_size=40)
        )
    )
)
def test_ucb1_is_mean_plus_square_root_of_two_log_t_over_n(run):
    n_arms, samples = run
    base = ar.UCB1(n_arms)
    counts, totals = [0] * n_arms, [0.0] * n_arms
    for shown, (arm, reward) in enumerate(samples, start=1):
        base.update(arm, reward)
        counts[arm] += 1
        totals[arm] += reward
        index = [
            total / count + math.sqrt(2.0 * math.log(shown) / count) if count else math.inf
            for count, total in zip(counts, totals, strict=True)
        ]
        assert base.statistics()[2].tolist() == index
        assert base.propose() == index.index(max(index))


def test_ucb1_tries_every_arm_first_the_lowest_first():
    base = ar.UCB1(4)
    for arm in range(4):
        assert base.propose() == arm
        base.update(arm, 0.0)


def test_an_index_of_ucb1_can_rise():
    base = ar.UCB1(2)
    for arm in (0, 1):
        base.update(arm, 0.0)
    before = base.statistics()[2][0]
    base.update(1, 0.0)
    assert base.statistics()[2][0] > before


@pytest.mark.parametrize(("n_arms", "budget"), [(5, 2), (5, 1), (4, 3), (4, 4), (6, 3)])
def test_every_set_of_arms_is_equally_likely(n_arms, budget):
    base = ar.RandomChoice(n_arms, budget, seed=11)
    counts = Counter()
    for _ in range(4000):
        proposal = base.propose()
        arms = proposal if budget > 1 else [proposal]
        assert len(set(arms)) == len(arms) == budget
        counts[frozenset(arms)] += 1
    sets = [frozenset(some) for some in itertools.combinations(range(n_arms), budget)]
    assert set(counts) == set(sets)
    assert len(sets) == 1 or chisquare([counts[some] for some in sets]).pvalue > 1e-4


def test_one_choice_says_nothing_about_the_next():
    base = ar.RandomChoice(4, seed=5)
    arms = [base.propose() for _ in range(4001)]
    pairs = Counter(itertools.pairwise(arms))
    assert chisquare([pairs[pair] for pair in itertools.product(range(4), repeat=2)]).pvalue > 1e-4


def test_what_it_is_shown_does_not_matter():
    base, other = ar.RandomChoice(4, seed=5), ar.RandomChoice(4, seed=5)
    for step in range(50):
        other.update(step % 4, 1.0)
        assert base.propose() == other.propose()


@pytest.mark.parametrize("budget", [1, 2])
def test_one_unit_is_an_arm_several_are_a_list(budget):
    proposal = ar.RandomChoice(4, budget).propose()
    assert isinstance(proposal, int if budget == 1 else list)


def uneven_ids(seed):
    """Arms so unlike that the best choice is a mixture of two."""
    base = ar.IDS(2, seed=seed)
    for reward in (1.0, 1.0, 1.0, 1.0, 0.0, 0.0):
        base.update(0, reward)
    return base


RANDOMISED = {
    "RandomChoice": lambda seed: ar.RandomChoice(6, seed=seed),
    "Thompson": lambda seed: ar.ThompsonSampling(6, seed=seed),
    "IDS": uneven_ids,
    "RandomAllocation": lambda seed: ar.RandomAllocation(2, (0, 1, 2), 4, 3, 3, seed),
}


def stream(base, size=25):
    """What it proposes, round by round; it learns nothing that tells its arms apart."""
    proposed = []
    for _ in range(size):
        proposed.append(base.propose())
        if isinstance(base, ar.ThompsonSampling):  # whose draws belong to rounds
            base.update(proposed[-1], 0.5)
    return proposed


@pytest.mark.parametrize("make", RANDOMISED.values(), ids=RANDOMISED)
def test_the_same_seed_gives_the_same_stream_and_another_seed_another(make):
    assert stream(make(4)) == stream(make(4))
    assert len({repr(stream(make(seed))) for seed in (0, 1, 2, 2**40, 2**64, 2**64 + 1)}) == 6


@pytest.mark.parametrize("make", RANDOMISED.values(), ids=RANDOMISED)
def test_reseeding_gives_the_stream_of_that_seed(make):
    base = make(0)
    base.reseed(7)
    assert stream(base) == stream(make(7))
    assert stream(make(0)) != stream(make(7))


@pytest.mark.parametrize("make", RANDOMISED.values(), ids=RANDOMISED)
def test_a_copy_goes_on_with_the_same_stream(make):
    base = make(3)
    stream(base, 5)
    twin = base.duplicate()
    assert stream(base) == stream(twin)


def test_algorithms_without_draws_have_nothing_to_reseed():
    for base in (ar.MonUCB(3, 10), ar.TopUCB(3, 2, 10), ar.UCB1(3), ar.LinUCB([[1.0]], 10)):
        before = base.propose()
        base.reseed(9)
        assert base.propose() == before
