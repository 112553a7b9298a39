"""The algorithms that play one point of a continuous space, by a fixed grid or by a tree that divides."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from artreplay.algorithms.algorithm import RewardRange
from artreplay.algorithms.bonus import Bonus, Theory, practical
from artreplay.algorithms.index_over_boxes import IndexedGrid, IndexedTree, Split
from artreplay.algorithms.leaves import BestLeaf, champions
from artreplay.algorithms.point_algorithms import Play
from artreplay.algorithms.selectors import best
from artreplay.algorithms.sharp_tree import sharp_tree
from artreplay.cells.boxes import depth_of
from artreplay.errors import InvalidParameter
from artreplay.parameters import Count, Number, Seed, Width, checked

GridWidth = Annotated[
    float, Number("lie in [2^-52, 1], as a share of the side of the space", lambda width: 2.0**-52 <= width <= 1.0)
]
TreeRule = Literal["mean", "sharp"]

_FIRST_SAMPLES = 256  # samples that a new sharp tree has space for
_OF_SHARP_TREES = ("inheritance.", "whole.index.tally.")
_DEFAULT_BITS = 30  # bits of the finest boxes of a tree without `epsilon`, over all axes


class GridUCB(IndexedGrid):
    """Play the centre of the grid box with the highest index; index ← min(index, mean + b(n)).

    Parameters
    ----------
    dim
        The number of coordinates of a point.
    horizon
        The number of rounds to come. The order of magnitude is enough.
    cells_per_side
        The number of boxes along each axis, by default ⌈T^{1/(d+2)}⌉, where T is the horizon and d is `dim`.
    gamma
        The largest width of a box, as a share of the side of the space, in place of `cells_per_side`.
    bonus
        How far an index lies above the mean: one of `ar.bonus`, or a function of the number of samples.
    box
        The space, as one pair (low, high) for each axis. By default it is [0, 1] along each axis.
    play
        The point that is played in a box: its "centre", or a random one with "uniform".
    seed
        The seed of everything it draws at random.
    reward_range
        The lowest and the highest reward there can be.

    >>> import artreplay as ar
    >>> history = ar.History([[0.1], [0.2], [0.9]], [0, 0, 1])
    >>> policy = ar.ArtificialReplay(ar.GridUCB(1, horizon=1000, cells_per_side=2), history)
    >>> policy.ask(), policy.used
    ((0.75,), 3)
    """

    summary = "highest index among the boxes of a grid"

    @checked
    def __init__(
        self,
        dim: Count,
        horizon: Count,
        cells_per_side: Count | None = None,
        gamma: GridWidth | None = None,
        *,
        bonus: Bonus = practical(0.1),  # noqa: B008 - a frozen value
        box: Any = None,
        play: Play = "centre",
        seed: Seed = 0,
        reward_range: RewardRange = (0.0, 1.0),
    ) -> None:
        self.horizon = horizon
        side = side_of(dim, horizon, cells_per_side, gamma)
        super().__init__(box, dim, side, play, seed, reward_range)
        self.cells_per_side, self.gamma = side, None
        cells, index = self._cells_and_index(self._bound_of(bonus, side**dim, _scale))
        self._choose_by(best(index.value), cells, index)


class TreeUCB(IndexedTree):
    """Play the centre of the leaf with the highest index, in a tree whose leaves split as they get samples.

    A leaf splits into 2^d halves, where d is `dim`. The new leaves inherit its count, sum and index.

    Parameters
    ----------
    dim
        The number of coordinates of a point.
    horizon
        The number of rounds to come. The order of magnitude is enough.
    epsilon
        The least width of a box, as a share of the side of the space.
    rule
        "mean", or "sharp" for an index that is wider where rewards vary more. A sharp tree keeps all samples, so that
        new leaves start from those that lie in them, and plays the half of the best leaf with the fewest samples. Its
        regret is mostly lower, from a small part of the log. It takes no `bonus` and no `split`.
    split
        When a leaf splits: with "samples" once a leaf of depth k has 4^k of them, or with "confidence" once its bonus
        is narrower than the leaf.
    bonus
        How far an index lies above the mean: one of `ar.bonus`, or a function of the number of samples.
    box
        The space, as one pair (low, high) for each axis. By default it is [0, 1] along each axis.
    play
        The point that is played in a box: its "centre", or a random one with "uniform".
    seed
        The seed of everything it draws at random.
    reward_range
        The lowest and the highest reward there can be.

    >>> import artreplay as ar
    >>> policy = ar.Ignorant(ar.TreeUCB(2, horizon=1000))
    >>> policy.ask()
    (0.5, 0.5)
    >>> policy.tell((0.5, 0.5), 1.0)
    >>> policy.ask(), len(policy.cells())
    ((0.25, 0.25), 4)
    """

    summary = "highest index among the leaves of a tree"

    @checked
    def __init__(
        self,
        dim: Count,
        horizon: Count,
        epsilon: Width | None = None,
        rule: TreeRule = "mean",
        *,
        split: Split = "samples",
        bonus: Bonus = practical(0.1),  # noqa: B008 - a frozen value
        box: Any = None,
        play: Play = "centre",
        seed: Seed = 0,
        reward_range: RewardRange = (0.0, 1.0),
    ) -> None:
        self.horizon = horizon
        if rule == "sharp" and (split != "samples" or bonus != practical(0.1)):
            raise InvalidParameter('bonus and split must be left out with rule="sharp", which has its own')
        self.rule: TreeRule = rule
        depth = max(_DEFAULT_BITS // dim, 1) if epsilon is None else depth_of(epsilon)
        super().__init__(box, dim, 1 << depth, play, seed, reward_range)
        self.epsilon = epsilon
        cells, index = self._cells_and_index(self._bound_of(bonus, None, _scale))
        selector = BestLeaf(champions(cells, scattered=False))
        self._choose_by(selector, cells, index, split)
        if rule == "sharp":
            self.component = sharp_tree(cells, selector, index.value, _FIRST_SAMPLES)

    def allow_drift(self) -> None:
        """Let rows of a log have allowances for drift, unless the tree is sharp."""
        if self.rule == "sharp":
            raise InvalidParameter(
                'drift must be left out with rule="sharp", which treats rows of the log like online rewards. Use '
                'rule="mean"'
            )
        super().allow_drift()

    def grows(self, array: str) -> bool:
        """Whether an array of the component can become longer. Those of samples and halves can too."""
        return super().grows(array) or (self.rule == "sharp" and array.startswith(_OF_SHARP_TREES))

    def is_sound(self) -> bool:
        """Whether a component from a file can be a state of this algorithm."""
        if self.rule == "sharp":
            tally, inheritance, nodes = (
                self.algorithm.index.tally,
                self.component.inheritance,
                len(self.algorithm.cells.child),
            )
            halves = nodes * tally.fan == len(tally.half_counts) == len(tally.half_totals)
            if not (halves and len(tally.squares) == len(inheritance.first) == nodes and inheritance.is_sound()):
                return False
        return super().is_sound()


def _scale(theory: Theory, horizon: int) -> float:
    """b(n)²·n of the paper's 2√((2 log(T/δ) + 2L)/n)."""
    return 4.0 * (theory.noise(horizon) + 2.0 * theory.lipschitz)


def side_of(dim: int, horizon: int, cells_per_side: int | None, gamma: float | None) -> int:
    """How many boxes a grid has along each axis."""
    if cells_per_side is not None and gamma is not None:
        raise InvalidParameter("only one of cells_per_side and gamma must be given, got both")
    if cells_per_side is not None:
        return cells_per_side
    if gamma is None:
        return math.ceil(round(math.pow(horizon, 1.0 / (dim + 2)), 9))  # 4096^(1/4) is 8, not a little more
    return math.ceil(round(1.0 / gamma, 9))
