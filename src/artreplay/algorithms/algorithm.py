"""The base classes of the named algorithms, which check parameters and hold one component as their state."""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any, Self, cast

import numpy as np

from artreplay.algorithms.bonus import KL, ROUNDS_PER_CELL, Bonus, BonusScale, BonusTable, bound_of
from artreplay.algorithms.bounds import FIXED, TableBound
from artreplay.algorithms.hearing_contexts import HearsContexts, Repeated
from artreplay.algorithms.open_index import Available, restricted
from artreplay.algorithms.segments import segment_bound
from artreplay.algorithms.tally import Tally
from artreplay.cells import ArmSet
from artreplay.cells.unit_cells import UnitCells, table_of
from artreplay.compiling import Floats, Growers, Ints, copied, is_component, state_of, views, with_room
from artreplay.errors import InvalidAction, InvalidHistory, InvalidParameter, exact
from artreplay.history import Action, History, Label, Unit, contexts_of
from artreplay.parameters import checked_seed
from artreplay.streams import fold

RewardRange = tuple[float, float]

MAX_UNITS = 10_000_000  # arms in all segments together


class Algorithm(HearsContexts):
    """The base class of all algorithms of artreplay.

    An algorithm learns from samples, which are rows of a log and online rewards. `propose()` returns a unit (an arm, a
    point, or a point with a level), or a list of units if a round plays several. `update(unit, reward)` shows it one
    sample. A policy works on a copy of its own, and uses `component` directly, whose units are numbers. An algorithm
    has all that `replay/bases.py` asks of a base.
    """

    exact: bool = False  # whether Artificial Replay makes the same decisions as Full Start
    summary: str = ""  # a few words for the list of algorithms
    proposes_list: bool = False  # whether a proposal is a list
    expensive: bool = False  # whether a single proposal takes so long that compiling pays
    horizon: int  # the rounds to come, where an index depends on them
    # Rows of the log that are added to the horizon, of each segment if there are any; None until a policy has counted
    # them.
    log_rows: int | list[int] | None = None
    choices: int | None = None  # the number of cells it chooses among, if it is fixed
    bonus: Bonus = None
    offers_value: bool = False  # whether its arms have values that unread rows can be bounded for
    table: BonusTable | None = None  # the table of a user's own bonus
    reads_whole_log: bool = False  # whether every policy shows it the whole log first, so that any rule is exact
    wants_totals: bool = False  # whether a new policy must tell it what the arms of its log earned
    counts_rows: bool = True  # whether the mark of a cell counts its rows, rather than being the number of a row
    component: Any

    def __init__(self, reward_range: RewardRange, bounded: bool = True) -> None:
        self.reward_range = checked_range(reward_range)
        if bounded and self.reward_range[1] == math.inf:
            raise InvalidParameter(
                f"reward_range must be finite for {type(self).__name__}, got {reward_range!r}. Use PsiUCB with "
                "sub_gaussian for unbounded rewards"
            )

    def allow_drift(self) -> None:
        """Let rows of a log have allowances for drift. Call this before anything is shown."""
        raise InvalidParameter(
            f"drift must be left out for {type(self).__name__}, which has no place for an allowance. It is for KLUCB, "
            "MonUCB, PsiUCB, TopUCB, grids, trees and allocations"
        )

    def _bound_of(self, bonus: Bonus, cells: int | None, scale: BonusScale) -> Any:
        """Keep a bonus and the number of cells to choose among, and return the compiled part of the bonus."""
        self.bonus, self.choices = bonus, cells
        bound, self.table = bound_of(bonus, self.horizon, cells, scale)
        return bound if self.contexts is None or not self.counts_log else self._part_for_rows(0)

    @property
    def draws(self) -> bool:
        """Whether it chooses at random."""
        return hasattr(self, "seed")

    @property
    def counts_log(self) -> bool:
        """Whether a policy adds the rows of its log to the horizon, which gives the T that the index depends on."""
        return isinstance(self.bonus, KL)

    def count_log(self, rows: int | list[int]) -> None:
        """Add the rows of a log to the horizon, if the algorithm does that. Call this before anything is shown."""
        if self.counts_log:
            self.log_rows = rows
            self.component = _with_part(self.component, self._part_for_rows(rows))

    def _part_for_rows(self, rows: int | list[int]) -> Any:
        """The part of the component that depends on T, of all segments together; `rows` of the log."""
        if self.contexts is None:
            return self._part_for(self.horizon + cast(int, rows))
        of_segments = rows if isinstance(rows, list) else [rows] * self.n_segments
        return self._joined([self._part_for(self.horizon + each) for each in of_segments])

    def _joined(self, parts: list[Any]) -> Any:
        """One part for all segments, made of one for each."""
        return segment_bound(parts)

    def _part_for(self, total: int) -> Any:
        """Make the part of the component that depends on T."""
        return self.bonus.bound(total, self.choices)

    def why_horizon_is_short(self, rows: int) -> str | None:
        """Say what happens if the horizon is too short for the arms or for the rows of the log, None if it is not."""
        return None

    @property
    def width(self) -> int:
        """The largest number of units in one proposal."""
        return 1

    def propose(self) -> Action:
        """Return the unit to play next, or the list of units."""
        out = np.empty(self.width, np.int64)
        units = self.component.propose(out)
        proposed = [self.unit(number, slot) for slot, number in enumerate(out[:units].tolist())]
        return proposed if self.proposes_list else proposed[0]

    def update(self, unit: object, reward: float) -> None:
        """Learn from an online reward.

        Parameters
        ----------
        unit
            The unit that was played.
        reward
            The reward it gave.
        """
        sample = self._checked_sample(unit, reward)
        self.component.update(*sample)

    def update_logged(self, unit: object, reward: float) -> None:
        """Learn from a row of a log. Most algorithms treat it like an online reward.

        Parameters
        ----------
        unit
            The unit of the row.
        reward
            The reward of the row.
        """
        sample = self._checked_sample(unit, reward)
        self.component.update_logged(*sample, 0.0)

    def _checked_sample(self, unit: object, reward: float) -> tuple[int, float]:
        number = self.checked_number(unit)
        value = self.scaled(checked_reward(reward, self.reward_range))
        self.make_room(1)
        return number, value

    # -- what policies use --------------------------------------------------------------------------------------

    @property
    def reads_cell_before_tell(self) -> bool:
        """Whether a policy shows the unread rows of a cell before an online reward of that cell."""
        return True

    def take_totals(self, counts: Ints, totals: Floats) -> None:
        """Learn what the arms of a log earned. A policy calls this once, if `wants_totals` is true."""

    def log_changed(self) -> None:
        """Note that the log has grown, or that the policy has another one."""

    def proposal_space(self) -> tuple[Any, Any]:
        """Make an array for proposals. Returns it and a view of the same memory, whose entries are plain numbers."""
        proposal = np.empty(self.width, np.int64)
        return proposal, memoryview(cast(Any, proposal))

    def action(self, proposed: Ints, units: int, round_: int) -> Action:
        """The action to play in this online round, for the first `units` entries of a proposal."""
        if not self.proposes_list:
            return self.unit(proposed[0], 0, round_)
        return [self.unit(number, slot, round_) for slot, number in enumerate(proposed[:units])]

    def is_list(self, action: object) -> bool:
        """Whether an action is a list of units, each with a reward of its own."""
        return self.proposes_list

    def checked_number(self, unit: object) -> int:
        """Return the number of a unit, or raise an error if there is no such unit."""
        raise NotImplementedError

    def may_propose(self, number: int) -> bool:
        """Whether a unit with this number can be proposed."""
        raise NotImplementedError

    def numbers_of(self, history: History, skip: bool) -> Ints:
        """Return the number of the unit in each row. A row whose unit has none is an error, or gets −1 with `skip`."""
        raise NotImplementedError

    def checked_reward(self, reward: object) -> float:
        """Check an online reward, and return it as the component sees it."""
        if type(reward) is float and 0.0 <= reward <= 1.0 and self.reward_range == (0.0, 1.0):
            return reward
        return float(self.scaled(checked_reward(reward, self.reward_range)))

    def rewards_of(self, history: History) -> Floats:
        """Check the rewards of a log, and return them as the component sees them."""
        return np.asarray(self.scaled(checked_rewards(history, self.reward_range)), dtype=np.float64)

    def unit_cells(self, units: Ints) -> UnitCells:
        """The present cells, or at least those of these units."""
        raise NotImplementedError

    def unit(self, number: int, slot: int = 0, round_: int = 0) -> Unit:
        """The unit to play for a proposed number. A random point depends on the round and the place in the action."""
        raise NotImplementedError

    def make_room(self, need: int) -> None:
        """Make arrays larger if needed, so that `need` more samples fit."""
        if self.component.room() < need:
            self.component = with_room(self.component, need, self.growers())

    def growers(self) -> Growers:
        """Functions that enlarge the parts that cannot grow by themselves, by the classes of the parts."""
        return {} if self.table is None else {TableBound: self.table.grown}

    def grows(self, array: str) -> bool:
        """Whether an array of the component can become longer."""
        return array.endswith("bound.radius")

    def is_sound(self) -> bool:
        """Whether a component from a file can be a state of this algorithm. Its arrays have the right shapes."""
        return True

    def reseed(self, key: int) -> None:
        """Give a randomised algorithm another stream of random draws. Other algorithms do not change.

        Parameters
        ----------
        key
            The seed of the stream.
        """
        self.component.reseed(np.uint64(fold(checked_seed(key))))

    def duplicate(self) -> Self:
        """Copy the algorithm. The copy has a state of its own."""
        new = copy.copy(self)
        new.component = copied(self.component)
        return new

    # -- while decisions are open -------------------------------------------------------------------------------

    follows = False  # whether the result of `with_open` learns what the algorithm learns, which a copy does not

    def with_open(self, units: Iterable[int]) -> Any:
        """Return an object that chooses while these units are open. The algorithm itself does not change.

        It is a copy that is shown the lowest reward for each of them, in the order of the decisions. If there is no
        lowest reward, open units make no difference.
        """
        answer = self.duplicate()
        answer.count_open(units)
        return answer

    def count_open(self, units: Iterable[int]) -> None:
        """Count further units as open, by showing the lowest reward for each."""
        if self.reward_range[0] == -math.inf:
            return
        numbers = list(units)
        self.make_room(len(numbers) + self.width)
        component = views(self.component)
        for number in numbers:
            component.update(number, 0.0)

    def uncount_open(self, units: Iterable[int]) -> bool:
        """Stop counting these units as open. Returns whether that is possible, which it is not for a copy."""
        return False

    def propose_among(self, out: Ints, round_: int, available: Available | None) -> int:
        """Propose among the available arms in a round. Writes their numbers, and returns how many there are."""
        if available is not None:
            raise InvalidParameter(f"available must be left out for {type(self).__name__}, which has no arms")
        if hasattr(self.component, "proposals"):  # a random draw depends on the number of the round
            self.component.proposals[0] = round_
        proposed: int = views(self.component).propose_over(None, out, round_)
        if proposed < 0:  # the component must compute something first
            self.make_room(1)
            proposed = views(self.component).propose_over(None, out, round_)
        return proposed

    def state(self) -> dict[str, Any]:
        """What the algorithm has learnt, as arrays. They are equal if and only if two algorithms learnt the same."""
        return state_of(self.component)

    @property
    def scales(self) -> bool:
        """Whether rewards are rescaled before they reach the component."""
        return self.reward_range not in ((0.0, 1.0), (-math.inf, math.inf))

    def scaled(self, rewards: Any) -> Any:
        """Scale rewards from the reward range to [0, 1], as the component sees them, unless they are unbounded."""
        low, high = self.reward_range
        return (rewards - low) / (high - low) if self.scales else rewards

    def unscaled(self, values: Any) -> Any:
        """Scale values from [0, 1] to the reward range. This is the inverse of `scaled`."""
        low, high = self.reward_range
        return low + values * (high - low) if self.scales else values

    def scaled_sums(self, sums: Floats, samples: Ints) -> Floats:
        """Scale sums of `samples` rewards as the component sees them. Rounding cannot take a mean out of its range."""
        if self.reward_range[1] == math.inf:
            return sums
        low, high = self.reward_range
        sums_in_unit = (sums - low * samples) / (high - low) if self.scales else sums
        within: Floats = np.clip(sums_in_unit, 0.0, samples)
        return within

    def parameters(self) -> dict[str, Any]:
        """The parameters that the algorithm was made with, by name, as far as it keeps them under these names."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters if hasattr(self, name)}

    def __repr__(self) -> str:
        settings = {name: value for name, value in self.parameters().items() if value is not None}
        shown = ", ".join(f"{name}={_short(value)}" for name, value in settings.items())
        return f"{type(self).__name__}({shown})"


class ArmAlgorithm(Algorithm):
    """The base class of algorithms over finitely many arms."""

    takes_totals: bool = False  # whether it can learn many rows of an arm from one count and one sum

    def __init__(
        self, n_arms: int | None, arms: Iterable[Label] | None, reward_range: RewardRange, bounded: bool = True
    ) -> None:
        self.arm_set = ArmSet(n_arms, arms)
        self.unit_labels = self.arm_set.labels
        super().__init__(reward_range, bounded)

    @property
    def n_arms(self) -> int:
        """How many arms there are."""
        return len(self.arm_set)

    @property
    def arms(self) -> Sequence[Label]:
        """The labels of the arms, or 0..n−1 if they have none."""
        return self.arm_set.labels

    def number(self, label: object) -> int:
        """Return the number of the arm with this label, or −1 if there is no such arm."""
        return self.arm_set.number(label)

    def checked_number(self, unit: object) -> int:
        """Return the number of an arm, or raise an error if there is no such arm."""
        number = self.number(unit)
        if number < 0:
            raise InvalidAction(f"{unit!r} is not an arm. The arms are {self.describe_arms()}")
        return number

    def unit(self, number: int, slot: int = 0, round_: int = 0) -> Unit:
        """The label of an arm, which is a unit in each segment."""
        return self.unit_labels[number]

    @property
    def n_units(self) -> int:
        """How many arms there are, in all segments together."""
        return self.n_arms * self.n_segments

    def unit_name(self, number: int) -> Any:
        """What a unit is called: its arm; with segments a tuple of the arm and the values of the segment."""
        if self.contexts is None or not self.contexts.segments:
            return self.unit(number)
        return self.unit(number), *self.contexts.segment_values(number % self.n_segments)

    def hear(self, contexts: Any) -> None:
        """Be asked and told with contexts from now on; before anything else is made."""
        self.contexts = contexts_of(contexts)
        self.unit_labels = Repeated(self.arm_set.labels, self.n_segments)
        self.takes_totals = False

    def hear_segments(self, contexts: Any) -> None:
        """Be one algorithm for each segment that these contexts make, if there are any; before anything is made."""
        if contexts is None:
            return
        self.hear(contexts)
        name = type(self).__name__
        if self.contexts is None or not self.contexts.segments:
            raise InvalidParameter(
                f"must make segments for {name}: Contexts.from_history(log, segments=[...]). ContextRegression uses "
                "all columns",
                parameter="contexts",
            )
        if self.n_units > MAX_UNITS:
            raise InvalidParameter(
                f"must make at most {MAX_UNITS:,} cells of {self.n_arms:,} arms, got {self.n_segments:,} segments",
                parameter="contexts",
            )
        if self.reward_range[1] == math.inf:
            raise InvalidParameter(f"must be finite for {name} with contexts", parameter="reward_range")

    def action(self, proposed: Ints, units: int, round_: int) -> Action:
        """The labels of a proposal. This is written out for speed, because every decision comes through here."""
        labels = self.unit_labels
        return [labels[number] for number in proposed[:units]] if self.proposes_list else labels[proposed[0]]

    def may_propose(self, number: int) -> bool:
        """Whether this is the number of an arm, in a segment if there are any."""
        return 0 <= number < self.n_units

    def numbers_of(self, history: History, skip: bool) -> Ints:
        """Return the number of the arm in each row. Other labels are an error, or get −1 with `skip`."""
        if history.points is not None and len(history):
            raise InvalidHistory(f"{type(self).__name__} needs a log of arms, got one of points")
        table = np.array([self.number(label) for label in history.labels], dtype=np.int64)
        unknown_rows = np.isin(history.codes, np.flatnonzero(table < 0))
        if unknown_rows.any() and not skip:
            row = int(np.argmax(unknown_rows))
            unknown = InvalidHistory(
                f"is not an arm. The arms are {self.describe_arms()}", what=f"label {history.unit(row)!r}", row=row
            )
            leave_out = "to leave such rows out"
            raise unknown.advising(f'Give unknown="skip" {leave_out}', f"Give --unknown skip {leave_out}")
        return table[history.codes] if len(table) else history.codes

    def unit_cells(self, units: Ints) -> UnitCells:
        """The cell of every arm."""
        return table_of(self.cell_of_arms())

    def propose_among(self, out: Ints, round_: int, available: Available | None) -> int:
        """Propose among the available arms in a round. Writes their numbers, and returns how many there are."""
        if available is None:
            return super().propose_among(out, round_, None)
        numbers = np.flatnonzero(available)
        count: int = restricted(self, numbers).propose_among(out, round_, None)
        for place in range(count):
            out[place] = int(numbers[out[place]])
        return count

    def why_horizon_is_short(self, rows: int) -> str | None:
        """Say what happens if the horizon is too short for the arms or for the rows of the log, None if it is not."""
        if not isinstance(self.bonus, KL) or self.bonus.level == "log" or self.choices is None:
            return None
        counted = max(self.log_rows) if isinstance(self.log_rows, list) else self.log_rows or 0
        few = self.horizon < ROUNDS_PER_CELL * self.choices
        far = self.contexts is None and self.horizon * ROUNDS_PER_CELL < rows
        if not (few or far):
            return None
        name, bound = type(self).__name__, self._part_for(self.horizon + counted)
        per_arm = f"fewer than {ROUNDS_PER_CELL} rounds for each of {self.choices:,} arms"
        if bound.kind == FIXED:
            return f'horizon is {self.horizon:,}, {per_arm}. {name} explores more than usual, as with level="log".'
        reason = f"far fewer than the {rows:,} rows of the log" if far else per_arm
        stop = f"stops exploring an arm once it has {math.ceil(bound.share):,} samples, rows of the log included"
        return f"horizon is {self.horizon:,}, {reason}. {name} {stop}."

    def describe_arms(self) -> str:
        """Say in a few words which arms there are, for error messages."""
        return self.arm_set.describe()

    def cell_of_arms(self) -> Ints:
        """The cell each arm lies in, in each segment."""
        return np.arange(self.n_units, dtype=np.int64)

    def statistics(self) -> tuple[Ints, Floats, Floats | None]:
        """For each arm, the number of its samples, their mean (nan without any), and its index if it has one."""
        tally = self.tally
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = self.unscaled(tally.totals / tally.counts)
        values = self._values()
        return tally.counts.copy(), mean, None if values is None else self.unscaled(values)

    @property
    def tally(self) -> Tally:
        """The count and the sum of each arm's samples."""
        tally: Tally = self.component.tally
        return tally

    def _values(self) -> Floats | None:
        return None

    def parameters(self) -> dict[str, Any]:
        """The parameters that the algorithm was made with, by name."""
        values = super().parameters()
        if isinstance(self.arms, range):
            values["arms"] = None
        elif "n_arms" in values:
            values["n_arms"] = None
        return values


def _with_part(component: Any, part: Any) -> Any:
    """Replace the part of a component that has the same class as `part`."""
    if type(component) is type(part):
        return part
    fields = zip(component._fields, component, strict=True)
    return component._replace(**{name: _with_part(field, part) for name, field in fields if is_component(field)})


def _short(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"<{'×'.join(map(str, value.shape))} array>"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def checked_range(reward_range: Iterable[float]) -> RewardRange:
    """Return a reward range as two floats, the lower one first. Either both are finite, or neither is."""
    try:
        low, high = (float(edge) for edge in reward_range)
    except (TypeError, ValueError):
        raise InvalidParameter(f"must be a pair (low, high), got {reward_range!r}", parameter="reward_range") from None
    unbounded = (low, high) == (-math.inf, math.inf)
    if not unbounded and not (low < high and math.isfinite(low) and math.isfinite(high)):
        raise InvalidParameter(f"must be finite with low < high, got ({low}, {high})", parameter="reward_range")
    if not unbounded and high - low == math.inf:  # rewards are divided by the difference
        raise InvalidParameter(
            f"must be so narrow that high - low is finite, got ({low}, {high})", parameter="reward_range"
        )
    return low, high


def describe_range(reward_range: RewardRange) -> str:
    """Say what a reward must be, for error messages."""
    low, high = reward_range
    return "a finite number" if high == math.inf else f"a number in [{exact(low)}, {exact(high)}]"


def checked_rewards(history: History, reward_range: RewardRange) -> Floats:
    """Return the rewards of a log, and refuse them if one is outside the range."""
    low, high = reward_range
    bad = np.flatnonzero(~((history.rewards >= low) & (history.rewards <= high)))
    if len(bad):
        row = int(bad[0])
        problem = f"is {exact(history.rewards[row])}, expected {describe_range(reward_range)}"
        raise InvalidHistory(problem, what="reward", row=row)
    return history.rewards


def checked_reward(reward: object, reward_range: RewardRange) -> float:
    """Return a reward as a plain float, and refuse it if it is outside the range."""
    if type(reward) is float:
        value = reward
    elif isinstance(reward, (Real, Decimal, np.bool_)) or (isinstance(reward, np.ndarray) and reward.shape == ()):
        try:
            value = float(reward)
        except OverflowError:
            value = math.inf
    else:
        raise InvalidAction(f"reward is {reward!r}, expected {describe_range(reward_range)}")
    # Written so that nan fails it.
    if not (reward_range[0] <= value <= reward_range[1] and abs(value) != math.inf):
        raise InvalidAction(f"reward is {value}, expected {describe_range(reward_range)}")
    return value
