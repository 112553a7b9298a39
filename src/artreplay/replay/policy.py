"""What the three policies share: asking, telling, and showing the log in slices."""

from __future__ import annotations

import copy
import os
from collections.abc import Hashable, Iterator
from time import perf_counter
from typing import Any, ClassVar, Self, cast

import numpy as np

from artreplay.algorithms.composition import IndexAlgorithm
from artreplay.compiling import UNBOUNDED, Ints, Loop, current_mode, pinned, views
from artreplay.compiling.interrupts import Uninterrupted
from artreplay.errors import InvalidAction, InvalidHistory
from artreplay.history import Fingerprint
from artreplay.history import Reading as HowMuch
from artreplay.parameters import checked
from artreplay.replay.adapters import Adapter, NamedAdapter, Relation, Unknown
from artreplay.replay.cell import Cell, cells_of, used_by_cell
from artreplay.replay.contradictions import Contradiction, Watch
from artreplay.replay.ledger import Ledger, enlarged
from artreplay.replay.log import AnyHistory, Flags, Log, Part
from artreplay.replay.own_bases import ComponentAdapter, adapt
from artreplay.replay.own_ledgers import OwnLedger, RelatedRows
from artreplay.replay.reader import Reader, ledger_without_rows
from artreplay.replay.step import (
    BAD_PROPOSAL,
    BAD_VALUE,
    DONE,
    NEEDS_ROOM,
    NEEDS_ROWS,
    NO_ROW,
    PENDING,
    PLACES,
    READ_UNITS,
    ROUND,
    SERVING,
    USED,
    look,
    read_to_end,
    settle,
    step,
    take,
)

_PATIENCE = 1.0  # seconds of interpretation after which compiling is worth its cost
_HEAVY = 1e-3  # seconds of interpretation per round above which even a short call is worth compiling
_MANY = 200_000  # rewards after which interpretation has cost about as much as compiling does
_MOST_STEPS = 1 << 20  # in one slice of a loop
_FEW_STEPS = 1 << 10  # what compiled code does while it cannot hear a Ctrl-C
_SLICE_SECONDS = 0.05  # what a slice should take, so that Ctrl-C is heard soon


class Policy:
    """What the three policies share: `ask` for an action, play it, `tell` its reward.

    Everything a policy learns from is one journal: the rows of its log, rows appended later, and every reward that was
    told. Rewards may come late, in another order, or never, and you may tell actions that nobody asked for: each
    becomes a row of the journal, after the rows that were there before. A decision is made at the first `ask` after a
    `tell`, from the journal as it is then, and `ask` returns it until the next `tell`, whatever arrives meanwhile. A
    policy works on its own copy of the base. Until something is told or asked no row is shown, and of a store only what
    the base must know of it is read; an object of the user's own, or a relation, reads it into memory.
    """

    kind: ClassVar[str]
    relation: Relation = None
    unknown: Unknown = "error"

    @checked
    def __init__(self, base: Any) -> None:
        self._adapter: Adapter = adapt(base, by_values=self.relation is None)  # bounds on values are those of arms
        self._position: Ints = np.zeros(PLACES, np.int64)
        self._log: Log | None = None
        self._reader: Reader | None = None
        self._ledger: Ledger | OwnLedger = ledger_without_rows(self._adapter)
        self._fingerprint: Fingerprint | None = None  # of a log that is known and not at hand
        self._size_without_log = 0  # its samples without those that are skipped
        self._grown = False  # whether the log has grown since the pending decision was made
        self._interpreted_parts: tuple[Any, ...] = ()  # of a step; () if they must be put together
        self._told = 0  # rewards, in this process
        self._spent = 0.0  # seconds of interpretation
        self._guard = Uninterrupted()
        self._watch: Watch | None = None  # for online rewards that contradict the log
        self.skipped = 0

    # -- the two calls --------------------------------------------------------------------------------------

    def ask(self) -> Any:
        """The action to play next: a unit, or a list of units. The same until the next `tell`."""
        position = (self._interpreted_parts or self._parts())[2]
        units: int = position[PENDING]
        if units == 0:
            if self._log is None:
                self._require_log()
            else:
                self._show_log()
            quick_settle = (self._interpreted_parts or self._parts())[5]
            units = self._first_step() if quick_settle is None else quick_settle(_FEW_STEPS)
            if units <= 0:
                units = self._run(settle, "_ledger", None)
            self._grown = False
        return self._adapter.action(units, position)

    def choose(self, chooser: Any, round_: int) -> Any:
        """The action of a numbered decision, made while others are open; nothing is pending afterwards.

        `chooser` proposes in place of the base, and is shown what the base is shown; None lets the base propose.
        """
        self._require_log()
        self._show_log()
        position = self._position
        position[ROUND], position[PENDING], position[SERVING] = round_, 0, 0
        units = self._first_step() if chooser is None else 0
        if units <= 0:
            units = self._run(settle, "_ledger", None, chooser)
        position[PENDING] = 0
        return self._adapter.action(units, position)

    def read_cells_of(self, action: Any) -> None:
        """Show all rows of the log that lie in the cells of an action, as before it is told."""
        units = action if self._adapter.is_list(action) else [action]
        self._show_what_comes_before([(self._adapter.number(unit), 0.0) for unit in units])

    def tell(self, action: Any, reward: Any) -> None:
        """Add an action and its reward to the journal; give one reward per unit, in the order of the action.

        You may tell any action, asked for or not: the rows of the log that come before it are shown first. Everything
        is checked before anything changes.
        """
        adapter = self._adapter
        if adapter.is_list(action):
            samples = adapter.checked_samples(action, reward)
        else:
            samples = [(adapter.number(action), adapter.checked_reward(reward))]
        algorithm, _, position, fills, still, _, quick_take = self._interpreted_parts or self._parts()
        asked = still and position[PENDING] == len(samples) == 1 and adapter.proposed[0] == samples[0][0]
        if not asked or self._grown:  # before what was asked for there is nothing left to read
            self._show_what_comes_before(samples)
            algorithm, _, position, fills, _, _, quick_take = self._interpreted_parts or self._parts()
        # A step looks for room for a whole proposal.
        if fills and algorithm.room() < len(samples) + len(adapter.proposal):
            self._make_room(len(samples) + len(adapter.proposal))
            algorithm, _, position, _, _, _, quick_take = self._parts()
        self._told += 1
        if quick_take is not None and len(samples) == 1:
            quick_take(*samples[0])
            if self._watch is not None:
                self._watch.told(*samples[0])
            return
        if self._told == _MANY:
            self._interpreted_parts = ()  # which is looked at anew
        with self._guard:
            if isinstance(adapter, ComponentAdapter):
                with np.errstate(over="ignore"):  # counters of its own may wrap around
                    for number, value in samples:
                        algorithm.update(number, value)
            else:
                for number, value in samples:
                    algorithm.update(number, value)
            position[ROUND] += 1
            position[PENDING] = 0
            position[SERVING] = 0  # a proposal that waits for rows is out of date
            if self._watch is not None:
                for number, value in samples:
                    self._watch.told(number, value)

    # -- showing the log ------------------------------------------------------------------------------------

    def _show_log(self) -> None:
        """Show what must be shown before anything is proposed."""

    def _show_what_comes_before(self, samples: list[tuple[int, float]]) -> None:
        """Show the rows of the log that come before what is told: those of the cells it lies in.

        A base that is read until its choice is certain keeps rows of the log apart from what was played.
        """
        if self._adapter.certified is not None:
            return
        if self._log is None:
            self._check_nothing_comes_before(samples)
        elif self._log.whole is None or self._position[USED] < self._log.size:
            algorithm, ledger, *_ = self._interpreted_parts or self._parts()
            units = [number for number, _ in samples]
            if isinstance(ledger, RelatedRows) and self._was_asked(units):
                return  # there are no cells: what is related to a proposal was shown before it became the action
            if any(ledger.first_unread(ledger.locate(algorithm, unit)) != NO_ROW for unit in units):
                self._read_to_end("_ledger", np.array(units, np.int64))

    def _check_nothing_comes_before(self, samples: list[tuple[int, float]]) -> None:
        """Without its log a policy can be told what it asked for: that was asked because nothing was left to read."""
        if self._adapter.certified is not None:
            return
        if self._fingerprint is None or self._log_size() == self._position[USED]:
            return
        if not self._was_asked([number for number, _ in samples]):
            raise InvalidHistory(
                "this policy was loaded without its log, of which rows may come before what is told, because it is "
                "not the action that was asked for last: give the log with extend(history) first"
            )

    def _was_asked(self, units: list[int]) -> bool:
        """Whether these are the units of the pending action, and the log has not grown since it was decided on."""
        if self._position[PENDING] == 0 or self._grown:
            return False
        action = self._adapter.action(int(self._position[PENDING]), self._position)
        return units == [self._adapter.number(unit) for unit in (action if isinstance(action, list) else [action])]

    def _read_to_end(self, ledger: str, units: Ints) -> None:
        """Show all unread rows of the cells of these units."""
        self._position[READ_UNITS] = 0
        self._position[SERVING] = 0
        self._run(read_to_end, ledger, units)

    def _is_heavy(self) -> bool:
        """Whether interpretation has cost so much, and still does, that compiling is worth it."""
        return self._spent > _PATIENCE and self._spent > _HEAVY * (1 + int(self._position[ROUND]))

    def _first_step(self) -> int:
        """One interpreted step, where that is likely to be all: a decision that needs no row of the log is quick."""
        algorithm, ledger, position, fills, still, *_ = self._interpreted_parts or self._parts()
        if current_mode() == "compiled":
            return 0
        if still:  # a Ctrl-C does no harm where nothing changes
            return look(algorithm, ledger, position, self._adapter.proposed)
        if fills or self._adapter.expensive or isinstance(self._adapter, ComponentAdapter) or self._is_heavy():
            return 0
        began = perf_counter()
        with self._guard:
            units: int = step(algorithm, ledger, position, self._adapter.proposed)
            if units > 0:
                position[PENDING] = units
        self._spent += perf_counter() - began
        return units

    def _run(self, loop: Loop[Any, int], of: str, units: Any, chooser: Any = None) -> int:
        """Run a loop over a ledger of this policy, named by its attribute, until it is done; what it returns.

        It runs in slices, between which Ctrl-C is heard, arrays grow, and rows are read. Interpreted at first;
        compiled once interpretation has cost more than compiling does. Both do the same. A chooser that stands in for
        the base is always interpreted.
        """
        adapter, mode = self._adapter, current_mode()
        fast = mode == "compiled" or (mode == "auto" and (self._is_heavy() or (adapter.expensive and loop is settle)))
        fast = fast and chooser is None
        limit = 1  # a step may be long: the clock is looked at after the first
        bound = None  # the compiled form; arrays change on the way, their types do not
        while True:
            ledger = getattr(self, of)
            if fast:
                parts = (adapter.algorithm, ledger, self._position)
                run = bound = loop.bound_to(*parts[:2]) if bound is None else bound
                target = adapter.proposal if units is None else units
            else:
                parts = self._parts(of)[:3] if chooser is None else (chooser, *self._parts(of)[1:3])
                run = loop.interpreted if isinstance(adapter, ComponentAdapter) else loop.function
                target = adapter.proposed if units is None else units
            began = perf_counter()
            with self._guard:
                result: int = run(*parts, target, limit)
            took = perf_counter() - began
            if not fast:
                self._spent += took
            if result > 0 or result == DONE:
                return result
            if result == NEEDS_ROOM:
                self._make_room(len(adapter.proposal))
                if chooser is not None:
                    chooser.renew()
            elif result == NEEDS_ROWS:
                self._read_more(of, ledger)
            elif result == BAD_PROPOSAL:
                raise InvalidAction(
                    f"{type(adapter.base).__qualname__} must propose at least 1 unit and at most "
                    f"{len(adapter.proposal)}; a component that means to propose more must offer `width`"
                )
            elif result == BAD_VALUE:
                raise InvalidAction(adapter.bad_value())
            elif not fast and chooser is None and mode == "auto" and self._spent > _PATIENCE:
                fast, limit = True, 1
            else:
                limit = next_limit(limit, took)

    def _read_more(self, of: str, ledger: Any) -> None:
        """Read the rows that a ledger wants."""
        if self._reader is not None:
            rows = self._reader.read(ledger)
            with Uninterrupted():
                setattr(self, of, self._reader.put(ledger, rows))
                self._interpreted_parts = ()

    def _make_room(self, need: int) -> None:
        with Uninterrupted():
            self._adapter.make_room(max(need, 1))
            self._ledger = enlarged(self._ledger, self._adapter.cell_space())
            self._interpreted_parts = ()

    def _parts(self, of: str = "_ledger") -> tuple[Any, ...]:
        """The algorithm, a ledger and the position in the form that is fastest without compiling.

        Behind them, whether arrays of the base can run over, and whether looking for an action changes nothing; then
        `settle` and `take` with all this in place, compiled, once so much was told that it is worth it, else None.
        """
        if self._interpreted_parts and of == "_ledger":
            return self._interpreted_parts
        algorithm, ledger = self._adapter.algorithm, getattr(self, of)
        fills = algorithm.room() < UNBOUNDED
        still = self._adapter.is_still and isinstance(ledger, Ledger) and isinstance(algorithm, IndexAlgorithm)
        parts: tuple[Any, ...] = (algorithm, ledger, self._position, fills, still and not fills)
        if isinstance(self._adapter, NamedAdapter):
            viewed = views(ledger) if isinstance(ledger, tuple) else ledger
            position = memoryview(cast(Any, self._position))
            parts = (views(algorithm), viewed, position, *parts[3:])
        if of == "_ledger":
            quick = None
            if self._told >= _MANY and isinstance(self._adapter, NamedAdapter) and current_mode() == "auto":
                compiled = (algorithm, ledger, self._position, self._adapter.proposal)
                quick = pinned(compiled, {settle: (0, 1, 2, 3), take: (0, 2)})
            parts = self._interpreted_parts = (*parts, *(quick or (None, None)))
        return parts

    # -- the log --------------------------------------------------------------------------------------------

    def _require_log(self) -> None:
        if self._log is None and self._fingerprint is not None:
            raise InvalidHistory("this policy was loaded without its log: give it with extend(history) first")

    def _log_size(self) -> int:
        return self._size_without_log if self._log is None else self._log.size

    def _marks(self) -> Ints:
        """Which rows of the log were shown: those before the mark of the cell they lie in."""
        return np.empty(0, np.int64)

    def _used_parts(self) -> Iterator[tuple[Part, Flags]]:
        """All rows of the log in order, and which of them were shown."""
        return iter(())

    # -- what people see ------------------------------------------------------------------------------------

    @property
    def base(self) -> Any:
        """The policy's own copy of the base algorithm: read it, but do not change it."""
        return self._adapter.base

    @property
    def history(self) -> AnyHistory | None:
        """The log; None if there is none, or if a loaded policy has not been given its log yet."""
        return None if self._log is None else self._log.history

    @property
    def reading(self) -> HowMuch:
        """How much of the log was read: samples used; rows or sums, and bytes, read; requests to a file or database."""
        return HowMuch() if self._log is None else self._log.reading(self.used)

    @property
    def used(self) -> int:
        """Rows of the log shown so far."""
        return int(self._position[USED])

    @property
    def unused(self) -> int:
        """Rows of the log not shown so far."""
        return self._log_size() - self.used

    @property
    def rounds(self) -> int:
        """Online rounds told so far."""
        return int(self._position[ROUND])

    def unused_rows(self) -> list[int]:
        """The rows of the log that have not been shown, in order; rows that were skipped are not among them."""
        self._require_log()
        left = [part.rows[~shown] for part, shown in self._used_parts()]
        if self._log is None or not left:
            return []
        rows: list[int] = np.sort(self._log.rows_as_logged(np.concatenate(left))).tolist()
        return rows

    def used_by_cell(self) -> dict[Hashable, int]:
        """Rows of the log shown, by cell: an arm, or a tuple of arms that share a cell."""
        self._require_log()
        return used_by_cell(self)

    def cells(self) -> list[Cell]:
        """What is known of every cell, an arm or a box: samples shown, mean, index, rows in the log, and rows used.

        Boxes come level by level, inside a level in Z-order.
        """
        self._require_log()
        return cells_of(self)

    def contradictions(self) -> list[Contradiction]:
        """The arms whose online rewards contradicted the log beyond chance, and beyond `drift`; see `Contradiction`.

        The mean of what was told and the mean of the logged rows that were shown are compared after each reward. An
        arm that is hardly played, because the log makes it look bad, is not noticed. For points there is none: inside
        a box the log and the policy may have played elsewhere.
        """
        return [] if self._watch is None else self._watch.found()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy, without its log, to a file; `ar.load(path, history)` continues from there.

        The file is arrays and JSON. If writing is cut short, the file that was there before stays as it was.
        """
        from artreplay.replay.saving import save

        save(self, path)

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and copy: without the views of memory, which are made again."""
        return {name: value for name, value in self.__dict__.items() if name != "_guard"} | {"_interpreted_parts": ()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._guard = Uninterrupted()

    def __copy__(self) -> Self:
        """A policy of its own: two that share what they were told would decide for each other."""
        return copy.deepcopy(self)

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"<{name} of {self._adapter.base!r}: {self.rounds} rounds, {self.used} of {self._log_size()} rows used>"


def next_limit(limit: int, took: float) -> int:
    """How many steps the next slice may have, so that it takes about `_SLICE_SECONDS`."""
    if took < _SLICE_SECONDS / 2:
        return min(limit * 2, _MOST_STEPS)
    return max(limit // 2, 1) if took > _SLICE_SECONDS else limit
