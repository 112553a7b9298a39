"""The tree algorithms the slow way: a dictionary of leaves, gone through from end to end every time."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import artreplay as ar
from artreplay.algorithms.budget import exact_choice, grained, greedy_choice
from artreplay.morton import interleaved, mirrored

REWARDS = (0.0, 0.25, 0.5, 1.0)


def small(n: int) -> float:
    """A narrow bonus: much is decided after few samples."""
    return 0.3 / math.sqrt(n)


class Leaf:
    """A box of the unit cube: how often the cube was halved, and its place along each axis, in widths of its own."""

    def __init__(self, level: int, depth: int, place: tuple[int, ...], count: int, total: float, index: float) -> None:
        self.level, self.depth, self.place = level, depth, place
        self.count, self.total, self.index = count, total, index

    def holds(self, point: Sequence[float], level: int) -> bool:
        side = 1 << self.depth
        return level == self.level and self.place == tuple(min(int(x * side), side - 1) for x in point)

    def code(self, deepest: int) -> int:
        """The Z-order of the low corner among the finest boxes."""
        return z_order([[place << (deepest - self.depth) for place in self.place]], deepest)[0]

    def centre(self) -> tuple[float, ...]:
        return tuple((place + 0.5) / (1 << self.depth) for place in self.place)


def z_order(places: Sequence[Sequence[int]], bits: int) -> list[int]:
    return interleaved(np.array(places, np.int64), bits).tolist()


class SlowTree:
    """Leaves that split as the rules say; the first in Z-order among those with the highest index."""

    def __init__(
        self, dim: int, deepest: int, split: str, radius: Callable[[int], float], levels: int = 1, grain: bool = False
    ) -> None:
        self.dim, self.deepest, self.split, self.radius, self.grain = dim, deepest, split, radius, grain
        self.leaves = [Leaf(level, 0, (0,) * dim, 0, 0.0, 1.0) for level in range(levels)]

    def update(self, point: Sequence[float], level: int, reward: float) -> Leaf:
        [leaf] = [leaf for leaf in self.leaves if leaf.holds(point, level)]
        leaf.count += 1
        leaf.total += reward
        value = leaf.total / leaf.count + self.radius(leaf.count)
        leaf.index = min(leaf.index, float(grained(value)) if self.grain else value)
        if leaf.depth < self.deepest and self.splits(leaf):
            self.leaves.remove(leaf)
            for half in itertools.product((0, 1), repeat=self.dim):
                place = tuple(2 * old + new for old, new in zip(leaf.place, half, strict=True))
                self.leaves.append(Leaf(level, leaf.depth + 1, place, leaf.count, leaf.total, leaf.index))
        return leaf

    def splits(self, leaf: Leaf) -> bool:
        if self.split == "samples":
            return leaf.count >= 4**leaf.depth
        return self.radius(leaf.count) < 2.0**-leaf.depth

    def in_order(self) -> list[Leaf]:
        return sorted(self.leaves, key=lambda leaf: (leaf.level, leaf.code(self.deepest)))

    def propose(self) -> tuple[float, ...]:
        return min(self.leaves, key=lambda leaf: (-leaf.index, leaf.code(self.deepest))).centre()

    # -- several boxes under a budget ---------------------------------------------------------------------------

    def choose_finest(self, solver: str, levels: Sequence[float], budget: float, most: int) -> list[ar.Allocation]:
        """The finest boxes, ranked by their mirrored codes, each valued by the leaf it lies in."""
        side, bits = 1 << self.deepest, self.dim * self.deepest
        places = list(itertools.product(range(side), repeat=self.dim))
        order = sorted(zip([mirrored(code, bits) for code in z_order(places, self.deepest)], places, strict=True))
        values = np.zeros((len(places), len(levels)))
        for row, (_, place) in enumerate(order):
            point = [(x + 0.5) / side for x in place]
            for leaf in self.leaves:
                if leaf.holds(point, leaf.level):
                    values[row, leaf.level] = leaf.index
        choice = exact_choice if solver == "exact" else greedy_choice
        return [
            ar.Allocation(tuple((x + 0.5) / side for x in order[row][1]), levels[level])
            for row, level in choice(values, levels, budget, most)
        ]

    def choose_leaves(self, levels: Sequence[float], budget: float, most: int) -> list[ar.Allocation]:
        """The paper's rule: leaves by index per level, none that overlaps one chosen before."""
        active = [leaf for leaf in self.leaves if levels[leaf.level] > 0]
        key = lambda leaf: (-leaf.index / levels[leaf.level], leaf.code(self.deepest), leaf.level)  # noqa: E731
        chosen: list[Leaf] = []
        left = budget
        for leaf in sorted(active, key=key):
            if len(chosen) < most and levels[leaf.level] <= left and not any(overlap(leaf, old) for old in chosen):
                chosen.append(leaf)
                left -= levels[leaf.level]
        return [ar.Allocation(leaf.centre(), levels[leaf.level]) for leaf in chosen]

    def choose_merged(self, levels: Sequence[float], budget: float, most: int) -> list[ar.Allocation]:
        """The exact choice among the intersections of the leaves of all levels above 0, in Z-order."""
        active = [leaf for leaf in self.leaves if levels[leaf.level] > 0]
        merged = {}  # the deepest leaf at each low corner
        for leaf in active:
            if not any(overlap(leaf, other) and other.depth > leaf.depth for other in active):
                merged[leaf.code(self.deepest)] = leaf
        boxes = [merged[code] for code in sorted(merged)]
        values = np.zeros((len(boxes), len(levels)))
        for row, box in enumerate(boxes):
            for leaf in active:
                if leaf.holds(box.centre(), leaf.level):
                    values[row, leaf.level] = leaf.index
        return [
            ar.Allocation(boxes[row].centre(), levels[level])
            for row, level in exact_choice(values, levels, budget, most)
        ]


def overlap(one: Leaf, other: Leaf) -> bool:
    small, large = (one, other) if one.depth >= other.depth else (other, one)
    return tuple(place >> (small.depth - large.depth) for place in small.place) == large.place


def draws(dim: int, samples: int, seed: int, levels: Sequence[float] | None = None) -> list[tuple[Any, int, float]]:
    """Points, many on edges of boxes and many close together, with a level number and a reward each."""
    rng = random.Random(seed)
    centre = [rng.random() for _ in range(dim)]
    made = []
    for _ in range(samples):
        kind = rng.random()
        if kind < 0.4:
            point = tuple(rng.randint(0, 8) / 8 for _ in range(dim))
        elif kind < 0.7:
            point = tuple(min(max(x + rng.uniform(-0.05, 0.05), 0.0), 1.0) for x in centre)
        else:
            point = tuple(rng.random() for _ in range(dim))
        made.append((point, rng.randrange(len(levels)) if levels else 0, rng.choice(REWARDS)))
    return made
