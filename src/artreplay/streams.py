"""Counter-based random draws. A draw is a pure function of its key and of what it is for.

No generator keeps a state, so two policies that do the same thing see the same draws, in any order, in any number of
threads or processes, compiled or interpreted. The generator is Philox4x32-10 (Salmon, Moraes, Dror and Shaw, 2011). Its
counter holds the number of the draw, the unit, the purpose and the attempt. Its key comes from the seeds.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from artreplay.compiling import Floats, Ints, Words, compiled

# What a draw is for. Draws of different purposes never share a counter.
(
    MEANS,
    LOG_UNIT,
    LOG_REWARD,
    LOG_WEIGHT,
    REWARD,
    POSTERIOR,
    ROUNDING,
    CHOICE,
    FEATURES,
    THETA,
    PLACE,
    LOG_LEVEL,
    LOG_SIDE,
    DELAY,
    COSINES,
    CONTEXT,
    LOG_CONTEXT,
    ACCEPTANCE,
) = range(18)

_MULTIPLY_0 = np.uint64(0xD2511F53)
_MULTIPLY_1 = np.uint64(0xCD9E8D57)
_WEYL_0 = np.uint64(0x9E3779B9)
_WEYL_1 = np.uint64(0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_DROP = np.uint64(12)  # 64 bits to 52, so that a half can be added exactly
_PURPOSE = np.uint64(24)  # the last counter word: 8 bits of purpose, 24 of attempt
_STEP = 2.0**-52
_MIX_ADD = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_MIX_30, _MIX_27, _MIX_31 = np.uint64(30), np.uint64(27), np.uint64(31)


@compiled
def philox(c0: Any, c1: Any, c2: Any, c3: Any, k0: Any, k1: Any) -> Any:
    """Apply ten rounds of Philox4x32 to 32-bit words, and return the four words of the result as two of 64 bits."""
    for _ in range(10):
        p0 = _MULTIPLY_0 * c0
        p1 = _MULTIPLY_1 * c2
        c0, c1, c2, c3 = (p1 >> _HALF) ^ c1 ^ k0, p1 & _LOW, (p0 >> _HALF) ^ c3 ^ k1, p0 & _LOW
        k0 = (k0 + _WEYL_0) & _LOW
        k1 = (k1 + _WEYL_1) & _LOW
    return (c0 << _HALF) | c1, (c2 << _HALF) | c3


@compiled
def pair(key: np.uint64, purpose: int, unit: int, number: int, attempt: int) -> tuple[float, float]:
    """Two independent uniform draws in the open interval (0, 1)."""
    word = np.uint64(number)
    last = (np.uint64(purpose) << _PURPOSE) | np.uint64(attempt)
    a, b = philox(word & _LOW, word >> _HALF, np.uint64(unit) & _LOW, last, key & _LOW, key >> _HALF)
    return (float(a >> _DROP) + 0.5) * _STEP, (float(b >> _DROP) + 0.5) * _STEP


@compiled
def uniform(key: np.uint64, purpose: int, unit: int, number: int) -> float:
    """One uniform draw in (0, 1)."""
    u, _ = pair(key, purpose, unit, number, 0)
    return u


@compiled
def below(key: np.uint64, purpose: int, unit: int, number: int, n: int) -> int:
    """A uniform integer in 0..n−1."""
    return min(int(uniform(key, purpose, unit, number) * n), n - 1)


@compiled(inline=False)
def normal(
    key: np.uint64, purpose: int, unit: int, number: int, mean: float, deviation: float, low: float, high: float
) -> float:
    """A normal draw conditioned to lie in [low, high], by rejection."""
    attempt = 0
    while True:
        u, v = pair(key, purpose, unit, number, attempt)
        attempt += 1
        x = 2.0 * u - 1.0
        y = 2.0 * v - 1.0
        square = x * x + y * y
        if square >= 1.0 or square == 0.0:
            continue
        spread = deviation * math.sqrt(-2.0 * math.log(square) / square)
        if low <= mean + x * spread <= high:
            return mean + x * spread
        if low <= mean + y * spread <= high:
            return mean + y * spread


@compiled
def accepted_gamma(d: float, x: float, u: float) -> float:
    """A Gamma(d + 1/3) value from a normal x and a uniform u (Marsaglia and Tsang, 2000), or −1 if it is rejected."""
    v = 1.0 + x / math.sqrt(9.0 * d)
    if v <= 0.0:
        return -1.0
    v = v * v * v
    square = x * x
    if u < 1.0 - 0.0331 * square * square or math.log(u) < 0.5 * square + d * (1.0 - v + math.log(v)):
        return d * v
    return -1.0


@compiled(inline=False)
def beta(key: np.uint64, purpose: int, unit: int, number: int, a: float, b: float) -> float:
    """An exact Beta(a, b) draw, as a ratio of two Gamma draws. Where a or b is 0 it is the limit, a point mass."""
    if a <= 0.0:
        return 0.0
    if b <= 0.0:
        return 1.0
    lift_a = 1.0 if a < 1.0 else 0.0  # a draw of a shape below 1 is one of that shape plus 1, then shrunk
    lift_b = 1.0 if b < 1.0 else 0.0
    gamma_a = -1.0
    gamma_b = -1.0
    attempt = 0
    while gamma_a < 0.0 or gamma_b < 0.0:
        u, v = pair(key, purpose, unit, number, attempt)
        x = 2.0 * u - 1.0
        y = 2.0 * v - 1.0
        square = x * x + y * y
        attempt += 1
        if square >= 1.0 or square == 0.0:
            continue
        spread = math.sqrt(-2.0 * math.log(square) / square)
        u, v = pair(key, purpose, unit, number, attempt)
        attempt += 1
        if gamma_a < 0.0:
            gamma_a = accepted_gamma(a + lift_a - 1.0 / 3.0, x * spread, u)
        if gamma_b < 0.0:
            gamma_b = accepted_gamma(b + lift_b - 1.0 / 3.0, y * spread, v)
    if lift_a + lift_b > 0.0:
        u, v = pair(key, purpose, unit, number, attempt)
        if lift_a > 0.0:
            gamma_a *= math.exp(math.log(u) / a)
        if lift_b > 0.0:
            gamma_b *= math.exp(math.log(v) / b)
    if gamma_a + gamma_b == 0.0:  # both shapes are tiny, and the distribution is nearly a coin of mean a / (a + b)
        u, _ = pair(key, purpose, unit, number, attempt + 1)
        return 1.0 if u < a / (a + b) else 0.0
    return gamma_a / (gamma_a + gamma_b)


def uniforms_at(key: Any, purpose: int, unit: Any, number: Any) -> Floats:
    """Draw as `uniform` does at many units and numbers together. Arrays of different shapes are broadcast."""
    unit, number = np.asarray(unit, np.uint64), np.asarray(number, np.uint64)
    last = np.uint64(purpose) << _PURPOSE
    a, _ = philox(number & _LOW, number >> _HALF, unit & _LOW, last, key & _LOW, key >> _HALF)
    draws: Floats = ((a >> _DROP).astype(np.float64) + 0.5) * _STEP
    return draws


def uniforms(keys: Words, purpose: int, n: int) -> Floats:
    """For each key, the draws of `uniform` numbered 0 to n−1, all at once."""
    return uniforms_at(keys[:, None], purpose, 0, np.arange(n))


@compiled
def mixed(word: np.uint64) -> np.uint64:
    """Mix a 64-bit word by the finaliser of SplitMix64, so that every bit depends on every bit."""
    word = word + _MIX_ADD
    word = (word ^ (word >> _MIX_30)) * _MIX_1
    word = (word ^ (word >> _MIX_27)) * _MIX_2
    return word ^ (word >> _MIX_31)


def fold(*parts: int) -> int:
    """Combine any number of seeds, replication numbers and the like, in order, into one 64-bit key."""
    key = 0
    for part in parts:
        while True:
            key = _mix((key ^ (part & _WORD_MASK)) + _GOLDEN)
            part >>= 64
            if part == 0:
                break
    return key


def fold_each(key: int, numbers: Ints) -> Words:
    """For each number, the key folded with it, which is `fold(…, number)` where `key` is `fold(…)`."""
    return np.array([_mix((key ^ number) + _GOLDEN) for number in numbers.tolist()], dtype=np.uint64)


_WORD_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


def _mix(word: int) -> int:
    """The finaliser of SplitMix64, a bijection of 64-bit words in which every bit depends on every bit."""
    word &= _WORD_MASK
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & _WORD_MASK
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & _WORD_MASK
    return word ^ (word >> 31)
