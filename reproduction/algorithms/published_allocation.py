"""The budget over places as the code of the paper's authors plays it, rebuilt: its cells, its choice and its replay.

It differs from the paper, and from the package, in five ways. Level 0 is a thing to choose like any other: it costs
nothing, and its index is 1 until it was tried. The choice is exact, over the boxes in which the leaves of all levels
overlap. What it plays is a random point of the leaf, not of the box. The index of adaptive cells is no running minimum.
Replay finds rows in trees of their own, which divide where the *log* lies, and takes the latest one. Among equally good
choices their solver takes any. Here it is the one with less effort, then the first box, which meets their numbers best.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import numpy as np

from artreplay.compiling import Floats, Ints
from artreplay.environments import PointEnvironment
from artreplay.history import History

_BONUS = math.sqrt(-math.log(0.1) / 2.0)  # over √n
_LESS = 1e-9  # of the index, for each unit of effort: of equal choices, the one with less effort is taken

Unit = tuple[float, float, int]  # two coordinates, and the number of a level


class Cells(Protocol):
    """What the choice and replay need of cells."""

    def options(self) -> tuple[Ints, Floats]:
        """Return the finest box in the low corner of each box to choose from, and its index at each level."""

    def played(self, corner: int, level: int, rng: np.random.Generator) -> Unit:
        """Return the point that is played for a box."""

    def learn(self, unit: Unit, reward: float) -> None:
        """Show a sample."""

    def find(self, unit: Unit) -> list[float] | None:
        """Return the rows that stand for a unit, the latest one last."""


class FixedCells:
    """A grid of points, from edge to edge of the square. A sample belongs to the nearest one."""

    def __init__(self, side: int, levels: int, log: History | None = None) -> None:
        self.side = side
        self.count, self.total = np.zeros((2, side * side, levels))
        self.index = np.ones((side * side, levels))
        self.rows: dict[tuple[int, int], list[float]] = {}
        for unit, reward in _samples(log):
            self.rows.setdefault(self._at(unit), []).append(reward)

    def options(self) -> tuple[Ints, Floats]:
        """Return all points with their indices."""
        return np.arange(len(self.index)), self.index

    def played(self, corner: int, level: int, rng: np.random.Generator) -> Unit:
        """Return the point itself."""
        across, up = divmod(corner, self.side)
        return across / (self.side - 1), up / (self.side - 1), level

    def learn(self, unit: Unit, reward: float) -> None:
        """Show a sample. The index is a running minimum."""
        at = self._at(unit)
        self.count[at] += 1
        self.total[at] += reward
        mean = self.total[at] / self.count[at]
        self.index[at] = min(self.index[at], mean + _BONUS / math.sqrt(self.count[at]))

    def find(self, unit: Unit) -> list[float] | None:
        """Return the rows of the same point and level."""
        return self.rows.get(self._at(unit))

    def _at(self, unit: Unit) -> tuple[int, int]:
        across, up = (round(x * (self.side - 1)) for x in unit[:2])
        return across * self.side + up, unit[2]


class Leaf(NamedTuple):
    """A leaf of a tree, its corner and width in finest boxes, and what it was shown."""

    across: int
    up: int
    width: int
    depth: int
    seen: list[float]  # the number of samples and their mean
    rows: list[tuple[Unit, float]]

    @property
    def boxes(self) -> tuple[slice, slice]:
        """The finest boxes that lie in it."""
        return slice(self.across, self.across + self.width), slice(self.up, self.up + self.width)


class Tree:
    """A square that divides where samples are many. `side` finest boxes along each axis."""

    def __init__(self, side: int, inherits: bool = True) -> None:
        self.side, self.inherits, self.leaves = side, inherits, 1
        self.leaf = np.empty((side, side), object)
        self.index, self.depth = np.ones((side, side)), np.zeros((side, side), np.int64)
        self._place(Leaf(0, 0, side, 0, [0.0, 0.0], []))

    def at(self, unit: Unit) -> Leaf:
        """Return the leaf that a point lies in."""
        across, up = (min(int(x * self.side), self.side - 1) for x in unit[:2])
        leaf: Leaf = self.leaf[across, up]
        return leaf

    def learn(self, unit: Unit, reward: float, keep: bool = False) -> None:
        """Show a sample, and keep it in its leaf for replay if asked to. A leaf of depth k divides at 4^k samples."""
        leaf = self.at(unit)
        count, mean = leaf.seen
        leaf.seen[:] = count + 1, (count * mean + reward) / (count + 1)
        if keep:
            leaf.rows.append((unit, reward))
        if leaf.width > 1 and leaf.seen[0] >= 4**leaf.depth:
            self._divide(leaf)
        else:
            self.index[leaf.boxes] = _index(leaf)

    def _divide(self, leaf: Leaf) -> None:
        half = leaf.width // 2
        self.leaves += 3
        for across in (leaf.across, leaf.across + half):
            for up in (leaf.up, leaf.up + half):
                seen = list(leaf.seen) if self.inherits else [0.0, 0.0]
                self._place(Leaf(across, up, half, leaf.depth + 1, seen, []))
        for unit, reward in leaf.rows:
            self.at(unit).rows.append((unit, reward))

    def _place(self, leaf: Leaf) -> None:
        self.leaf[leaf.boxes].fill(leaf)
        self.index[leaf.boxes], self.depth[leaf.boxes] = _index(leaf), leaf.depth


class AdaptiveCells:
    """A tree for each level, and trees of the same kind that hold the rows for replay."""

    def __init__(self, side: int, levels: int, log: History | None = None) -> None:
        self.side = side
        self.trees = [Tree(side) for _ in range(levels)]
        self.stored = [Tree(side, inherits=False) for _ in range(levels)]
        for unit, reward in _samples(log):
            self.stored[unit[2]].learn(unit, reward, keep=True)
        self._order = _z_order(side)

    def options(self) -> tuple[Ints, Floats]:
        """Return the boxes in which leaves of all levels overlap, in Z-order."""
        deepest: Ints = np.max([tree.depth for tree in self.trees], axis=0)
        width, places = self.side >> deepest, np.arange(self.side)
        is_corner = (places[:, None] % width == 0) & (places[None, :] % width == 0)
        corners: Ints = self._order[is_corner.ravel()[self._order]]
        return corners, np.stack([tree.index.ravel()[corners] for tree in self.trees], axis=1)

    def played(self, corner: int, level: int, rng: np.random.Generator) -> Unit:
        """Return a random point of the leaf that the box lies in."""
        leaf = self.trees[level].leaf.flat[corner]
        across, up = rng.random(2) * leaf.width
        return (leaf.across + across) / self.side, (leaf.up + up) / self.side, level

    def learn(self, unit: Unit, reward: float) -> None:
        """Show a sample to the tree of its level."""
        self.trees[unit[2]].learn(unit, reward)

    def find(self, unit: Unit) -> list[float] | None:
        """Return the rows in the leaf of the log's own tree."""
        rows = self.stored[unit[2]].at(unit).rows
        return [rows.pop()[1]] if rows else None

    def leaves(self) -> int:
        """Return how many leaves the trees of all levels have."""
        return sum(tree.leaves for tree in self.trees)


class Effort(NamedTuple):
    """What can be spent in a round. Levels are multiples of ½."""

    levels: tuple[float, ...]
    budget: float
    most: int  # places

    @classmethod
    def of(cls, env: PointEnvironment) -> Effort:
        """Return the effort of an environment."""
        if env.levels is None or env.budget is None or env.max_units is None:
            raise TypeError(f"{type(env).__name__} has no levels of effort")
        return cls(tuple(env.levels), env.budget, env.max_units)


class Played(NamedTuple):
    """What one run gave, after each round."""

    regret: Floats
    used: Floats
    cells: int


def play(
    env: PointEnvironment, log: History, start: str, adaptive: bool, horizon: int, side: int, seed: tuple[int, int]
) -> Played:
    """Play one run, from a log that is ignored, shown at the beginning, or replayed."""
    effort = Effort.of(env)
    levels, kind = np.array(effort.levels), AdaptiveCells if adaptive else FixedCells
    cells = kind(side, len(levels), log if start == "artificial-replay" else None)
    if start == "full-start":
        for unit, reward in _samples(log):
            cells.learn(unit, reward)
    rng = np.random.default_rng([*seed, 1])
    regret, used = np.zeros((2, horizon))
    optimum, lost, read, round_ = _optimum(env, side), 0.0, 0, 0
    while round_ < horizon:
        corners, values = cells.options()
        units = [cells.played(int(corners[box]), level, rng) for box, level in choose(values, effort)]
        found = [(unit, rows.pop()) for unit in units if (rows := cells.find(unit))]
        for unit, reward in found:
            cells.learn(unit, reward)
        read += len(found)
        if not found:
            means = env.means(np.array([unit[:2] for unit in units]), levels[[unit[2] for unit in units]])
            for unit, reward in zip(units, means.tolist(), strict=True):
                cells.learn(unit, reward)
            lost += optimum - float(means.sum())
            regret[round_], used[round_] = lost, read
            round_ += 1
    return Played(regret, used, cells.leaves() if isinstance(cells, AdaptiveCells) else values.size)


def choose(values: Floats, effort: Effort) -> list[tuple[int, int]]:
    """Return the affordable (box, level number) pairs with the largest sum of values.

    The best boxes of each level are enough, with ties to the first.
    """
    levels, budget, most = effort
    best = np.argsort(-values, axis=0, kind="stable")[:most]
    boxes = np.unique(best)
    cost = [round(2.0 * level) for level in levels]
    room = round(2.0 * budget)
    gain = values[boxes] - _LESS * np.array(cost)
    table = np.zeros((len(boxes) + 1, most + 1, room + 1))  # the best sum of the first boxes
    for row in range(len(boxes)):
        table[row + 1] = table[row]
        for level, units in enumerate(cost):
            with_it = table[row, :-1, : room + 1 - units] + gain[row, level]
            np.maximum(table[row + 1, 1:, units:], with_it, out=table[row + 1, 1:, units:])
    chosen, left, places = [], room, most
    for row in range(len(boxes) - 1, -1, -1):
        if table[row + 1, places, left] == table[row, places, left]:
            continue
        for level, units in enumerate(cost):
            before = table[row, places - 1, left - units] if units <= left else -np.inf
            if before + gain[row, level] == table[row + 1, places, left]:
                chosen.append((int(boxes[row]), level))
                left, places = left - units, places - 1
                break
    return chosen[::-1]


def framed_log(env: PointEnvironment, rows: int, share: float | None, seed: tuple[int, int]) -> History:
    """Draw a log: uniform points and levels, or a share of the points in a frame around the square.

    The frame is meant to be four strips. One is the left strip once more, and one is a line. The bad rows come first.
    """
    rng = np.random.default_rng([*seed, 0])
    points = rng.random((rows, 2))
    if share is not None:
        strip = int(rows * share / 4)
        left, right, again, line, rest = np.split(points, [strip, 2 * strip, 3 * strip, 4 * strip])
        left[:, 0] *= 0.1
        right[:, 0] = 0.9 + 0.1 * right[:, 0]
        again[:, 0] *= 0.1
        line[:, 1] = 0.9 + 0.1 * line[:, 0]
        rest[:] = 0.1 + 0.8 * rest
    levels = rng.choice(Effort.of(env).levels, rows)
    return History(points, env.means(points, levels), levels=levels)


def _samples(log: History | None) -> list[tuple[Unit, float]]:
    """Return the rows of a log as units with their rewards."""
    if log is None or log.points is None or log.levels is None:
        return []
    numbers = np.searchsorted(np.unique(log.levels), log.levels)
    rows = zip(log.points.tolist(), numbers.tolist(), log.rewards.tolist(), strict=True)
    return [((across, up, level), reward) for (across, up), level, reward in rows]


def _optimum(env: PointEnvironment, side: int) -> float:
    """Return the reward of the best choice among the points of a grid from edge to edge."""
    effort, axis = Effort.of(env), np.linspace(0.0, 1.0, side)
    points = np.stack([grid.ravel() for grid in np.meshgrid(axis, axis, indexing="ij")], axis=1)
    values = np.stack([env.means(points, np.full(len(points), level)) for level in effort.levels], axis=1)
    return float(sum(values[pair] for pair in choose(values, effort)))


def _index(leaf: Leaf) -> float:
    count, mean = leaf.seen
    return min(1.0, mean + _BONUS / math.sqrt(count)) if count else 1.0


def _z_order(side: int) -> Ints:
    """Return the finest boxes, counted row by row, in Z-order."""
    across, up = np.divmod(np.arange(side * side), side)
    code = np.zeros(side * side, np.int64)
    for bit in range(side.bit_length()):
        code |= (((across >> bit) & 1) << (2 * bit + 1)) | (((up >> bit) & 1) << (2 * bit))
    return np.argsort(code, kind="stable")
