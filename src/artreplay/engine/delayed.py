"""Simulations in which rewards come late: the policies themselves are asked and told, because they know how to."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from artreplay.algorithms import Algorithm
from artreplay.engine.stages import Outputs, Setting
from artreplay.environments import world_keys
from artreplay.environments.own_environment import CheckedWorld, OwnEnvironment
from artreplay.errors import InvalidAction, InvalidParameter
from artreplay.history import History, Totals
from artreplay.replay import AGAIN, ArtificialReplay, FullStart, Ignorant, ObjectBase, used_counts
from artreplay.streams import DELAY, uniform


def play_delayed(setting: Setting, outputs: Outputs, report: Callable[[int], None]) -> None:
    """Play all replications, one after another."""
    for replication in range(setting.replications):
        _play(setting, outputs, replication)
        report(replication + 1)


def _play(setting: Setting, outputs: Outputs, replication: int) -> None:
    env = setting.env
    if not isinstance(env, OwnEnvironment) or setting.drift.is_there:
        raise InvalidParameter("rewards that come late are simulated without drift= only")
    numbers = np.array([replication])
    key, base_key = world_keys(setting.seed, numbers), setting.base_keys(setting.base, numbers)
    rewards = env.stack(env.worlds(key, base_key))
    rewards.enter(0)
    policy: Any = Ignorant(setting.base)
    if setting.start != "ignorant":
        make = FullStart if setting.start == "full-start" else ArtificialReplay
        policy = make(setting.base, _log(setting, rewards, policy.base))
    policy.drive.base.component.reseed(base_key[0])
    own = CheckedWorld(rewards.own, env.reward_range) if env.is_compilable else rewards.own
    late: list[tuple[int, int, Any, float]] = []
    regret, used, actions, _, by_arm = (output[replication] for output in outputs)
    total = 0.0
    for round_ in range(setting.horizon):
        while late and late[0][0] <= round_:
            _, _, played, reward = heapq.heappop(late)
            policy.tell(played, reward)
        action = policy.ask()
        arm = policy.base.checked_number(action) if isinstance(policy.base, Algorithm) else action
        if not isinstance(arm, (int, np.integer)) or rewards.meet(arm, round_, 0) != AGAIN:
            raise InvalidAction(f"{setting.base!r} proposed {action!r}, which is not one of {setting.describe_units()}")
        arm = int(arm)
        total += float(rewards.optimum[0]) - rewards.expected(arm, 0)
        if setting.keep_all or round_ == setting.horizon - 1:
            place = round_ if setting.keep_all else 0
            regret[place], used[place] = total, policy.used
            if setting.keep_all:
                actions[round_, 0] = arm
        due = round_ + own.delay(arm, round_, float(uniform(key[0], DELAY, arm, round_)))
        reward = rewards.pull(arm, round_, 0)
        if due == round_:
            policy.tell(action, reward)
        else:
            heapq.heappush(late, (due, round_, action, reward))
    if len(by_arm):
        base = policy.drive.base
        for number, count in enumerate(used_counts(policy, partial(np.bincount, minlength=len(by_arm))).tolist()):
            # A plain object numbers arms as it meets them.
            by_arm[base.unit(number) if isinstance(base, ObjectBase) and count else number] += count


def _log(setting: Setting, rewards: Any, base: Any) -> History | Totals:
    """The log of a replication: the given one, or one that is drawn."""
    if setting.given is not None:
        return setting.given
    drawn, values = np.empty(setting.rows, np.int64), np.empty(setting.rows)
    rewards.draw_rows(0, setting.rows, drawn, values)
    arms = drawn.tolist()
    named = [base.unit(arm) for arm in arms] if isinstance(base, Algorithm) else arms
    return History(named, values)
