"""Interpreted, compiled, or one after the other: the same actions, the same samples, the same state, bit for bit."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from driving import STARTS
from hypothesis import given, settings
from policy_kit import BASES, log, play, seen

import artreplay as ar
from artreplay.compiling import using
from artreplay.replay import drive

# One of each kind of compiled loop.
KINDS = ["MonUCB", "MonUCB, tabulated", "PsiUCB", "TopUCB", "TopUCB, tabulated", "LinUCB", "UCB1", "Thompson", "IDS"]
KINDS += ["RandomChoice of 2", "plain"]


def run(mode, start, base, history, rounds):
    with using(mode):
        policy = STARTS[start](BASES[base](), history)
        return play(policy, rounds), seen(policy)


# These take long to compile, or differ little from the others.
LATER = ("IDS", "RandomChoice", "RandomChoice of 2", "UCB1", "PsiUCB")


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize(
    "base", [pytest.param(kind, marks=pytest.mark.long) if kind in LATER else kind for kind in KINDS]
)
def test_compiled_and_interpreted_are_the_same(start, base):
    history = log(size=40)
    assert run("interpreted", start, base, history, 12) == run("compiled", start, base, history, 12)


@settings(max_examples=25)
@given(
    st.sampled_from(["MonUCB", "TopUCB", "LinUCB", "Thompson"]),
    st.sampled_from(["full start", "replay"]),
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0.0, 0.1, 0.3, 0.5, 1.0])), max_size=60),
)
def test_compiled_and_interpreted_are_the_same_for_any_log(base, start, rows):
    history = ar.History([unit for unit, _ in rows], [reward for _, reward in rows])
    assert run("interpreted", start, base, history, 5) == run("compiled", start, base, history, 5)


@pytest.mark.parametrize("base", ["MonUCB", "MonUCB, tabulated", "TopUCB", "TopUCB, tabulated", "LinUCB", "Thompson"])
@pytest.mark.parametrize("start", ["full start", "replay"])
def test_switching_to_compiled_code_in_the_middle_of_one_ask_changes_nothing(monkeypatch, base, start):
    history = log(size=500)
    expected = run("interpreted", start, base, history, 6)
    with monkeypatch.context() as patch:
        patch.setattr(drive, "SLOW_SLICE", 0.0)  # after which patience is asked for, of which tests have none
        assert run("auto", start, base, history, 6) == expected


@pytest.mark.parametrize(
    "base", [pytest.param(name, marks=pytest.mark.long) if name in LATER else name for name in BASES]
)
def test_the_mode_may_change_between_any_two_calls(base):
    history = log(size=40)
    expected = run("interpreted", "replay", base, history, 6)
    policy = ar.ArtificialReplay(BASES[base](), history)
    actions = []
    for round_ in range(6):
        with using("compiled" if round_ % 2 else "interpreted"):
            policy.ask()
        with using("compiled" if round_ % 3 == 1 else "auto"):
            actions += play(policy, 1)
    assert (actions, seen(policy)) == expected


@pytest.mark.parametrize("base", ["MonUCB, tabulated", "TopUCB, tabulated"])
@pytest.mark.parametrize("mode", ["interpreted", "compiled"])
@pytest.mark.parametrize("told", [1, 2, 3])
def test_no_told_sample_is_lost_where_a_table_must_grow(base, mode, told):
    """A tabulated bonus starts with a few entries: wherever it runs out, no sample and no round is lost."""
    several = base.startswith("TopUCB")
    with using(mode):
        policy = ar.Ignorant(BASES[base]())
        for _ in range(300):
            policy.tell([0, 1, 2][:told] if several else 0, [0.5] * told if several else 0.5)
    assert policy.rounds == 300
    assert [cell.count for cell in policy.cells()] == ([300] * told + [0] * (4 - told) if several else [300, 0, 0, 0])
    assert policy.cells()[0].index == 0.5 + 0.5 / 300


@pytest.mark.parametrize("mode", ["interpreted", "compiled"])
@pytest.mark.parametrize("size", [10, 61, 62, 63, 64, 65, 130])
def test_full_start_told_first_loses_nothing_where_a_table_must_grow(mode, size):
    with using(mode):
        policy = ar.FullStart(BASES["TopUCB, tabulated"](), ar.History([0] * size, [0.5] * size))
        policy.tell([1], [1.0])
        assert (policy.rounds, policy.used) == (1, size)
        assert [cell.count for cell in policy.cells()] == [size, 1, 0, 0]


def test_a_long_log_is_shown_whole_in_any_mode():
    history = log(size=20_000)
    results = []
    for mode in ("interpreted", "compiled", "auto"):
        with using(mode):
            policy = ar.FullStart(BASES["MonUCB"](), history)
            policy.ask()
            results.append(seen(policy))
    assert results[0] == results[1] == results[2]
