"""Which samples are shown, in which order, and how they are counted."""

from __future__ import annotations

import math
from collections import Counter

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from policy_kit import BASES, BLOCKS, DETERMINISTIC, log, play, reward_of, state

import artreplay as ar

RELATIONS = [None, lambda logged, proposed, base: True, lambda logged, proposed, base: logged == proposed]


class Spy:
    """A plain object that proposes what a script says and writes down what it is shown."""

    def __init__(self, script, cell=None):
        self.script, self.at, self.shown = script, 0, []
        if cell is not None:
            self.cell = cell

    def propose(self):
        proposal = self.script[self.at % len(self.script)]
        return list(proposal) if isinstance(proposal, list) else proposal

    def update(self, unit, reward):
        self.shown.append((unit, reward))
        self.at += 1


def reference_replay(log_, cell, propose, update):
    """One call of ask as the definition has it: serve, or go online. The log is a list whose served rows are None."""
    while True:
        proposal = propose()
        served = 0
        for unit in proposal:
            for row, sample in enumerate(log_):
                if sample is not None and cell(sample[0]) == cell(unit):
                    update(row, *sample)
                    log_[row] = None
                    served += 1
                    break
        if not served:
            return proposal


class SlowUCB:
    """MonUCB and TopUCB, written out."""

    def __init__(self, n_arms, budget, radius):
        self.samples = [[] for _ in range(n_arms)]
        self.index = [1.0] * n_arms
        self.budget, self.radius = budget, radius

    def propose(self):
        return sorted(range(len(self.index)), key=lambda arm: (-self.index[arm], arm))[: self.budget]

    def update(self, arm, reward):
        mine = self.samples[arm]
        mine.append(reward)
        total = 0.0
        for value in mine:
            total += value
        self.index[arm] = min(self.index[arm], total / len(mine) + self.radius(len(mine)))


samples = st.tuples(st.integers(0, 3), st.sampled_from([0.0, 0.25, 0.5, 1.0]))
logs = st.lists(samples, max_size=25)


@settings(max_examples=150)
@given(logs, st.integers(1, 4), st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=4, max_size=4))
def test_replay_does_what_its_definition_says(rows, budget, tape):
    radius = lambda n: 0.4 / math.sqrt(n)  # noqa: E731
    slow, left, order = SlowUCB(4, budget, radius), list(rows), []

    def update(row, unit, reward):
        order.append(row)
        slow.update(unit, reward)

    history = ar.History([unit for unit, _ in rows], [reward for _, reward in rows])
    policy = ar.ArtificialReplay(ar.TopUCB(4, budget, 10, bonus=radius), history)
    for _ in range(4):
        expected = reference_replay(left, lambda unit: unit, slow.propose, update)
        assert policy.ask() == expected
        assert policy.used == len(order)
        assert policy.unused_rows() == [row for row, sample in enumerate(left) if sample is not None]
        rewards = [tape[arm] for arm in expected]
        policy.tell(expected, rewards)
        for arm, reward in zip(expected, rewards, strict=True):
            slow.update(arm, reward)
        assert [cell.index for cell in policy.cells()] == slow.index
        assert [cell.count for cell in policy.cells()] == [len(mine) for mine in slow.samples]


@settings(max_examples=150)
@given(
    logs,
    st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=5), min_size=1, max_size=5),
    st.sampled_from([None, lambda unit: unit % 2, lambda unit: "all"]),
)
def test_a_plain_object_is_served_as_the_definition_says(rows, script, cell):
    spy, left, shown = Spy(script), list(rows), []
    reference = Spy(script)

    def update(row, unit, reward):
        shown.append((unit, reward))
        reference.update(unit, reward)

    if not rows:
        return
    history = ar.History([unit for unit, _ in rows], [reward for _, reward in rows])
    if cell is not None:
        spy.cell = cell
    policy = ar.ArtificialReplay(spy, history)
    expected = reference_replay(left, cell or (lambda unit: unit), reference.propose, update)
    assert policy.ask() == expected
    assert policy.base.shown == shown
    assert policy.unused_rows() == [row for row, sample in enumerate(left) if sample is not None]


def test_a_cell_named_twice_is_served_twice():
    policy = ar.ArtificialReplay(Spy([["a", "a", "b"]]), ar.History(["a", "b", "a", "a", "a"], [1, 2, 3, 4, 5]))
    policy.ask()
    assert policy.base.shown == [("a", 1.0), ("a", 3.0), ("b", 2.0), ("a", 4.0), ("a", 5.0)]


def test_one_served_unit_is_enough_to_propose_again():
    policy = ar.ArtificialReplay(Spy([["a", "b"], ["c", "d"]]), ar.History(["b", "c"], [0, 1]))
    assert policy.ask() == ["a", "b"]
    assert policy.base.shown == [("b", 0.0), ("c", 1.0)]


def test_a_sample_is_shown_as_it_was_logged():
    """An arm is served what its component mates logged, under their own names."""
    history = ar.History([1, 3, 1, 1], [0.25, 0.5, 0.75, 1.0])
    policy = ar.ArtificialReplay(ar.LinUCB(BLOCKS, 20, alpha=3.0), history)
    assert policy.ask() == 0  # with an alpha this wide its index stays at 1
    cells = policy.cells()
    assert [cell.count for cell in cells] == [0, 3, 0, 0]
    assert [cell.used for cell in cells] == [0, 3, 0, 0]
    assert cells[1].mean == pytest.approx(2 / 3)
    assert policy.unused_rows() == [1]
    by_hand = ar.LinUCB(BLOCKS, 20, alpha=3.0)
    for row in (0, 2, 3):
        by_hand.update(history.unit(row), history.rewards[row])
    assert state(policy.base) == state(by_hand)


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("relation", RELATIONS, ids=["none", "always", "equal"])
def test_no_sample_is_shown_twice_and_none_is_made_up(base, relation):
    history = log(size=30)
    policy = ar.ArtificialReplay(BASES[base](), history, relation=relation)
    online = Counter()
    before = set(policy.unused_rows())
    assert before == set(range(30))
    for round_ in range(12):
        action = policy.ask()
        left = set(policy.unused_rows())
        assert left <= before
        assert len(left) == policy.unused == 30 - policy.used
        before = left
        units = action if isinstance(action, list) else [action]
        rewards = [reward_of(unit, round_) for unit in units]
        policy.tell(action, rewards if isinstance(action, list) else rewards[0])
        online.update(units)
    shown = Counter(history.unit(row) for row in range(30) if row not in before)
    if base != "plain":
        for cell in policy.cells():
            assert cell.count == shown[cell.unit] + online[cell.unit]
            assert cell.used == shown[cell.unit]
            assert cell.logged == sum(history.unit(row) == cell.unit for row in range(30))
    else:
        assert policy.base.counts == [shown[arm] + online[arm] for arm in range(4)]


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("relation", RELATIONS, ids=["none", "always", "equal"])
def test_samples_used_by_cell_add_up_to_samples_used(base, relation):
    policy = ar.ArtificialReplay(BASES[base](), log(size=30), relation=relation)
    for _ in range(6):
        assert sum(policy.used_by_cell().values()) == policy.used
        play(policy, 1)


@pytest.mark.parametrize("start", [ar.FullStart, ar.ArtificialReplay, lambda base, history: ar.Ignorant(base)])
def test_cells_are_named_by_their_arms(start):
    history = log(size=30)
    keys = lambda base: list(start(base, history).used_by_cell())  # noqa: E731
    assert keys(BASES["MonUCB"]()) == [0, 1, 2, 3]
    assert keys(BASES["LinUCB"]()) == [(0, 1), (2, 3)]
    assert keys(ar.LinUCB([[1, 0], [0, 1], [0.5, 0], [0, 0]], 20)) == [(0, 2), 1, 3]


def test_a_plain_object_names_its_cells_too():
    history = ar.History(["a", "b", "c", "a", "d"], [1, 1, 1, 1, 1])
    policy = ar.ArtificialReplay(Spy(["a"], cell=lambda unit: unit in "ab"), history)
    assert policy.used_by_cell() == {("a", "b"): 0, ("c", "d"): 0}
    policy.ask()
    assert policy.used_by_cell() == {("a", "b"): 3, ("c", "d"): 0}
    assert policy.unused_rows() == [2, 4]
    policy = ar.ArtificialReplay(Spy(["a"]), history)
    policy.ask()
    assert policy.used_by_cell() == {"a": 2, "b": 0, "c": 0, "d": 0}


@pytest.mark.parametrize("base", [name for name in BASES if name != "plain"])
def test_a_cell_shows_what_is_known_of_its_arm(base):
    policy = ar.ArtificialReplay(BASES[base](), ar.History([0, 0, 1], [0.5, 1.0, 0.0]))
    fresh = policy.cells()
    assert [(c.unit, c.count, c.logged, c.used) for c in fresh] == [
        (0, 0, 2, 0),
        (1, 0, 1, 0),
        (2, 0, 0, 0),
        (3, 0, 0, 0),
    ]
    assert all(math.isnan(cell.mean) for cell in fresh)
    starting = {"UCB1": math.inf}.get(base, 1.0)
    if base in ("Thompson", "IDS", "RandomChoice", "RandomChoice of 2"):
        assert all(math.isnan(cell.index) for cell in fresh)
    else:
        assert [cell.index for cell in fresh] == [starting] * 4
    policy = ar.FullStart(BASES[base](), ar.History([0, 0, 1], [0.5, 1.0, 0.0]))
    policy.ask()
    assert [cell.mean for cell in policy.cells()[:2]] == [0.75, 0.0]
    assert [cell.used for cell in policy.cells()] == [2, 1, 0, 0]


def test_cells_are_for_the_algorithms_of_the_package():
    with pytest.raises(ar.errors.InvalidParameter, match="and Spy does not"):
        ar.Ignorant(Spy([0])).cells()


@pytest.mark.parametrize("base", DETERMINISTIC)
def test_full_start_shows_the_log_from_front_to_back(base):
    history = log(size=20)
    policy, by_hand = ar.FullStart(BASES[base](), history), BASES[base]()
    policy.ask()
    for row in range(20):
        by_hand.update(history.unit(row), float(history.rewards[row]))
    assert policy.ask() == by_hand.propose()
    assert policy.used_by_cell() == {
        name: sum(history.unit(row) in (name if isinstance(name, tuple) else (name,)) for row in range(20))
        for name in policy.used_by_cell()
    }
