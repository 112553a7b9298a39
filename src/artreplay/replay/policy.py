"""What the three policies share: asking, telling, showing the log in slices, and what people see of it."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from time import perf_counter
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np

from artreplay.algorithms import ArmAlgorithm, PointAlgorithm
from artreplay.cells.boxes import samples_in
from artreplay.compiling import UNBOUNDED, Ints, compiled, current_mode, packed, views
from artreplay.compiling.interrupts import SMALL, Guard, Undo, Uninterrupted
from artreplay.errors import InvalidAction, InvalidHistory, InvalidParameter
from artreplay.history import Allocation, Fingerprint, History, Reading, Store
from artreplay.replay.adapter import Adapter, Relation, Unknown
from artreplay.replay.adapters import adapt
from artreplay.replay.cell import Cell
from artreplay.replay.component_adapter import ComponentAdapter
from artreplay.replay.ledger import MOVING, Ledger, stream_ledger
from artreplay.replay.logs import Flags, Log, Part, StoreLog, Used, open_log
from artreplay.replay.named_adapters import NamedAdapter, PointAdapter
from artreplay.replay.plain_adapter import PlainAdapter
from artreplay.replay.slices import FIRST_SLICE, next_limit
from artreplay.replay.step import (
    BAD_PROPOSAL,
    FED,
    FEED,
    NEEDS_ROOM,
    NEEDS_ROWS,
    PENDING,
    PLACES,
    ROUND,
    SERVING,
    USED,
    settle,
)

_PATIENCE = 1.0  # seconds of interpretation after which compiling is worth its cost
_HEAVY = 1e-3  # seconds of interpretation per round above which even a short call is worth compiling


@compiled
class _Moving(NamedTuple):
    """Everything a step changes."""

    position: Ints
    ledger: tuple[Ints, ...]
    component: Any


class Policy:
    """What the three policies share: `ask` for an action, play it, `tell` its reward.

    A policy works on its own copy of the base. `ask` returns the same action until the next `tell`, and shows no
    further sample meanwhile. `tell` takes any action, asked for or not: it is data. Until something is told or asked
    nothing is read.
    """

    kind: ClassVar[str]
    relation: Relation = None
    unknown: Unknown = "error"

    def __init__(self, base: Any) -> None:
        self._adapter: Adapter = adapt(base)
        self._position: Ints = np.zeros(PLACES, np.int64)
        self._log: Log | None = None
        self._fingerprint: Fingerprint | None = None  # known even where the log itself is not at hand
        self._ledger: Ledger = stream_ledger(np.empty(0, np.int64), np.empty(0))
        # Counters of a component of the user's own may wrap around; those of this package never do.
        self._wraps = isinstance(self._adapter, ComponentAdapter)
        self._guard: Guard = Uninterrupted()
        # What interpreted steps drive: the algorithm, the position, the loop. () when they must be put together anew.
        self._parts: tuple[Any, ...] = ()
        self._fills = True  # whether arrays of the base can run over
        self._spent = 0.0  # seconds of interpretation
        self.skipped = 0

    # -- the two calls --------------------------------------------------------------------------------------

    def ask(self) -> Any:
        """The action to play next: an arm, or a list of arms. The same until the next `tell`."""
        if self._guard.saved is not None:
            self._guard.recover()
        position = (self._parts or self._interpreted_parts())[1]
        units = position[PENDING]
        if units == 0:
            self._open_log()
            units = self._run(feed_only=0)
        return self._adapter.action(units, position)

    def tell(self, action: Any, reward: Any) -> None:
        """Show the base what was played and what came of it; one reward per unit, in the order of the action.

        Everything is checked before anything changes.
        """
        if self._guard.saved is not None:
            self._guard.recover()
        adapter = self._adapter
        if adapter.is_list(action):
            samples = self._checked_samples(action, reward)
        else:
            samples = [(adapter.number(action), adapter.checked_reward(reward))]
        algorithm, position, _ = self._parts or self._interpreted_parts()
        if self._must_be_fed(position):
            self._open_log()
            self._run(feed_only=1)
            algorithm, position, _ = self._parts or self._interpreted_parts()
        # A step looks for room for a whole proposal.
        if self._fills and algorithm.room() < len(samples) + len(adapter.proposal):
            self._make_room(len(samples) + len(adapter.proposal))
            algorithm, position, _ = self._interpreted_parts()
        with self._guard:
            if current_mode() == "compiled":
                self._show_compiled(samples)
            elif self._wraps:
                with np.errstate(over="ignore"):
                    for number, value in samples:
                        algorithm.update(number, value)
            else:
                for number, value in samples:
                    algorithm.update(number, value)
            position[ROUND] += 1
            position[PENDING] = 0
            position[SERVING] = 0  # a proposal that waits for samples is out of date

    def _must_be_fed(self, position: Any) -> bool:
        """Whether the log, or the rest of it, is to be shown before anything else."""
        # A log that has begun to be shown may be elsewhere now: rows appended to it then wait for the next ask.
        return position[FED] < position[FEED] and (position[FED] == 0 or self._log is not None)

    def _make_room(self, need: int) -> None:
        self._adapter.make_room(max(need, 1))
        self._parts = ()

    def _show_compiled(self, samples: list[tuple[int, float]]) -> None:
        """Show samples through the compiled loop, as a log of their own."""
        numbers, rewards = zip(*samples, strict=True)
        log = stream_ledger(np.array(numbers, np.int64), np.array(rewards))
        position = np.zeros(PLACES, np.int64)
        position[FEED] = len(samples)
        algorithm, proposal = self._adapter.algorithm, self._adapter.proposal
        settle.bound_to(algorithm, log)(algorithm, log, position, proposal, 1, len(samples) + 1)

    def _checked_samples(self, action: Any, reward: Any) -> list[tuple[int, float]]:
        if isinstance(action, Allocation):
            raise InvalidAction(f"the action must be a list of units, got {action!r} by itself: wrap it in a list")
        if not isinstance(action, (list, tuple, np.ndarray)) or len(action) == 0:
            raise InvalidAction(f"the action must be a list of units, got {action!r}")
        if not hasattr(reward, "__len__") or isinstance(reward, (str, bytes)) or len(reward) != len(action):
            raise InvalidAction(f"there must be one reward per unit, got {len(action)} units and rewards {reward!r}")
        numbers = [self._adapter.number(unit) for unit in action]
        return list(zip(numbers, [self._adapter.checked_reward(value) for value in reward], strict=True))

    # -- showing the log ------------------------------------------------------------------------------------

    def _run(self, feed_only: int) -> int:
        """Step until there is something to play, or until the log was shown; how many units there are to play.

        The loop runs in slices, between which Ctrl-C is heard and arrays grow.
        Interpreted at first; compiled once interpretation has cost more than compiling does. Both do the same.
        """
        mode = current_mode()
        _, position, run = self._parts or self._interpreted_parts()
        heavy = self._spent > _PATIENCE and self._spent > _HEAVY * (1 + position[ROUND])
        fast = mode == "compiled" or (mode == "auto" and (heavy or (self._adapter.laborious and not feed_only)))
        limit = FIRST_SLICE
        while True:
            if fast:
                run = self._compiled_run()
            began = perf_counter()
            with self._guard:
                result: int = run(feed_only, limit)
            took = perf_counter() - began
            if not fast:
                self._spent += took
            if result > 0:
                return result
            if result == NEEDS_ROOM:
                self._make_room(len(self._adapter.proposal))
            elif result == BAD_PROPOSAL:
                raise InvalidAction(
                    f"{type(self._adapter.base).__qualname__} must propose at least 1 unit and at most "
                    f"{len(self._adapter.proposal)}; a component that means to propose more must offer `width`"
                )
            elif result == NEEDS_ROWS:
                self._read_more()
            elif not fast and mode == "auto" and self._spent > _PATIENCE:
                fast, limit = True, FIRST_SLICE
            else:
                limit = next_limit(limit, took)
            _, position, run = self._parts or self._interpreted_parts()

    def _read_more(self) -> None:
        """Read the samples that the ledger wants."""
        if isinstance(self._log, StoreLog) and self._log.reader is not None:
            ledger: Any = self._log.reader.fill(cast(Any, self._ledger), self._position)
            if ledger is not self._ledger:
                self._ledger, self._parts = ledger, ()

    def _compiled_run(self) -> Callable[[int, int], int]:
        algorithm, ledger = self._adapter.algorithm, self._ledger
        return partial(settle.bound_to(algorithm, ledger), algorithm, ledger, self._position, self._adapter.proposal)

    def _interpreted_parts(self) -> tuple[Any, ...]:
        """The parts of a step in the form that is fastest without compiling.

        Everything a step changes is moved into one piece of memory, so that a step that is cut short can be undone.
        """
        adapter = self._adapter
        ledger = self._ledger
        if isinstance(adapter, NamedAdapter) and type(ledger) in MOVING:
            names = MOVING[type(ledger)]
            queues = tuple(getattr(ledger, name) for name in names)
            moving, memory = packed(_Moving(self._position, queues, adapter.base.component))
            self._position, adapter.base.component = moving.position, moving.component
            moved: dict[str, Any] = dict(zip(names, moving.ledger, strict=True))
            self._ledger = cast(Any, ledger)._replace(**moved)
            self._guard = Undo(memory) if memory.nbytes <= SMALL else Uninterrupted()
            position = memoryview(cast(Any, self._position))
            parts: tuple[Any, ...] = (views(adapter.algorithm), views(self._ledger), position, adapter.proposed)
        else:
            parts = (adapter.algorithm, self._ledger, self._position, adapter.proposal)
        run = partial(settle.interpreted if self._wraps else settle.function, *parts)
        self._parts = (parts[0], parts[2], run)
        self._fills = not isinstance(adapter, NamedAdapter) or parts[0].room() < UNBOUNDED
        return self._parts

    def _open_log(self) -> None:
        """What must be true before the log is shown."""
        if self._log is None:
            self._require_log()

    def _require_log(self) -> None:
        if self._log is None and self._fingerprint is not None:
            raise InvalidHistory("this policy was loaded without its log: give it with extend(history) first")

    def _read_history(self, history: History | Store, used: Used | None) -> None:
        """Map and check a log, and open its ledger; nothing of the policy has changed if that fails or is cut short."""
        log, ledger = self._opened(open_log(self._adapter, history, self.unknown), used)
        with Uninterrupted():
            self._log, self._fingerprint, self._ledger = log, None, ledger
            self.skipped = log.skipped
            self._position[SERVING] = 0
            self._begin(log, used)
            self._parts = ()

    def _opened(self, log: Log, used: Used | None) -> tuple[Log, Ledger]:
        """The ledger of a log of which some samples are used already; and the log, read into memory if it must be."""
        return log, stream_ledger(np.empty(0, np.int64), np.empty(0))

    def _begin(self, log: Log, used: Used | None) -> None:
        """Set the position to where a log is to be shown from."""

    # -- what people see ------------------------------------------------------------------------------------

    @property
    def base(self) -> Any:
        """The policy's own copy of the base algorithm; look, do not touch."""
        self._guard.recover()
        return self._adapter.base

    @property
    def history(self) -> History | Store | None:
        """The log; None without one, or while a loaded policy waits for it."""
        return None if self._log is None else self._log.history

    @property
    def reading(self) -> Reading:
        """How much of the log was read: samples used, rows and bytes read, requests to a file or a database."""
        return Reading() if self._log is None else self._log.reading(self.used)

    @property
    def used(self) -> int:
        """Logged samples shown so far."""
        self._guard.recover()
        return int(self._position[USED])

    @property
    def unused(self) -> int:
        """Logged samples not shown so far."""
        return self._log_size() - self.used

    @property
    def rounds(self) -> int:
        """Online rounds told so far."""
        self._guard.recover()
        return int(self._position[ROUND])

    def _log_size(self) -> int:
        if self._log is None:
            return 0 if self._fingerprint is None else self._fingerprint.rows - self.skipped
        return self._log.size

    def unused_rows(self) -> list[int]:
        """The rows of the log that have not been shown, in order; rows that were skipped are not among them."""
        self._require_log()
        self._guard.recover()
        shown = self._shown()
        return (
            [] if self._log is None else [row for part in self._log.parts() for row in part.rows[~shown(part)].tolist()]
        )

    def _shown(self) -> Callable[[Part], Flags]:
        """Says of consecutive parts of the log which samples were shown."""
        return lambda part: np.zeros(len(part.rows), np.bool_)

    def _used_counts(self, count: Callable[[Ints], Ints]) -> Ints:
        """The samples shown, counted by unit or box, as `count` does it."""
        self._guard.recover()
        counts, shown = count(np.empty(0, np.int64)), self._shown()
        for part in () if self._log is None else self._log.parts():
            counts = counts + count(part.units[shown(part)])
        return counts

    def used_by_cell(self) -> dict[Hashable, int]:
        """Logged samples shown, by cell: an arm, or a tuple of arms that share a cell."""
        self._require_log()
        if isinstance(self._adapter, PointAdapter):
            return {cell.unit: cell.used for cell in self.cells()}
        cell_of = self._cells()
        members: dict[Hashable, list[Any]] = {}
        for number, cell in cell_of.items():
            members.setdefault(cell, []).append(self._adapter.unit(number))
        names = {cell: units[0] if len(units) == 1 else tuple(units) for cell, units in members.items()}
        counts: dict[Hashable, int] = dict.fromkeys(names.values(), 0)
        units = max(cell_of, default=-1) + 1
        for number, used in enumerate(self._used_counts(partial(np.bincount, minlength=units)).tolist()):
            if used:
                counts[names[cell_of[number]]] += used
        return counts

    def _cells(self) -> dict[int, Hashable]:
        """The cell of each unit that is known."""
        adapter = self._adapter
        units = np.empty(0, np.int64) if self._log is None else self._log.some_units()
        if isinstance(adapter, PlainAdapter):
            cell = adapter.cell_of(self.relation if self.relation == "trivial" else None)
            return {number: cell(number) for number in sorted(set(units.tolist()))}
        cells = adapter.cell_of_units(units).tolist()
        return dict(enumerate([0] * len(cells) if self.relation == "trivial" else cells))

    def cells(self) -> list[Cell]:
        """Every cell as it stands, an arm or a box: samples shown, mean, index, samples in the log and used.

        Boxes come level by level, inside a level in Z-order.
        """
        base = self._adapter.base
        if not isinstance(base, (ArmAlgorithm, PointAlgorithm)):
            raise InvalidParameter(
                "cells() needs an algorithm that keeps a mean for each arm or box, "
                f"{type(base).__name__} is another kind; used_by_cell() counts its samples"
            )
        self._require_log()
        self._guard.recover()
        count, mean, index = base.statistics()
        index = np.full(len(count), math.nan) if index is None else index
        names: Sequence[Any]
        counted: Callable[[Ints], Ints]
        if isinstance(base, PointAlgorithm):
            numbers = base.cell_numbers()
            names = [base.box_of(number) for number in numbers.tolist()]
            counted = partial(samples_in, base.lattice, numbers)
        else:
            names = base.arms
            counted = partial(np.bincount, minlength=base.n_arms)
        used = self._used_counts(counted)
        logged = used if self._log is None else self._log.counts(counted)
        columns = (names, count.tolist(), mean.tolist(), index.tolist(), logged.tolist(), used.tolist())
        return [Cell(*row) for row in zip(*columns, strict=True)]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy, without its log, to a file; `ar.load(path, history)` continues from there.

        The file is arrays and JSON. If writing is cut short, the file that was there before stays as it was.
        """
        from artreplay.replay.saving import save

        self._guard.recover()
        save(self, path)

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and copy: without the views of memory, which are made again."""
        self._guard.recover()
        return self.__dict__ | {"_parts": (), "_guard": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._guard = Uninterrupted()

    def __repr__(self) -> str:
        name = type(self).__name__
        return (
            f"<{name} of {self._adapter.base!r}: {self.rounds} rounds, {self.used} of {self._log_size()} samples used>"
        )
