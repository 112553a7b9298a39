"""Simulations that no loop can play: those of a user's own object, of a user's own world, or with late rewards.

A policy plays them, by `ask` and `tell`.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Protocol, cast

import numpy as np

from artreplay.algorithms import Algorithm, PointAlgorithm
from artreplay.algorithms.budget import BUDGET_SLACK
from artreplay.cells.boxes import WITHIN
from artreplay.compiling import Ints, Words
from artreplay.engine.setting import Outputs, Setting, space_of
from artreplay.environments import ArmEnvironment, ContextEnvironment, Drawn, PointEnvironment, world_keys
from artreplay.environments.own_environment import CheckedWorld, OwnEnvironment
from artreplay.environments.point_stack import key_of_point
from artreplay.errors import InvalidAction, InvalidParameter, exact
from artreplay.history import History
from artreplay.inspecting import look_no_more
from artreplay.replay import (
    AGAIN,
    ArtificialReplay,
    FullStart,
    Ignorant,
    ObjectBase,
    Policy,
    shared_generators,
    used_counts,
)
from artreplay.streams import DELAY, REWARD, mixed, uniform

_PLAYS = 10  # of a replication, before a draw in the same call of each of them is called the base's own
# The methods of a base in which it calls what the user brought.
_CALLS = ("propose_over", "update", "update_logged", "value", "note_unread", "checked_number", "cell_name", "reseed")


class PlayedUnit(NamedTuple):
    """A unit that is played: its arm or box, the number of its level, and its expected reward."""

    number: int
    level: int
    mean: float
    key: Any = 0  # keys the draws of a point


class Replication(Protocol):
    """One replication of an environment."""

    def context(self, round_: int) -> dict[str, Any]:
        """The context of a round, as an argument of `ask` and `tell`; empty where a policy is not told."""

    def best(self, round_: int) -> float:
        """Return the best expected reward of a round."""

    def best_mean(self, round_: int) -> float:
        """Return the expected reward of the best arm in a round."""

    def draw_history(self, rows: int) -> History:
        """Draw the log of this replication."""

    def look(self, action: list[Any], round_: int) -> list[PlayedUnit]:
        """Return the units that an action plays. Refuse an action that is not possible."""

    def reward(self, unit: PlayedUnit, round_: int) -> float:
        """Return the reward of a unit."""

    def delay(self, unit: PlayedUnit, round_: int) -> int:
        """Return how many rounds later the reward arrives."""


def play_by_asking(setting: Setting, outputs: Outputs, report: Callable[[int], None]) -> None:
    """Play all replications, one after another."""
    for replication in range(setting.replications):
        before = shared_generators()
        _play(setting, outputs, replication)
        if isinstance(setting.base, ObjectBase) and before != shared_generators():
            _check_draws(setting, replication)
        report(replication + 1)


def _check_draws(setting: Setting, replication: int) -> None:
    """Refuse a base that draws from a generator that everything shares; another thread, or the world, may.

    Up to its first such draw a base does the same each time it plays, so that it draws in the same call. Of what others
    draw meanwhile nothing falls into that call time after time.
    """
    outputs = replace(setting, replications=replication + 1).outputs()
    suspects: set[int] | None = None
    for _ in range(_PLAYS):
        calls = _Calls()
        _play(setting, outputs, replication, calls)
        suspects = calls.draws if suspects is None else suspects & calls.draws
        if not suspects:
            return
    raise InvalidParameter(
        f"{type(setting.user_base).__qualname__} draws from the shared generator of `random` or `numpy.random`, so the "
        "same seed would not give the same result. Let it keep its own generator as an attribute, or offer reseed(key)"
    )


class _Calls:
    """Counts the calls of a base, and notes in which of them a generator that everything shares was drawn from."""

    def __init__(self) -> None:
        self.count = 0
        self.draws: set[int] = set()

    def watch(self, base: ObjectBase) -> None:
        """Count the calls of this base from now on."""
        for name in _CALLS:
            setattr(base, name, partial(self._call, getattr(base, name)))

    def _call(self, method: Callable[..., Any], *arguments: Any) -> Any:
        self.count += 1
        number, before = self.count, shared_generators()
        try:
            return method(*arguments)
        finally:
            if before != shared_generators():
                self.draws.add(number)


def _play(setting: Setting, outputs: Outputs, replication: int, calls: _Calls | None = None) -> None:
    with np.errstate(over="ignore"):  # counters of random draws may wrap around
        _play_rounds(setting, outputs, replication, calls)


def _play_rounds(setting: Setting, outputs: Outputs, replication: int, calls: _Calls | None) -> None:
    numbers = setting.numbers(range(replication, replication + 1))
    key = world_keys(setting.seed, numbers)
    world = _world(setting, key)
    policy = _policy(setting, world)
    if calls is not None and isinstance(policy.drive.base, ObjectBase):
        calls.watch(policy.drive.base)
    policy.drive.base.component.reseed(setting.base_keys(numbers)[0])
    total = 0.0
    late: list[tuple[int, int, Any, Any, dict[str, Any]]] = []
    for round_ in range(setting.horizon + (setting.stop is not None)):
        while late and late[0][0] <= round_:
            _, _, action, reward, context = heapq.heappop(late)
            policy.tell(action, reward, **context)
        context = world.context(round_)
        action = policy.ask(**context)
        if setting.stop is not None:
            arm = setting.stop(policy)
            if isinstance(arm, (bool, np.bool_)):  # which would be arm 0 or 1
                raise InvalidParameter(f"stop must return the arm to recommend, or None to go on, got {arm}")
            if arm is not None:
                _stop(outputs, replication, round_, world, arm)
                first = round_ if setting.keep_all else 0
                outputs.regret[replication, first:], outputs.used[replication, first:] = total, policy.used
                break
            if round_ == setting.horizon:
                break
        units = action if isinstance(action, list) else [action]
        if len(units) > setting.width:
            name = type(setting.user_base).__qualname__
            raise InvalidAction(
                f"{name} must propose at least 1 unit and at most {setting.width}, which is what the environment plays "
                "in a round"
            )
        played = world.look(units, round_)
        total += world.best(round_) - sum(unit.mean for unit in played)
        if setting.keep_all or round_ == setting.horizon - 1:
            place = round_ if setting.keep_all else 0
            outputs.regret[replication, place], outputs.used[replication, place] = total, policy.used
        if setting.keep_all:
            for slot, unit in enumerate(played):
                outputs.actions[replication, round_, slot] = unit.number
                if setting.levels is not None:
                    outputs.levels[replication, round_, slot] = unit.level
        due = round_ + max(world.delay(unit, round_) for unit in played)
        rewards = [world.reward(unit, round_) for unit in played]
        if setting.keep_all:
            outputs.rewards[replication, round_, : len(rewards)] = rewards
        reward = rewards if isinstance(action, list) else rewards[0]
        if due == round_:
            policy.tell(action, reward, **context)
        else:
            heapq.heappush(late, (due, round_, action, reward, context))
    if outputs.by_arm.shape[1]:
        _count_by_arm(policy, outputs.by_arm[replication])


def _stop(outputs: Outputs, replication: int, round_: int, world: Replication, arm: object) -> None:
    """Write down what a rule recommended before a round."""
    try:
        recommended = world.look([arm], round_)[0]
    except InvalidAction:
        raise InvalidAction(f"stop must return one of the arms, or None to go on, got {arm!r}") from None
    outputs.stopped[replication] = round_
    outputs.recommended[replication] = recommended.number
    outputs.lost[replication] = world.best_mean(round_) - recommended.mean


def _world(setting: Setting, key: Words) -> Replication:
    """Return the world of a replication."""
    env = setting.env
    if isinstance(env, ContextEnvironment):
        return ContextReplication(setting, env, key)
    return ArmReplication(setting, key) if isinstance(env, ArmEnvironment) else PointReplication(env, key[0])


def _policy(setting: Setting, world: Replication) -> Policy:
    """Make the policy of a replication."""
    if setting.start == "ignorant":
        return Ignorant(setting.user_base)
    history = world.draw_history(setting.rows) if setting.history is None else setting.history
    if setting.history is None:
        look_no_more(history)
    if setting.start == "full-start":
        return FullStart(setting.user_base, history, drift=setting.user_drift)
    return ArtificialReplay(setting.user_base, history, setting.relation, drift=setting.user_drift)


def _count_by_arm(policy: Policy, by_arm: Ints) -> None:
    """Add the rows that a policy was shown to `by_arm`."""
    base = policy.drive.base
    for number, count in enumerate(used_counts(policy, partial(np.bincount, minlength=len(by_arm))).tolist()):
        if count:  # a plain object numbers arms in the order it sees them
            by_arm[cast(int, base.unit(number)) if isinstance(base, ObjectBase) else number] += count


class ArmReplication:
    """One replication of an environment of arms."""

    def __init__(self, setting: Setting, key: Words) -> None:
        env: Any = setting.env
        self._setting = setting
        self._key = key[0]
        self._rewards = self._stack(env.worlds(key, key))
        self._rewards.enter(0)
        self._own: CheckedWorld | None = None
        if isinstance(env, OwnEnvironment) and env.has_delays:
            own = self._rewards.own
            self._own = own if isinstance(own, CheckedWorld) else CheckedWorld(own, env.reward_range)

    def _stack(self, worlds: Any) -> Any:
        env: Any = self._setting.env
        return env.stack(worlds)

    def context(self, round_: int) -> dict[str, Any]:
        """There is none."""
        return {}

    def best(self, round_: int) -> float:
        """Return the best expected reward of a round."""
        return float(self._rewards.optimum[0])

    def best_mean(self, round_: int) -> float:
        """Return the expected reward of the best arm in a round."""
        env: Any = self._setting.env
        self._rewards.meet(0, round_, 0)
        return max(float(self._rewards.expected(arm, 0)) for arm in range(env.n_arms))

    def draw_history(self, rows: int) -> History:
        """Draw the log of this replication."""
        env: Any = self._setting.env
        logged, base = env.draw_log(self._rewards, rows), self._setting.base
        arms = [base.unit(arm) for arm in logged.arms.tolist()] if isinstance(base, Algorithm) else logged.arms
        return History(arms, logged.rewards)

    def look(self, action: list[Any], round_: int) -> list[PlayedUnit]:
        """Return the arms that are played."""
        base = self._setting.base
        arms = [base.checked_number(unit) if isinstance(base, Algorithm) else unit for unit in action]
        for slot, arm in enumerate(arms):
            if not isinstance(arm, (int, np.integer)) or self._rewards.meet(arm, round_, slot) != AGAIN:
                units = self._setting.describe_units()
                raise InvalidAction(f"{self._setting.user_base!r} proposed {arm!r}, which is not one of {units}")
        return [PlayedUnit(int(arm), 0, self._rewards.expected(arm, slot)) for slot, arm in enumerate(arms)]

    def reward(self, unit: PlayedUnit, round_: int) -> float:
        """Return the next reward of an arm."""
        return float(self._rewards.pull(unit.number, round_, 0))

    def delay(self, unit: PlayedUnit, round_: int) -> int:
        """Return how many rounds later the reward arrives."""
        if self._own is None:
            return 0
        return self._own.delay(unit.number, round_, float(uniform(self._key, DELAY, unit.number, round_)))


class ContextReplication(ArmReplication):
    """One replication of an environment whose rounds have contexts."""

    def __init__(self, setting: Setting, env: ContextEnvironment, key: Words) -> None:
        self._env = env
        self._rounds: Drawn | None = None
        super().__init__(setting, key)

    def _stack(self, worlds: Any) -> Any:
        return self._env.stack(worlds, horizon=self._setting.horizon)

    def context(self, round_: int) -> dict[str, Any]:
        """The context of a round, for a base that uses contexts."""
        if self._rewards.introduce(None, round_) != AGAIN:
            self._rounds = self._env.draw_ahead(self._rewards, None)
        if self._rounds is None or not self._setting.base.contextual:
            return {}
        at = round_ - int(self._rewards.at_hand[0])
        return {"context": {name: column[at : at + 1].tolist()[0] for name, column in self._rounds.contexts.items()}}

    def draw_history(self, rows: int) -> History:
        """The log of this replication."""
        return self._env.history_of(self._rewards, rows, self._setting.base)


class PointReplication:
    """One replication of a continuous space, for an object that proposes points itself."""

    def __init__(self, env: PointEnvironment, key: np.uint64) -> None:
        self._env = env
        self._key = key
        self._space = cast(PointAlgorithm, space_of(env))
        self._known: dict[tuple[bytes, int], PlayedUnit] = {}

    def context(self, round_: int) -> dict[str, Any]:
        """There is none."""
        return {}

    def best(self, round_: int) -> float:
        """Return the best expected reward of a round."""
        return self._env.optimum

    def draw_history(self, rows: int) -> History:
        """Draw the log of this replication."""
        return self._env.history_of(self._key, rows)

    def best_mean(self, round_: int) -> float:
        """Return the expected reward of the best action, of which no rule is asked."""
        return self._env.optimum

    def look(self, action: list[Any], round_: int) -> list[PlayedUnit]:
        """Return the points that are played."""
        env = self._env
        places = [self._space.checked_place(unit) for unit in action]
        if env.levels is not None and env.budget is not None:
            efforts = [env.levels[level] for _, level in places]
            if sum(efforts) > env.budget * BUDGET_SLACK:
                levels = ", ".join(map(exact, efforts))
                raise InvalidAction(
                    f"the levels of a proposal must sum to at most the budget of {exact(env.budget)}, got {levels}"
                )
        return [self._played(point, level) for point, level in places]

    def reward(self, unit: PlayedUnit, round_: int) -> float:
        """Return the reward of a point in a round."""
        return float(self._env.law.draw(mixed(self._key ^ unit.key), REWARD, 0, round_, unit.mean))

    def delay(self, unit: PlayedUnit, round_: int) -> int:
        """Return 0, because rewards of points are never late."""
        return 0

    def _played(self, coordinates: list[float], level: int) -> PlayedUnit:
        """Return a point with its mean, which is computed only once."""
        point = np.array(coordinates) + 0.0  # adding 0 turns -0.0 into 0.0, so that both are one point
        unit = self._known.get((point.tobytes(), level))
        if unit is None:
            env = self._env
            mean = float(env.means(point[None, :], np.array([env.level_values()[level]]))[0])
            number = int(env.lattice.unit(point, level)) & WITHIN
            unit = PlayedUnit(number, level, mean, key_of_point(point.view(np.uint64), level))
            self._known[point.tobytes(), level] = unit
        return unit
