"""A component of the user's own, interpreted and compiled."""

from __future__ import annotations

import re
import signal
from typing import Any, NamedTuple

import numpy as np
import pytest
from own_components import FarCells, Faulty, Fewest, FewestTwo, FieldCell, MixedCells, Wrapping, diary, fewest
from policy_kit import LeastSeen, log, play

import artreplay as ar
from artreplay.compiling import using
from artreplay.errors import ArtReplayError, InvalidAction, InvalidHistory, InvalidParameter, NotCompilable

# Where a loop is compiled once, for all tests of it.
compiled_here = pytest.param("compiled", marks=pytest.mark.xdist_group("own components"))
both_modes = pytest.mark.parametrize("mode", ["interpreted", compiled_here])
history_policies = pytest.mark.parametrize("start", [ar.FullStart, ar.ArtificialReplay])


@both_modes
@pytest.mark.parametrize("start", [ar.FullStart, ar.ArtificialReplay, lambda base, history: ar.Ignorant(base)])
def test_it_does_what_the_same_plain_object_does(mode, start):
    history = log(size=20)
    with using(mode):
        policy, plain = start(fewest(), history), start(LeastSeen(), history)
        assert play(policy, 10) == play(plain, 10)
        assert policy.base.count.tolist() == plain.base.counts
        assert policy.base.total.tolist() == plain.base.totals
        assert (policy.used, policy.unused_rows(), policy.rounds) == (plain.used, plain.unused_rows(), plain.rounds)


@both_modes
def test_the_one_that_was_given_never_changes(mode):
    given = fewest()
    with using(mode):
        play(ar.ArtificialReplay(given, log()), 5)
    assert given.count.tolist() == [0, 0, 0, 0]


@both_modes
def test_several_units_and_cells(mode):
    history = ar.History([1, 0, 0, 3, 1], [0.5] * 5)
    with using(mode):
        policy = ar.ArtificialReplay(FewestTwo(np.zeros(4)), history)
        assert policy.ask() == [0, 1]  # the cell {0, 1} was served row by row, whichever of the two was proposed
        assert policy.base.count.tolist() == [2, 2, 0, 0]
        assert policy.used_by_cell() == {(0, 1): 4, (2, 3): 0}
        assert policy.unused_rows() == [3]
        policy.tell([0], [1.0])
        assert policy.ask() == [0]
        policy.tell([3, 2, 1], [1.0, 1.0, 1.0])  # the row of the cell {2, 3} comes before it
        assert policy.base.count.tolist() == [3, 3, 1, 2]
        assert policy.rounds == 2


@both_modes
@pytest.mark.parametrize("capacity", [1, 2, 3, 64])
@history_policies
def test_arrays_that_fill_grow_and_results_do_not_change(mode, capacity, start):
    history = log(size=20)
    with using(mode):
        policy = start(diary(capacity), history)
        actions = play(policy, 10)
    with using("interpreted"):
        roomy = start(diary(1000), history)
        assert actions == play(roomy, 10)
    size = int(policy.base.size[0])
    assert size == policy.used + 10
    assert policy.base.units[:size].tolist() == roomy.base.units[:size].tolist()
    assert policy.base.rewards[:size].tolist() == roomy.base.rewards[:size].tolist()


@both_modes
@pytest.mark.parametrize("capacity", [1, 2, 3])
def test_arrays_that_fill_grow_when_samples_are_only_told(mode, capacity):
    with using(mode):
        policy = ar.Ignorant(diary(capacity))
        for arm in (0, 1, 2, 3, 0, 1, 2):
            policy.tell(arm, 0.5)
    assert policy.base.units[:7].tolist() == [0, 1, 2, 3, 0, 1, 2]
    assert policy.rounds == 7


@history_policies
def test_a_base_that_is_full_already_takes_a_log(start):
    full = diary(1)
    full.update(0, 1.0)
    policy = start(full, log(size=6))
    policy.ask()
    assert int(policy.base.size[0]) == 1 + policy.used


def test_arrays_that_cannot_grow_are_an_error_of_one_sentence():
    class Short(Fewest):
        def room(self):
            return 3 - int(self.count.sum())

    policy = ar.FullStart(ar.compiled(Short)(*fewest()), log(size=6))
    with pytest.raises(ArtReplayError, match="Short must have a method grown"):
        policy.ask()
    assert policy.used == 3


@both_modes
def test_reseeding_gives_another_stream_and_the_same_key_the_same(mode):
    def actions(key):
        base = diary(64)
        base.reseed(np.uint64(key))
        with using(mode):
            return play(ar.Ignorant(base), 30)

    assert actions(1) == actions(1)
    assert actions(1) != actions(2)


@both_modes
def test_words_may_wrap_around(mode):
    with using(mode):
        policy = ar.ArtificialReplay(Wrapping(np.array([2**63 + 11], np.uint64), np.zeros(4)), log(size=6))
        actions = play(policy, 10)
    word = 2**63 + 11
    left = [log(size=6).unit(row) for row in range(6)]
    expected = []
    step = lambda word: (word * 6364136223846793005 + 1442695040888963407) % 2**64  # noqa: E731
    while len(expected) < 10:
        word = step(word)
        unit = (word >> 33) % 4
        word = step(word)
        if unit in left:
            left.remove(unit)
        else:
            expected.append(unit)
    assert actions == expected


@both_modes
@history_policies
@pytest.mark.parametrize("unit", [4, 5, 10**6])
def test_a_logged_unit_its_arrays_have_no_place_for_is_refused(mode, start, unit):
    with (
        using(mode),
        pytest.raises(InvalidHistory, match=rf"row 1 is refused: {unit} is not a unit of Fewest, which has 0 to 3"),
    ):
        start(fewest(4), ar.History([0, unit, 1], [0.5, 0.5, 0.5]))


@both_modes
@pytest.mark.parametrize("unit", [4, -1, "red", 1.0, None, True, np.array([0])], ids=repr)
def test_a_told_unit_it_has_no_place_for_is_refused_and_nothing_changes(mode, unit):
    with using(mode):
        policy = ar.ArtificialReplay(fewest(4), log())
        action = policy.ask()
        used, counts = policy.used, policy.base.count.tolist()
        with pytest.raises(InvalidAction, match="not a unit"):
            policy.tell(unit, 0.5)
        assert (policy.used, policy.base.count.tolist(), policy.rounds) == (used, counts, 0)
        assert policy.ask() == action


@history_policies
def test_labels_that_are_no_numbers_are_refused_or_skipped(start):
    history = ar.History(["red", 0, 7, 1], [0.5] * 4)
    with pytest.raises(InvalidHistory, match="row 0 is refused: 'red' is not a unit"):
        start(fewest(4), history)
    policy = start(fewest(4), history, unknown="skip")
    assert (policy.skipped, policy.unused_rows()) == (2, [1, 3])


@history_policies
def test_points_are_no_numbered_units(start):
    with pytest.raises(InvalidHistory, match="got a log of points"):
        start(fewest(4), ar.History([[0.5]], [0.5]))


@both_modes
def test_proposing_more_units_than_its_width_is_an_error_that_says_so(mode):
    """Interpreted, NumPy notices first that it writes past the end."""
    with using(mode), pytest.raises((InvalidAction, IndexError), match=r"must offer `width`|out of bounds"):
        ar.Ignorant(Faulty(np.zeros(4), 2, 2)).ask()


@both_modes
def test_proposing_what_is_no_unit_is_an_error_that_says_so(mode):
    base = MixedCells(np.zeros(3), np.array([0, 1, 2]), np.array([7]))
    with using(mode), pytest.raises(InvalidAction, match=r"MixedCells proposed 7, .* 0 to 2"):
        ar.ArtificialReplay(base, ar.History([0, 1], [0.5, 0.5])).ask()


@both_modes
@pytest.mark.parametrize("units", [0, -1, -2, -5])
def test_proposing_no_units_is_an_error_and_not_an_endless_loop(mode, units):
    def give_up(number, frame):
        raise TimeoutError("ask did not return")

    previous = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, 5 if mode == "compiled" else 1)
    try:
        with using(mode), pytest.raises(InvalidAction, match=r"at least (one|1) unit"):
            ar.Ignorant(Faulty(np.zeros(4), units, 1)).ask()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def test_cells_may_have_any_numbers():
    history = ar.History([1, 0, 1, 0], [0.5] * 4)
    policy = ar.ArtificialReplay(FarCells(np.zeros(2)), history)
    assert policy.ask() == 0
    assert policy.base.count.tolist() == [2, 0]
    assert policy.used_by_cell() == {0: 2, 1: 0}
    assert policy.unused_rows() == [0, 2]


@pytest.mark.parametrize("cells", [[9, 5, 7], [0, 2, 1], [5, 5, 0], [-3, 7, -9], [1, 0, 1]], ids=str)
@pytest.mark.parametrize("turn", [0, 1, 2])
def test_cells_stay_what_they_are_when_units_join_the_log(cells, turn):
    """Units that come later may bring cells whose numbers lie between those known so far."""
    units = [0, 1, 0, 1, 1, 0]
    more = [*units, 2, 2, 0, 1]
    base = MixedCells(np.zeros(3), np.array(cells), np.array([0]))
    policy = ar.ArtificialReplay(base, ar.History(units, [0.5] * 6))
    policy.ask()
    left = [row for row in range(6) if cells[units[row]] != cells[0]]
    assert policy.unused_rows() == left
    policy.tell(2, 0.5)
    policy.extend(ar.History(more, [0.5] * 10))
    assert policy.unused_rows() == [*left, 6, 7, 8, 9]
    policy.base.turn[0] = turn
    policy.ask()
    assert policy.unused_rows() == [row for row in [*left, 6, 7, 8, 9] if cells[more[row]] != cells[turn]]
    assert sum(policy.used_by_cell().values()) == policy.used == int(policy.base.count.sum()) - 1


@both_modes
def test_a_unit_that_was_never_logged_is_served_what_its_cell_logged(mode):
    """Cells are about units, whether or not they have been logged."""
    base = MixedCells(np.zeros(3), np.array([5, 1, 5]), np.array([2]))
    with using(mode):
        policy = ar.ArtificialReplay(base, ar.History([0, 1, 0], [0.5] * 3))
        assert policy.ask() == 2
    assert policy.base.count.tolist() == [2, 0, 0]
    assert policy.unused_rows() == [1]


def test_a_field_called_cell_is_a_field():
    policy = ar.ArtificialReplay(FieldCell(np.zeros(2)), ar.History([1, 0, 1], [0.5] * 3))
    assert policy.ask() == 0
    assert policy.used_by_cell() == {0: 1, 1: 0}


@ar.compiled
class Around(NamedTuple):
    """A component with another inside, and a pair of plain parts."""

    inner: Fewest
    pair: Any
    n_arms = 4

    def propose(self, out):
        return self.inner.propose(out)

    def update(self, unit, reward):
        self.inner.update(unit, reward)


@pytest.mark.parametrize(
    ("base", "sentence"),
    [
        (Fewest([0] * 4, np.zeros(4)), "Fewest.count must be a number, an array or a component, got a list"),
        (Fewest(np.zeros(4), {}), "Fewest.total must be a number, an array or a component, got a dict"),
        (Fewest(np.zeros(4), None), "Fewest.total must be a number, an array or a component, got None"),
        (Fewest(np.zeros(4), "0"), "Fewest.total must be a number, an array or a component, got a str"),
        (Fewest(np.zeros(4), LeastSeen()), "Fewest.total must be a number, an array or a component, got a LeastSeen"),
        (Fewest(np.zeros(4, object), np.zeros(4)), "Fewest.count must be an array of numbers, got one of dtype object"),
        (Around(Fewest(np.zeros(4), [0.0] * 4), 1), "Around.inner.total must be a number, an array or a component"),
        (Around(fewest(), (1, [2])), "Around.pair.1 must be a number, an array or a component, got a list"),
    ],
    ids=lambda value: "" if isinstance(value, tuple) else value.partition(" ")[0],
)
def test_a_field_that_cannot_be_compiled_is_refused_by_class_and_name(base, sentence):
    """Copies of a component would share it, so that two equal simulations would differ."""
    with pytest.raises(NotCompilable, match=re.escape(sentence)):
        ar.ArtificialReplay(base, log())
    with pytest.raises(NotCompilable, match=re.escape(sentence)):
        ar.simulate(base, ar.environments.KArmed(4), history=5, horizon=5, replications=2)
    with pytest.raises(NotCompilable, match=re.escape(sentence)):
        ar.testing.check_coupling(lambda: base, 4, cases=1)


@pytest.mark.parametrize("number", [1, 0.5, True, 1j, np.float32(2), np.bool_(False)], ids=repr)
def test_numbers_and_tuples_of_them_are_fields(number):
    assert ar.Ignorant(Around(fewest(), (number, np.zeros(2, bool)))).ask() == 0


@pytest.mark.parametrize("n_arms", [None, 0, -1, 2.0, True, "4"], ids=repr)
def test_it_must_say_how_many_arms_it_has(n_arms):
    class Vague(Fewest):
        pass

    Vague.n_arms = n_arms
    with pytest.raises(InvalidParameter, match="must say how many arms it has, as a field or a property n_arms, got"):
        ar.Ignorant(ar.compiled(Vague)(*fewest()))


@pytest.mark.parametrize("width", [0, -1])
def test_a_width_below_one_is_refused(width):
    class Narrow(Fewest):
        pass

    Narrow.width = width
    with pytest.raises(InvalidParameter, match="width must be at least 1"):
        ar.Ignorant(ar.compiled(Narrow)(*fewest()))


def test_cells_of_a_component_are_named_by_its_units():
    policy = ar.ArtificialReplay(fewest(), ar.History([2, 0], [0.5, 0.5]))
    assert policy.used_by_cell() == {0: 0, 1: 0, 2: 0, 3: 0}
    policy.ask()
    assert policy.used_by_cell() == {0: 1, 1: 0, 2: 0, 3: 0}
