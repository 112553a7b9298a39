"""Plain objects in simulations, and what is refused before anything is played."""

from __future__ import annotations

import contextlib
import signal

import numpy as np
import pytest
from simulated import LINEAR, OwnFewest, PlainFewest, Tale, own_random, same

import artreplay as ar
from artreplay.compiling import using
from artreplay.environments import KArmed, TopArms
from artreplay.errors import ArtReplayError, InvalidAction, InvalidHistory, InvalidParameter


@pytest.fixture(autouse=True)
def fresh_tale():
    Tale.forget()


SETTINGS = {"history": 15, "horizon": 10, "replications": 4}


@pytest.mark.parametrize("mode", ["auto", "interpreted", "compiled"])
@pytest.mark.parametrize("threads", [None, 1, 4])
def test_a_plain_object_plays_the_same_in_any_mode_and_number_of_threads(mode, threads):
    expected = ar.simulate(PlainFewest(3), KArmed(3), **SETTINGS)
    with using(mode):
        assert same(ar.simulate(PlainFewest(3), KArmed(3), threads=threads, **SETTINGS), expected)


def test_every_replication_starts_from_a_copy():
    base = PlainFewest(3)
    runs = ar.simulate(base, KArmed(3), start="ignorant", **SETTINGS)
    assert base.count == [0, 0, 0]
    assert runs.actions.tolist() == [[0, 1, 2, 0, 1, 2, 0, 1, 2, 0]] * 4


@pytest.mark.parametrize("start", ["full-start", "artificial-replay"])
@pytest.mark.parametrize("order", [[2, 0, 1], [1, 1, 2, 0], [2, 2, 2], [0, 1, 2]])
def test_a_given_log_is_shown_to_a_plain_object_as_it_is(start, order):
    rewards = [0.1 * (place + 1) for place in range(len(order))]
    history = ar.History(order, rewards)
    Tale.forget()
    ar.simulate(Tale([2]), KArmed(3), start=start, history=history, horizon=1, replications=2)
    logged = list(zip(order, rewards, strict=True))
    expected = logged if start == "full-start" else [sample for sample in logged if sample[0] == 2]
    half = len(Tale.shown) // 2
    for shown in (Tale.shown[:half], Tale.shown[half:]):
        assert shown[:-1] == expected
        assert shown[-1][0] == 2


@pytest.mark.parametrize("history", [ar.History([2, 0, 1, 0], [0.1, 0.2, 0.3, 0.4]), 30])
def test_an_object_that_reads_the_whole_log_is_shown_it_first_and_in_order(history):
    class Patient(Tale):
        reads_whole_log = True

    found = []
    for kind, start in ((Patient, "artificial-replay"), (Patient, "full-start"), (Tale, "artificial-replay")):
        Tale.forget()
        runs = ar.simulate(kind([1]), KArmed(3), start=start, history=history, horizon=2, replications=1)
        found.append((Tale.shown.copy(), runs.used.tolist()))
    assert found[0] == found[1]
    assert found[0] != found[2]
    if isinstance(history, ar.History):
        assert found[0][0][:4] == [(2, 0.1), (0, 0.2), (1, 0.3), (0, 0.4)]


def test_a_plain_object_brings_its_own_cells():
    class Paired(Tale):
        def cell(self, unit):
            return unit // 2

    history = ar.History([1, 3, 0, 1, 2], [0.1, 0.2, 0.3, 0.4, 0.5])
    runs = ar.simulate(Paired([0]), KArmed(4), history=history, horizon=1, replications=1)
    assert Tale.shown[:-1] == [(1, 0.1), (0, 0.3), (1, 0.4)]
    assert runs.used.tolist() == [[3]]
    Tale.forget()
    drawn = ar.simulate(Paired([0]), KArmed(4), history=50, horizon=1, replications=3)
    log = KArmed(4).draw_history(50)
    assert drawn.used[0, 0] == sum(log.unit(row) < 2 for row in range(50))


def test_a_list_of_fewer_arms_than_the_environment_expects_is_padded():
    runs = ar.simulate(Tale([[2, 0], [1]]), TopArms(3, 2), start="ignorant", horizon=2, replications=1)
    assert runs.actions.shape == (1, 2, 2)
    assert runs.actions[0, 0].tolist() == [2, 0]


@pytest.mark.parametrize("keep", ["all", "final"])
def test_more_arms_than_the_environment_expects_are_refused(keep):
    with pytest.raises(ArtReplayError, match=r"the environment (expects|plays)"):
        ar.simulate(Tale([[0, 1]]), KArmed(3), start="ignorant", horizon=2, replications=1, keep=keep)


@pytest.mark.parametrize("keep", ["all", "final"])
def test_a_component_that_plays_more_arms_than_the_environment_expects_is_refused(keep):
    with pytest.raises(ArtReplayError, match=r"the environment (expects|plays)"):
        ar.simulate(own_random(6), KArmed(6), start="ignorant", horizon=2, replications=1, keep=keep)


@pytest.mark.parametrize("unit", [3, -1, "a", (0,), 0.5], ids=repr)
def test_a_unit_that_is_not_an_arm_of_the_environment_is_refused(unit):
    with pytest.raises(InvalidAction, match="not one of the 3 arms"):
        ar.simulate(Tale([unit]), KArmed(3), start="ignorant", horizon=2, replications=1)


def test_numpy_numbers_are_arms():
    runs = ar.simulate(Tale([np.int64(2)]), KArmed(3), start="ignorant", horizon=2, replications=1)
    assert runs.actions.tolist() == [[2, 2]]
    assert [unit for unit, _ in Tale.shown] == [2, 2]


def test_an_empty_list_is_refused():
    with pytest.raises(InvalidAction, match=r"at least (one|1) unit"):
        ar.simulate(Tale([[]]), KArmed(3), start="ignorant", horizon=2, replications=1)


@pytest.mark.parametrize("where", ["propose", "update", "reseed", "cell", "__deepcopy__"])
def test_an_error_inside_an_object_comes_out_as_it_is(where):
    class Mine(Exception):
        pass

    def broken(self, *args):
        raise Mine(where)

    kind = type("Broken", (Tale,), {where: broken})
    with pytest.raises(Mine, match=where):
        ar.simulate(kind(), KArmed(2), horizon=3, history=5, replications=2)


@pytest.mark.parametrize(
    "seed", [-5, -(2**70), "abc", None, 0.5, [1], lambda self, seed: None], ids=lambda s: str(s)[:10]
)
def test_an_attribute_called_seed_may_be_anything(seed):
    """It is part of the key if it is a seed; else it is the object's own business."""
    kind = type("Seeded", (Tale,), {"seed": seed})
    with _at_most(5.0):
        ar.simulate(kind(), KArmed(2), horizon=2, history=2, replications=2)
    assert len(set(Tale.keys)) == 2


@contextlib.contextmanager
def _at_most(seconds):
    def give_up(number, frame):
        raise TimeoutError

    previous = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def test_rewards_reach_an_object_as_plain_floats_and_units_as_plain_integers():
    for start in ("full-start", "artificial-replay", "ignorant"):
        ar.simulate(Tale([0, 1]), KArmed(2), start=start, history=5, horizon=3, replications=1)
    assert all(type(unit) is int and type(reward) is float for unit, reward in Tale.shown)


@pytest.mark.parametrize("reward_range", [(0.0, 1.0), (-1.0, 1.0), (0.0, 2.0)])
def test_an_object_is_shown_rewards_in_its_own_units_wherever_they_come_from(reward_range):
    """A plain object with a reward range sees rewards as they are, as it does when a policy drives it."""

    class Ranged(Tale):
        pass

    Ranged.reward_range = reward_range
    env = KArmed(2, means=[0, 1])
    history = ar.History([0, 1], [0.0, 1.0])
    for log in (history, 2):
        Tale.forget()
        ar.simulate(Ranged([0, 1]), env, start="full-start", history=log, horizon=4, replications=1)
        assert all(reward == float(unit) for unit, reward in Tale.shown), log


# -- errors ------------------------------------------------------------------------------------------------------

WRONG = {
    "arms": (lambda: ar.simulate(ar.MonUCB(3, 10), KArmed(4)), "the algorithm has 3 arms, and the environment has 4"),
    "budget": (
        lambda: ar.simulate(ar.TopUCB(4, 2, 10), TopArms(4, 3)),
        "the algorithm plays 2 arms in a round, and the environment expects 3",
    ),
    "one arm for several": (lambda: ar.simulate(ar.UCB1(4), TopArms(4, 3)), "plays 1 arms in a round"),
    "several arms for one": (lambda: ar.simulate(ar.TopUCB(4, 2, 10), KArmed(4)), "plays 2 arms in a round"),
    "features": (lambda: ar.simulate(ar.LinUCB(LINEAR.features[:3], 10), LINEAR), "the algorithm has 3 arms"),
    "range too high": (
        lambda: ar.simulate(ar.MonUCB(2, 10, reward_range=(0.5, 2)), KArmed(2)),
        r"reward_range must cover the environment's \[0, 1\], got \[0.5, 2\]",
    ),
    "range too low": (lambda: ar.simulate(ar.MonUCB(2, 10, reward_range=(-1, 0.5)), KArmed(2)), "must cover"),
    "start": (lambda: ar.simulate(ar.UCB1(2), KArmed(2), start="warm"), 'start must be "artificial-replay"'),
    "keep": (lambda: ar.simulate(ar.UCB1(2), KArmed(2), keep="some"), 'keep must be "all", "final" or a list'),
    "environment": (lambda: ar.simulate(ar.UCB1(2), None), "env must be one of ar.environments"),
    "class for environment": (lambda: ar.simulate(ar.UCB1(2), KArmed), "env must be one of ar.environments"),
    "base": (lambda: ar.simulate(None, KArmed(2)), r"propose\(\) and update\(unit, reward\)"),
    "class for base": (lambda: ar.simulate(ar.UCB1, KArmed(2)), r"propose\(\) and update\(unit, reward\)"),
    "horizon": (lambda: ar.simulate(ar.UCB1(2), KArmed(2), horizon=0), "horizon must be at least 1, got 0"),
    "half a horizon": (lambda: ar.simulate(ar.UCB1(2), KArmed(2), horizon=1.5), "horizon must be an integer"),
    "replications": (lambda: ar.simulate(ar.UCB1(2), KArmed(2), replications=0), "replications must be at least 1"),
    "history": (lambda: ar.simulate(ar.UCB1(2), KArmed(2), history=-1), "history must be at least 0"),
    "a list for a history": (lambda: ar.simulate(ar.UCB1(2), KArmed(2), history=[0, 1]), "history must be"),
    "seed": (lambda: ar.simulate(ar.UCB1(2), KArmed(2), seed=-1), "seed must be an integer of at least 0"),
    "threads": (lambda: ar.simulate(ar.UCB1(2), KArmed(2), threads=0), "threads must be at least 1"),
    "half a thread": (lambda: ar.simulate(ar.UCB1(2), KArmed(2), threads=1.5), "threads must be an integer"),
    "small component": (
        lambda: ar.simulate(OwnFewest(np.zeros(3)), KArmed(4)),
        "OwnFewest has 3 arms, and the environment has 4",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_does_not_fit_is_refused_in_one_sentence(what):
    call, sentence = WRONG[what]
    with pytest.raises(InvalidParameter, match=sentence) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("base", [lambda: ar.UCB1(2), lambda: OwnFewest(np.zeros(5)), lambda: Tale([0])])
@pytest.mark.parametrize(
    ("history", "sentence"),
    [
        (ar.History([0, 2], [0, 1]), "2"),
        (ar.History([0, -1], [0, 1]), "-1"),
        (ar.History(["a", "b"], [0, 1]), "a"),
        (ar.History([[0.5]], [1]), "point|0.5"),
    ],
    ids=["too high", "too low", "text", "points"],
)
def test_a_given_log_must_be_one_of_the_environments_arms(base, history, sentence):
    with pytest.raises(InvalidHistory, match=sentence):
        ar.simulate(base(), KArmed(2), history=history, horizon=3, replications=1)


def test_a_given_log_must_have_rewards_in_the_range():
    with pytest.raises(InvalidHistory, match=r"reward in row 1 is 1.5, expected a number in \[0, 1\]"):
        ar.simulate(ar.UCB1(2), KArmed(2), history=ar.History([0, 1], [0, 1.5]))
