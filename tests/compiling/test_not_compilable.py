"""What cannot be marked or compiled is said in one sentence; errors of compiled code are passed on."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import artreplay as ar
from artreplay.compiling import Loop, compiled, using
from artreplay.errors import ArtReplayError, NotCompilable


@Loop
def go(part):
    return part.go()


@compiled
class Allocates(NamedTuple):
    x: np.ndarray

    def go(self):
        scratch = np.zeros(3)
        scratch[0] = self.x[0]
        return scratch[0]


@compiled
class TwoKinds(NamedTuple):
    x: np.ndarray

    def go(self):
        return "text" if self.x[0] > 0 else 1


@compiled
class NothingToGo(NamedTuple):
    x: np.ndarray


def unmarked(x):
    return x + 1


@compiled
class CallsUnmarked(NamedTuple):
    x: np.ndarray

    def go(self):
        return unmarked(self.x[0])


@compiled
class HoldsAnything(NamedTuple):
    x: Any

    def go(self):
        return self.x[0] * 2


@pytest.mark.parametrize("cls", [Allocates, TwoKinds, NothingToGo, CallsUnmarked])
def test_what_cannot_be_compiled_is_said_in_one_sentence_that_names_the_component(cls):
    with using("compiled"), pytest.raises(NotCompilable) as refused:
        go(cls(np.ones(1)))
    sentence = str(refused.value)
    assert cls.__name__ in sentence
    assert "cannot be compiled" in sentence
    assert "\n" not in sentence
    assert len(sentence) < 400
    assert "nopython" not in sentence  # the stage of a compiler is no reason


def test_the_sentence_about_an_allocation_says_so():
    with using("compiled"), pytest.raises(NotCompilable, match="allocate"):
        go(Allocates(np.ones(1)))


@pytest.mark.long
def test_a_component_that_allocates_is_refused_by_policies_and_simulations_alike():
    @compiled
    class Wasteful(NamedTuple):
        count: np.ndarray

        n_arms = 3

        def propose(self, out):
            out[0] = np.argmax(np.zeros(3) - self.count)
            return 1

        def update(self, unit, reward):
            self.count[unit] += 1

    with pytest.raises(NotCompilable, match="Wasteful"):
        ar.simulate(Wasteful(np.zeros(3)), ar.environments.KArmed(3), history=5, horizon=5, replications=2)
    with using("compiled"), pytest.raises(NotCompilable, match="Wasteful"):
        ar.Ignorant(Wasteful(np.zeros(3))).ask()
    with using("interpreted"):
        assert ar.simulate(
            Wasteful(np.zeros(3)), ar.environments.KArmed(3), history=5, horizon=5, replications=1
        ).actions.shape == (1, 5)


def test_every_call_that_cannot_be_compiled_says_so_not_only_the_first():
    with using("compiled"):
        assert go(HoldsAnything(np.ones(1))) == 2.0
        for _ in range(2):
            with pytest.raises(NotCompilable, match="HoldsAnything"):
                go(HoldsAnything(5.0))
        assert go(HoldsAnything(np.ones(1))) == 2.0


def test_an_error_that_compiled_code_raises_is_passed_on():
    @compiled
    class Refuses(NamedTuple):
        x: float

        def go(self):
            if self.x > 0:
                raise ValueError("above zero")
            return 1

    for mode in ("compiled", "interpreted"):
        with using(mode):
            assert go(Refuses(0.0)) == 1
            with pytest.raises(ValueError, match=r"^above zero$"):
                go(Refuses(1.0))


@pytest.mark.parametrize("thing", [5, "text", len, np.zeros(3), [], print], ids=repr)
def test_only_classes_and_functions_can_be_marked(thing):
    with pytest.raises(NotCompilable, match="NamedTuple class or a function"):
        compiled(thing)


@pytest.mark.parametrize("cls", [int, tuple, dict, type("Plain", (), {}), type("Row", (tuple,), {})])
def test_only_named_tuples_can_be_components(cls):
    with pytest.raises(NotCompilable, match=f"must be a NamedTuple, and {cls.__qualname__} is not"):
        compiled(cls)


def test_a_marked_thing_stays_what_it_was():
    def double(x):
        return 2 * x

    class Point(NamedTuple):
        x: float

        def norm(self):
            return abs(self.x)

    assert compiled(double) is double
    assert compiled(inline=False)(double) is double
    assert compiled(Point) is Point
    assert Point(-2.0).norm() == 2.0
    assert Point(-2.0) == (-2.0,)
    assert double(4) == 8


def test_scratch_must_name_fields():
    class Point(NamedTuple):
        x: float

    with pytest.raises(ArtReplayError, match="y"):
        compiled(scratch=("y",))(Point)
