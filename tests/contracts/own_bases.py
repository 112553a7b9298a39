"""Objects and components of a user's own, over four arms, as a file can hold them."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import artreplay as ar
from artreplay.compiling import Floats, Ints

ARMS = 4


class Saved:
    """What a file needs of an object."""

    def state(self) -> dict[str, Any]:
        return copy.deepcopy(vars(self))

    def restore(self, state: dict[str, Any]) -> None:
        vars(self).update(copy.deepcopy(state))


class LeastSoFar(Saved):
    """An index that is the least "mean plus bonus" so far, which is exact under replay."""

    n_arms = ARMS

    def __init__(self) -> None:
        self.count, self.total, self.index = [0] * ARMS, [0.0] * ARMS, [1.0] * ARMS

    def propose(self) -> Any:
        return self.index.index(max(self.index))

    def update(self, arm: int, reward: float) -> None:
        self.count[arm] += 1
        self.total[arm] += reward
        value = self.total[arm] / self.count[arm] + 0.5 / math.sqrt(self.count[arm])
        self.index[arm] = min(self.index[arm], value)


class TwoAtATime(LeastSoFar):
    """The two highest, as a list."""

    width = 2

    def propose(self) -> list[int]:
        return sorted(range(ARMS), key=lambda arm: (-self.index[arm], arm))[:2]


class InPairs(LeastSoFar):
    """Two arms share a cell, and what is known of it."""

    def cell(self, arm: int) -> str:
        return "low" if arm < 2 else "high"

    def update(self, arm: int, reward: float) -> None:
        super().update(arm // 2 * 2, reward)
        self.index[arm // 2 * 2 + 1] = -1.0


class PlainMeans(Saved):
    """The plain mean, by values: read until the choice is certain."""

    n_arms, reward_range = ARMS, (0.0, 1.0)

    def __init__(self) -> None:
        self.logged, self.played = ([[0, 0.0] for _ in range(ARMS)] for _ in range(2))

    def value(self, arm: int, round: int, unread: int, fill: float) -> float:
        (rows, row_sum), (count, total) = self.logged[arm], self.played[arm]
        return (0.5 + (row_sum + unread * fill) + total) / (1 + rows + unread + count)

    def update(self, arm: int, reward: float) -> None:
        self.played[arm] = [self.played[arm][0] + 1, self.played[arm][1] + reward]

    def update_logged(self, arm: int, reward: float, allowance: float) -> None:
        self.logged[arm] = [self.logged[arm][0] + 1, self.logged[arm][1] + reward]


class AnyRule(Saved):
    """A rule to which everything matters: each sample, its place in the journal, and whether it was logged."""

    n_arms = ARMS

    def __init__(self) -> None:
        self.sum = 0

    def propose(self) -> int:
        return self.sum % 251 % ARMS

    def update(self, arm: int, reward: float) -> None:
        self.sum = (31 * self.sum + 2 * arm + round(7 * reward)) % 65521

    def update_logged(self, arm: int, reward: float, allowance: float) -> None:
        self.sum = (37 * self.sum + 2 * arm + round(5 * reward)) % 65521


class ReadsAll(AnyRule):
    """The same, shown the whole log first."""

    reads_whole_log = True


@ar.compiled
class LeastSoFarComponent(NamedTuple):
    """The exact rule, marked."""

    count: Ints
    total: Floats
    index: Floats
    n_arms: int = ARMS

    def propose(self, out):
        out[0] = 0
        for arm in range(1, self.n_arms):
            if self.index[arm] > self.index[out[0]]:
                out[0] = arm
        return 1

    def update(self, arm, reward):
        self.count[arm] += 1
        self.total[arm] += reward
        value = self.total[arm] / self.count[arm] + 0.5 / math.sqrt(self.count[arm])
        self.index[arm] = min(self.index[arm], value)


@ar.compiled
class AnyRuleComponent(NamedTuple):
    """The rule to which everything matters, marked."""

    sum: Ints  # in one entry
    n_arms: int = ARMS

    def propose(self, out):
        out[0] = self.sum[0] % 251 % self.n_arms
        return 1

    def update(self, arm, reward):
        self.sum[0] = (31 * self.sum[0] + 2 * arm + int(7 * reward)) % 65521

    def update_logged(self, arm, reward, allowance):
        self.sum[0] = (37 * self.sum[0] + 2 * arm + int(5 * reward)) % 65521


@ar.compiled
class ReadsAllComponent(NamedTuple):
    """The same, shown the whole log first."""

    rule: AnyRuleComponent
    n_arms: int = ARMS
    reads_whole_log: bool = True

    def propose(self, out):
        return self.rule.propose(out)

    def update(self, arm, reward):
        self.rule.update(arm, reward)

    def update_logged(self, arm, reward, allowance):
        self.rule.update_logged(arm, reward, allowance)


def any_rule_component() -> AnyRuleComponent:
    return AnyRuleComponent(np.zeros(1, np.int64))


# Exact under replay, whatever is left over.
OWN_EXACT: dict[str, Callable[[], Any]] = {
    "object": LeastSoFar,
    "object, list": TwoAtATime,
    "object, cells": InPairs,
    "object, values": PlainMeans,
    "component": lambda: LeastSoFarComponent(np.zeros(ARMS, np.int64), np.zeros(ARMS), np.ones(ARMS)),
}
# Exact because they are shown the whole log first.
OWN_READ_ALL: dict[str, Callable[[], Any]] = {
    "object that reads all": ReadsAll,
    "component that reads all": lambda: ReadsAllComponent(any_rule_component()),
}
# Of which nothing is promised but that Full Start is what it says.
OWN_ANY: dict[str, Callable[[], Any]] = {"object, any rule": AnyRule, "component, any rule": any_rule_component}
