"""What the tests of the budgeted choice share: instances, and the choices by definition."""

from __future__ import annotations

import os
from fractions import Fraction

import hypothesis.strategies as st
import numpy as np

from artreplay.algorithms.budget import Candidates, grained
from artreplay.compiling import Loop, using


def examples(many: int) -> int:
    """How many cases hypothesis tries: `make test-all` says that there is time for many."""
    return many if os.environ.get("ARTREPLAY_THOROUGH") else many // 4


GRAIN = 2.0**-40


@Loop
def chosen_by(solver, candidates, out_level, out_rank):
    return solver.choose(candidates, out_level, out_rank)


def candidates_of(values, most):
    """The top boxes of each level in the order (−value, rank)."""
    best = [np.argsort(-column, kind="stable")[:most] for column in values.T]
    top = [column[boxes] for column, boxes in zip(values.T, best, strict=True)]
    return Candidates(np.array(top), np.array(best, np.int64), np.full(len(best), len(best[0]), np.int64))


def run(solver, candidates, mode="interpreted"):
    out_level, out_rank = np.full(solver.most, -1, np.int64), np.full(solver.most, -1, np.int64)
    with using(mode):
        n_taken = chosen_by(solver, candidates, out_level, out_rank)
    assert (out_rank[n_taken:] == -1).all()
    return list(zip(out_rank[:n_taken].tolist(), out_level[:n_taken].tolist(), strict=True))


def exactly(x):
    return Fraction(str(float(x)))


def spent(chosen, levels):
    return sum((exactly(levels[level]) for _, level in chosen), Fraction(0))


LEVELS = [
    (1.0,),
    (0.5, 1.0),
    (1.0, 2.0, 3.0),
    (2.0, 4.0, 8.0),
    (3.0, 2.0),
    (0.1, 0.2, 0.3),
    (0.4, 0.6),
    (5.0, 1.0, 3.0),
]
ALPHABETS = [(1.0,), (0.0, 1.0), (0.25, 0.5, 0.75, 1.0), (0.0, 0.1, 0.2, 0.3, 0.6), (0.2, 0.4, 0.8, 1.0)]
ties = st.sampled_from(ALPHABETS).flatmap(
    lambda alphabet: st.lists(st.sampled_from(alphabet), min_size=18, max_size=18)
)
anything = st.lists(st.floats(0.0, 1.0), min_size=18, max_size=18)
close = st.lists(st.integers(0, 3).map(lambda n: 0.5 + n * GRAIN), min_size=18, max_size=18)


@st.composite
def instances(draw, most_boxes=5, entries=ties | anything | close):
    levels = draw(st.sampled_from(LEVELS))
    n_boxes = draw(st.integers(1, most_boxes))
    values = np.array(draw(entries))[: n_boxes * len(levels)].reshape(n_boxes, len(levels))
    smallest = exactly(min(levels))
    budget = float(smallest * draw(st.integers(2, 16)) / 2)
    return grained(values), levels, budget, draw(st.integers(1, 4))
