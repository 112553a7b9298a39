"""Plain objects and components of one's own on disk."""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

import numpy as np
import pytest
from saving_kit import POLICIES, Colour, always, equal, policy_of, state

import artreplay as ar
from artreplay.compiling import compiled
from artreplay.errors import CannotSave, InvalidParameter

# -- plain objects --------------------------------------------------------------------------------------------


class Plain:
    """Proposes in turn, and keeps what it was shown."""

    def __init__(self, n_arms: int = 3) -> None:
        self.n_arms = n_arms
        self.shown: list[tuple[Any, float]] = []

    def propose(self) -> Any:
        return f"arm {len(self.shown) % self.n_arms}"

    def update(self, unit: Any, reward: float) -> None:
        self.shown.append((unit, reward))


class Keeping(Plain):
    def state(self) -> Any:
        return {"shown": self.shown, "sum": np.array([reward for _, reward in self.shown]), "n": self.n_arms}

    def restore(self, state: Any) -> None:
        self.shown = state["shown"]
        self.n_arms = state["n"]
        assert isinstance(state["sum"], np.ndarray)
        assert state["sum"].tolist() == [reward for _, reward in self.shown]


class KeepingSeveral(Keeping):
    def propose(self) -> Any:
        return [f"arm {len(self.shown) % 3}", f"arm {(len(self.shown) + 1) % 3}"]


PLAIN_LOG = ar.History(["arm 0", "arm 2", "arm 1", "arm 0", "arm 0", "arm 2"], [0.0, 1.0, 0.5, 0.25, 1.0, 0.0])


def play_plain(policy: Any, rounds: int) -> list[Any]:
    played = []
    for round_ in range(rounds):
        action = policy.ask()
        played.append((action, policy.used))
        policy.tell(action, [round_ / 100] * len(action) if isinstance(action, list) else round_ / 100)
    return played


@pytest.mark.parametrize("relation", [None, always, equal], ids=["own cells", "always", "equal"])
@pytest.mark.parametrize("cls", [Keeping, KeepingSeveral])
@pytest.mark.parametrize("pending", [False, True])
def test_a_plain_object_with_state_and_restore_is_saved(path, relation, cls, pending):
    policy = ar.ArtificialReplay(cls(), PLAIN_LOG, relation)
    play_plain(policy, 2)
    if pending:
        policy.ask()
    policy.save(path)
    loaded = ar.load(path, PLAIN_LOG, base=cls(), relation=relation)
    assert loaded.base.shown == policy.base.shown
    assert loaded.unused_rows() == policy.unused_rows()
    assert play_plain(loaded, 20) == play_plain(policy, 20)
    assert loaded.base.shown == policy.base.shown


def test_a_plain_object_without_state_cannot_be_saved_and_the_sentence_says_what_it_lacks(path):
    with pytest.raises(CannotSave, match=r"Plain.*restore\(state\).*state\(\)") as refused:
        ar.Ignorant(Plain()).save(path)
    assert "\n" not in str(refused.value)
    assert not path.exists()


def test_a_plain_object_must_be_given_again(path):
    ar.Ignorant(Keeping()).save(path)
    with pytest.raises(InvalidParameter, match=r"Keeping.*Give base= again"):
        ar.load(path)
    for other in (Plain(), ar.MonUCB(3, 10), KeepingSeveral(), 5):
        with pytest.raises(InvalidParameter, match="Keeping"):
            ar.load(path, base=other)


def test_loading_leaves_a_plain_object_that_is_given_as_it_was(path):
    """A policy works on its own copy of the base, a loaded one too."""
    policy = ar.Ignorant(Keeping())
    play_plain(policy, 3)
    policy.save(path)
    base = Keeping()
    loaded = ar.load(path, base=base)
    assert base.shown == []
    assert len(loaded.base.shown) == 3


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        3,
        2**100,
        0.1,
        math.inf,
        "tëxt",
        b"\xff",
        [1, [2, "x"]],
        (1, ("a", [2])),
        {"a": {"b": [1, (2,)]}},
        np.arange(6).reshape(2, 3),
        np.array([0.1, -0.0, 5e-324, np.inf]),
        np.array(5, np.uint64),
        np.array([True, False]),
        np.zeros((0, 3)),
        [np.array([1, 2], np.int8)],
    ],
    ids=lambda value: re.sub(" at 0x[0-9a-f]+", "", repr(value)),
)
def test_what_a_state_may_hold_comes_back_as_it_was(path, value):
    class Holder(Plain):
        kept: Any = value

        def state(self) -> Any:
            return value

        def restore(self, state: Any) -> None:
            self.kept = state

    Holder.__qualname__ = "Holder"
    ar.Ignorant(Holder()).save(path)
    base = Holder()
    base.kept = "nothing"
    found = ar.load(path, base=base).base.kept
    assert type(found) is type(value)
    if isinstance(value, np.ndarray):
        assert (found.dtype, found.shape, found.tobytes()) == (value.dtype, value.shape, value.tobytes())
    else:
        assert repr(found) == repr(value)


@pytest.mark.parametrize(
    "value",
    [object(), len, [lambda: 0], {1: "a"}, {"$tuple": [1]}, {"a": {1, 2}}, 1j, Colour.RED, np.array([None]), range(3)],
    ids=lambda value: type(value).__name__,
)
def test_what_a_state_cannot_hold_is_refused_when_saving(path, value):
    class Holder(Plain):
        def state(self) -> Any:
            return value

        def restore(self, state: Any) -> None:
            raise AssertionError("never saved")

    with pytest.raises(CannotSave):
        ar.Ignorant(Holder()).save(path)
    assert not path.exists()


# -- components -----------------------------------------------------------------------------------------------


@compiled
class InTurn(NamedTuple):
    count: np.ndarray
    total: np.ndarray
    step: int
    n_arms = 3

    def propose(self, out):
        out[0] = (int(self.count.sum()) * self.step) % len(self.count)
        return 1

    def update(self, unit, reward):
        self.count[unit] += 1
        self.total[unit] += reward


@compiled
class OtherTurn(NamedTuple):
    count: np.ndarray
    n_arms = 3

    def propose(self, out):
        out[0] = 0
        return 1

    def update(self, unit, reward):
        self.count[unit] += 1


@compiled
class Tape(NamedTuple):
    length: np.ndarray
    reward: np.ndarray
    n_arms = 3

    def propose(self, out):
        out[0] = self.length[0] % 3
        return 1

    def update(self, unit, reward):
        self.reward[self.length[0]] = reward
        self.length[0] += 1

    def room(self):
        return len(self.reward) - self.length[0]

    def grown(self):
        return self._replace(reward=np.concatenate([self.reward, np.zeros(len(self.reward))]))


@compiled
class Limited(NamedTuple):
    count: np.ndarray
    limit: float  # nan where there is none
    n_arms = 2

    def propose(self, out):
        out[0] = 0
        return 1

    def update(self, unit, reward):
        self.count[unit] += 1


def in_turn(step: int = 2) -> InTurn:
    return InTurn(np.zeros(3), np.zeros(3), step)


COMPONENT_LOG = ar.History([0, 1, 2, 2, 0, 1, 1], [0.0, 1.0, 0.5, 0.25, 1.0, 0.0, 0.5])


@pytest.mark.parametrize("kind", POLICIES)
def test_a_component_is_saved_and_given_again(path, kind):
    policy = policy_of(kind, in_turn(), COMPONENT_LOG)
    play_plain(policy, 4)
    policy.ask()
    policy.save(path)
    log = None if kind == "ignorant" else COMPONENT_LOG
    with pytest.raises(InvalidParameter, match=r"InTurn.*Give base= again"):
        ar.load(path, log)
    loaded = ar.load(path, log, base=in_turn())
    assert state(loaded) == state(policy)
    assert play_plain(loaded, 50) == play_plain(policy, 50)
    assert state(loaded) == state(policy)


def test_a_component_that_has_grown_comes_back_grown(path):
    policy = ar.Ignorant(Tape(np.zeros(1, np.int64), np.zeros(1)))
    play_plain(policy, 37)
    policy.save(path)
    loaded = ar.load(path, base=Tape(np.zeros(1, np.int64), np.zeros(1)))
    assert loaded.base.reward[:37].tolist() == policy.base.reward[:37].tolist()
    assert play_plain(loaded, 50) == play_plain(policy, 50)


def test_loading_leaves_a_component_that_is_given_as_it_was(path):
    policy = ar.Ignorant(in_turn())
    play_plain(policy, 5)
    policy.save(path)
    base = in_turn()
    loaded = ar.load(path, base=base)
    assert base.count.tolist() == [0.0] * 3
    assert loaded.base.count.sum() == 5


@pytest.mark.parametrize(
    "base",
    [
        in_turn(step=1),
        InTurn(np.zeros(3, np.int64), np.zeros(3), 2),
        OtherTurn(np.zeros(3)),
        ar.MonUCB(3, 10),
        Plain(),
    ],
    ids=["other constant", "other type", "other class", "named", "plain"],
)
def test_another_component_is_refused(path, base):
    ar.Ignorant(in_turn()).save(path)
    with pytest.raises(InvalidParameter, match="InTurn"):
        ar.load(path, base=base)


def test_a_constant_that_is_nan_is_the_same_constant(path):
    ar.Ignorant(Limited(np.zeros(2), math.nan)).save(path)
    assert ar.load(path, base=Limited(np.zeros(2), math.nan)).ask() == 0
