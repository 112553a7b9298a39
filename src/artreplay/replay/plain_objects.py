"""Any object with `propose` and `update`, as policies see it: its units are numbered as they are met."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import numpy as np

from artreplay.algorithms import checked_range
from artreplay.compiling import UNBOUNDED, Floats, Ints, exact_bounds
from artreplay.errors import InvalidAction, InvalidHistory
from artreplay.history import History
from artreplay.replay.adapters import Adapter, Unknown
from artreplay.replay.object_states import generators_of, reseed_generator
from artreplay.replay.own_ledgers import NamedCells
from artreplay.replay.own_methods import described, takes_something
from artreplay.streams import fold


class PlainAdapter(Adapter):
    """Any object with `propose()` and `update(unit, reward)`: units are numbered as they are met.

    An object that offers `check_unit(unit)` or `check_reward(reward)`, which raise a ValueError for what it cannot
    use, is asked about everything that is logged or told before it is shown any of it. What else it may offer:
    `cell(unit)`, which names the cell a unit lies in, and may only divide cells as time goes on; `propose(round)`,
    `update_logged(unit, reward, allowance)`, `close(cell)` and `reopen(cell)`, which are called where they are there.
    """

    counts_rows = False
    needs_memory = True

    def __init__(self, base: Any) -> None:
        super().__init__(copy.deepcopy(base))
        self.proposal = self.proposed = [0]
        self._units: list[Any] = []
        self._numbers: dict[Any, int] = {}
        said = getattr(base, "reward_range", None)
        self.reward_range = (-math.inf, math.inf) if said is None else checked_range(said)
        self._checks_units = callable(getattr(base, "check_unit", None))
        self._checks_rewards = callable(getattr(base, "check_reward", None))
        self._hears_rounds = takes_something(getattr(base, "propose", None))
        self.hears_origin = callable(getattr(base, "update_logged", None))
        self.hears_closing = takes_something(getattr(base, "close", None))
        self._hears_reopening = takes_something(getattr(base, "reopen", None))

    @property
    def rule(self) -> Any:
        """The adapter itself: it numbers what the object says."""
        return self

    # -- what the step calls ------------------------------------------------------------------------------------

    def propose_over(self, ledger: Any, out: list[int], round_: int) -> int:
        """Ask the object, and number what it says."""
        proposal = self.base.propose(int(round_)) if self._hears_rounds else self.base.propose()
        if proposal is None:
            method = described(self.base, "propose")
            raise InvalidAction(f"{method} must return a unit or a list of units, it returned None")
        self.proposes_list = isinstance(proposal, list)
        units = proposal if self.proposes_list else [proposal]
        if not units:
            raise InvalidAction(
                f"{type(self.base).__name__}.propose() must return at least one unit, got an empty list"
            )
        out[:] = [self.number(unit) for unit in units]
        return len(out)

    def update(self, number: int, reward: float) -> None:
        """Show the object what was played and what came of it."""
        self.base.update(self._units[number], float(reward))

    def update_logged(self, number: int, reward: float, allowance: float) -> None:
        """Show the object a row of the log."""
        if self.hears_origin:
            self.base.update_logged(self._units[number], float(reward), allowance)
        else:
            self.base.update(self._units[number], float(reward))

    def value(self, number: int, round_: int, unread: int, fill: float) -> float:
        """What a unit is worth to the object if so many more rows of the log, all with this reward, were shown."""
        return float(self.base.value(self._units[number], int(round_), int(unread), float(fill)))

    value_bounds = exact_bounds

    def note_unread(self, rows: int) -> None:
        """Tell the object how many rows of the log are still to be shown, if it wants to know."""
        if hasattr(self.base, "note_unread"):
            self.base.note_unread(int(rows))

    def cell_closed(self, name: Hashable) -> int:
        """Tell the object that a cell has no unread row left. Returns 1 if it wants to know."""
        if not self.hears_closing:
            return 0
        self.base.close(self._named(name))
        return 1

    def cell_reopened(self, name: Hashable) -> None:
        """Tell the object that a closed cell has unread rows again."""
        if self._hears_reopening:
            self.base.reopen(self._named(name))

    def room(self) -> int:
        """A plain object looks after its own memory."""
        return UNBOUNDED

    def reseed(self, key: Any) -> None:
        """Pass a key on to an object that draws at random, or to the generators it keeps."""
        if hasattr(self.base, "reseed"):
            self.base.reseed(int(key))
            return
        for number, generator in enumerate(generators_of(self.base)):
            reseed_generator(generator, fold(int(key), number))

    # -- units and rewards --------------------------------------------------------------------------------------

    def number(self, unit: Any) -> int:
        """The number of a unit, a new one if it was never seen."""
        key = _hashable(unit)
        try:
            known = self._numbers.get(key)
        except TypeError:
            raise InvalidAction(f"a unit must be hashable, got {type(unit).__name__}") from None
        if known is None:
            if self.certified is not None:
                arms = f"{type(self.base).__name__} chooses among"
                raise InvalidAction(f"{unit!r} is not one of the {len(self.certified.high)} arms that {arms}")
            if self._checks_units:
                _ask(self.base.check_unit, unit)
            known = len(self._units)
            self._units.append(unit)
            self._numbers[key] = known
        return known

    def checked_reward(self, reward: Any) -> float:
        """A reward that was told, as the base sees it."""
        value = super().checked_reward(reward)
        if self._checks_rewards:
            _ask(self.base.check_reward, value)
        return value

    def rewards_of(self, history: History) -> Floats:
        """The rewards of a log, checked."""
        rewards = super().rewards_of(history)
        if self._checks_rewards:
            for value, row in zip(*np.unique(rewards, return_index=True), strict=True):
                try:
                    _ask(self.base.check_reward, float(value))
                except InvalidAction as error:
                    raise InvalidHistory(f"is refused: {error}", what="reward", row=row) from None
        return rewards

    def unit(self, number: int) -> Any:
        """The unit behind a number, as it was first seen."""
        return self._units[number]

    def is_list(self, action: Any) -> bool:
        """Each action says for itself: a plain object may propose a list now and a single unit next."""
        return isinstance(action, list)

    def numbers_of(self, history: History, unknown: Unknown) -> Ints:
        """The number of the unit in each row; an object without `check_unit` is taken to know every unit."""
        if history.points is not None:
            return self._table((history.unit(row) for row in range(len(history))), lambda row: row, unknown)
        present, codes = np.unique(history.codes, return_inverse=True)  # a label may be in no row
        labels = [history.labels[code] for code in present.tolist()]
        table = self._table(labels, lambda place: int(np.argmax(codes == place)), unknown)
        return table[codes] if len(table) else history.codes

    def _table(self, units: Iterable[Any], row_of: Callable[[int], int], unknown: Unknown) -> Ints:
        """The numbers of units, and −1 for those to skip; if all would be skipped, the log is refused.

        `row_of` says where in the log a unit is first.
        """
        numbers: list[int] = []
        refused: InvalidHistory | None = None
        for place, unit in enumerate(units):
            try:
                numbers.append(self.number(unit))
            except InvalidAction as error:
                refused = refused or InvalidHistory(f"is refused: {error}", what="unit", row=row_of(place))
                if unknown == "error":
                    raise refused from None
                numbers.append(-1)
        table = np.array(numbers, dtype=np.int64)
        if refused and (table < 0).all():
            problem = f'{refused.args[0]}, and so is every other: unknown="skip" must leave at least one row of the log'
            raise InvalidHistory(problem, what="unit", row=refused.row)
        return table

    # -- cells --------------------------------------------------------------------------------------------------

    def named_cells(self, units: Ints, rewards: Floats, unread: list[int]) -> NamedCells:
        """The ledger of a log by the object's own `cell(unit)`, or each unit for itself."""
        return NamedCells(units, rewards, self.cell_name, not hasattr(self.base, "cell"), unread)

    def same_cell(self, logged: int, proposed: int) -> bool:
        """Whether two units lie in the same cell now."""
        return self.cell_name(logged) == self.cell_name(proposed)

    def cell_name(self, number: int) -> Hashable:
        """The name of the cell a numbered unit lies in now: the object's own, or the number."""
        name: Hashable = self.base.cell(self._units[number]) if hasattr(self.base, "cell") else number
        return name

    def _named(self, name: Any) -> Any:
        """What the object calls a cell: its own name, or the unit."""
        return name if hasattr(self.base, "cell") else self._units[name]

    def kept_cells(self, names: Iterable[Any]) -> list[Any]:
        """Names of cells in a form that can be saved."""
        return [self._named(name) for name in names]

    def cells_again(self, kept: list[Any]) -> list[Any]:
        """Names of cells that were saved."""
        return kept if hasattr(self.base, "cell") else [self.number(unit) for unit in kept]


def _ask(check: Callable[[Any], Any], value: Any) -> None:
    """Let the object check a value; its own words become the error."""
    try:
        check(value)
    except InvalidAction:
        raise
    except ValueError as error:
        raise InvalidAction(str(error)) from error


def _hashable(unit: Any) -> Any:
    """Points arrive as arrays or lists of floats; equal points are one unit."""
    if isinstance(unit, np.ndarray):
        return tuple(unit.tolist()) if unit.ndim else unit.item()
    return unit.item() if isinstance(unit, np.generic) else unit
