"""Certified reading computes few exact values, and chooses as if it had computed all of them."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pytest

from artreplay.algorithms import valued
from artreplay.algorithms.valued import AnchoredDraw, OptimisticMean, PosteriorDraw, UpperQuantile, valued_arms
from artreplay.compiling import Ints, Loop, compiled, using
from artreplay.replay.certified import certify
from artreplay.replay.step import CERTAIN

SLACK = 1e-9
KEY = np.full(1, 7, np.uint64)
RULES = {
    "thompson": PosteriorDraw(KEY, 1.0, 1.0),
    "few successes": PosteriorDraw(KEY, 0.3, 30.0),
    "nearly a coin": PosteriorDraw(KEY, 0.05, 0.05),  # many draws are exactly 1, and tie
    "anchored": AnchoredDraw(KEY),  # many medians are the online mean, and tie
    "ucb1": OptimisticMean(2.0),
    "bayes": UpperQuantile(1.0),
}


@compiled
class UnreadRows(NamedTuple):
    """A ledger in which the rows of an arm are only counted."""

    rows: Ints

    def locate(self, base: Any, arm: int) -> int:
        return arm

    def waiting(self, cell: int) -> int:
        return self.rows[cell]


@Loop
def propose(base, ledger, out, round_):
    return base.propose_over(ledger, out, round_)


def proposed_by_all_values(base, waiting, round_):
    """Whether the choice is certain, and the arm to be played or read, by the exact bounds on all arms."""
    arms = np.flatnonzero(base.allowed).tolist()
    base.rule.note_unread(int(waiting.sum()))
    high = {arm: base.rule.value(arm, round_, int(waiting[arm]), 1.0) for arm in arms}
    low = {arm: base.rule.value(arm, round_, int(waiting[arm]), 0.0) for arm in arms}
    known = {arm: waiting[arm] == 0 or low[arm] == math.inf for arm in arms}
    best = max(arms, key=lambda arm: (high[arm], -arm))
    if all(arm == best or (known[arm] and known[best]) or high[arm] + SLACK < low[best] for arm in arms):
        return True, best
    unread = [arm for arm in arms if waiting[arm] > 0]
    return False, best if waiting[best] > 0 else max(unread, key=lambda arm: (high[arm], -arm))


def random_base(rule, rng):
    """Arms with anything from no samples to a hundred thousand, and as many unread rows."""
    n_arms = int(rng.integers(1, 7))
    arms, size = valued_arms(rule, n_arms), int(10 ** rng.integers(0, 6))
    for part, tally in enumerate((arms.logged, arms.online)):
        tally.counts[:] = rng.integers(0, size, n_arms, endpoint=True)
        shares = np.full(n_arms, rng.random()) if rng.random() < 0.5 else rng.random(n_arms)
        tally.totals[:] = np.rint(tally.counts * shares) if rng.random() < 0.7 else tally.counts * shares
        arms.shown[part] = tally.counts.sum()
    base = certify(arms, n_arms, 0.0, 1.0)
    base.allowed[:] = rng.random(n_arms) < 0.8
    base.allowed[rng.integers(n_arms)] = 1
    return base, UnreadRows(rng.integers(0, rng.choice([1, 4, size + 1]), n_arms))


def compare(rule, mode, cases, seed):
    """Drive random bases over a few rounds; every proposal must be the one by all values."""
    rng = np.random.default_rng(seed)
    with using(mode):
        for _ in range(cases):
            base, ledger = random_base(rule, rng)
            out = np.zeros(1, np.int64)
            for _ in range(12):
                round_ = base.rule.rounds()
                expected = proposed_by_all_values(base, ledger.rows, round_)
                status = propose(base, ledger, out, round_)
                assert (status == CERTAIN, int(out[0])) == expected
                arm, reward = expected[1], float(rng.choice([0.0, 1.0, 0.1, 0.7]))
                if status == CERTAIN:
                    base.update(arm, reward)
                else:
                    ledger.rows[arm] -= 1
                    base.update_logged(arm, reward, 0.0)


@pytest.mark.parametrize("name", RULES)
@np.errstate(over="ignore")
def test_proposals_are_those_by_all_values(name):
    compare(RULES[name], "interpreted", 40, seed=1)


@pytest.mark.parametrize("name", ["thompson", "nearly a coin"])
@np.errstate(over="ignore")
def test_compiled_proposals_are_those_by_all_values(name):
    compare(RULES[name], "compiled", 80, seed=2)


@pytest.mark.long
@pytest.mark.parametrize("name", RULES)
@np.errstate(over="ignore")
def test_they_are_so_in_many_cases(name):
    compare(RULES[name], "compiled", 1_500, seed=3)


def test_an_arm_that_cannot_win_is_never_valued_exactly(monkeypatch):
    valued_at = []
    monkeypatch.setattr(valued, "beta_quantile", lambda a, b, u: valued_at.append((a, b)) or 0.9)
    arms = valued_arms(PosteriorDraw(KEY, 1.0, 1.0), 3)
    arms.online.counts[:] = 1000
    arms.online.totals[:] = 100.0, 900.0, 899.0
    with np.errstate(over="ignore"):
        certify(arms, 3, 0.0, 1.0).propose_over(UnreadRows(np.zeros(3, np.int64)), np.zeros(1, np.int64), 0)
    assert set(valued_at) == {(901.0, 101.0), (900.0, 102.0)}
