"""What policies see of a base: units as numbers, rewards as the base wants them; an adapter knows what they mean."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, get_args

import numpy as np

from artreplay.algorithms import RewardRange, checked_reward, describe_range
from artreplay.compiling import Floats, Ints
from artreplay.errors import InvalidHistory, InvalidParameter, exact
from artreplay.history import History
from artreplay.replay.ledger import Ledger, RelationLedger, arm_ledger
from artreplay.replay.point_ledger import used_flags

Relation = Callable[[Any, Any, Any], bool] | Literal["trivial"] | None
Unknown = Literal["error", "skip"]


class Adapter:
    """The base, as policies see it. `algorithm` is what the step drives: `propose(out)`, `update(number, reward)`."""

    proposal: Any  # where proposals are written
    proposed: Any  # the same memory, read as plain numbers
    several: bool = False  # whether an action is a list
    laborious: bool = False  # whether a single proposal is so much work that it is worth compiling
    reward_range: RewardRange = (-math.inf, math.inf)

    def __init__(self, base: Any) -> None:
        self.base = base

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"proposed": None}  # a view of memory, which is made again

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        plain = isinstance(self.proposal, list)
        self.proposed = self.proposal if plain else memoryview(self.proposal)

    @property
    def algorithm(self) -> Any:
        """The component, or what stands in for one."""
        raise NotImplementedError

    def number(self, unit: Any) -> int:
        """The number of a unit; an error if the base has no such unit."""
        raise NotImplementedError

    def unit(self, number: int) -> Any:
        """The unit behind a number."""
        raise NotImplementedError

    def numbers_of(self, history: History, unknown: Unknown) -> Ints:
        """The number of the unit in each row; −1 for rows that are to be skipped."""
        raise NotImplementedError

    def action(self, units: int, position: Any) -> Any:
        """The first `units` entries of the proposal as people know them, where the policy stands."""
        if not self.several:
            return self.unit(self.proposed[0])
        return [self.unit(number) for number in self.proposed[:units]]

    def is_list(self, action: Any) -> bool:
        """Whether an action that is told is a list of units, each with a reward of its own."""
        return self.several

    def kept_proposal(self, units: int) -> list[Any]:
        """The first `units` entries of the proposal in a form that can be saved."""
        return [self.unit(number) for number in self.proposed[:units]]

    def propose_again(self, kept: list[Any], several: bool) -> None:
        """Put a proposal that was saved back where proposals are."""
        self.proposal[: len(kept)] = [self.number(unit) for unit in kept]
        self.several = several

    def scaled(self, rewards: Any) -> Any:
        """Rewards as the base sees them."""
        return rewards

    def make_room(self, need: int) -> None:
        """Let `need` more samples be shown without an array running over."""

    def ledger(
        self, units: Ints, rewards: Floats, logged: Callable[[int], Any], relation: Relation, used: Ints | None
    ) -> Ledger:
        """The queues of a log under this base's cells, or under a relation.

        `logged(row)` is the unit of a row as it was logged, `used` what the policy kept of the samples it has used.
        """
        if callable(relation):
            flags = used_flags(len(units), used)
            return RelationLedger(units, rewards, self._related(relation, logged), flags)
        return self.cell_ledger(units, rewards, relation == "trivial", used)

    def cell_ledger(self, units: Ints, rewards: Floats, trivial: bool, used: Ints | None) -> Ledger:
        """The queues of a log under this base's cells, or in a single one."""
        cell = np.zeros_like(self.cell_of_units(units)) if trivial else self.cell_of_units(units)
        return arm_ledger(units, rewards, cell, used)

    def cell_of_units(self, units: Ints) -> Ints:
        """The cell of every unit there is, or at least of every unit among these."""
        return np.arange(int(units.max(initial=-1)) + 1, dtype=np.int64)

    def same_cell(self, logged: int, proposed: int) -> bool:
        """Whether two units lie in the same cell now."""
        cells = self.cell_of_units(np.array([logged, proposed]))
        return bool(cells[logged] == cells[proposed])

    def _related(
        self, relation: Callable[[Any, Any, Any], bool], logged: Callable[[int], Any]
    ) -> Callable[[int, int], bool]:
        return lambda row, proposed: relation(logged(row), self.unit(proposed), self.base)

    def rewards_of(self, history: History) -> Floats:
        """The rewards of a log, checked against the reward range, as the base sees them."""
        low, high = self.reward_range
        bad = np.flatnonzero(~((history.rewards >= low) & (history.rewards <= high)))
        if len(bad):
            row = int(bad[0])
            raise InvalidHistory(
                f"reward in row {row} is {exact(history.rewards[row])}, expected {describe_range(self.reward_range)}"
            )
        return np.asarray(self.scaled(history.rewards), dtype=np.float64)

    def checked_reward(self, reward: Any) -> float:
        """A reward that was told, as the base sees it."""
        return float(self.scaled(checked_reward(reward, self.reward_range)))


def checked_relation(relation: Any) -> Relation:
    """A relation is a callable, "trivial" (everything is related), or None for the base's own cells."""
    if relation is None or relation == "trivial" or callable(relation):
        checked: Relation = relation
        return checked
    raise InvalidParameter(f'relation must be a callable, "trivial" or None, got {relation!r}')


def checked_unknown(unknown: Any) -> Unknown:
    """What happens to rows whose label the base lacks."""
    if unknown not in get_args(Unknown):
        raise InvalidParameter(f'unknown must be "error" or "skip", got {unknown!r}')
    checked: Unknown = unknown
    return checked
