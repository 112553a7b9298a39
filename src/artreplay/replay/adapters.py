"""What policies see of a base: units and cells as numbers, and rewards as the base wants them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, Literal, get_args

import numpy as np

from artreplay.algorithms import Algorithm, ArmAlgorithm, PointAlgorithm, RewardRange, checked_reward, describe_range
from artreplay.algorithms.composition import SplittingAlgorithm
from artreplay.algorithms.selectors import Best, Top
from artreplay.cells.forest import leaves_of
from artreplay.compiling import Floats, Ints
from artreplay.errors import InvalidAction, InvalidFile, InvalidHistory, InvalidParameter, exact
from artreplay.history import Allocation, History
from artreplay.replay.certified import Certified, certified, complaint
from artreplay.replay.ledger import Boxes, Leaves, Table
from artreplay.replay.step import ROUND

Relation = Callable[[Any, Any, Any], bool] | Literal["trivial"] | None
Unknown = Literal["error", "skip"]


class Adapter:
    """The base, as policies see it. `algorithm` is what the step drives."""

    proposal: Any  # where proposals are written
    proposed: Any  # the same memory, read as plain numbers
    proposes_list: bool = False  # whether an action is a list
    expensive: bool = False  # whether a single proposal is so much work that it is worth compiling
    exact: bool = False  # whether the base is marked as exact under Artificial Replay
    hears_origin: bool = False  # whether the base tells rows of the log from online rewards
    is_still: bool = False  # whether looking for the next action changes nothing
    hears_closing: bool = False  # whether the base is told of cells without unread rows
    needs_memory: bool = False  # whether a log is read into memory for replay
    counts_rows: bool = True  # whether the marks of its cells count rows, and are not numbers of rows
    certified: Certified | None = None  # what the step drives where rows are read until the choice is certain
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
    def rule(self) -> Any:
        """The component, which growth may replace, or what stands in for one."""
        raise NotImplementedError

    @property
    def algorithm(self) -> Any:
        """What the step drives: the component, or what reads it until its choice is certain."""
        return self.rule if self.certified is None else self.certified._replace(rule=self.rule)

    def seat(self, algorithm: Any) -> None:
        """Let the step drive the same algorithm over other memory."""
        if self.certified is not None:
            self.certified, algorithm = algorithm, algorithm.rule
        self._seat_rule(algorithm)

    def _seat_rule(self, rule: Any) -> None:
        """Let the base have the same component over other memory."""

    def certify(self, n_arms: int) -> None:
        """Read rows until the choice among so many arms is certain."""
        bottom, top = (float(self.scaled(edge)) for edge in self.reward_range)
        self.certified = certified(self.rule, n_arms, bottom, top)

    def bad_value(self) -> str:
        """The sentence about a value that cannot be."""
        arm = int(self.proposed[0])
        return complaint(self.certified, arm, self.unit(arm), type(self.base).__name__)

    # -- units and actions --------------------------------------------------------------------------------------

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
        """The first `units` entries of the proposal as users know them; `position` says where the policy stands."""
        if not self.proposes_list:
            return self.unit(self.proposed[0])
        return [self.unit(number) for number in self.proposed[:units]]

    def is_list(self, action: Any) -> bool:
        """Whether an action that is told is a list of units, each with a reward of its own."""
        return self.proposes_list

    def kept_proposal(self, units: int) -> list[Any]:
        """The first `units` entries of the proposal in a form that can be saved."""
        return [self.unit(number) for number in self.proposed[:units]]

    def propose_again(self, kept: list[Any], proposes_list: bool) -> None:
        """Restore a proposal that was saved."""
        self.proposal[: len(kept)] = [self.number(unit) for unit in kept]
        self.proposes_list = proposes_list

    # -- cells --------------------------------------------------------------------------------------------------

    def cells(self, units: Ints) -> tuple[Any, int]:
        """The cells of the base, for a ledger, and how many there are now; at least those of these units."""
        raise NotImplementedError

    def cells_of(self, cells: Any, units: Ints) -> Ints:
        """The cell that each unit lies in now."""
        found: Ints = cells.cell[units]
        return found

    def cell_space(self) -> int:
        """How many cells there can be before arrays must grow."""
        return 0

    def parents(self) -> Ints | None:
        """The cell that each cell is a part of, where cells divide."""
        return None

    def same_cell(self, logged: int, proposed: int) -> bool:
        """Whether two units lie in the same cell now."""
        both = np.array([logged, proposed])
        one, other = self.cells_of(self.cells(both)[0], both)
        return bool(one == other)

    def cell_name(self, number: int) -> Any:
        """What the base calls the cell that a unit lies in now."""
        unit = np.array([number])
        cells = self.cells(unit)[0]
        return cells.name_of(int(self.cells_of(cells, unit)[0]))

    def kept_cells(self, names: Iterable[Any]) -> list[Any]:
        """Names of cells in a form that can be saved."""
        return [int(name) for name in names]

    def cells_again(self, kept: list[Any]) -> list[Any]:
        """The names of cells, from the form in which they were saved."""
        return kept

    # -- rewards ------------------------------------------------------------------------------------------------

    def scaled(self, rewards: Any) -> Any:
        """Rewards as the base sees them."""
        return rewards

    def rewards_of(self, history: History) -> Floats:
        """The rewards of a log, checked, as the base sees them."""
        low, high = self.reward_range
        bad = np.flatnonzero(~((history.rewards >= low) & (history.rewards <= high)))
        if len(bad):
            row = int(bad[0])
            problem = f"is {exact(history.rewards[row])}, expected {describe_range(self.reward_range)}"
            raise InvalidHistory(problem, what="reward", row=row)
        return np.asarray(self.scaled(history.rewards), dtype=np.float64)

    def checked_reward(self, reward: Any) -> float:
        """A reward that was told, as the base sees it."""
        return float(self.scaled(checked_reward(reward, self.reward_range)))

    def checked_samples(self, action: Any, reward: Any) -> list[tuple[int, float]]:
        """The units of an action that is a list, with the reward that was told of each."""
        if isinstance(action, Allocation):
            raise InvalidAction(f"the action must be a list of units, got {action!r} by itself: wrap it in a list")
        if not isinstance(action, (list, tuple, np.ndarray)) or len(action) == 0:
            raise InvalidAction(f"the action must be a list of units, got {action!r}")
        if not hasattr(reward, "__len__") or isinstance(reward, (str, bytes)) or len(reward) != len(action):
            raise InvalidAction(f"there must be one reward per unit, got {len(action)} units and rewards {reward!r}")
        numbers = [self.number(unit) for unit in action]
        return list(zip(numbers, [self.checked_reward(value) for value in reward], strict=True))

    def make_room(self, need: int) -> None:
        """Let `need` more samples be shown without an array running over."""


class NamedAdapter(Adapter):
    """An algorithm of this package."""

    base: Algorithm

    def __init__(self, base: Algorithm, is_certified: bool = False) -> None:
        super().__init__(base.duplicate())
        self.proposes_list = base.proposes_list
        self.expensive = base.expensive
        self.exact = base.coupled and is_certified == base.offers_value
        self.hears_closing = callable(getattr(base.component, "close", None))
        self.is_still = isinstance(getattr(base.component, "selector", None), Best | Top) and not self.hears_closing
        self.reward_range = base.reward_range
        self.proposal = np.empty(base.width, np.int64)
        self.proposed = memoryview(self.proposal)
        self._plain = base.reward_range == (0.0, 1.0)

    @property
    def rule(self) -> Any:
        """The component, which growth may replace."""
        return self.base.component

    def _seat_rule(self, rule: Any) -> None:
        self.base.component = rule

    def number(self, unit: Any) -> int:
        """The number of a unit."""
        return self.base.checked_number(unit)

    def unit(self, number: int) -> Any:
        """The unit behind a number."""
        return self.base.unit(number)

    def scaled(self, rewards: Any) -> Any:
        """Rewards of the reward range, in [0, 1]."""
        return self.base.scaled(rewards)

    def checked_reward(self, reward: Any) -> float:
        """A reward that was told, as the base sees it."""
        if type(reward) is float and 0.0 <= reward <= 1.0 and self._plain:
            return reward
        return super().checked_reward(reward)

    def make_room(self, need: int) -> None:
        """Let `need` more samples be shown without an array running over."""
        self.base.make_room(need)


class ArmAdapter(NamedAdapter):
    """An algorithm of this package over finite arms."""

    base: ArmAlgorithm

    def __init__(self, base: ArmAlgorithm, is_certified: bool = False) -> None:
        super().__init__(base, is_certified)
        if is_certified:
            self.certify(base.n_arms)
        # Bound once, because every decision goes through them.
        self._labels = base.arms
        self._number = base.arm_set.number

    def number(self, unit: Any) -> int:
        """The number of an arm."""
        number = self._number(unit)
        return number if number >= 0 else self.base.checked_number(unit)

    def action(self, units: int, position: Any) -> Any:
        """The proposal as labels; written out for speed, because every decision ends here."""
        labels, proposed = self._labels, self.proposed
        return [labels[number] for number in proposed[:units]] if self.proposes_list else labels[proposed[0]]

    def numbers_of(self, history: History, unknown: Unknown) -> Ints:
        """The number of the arm in each row."""
        if history.points is not None and len(history):
            raise InvalidHistory(f"{type(self.base).__name__} needs a log of arms, got one of points")
        table = np.array([self.base.number(label) for label in history.labels], dtype=np.int64)
        unknown_rows = np.isin(history.codes, np.flatnonzero(table < 0))
        if unknown_rows.any() and unknown == "error":
            row = int(np.argmax(unknown_rows))
            raise InvalidHistory(
                f'is not an arm; the arms are {self.base.describe_arms()} (unknown="skip" leaves such rows out)',
                what=f"label {history.unit(row)!r}",
                row=row,
            )
        return table[history.codes] if len(table) else history.codes

    def cells(self, units: Ints) -> tuple[Table, int]:
        """The cell of every arm."""
        return table_of(self.base.cell_of_arms())


class PointAdapter(NamedAdapter):
    """An algorithm of this package over points, or over points at levels."""

    base: PointAlgorithm
    counts_rows = False

    def action(self, units: int, position: Any) -> Any:
        """The points that are played for the proposed boxes in this online round."""
        round_ = int(position[ROUND])
        played = [self.base.unit(number, slot, round_) for slot, number in enumerate(self.proposed[:units])]
        return played if self.proposes_list else played[0]

    def kept_proposal(self, units: int) -> list[Any]:
        """The proposed boxes: they say more than the points that are played in them."""
        return list(self.proposed[:units])

    def propose_again(self, kept: list[Any], proposes_list: bool) -> None:
        """Restore a proposal that was saved."""
        numbers = [int(number) for number in kept]
        if proposes_list != self.proposes_list or not all(self.base.may_propose(number) for number in numbers):
            raise InvalidFile("the pending action in the file does not fit its algorithm")
        self.proposal[: len(numbers)] = numbers

    def numbers_of(self, history: History, unknown: Unknown) -> Ints:
        """The number of the finest box in each row."""
        if history.points is None:
            if len(history) == 0:
                return np.empty(0, np.int64)
            raise InvalidHistory(f"{type(self.base).__name__} needs a log of points, got one of arms")
        return self.base.numbers(history.points, history.levels, skip=unknown == "skip")

    @property
    def _divides(self) -> bool:
        return isinstance(self.algorithm, SplittingAlgorithm)

    def cells(self, units: Ints) -> tuple[Any, int]:
        """The boxes of a grid, or the leaves of trees as they stand."""
        cells = self.base.algorithm.cells
        if self._divides:
            return Leaves(self.base.dim), int(cells.size[0])
        return Boxes(self.base.dim), cells.places * (1 if self.base.levels is None else len(self.base.levels))

    def cells_of(self, cells: Any, units: Ints) -> Ints:
        """The cell that each unit lies in now."""
        own = self.base.algorithm.cells
        found: Ints = leaves_of(own, units) if self._divides else own.locate(units)
        return found

    def same_cell(self, logged: int, proposed: int) -> bool:
        """Whether two units lie in the same cell now; a proposal may be a box that is a cell itself."""
        return bool(self.algorithm.cell_of(logged) == self.algorithm.cell_of(proposed))

    def cell_space(self) -> int:
        """How many cells there can be before arrays must grow."""
        return len(self.base.algorithm.cells.child) if self._divides else 0

    def parents(self) -> Ints | None:
        """The cell that each cell is a part of, where cells divide."""
        cells = self.base.algorithm.cells
        return np.asarray(cells.parent)[: int(cells.size[0])] if self._divides else None


def table_of(cell: Ints, names: Ints | None = None) -> tuple[Table, int]:
    """A table of the cell of every unit, and the number of cells, counting a last one that has no rows."""
    n_cells = int(cell.max(initial=-1)) + 1
    known = np.arange(n_cells) if names is None else names
    return Table(np.ascontiguousarray(cell), np.append(known, -1)), n_cells + 1


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
