"""A worker takes batches of replications, one after another, and plays each in its own memory."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

import numpy as np

from artreplay.algorithms import PointAlgorithm
from artreplay.compiling import Ints, Slices, packed
from artreplay.engine.play import CURSOR_SIZE, GROWN, WORLD, Session, play_one, play_several
from artreplay.engine.setting import Outputs, Setting
from artreplay.engine.stages import Scene, stage_of
from artreplay.environments.stack import NEEDS_MEANS, NOT_A_UNIT
from artreplay.errors import InvalidAction
from artreplay.replay import (
    BAD_PROPOSAL,
    BAD_VALUE,
    DONE,
    NEEDS_ROOM,
    PLACES,
    ROUND,
    Base,
    as_base,
    complaint,
    enlarged,
)

SECONDS_PER_ROW = 1e-5  # about what drawing a row takes in interpreted code


class StopWorkers(Exception):
    """Someone asked the workers to stop."""


class Worker:
    """Plays batches of replications and writes them to their rows of the outputs."""

    def __init__(self, setting: Setting, outputs: Outputs, stop: threading.Event) -> None:
        self.setting = setting
        self.outputs = outputs
        self.stop = stop
        self.finished = 0
        self.position = np.zeros(PLACES, np.int64)
        self.cursor = np.zeros(CURSOR_SIZE, np.int64)
        loop = play_one if setting.width == 1 else play_several
        self._slices = Slices(loop, setting.rows * SECONDS_PER_ROW)  # a log is drawn without a pause

    def progress(self) -> float:
        """Return how many replications are finished, including the finished part of the current one."""
        return self.finished + int(self.cursor[WORLD]) + min(int(self.position[ROUND]) / self.setting.horizon, 1.0)

    def run(self, batches: Iterable[range]) -> None:
        """Play batches until there are none left."""
        base = as_base(self.setting.base.thing)
        for unit, samples, total in self.setting.totals:
            base.make_room(samples)
            base.component.load(unit, samples, total)
        base.component, state = packed(base.component)
        fresh, stage = state.copy(), stage_of(self.setting, base)
        for batch in batches:
            state[:] = fresh  # a log is sorted into the cells of a fresh base
            self.cursor[:] = 0
            self.position[:] = 0
            scene = stage.open(batch)
            if scene.counted is not None:
                fresh[:] = _state_that_counts(self.setting.base, scene.counted)
            session = self._session(batch, state, fresh, scene.shows_all)
            first = base.component
            self._play(base, scene, session)
            if isinstance(base, PointAlgorithm):
                self.outputs.boxes[batch.start : batch.stop] = base.n_cells()
            base.component = first  # whose arrays may be shorter than those it has grown into
            self.cursor[WORLD], self.position[ROUND] = 0, 0  # which `progress` adds to what is finished
            self.finished += len(batch)

    def _session(self, batch: range, state: Ints, fresh: Ints, shows_all: bool) -> Session:
        """Collect what these replications are played with, and the arrays they write to."""
        setting, outputs, rows = self.setting, self.outputs, slice(batch.start, batch.stop)
        loaded = 0
        for unit, samples, _ in setting.totals:
            loaded += samples
            if outputs.by_arm.shape[1]:
                outputs.by_arm[rows, unit] += samples
        return Session(
            horizon=setting.horizon,
            loaded=loaded,
            shows_all=shows_all,
            state=state,
            fresh=fresh,
            grown=np.zeros(1, np.int64),
            cursor=self.cursor,
            total=np.zeros(1),
            regret=outputs.regret[rows],
            used=outputs.used[rows],
            actions=outputs.actions[rows],
            levels=outputs.levels[rows],
            rewards=outputs.rewards[rows],
            by_arm=outputs.by_arm[rows],
        )

    def _play(self, base: Base, scene: Scene, session: Session) -> None:
        """Run the loop slice by slice, and supply what it stops for."""
        setting, first = self.setting, base.component
        proposal, _ = base.proposal_space()
        ledger, rewards, result = scene.ledger, scene.rewards, 0
        while result != DONE:
            result = self._slices.run(base.component, ledger, scene.log, rewards, session, self.position, proposal)
            if result == NEEDS_ROOM:
                base.make_room(setting.width)
                ledger = enlarged(ledger, base.unit_cells(np.empty(0, np.int64)).space)
                session.grown[0] = 1
            elif result == NEEDS_MEANS:
                rewards = scene.learn(rewards)
            elif result == GROWN:
                base.component = first
                session.grown[0] = 0
            elif result in (BAD_VALUE, BAD_PROPOSAL, NOT_A_UNIT):
                raise InvalidAction(_complaint(result, base, setting, int(proposal[0])))
            if self.stop.is_set():
                raise StopWorkers


def _state_that_counts(base: Base, rows: list[int]) -> Ints:
    """Return the state of a base that has counted the rows of each segment of a log."""
    again: Any = as_base(base.thing)
    again.count_log(rows)
    return packed(again.component)[1]


def _complaint(result: int, base: Base, setting: Setting, unit: int) -> str:
    """Say what is wrong with a proposal."""
    name = type(base.thing).__qualname__
    if result == BAD_VALUE:
        return complaint(base.component, unit, base.unit(unit), name)
    if result == BAD_PROPOSAL:
        return (
            f"{name} must propose at least 1 unit and at most {setting.width}, which is what the environment plays in "
            "a round"
        )
    return f"{base.thing!r} proposed a unit that is not one of {setting.describe_units()}"
