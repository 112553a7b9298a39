"""Ctrl-C, saving, growing and failing at odd moments: nothing is lost, and nothing is shown twice."""

from __future__ import annotations

import copy
import pickle
import signal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from interruption import ordinary_ctrl_c

import artreplay as ar
from artreplay.history.stores import Store
from artreplay.replay import policy as policy_module
from artreplay.replay.reader import Reader, StreamReader


class WhileOpen:
    """An arm is worth 1 while the log has unread rows of it, and then what a careful mean says."""

    def __init__(self, n_arms: int = 3) -> None:
        self.counts, self.totals, self.open = [0] * n_arms, [0.0] * n_arms, [True] * n_arms
        self.closed: list[Any] = []

    def value(self, arm: int) -> float:
        return 1.0 if self.open[arm] else (self.totals[arm] + 0.5) / (self.counts[arm] + 1)

    def propose(self) -> int:
        return max(range(len(self.counts)), key=lambda arm: (self.value(arm), -arm))

    def update(self, arm: int, reward: float) -> None:
        self.counts[arm] += 1
        self.totals[arm] += reward

    def close(self, arm: int) -> None:
        self.open[arm] = False
        self.closed.append(arm)

    def reopen(self, arm: int) -> None:
        self.open[arm] = True

    def state(self) -> dict[str, Any]:
        return dict(vars(self))

    def restore(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


SHORT = ar.History([0, 0, 1, 2], [0.0, 0.0, 1.0, 0.5])
LONG = ar.History([0, 0, 1, 2, 0, 0, 0, 0], [0.0, 0.0, 1.0, 0.5, 1.0, 1.0, 1.0, 1.0])


@pytest.mark.parametrize("call", range(1, 5))
def test_ctrl_c_while_rows_of_a_store_are_put_in_their_place(call, tmp_path, monkeypatch):
    monkeypatch.setattr(Store, "first_prefetch", 64)  # so that rows come often
    rng = np.random.default_rng(0)
    table = pa.table({"arm": rng.integers(0, 3, 6000), "click": (rng.random(6000) < 0.5) * 1.0})
    ar.index_history(table, tmp_path / "log.arh", unit="arm", reward="click")

    def made():
        return ar.ArtificialReplay(ar.MonUCB(3, 1000), ar.open_history(tmp_path / "log.arh"))

    expected = made()
    action = expected.ask()
    moved, calls = Reader._moved_together, []

    def interrupted(self, ledger, need):
        calls.append(need)
        found = moved(self, ledger, need)
        if len(calls) == call:
            signal.raise_signal(signal.SIGINT)
        return found

    monkeypatch.setattr(Reader, "_moved_together", interrupted)
    policy = made()
    with ordinary_ctrl_c(), pytest.raises(KeyboardInterrupt):
        policy.ask()
    assert (policy.ask(), policy.used) == (action, expected.used)
    assert policy.marks().tolist() == expected.marks().tolist()


def test_ctrl_c_between_reading_rows_and_putting_them_in_their_place(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    table = pa.table({"x": rng.random(9000), "click": (rng.random(9000) < 0.5) * 1.0})
    ar.index_history(table, tmp_path / "log.arh", unit=["x"], reward="click")
    expected, policy = (ar.FullStart(ar.GridUCB(1, 100, 8), ar.open_history(tmp_path / "log.arh")) for _ in range(2))
    put, calls = StreamReader.put, []

    def interrupted(self, ledger, rows):
        calls.append(rows)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return put(self, ledger, rows)

    action = expected.ask()
    monkeypatch.setattr(StreamReader, "put", interrupted)
    with pytest.raises(KeyboardInterrupt):
        policy.ask()
    assert (policy.ask(), policy.used) == (action, 9000)
    assert [cell.mean for cell in policy.cells()] == [cell.mean for cell in expected.cells()]


def test_ctrl_c_while_the_arrays_of_a_tree_grow(monkeypatch):
    rng = np.random.default_rng(1)
    log = ar.History(rng.random((300, 2)), (rng.random(300) < 0.5) * 1.0)

    def made():
        return ar.ArtificialReplay(ar.TreeUCB(2, 1000, epsilon=2**-6), log)

    def played(policy):
        for round_ in range(120):
            policy.tell(policy.ask(), float(round_ % 2))
        return policy.used, policy.marks().tolist()

    expected = played(made())
    grown, calls = policy_module.enlarged, []

    def interrupted(ledger, n_cells):
        calls.append(n_cells)
        if len(calls) == 2:
            signal.raise_signal(signal.SIGINT)
        return grown(ledger, n_cells)

    monkeypatch.setattr(policy_module, "enlarged", interrupted)
    policy, told = made(), 0
    with ordinary_ctrl_c():
        while told < 120:
            try:
                action = policy.ask()
                policy.tell(action, float(policy.rounds % 2))
                told = policy.rounds
            except KeyboardInterrupt:
                told = policy.rounds
    assert (policy.used, policy.marks().tolist()) == expected


def test_ctrl_c_at_the_end_of_extend_does_not_forget_that_the_log_has_grown(tmp_path):
    policy = ar.ArtificialReplay(ar.MonUCB(3, 10), SHORT)
    action = policy.ask()
    close_again = policy._close_again

    def interrupted(closed):
        close_again(closed)
        signal.raise_signal(signal.SIGINT)

    policy._close_again = interrupted
    with ordinary_ctrl_c(), pytest.raises(KeyboardInterrupt):
        policy.extend(LONG)
    del policy._close_again
    policy.extend(LONG)
    policy.save(tmp_path / "policy")
    with pytest.raises(ar.errors.InvalidHistory, match="rows may come before"):
        ar.load(tmp_path / "policy").tell(action, 1.0)


def test_a_saved_policy_knows_which_cells_are_closed(tmp_path):
    policy = ar.ArtificialReplay(WhileOpen(4), SHORT)
    action = policy.ask()
    policy.save(tmp_path / "policy")
    same = ar.load(tmp_path / "policy", SHORT, base=WhileOpen(4))
    assert (same.ask(), same.base.closed) == (action, policy.base.closed)
    grown = ar.load(tmp_path / "policy", LONG, base=WhileOpen(4))
    policy.extend(LONG)
    for one in (policy, grown):
        one.tell(action, 0.0)
    assert (grown.ask(), grown.used) == (policy.ask(), policy.used) == (0, 8)
    assert grown.base.closed == policy.base.closed


def test_a_cell_without_rows_is_closed_once_however_often_the_log_grows():
    policy = ar.ArtificialReplay(WhileOpen(4), SHORT)
    policy.tell(policy.ask(), 0.0)
    policy.extend(LONG)
    policy.ask()
    assert policy.base.closed.count(3) == 1


class Halves(WhileOpen):
    """Two cells of arms, of which the first falls apart when it is played."""

    def __init__(self) -> None:
        super().__init__(4)
        self.apart = False
        self.seen: list[int] = []

    def cell(self, arm: int) -> str:
        return "right" if arm > 1 else f"left {arm}" if self.apart else "left"

    def propose(self) -> int:
        return 3

    def update(self, arm: int, reward: float) -> None:
        self.seen.append(arm)
        self.apart = self.apart or len(self.seen) > 2

    def close(self, cell: str) -> None:
        self.closed.append(cell)


def test_an_object_may_divide_its_cells_while_its_log_is_elsewhere(tmp_path):
    log = ar.History([0, 1, 0, 2, 3, 1], [0.0, 0.0, 0.0, 1.0, 1.0, 0.0])
    policies = [ar.ArtificialReplay(Halves(), log) for _ in range(2)]
    for policy in policies:
        action = policy.ask()
    policies[0].save(tmp_path / "policy")
    policies[0] = ar.load(tmp_path / "policy", base=Halves())
    for policy in policies:
        policy.tell(action, 1.0)
    policies[0].extend(log)
    for policy in policies:
        policy.tell(0, 1.0)
        assert policy.base.seen == [2, 3, 3, 0, 0, 0]
        assert policy.unused_rows() == [1, 5]


def test_with_one_cell_for_everything_no_cell_is_closed():
    policy = ar.ArtificialReplay(Halves(), ar.History([2, 2, 1], [0.0, 0.0, 0.0]), relation="trivial")
    policy.ask()
    assert (policy.used, policy.base.closed) == (3, [])


def test_a_simulation_tells_an_object_the_names_of_its_cells():
    heard: list[Any] = []

    class Listening(Halves):
        def close(self, cell: str) -> None:
            heard.append(cell)

    ar.simulate(Listening(), ar.environments.KArmed(4), history=20, horizon=2, replications=1)
    assert heard == ["right"]


class Fragile(WhileOpen):
    """Fails at its second sample, once."""

    broken = False

    def update(self, arm: int, reward: float) -> None:
        if sum(self.counts) == 1 and not self.broken:
            self.broken = True
            raise RuntimeError("once")
        super().update(arm, reward)


def test_a_row_that_an_object_did_not_take_is_shown_again():
    policy = ar.ArtificialReplay(Fragile(), SHORT)
    with pytest.raises(RuntimeError, match="once"):
        policy.ask()
    assert policy.used == 1
    policy.ask()
    assert policy.used == sum(policy.base.counts) == 4


def test_a_label_that_is_in_no_row_is_not_asked_about():
    class Choosy(WhileOpen):
        def check_unit(self, arm: int) -> None:
            if arm == 2:
                raise ValueError("no 2")

    assert ar.ArtificialReplay(Choosy(), SHORT.rows(np.array([0, 2]))).unused == 2


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda policy: pickle.loads(pickle.dumps(policy))])
def test_a_copy_goes_on_as_the_policy_does(copied):
    policy = ar.ArtificialReplay(ar.TopUCB(3, 2, 10), SHORT)
    policy.tell(policy.ask(), [0.0, 1.0])
    policy.ask()
    other = copied(policy)
    for one in (policy, other):
        one.tell(one.ask(), [1.0, 0.0])
    assert (policy.ask(), policy.used) == (other.ask(), other.used)
