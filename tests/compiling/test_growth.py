"""Arrays that fill up grow, and nothing that is decided depends on how large they were at first."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pytest

import artreplay as ar
from artreplay.algorithms import bonus as bonus_module
from artreplay.compiling import UNBOUNDED, compiled, state_of, using, with_room
from artreplay.errors import ArtReplayError, InvalidParameter


def narrow(n: int) -> float:
    return 0.4 / math.sqrt(n)


def quadratic(x: float) -> float:
    return x * x / 50


BASES = {
    "MonUCB": lambda: ar.MonUCB(3, 50, bonus=narrow),
    "TopUCB": lambda: ar.TopUCB(4, 3, 50, bonus=narrow),
    "PsiUCB": lambda: ar.PsiUCB(3, 50, psi=quadratic),
}
STARTS = ["ignorant", "full-start", "artificial-replay"]


def made_with(monkeypatch: pytest.MonkeyPatch, first: int, make: Any) -> Any:
    """A base whose table of bonuses has so many entries at first."""
    with monkeypatch.context() as patch:
        patch.setattr(bonus_module, "FIRST_TABLE", first)
        return make()


# -- a tabulated bonus --------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("name", ["MonUCB", "TopUCB"])
@pytest.mark.parametrize("mode", [pytest.param("compiled", marks=pytest.mark.long), "interpreted"])
def test_a_simulation_does_not_depend_on_the_first_size_of_a_table(monkeypatch, name, start, mode):
    env = ar.environments.TopArms(4, 3) if name == "TopUCB" else ar.environments.KArmed(3)
    # Of several replications each starts with the first table again.
    setting = {"start": start, "history": 40, "horizon": 60, "replications": 3, "seed": 3, "threads": 1}
    with using(mode):
        runs = [ar.simulate(made_with(monkeypatch, first, BASES[name]), env, **setting) for first in (1, 2, 3, 1000)]
    for run in runs[:-1]:
        assert (run.actions == runs[-1].actions).all()
        assert (run.used == runs[-1].used).all()
        assert run.regret.tobytes() == runs[-1].regret.tobytes()


@pytest.mark.parametrize("mode", ["auto", "compiled", "interpreted"])
@pytest.mark.parametrize("policy", ["ignorant", "full start", "totals", "replay", "relation"])
@pytest.mark.parametrize("name", BASES)
def test_a_policy_does_not_depend_on_the_first_size_of_a_table(monkeypatch, name, policy, mode):
    log = ar.History([0, 0, 1, 0, 2, 1] * 8, [0.0, 1.0, 0.5, 0.5, 0.0, 1.0] * 8)
    found = []
    for first in (1, 2, 1000):
        base = made_with(monkeypatch, first, BASES[name])
        made = {
            "ignorant": lambda base=base: ar.Ignorant(base),
            "full start": lambda base=base: ar.FullStart(base, log),
            "totals": lambda base=base: ar.FullStart(base, ar.Totals.of(log)),
            "replay": lambda base=base: ar.ArtificialReplay(base, log),
            "relation": lambda base=base: ar.ArtificialReplay(base, log, relation=lambda *_: True),
        }[policy]()
        with using(mode):
            played = []
            for round_ in range(25):
                action = made.ask()
                played.append((action, made.used))
                made.tell(action, [(round_ % 3) / 2] * 3 if name == "TopUCB" else (round_ % 3) / 2)
        state = {key: array.tolist() for key, array in state_of(made.base.component).items()}
        found.append((played, state))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("mode", ["auto", "compiled", "interpreted"])
def test_what_is_told_without_being_asked_makes_tables_grow_too(monkeypatch, mode):
    states = []
    for first in (1, 1000):
        policy = ar.Ignorant(made_with(monkeypatch, first, BASES["TopUCB"]))
        with using(mode):
            for round_ in range(40):
                units = [0] * (1 + round_ % 5)
                policy.tell(units, [round_ / 40] * len(units))
        states.append({key: array.tolist() for key, array in state_of(policy.base.component).items()})
    assert states[0] == states[1]


def test_a_base_by_itself_grows_too(monkeypatch):
    bases = [made_with(monkeypatch, first, BASES["MonUCB"]) for first in (1, 1000)]
    for number in range(50):
        for base in bases:
            base.update(number % 2, 0.25)
        assert bases[0].propose() == bases[1].propose()


def test_a_copy_that_grows_leaves_the_original_as_it_was(monkeypatch):
    base = made_with(monkeypatch, 2, BASES["MonUCB"])
    before = base.component.index.bound.radius.copy()
    for _ in range(2):
        policy = ar.Ignorant(base)
        for _ in range(20):
            policy.tell(0, 1.0)
    assert base.component.index.bound.radius.tolist() == before.tolist()
    assert base.component.index.bound.highest.tolist() == [0]


def test_a_callable_that_goes_wrong_far_out_is_refused_when_it_gets_there(monkeypatch):
    """The sentence names n, and what was told before is not lost."""

    def breaks(n: int) -> float:
        return 1.0 / n if n < 10 else 5.0

    policy = ar.Ignorant(made_with(monkeypatch, 2, lambda: ar.MonUCB(2, 50, bonus=breaks)))
    with pytest.raises(InvalidParameter, match=r"bonus\(10\)"):
        tell_often(policy)
    assert policy.base.component.index.tally.counts.tolist() == [policy.rounds, 0]
    assert policy.rounds > 5


def tell_often(policy: ar.Ignorant) -> None:
    for _ in range(20):
        policy.tell(0, 1.0)


# -- components of our own ----------------------------------------------------------------------------------


@compiled
class Tape(NamedTuple):
    """Keeps every reward it is shown."""

    length: np.ndarray
    reward: np.ndarray

    def append(self, reward):
        self.reward[self.length[0]] = reward
        self.length[0] += 1

    def room(self):
        return len(self.reward) - self.length[0]

    def grown(self):
        return self._replace(reward=np.concatenate([self.reward, np.zeros(max(len(self.reward), 1))]))


@compiled
class Recorder(NamedTuple):
    """Proposes the arm with the fewest samples, unless the rewards of late were low."""

    tape: Tape
    count: np.ndarray

    @property
    def n_arms(self):
        return len(self.count)

    def propose(self, out):
        recent = 0.0
        for at in range(max(self.tape.length[0] - 5, 0), self.tape.length[0]):
            recent += self.tape.reward[at]
        best = 0
        for arm in range(len(self.count)):
            if self.count[arm] < self.count[best]:
                best = arm
        out[0] = best if recent > 1.0 else (best + 1) % len(self.count)
        return 1

    def update(self, unit, reward):
        self.tape.append(reward)
        self.count[unit] += 1

    def room(self):
        return self.tape.room()


@compiled
class Forgetful(NamedTuple):
    """The same, but says nothing about room: its own arrays cannot fill, those of its tape can."""

    tape: Tape
    count: np.ndarray

    @property
    def n_arms(self):
        return len(self.count)

    def propose(self, out):
        out[0] = int(self.tape.length[0]) % len(self.count)
        return 1

    def update(self, unit, reward):
        self.tape.append(reward)
        self.count[unit] += 1


def tape(size: int) -> Tape:
    return Tape(np.zeros(1, np.int64), np.zeros(size))


def recorder(size: int) -> Recorder:
    return Recorder(tape(size), np.zeros(3, np.int64))


@pytest.mark.parametrize("mode", ["auto", "compiled", "interpreted"])
@pytest.mark.parametrize("make", [ar.FullStart, ar.ArtificialReplay])
@pytest.mark.parametrize("first", [0, 1, 2])
def test_a_component_of_our_own_grows_as_it_is_asked_and_told(make, mode, first):
    log = ar.History([0, 1, 1, 0, 2], [0.0, 1.0, 0.5, 0.5, 0.0])
    found = []
    for size in (first, 500):
        policy = make(recorder(size), log)
        with using(mode):
            played = []
            for round_ in range(30):
                played.append((policy.ask(), policy.used))
                policy.tell(played[-1][0], (round_ % 5) / 4)
        length = int(policy.base.tape.length[0])
        found.append((played, policy.base.tape.reward[:length].tolist(), policy.base.count.tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("mode", ["auto", "compiled", "interpreted"])
@pytest.mark.parametrize("size", [0, 1, 2, 500])
def test_a_component_of_our_own_grows_as_it_is_told_without_being_asked(mode, size):
    """A full array is no reason to call an arm unknown."""
    policy = ar.Ignorant(recorder(size))
    with using(mode):
        for round_ in range(20):
            policy.tell(round_ % 3, round_ / 20)
    assert policy.base.tape.length.tolist() == [20]
    assert policy.base.tape.reward[:20].tolist() == [round_ / 20 for round_ in range(20)]


@pytest.mark.parametrize("mode", [pytest.param("compiled", marks=pytest.mark.long), "interpreted"])
@pytest.mark.parametrize("first", [0, 1, 7])
def test_a_component_of_our_own_is_simulated_from_any_first_size(first, mode):
    env = ar.environments.KArmed(3)
    settings = {"history": 20, "horizon": 30, "replications": 3, "seed": 1, "threads": 1}
    for start in STARTS[:3]:
        with using(mode):
            one, other = (ar.simulate(recorder(size), env, start=start, **settings) for size in (first, 500))
        assert (one.actions == other.actions).all()
        assert one.regret.tobytes() == other.regret.tobytes()


def test_room_is_that_of_the_parts_where_the_whole_says_nothing():
    assert Forgetful(tape(4), np.zeros(3, np.int64)).room() == 4
    policy = ar.Ignorant(Forgetful(tape(4), np.zeros(3, np.int64)))
    with using("interpreted"):
        for _ in range(10):
            policy.tell(policy.ask(), 0.5)
    assert policy.base.tape.length.tolist() == [10]


# -- with_room ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("need", [0, 1, 2, 3, 4, 5, 100, 1000])
def test_with_room_makes_enough_room_and_keeps_what_was_there(need):
    part = recorder(3)
    part.update(1, 0.5)
    grown = with_room(part, need)
    assert grown.room() >= need
    assert grown.tape.reward[:1].tolist() == [0.5]
    assert grown.tape.length.tolist() == [1]
    assert grown.count.tolist() == [0, 1, 0]
    if need <= 2:
        assert grown.tape.reward is part.tape.reward


def test_a_component_without_a_word_about_room_is_unbounded():
    @compiled
    class Still(NamedTuple):
        x: float

    assert Still(1.0).room() == UNBOUNDED
    assert with_room(Still(1.0), 10**9) == Still(1.0)


def test_a_component_that_cannot_grow_says_so():
    @compiled
    class Full(NamedTuple):
        x: float

        def room(self):
            return 0

    @compiled
    class Stuck(NamedTuple):
        x: float

        def room(self):
            return 1

        def grown(self):
            return self

    with pytest.raises(ArtReplayError, match="Full must have a method grown"):
        with_room(Full(1.0), 1)
    with pytest.raises(ArtReplayError, match=r"Stuck\.grown\(\) must make room"):
        with_room(Stuck(1.0), 2)
