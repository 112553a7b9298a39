"""One implementation, two speeds: what is marked gives the same result compiled and interpreted."""

from __future__ import annotations

import math
import threading
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import artreplay as ar
from artreplay.compiling import Loop, compiled, copied, current_mode, loops, using, worth_compiling
from artreplay.errors import InvalidParameter

FACTOR = 3.0
TABLE = np.array([0.5, 0.25, 0.125])


# -- components of our own ------------------------------------------------------------------------------------


@compiled
def softened(x):
    return math.log1p(math.exp(-abs(x))) + max(x, 0.0)


@compiled(inline=False)
def collatz(n):
    steps = 0
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@compiled(inline=False)
def twice_softened(x):
    return softened(softened(x))


@compiled
class Meter(NamedTuple):
    total: np.ndarray
    scale: float

    def add(self, x):
        self.total[0] += self.scale * x

    def size(self):
        return len(self.total)


@compiled
class Station(NamedTuple):
    meter: Meter
    backup: Meter
    seen: np.ndarray

    def take(self, x):
        self.meter.add(softened(x) * FACTOR)
        self.backup.add(twice_softened(x) + TABLE[self.seen[0] % 3])
        self.seen[0] += collatz(self.seen[0] + 1) + 1

    def size(self):
        return self.meter.size() + self.backup.size()


@Loop
def feed(station, values):
    for x in values:
        station.take(x)
    return station.size()


def station() -> Station:
    return Station(Meter(np.zeros(2), 0.5), Meter(np.zeros(1), 2.0), np.zeros(1, np.int64))


@given(st.lists(st.floats(-50, 50), max_size=20))
@settings(max_examples=60)
def test_nested_components_and_helpers_give_the_same_at_both_speeds(values):
    results = []
    for mode in ("compiled", "interpreted"):
        part = station()
        with using(mode):
            size = feed(part, np.array(values))
        results.append((size, part.meter.total.tobytes(), part.backup.total.tobytes(), part.seen.tolist()))
    assert results[0] == results[1]
    assert results[0][0] == 3


# -- names that mean different things in different classes ----------------------------------------------------


@compiled
class Speed(NamedTuple):
    value: float
    limit: float

    def rate(self):
        return self.value / self.limit


@compiled
class Price(NamedTuple):
    rate: float  # a field here, a method there
    size: np.ndarray

    def value(self):  # a method here, a field there
        return self.rate * self.size[0]

    def limit(self, other):
        return other.limit + self.rate


@compiled
class Both(NamedTuple):
    speed: Speed
    price: Price

    def total(self):
        return (
            self.speed.rate() + self.price.rate + self.speed.value + self.price.value() + self.price.limit(self.speed)
        )


@Loop
def total_of(both):
    return both.total()


def test_a_method_of_one_class_may_have_the_name_of_a_field_of_another():
    both = Both(Speed(3.0, 4.0), Price(0.5, np.array([6.0])))
    expected = 0.75 + 0.5 + 3.0 + 3.0 + 4.5
    with using("compiled"):
        assert total_of(both) == expected
    assert total_of.interpreted(both) == expected


@Loop
def size_of(part):
    return part.size()


def test_the_same_method_of_different_classes_is_each_classes_own():
    with using("compiled"):
        assert size_of(Meter(np.zeros(7), 1.0)) == 7
        assert size_of(station()) == 3
        assert size_of(Meter(np.zeros(5), 1.0)) == 5


@Loop
def weighed(part):
    return part.weigh()


def makers(weight):
    @compiled
    class Made(NamedTuple):
        x: float

        def weigh(self):
            return self.x * weight

    return Made


def test_classes_that_one_function_made_run_their_own_code():
    first, second = makers(2.0), makers(3.0)
    with using("compiled"):
        assert [weighed(first(1.0)), weighed(second(1.0)), weighed(first(1.0))] == [2.0, 3.0, 2.0]


def test_a_class_that_is_defined_again_runs_its_new_code():
    def define(body):
        namespace = {"NamedTuple": NamedTuple, "compiled": compiled, "__name__": __name__}
        exec(
            f"@compiled\nclass Again(NamedTuple):\n    x: float\n    def weigh(self):\n        return {body}", namespace
        )
        return namespace["Again"]

    with using("compiled"):
        assert weighed(define("self.x + 1.0")(1.0)) == 2.0
        assert weighed(define("self.x + 5.0")(1.0)) == 6.0


# -- counters wrap around at both speeds ----------------------------------------------------------------------


@compiled
class Scrambler(NamedTuple):
    """Proposes by a generator of its own, whose counter wraps around."""

    word: np.ndarray

    n_arms = 4

    def propose(self, out):
        self.stir()
        out[0] = int(self.word[0] >> np.uint64(62))
        return 1

    def update(self, unit, reward):
        self.stir()

    def stir(self):
        self.word[0] = self.word[0] * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)


@pytest.mark.parametrize("policy", ["ignorant", "full start", "replay"])
def test_counters_of_a_component_may_wrap_around(policy):
    """A warning would be an error here."""
    log = ar.History([0, 1, 2, 3, 0], [0.0] * 5)
    actions = []
    for mode in ("auto", "interpreted", "compiled"):
        base = Scrambler(np.ones(1, np.uint64))
        made = {
            "ignorant": lambda base=base: ar.Ignorant(base),
            "full start": lambda base=base: ar.FullStart(base, log),
            "replay": lambda base=base: ar.ArtificialReplay(base, log),
        }[policy]()
        with using(mode):
            played = []
            for _ in range(20):
                played.append(made.ask())
                made.tell(played[-1], 0.5)
        actions.append(played)
        assert base.word[0] == 1
    assert actions[0] == actions[1] == actions[2]


# -- plain objects are interpreted ----------------------------------------------------------------------------


class Duck:
    def __init__(self):
        self.calls = 0

    def size(self):
        self.calls += 1
        return "seven"


def test_a_plain_object_is_interpreted_in_every_mode():
    for mode in ("auto", "compiled", "interpreted"):
        duck = Duck()
        with using(mode):
            assert size_of(duck) == "seven"
        assert duck.calls == 1


# -- modes ----------------------------------------------------------------------------------------------------


def test_the_mode_holds_inside_the_block_only():
    assert current_mode() == "auto"
    with using("compiled"):
        assert current_mode() == "compiled"
        with using("interpreted"):
            assert current_mode() == "interpreted"
        assert current_mode() == "compiled"
    assert current_mode() == "auto"


class Deliberate(Exception):
    pass


def leave_by_an_error():
    with using("interpreted"):
        assert current_mode() == "interpreted"
        raise Deliberate


def test_the_mode_is_restored_after_an_error():
    with pytest.raises(Deliberate):
        leave_by_an_error()
    assert current_mode() == "auto"


@pytest.mark.parametrize("mode", ["bad", "", None, 1, "Compiled", ["auto"]])
def test_any_other_mode_is_an_error(mode):
    with pytest.raises(InvalidParameter, match='"auto", "compiled" or "interpreted"'), using(mode):
        pass
    assert current_mode() == "auto"


def test_a_mode_belongs_to_its_thread():
    seen = []
    with using("interpreted"):
        thread = threading.Thread(target=lambda: seen.append(current_mode()))
        thread.start()
        thread.join()
    assert seen == ["auto"]


def test_a_copy_of_a_component_runs_through_the_loop_it_was_bound_to():
    part = station()
    with using("compiled"):
        run = feed.bound_to(part, np.zeros(1))
        other = copied(part)
        run(other, np.array([1.0, 2.0]))
        feed(part, np.array([1.0, 2.0]))
    assert other.meter.total.tobytes() == part.meter.total.tobytes()


# -- when machine code pays -----------------------------------------------------------------------------------


@pytest.fixture
def nothing_counted(monkeypatch):
    """No seconds of interpretation so far, and no machine code on disk; the limits of users."""
    monkeypatch.setattr(loops, "_interpreted", {})
    monkeypatch.setattr(loops, "PATIENCE", 1.0)
    monkeypatch.setattr(loops, "PATIENCE_TO_LOAD", 0.05)
    monkeypatch.setattr(Loop, "is_at_hand", lambda self, *parts: False)


@pytest.mark.usefixtures("nothing_counted")
def test_seconds_of_interpretation_are_counted_for_each_kind_of_base():
    meter = Meter(np.zeros(1), 1.0)
    assert not worth_compiling(feed, (station(),), 0.6)
    assert not worth_compiling(feed, (meter,), 0.6)
    assert worth_compiling(size_of, (station(), meter), 0.6)  # another one of the kind, in another loop
    assert not worth_compiling(feed, (meter,), 0.3)


@pytest.mark.usefixtures("nothing_counted")
def test_machine_code_that_is_at_hand_pays_sooner(monkeypatch):
    assert not worth_compiling(feed, (station(),), 0.06)
    monkeypatch.setattr(Loop, "is_at_hand", lambda self, *parts: True)
    assert worth_compiling(feed, (station(),), 0.0)
    assert not worth_compiling(feed, (Meter(np.zeros(1), 1.0),), 0.04)


@pytest.mark.usefixtures("nothing_counted")
def test_what_cannot_be_compiled_never_pays(monkeypatch):
    assert not worth_compiling(size_of, (Duck(),), 9.0)
    monkeypatch.setattr(loops, "_has_numba", lambda: False)
    assert not worth_compiling(feed, (station(),), 9.0)


@pytest.mark.usefixtures("nothing_counted")
def test_a_mode_decides_whatever_pays():
    with using("compiled"):
        assert worth_compiling(feed, (station(),), 0.0)
    with using("interpreted"):
        assert not worth_compiling(feed, (station(),), 9.0)
