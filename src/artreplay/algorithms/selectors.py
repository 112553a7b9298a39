"""Selectors, which choose what to play by the indices. They learn which index has changed, so they never scan all."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from artreplay.compiling import Floats, Ints, compiled

# With unsigned numbers, compiled code need not check whether an index counts from the end of an array.
Numbers = NDArray[np.uint32]


class CellUnits(Protocol):
    """The cells that are chosen from."""

    def unit(self, cell: int) -> int: ...


@compiled
class Tournament(NamedTuple):
    """A binary tree of duels over a row of keys. Its root is the player with the highest key, or the first of equals.

    The keys have one more entry than there are players. It is minus infinity, and stands in the empty leaves.
    """

    winner: Numbers  # node 1 is the root, the children of node i are 2i and 2i + 1

    def best(self) -> int:
        """The number with the highest key."""
        winner: int = self.winner[1]
        return winner

    def repair(self, player: int, key: Floats) -> None:
        """Update the tree after the key of one player changed, in O(log n)."""
        winner = self.winner
        node = (len(winner) // 2 + player) >> 1
        while node > 0:
            left = winner[2 * node]
            right = winner[2 * node + 1]
            better = right if key[right] > key[left] else left
            settled = winner[node] == better and better != player
            winner[node] = better
            if settled:
                break
            node >>= 1


def tournament(key: Floats) -> Tournament:
    """A tournament over all keys but the last, which is minus infinity."""
    n_players = len(key) - 1
    leaves = 1 << max(n_players - 1, 1).bit_length()
    winner = np.zeros(2 * leaves, np.uint32)
    winner[leaves:] = np.minimum(np.arange(leaves), n_players)
    width = leaves
    while width > 1:  # a whole round of duels at a time
        left, right = winner[width : 2 * width : 2], winner[width + 1 : 2 * width : 2]
        winner[width // 2 : width] = np.where(key[right] > key[left], right, left)
        width //= 2
    return Tournament(winner)


@compiled
class Best(NamedTuple):
    """Selects the cell with the highest index. Ties go to the lowest number."""

    tournament: Tournament

    def select(self, cells: CellUnits, value: Floats, out: Ints) -> int:
        """Write the selection, and return how many cells it has."""
        out[0] = cells.unit(self.tournament.winner[1])
        return 1

    def changed(self, cells: CellUnits, cell: int, value: Floats) -> None:
        """Update the selection after an index has changed."""
        self.tournament.repair(cell, value)


def best(value: Floats) -> Best:
    """The selector of one cell, for indices that stand at `value`."""
    return Best(tournament(value))


@compiled
class Top(NamedTuple):
    """Selects the B cells with the highest indices, in the order (−index, number).

    The chosen cells are kept sorted, and the others are in a tournament. A change of an index costs O(B + log n).
    """

    chosen: Ints
    rank: Ints  # of each cell among the chosen, −1 for the others
    key: Floats  # the index of each cell that is not chosen, else minus infinity
    others: Tournament

    def select(self, cells: CellUnits, value: Floats, out: Ints) -> int:
        """Write the selection, and return how many cells it has."""
        for j in range(len(self.chosen)):
            out[j] = cells.unit(self.chosen[j])
        return len(self.chosen)

    def changed(self, cells: CellUnits, cell: int, value: Floats) -> None:
        """Update the selection after an index has changed."""
        last = len(self.chosen) - 1
        if self.rank[cell] < 0:
            self.key[cell] = value[cell]
            self.others.repair(cell, self.key)
        else:
            self.sort_in(cell, value)
        worst = self.chosen[last]
        rival = self.others.best()
        if self.key[rival] > -np.inf and self.ahead(rival, worst, value):
            self.chosen[last] = rival
            self.rank[rival] = last
            self.rank[worst] = -1
            self.key[rival] = -np.inf
            self.others.repair(rival, self.key)
            self.key[worst] = value[worst]
            self.others.repair(worst, self.key)
            self.sort_in(rival, value)

    def ahead(self, one: int, other: int, value: Floats) -> bool:
        """Whether one cell comes before another."""
        ahead: bool = value[one] > value[other] or (value[one] == value[other] and one < other)
        return ahead

    def sort_in(self, cell: int, value: Floats) -> None:
        """Move one of the chosen to where it belongs among them."""
        rank = self.rank[cell]
        last = len(self.chosen) - 1
        while rank < last and self.ahead(self.chosen[rank + 1], cell, value):
            self.put(self.chosen[rank + 1], rank)
            rank += 1
        while rank > 0 and self.ahead(cell, self.chosen[rank - 1], value):
            self.put(self.chosen[rank - 1], rank)
            rank -= 1
        self.put(cell, rank)

    def put(self, cell: int, rank: int) -> None:
        """Let a cell have a rank among the chosen."""
        self.chosen[rank] = cell
        self.rank[cell] = rank


def top(value: Floats, budget: int) -> Top:
    """The selector of `budget` cells, for indices that stand at `value`."""
    n_cells = len(value) - 1
    chosen = np.argsort(-value[:n_cells], kind="stable")[:budget].astype(np.int64)
    rank = np.full(n_cells, -1, np.int64)
    rank[chosen] = np.arange(budget)
    key = value.copy()
    key[chosen] = -np.inf
    return Top(chosen, rank, key, tournament(key))
