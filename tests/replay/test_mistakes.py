"""Mistakes in algorithms of the user's own are explained: by class, method and line, in one sentence."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import pytest

import artreplay as ar
from artreplay.errors import InvalidAction, InvalidParameter, NotCompilable

LOG = ar.History([0, 1, 1], [0.0, 1.0, 0.0])


@ar.compiled
class Forgetful(NamedTuple):
    count: Any
    n_arms = 2

    def propose(self, out):
        out[0] = 1

    def update(self, arm, reward):
        self.count[arm] += 1


@ar.compiled
class Vague(NamedTuple):
    count: Any
    n_arms = 2

    def propose(self, out):
        return "one"

    def update(self, arm, reward):
        self.count[arm] += 1


@ar.compiled
class Overflowing(NamedTuple):
    count: Any
    n_arms = 2

    def propose(self, out):
        for place in range(3):
            out[place] = place
        return 1

    def update(self, arm, reward):
        self.count[arm] += 1


@ar.compiled
class Shapeless(NamedTuple):
    count: Any
    n_arms = 2

    def propose(self):
        return 1

    def update(self, arm, reward):
        self.count[arm] += 1


@ar.compiled
class Raising(NamedTuple):
    count: Any
    n_arms = 2

    def propose(self, out):
        out[0] = self.count[99]
        return 1

    def update(self, arm, reward):
        self.count[arm] += 1


@ar.compiled
class Countless(NamedTuple):
    count: Any

    def propose(self, out):
        out[0] = 0
        return 1

    def update(self, arm, reward):
        self.count[arm] += 1


@ar.compiled
class Boundless(NamedTuple):
    count: Any
    n_arms = 3

    def propose(self, out):
        out[0] = 0
        return 1

    def update(self, arm, reward):
        self.count[arm] += 1


def unmarked(count):
    return int(np.argmin(count))


@ar.compiled
class CallsUnmarked(NamedTuple):
    count: Any
    n_arms = 2

    def propose(self, out):
        out[0] = unmarked(self.count)
        return 1

    def update(self, arm, reward):
        self.count[arm] += 1


class Silent:
    def propose(self):
        pass

    def update(self, arm, reward):
        pass


class OneArgument(Silent):
    def update(self, arm):
        pass


class TwoMore(Silent):
    def propose(self, first, second):
        return 0


COMPONENTS = {
    Forgetful: r"Forgetful.propose \(test_mistakes.py, line \d+\) must return how many .* is `return 1` missing\?",
    Vague: r"Vague.propose \(test_mistakes.py, line \d+\) must return how many units it wrote into out, .*'one'",
    Overflowing: r"Overflowing.propose \(test_mistakes.py, line \d+\) wrote 3 units, and there is room for 1",
    Raising: r"Raising.propose \(test_mistakes.py, line \d+\) could not run: IndexError",
    Shapeless: r"Shapeless.propose \(test_mistakes.py, line \d+\) must be propose\(self, out\), got propose\(self\)",
    Countless: "Countless must say how many arms it has, as a field or a property n_arms, got none",
    Boundless: "Boundless says that it has 3 arms, and its update of arm 2 went past the end of an array",
}


@pytest.mark.parametrize("cls", COMPONENTS)
def test_a_mistake_in_a_component_is_a_sentence(cls) -> None:
    for make in (ar.Ignorant, lambda base: ar.simulate(base, ar.environments.KArmed(2), replications=1, horizon=2)):
        with pytest.raises((InvalidAction, InvalidParameter), match=COMPONENTS[cls]):
            make(cls(np.zeros(2)))


@pytest.mark.long
def test_what_cannot_be_compiled_is_named_by_its_line() -> None:
    with (
        ar.compiling.using("compiled"),
        pytest.raises(NotCompilable, match=r"^CallsUnmarked.propose \(test_mistakes.py, line \d+\) cannot be compiled"),
    ):
        ar.ArtificialReplay(CallsUnmarked(np.zeros(2)), LOG).ask()


def test_a_mistake_in_an_object_is_a_sentence() -> None:
    with pytest.raises(InvalidAction, match=r"Silent.propose \(test_mistakes.py, line \d+\) must return a unit"):
        ar.ArtificialReplay(Silent(), LOG).ask()
    with pytest.raises(InvalidParameter, match=r"OneArgument.update .* must be update\(self, unit, reward\), got"):
        ar.ArtificialReplay(OneArgument(), LOG)
    with pytest.raises(InvalidParameter, match=r"TwoMore.propose .* must be propose\(self\), got propose\(self, first"):
        ar.ArtificialReplay(TwoMore(), LOG)


# -- drawing at random ----------------------------------------------------------------------------------------------


class Draws:
    """Plays at random by what `draw` says."""

    def propose(self) -> int:
        return self.draw()

    def update(self, arm: int, reward: float) -> None:
        pass


class OfNumpy(Draws):
    def __init__(self) -> None:
        self.rng = np.random.default_rng(1)

    def draw(self) -> int:
        return int(self.rng.integers(5))


class OfPython(Draws):
    def __init__(self) -> None:
        self.inner = {"rng": random.Random(1)}

    def draw(self) -> int:
        return self.inner["rng"].randrange(5)


class OfAll(Draws):
    def draw(self) -> int:
        return random.randrange(5)


@pytest.mark.parametrize("make", [OfNumpy, OfPython])
def test_each_replication_has_draws_of_its_own_and_the_same_again(make) -> None:
    env = ar.environments.KArmed(5)
    first, again = (
        ar.simulate(make(), env, history=0, horizon=20, replications=8, seed=seed).actions for seed in (1, 1)
    )
    assert len({tuple(row) for row in first.tolist()}) == 8
    assert (first == again).all()
    other = ar.simulate(make(), env, history=0, horizon=20, replications=8, seed=2).actions
    assert (first != other).any()


def test_draws_from_what_everything_shares_are_refused() -> None:
    with pytest.raises(InvalidParameter, match=r"OfAll draws from the shared generator.*reseed\(key\)"):
        ar.simulate(OfAll(), ar.environments.KArmed(5), history=0, horizon=5, replications=2)


class Rarely(Draws):
    """Draws from what everything shares, but only once it has been played for a while."""

    def __init__(self) -> None:
        self.told = 0

    def update(self, arm: int, reward: float) -> None:
        self.told += 1

    def draw(self) -> int:
        return random.randrange(5) if self.told == 30 else self.told % 5


class InTurn(Rarely):
    """Draws nothing at all."""

    def draw(self) -> int:
        return self.told % 5


class NoisyWorld:
    """A world that draws from what everything shares, as a user's own may."""

    n_arms = 5

    def mean(self, arm: int, round: int) -> float:
        np.random.random()  # noqa: NPY002
        return arm / 10

    def reward(self, arm: int, round: int, u: float) -> float:
        random.random()
        return float(u < arm / 10)


@contextmanager
def drawing_thread() -> Iterator[None]:
    """Another thread draws all the time from the generators that everything shares."""
    stop = threading.Event()

    def draw() -> None:
        while not stop.is_set():
            random.random()
            np.random.random()  # noqa: NPY002
            time.sleep(0)

    thread = threading.Thread(target=draw)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_what_others_draw_is_not_held_against_a_base() -> None:
    env = ar.environments.KArmed(5)
    quiet = ar.simulate(InTurn(), env, history=0, horizon=40, replications=2).actions
    with drawing_thread():
        noisy = ar.simulate(InTurn(), env, history=0, horizon=40, replications=2).actions
        with pytest.raises(InvalidParameter, match="Rarely draws from the shared generator"):
            ar.simulate(Rarely(), env, history=0, horizon=40, replications=2)
    assert (quiet == noisy).all()


def test_a_world_may_draw_from_what_everything_shares() -> None:
    ar.simulate(InTurn(), NoisyWorld(), history=0, horizon=40, replications=2)
    with pytest.raises(InvalidParameter, match="Rarely draws from the shared generator"):
        ar.simulate(Rarely(), NoisyWorld(), history=0, horizon=40, replications=2)
