"""Selects several boxes, each at a level, within a budget. Indices give candidates, and a solver chooses among them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from artreplay.algorithms.budget import Candidates, ExactChoice, GreedyChoice
from artreplay.algorithms.leaves import Champions
from artreplay.algorithms.selectors import Tournament, tournament
from artreplay.cells import Forest, GridCells
from artreplay.cells.boxes import WITHIN
from artreplay.compiling import Floats, Ints, compiled


@compiled
class Contest(NamedTuple):
    """The boxes of a grid, level by level, in one tournament. The root of each level's subtree is its best box.

    Its keys are the indices, or minus infinity for boxes that are taken out.
    """

    key: Floats
    boxes: Tournament
    first_root: int  # node of the first level; the others follow

    def changed(self, cells: GridCells, cell: int, value: Floats) -> None:
        """Update the choice after an index has changed."""
        self.key[cell] = value[cell]
        self.boxes.repair(cell, self.key)

    def leader(self, cells: GridCells, level: int) -> int:
        """The best cell of a level that is not taken out, or −1 if there is none."""
        cell = int(self.boxes.winner[self.first_root + level])
        return cell if self.key[cell] > -np.inf else -1

    def take_out(self, cells: GridCells, cell: int, value: Floats) -> None:
        """Leave a cell out."""
        self.key[cell] = -np.inf
        self.boxes.repair(cell, self.key)

    def put_back(self, cells: GridCells, cell: int, value: Floats) -> None:
        """Undo `take_out`."""
        self.changed(cells, cell, value)

    def place(self, cells: GridCells, cell: int) -> int:
        """The place of a cell's box in Z-order, the fixed order of boxes."""
        place: int = cell % cells.places
        return place

    def box(self, cells: GridCells, level: int, rank: int) -> int:
        """The box at a place in Z-order."""
        box: int = cells.unit(level * cells.places + rank)
        return box


def contest(value: Floats, places: int, levels: int) -> Contest:
    """Make a contest over cells with these indices, which has `places` cells for each level."""
    padded = 1 << (levels - 1).bit_length() if levels > 1 else 1
    key = np.full(padded * places + 1, -np.inf)
    key[: len(value) - 1] = value[:-1]
    boxes = tournament(key)
    return Contest(key, boxes, (len(boxes.winner) // 2) // places)


@compiled(scratch=("candidates", "stale", "taken", "out_level", "out_rank"))
class BudgetedChoice(NamedTuple):
    """Takes the best boxes of each level as candidates, and lets a solver choose among them.

    Each level has as many candidates as boxes can be chosen in one round. A level looks for its candidates again only
    after one of its indices has changed.
    """

    ranking: Any  # `Contest`, `Champions`, `MergedLeaves` or `BestOfParts`
    solver: Any
    active: Ints  # the levels above 0; the solver knows each by its place in this array
    candidates: Candidates
    stale: Ints  # 1 for each level whose candidates are out of date
    taken: Ints
    out_level: Ints
    out_rank: Ints

    def select(self, cells: GridCells | Forest, value: Floats, out: Ints) -> int:
        """Write the selection, and return how many cells it has."""
        for place in range(len(self.active)):
            if self.stale[place] == 1:
                self.stale[place] = 0
                self.find_candidates(cells, value, place)
        units: int = self.solver.choose(self.candidates, self.out_level, self.out_rank)
        for j in range(units):
            out[j] = self.ranking.box(cells, self.active[self.out_level[j]], self.out_rank[j])
        return units

    def locate(self, cells: GridCells | Forest, unit: int) -> int:
        """The leaf a unit lies in."""
        leaf: int = cells.locate(unit)
        return leaf

    def find_candidates(self, cells: GridCells | Forest, value: Floats, place: int) -> None:
        """Find the best boxes of one level. It takes out the best one repeatedly, then puts all back."""
        most = len(self.taken)
        count = 0
        cell = self.ranking.leader(cells, self.active[place])
        while cell >= 0 and count < most:
            self.candidates.value[place, count] = value[cell]
            self.candidates.rank[place, count] = self.ranking.place(cells, cell)
            self.taken[count] = cell
            self.ranking.take_out(cells, cell, value)
            count += 1
            cell = self.ranking.leader(cells, self.active[place])
        self.candidates.size[place] = count
        for j in range(count):
            self.ranking.put_back(cells, self.taken[j], value)

    def changed(self, cells: GridCells | Forest, cell: int, value: Floats) -> None:
        """Update the choice after an index has changed."""
        self.ranking.changed(cells, cell, value)
        self.mark(cells.level(cell))

    def divided(self, cells: GridCells | Forest, cell: int, value: Floats) -> None:
        """Update the choice after a cell was replaced by smaller ones. `MergedLeaves` then has others at each level."""
        self.ranking.divided(cells, cell, value)
        for place in range(len(self.active)):
            self.stale[place] = 1

    def mark(self, level: int) -> None:
        """Mark the candidates of a level as out of date."""
        for place in range(len(self.active)):
            if self.active[place] == level:
                self.stale[place] = 1

    def enlarged(self, nodes: int) -> BudgetedChoice:
        """Return the same with space for this many nodes."""
        return self._replace(ranking=self.ranking.enlarged(nodes))


def budgeted_choice(ranking: Any, solver: GreedyChoice | ExactChoice, active: Ints, most: int) -> BudgetedChoice:
    """Make a selector of at most `most` boxes."""
    levels = len(active)
    candidates = Candidates(np.zeros((levels, most)), np.zeros((levels, most), np.int64), np.zeros(levels, np.int64))
    places = [np.zeros(most, np.int64) for _ in range(3)]
    return BudgetedChoice(ranking, solver, active, candidates, np.ones(levels, np.int64), *places)


@compiled(scratch=("hidden",))
class PaperChoice(NamedTuple):
    """The paper's rule with the greedy solver.

    It takes leaves in the order of index per level, except those that overlap one taken before. Artificial Replay is
    not exact with it, because a sample at another level can split a leaf that overlaps, and so free a part of it.
    """

    champions: Champions
    active: Ints
    level: Floats  # of each active level: the level of effort
    cost: Floats  # of each active level: its cost, in the unit of the budget
    budget: float
    most: int
    hidden: Ints

    def select(self, cells: Forest, value: Floats, out: Ints) -> int:
        """Write the selection, and return how many cells it has."""
        left = self.budget
        chosen = 0
        n_hidden = 0
        while chosen < self.most:
            best = self.best_fitting(cells, value, left)
            if best < 0:
                break
            out[chosen] = cells.box[best]
            chosen += 1
            for place in range(len(self.active)):
                node = self.overlapping(cells, best, self.active[place])
                if self.active[place] == cells.level(best):
                    left -= self.cost[place]
                if self.champions.leaf[node] >= 0:
                    self.champions.hide(cells, node, value)
                    self.hidden[n_hidden] = node
                    n_hidden += 1
        for j in range(n_hidden):
            self.champions.show(cells, self.hidden[n_hidden - 1 - j], value)
        return chosen

    def locate(self, cells: Forest, unit: int) -> int:
        """The leaf a unit lies in."""
        leaf: int = cells.locate(unit)
        return leaf

    def best_fitting(self, cells: Forest, value: Floats, left: float) -> int:
        """The leaf with the highest index per level that the rest of the budget can pay for, or −1 if there is none."""
        best = -1
        best_rate = 0.0
        for place in range(len(self.active)):
            leaf = self.champions.leaf[self.active[place]]
            if leaf < 0 or self.cost[place] > left:
                continue
            rate = value[leaf] / self.level[place]
            lower = best >= 0 and self.champions.rank[leaf] < self.champions.rank[best]
            if best < 0 or rate > best_rate or (rate == best_rate and lower):
                best = leaf
                best_rate = rate
        return best

    def overlapping(self, cells: Forest, leaf: int, level: int) -> int:
        """The smallest node of a level's tree that contains a leaf of another level, or is the same box."""
        code = cells.box[leaf] & WITHIN
        depth = cells.depth[leaf]
        node = level
        while cells.child[node] >= 0 and cells.depth[node] < depth:
            at = cells.dim * (depth - cells.depth[node] - 1)
            node = cells.child[node] + ((code >> at) & ((1 << cells.dim) - 1))
        return node

    def changed(self, cells: Forest, cell: int, value: Floats) -> None:
        """Update the choice after an index has changed."""
        self.champions.changed(cells, cell, value)

    def divided(self, cells: Forest, cell: int, value: Floats) -> None:
        """Update the choice after a cell was replaced by smaller ones."""
        self.champions.divided(cells, cell, value)

    def enlarged(self, nodes: int) -> PaperChoice:
        """Return the same with space for this many nodes."""
        return self._replace(champions=self.champions.enlarged(nodes))
