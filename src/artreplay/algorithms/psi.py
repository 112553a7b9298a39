"""Widths of indices for ψ-UCB, from a bound ψ on the log moment generating function of a reward.

A ψ with E exp(λ(X − μ)) ≤ exp ψ(λ) gives b(n) = (ψ*)⁻¹(2 log(TK)/n), where ψ*(ε) = sup_λ (λε − ψ(λ)).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

from artreplay.algorithms.bonus import BonusTable
from artreplay.algorithms.bounds import FIXED, DivergenceBound, RootBound, TableBound
from artreplay.errors import InvalidParameter
from artreplay.parameters import Positive, checked

__all__ = ["bernoulli_kl", "hoeffding", "sub_gaussian"]

Psi = Any  # `hoeffding`, `sub_gaussian(σ)`, `bernoulli_kl`, or a callable λ → ψ(λ)


@dataclass(frozen=True)
class Hoeffding:
    """ψ(λ) = λ²/8, for rewards in the reward range. b(n) = √(log(TK)/n)."""

    bounded = True

    def bound(self, level: float) -> RootBound:
        """Make the compiled part, for level = 2 log(TK)."""
        return RootBound(level / 2.0)


@dataclass(frozen=True)
class SubGaussian:
    """ψ(λ) = σ²λ²/2, for rewards that may be unbounded. b(n) = σ√(4 log(TK)/n)."""

    sigma: float
    bounded = False

    def bound(self, level: float) -> RootBound:
        """Make the compiled part, for level = 2 log(TK)."""
        return RootBound(self.sigma * self.sigma * 2.0 * level)


@dataclass(frozen=True)
class BernoulliKL:
    """The index is the largest q with n·kl(m, q) ≤ 2 log(TK), which is the tightest for rewards in [0, 1]."""

    bounded = True

    def bound(self, level: float) -> DivergenceBound:
        """Make the compiled part, for level = 2 log(TK)."""
        return DivergenceBound(FIXED, level, 0.0)


hoeffding = Hoeffding()
bernoulli_kl = BernoulliKL()


@checked
def sub_gaussian(sigma: Positive) -> SubGaussian:
    """Assume rewards with σ-sub-Gaussian noise, bounded or not. The index of an arm without samples is infinite.

    Parameters
    ----------
    sigma
        The parameter σ of the noise.

    >>> import artreplay as ar
    >>> policy = ar.Ignorant(ar.PsiUCB(2, horizon=100, psi=ar.psi.sub_gaussian(2.0)))
    >>> policy.tell(0, -3.5)
    >>> policy.ask()
    1
    """
    return SubGaussian(sigma)


def bound_of_psi(psi: Psi, level: float) -> tuple[RootBound | TableBound | DivergenceBound, BonusTable | None]:
    """Make the compiled part for a ψ. A user's own ψ is inverted numerically into a table, which is returned too."""
    if isinstance(psi, (Hoeffding, SubGaussian, BernoulliKL)):
        return psi.bound(level), None
    if callable(psi):
        table = BonusTable(radius_of_psi(psi, level))
        return table.bound(), table
    raise InvalidParameter(f"psi must be one of ar.psi or a function of λ, got {psi!r}")


def radius_of_psi(psi: Callable[[float], float], level: float) -> Callable[[int], float]:
    """n → (ψ*)⁻¹(level/n) for a ψ of the user's own."""
    at_zero = _height(psi, 0.0)
    if not abs(at_zero) <= 1e-12:
        raise InvalidParameter(f"psi(0) must be 0, got {at_zero!r}")
    return lambda n: inverse_conjugate(psi, level / n)


def inverse_conjugate(psi: Callable[[float], float], x: float) -> float:
    """(ψ*)⁻¹(x) = inf over λ > 0 of (ψ(λ) + x)/λ, by golden section on log λ.

    >>> round(inverse_conjugate(lambda l: l * l / 8, 2.0), 6)
    1.0
    """

    def value(log_lambda: float) -> float:
        """(ψ(λ) + x)/λ."""
        scale = math.exp(log_lambda)
        return (_height(psi, scale) + x) / scale

    if x <= 0.0:
        return 0.0  # for one arm and one round, because there is nothing to choose
    low, high = _bracket(value)
    ratio = (math.sqrt(5.0) - 1.0) / 2.0
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = value(left), value(right)
    while high - low > 1e-7:  # the value is flat here, so its error is of the order of the square
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = value(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = value(right)
    return min(at_left, at_right)


def _height(psi: Callable[[float], float], scale: float) -> float:
    """ψ(λ), or infinity if it overflows. The width is then a little too wide, and never too narrow."""
    try:
        height: Any = psi(scale)
    except OverflowError:
        return math.inf
    if isinstance(height, bool) or not isinstance(height, Real) or math.isnan(height):
        raise InvalidParameter(f"psi({scale:g}) must be a number, got {height!r}")
    return float(height)


def _bracket(value: Callable[[float], float]) -> tuple[float, float]:
    """Find an interval of log λ around the lowest value. The value is quasi-convex in λ, because ψ is convex."""
    middle, step = 0.0, 1.0
    best = value(middle)
    for direction in (1.0, -1.0):
        while abs(middle) < 300.0:
            ahead = value(middle + direction * step)
            if not ahead < best:
                break
            middle, best = middle + direction * step, ahead
    if abs(middle) >= 300.0 or not math.isfinite(best):
        raise InvalidParameter(
            "psi must be convex and grow faster than linearly, got one whose conjugate has no inverse"
        )
    return middle - step, middle + step
