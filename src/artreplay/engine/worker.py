"""One worker: takes batches of replications, one after another, and plays each over memory of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from artreplay.compiling import Ints, Kept, Loop, current_mode, packed
from artreplay.engine.play import Memory, Order, Record, play_one, play_several
from artreplay.engine.simulated_logs import PLACES as CURSOR_PLACES
from artreplay.engine.simulated_logs import STEPS, WORLD
from artreplay.engine.stages import Outputs, Setting, Stage, stage_of
from artreplay.environments import ArmEnvironment
from artreplay.errors import InvalidAction, InvalidParameter
from artreplay.replay.adapters import Adapter, PointAdapter
from artreplay.replay.ledger import enlarged
from artreplay.replay.log import Part
from artreplay.replay.object_states import shared_generators
from artreplay.replay.own_bases import adapt
from artreplay.replay.plain_objects import PlainAdapter
from artreplay.replay.policy import next_limit
from artreplay.replay.reader import ledger_of_rows
from artreplay.replay.step import (
    AGAIN,
    BAD_PROPOSAL,
    BAD_VALUE,
    DONE,
    GROWN,
    LOG_IS_DRAWN,
    NEEDS_MEANS,
    NEEDS_ROOM,
    NOT_A_UNIT,
    PLACES,
    ROUND,
)

_FIRST_LIMIT = 64
_DRAWING = 1e-5  # seconds that a row of a log takes to be drawn, interpreted, about
_TRIAL = 0.05  # seconds of interpretation after which it is known how long the rest would take


class Stopped(Exception):
    """Someone asked the workers to stop."""


class Worker:
    """Plays batches of replications into their rows of the outputs."""

    def __init__(self, setting: Setting, outputs: Outputs, cells: Ints, stop: threading.Event) -> None:
        self.setting = setting
        self.outputs = outputs
        self.cells = cells
        self.stop = stop
        self.finished = 0
        self.position = np.zeros(PLACES, np.int64)
        self.cursor = np.zeros(CURSOR_PLACES, np.int64)
        self.limit = _FIRST_LIMIT
        self.spent = 0.0  # seconds of interpretation
        self.kept: Kept | None = None  # the loop, for a base that pauses

    def progress(self) -> float:
        """Replications finished, and the part of the one at hand."""
        return self.finished + int(self.cursor[WORLD]) + min(int(self.position[ROUND]) / self.setting.horizon, 1.0)

    def run(self, batches: Any, report: Any) -> None:
        """Take batches until there are none left."""
        adapter, memory = self._seat()
        stage = stage_of(self.setting, adapter)
        while batch := batches.take():
            if isinstance(adapter, PlainAdapter):
                adapter = adapt(self.setting.base)
                stage = stage_of(self.setting, adapter)
            before = shared_generators() if isinstance(adapter, PlainAdapter) else None
            self._play(adapter, memory, stage, batch, report)
            if before is not None and before != shared_generators():
                raise InvalidParameter(
                    f"{type(adapter.base).__qualname__} draws from a generator that everything shares, `random` or "
                    "`numpy.random`, so that one seed would not give one result: let it keep a generator of its own as "
                    "an attribute, or offer reseed(key)"
                )
            self.finished += len(batch)
            self.cursor[:] = 0
            self.position[:] = 0

    def _seat(self) -> tuple[Adapter, Memory]:
        """A copy of the base whose state is one buffer; a plain object has a state only it knows."""
        adapter = adapt(self.setting.base)
        if self.setting.in_blocks:
            adapter.make_room(self.setting.rows)  # a step looks for room for single rows
        state = np.empty(0, np.int64)
        if not isinstance(adapter, PlainAdapter):
            component, state = packed(adapter.algorithm)
            adapter.seat(component)
        return adapter, Memory(state, state.copy(), np.zeros(1, np.int64))

    def _play(self, adapter: Adapter, memory: Memory, stage: Stage, batch: range, report: Any) -> None:
        setting = self.setting
        memory.state[:] = memory.fresh  # the cells that a log is put into are those of a fresh base
        (ledger, queue, units), rewards, log = stage.open(batch)
        by_names = setting.start == "artificial-replay" and isinstance(adapter, PlainAdapter)
        pause = by_names and isinstance(setting.env, ArmEnvironment)
        order = Order(setting.horizon, units, int(pause))
        rows = slice(batch.start, batch.stop)
        record, first = self._record(rows, len(queue.next)), adapter.algorithm
        play = play_one if setting.width == 1 else play_several
        parts = (first, ledger, queue, rewards, log, memory, order, record)
        # An object of the user's own, a base or a world, cannot be compiled; what is short need not be.
        wait = play.wait(*parts) if setting.compilable and current_mode() == "auto" else 0.0
        if setting.rows * _DRAWING > wait:  # the rows of a log are drawn in one go
            wait = 0.0
        run = self._compiled(play, parts) if setting.compilable and not wait else play.interpreted
        result = AGAIN
        while result != DONE:
            began, worked_before = time.perf_counter(), time.thread_time()  # interpreters take turns
            where = (self.position, self.cursor, adapter.proposal, self.limit)
            result = run(adapter.algorithm, ledger, queue, rewards, log, memory, order, record, *where)
            if wait and self._pays(wait, play, parts, time.thread_time() - worked_before):
                wait, run = 0.0, self._compiled(play, parts)
            if result == NEEDS_ROOM:
                adapter.make_room(setting.width)
                ledger = enlarged(ledger, adapter.cell_space())
                memory.grown[0] = 1
            elif result == NEEDS_MEANS:
                rewards = stage.learn(rewards)
            elif result == GROWN:
                adapter.seat(first)
                memory.grown[0] = 0
            elif result == LOG_IS_DRAWN:
                ledger = ledger_of_rows(adapter, Part(np.arange(len(queue.unit)), queue.unit, queue.reward))
            elif result == BAD_VALUE:
                raise InvalidAction(adapter.bad_value())
            elif result in (BAD_PROPOSAL, NOT_A_UNIT):
                raise InvalidAction(_complaint(result, adapter, setting))
            elif self.cursor[STEPS] >= self.limit:
                self.limit = next_limit(self.limit, time.perf_counter() - began)
            if self.stop.is_set():
                raise Stopped
            if report is not None:
                report()
        if by_names and record.by_arm.shape[1]:
            shown = np.delete(np.asarray(ledger.unit, np.int64), ledger.unread())
            record.by_arm[0] = np.bincount(shown, minlength=record.by_arm.shape[1])
        if isinstance(adapter, PointAdapter):
            self.cells[rows] = adapter.base.n_cells()
        if adapter.algorithm is not first:
            adapter.seat(first)
            memory.grown[0] = 0

    def _compiled(self, play: Loop[Any, int], parts: tuple[Any, ...]) -> Callable[..., int]:
        """A loop as it is to be called, compiled unless somebody asked for interpretation."""
        if not getattr(self.setting.base, "pauses", False) or current_mode() == "interpreted":
            return play.bound_to(*parts)
        self.kept = self.kept or Kept(play, len(parts))
        return self.kept

    def _record(self, rows: slice, n_queues: int) -> Record:
        """Where these replications write down what happens."""
        regret, used, actions, levels, by_arm = self.outputs
        start = np.zeros(n_queues if by_arm.shape[1] else 0, np.int64)
        return Record(np.zeros(1), regret[rows], used[rows], actions[rows], levels[rows], by_arm[rows], start)

    def _pays(self, wait: float, play: Loop[Any, int], parts: tuple[Any, ...], worked: float) -> bool:
        """Whether it takes less time to compile than to go on interpreting, as was done for some more seconds."""
        self.spent += worked
        done = self.progress() / self.setting.replications
        expected = self.spent / done if self.spent > _TRIAL and done > 0.0 else 0.0
        return expected > wait or play.spend(worked, *parts) > wait


def _complaint(result: int, adapter: Adapter, setting: Setting) -> str:
    if result == BAD_PROPOSAL:
        return (
            f"{type(adapter.base).__qualname__} must propose at least 1 unit and at most {setting.width}, "
            "which is what the environment plays in a round"
        )
    return f"{adapter.base!r} proposed a unit that is not one of {setting.describe_units()}"
