"""The seam: a base may be told the online round, where a sample comes from, and which of its cells have no row left."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import artreplay as ar
from artreplay.compiling import using
from artreplay.testing import CheckFailed, check_coupling

HISTORY = ar.History([0, 1, 1, 2], [0.0, 0.5, 1.0, 1.0])


class Listener:
    """Notes all that it is told; proposes the arm that was shown least, and the next one in every other round."""

    def __init__(self, n_arms: int = 3) -> None:
        self.counts = [0] * n_arms
        self.heard: list[tuple[Any, ...]] = []

    def propose(self, round_: int) -> int:
        self.heard.append(("round", round_))
        return (min(range(len(self.counts)), key=lambda arm: (self.counts[arm], arm)) + round_) % len(self.counts)

    def update(self, arm: int, reward: float) -> None:
        self.counts[arm] += 1
        self.heard.append(("online", arm, reward))

    def update_logged(self, arm: int, reward: float, allowance: float) -> None:
        self.counts[arm] += 1
        self.heard.append(("logged", arm, reward, allowance))

    def close(self, arm: int) -> None:
        self.heard.append(("close", arm))

    def reopen(self, arm: int) -> None:
        self.heard.append(("reopen", arm))


@ar.compiled
class Noting(NamedTuple):
    """The same as a component: what it hears goes into rows of an array."""

    count: np.ndarray
    heard: np.ndarray
    size: np.ndarray

    def note(self, what, arm, value):
        self.heard[self.size[0], 0] = what
        self.heard[self.size[0], 1] = arm
        self.heard[self.size[0], 2] = value
        self.size[0] += 1

    def propose(self, out, round_):
        self.note(0, round_, 0.0)
        out[0] = (np.argmin(self.count) + round_) % len(self.count)
        return 1

    def update(self, unit, reward):
        self.count[unit] += 1
        self.note(1, unit, reward)

    def update_logged(self, unit, reward, allowance):
        self.count[unit] += 1
        self.note(2, unit, reward + allowance)

    def close(self, cell):
        self.note(3, cell, 0.0)

    def reopen(self, cell):
        self.note(4, cell, 0.0)


KINDS = ("round", "online", "logged", "close", "reopen")


def noting() -> Noting:
    return Noting(np.zeros(3), np.zeros((200, 3)), np.zeros(1, np.int64))


def heard_by(base: Any) -> list[tuple[Any, ...]]:
    if isinstance(base, Listener):
        return [(entry + (0.0,))[:3] for entry in base.heard]
    rows = base.heard[: int(base.size[0])].tolist()
    return [(KINDS[int(what)], int(arm), value) for what, arm, value in rows]


def played(policy: Any) -> list[tuple[Any, ...]]:
    """What a base hears in some rounds, in which an action nobody asked for is told, and the log grows."""
    for round_ in range(6):
        action = policy.ask()
        policy.tell(2 if round_ == 1 else action, 0.5)
        if round_ == 3 and not isinstance(policy, ar.Ignorant):
            policy.extend(ar.History([0, 1, 1, 2, 0], [0.0, 0.5, 1.0, 1.0, 0.25]))
    return heard_by(policy.base)


POLICIES = {
    "ignorant": lambda base: ar.Ignorant(base),
    "full start": lambda base: ar.FullStart(base, HISTORY),
    "replay": lambda base: ar.ArtificialReplay(base, HISTORY),
}


@pytest.mark.parametrize("policy", POLICIES)
def test_an_object_and_a_component_hear_the_same(policy):
    with using("interpreted"):
        expected = played(POLICIES[policy](Listener()))
        assert played(POLICIES[policy](noting())) == expected
    kinds = {entry[0] for entry in expected}
    also = {"ignorant": set(), "full start": {"logged"}, "replay": {"logged", "reopen"}}
    assert kinds == {"round", "online", "close"} | also[policy]
    rounds = [entry[1] for entry in expected if entry[0] == "round"]
    assert sorted(rounds) == rounds
    assert set(rounds) == set(range(6))


def test_compiled_a_component_hears_the_same():
    with using("interpreted"):
        expected = played(POLICIES["replay"](noting()))
    with using("compiled"):
        assert played(POLICIES["replay"](noting())) == expected


def test_an_arm_is_closed_once_and_again_when_rows_have_come():
    policy = ar.ArtificialReplay(Listener(), HISTORY)
    played(policy)
    about = [entry[0] for entry in policy.base.heard if entry[0] in ("close", "reopen") and entry[1] == 0]
    assert about == ["close", "reopen", "close"]


def test_all_logged_rows_of_an_arm_come_before_it_is_closed_and_before_what_is_told():
    policy = ar.ArtificialReplay(Listener(), HISTORY)
    policy.tell(1, 0.25)
    assert policy.base.heard == [("logged", 1, 0.5, 0.0), ("logged", 1, 1.0, 0.0), ("online", 1, 0.25)]


class Resource(Listener):
    """An object whose `close` and `propose` are of another kind: what it does not take is not passed."""

    def propose(self, round_: int = 0) -> int:
        return super().propose(round_)

    def close(self) -> None:  # type: ignore[override]
        raise RuntimeError("this closes the object, and not a cell")


def test_what_an_object_does_not_take_is_not_passed():
    policy = ar.ArtificialReplay(Resource(), HISTORY)
    for _ in range(5):
        policy.tell(policy.ask(), 0.5)
    assert {entry[1] for entry in policy.base.heard if entry[0] == "round"} == {0}


class WhileOpen:
    """An arm is worth 1 while the journal has unread rows of it, and then whatever is thought of it: it may rise."""

    def __init__(self) -> None:
        self.counts, self.totals, self.is_open = [0] * 3, [0.0] * 3, [True] * 3

    def value(self, arm: int) -> float:
        return 1.0 if self.is_open[arm] else (self.totals[arm] + 0.5) / (self.counts[arm] + 1)

    def propose(self) -> int:
        return max(range(3), key=lambda arm: (self.value(arm), -arm))

    def update(self, arm: int, reward: float) -> None:
        self.counts[arm] += 1
        self.totals[arm] += reward

    def close(self, arm: int) -> None:
        self.is_open[arm] = False

    def reopen(self, arm: int) -> None:
        self.is_open[arm] = True


class NeverOpen(WhileOpen):
    """What is thought of an arm counts from the beginning."""

    def __init__(self) -> None:
        super().__init__()
        self.is_open = [False] * 3

    def reopen(self, arm: int) -> None:
        pass


def test_a_value_that_may_rise_is_exact_if_it_counts_from_the_closing_on():
    assert check_coupling(WhileOpen, 3).cases == 200
    with pytest.raises(CheckFailed):
        check_coupling(NeverOpen, 3)
