"""The seam: a base may be told the online round and where a sample comes from, and may ask for the whole log first."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import artreplay as ar
from artreplay.compiling import using
from artreplay.errors import InvalidParameter
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


@ar.compiled
class Noting(NamedTuple):
    """The same as a component: what it hears goes into rows of an array."""

    count: np.ndarray
    heard: np.ndarray
    size: np.ndarray
    n_arms = 3

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


KINDS = ("round", "online", "logged")


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
    assert kinds == {"round", "online"} | (set() if policy == "ignorant" else {"logged"})
    rounds = [entry[1] for entry in expected if entry[0] == "round"]
    assert sorted(rounds) == rounds
    assert set(rounds) == set(range(6))


def test_compiled_a_component_hears_the_same():
    with using("interpreted"):
        expected = played(POLICIES["replay"](noting()))
    with using("compiled"):
        assert played(POLICIES["replay"](noting())) == expected


def test_all_logged_rows_of_an_arm_come_before_what_is_told_of_it():
    policy = ar.ArtificialReplay(Listener(), HISTORY)
    policy.tell(1, 0.25)
    assert policy.base.heard == [("logged", 1, 0.5, 0.0), ("logged", 1, 1.0, 0.0), ("online", 1, 0.25)]


class Needless(Listener):
    """An object whose `propose` can do without the round: what a method does not need is not passed."""

    def propose(self, round_: int = 0) -> int:
        return super().propose(round_)


def test_what_an_object_does_not_need_is_not_passed():
    policy = ar.ArtificialReplay(Needless(), HISTORY)
    for _ in range(5):
        policy.tell(policy.ask(), 0.5)
    assert {entry[1] for entry in policy.base.heard if entry[0] == "round"} == {0}


# -- bases that see the whole log first --------------------------------------------------------------------------------


class Careful:
    """Plays what a careful mean says, which may rise: read only as far as it asks for rows, it misses some."""

    def __init__(self) -> None:
        self.counts, self.totals = [0] * 3, [0.0] * 3
        self.seen: list[int] = []

    def propose(self) -> int:
        return max(range(3), key=lambda arm: ((self.totals[arm] + 0.5) / (self.counts[arm] + 1), -arm))

    def update(self, arm: int, reward: float) -> None:
        self.counts[arm] += 1
        self.totals[arm] += reward
        self.seen.append(arm)


class Thorough(Careful):
    reads_whole_log = True


@ar.compiled
class ThoroughComponent(NamedTuple):
    """The same as a component."""

    counts: np.ndarray
    totals: np.ndarray
    seen: np.ndarray
    n_arms = 3
    reads_whole_log = True

    def propose(self, out):
        out[0] = np.argmax((self.totals + 0.5) / (self.counts + 1))
        return 1

    def update(self, unit, reward):
        self.seen[int(self.counts.sum())] = unit
        self.counts[unit] += 1
        self.totals[unit] += reward


def thorough_component() -> ThoroughComponent:
    return ThoroughComponent(np.zeros(3), np.zeros(3), np.full(200, -1))


@pytest.mark.parametrize("make", [Thorough, thorough_component], ids=["object", "component"])
@pytest.mark.parametrize("start", [ar.FullStart, ar.ArtificialReplay])
@pytest.mark.parametrize("first", ["ask", "tell"])
def test_a_base_that_reads_the_whole_log_is_shown_it_first_and_in_order(make, start, first):
    log = ar.History([2, 0, 1, 0, 2], [0.0, 1.0, 0.5, 0.0, 1.0])
    policy = start(make(), log)
    if first == "ask":
        policy.ask()
    policy.tell(1, 1.0)
    assert list(policy.base.seen)[:6] == [2, 0, 1, 0, 2, 1]
    assert (policy.used, policy.unused_rows()) == (5, [])
    policy.extend(ar.History([2, 0, 1, 0, 2, 1, 0], [0.0, 1.0, 0.5, 0.0, 1.0, 0.0, 0.0]))
    policy.ask()
    assert list(policy.base.seen)[:8] == [2, 0, 1, 0, 2, 1, 1, 0]
    assert policy.used == 7


def test_any_rule_is_exact_if_its_base_reads_the_whole_log():
    with pytest.raises(CheckFailed):
        check_coupling(Careful, 3)
    for make in (Thorough, thorough_component):
        assert check_coupling(make, 3, rewards=(0, 0.5, 1)).cases == 200


def test_reads_whole_log_is_true_or_false():
    class Unsure(Careful):
        reads_whole_log = "yes"

    with pytest.raises(InvalidParameter, match=r"reads_whole_log of .*Unsure must be True or False, got 'yes'"):
        ar.Ignorant(Unsure())
