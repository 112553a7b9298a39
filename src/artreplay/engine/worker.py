"""One worker: takes batches of replications, one after another, and plays each over memory of its own."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from artreplay.compiling import Floats, Ints, packed
from artreplay.engine.play import (
    DONE,
    GROWN,
    LOG_IS_DRAWN,
    NOT_AN_ARM,
    STEPS,
    WORLD,
    Memory,
    Order,
    Record,
    play,
)
from artreplay.environments import ArmEnvironment
from artreplay.environments.arms import world_keys
from artreplay.environments.stack import ArmRewards
from artreplay.errors import InvalidAction
from artreplay.replay.adapters import Adapter, NamedAdapter, PlainAdapter, adapt
from artreplay.replay.ledger import ArmLedger, arm_ledger, stream_ledger
from artreplay.replay.policies import load_batch
from artreplay.replay.policy import next_limit
from artreplay.replay.step import BAD_PROPOSAL, NEEDS_ROOM, PLACES, ROUND, USED
from artreplay.streams import fold, fold_each

_FIRST_LIMIT = 64


class Stopped(Exception):
    """Someone asked the workers to stop."""


@dataclass(frozen=True)
class Setting:
    """What is simulated, checked."""

    base: Any
    env: ArmEnvironment
    start: str
    given: tuple[Ints, Floats] | None  # a log used in every replication
    rows: int
    horizon: int
    replications: int
    seed: int
    keep_all: bool
    compilable: bool

    @property
    def width(self) -> int:
        """The most units in one action."""
        return self.env.budget

    def outputs(self) -> tuple[Floats, Ints, Ints]:
        """Where regret, samples used and actions of every replication go."""
        kept = self.horizon if self.keep_all else 1
        regret = np.zeros((self.replications, kept))
        used = np.zeros((self.replications, kept), np.int64)
        return (
            regret,
            used,
            np.full((self.replications, kept if self.keep_all else 0, self.width), -1, np.int64),
        )

    def actions_of(self, actions: Ints) -> Ints | None:
        """The actions as they are returned: without the last axis where one unit is played."""
        if not self.keep_all:
            return None
        return actions[:, :, 0] if self.width == 1 else actions


class Worker:
    """Plays batches of replications into their rows of the outputs."""

    def __init__(self, setting: Setting, outputs: tuple[Floats, Ints, Ints], stop: threading.Event) -> None:
        self.setting = setting
        self.outputs = outputs
        self.stop = stop
        self.finished = 0
        self.position = np.zeros(PLACES, np.int64)
        self.cursor = np.zeros(4, np.int64)
        self.limit = _FIRST_LIMIT

    def progress(self) -> float:
        """Replications finished, and the part of the one at hand."""
        return self.finished + int(self.cursor[WORLD]) + min(int(self.position[ROUND]) / self.setting.horizon, 1.0)

    def run(self, batches: Any, report: Any) -> None:
        """Take batches until there are none left."""
        adapter, memory = self._seat()
        ledger = self._ledger(adapter)
        while batch := batches.take():
            if isinstance(adapter, PlainAdapter):
                adapter = numbered(adapt(self.setting.base), self.setting.env.n_arms)
            self._play(adapter, memory, ledger, batch, report)
            self.finished += len(batch)
            self.cursor[:] = 0
            self.position[:] = 0

    def _seat(self) -> tuple[Adapter, Memory]:
        """A copy of the base whose state is one buffer; a plain object has a state only it knows."""
        adapter = adapt(self.setting.base)
        state = np.empty(0, np.int64)
        if isinstance(adapter, PlainAdapter):
            numbered(adapter, self.setting.env.n_arms)
        else:
            component, state = packed(adapter.algorithm)
            _seat_component(adapter, component)
        rows = 0 if self.setting.given is not None else self.setting.rows
        return adapter, Memory(state, state.copy(), np.zeros(1, np.int64), np.empty(rows, np.int64))

    def _ledger(self, adapter: Adapter) -> ArmLedger:
        """The given log, or the place for one."""
        setting = self.setting
        units, values = setting.given or (np.zeros(setting.rows, np.int64), np.zeros(setting.rows))
        if setting.start == "ignorant":
            units, values = units[:0], values[:0]
        if setting.start != "artificial-replay":
            return stream_ledger(units, values)
        cell = _cell_of_arms(adapter, setting.env.n_arms)
        if setting.given is not None:
            return arm_ledger(units, values, cell)
        n_cells = int(cell.max()) + 1
        return ArmLedger(units, values, cell, np.zeros(n_cells, np.int64), np.zeros(n_cells, np.int64))

    def _play(self, adapter: Adapter, memory: Memory, ledger: ArmLedger, batch: range, report: Any) -> None:
        setting = self.setting
        rewards = self._rewards(adapter, batch)
        order = Order(
            horizon=setting.horizon,
            rows=0 if setting.given is not None else setting.rows,
            feed=setting.rows if setting.start == "full-start" else 0,
            pause=int(setting.start == "full-start-batch"),
        )
        rows = slice(batch.start, batch.stop)
        regret, used, actions = self.outputs
        record = Record(np.zeros(1), regret[rows], used[rows], actions[rows])
        first = adapter.algorithm
        run = play.bound_to(first, ledger, rewards, memory, order, record)
        result = 0
        while result != DONE:
            began = time.perf_counter()
            where = (self.position, self.cursor, adapter.proposal, self.limit)
            result = run(adapter.algorithm, ledger, rewards, memory, order, record, *where)
            if result == NEEDS_ROOM:
                adapter.make_room(max(len(adapter.proposal), 1))
                memory.grown[0] = 1
            elif result == GROWN:
                _seat_component(adapter, first)
                memory.grown[0] = 0
            elif result == LOG_IS_DRAWN:
                load_batch(adapter.base, ledger.unit, ledger.reward)
                self.position[USED] = setting.rows
                memory.grown[0] = int(adapter.algorithm is not first)
            elif result in (BAD_PROPOSAL, NOT_AN_ARM):
                raise InvalidAction(_complaint(result, adapter, setting))
            elif self.cursor[STEPS] >= self.limit:
                self.limit = next_limit(self.limit, time.perf_counter() - began)
            if self.stop.is_set():
                raise Stopped
            if report is not None:
                report()
        if adapter.algorithm is not first:
            _seat_component(adapter, first)
            memory.grown[0] = 0

    def _rewards(self, adapter: Adapter, batch: range) -> ArmRewards:
        """The worlds of a batch; rewards in [0, 1] reach the base as its reward range wants them."""
        setting = self.setting
        numbers = np.arange(batch.start, batch.stop)
        seed = getattr(adapter.base, "seed", 0)  # of an object of the user's own, it may be anything
        base_seed = max(int(seed), 0) if isinstance(seed, Integral) else 0
        worlds = setting.env.worlds(
            world_keys(setting.seed, numbers), fold_each(fold(setting.seed, base_seed), numbers)
        )
        if not isinstance(adapter, NamedAdapter) or not adapter.base.scales:
            return setting.env.stack(worlds)
        low, high = adapter.reward_range
        return setting.env.stack(worlds, low, high - low)


def _complaint(result: int, adapter: Adapter, setting: Setting) -> str:
    if result == BAD_PROPOSAL:
        return (
            f"{type(adapter.base).__qualname__} must propose at least 1 unit and at most {setting.width}, "
            "which is what the environment plays in a round"
        )
    return f"{adapter.base!r} proposed a unit that is not one of the {setting.env.n_arms} arms"


def _seat_component(adapter: Adapter, component: Any) -> None:
    if isinstance(adapter, NamedAdapter):
        adapter.base.component = component
    elif not isinstance(adapter, PlainAdapter):
        adapter.base = component


def numbered(adapter: Adapter, n_arms: int) -> Adapter:
    """Let a plain object's units have the numbers of the arms."""
    for arm in range(n_arms):
        adapter.number(arm)
    return adapter


def _cell_of_arms(adapter: Adapter, n_arms: int) -> Ints:
    """The cell of each arm of the environment, as a number."""
    if not isinstance(adapter, PlainAdapter):
        return adapter.cell_of_units(np.array([n_arms - 1]))
    cell_of = adapter.cell_of(None)
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(cell_of(arm), len(numbers)) for arm in range(n_arms)], dtype=np.int64)
