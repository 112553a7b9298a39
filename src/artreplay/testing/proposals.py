"""What a base proposes, and which units are related to it."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable

import numpy as np

from artreplay.compiling import is_component
from artreplay.replay import NEEDS_ROOM, Base, Relation, is_certified, rule_of
from artreplay.testing.random_worlds import World

_PROBES, _PROBE_ROWS = 2, 24  # tries, and rows in each, to find a later proposal that shows a difference of states


def shows_later(one: Base, other: Base, world: World) -> bool:
    """Return whether two bases with different states later propose different things when both are shown the same."""
    if is_certified(one.component) or not world.log or is_component(one.thing):
        return True  # for values and components, the difference itself is what matters
    rng = random.Random(len(world.log))
    for _ in range(_PROBES):
        mine, theirs = copy.deepcopy(one), copy.deepcopy(other)
        for _ in range(_PROBE_ROWS):
            first, second = ([side.unit(unit) for unit in proposal_of(side)] for side in (mine, theirs))
            if first != second:
                return True
            unit, reward = rng.choice(world.log)
            for side in (mine, theirs):
                side.component.update(side.checked_number(unit), float(side.scaled(reward)))
    return False


def relation_of(base: Base, relation: Relation | None) -> Callable[[int, int], bool]:
    """Return a function that says whether a logged and a proposed unit, as numbers, are related."""

    def same_cell(logged: int, proposed: int) -> bool:
        """Return whether two units lie in the same cell now. A proposal may be a box that is itself a cell."""
        cells = base.unit_cells(np.array([logged, proposed])).find
        return bool(cells.find(base.component, logged) == cells.find(base.component, proposed))

    if relation is None:
        return same_cell
    return lambda logged, proposed: bool(relation(base.unit(logged), base.unit(proposed), base.thing))


def proposal_of(base: Base) -> list[int]:
    """Return the numbers of the units that the base proposes now."""
    proposal, _ = base.proposal_space()
    count = rule_of(base.component).propose_over(None, proposal, 0)
    if count == NEEDS_ROOM:
        base.make_room(1)
        count = rule_of(base.component).propose_over(None, proposal, 0)
    return [int(number) for number in proposal[:count]]
