"""Random draws: known answers, the same at both speeds, the right distributions, nothing shared between streams."""

from __future__ import annotations

import itertools
import math
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import numpy as np
import pytest
import scipy.stats
from hypothesis import example, given, settings
from hypothesis import strategies as st

import artreplay as ar
from artreplay.compiling import Loop, state_of, using
from artreplay.errors import InvalidParameter
from artreplay.parameters import checked_seed
from artreplay.streams import (
    below,
    beta,
    fold,
    fold_each,
    normal,
    philox,
    uniform,
    uniforms,
)

keys = st.integers(0, 2**64 - 1)
numbers = st.integers(0, 2**63 - 1)
units = st.integers(0, 2**31 - 1)
purposes = st.integers(0, 255)
shapes = st.one_of(
    st.just(1.0),
    st.floats(1e-300, 1e-3),
    st.floats(1e-3, 1.0),
    st.floats(1.0, 100.0),
    st.floats(100.0, 1e15),
)


@Loop
def fill_philox(counter, key, out):
    out[0], out[1] = philox(counter[0], counter[1], counter[2], counter[3], key[0], key[1])
    return 0


@Loop
def fill_uniforms(key, purpose, unit, first, out):
    for j in range(len(out)):
        out[j] = uniform(key[0], purpose, unit, first + j)
    return 0


@Loop
def fill_below(key, purpose, unit, first, n, out):
    for j in range(len(out)):
        out[j] = below(key[0], purpose, unit, first + j, n)
    return 0


@Loop
def fill_normal(key, purpose, unit, first, mean, deviation, low, high, out):
    for j in range(len(out)):
        out[j] = normal(key[0], purpose, unit, first + j, mean, deviation, low, high)
    return 0


@Loop
def fill_beta(key, purpose, unit, first, a, b, out):
    for j in range(len(out)):
        out[j] = beta(key[0], purpose, unit, first + j, a, b)
    return 0


def word(key: int) -> np.ndarray:
    return np.array([key], np.uint64)


def both_speeds(loop, *arguments, size: int, dtype: type = np.float64) -> tuple[np.ndarray, np.ndarray]:
    fast, slow = np.empty(size, dtype), np.empty(size, dtype)
    with using("compiled"):
        loop(*arguments, fast)
    loop.interpreted(*arguments, slow)
    return fast, slow


def drawn(loop, *arguments, size: int) -> np.ndarray:
    out = np.empty(size)
    with using("compiled"):
        loop(*arguments, out)
    return out


# -- the generator --------------------------------------------------------------------------------------------

KNOWN = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
]


def words(text: str) -> np.ndarray:
    return np.array([int(part, 16) for part in text.split()], np.uint64)


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN)
def test_philox_gives_the_published_answers_at_both_speeds(counter, key, answer):
    high_0, low_0, high_1, low_1 = words(answer).tolist()
    expected = [(high_0 << 32) | low_0, (high_1 << 32) | low_1]
    fast, slow = both_speeds(fill_philox, words(counter), words(key), size=2, dtype=np.uint64)
    assert fast.tolist() == expected
    assert slow.tolist() == expected


# -- the same at both speeds ----------------------------------------------------------------------------------


@given(key=keys, purpose=purposes, unit=units, first=st.integers(0, 2**63 - 100))
@example(key=2**64 - 1, purpose=255, unit=2**31 - 1, first=2**63 - 100)
@settings(max_examples=60)
def test_uniform_draws_are_the_same_at_both_speeds(key, purpose, unit, first):
    fast, slow = both_speeds(fill_uniforms, word(key), purpose, unit, first, size=20)
    assert fast.tobytes() == slow.tobytes()
    assert ((fast > 0.0) & (fast < 1.0)).all()


@given(key=keys, unit=units, first=numbers.filter(lambda n: n < 2**62), n=st.integers(1, 2**31))
@settings(max_examples=40)
def test_integers_below_n_are_the_same_at_both_speeds_and_below_n(key, unit, first, n):
    fast, slow = both_speeds(fill_below, word(key), 3, unit, first, n, size=20, dtype=np.int64)
    assert fast.tolist() == slow.tolist()
    assert fast.min() >= 0
    assert fast.max() < n


@given(
    key=keys,
    unit=units,
    mean=st.floats(-3.0, 3.0),
    deviation=st.floats(1e-6, 10.0),
    reach=st.floats(0.5, 50.0),
)
@settings(max_examples=60)
def test_normal_draws_are_the_same_at_both_speeds_and_inside_their_bounds(key, unit, mean, deviation, reach):
    low, high = mean - reach * deviation, mean + reach * deviation
    fast, slow = both_speeds(fill_normal, word(key), 4, unit, 0, mean, deviation, low, high, size=20)
    assert fast.tobytes() == slow.tobytes()
    assert ((fast >= low) & (fast <= high)).all()


@given(key=keys, purpose=purposes, unit=units, a=shapes, b=shapes)
@example(key=0, purpose=0, unit=0, a=1.0, b=1.0)
@example(key=1, purpose=0, unit=0, a=1e-300, b=1e-300)
@example(key=1, purpose=0, unit=0, a=5e-324, b=5e-324)
@example(key=2, purpose=0, unit=0, a=1e-300, b=1e15)
@example(key=3, purpose=0, unit=0, a=np.nextafter(1.0, 0.0), b=np.nextafter(1.0, 2.0))
@example(key=4, purpose=0, unit=0, a=1e150, b=1e150)
@settings(max_examples=150)
def test_beta_draws_are_the_same_at_both_speeds_and_between_0_and_1(key, purpose, unit, a, b):
    fast, slow = both_speeds(fill_beta, word(key), purpose, unit, 0, float(a), float(b), size=10)
    assert fast.tobytes() == slow.tobytes()
    assert ((fast >= 0.0) & (fast <= 1.0)).all()


def test_a_beta_shape_of_zero_is_the_point_mass_at_its_end():
    for loop_mode in ("compiled", "interpreted"):
        out = np.empty(5)
        with using(loop_mode):
            fill_beta(word(1), 0, 0, 0, 0.0, 2.0, out)
            assert out.tolist() == [0.0] * 5
            fill_beta(word(1), 0, 0, 0, 2.0, 0.0, out)
            assert out.tolist() == [1.0] * 5


def test_the_draw_nearest_to_one_is_still_below_one():
    """The counter for which Philox with key 0 gives 64 set bits, found by running its rounds backwards."""
    fast, slow = both_speeds(fill_uniforms, word(0), 1, 2163297800, 6952000587323338972, size=1)
    assert fast.tobytes() == slow.tobytes()
    assert fast[0] < 1.0


def test_uniforms_gives_the_draws_numbered_from_zero():
    some = np.array([3, 2**63 + 5, 0], np.uint64)
    expected = [[uniform(key, 5, 0, number) for number in range(7)] for key in some]
    for mode in ("compiled", "interpreted"):
        with using(mode):
            assert uniforms(some, 5, 7).tolist() == expected
    assert uniforms(some[:0], 5, 7).shape == (0, 7)


# -- distributions --------------------------------------------------------------------------------------------

SIZE = 20_000
LEAST_P = 1e-3  # keys are fixed: either these draws pass or they do not


@pytest.mark.parametrize("key", [0, 1, 2**64 - 1])
def test_uniform_draws_are_uniform(key):
    draws = drawn(fill_uniforms, word(key), 4, 1, 0, size=SIZE)
    assert scipy.stats.kstest(draws, "uniform").pvalue > LEAST_P


@pytest.mark.parametrize("n", [1, 2, 7, 100])
def test_integers_below_n_are_equally_likely(n):
    draws = np.empty(SIZE, np.int64)
    with using("compiled"):
        fill_below(word(9), 7, 0, 0, n, draws)
    counts = np.bincount(draws, minlength=n)
    assert len(counts) == n
    assert n == 1 or scipy.stats.chisquare(counts).pvalue > LEAST_P


@pytest.mark.parametrize(
    ("mean", "deviation", "low", "high"),
    [(0.0, 1.0, -40.0, 40.0), (0.5, 0.1, 0.0, 1.0), (0.0, 0.1, 0.0, 1.0), (1.0, 0.1, 0.0, 1.0), (0.5, 3.0, 0.0, 1.0)],
)
def test_normal_draws_have_the_distribution_conditioned_on_their_bounds(mean, deviation, low, high):
    draws = drawn(fill_normal, word(11), 4, 2, 0, mean, deviation, low, high, size=SIZE)
    law = scipy.stats.truncnorm((low - mean) / deviation, (high - mean) / deviation, loc=mean, scale=deviation)
    assert scipy.stats.kstest(draws, law.cdf).pvalue > LEAST_P


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (1.0, 1.0),
        (1.0, 5.0),
        (5.0, 1.0),
        (0.5, 0.5),
        (0.05, 0.2),
        (0.9, 30.0),
        (2.0, 3.0),
        (np.nextafter(1.0, 0.0), 1.0),
        (300.0, 700.0),
        (1e6, 1.0),
        (1e8, 2e8),
    ],
)
def test_beta_draws_have_the_beta_distribution(a, b):
    draws = drawn(fill_beta, word(12), 5, 3, 0, float(a), float(b), size=SIZE)
    assert scipy.stats.kstest(draws, scipy.stats.beta(a, b).cdf).pvalue > LEAST_P


@pytest.mark.parametrize(("a", "b"), [(1e-4, 1e-4), (1e-5, 3e-5), (1e-300, 1e-300), (3e-300, 1e-300)])
def test_beta_draws_of_tiny_shapes_are_a_coin_of_their_mean(a, b):
    draws = drawn(fill_beta, word(13), 5, 3, 0, a, b, size=SIZE)
    inside = ((draws > 1e-6) & (draws < 1.0 - 1e-6)).mean()
    heads = int((draws > 0.5).sum())
    assert inside < 0.02
    assert scipy.stats.binomtest(heads, SIZE, a / (a + b)).pvalue > LEAST_P


def test_beta_draws_of_huge_shapes_are_at_their_mean():
    draws = drawn(fill_beta, word(14), 5, 3, 0, 1e100, 3e100, size=100)
    assert np.allclose(draws, 0.25, rtol=0, atol=1e-12)


# -- streams have nothing in common ---------------------------------------------------------------------------


def test_streams_of_different_purposes_units_and_keys_are_uncorrelated():
    size = 4_000
    streams = [
        drawn(fill_uniforms, word(key), purpose, unit, 0, size=size)
        for key, purpose, unit in itertools.product([0, 1, 2**32, 2**63], [0, 1, 9], [0, 1, 2, 1000])
    ]
    correlation = np.corrcoef(streams) - np.eye(len(streams))
    assert np.abs(correlation).max() < 5.0 / math.sqrt(size)


@pytest.mark.parametrize("lag", [1, 2, 3, 256])
def test_draws_of_one_stream_are_uncorrelated(lag):
    draws = drawn(fill_uniforms, word(5), 4, 0, 0, size=SIZE)
    assert abs(np.corrcoef(draws[:-lag], draws[lag:])[0, 1]) < 5.0 / math.sqrt(SIZE)


def test_no_two_counters_share_a_draw():
    """Number, unit and purpose reach the generator whole: another bit in any of them is another draw."""
    counters = {(0, 0, 0)}
    counters |= {(0, 0, 1 << bit) for bit in range(63)}
    counters |= {(0, 1 << bit, 0) for bit in range(32)}
    counters |= {(1 << bit, 0, 0) for bit in range(8)}
    draws = {uniform(np.uint64(77), *counter) for counter in counters}
    assert len(draws) == len(counters)


def test_draws_of_neighbouring_folded_keys_are_uncorrelated():
    size = 4_000
    first = uniforms(fold_each(fold(0), np.arange(size)), 4, 1)[:, 0]
    second = uniforms(fold_each(fold(1), np.arange(size)), 4, 1)[:, 0]
    limit = 5.0 / math.sqrt(size)
    assert abs(np.corrcoef(first, second)[0, 1]) < limit
    assert abs(np.corrcoef(first[:-1], first[1:])[0, 1]) < limit
    assert scipy.stats.kstest(first, "uniform").pvalue > LEAST_P


# -- keys -----------------------------------------------------------------------------------------------------


def test_fold_gives_different_keys_to_different_small_inputs():
    inputs = [parts for length in range(4) for parts in itertools.product(range(16), repeat=length)]
    assert len({fold(*parts) for parts in inputs}) == len(inputs)


@given(st.integers(0, 2**300), st.integers(0, 2**300))
def test_fold_takes_every_bit_of_a_big_integer(one, other):
    assert 0 <= fold(one) < 2**64
    assert (fold(one) == fold(other)) == (one == other)
    assert (fold(one, 1) == fold(other, 1)) == (one == other)


@given(st.lists(st.integers(0, 2**64 - 1), max_size=3), st.lists(st.integers(0, 2**63 - 1), max_size=5))
def test_fold_each_is_fold_with_one_more_part(parts, more):
    each = fold_each(fold(*parts), np.array(more, np.int64))
    assert each.dtype == np.uint64
    assert each.tolist() == [fold(*parts, number) for number in more]


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    def late(number, frame):
        raise TimeoutError(f"took more than {seconds} s")

    previous = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


@pytest.mark.parametrize("key", [-1, -(2**70)])
def test_reseeding_by_a_negative_key_ends(key):
    """With a sentence or with a key of its own, but it ends."""
    with at_most(0.5), suppress(ar.errors.ArtReplayError):
        ar.ThompsonSampling(2).reseed(key)


@pytest.mark.parametrize("kind", [np.int64, np.uint64, np.int8])
def test_reseeding_by_a_numpy_integer_is_reseeding_by_its_value(kind):
    one, other = ar.IDS(3), ar.IDS(3)
    one.reseed(7)
    other.reseed(kind(7))
    assert one.component.key.tolist() == other.component.key.tolist()


@pytest.mark.parametrize("seed", [0, 1, 2**64, 2**200, np.int64(5), np.uint8(255), np.uint64(2**64 - 1)])
def test_a_seed_is_any_integer_that_is_not_negative(seed):
    checked = checked_seed(seed)
    assert type(checked) is int
    assert checked == int(seed)


@pytest.mark.parametrize("seed", [-1, np.int64(-3), 0.0, 1.5, "1", None, True, False, [1], float("nan"), 1j])
def test_any_other_seed_is_refused_by_its_value(seed):
    with pytest.raises(InvalidParameter) as refused:
        checked_seed(seed)
    assert str(refused.value) == f"seed must be an integer of at least 0, got {seed!r}"


def test_every_randomised_algorithm_takes_big_seeds_and_refuses_negative_ones():
    for make in (ar.ThompsonSampling, ar.IDS, ar.RandomChoice):
        one, other = (state_of(make(3, seed=seed).component) for seed in (2**100, 2**100 + 1))
        (key,) = (name for name in one if name.endswith("key"))
        assert one[key] != other[key]
        with pytest.raises(InvalidParameter, match="seed"):
            make(3, seed=-1)
