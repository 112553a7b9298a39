"""One worker: takes batches of replications, one after another, and plays each over memory of its own."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np

from artreplay.algorithms import PointAlgorithm
from artreplay.compiling import Ints, packed, worth_compiling
from artreplay.engine.play import GROWN, Memory, Order, Record, play_one, play_several
from artreplay.engine.simulated_logs import PLACES as CURSOR_PLACES
from artreplay.engine.simulated_logs import STEPS, WORLD
from artreplay.engine.stages import Outputs, Setting, Stage, stage_of
from artreplay.environments.meeting import NEEDS_MEANS, NOT_A_UNIT
from artreplay.errors import InvalidAction, InvalidParameter
from artreplay.replay import (
    AGAIN,
    BAD_PROPOSAL,
    BAD_VALUE,
    DONE,
    NEEDS_ROOM,
    PLACES,
    ROUND,
    Base,
    ObjectBase,
    as_base,
    complaint,
    enlarged,
    next_limit,
    shared_generators,
)

_FIRST_LIMIT = 64
_DRAWING = 1e-5  # seconds that a row of a log takes to be drawn, interpreted, about


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

    def progress(self) -> float:
        """Replications finished, and the part of the one at hand."""
        return self.finished + int(self.cursor[WORLD]) + min(int(self.position[ROUND]) / self.setting.horizon, 1.0)

    def run(self, batches: Any, report: Any) -> None:
        """Take batches until there are none left."""
        base, memory = self._seat()
        stage = stage_of(self.setting, base)
        while batch := batches.take():
            if isinstance(base, ObjectBase):
                base, before = as_base(self.setting.base), shared_generators()
                stage = stage_of(self.setting, base)
            self._play(base, memory, stage, batch, report)
            if isinstance(base, ObjectBase) and before != shared_generators():
                raise InvalidParameter(
                    f"{type(base.thing).__qualname__} draws from a generator that everything shares, `random` or "
                    "`numpy.random`, so that one seed would not give one result: let it keep a generator of its own as "
                    "an attribute, or offer reseed(key)"
                )
            self.finished += len(batch)
            self.cursor[:] = 0
            self.position[:] = 0

    def _seat(self) -> tuple[Base, Memory]:
        """A copy of the base whose state is one buffer; a plain object has a state only it knows."""
        base = as_base(self.setting.base)
        for unit, samples, total in self.setting.totals:
            base.make_room(samples)
            base.component.load(unit, samples, total)
        state = np.empty(0, np.int64)
        if not isinstance(base, ObjectBase):
            base.component, state = packed(base.component)
        return base, Memory(state, state.copy(), np.zeros(1, np.int64))

    def _play(self, base: Base, memory: Memory, stage: Stage, batch: range, report: Any) -> None:
        setting = self.setting
        memory.state[:] = memory.fresh  # the cells that a log is put into are those of a fresh base
        (ledger, queue, units), rewards, log = stage.open(batch)
        order = Order(setting.horizon, units, sum(samples for _, samples, _ in setting.totals))
        rows = slice(batch.start, batch.stop)
        record, first = self._record(rows, len(queue.next)), base.component
        proposal, proposed = base.proposal_space()
        play = play_one if setting.width == 1 else play_several
        parts = (first, ledger, queue, rewards, log, memory, order, record)
        pays = worth_compiling(play, parts, setting.rows * _DRAWING)  # the rows of a log are drawn in one go
        run = play.bound_to(*parts) if pays and setting.compilable else play.interpreted
        result = AGAIN
        while result != DONE:
            began, worked_before = time.perf_counter(), time.thread_time()  # interpreters take turns
            where = (self.position, self.cursor, proposal, self.limit)
            result = run(base.component, ledger, queue, rewards, log, memory, order, record, *where)
            if not pays and worth_compiling(play, parts, time.thread_time() - worked_before) and setting.compilable:
                pays, run = True, play.bound_to(*parts)
            if result == NEEDS_ROOM:
                base.make_room(setting.width)
                ledger = enlarged(ledger, base.unit_cells(np.empty(0, np.int64)).space)
                memory.grown[0] = 1
            elif result == NEEDS_MEANS:
                rewards = stage.learn(rewards)
            elif result == GROWN:
                base.component = first
                memory.grown[0] = 0
            elif result == BAD_VALUE:
                arm = int(proposed[0])
                raise InvalidAction(complaint(base.component, arm, base.unit(arm), type(base.thing).__name__))
            elif result in (BAD_PROPOSAL, NOT_A_UNIT):
                raise InvalidAction(_complaint(result, base, setting))
            elif self.cursor[STEPS] >= self.limit:
                self.limit = next_limit(self.limit, time.perf_counter() - began)
            if self.stop.is_set():
                raise Stopped
            if report is not None:
                report()
        if isinstance(base, PointAlgorithm):
            self.cells[rows] = base.n_cells()
        if base.component is not first:
            base.component = first
            memory.grown[0] = 0

    def _record(self, rows: slice, n_queues: int) -> Record:
        """Where these replications write down what happens."""
        regret, used, actions, levels, by_arm = self.outputs
        start = np.zeros(n_queues if by_arm.shape[1] else 0, np.int64)
        if by_arm.shape[1]:
            for unit, samples, _ in self.setting.totals:
                by_arm[rows, unit] += samples
        return Record(np.zeros(1), regret[rows], used[rows], actions[rows], levels[rows], by_arm[rows], start)


def _complaint(result: int, base: Base, setting: Setting) -> str:
    if result == BAD_PROPOSAL:
        return (
            f"{type(base.thing).__qualname__} must propose at least 1 unit and at most {setting.width}, "
            "which is what the environment plays in a round"
        )
    return f"{base.thing!r} proposed a unit that is not one of {setting.describe_units()}"
