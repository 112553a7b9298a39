"""Algorithms as different people would write them: those in RIGHT are exact under replay, those in WRONG are not.

Each is made by a call without arguments and chooses among three arms. Most of the right ones have one rule, an index
that is the least "mean plus bonus" so far, and keep it in ways that a check must not stumble over.
"""

from __future__ import annotations

import heapq
import logging
import math
import random
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

import artreplay as ar

ARMS = 3


def bound(total: float, count: int) -> float:
    """Mean plus bonus."""
    return total / count + 0.5 / math.sqrt(count)


# -- right -------------------------------------------------------------------------------------------------------------


class Lists:
    """Three lists."""

    n_arms = ARMS

    def __init__(self) -> None:
        self.count, self.total, self.index = [0] * ARMS, [0.0] * ARMS, [1.0] * ARMS

    def propose(self) -> int:
        return max(range(ARMS), key=lambda arm: (self.index[arm], -arm))

    def update(self, arm: int, reward: float) -> None:
        self.count[arm] += 1
        self.total[arm] += reward
        self.index[arm] = min(self.index[arm], bound(self.total[arm], self.count[arm]))


class Arm:
    """What is known of an arm, without any way to compare it."""

    def __init__(self) -> None:
        self.count, self.total, self.index = 0, 0.0, 1.0

    def add(self, reward: float) -> None:
        self.count += 1
        self.total += reward
        self.index = min(self.index, bound(self.total, self.count))


class Nested:
    """A list of plain objects."""

    n_arms = ARMS

    def __init__(self) -> None:
        self.arms_known = [Arm() for _ in range(ARMS)]

    def propose(self) -> int:
        return max(range(ARMS), key=lambda arm: (self.arms_known[arm].index, -arm))

    def update(self, arm: int, reward: float) -> None:
        self.arms_known[arm].add(reward)


class Wrapped:
    """Another algorithm behind a thin wall, as people do to log what happens."""

    n_arms = ARMS

    def __init__(self) -> None:
        self.inner = Nested()
        self.log = logging.getLogger("bandit")

    def propose(self) -> int:
        return self.inner.propose()

    def update(self, arm: int, reward: float) -> None:
        self.log.debug("%s %s", arm, reward)
        self.inner.update(arm, reward)


class UnusedGenerator(Lists):
    """A generator that a later version was to use."""

    def __init__(self) -> None:
        super().__init__()
        self.rng = np.random.default_rng(7)
        self.other = random.Random(7)


class ArraysInAList:
    """An array of samples for each arm, grown by hand."""

    n_arms = ARMS

    def __init__(self) -> None:
        self.samples = [np.empty(0) for _ in range(ARMS)]
        self.index = np.ones(ARMS)

    def propose(self) -> int:
        return int(np.argmax(self.index))

    def update(self, arm: int, reward: float) -> None:
        self.samples[arm] = np.append(self.samples[arm], reward)
        total = 0.0
        for one in self.samples[arm]:
            total += one
        self.index[arm] = min(self.index[arm], bound(total, len(self.samples[arm])))


class Slots:
    """No dictionary of attributes."""

    __slots__ = ("count", "index", "total")
    n_arms = ARMS

    def __init__(self) -> None:
        self.count, self.total, self.index = [0] * ARMS, [0.0] * ARMS, [1.0] * ARMS

    propose = Lists.propose
    update = Lists.update


@dataclass
class Data:
    """A dataclass of arrays, which `==` cannot compare."""

    n_arms: int = ARMS
    count: Any = field(default_factory=lambda: np.zeros(ARMS, int))
    total: Any = field(default_factory=lambda: np.zeros(ARMS))
    index: Any = field(default_factory=lambda: np.ones(ARMS))

    def propose(self) -> int:
        return int(self.index.argmax())

    def update(self, arm: int, reward: float) -> None:
        self.count[arm] += 1
        self.total[arm] += reward
        self.index[arm] = min(self.index[arm], bound(self.total[arm], self.count[arm]))


class Labelled:
    """Labels, and dictionaries that come to have entries as arms are met."""

    arms = ("red", "green", "blue")

    def __init__(self) -> None:
        self.count: Counter[str] = Counter()
        self.total: defaultdict[str, float] = defaultdict(float)
        self.index: defaultdict[str, float] = defaultdict(lambda: 1.0)

    def propose(self) -> str:
        return max(self.arms, key=lambda arm: self.index[arm])

    def update(self, arm: str, reward: float) -> None:
        self.count[arm] += 1
        self.total[arm] += reward
        self.index[arm] = min(self.index[arm], bound(self.total[arm], self.count[arm]))


class TwoAtATime(Lists):
    """The two highest, as a list."""

    def propose(self) -> list[int]:
        return sorted(range(ARMS), key=lambda arm: (-self.index[arm], arm))[:2]


class Grouped(Lists):
    """Arms 0 and 1 share what is known of them."""

    def cell(self, arm: int) -> str:
        return "few" if arm < 2 else "other"

    def propose(self) -> int:
        return 0 if self.index[0] >= self.index[2] else 2

    def update(self, arm: int, reward: float) -> None:
        super().update(0 if arm < 2 else 2, reward)


class CountsCalls(Lists):
    """Counts how often it was asked, for a report: no proposal depends on it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0
        self.last: int | None = None

    def propose(self) -> int:
        self.asked += 1
        self.last = super().propose()
        return self.last


class Heap(Lists):
    """A heap with entries that are out of date: what is in it depends on the order in which things came."""

    def __init__(self) -> None:
        super().__init__()
        self.heap = [(-1.0, arm) for arm in range(ARMS)]

    def propose(self) -> int:
        while -self.heap[0][0] != self.index[self.heap[0][1]]:
            heapq.heappop(self.heap)
        return self.heap[0][1]

    def update(self, arm: int, reward: float) -> None:
        before = self.index[arm]
        super().update(arm, reward)
        if self.index[arm] != before:
            heapq.heappush(self.heap, (-self.index[arm], arm))


class Window(Lists):
    """Keeps the last rewards of each arm for show, in a deque, with a function of its own for the bonus."""

    def __init__(self) -> None:
        super().__init__()
        self.recent = {arm: deque(maxlen=5) for arm in range(ARMS)}
        self.bound = lambda total, count: bound(total, count)

    def update(self, arm: int, reward: float) -> None:
        self.recent[arm].append(reward)
        self.count[arm] += 1
        self.total[arm] += reward
        self.index[arm] = min(self.index[arm], self.bound(self.total[arm], self.count[arm]))


@ar.compiled
class Component(NamedTuple):
    """A marked component."""

    count: Any
    total: Any
    index: Any
    n_arms: int

    def propose(self, out):
        best = 0
        for arm in range(1, len(self.index)):
            if self.index[arm] > self.index[best]:
                best = arm
        out[0] = best
        return 1

    def update(self, arm, reward):
        self.count[arm] += 1
        self.total[arm] += reward
        value = self.total[arm] / self.count[arm] + 0.5 / math.sqrt(self.count[arm])
        self.index[arm] = min(self.index[arm], value)


class Values:
    """The plain mean, by values: read until the choice is certain."""

    n_arms = ARMS
    reward_range = (0.0, 1.0)

    def __init__(self) -> None:
        self.seen = {(arm, origin): [0, 0.0] for arm in range(ARMS) for origin in ("log", "played")}

    def value(self, arm: int, round: int, unread: int, fill: float) -> float:
        (logged, logged_sum), (played, played_sum) = self.seen[arm, "log"], self.seen[arm, "played"]
        return (0.5 + (logged_sum + unread * fill) + played_sum) / (1 + logged + unread + played)

    def update(self, arm: int, reward: float) -> None:
        self._add(arm, "played", reward)

    def update_logged(self, arm: int, reward: float, allowance: float) -> None:
        self._add(arm, "log", reward)

    def _add(self, arm: int, origin: str, reward: float) -> None:
        self.seen[arm, origin][0] += 1
        self.seen[arm, origin][1] += reward


def component() -> Component:
    return Component(np.zeros(ARMS, np.int64), np.zeros(ARMS), np.ones(ARMS), ARMS)


RIGHT: dict[str, Callable[[], Any]] = {
    made.__name__: made
    for made in (
        *(Lists, Nested, Wrapped, UnusedGenerator, ArraysInAList, Slots, Data, Labelled, TwoAtATime),
        *(Grouped, CountsCalls, Heap, Window, component, Values),
    )
}


# -- wrong -------------------------------------------------------------------------------------------------------------


class NoMinimum(Lists):
    """The index may rise again."""

    def update(self, arm: int, reward: float) -> None:
        super().update(arm, reward)
        self.index[arm] = bound(self.total[arm], self.count[arm])


class SharedTime(Lists):
    """UCB1: every sample moves every index."""

    def propose(self) -> int:
        time = sum(self.count)
        values = [
            math.inf if n == 0 else total / n + math.sqrt(0.1 * math.log(time) / n)
            for n, total in zip(self.count, self.total, strict=True)
        ]
        return values.index(max(values))


class DrawsPerProposal(Lists):
    """Thompson sampling with a generator that goes on with each proposal."""

    def __init__(self) -> None:
        super().__init__()
        self.rng = random.Random(1)

    def propose(self) -> int:
        draws = [
            self.rng.betavariate(1 + total, 1 + n - total) for n, total in zip(self.count, self.total, strict=True)
        ]
        return draws.index(max(draws))


class SometimesRandom(Lists):
    """One proposal in five is anything."""

    def __init__(self) -> None:
        super().__init__()
        self.rng = np.random.default_rng(3)

    def propose(self) -> int:
        return int(self.rng.integers(ARMS)) if self.rng.random() < 0.2 else super().propose()


class Recent(Lists):
    """The last reward counts as much as all before."""

    def update(self, arm: int, reward: float) -> None:
        super().update(arm, reward)
        self.index[arm] = 0.5 * reward + 0.5 * self.total[arm] / self.count[arm]


class TiesByAge(Lists):
    """Among equals the arm that was updated last."""

    def __init__(self) -> None:
        super().__init__()
        self.updates = 0
        self.when = [0] * ARMS

    def propose(self) -> int:
        return max(range(ARMS), key=lambda arm: (self.index[arm], self.when[arm], -arm))

    def update(self, arm: int, reward: float) -> None:
        super().update(arm, reward)
        self.updates += 1
        self.when[arm] = self.updates


class Neighbours(Lists):
    """A sample counts a little for the next arm too."""

    def update(self, arm: int, reward: float) -> None:
        super().update(arm, reward)
        other = (arm + 1) % ARMS
        self.index[other] = min(self.index[other], 0.7 + 0.3 * reward)


class LongMemory(Lists):
    """Forgets all but the last thirty rewards of an arm, so that its index can rise."""

    def __init__(self) -> None:
        super().__init__()
        self.rewards: list[list[float]] = [[] for _ in range(ARMS)]

    def update(self, arm: int, reward: float) -> None:
        self.rewards[arm] = [*self.rewards[arm], reward][-30:]
        value = bound(sum(self.rewards[arm]), len(self.rewards[arm]))
        self.index[arm] = value if len(self.rewards[arm]) == 30 else min(self.index[arm], value)


class EveryThirtieth(Lists):
    """Begins anew with each thirtieth sample, to be able to adapt."""

    def update(self, arm: int, reward: float) -> None:
        super().update(arm, reward)
        if sum(self.count) % 30 == 0:
            self.index = [1.0] * ARMS


class SharedSum(Lists):
    """Saves a number: the sum of the last arm is what the sum of all leaves over."""

    def __init__(self) -> None:
        super().__init__()
        self.everything = 0.0

    def update(self, arm: int, reward: float) -> None:
        self.everything += reward
        self.count[arm] += 1
        if arm < ARMS - 1:
            self.total[arm] += reward
        total = self.total[arm] if arm < ARMS - 1 else self.everything - self.total[0] - self.total[1]
        self.index[arm] = min(self.index[arm], bound(total, self.count[arm]))


class Relative(Lists):
    """Means are taken relative to the best."""

    def propose(self) -> int:
        means = [total / n if n else 1.0 for n, total in zip(self.count, self.total, strict=True)]
        best = max(means) or 1.0
        return max(range(ARMS), key=lambda arm: (means[arm] / best + 0.3 / (1 + self.count[arm]) * (1 - best), -arm))


class ShortMemory(Lists):
    """The mean of the last five rewards."""

    def __init__(self) -> None:
        super().__init__()
        self.recent = [deque(maxlen=5) for _ in range(ARMS)]

    def update(self, arm: int, reward: float) -> None:
        super().update(arm, reward)
        self.recent[arm].append(reward)
        self.index[arm] = bound(sum(self.recent[arm]), len(self.recent[arm]))


class TiresOfAsking(Lists):
    """Becomes less curious with each proposal."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def propose(self) -> int:
        self.asked += 1
        means = [total / n if n else 0.5 for n, total in zip(self.count, self.total, strict=True)]
        return max(range(ARMS), key=lambda arm: (means[arm] + 2 / (self.asked * (1 + self.count[arm])), -arm))


WRONG: dict[str, Callable[[], Any]] = {
    made.__name__: made
    for made in (
        *(NoMinimum, SharedTime, DrawsPerProposal, SometimesRandom, Recent, TiesByAge, Neighbours),
        *(LongMemory, EveryThirtieth, SharedSum, Relative, ShortMemory, TiresOfAsking),
    )
}
