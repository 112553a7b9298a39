"""Ctrl-C in the middle of a step, errors of a user's own there, and other threads: nothing is shown twice, or lost."""

from __future__ import annotations

import copy
import threading
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from policy_kit import LeastSeen

import artreplay as ar
from artreplay.compiling import Loop, using
from artreplay.errors import Interrupted, InvalidAction
from artreplay.replay import drive, reader
from artreplay.replay.reader import Reader

SHORT = ar.History([0, 0, 1, 2], [0.0, 0.0, 1.0, 0.5])
LONG = ar.History([0, 0, 1, 2, 0, 0], [0.0, 0.0, 1.0, 0.5, 1.0, 1.0])


class Failing(LeastSeen):
    """Raises at one of its updates, before or after it has taken the sample in."""

    def __init__(self, error: type[BaseException] = KeyboardInterrupt, update: int = 2, late: bool = False) -> None:
        super().__init__(3)
        self.error, self.left, self.late = error, update, late

    def update(self, unit: int, reward: float) -> None:
        self.left -= 1
        if self.left == 0 and not self.late:
            raise self.error
        super().update(unit, reward)
        if self.left == 0:
            raise self.error

    def check_unit(self, unit: Any) -> None:
        if unit == "stop":
            raise self.error

    def state(self) -> dict[str, Any]:
        return {"counts": self.counts, "totals": self.totals}

    def restore(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


CALLS = {
    "ask": lambda policy: policy.ask(),
    "tell": lambda policy: policy.tell(0, 1.0),
    "extend": lambda policy: policy.extend(LONG),
    "choose": lambda policy: policy.choose(None, 0),
    "read_cells_of": lambda policy: policy.read_cells_of([0]),
    "save": lambda policy: policy.save("never written"),
    "copy": copy.deepcopy,
}


def check_refuses_everything(policy: Any) -> None:
    for call in CALLS.values():
        with pytest.raises(Interrupted, match="was interrupted in the middle of a step"):
            call(policy)


# -- Ctrl-C --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["ask", "tell", "read_cells_of", "choose"])
@pytest.mark.parametrize("start", [ar.ArtificialReplay, ar.FullStart])
def test_a_step_that_was_cut_in_two_leaves_a_policy_that_refuses_every_call(start, call):
    policy = start(Failing(), SHORT)
    with pytest.raises(KeyboardInterrupt):
        CALLS[call](policy)
    check_refuses_everything(policy)


def test_a_pending_action_is_not_given_out_again_once_a_tell_was_cut_in_two():
    policy = ar.FullStart(Failing(update=5), SHORT)
    action = policy.ask()
    with pytest.raises(KeyboardInterrupt):
        policy.tell(action, 1.0)
    check_refuses_everything(policy)


def test_what_was_saved_before_goes_on(path):
    policy = ar.FullStart(Failing(update=5), SHORT)
    action = policy.ask()
    policy.save(path)
    with pytest.raises(KeyboardInterrupt):
        policy.tell(action, 0.0)
    again = ar.load(path, SHORT, base=Failing(update=99))
    assert again.ask() == action
    again.tell(action, 0.0)
    assert sum(again.base.counts) == again.used + again.rounds


def test_what_is_interrupted_before_anything_changes_goes_on(path):
    policy = ar.ArtificialReplay(Failing(update=99), SHORT)
    action = policy.ask()
    with pytest.raises(KeyboardInterrupt):
        policy.tell("stop", 1.0)
    assert policy.ask() == action
    policy.tell(action, 1.0)
    policy.save(path)
    assert policy.rounds == 1


def test_a_store_may_be_interrupted_while_its_rows_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "_FIRST_ROWS", 64)  # so that rows come often
    rng = np.random.default_rng(0)
    table = pa.table({"arm": rng.integers(0, 3, 6000), "click": (rng.random(6000) < 0.5) * 1.0})
    ar.index_history(table, tmp_path / "log", unit="arm", reward="click")
    policy = ar.ArtificialReplay(ar.MonUCB(3, 1000), ar.open_history(tmp_path / "log"))
    fill, calls = Reader.fill, []

    def interrupted(self, ledger):
        calls.append(ledger)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return fill(self, ledger)

    monkeypatch.setattr(Reader, "fill", interrupted)
    with pytest.raises(KeyboardInterrupt):
        policy.ask()
    check_refuses_everything(policy)


@pytest.mark.parametrize("start", [ar.ArtificialReplay, ar.FullStart])
@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_slice_of_machine_code_is_never_cut_in_two(start, at, monkeypatch):
    rng = np.random.default_rng(0)
    log = ar.History(rng.integers(0, 3, 400), (rng.random(400) < 0.5) * 1.0)
    policy, expected = (start(ar.MonUCB(3, 1000), log) for _ in range(2))
    bound_to, calls = Loop.bound_to, []

    def interrupted(self, *parts):
        loop = bound_to(self, *parts)

        def call(*arguments):
            result = loop(*arguments)
            calls.append(result)
            if len(calls) == at:  # Ctrl-C is heard when machine code returns
                raise KeyboardInterrupt
            return result

        return call

    with using("compiled"):
        action = expected.ask()
        with monkeypatch.context() as patch:
            patch.setattr(Loop, "bound_to", interrupted)
            with pytest.raises(KeyboardInterrupt):
                policy.ask()
        assert 0 < policy.used <= expected.used
        assert policy.ask() == action
    assert (policy.used, policy.marks().tolist()) == (expected.used, expected.marks().tolist())
    assert repr(policy.cells()) == repr(expected.cells())


def test_arrays_may_be_interrupted_while_they_grow(monkeypatch):
    policy = ar.FullStart(ar.MonUCB(3, 1000, bonus=lambda n: 1 / n), ar.History([0] * 300, [0.5] * 300))

    def interrupted(ledger, n_cells):
        raise KeyboardInterrupt

    monkeypatch.setattr(drive, "enlarged", interrupted)
    with pytest.raises(KeyboardInterrupt):
        policy.ask()
    check_refuses_everything(policy)


def test_an_extend_may_be_interrupted(monkeypatch):
    policy = ar.ArtificialReplay(ar.MonUCB(3, 10), SHORT)
    policy.ask()

    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(policy.drive.base, "log_changed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        policy.extend(LONG)
    check_refuses_everything(policy)


# -- errors of a user's own ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("late", [False, True], ids=["before it is taken in", "after"])
def test_an_error_in_an_update_comes_out_as_it_is_and_the_policy_goes_on(late, path):
    policy = ar.FullStart(Failing(ZeroDivisionError, late=late), SHORT)
    with pytest.raises(ZeroDivisionError):
        policy.ask()
    assert (policy.used, policy.unused_rows()) == (1, [1, 2, 3])  # the row whose update raised counts as not shown
    policy.save(path)
    policy.ask()
    assert policy.used == 4
    assert sum(policy.base.counts) == 4 + late


def test_a_reward_whose_update_raised_can_be_told_again():
    policy = ar.Ignorant(Failing(ZeroDivisionError, update=1))
    action = policy.ask()
    with pytest.raises(ZeroDivisionError):
        policy.tell(action, 1.0)
    assert (policy.rounds, policy.ask()) == (0, action)
    policy.tell(action, 1.0)
    assert (policy.rounds, policy.base.totals[action]) == (1, 1.0)


class FailingPair(Failing):
    """Plays two arms a round."""

    def propose(self) -> Any:
        return sorted(range(3), key=self.counts.__getitem__)[:2]


@pytest.mark.parametrize(("update", "rounds"), [(1, 0), (2, 1)])
def test_a_list_whose_update_raised_is_never_shown_twice(update, rounds, path):
    """Nothing was shown: it can be told again. A part was: the round counts, and the rest is a list by itself."""
    policy = ar.Ignorant(FailingPair(ZeroDivisionError, update))
    action = policy.ask()
    with pytest.raises(ZeroDivisionError):
        policy.tell(action, [1.0, 1.0])
    assert (policy.rounds, sum(policy.base.counts)) == (rounds, rounds)
    rest = action[rounds:]
    policy.tell(rest, [1.0] * len(rest))
    assert (policy.rounds, policy.base.counts) == (rounds + 1, [1, 1, 0])
    assert policy.ask() == [2, 0]


def test_a_label_that_is_in_no_row_is_not_asked_about():
    class Choosy(LeastSeen):
        def check_unit(self, arm: int) -> None:
            if arm == 2:
                raise ValueError("no 2")

    assert ar.ArtificialReplay(Choosy(3), SHORT.rows(np.array([0, 2]))).unused == 2
    with pytest.raises(ar.errors.InvalidHistory, match="row 3 is refused: no 2"):
        ar.ArtificialReplay(Choosy(3), SHORT)


# -- threads -----------------------------------------------------------------------------------------------------------


class Waiting(LeastSeen):
    """Waits inside its next update until it is let go on."""

    def update(self, unit: int, reward: float) -> None:
        entered.set()
        assert go_on.wait(20)
        super().update(unit, reward)


entered, go_on = threading.Event(), threading.Event()


def test_a_call_while_another_thread_is_inside_is_refused_and_disturbs_nothing():
    entered.clear()
    go_on.clear()
    policy = ar.ArtificialReplay(Waiting(3), SHORT)
    answers: list[Any] = []
    other = threading.Thread(target=lambda: answers.append(policy.ask()))
    other.start()
    try:
        assert entered.wait(20)
        for call in CALLS.values():
            with pytest.raises(Interrupted, match="only one thread at a time may use a policy"):
                call(policy)
    finally:
        go_on.set()
        other.join(20)
    alone = ar.ArtificialReplay(LeastSeen(3), SHORT)
    assert answers == [policy.ask()] == [alone.ask()]
    assert (policy.used, policy.base.counts) == (alone.used, alone.base.counts)


def test_one_thread_after_another_may_use_a_policy():
    policy = ar.Ignorant(LeastSeen(3))
    for _ in range(3):
        thread = threading.Thread(target=lambda: policy.tell(policy.ask(), 1.0))
        thread.start()
        thread.join(20)
    assert (policy.rounds, policy.base.counts) == (3, [1, 1, 1])
    with pytest.raises(InvalidAction):
        policy.tell([], [])
    assert policy.ask() == 0
