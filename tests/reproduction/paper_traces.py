"""Golden traces of the reproduction's own algorithms: what each does under every policy, round by round.

`paper_traces.json` is written anew by

    python tests/reproduction/paper_traces.py --freeze

and a change of that file needs a reason in the commit message, as for those of the package (tests/golden/traces.py).
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import artreplay as ar

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "golden"), str(HERE.parent.parent)]

from traces import (  # noqa: E402
    ARMS,
    EFFORT,
    EFFORT_LINE,
    EFFORTS,
    LABELS,
    NUMBERS,
    ROUNDS,
    SMALL,
    STARTS,
    TOP,
    TWO,
    Bases,
    Scene,
    Simulated,
    Units,
    freeze,
)

from reproduction.algorithms import BatchStart, PlainThompson, PlainUCB1, PublishedIDS, Regressor  # noqa: E402

FILE = HERE / "paper_traces.json"


@functools.cache
def near_mean() -> type:
    """A cheap estimator: the mean of the samples, those nearby counting more; it only adds, so that it is exact."""
    from sklearn.base import BaseEstimator, RegressorMixin

    class NearMean(RegressorMixin, BaseEstimator):
        def fit(self, features: Any, rewards: Any) -> Any:
            """Keep the samples."""
            self.samples_ = list(zip(features.tolist(), rewards.tolist(), strict=True))
            return self

        def predict(self, features: Any) -> Any:
            """The weighted mean."""
            return np.array([self._mean(place) for place in features.tolist()])

        def _mean(self, place: list[float]) -> float:
            weights = [
                1.0 / (0.25 + math.fsum(abs(x - y) for x, y in zip(place, other, strict=True)))
                for other, _ in self.samples_
            ]
            rewards = (weight * reward for weight, (_, reward) in zip(weights, self.samples_, strict=True))
            return math.fsum(rewards) / math.fsum(weights)

    return NearMean


BASES: Bases = {
    "UCB1": (NUMBERS, lambda: PlainUCB1(5)),
    "Thompson": (NUMBERS, lambda: PlainThompson(5, seed=3)),
    "Thompson, labels": (LABELS, lambda: PlainThompson(arms=LABELS.arms, seed=4)),
    "MonUCB in a batch": (NUMBERS, lambda: BatchStart(ar.MonUCB(5, 30, bonus=SMALL))),
    "TopUCB in a batch": (NUMBERS, lambda: BatchStart(ar.TopUCB(5, 2, 30, bonus=SMALL))),
    "IDS, published": (Units((0, 1)), lambda: PublishedIDS(2, seed=1)),
    "Regressor": (EFFORTS, lambda: Regressor(near_mean()(), dim=1, cells_per_side=4, every=8, **EFFORT)),
}
SLOW = ("IDS, published",)  # this has few scenes, and short ones
BATCHES = ("MonUCB in a batch", "TopUCB in a batch")  # these have simulations alone
EXTENDED = ("Thompson", "Regressor")
ENVIRONMENTS: dict[str, Any] = {  # of those that are simulated
    "MonUCB in a batch": ARMS,
    "TopUCB in a batch": TOP,
    "UCB1": ARMS,
    "Thompson": TWO,
    "Regressor": EFFORT_LINE,
}


def _scenes() -> Iterator[Scene | Simulated]:
    """With a log in memory and in a store, of which some rows are skipped, and which grows."""
    for base in BASES:
        if base in BATCHES:
            continue
        rounds = 6 if base in SLOW else ROUNDS
        yield Scene(base, "ignorant", rounds=rounds)
        if base in SLOW:
            for policy in ("full", "replay"):
                yield from (Scene(base, policy, place, rounds=rounds) for place in ("memory", "store"))
            continue
        for policy in ("full", "replay"):
            yield Scene(base, policy)
            yield Scene(base, policy, strange=True)
            yield Scene(base, policy, "store")
            if base in EXTENDED:
                yield Scene(base, policy, turn="extended")
                yield Scene(base, policy, "store", strange=True, turn="extended")
        yield Scene(base, "related")
        if base in EXTENDED:
            yield Scene(base, "related", turn="extended")
    for base, env in ENVIRONMENTS.items():
        starts = ("full-start",) if base in BATCHES else STARTS
        yield from (Simulated(base, start, env) for start in starts)


SCENES: dict[str, Scene | Simulated] = {scene.name: scene for scene in _scenes()}

if __name__ == "__main__":
    if sys.argv[1:] != ["--freeze"]:
        raise SystemExit(__doc__)
    freeze(SCENES, FILE, BASES)
