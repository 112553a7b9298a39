"""Prepares what a batch of replications is played with: the ledger, the log and the rewards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, cast

import numpy as np

from artreplay.algorithms import Algorithm, PointAlgorithm
from artreplay.cells.boxes import LEVEL_AT
from artreplay.cells.unit_cells import UnitCells, table_of
from artreplay.compiling import Floats, Ints, copied
from artreplay.engine.play import ArmLog, ContextLog, PointLog, Rewards
from artreplay.engine.setting import Setting, frozen_contexts
from artreplay.environments import ArmEnvironment, ContextEnvironment, PointEnvironment, world_keys
from artreplay.environments.context_stack import ContextRewards, ContextRows, WithoutContexts
from artreplay.environments.point_stack import PointRewards, nothing_asked, nothing_known, with_space
from artreplay.environments.stack import Bernoulli, Law, WorldKeys
from artreplay.history import History
from artreplay.replay import Base, BaseLog, Ledger, Part, empty_ledger, filled_ledger

NO_UNITS: Ints = np.empty(0, np.int64)
NO_NUMBERS: Floats = np.empty(0)
NO_ALLOWANCES: Floats = np.zeros(1)  # one entry for all rows


class Scene(NamedTuple):
    """What the loop needs for one batch."""

    ledger: Ledger
    log: ArmLog | ContextLog | PointLog
    rewards: Rewards
    shows_all: bool  # whether the log is shown before anything is proposed
    learn: Callable[[Any], Rewards]  # returns the rewards with the means that they lacked
    counted: list[int] | None = None  # rows of each segment, where the base counts those of a log that is drawn


class Stage(Protocol):
    """Prepares batches of replications. Each worker has its own."""

    def open(self, batch: range) -> Scene:
        """Prepare these replications."""


def stage_of(setting: Setting, base: Base) -> Stage:
    """Return the stage for an environment."""
    if isinstance(setting.env, ContextEnvironment):
        return ContextStage(setting, base, setting.env)
    if isinstance(setting.env, ArmEnvironment):
        return ArmStage(setting, base, setting.env)
    return PointStage(setting, cast(PointAlgorithm, base), setting.env)


class ArmStage:
    """Finite arms: many replications in one batch, whose logs are drawn inside the loop."""

    def __init__(self, setting: Setting, base: Base, env: ArmEnvironment) -> None:
        self.setting, self.base, self.env = setting, base, env
        drift, arms = setting.drift, np.arange(env.n_arms)
        self._shows_all = setting.shows_log(base)
        cells = table_of(base.unit_cells(arms).of(arms))
        if setting.rows and isinstance(setting.history, History):
            self._ledger, self._log = self._read_log(setting.history)
            return
        rows = 0 if setting.totals else setting.rows
        self._ledger = empty_ledger(cells, 0 if self._shows_all else rows, allowed=drift.is_there)
        of_arms = drift.of_rows(arms, None) if rows else None
        self._log = ArmLog(
            is_drawn=True,
            unit=np.empty(rows, np.int64),
            reward=np.empty(rows),
            allowance=np.zeros(rows if drift.is_there else 1),
            allowance_of_arm=NO_NUMBERS if of_arms is None else drift.scaled(of_arms),
            start=np.zeros(cells.size, np.int64),
        )

    def open(self, batch: range) -> Scene:
        """Prepare these replications."""
        numbers = self.setting.numbers(batch)
        keys = world_keys(self.setting.seed, numbers)
        worlds = self.env.worlds(keys, self.setting.base_keys(numbers))
        rewards = self.env.stack(worlds, law_for(self.base, self.env))
        if self.setting.draws_logs_singly:
            stack = self.env.stack(worlds)
            stack.enter(0)
            self._ledger, self._log = self._read_log(self.env.history_of(stack, self.setting.rows, self.base))
        return Scene(self._ledger, self._log, rewards, self._shows_all, lambda rewards: rewards)

    def _read_log(self, history: History) -> tuple[Ledger, ArmLog]:
        """Return the ledger of a log, and its rows for a base that is shown all of them first."""
        arms, base = np.arange(self.env.n_arms), self.base
        part = cast(Part, BaseLog(base, history, "error", self.setting.drift).whole)
        ledger = _ledger_of(part, table_of(base.unit_cells(arms).of(arms)), self._shows_all)
        allowances = NO_ALLOWANCES if part.allowances is None else part.allowances
        return ledger, ArmLog(False, part.units, part.rewards, allowances, NO_NUMBERS, ledger.start.copy())


class ContextStage:
    """Arms with contexts: one replication at a time, whose contexts and log Python draws."""

    def __init__(self, setting: Setting, base: Base, env: ContextEnvironment) -> None:
        self.setting, self.base, self.env = setting, base, env
        self._contexts = frozen_contexts(base)
        self._shows_all = setting.shows_log(base)

    def open(self, batch: range) -> Scene:
        """The scene for this replication."""
        setting, numbers = self.setting, self.setting.numbers(batch)
        worlds = self.env.worlds(world_keys(setting.seed, numbers), setting.base_keys(numbers))
        rewards = self.env.stack(worlds, law_for(self.base, self.env), self._contexts, setting.horizon)
        ledger, log, counted = self._read_log(rewards)
        return Scene(ledger, log, rewards, self._shows_all, self._learn, counted)

    def _read_log(self, rewards: ContextRewards) -> tuple[Ledger, ContextLog, list[int] | None]:
        """Return the ledger of the log, its rows for a base that is shown all of them first, and the rows it counts."""
        setting, base, history = self.setting, self.base, self.setting.history
        if not isinstance(history, History):
            history = self.env.history_of(rewards, 0 if setting.totals else setting.rows, base)
        known = BaseLog(base, history, "error", setting.drift)
        part = cast(Part, known.whole)
        ledger = _ledger_of(part, base.unit_cells(part.units), self._shows_all)
        seen = WithoutContexts() if part.contexts is None else ContextRows(np.ascontiguousarray(part.contexts))
        allowances = NO_ALLOWANCES if part.allowances is None else part.allowances
        n_segments = 1 if self._contexts is None else self._contexts.n_segments
        rows = ContextLog(part.units, part.rewards, allowances, ledger.start.copy(), seen, n_segments)
        is_counted = isinstance(base, Algorithm) and base.counts_log and setting.rows > 0
        counted = known.rows_to_count() if is_counted else None
        return ledger, rows, counted if isinstance(counted, list) else None

    def _learn(self, rewards: ContextRewards) -> ContextRewards:
        """The rewards with the rounds that they lacked."""
        self.env.draw_ahead(rewards, self._contexts)
        return rewards


class PointStage:
    """A continuous space: one replication in a batch, whose log Python draws."""

    def __init__(self, setting: Setting, base: PointAlgorithm, env: PointEnvironment) -> None:
        self.setting, self.base, self.env = setting, base, env
        self._known = nothing_known()

    def open(self, batch: range) -> Scene:
        """Prepare this replication."""
        numbers = self.setting.numbers(batch)
        worlds = WorldKeys(world_keys(self.setting.seed, numbers), self.setting.base_keys(numbers))
        ledger, log = self._read_log(worlds.key[0])
        return Scene(ledger, log, self._rewards(worlds), len(log.unit) > 0, self._learn)

    def _read_log(self, key: np.uint64) -> tuple[Ledger, PointLog]:
        """Return the ledger of the log, or all its rows if they are shown first."""
        setting, base = self.setting, self.base
        if setting.start == "ignorant":
            return empty_ledger(base.unit_cells(NO_UNITS)), PointLog(NO_UNITS, NO_NUMBERS, NO_ALLOWANCES)
        history = self.env.history_of(key, setting.rows) if setting.history is None else setting.history
        log = BaseLog(base, history, "error", setting.drift)
        part = cast(Part, log.whole)
        if not setting.shows_log(base):
            ledger = filled_ledger(base.unit_cells(part.units), part, None if base.counts_rows else log.end)
            return ledger, PointLog(NO_UNITS, NO_NUMBERS, NO_ALLOWANCES)
        ledger = _ledger_of(part, base.unit_cells(NO_UNITS), shows_all=True)
        return ledger, PointLog(part.units, part.rewards, NO_ALLOWANCES if part.allowances is None else part.allowances)

    def _rewards(self, worlds: WorldKeys) -> PointRewards:
        """Return the rewards of this replication."""
        width, point = self.setting.width, np.zeros(self.env.dim)
        return PointRewards(
            worlds=worlds,
            key=worlds.key[:1].copy(),
            optimum=np.array([self.env.optimum]),
            lattice=self.base.lattice,
            picker=copied(self.base.picker),
            known=self._known,
            asked=nothing_asked(self.env.dim),
            law=law_for(self.base, self.env),
            point=point,
            bits=point.view(np.uint64),
            seen=np.zeros(width, np.uint64),
            mean=np.zeros(width),
            unit=np.zeros(width, np.int64),
        )

    def _learn(self, rewards: PointRewards) -> PointRewards:
        """Return the rewards with the means of the points that were asked for."""
        asked, count = rewards.asked, int(rewards.asked.size[0])
        levels = np.array(self.env.level_values())[asked.unit[:count] >> LEVEL_AT]
        asked.mean[:count] = self.env.means(asked.point[:count], levels)
        self._known = with_space(rewards.known, count)
        return rewards if self._known is rewards.known else rewards._replace(known=self._known)


def _ledger_of(part: Part, cells: UnitCells, shows_all: bool) -> Ledger:
    """Return the ledger of a log, without rows if all of them are shown first."""
    if shows_all:
        return empty_ledger(cells, allowed=part.allowances is not None)
    return filled_ledger(cells, part)


def as_earned(rewards: Floats, law: Any) -> Floats:
    """Return rewards that a base saw by this law on the scale of the environment."""
    if isinstance(law, Bernoulli):
        if (law.failure, law.success) == (0.0, 1.0):
            return rewards
        return np.where(np.isnan(rewards), np.nan, (rewards == law.success).astype(np.float64))
    return rewards if (law.low, law.span) == (0.0, 1.0) else law.low + law.span * rewards


def law_for(base: Base, env: ArmEnvironment | PointEnvironment) -> Law:
    """Return how rewards are drawn. Rewards in [0, 1] are scaled to the reward range of the base."""
    law: Law = env.law
    if not isinstance(base, Algorithm) or not base.scales:
        return law
    low, high = base.reward_range
    return law.seen_as(low, high - low)
