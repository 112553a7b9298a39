"""Policies on disk: they go on as if nothing had happened, or one sentence says why they cannot."""

from __future__ import annotations

import datetime
import enum
import io
import json
import math
import os
import random
import re
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import artreplay as ar
from artreplay.compiling import arrays_of, compiled
from artreplay.errors import (
    ArtReplayError,
    CannotSave,
    ChangedHistory,
    InvalidFile,
    InvalidHistory,
    InvalidParameter,
)
from artreplay.replay import saving

FEATURES = [[1, 0, 0], [0.5, 0, 0], [0, 1, 0.5], [0, 0, 1]]


def narrow(n: int) -> float:
    return 0.3 / math.sqrt(n)


def quadratic(x: float) -> float:
    return x * x / 50


def equal(logged: Any, proposed: Any, base: Any) -> bool:
    return logged == proposed


Make = Callable[..., Any]

ALGORITHMS: dict[str, tuple[Make, int, dict[str, Any]]] = {  # made from four arms; decisions; what is given again
    "MonUCB": (lambda **arms: ar.MonUCB(horizon=500, **arms), 1000, {}),
    "MonUCB, practical": (lambda **arms: ar.MonUCB(horizon=500, bonus=ar.bonus.practical(0.3), **arms), 1000, {}),
    "MonUCB, anytime": (lambda **arms: ar.MonUCB(horizon=50, bonus=ar.bonus.anytime(0.3, history=9), **arms), 1000, {}),
    "MonUCB, own bonus": (lambda **arms: ar.MonUCB(horizon=500, bonus=narrow, **arms), 1000, {"bonus": narrow}),
    "PsiUCB, Hoeffding": (lambda **arms: ar.PsiUCB(horizon=20, **arms), 1000, {}),
    "PsiUCB, Bernoulli KL": (lambda **arms: ar.PsiUCB(horizon=20, psi=ar.psi.bernoulli_kl, **arms), 1000, {}),
    "PsiUCB, own": (lambda **arms: ar.PsiUCB(horizon=20, psi=quadratic, **arms), 300, {"psi": quadratic}),
    "TopUCB": (lambda **arms: ar.TopUCB(budget=2, horizon=50, bonus=ar.bonus.practical(0.5), **arms), 1000, {}),
    "TopUCB, own bonus": (lambda **arms: ar.TopUCB(budget=3, horizon=9, bonus=narrow, **arms), 1000, {"bonus": narrow}),
    "UCB1": (lambda **arms: ar.UCB1(**arms), 1000, {}),
    "ThompsonSampling": (lambda **arms: ar.ThompsonSampling(seed=2**70, **arms), 1000, {}),
    "IDS": (lambda **arms: ar.IDS(seed=3, **arms), 30, {}),
    "IDS, published": (lambda **arms: ar.IDS(seed=3, variant="published", **arms), 5, {}),
    "IDS, no fallback": (lambda **arms: ar.IDS(variant="published", fallback=False, **arms), 3, {}),
    "RandomChoice": (lambda **arms: ar.RandomChoice(seed=5, **arms), 1000, {}),
    "RandomChoice of two": (lambda **arms: ar.RandomChoice(budget=2, seed=5, **arms), 1000, {}),
    "LinUCB": (
        lambda n_arms=None, **arms: ar.LinUCB(FEATURES, horizon=50, alpha=0.4, ridge=2.0, **arms),
        1000,
        {},
    ),
}  # fmt: skip

LABELS: list[dict[str, Any]] = [
    {"n_arms": 4},
    {"arms": ["red", "blü", "", "🙂"]},
    {"arms": [("a", 1), ("a", (2, b"x")), b"\xff", -(2**70)]},
    {"arms": [10, 20, True, "x"], "reward_range": (-2, 3)},
]
POLICIES = ["ignorant", "full start", "replay"]


def log_for(base: Any, size: int = 60, seed: int = 1) -> ar.History:
    rng = random.Random(seed)
    low, high = base.reward_range
    span = (low, high) if math.isfinite(high) else (-3.0, 3.0)
    rewards = [span[0], sum(span) / 2, span[1]]
    samples = [(rng.choice(base.arms), rng.choice(rewards)) for _ in range(size)]  # more of them begin with the same
    return ar.History([unit for unit, _ in samples], [reward for _, reward in samples])


def policy_of(kind: str, base: Any, log: ar.History) -> Any:
    if kind == "ignorant":
        return ar.Ignorant(base)
    return ar.FullStart(base, log) if kind == "full start" else ar.ArtificialReplay(base, log)


def play(policy: Any, rounds: int, seed: int = 0) -> list[Any]:
    """Play with rewards that depend on the round only; the actions, and how much of the log was used by then."""
    rng = random.Random(seed)
    low, high = getattr(policy.base, "reward_range", (0.0, 1.0))
    if not math.isfinite(high):
        low, high = -3.0, 3.0
    played = []
    for _ in range(rounds):
        action = policy.ask()
        played.append((action, policy.used))
        several = isinstance(action, list)
        rewards = [low + (high - low) * rng.choice([0.0, 0.3, 1.0]) for _ in (action if several else [action])]
        policy.tell(action, rewards if several else rewards[0])
    return played


def state(policy: Any) -> dict[str, Any]:
    component = getattr(policy.base, "component", policy.base)
    arrays = {name: (array.dtype.str, array.shape, array.tobytes()) for name, array in arrays_of(component).items()}
    return {"arrays": arrays, "rounds": policy.rounds, "used": policy.used, "unused": policy.unused}


def check_same_future(policy: Any, again: Any, rounds: int) -> None:
    assert type(again) is type(policy)
    assert repr(again) == repr(policy)
    assert state(again) == state(policy)
    assert again.unused_rows() == policy.unused_rows()
    assert play(again, rounds) == play(policy, rounds)
    assert state(again) == state(policy)
    assert again.unused_rows() == policy.unused_rows()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "policy.ar"


def small_policy() -> Any:
    return ar.ArtificialReplay(ar.MonUCB(arms=["a", "b"], horizon=10), small_log())


def small_log(more: tuple = ()) -> ar.History:
    samples = [("a", 0.0), ("b", 1.0), ("a", 1.0), ("b", 0.5), *more]
    return ar.History([unit for unit, _ in samples], [reward for _, reward in samples])


# -- going on -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", POLICIES)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_loaded_policy_decides_like_the_one_that_was_saved(path, name, kind):
    make, rounds, again = ALGORITHMS[name]
    slow = rounds < 100
    favourite = len(name) % 4  # all decisions with one kind of labels, a few, if any, with the others
    for number in [favourite] if slow else range(4):
        base = make(**LABELS[number])
        log = log_for(base, 4 if slow else 60)
        policy = policy_of(kind, base, log)
        play(policy, min(rounds, 20) // 2, seed=9)
        policy.save(path)
        loaded = ar.load(path, None if kind == "ignorant" else log, **again)
        assert [type(arm) for arm in loaded.base.arms] == [type(arm) for arm in policy.base.arms]
        check_same_future(policy, loaded, rounds if number == favourite else 10)


@pytest.mark.parametrize("kind", POLICIES)
def test_rewards_without_bounds_are_saved_too(path, kind):
    base = ar.PsiUCB(4, 50, psi=ar.psi.sub_gaussian(0.7))
    log = log_for(base)
    policy = policy_of(kind, base, log)
    play(policy, 20)
    policy.save(path)
    check_same_future(policy, ar.load(path, None if kind == "ignorant" else log), 1000)


@pytest.mark.parametrize("kind", [*POLICIES, "batch", "trivial"])
@pytest.mark.parametrize("moment", ["fresh", "asked", "told", "asked again"])
def test_a_policy_can_be_saved_at_any_moment(path, kind, moment):
    """Also with an action that was asked for and not played yet, and before anything was read."""
    for make in (lambda: ar.MonUCB(4, 30, bonus=ar.bonus.practical(0.4)), lambda: ar.TopUCB(4, 2, 30)):
        log = log_for(make())
        policy = {
            "batch": lambda: ar.FullStart(make(), log, batch=True),  # noqa: B023
            "trivial": lambda: ar.ArtificialReplay(make(), log, relation="trivial"),  # noqa: B023
        }.get(kind, lambda: policy_of(kind, make(), log))()  # noqa: B023
        if moment != "fresh":
            action = policy.ask()
            if moment in ("told", "asked again"):
                policy.tell(action, [0.5] * 2 if isinstance(action, list) else 0.5)
            if moment == "asked again":
                policy.ask()
        policy.save(path)
        loaded = ar.load(path, None if kind == "ignorant" else log)
        if moment in ("asked", "asked again"):
            used = loaded.used
            assert loaded.ask() == policy.ask()
            assert loaded.used == used == policy.used
        check_same_future(policy, loaded, 60)


def test_saving_changes_nothing(path):
    policy, other = small_policy(), small_policy()
    for _ in range(20):
        policy.save(path)
        assert policy.ask() == other.ask()
        policy.save(path)
        policy.tell(policy.ask(), 0.5)
        other.tell(other.ask(), 0.5)
        assert state(policy) == state(other)


def test_a_loaded_policy_can_be_saved_and_loaded_again_and_again(path):
    policy = small_policy()
    again = policy
    for round_ in range(6):
        again.save(path)
        again = ar.load(path, small_log())
        assert again.ask() == policy.ask()
        again.tell(policy.ask(), round_ / 6)
        policy.tell(policy.ask(), round_ / 6)
        assert state(again) == state(policy)


def test_two_policies_of_one_file_have_nothing_in_common(path):
    small_policy().save(path)
    one, other = ar.load(path, small_log()), ar.load(path, small_log())
    before = state(other)
    play(one, 20)
    assert state(other) == before


def test_a_table_that_has_grown_is_saved_grown(path):
    policy = ar.Ignorant(ar.MonUCB(2, 100, bonus=narrow))
    for _ in range(500):
        policy.tell(0, 1.0)
    policy.save(path)
    check_same_future(policy, ar.load(path, bonus=narrow), 600)


def test_a_policy_is_saved_at_both_speeds(path):
    log = log_for(ar.MonUCB(4, 30))
    policies = []
    for mode in ("compiled", "interpreted"):
        policy = ar.ArtificialReplay(ar.MonUCB(4, 30, bonus=ar.bonus.practical(0.4)), log)
        with ar.compiling.using(mode):
            play(policy, 20)
            policy.save(path)
            policies.append(ar.load(path, log))
    assert state(policies[0]) == state(policies[1])
    assert play(policies[0], 50) == play(policies[1], 50)


def test_rows_that_were_skipped_stay_skipped(path):
    log = ar.History(["a", "retired", "b", "retired", "a", "b"], [0.0, 1.0, 0.5, 1.0, 1.0, 0.0])
    for make in (ar.ArtificialReplay, ar.FullStart):
        policy = make(ar.MonUCB(arms=["a", "b"], horizon=10), log, unknown="skip")
        policy.tell(policy.ask(), 0.5)
        policy.save(path)
        loaded, without_log = ar.load(path, log), ar.load(path)
        assert loaded.skipped == without_log.skipped == policy.skipped == 2
        assert loaded.unused == without_log.unused == policy.unused
        check_same_future(policy, loaded, 20)


# -- the log that is given again ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["full start", "replay", "trivial", "own relation", "LinUCB"])
def test_a_log_with_rows_appended_goes_on_where_it_was(path, kind):
    base = ar.LinUCB(FEATURES, horizon=50, alpha=0.4) if kind == "LinUCB" else ar.MonUCB(4, 20)
    log, longer = log_for(base, 20), log_for(base, 45)
    relation = {"trivial": "trivial", "own relation": equal}.get(kind)
    policy = ar.FullStart(base, log) if kind == "full start" else ar.ArtificialReplay(base, log, relation)
    play(policy, 7)
    policy.save(path)
    loaded = ar.load(path, longer, relation=equal if kind == "own relation" else None)
    policy.extend(longer)
    assert loaded.unused == policy.unused
    check_same_future(policy, loaded, 60)


@pytest.mark.parametrize(
    ("samples", "where"),
    [
        ([("a", 0.0), ("b", 1.0), ("a", 1.0)], "3 rows"),
        ([("a", 0.0), ("b", 1.0), ("b", 1.0), ("b", 0.5)], "row 2 changed"),
        ([("a", 0.0), ("b", 0.9), ("a", 1.0), ("b", 0.5)], "row 1 changed"),
        ([("b", 1.0), ("a", 0.0), ("a", 1.0), ("b", 0.5)], "row 0 changed"),
    ],
)
def test_another_log_is_refused_and_the_row_is_named(path, samples, where):
    for make in (ar.ArtificialReplay, ar.FullStart):
        policy = make(ar.MonUCB(arms=["a", "b"], horizon=10), small_log())
        policy.ask()
        policy.save(path)
        with pytest.raises(ChangedHistory, match=where) as refused:
            ar.load(path, ar.History([unit for unit, _ in samples], [reward for _, reward in samples]))
        assert "\n" not in str(refused.value)


def test_appended_rows_are_checked_like_any_others(path):
    small_policy().save(path)
    with pytest.raises(InvalidHistory, match="'c' in row 4 is not an arm"):
        ar.load(path, small_log((("c", 0.5),)))
    with pytest.raises(InvalidHistory, match=r"reward in row 4 is 1\.5"):
        ar.load(path, small_log((("a", 1.5),)))


@pytest.mark.parametrize(
    "log", [[("a", 0.0)], {"a": 1}, 5, "log"], ids=lambda value: re.sub(" at 0x[0-9a-f]+", "", repr(value))
)
def test_what_is_not_a_history_is_refused(path, log):
    small_policy().save(path)
    with pytest.raises(InvalidHistory, match="History"):
        ar.load(path, log)


def test_an_ignorant_policy_takes_no_log(path):
    ar.Ignorant(ar.MonUCB(arms=["a", "b"], horizon=10)).save(path)
    with pytest.raises(InvalidParameter, match=r"Ignorant.*leave history out"):
        ar.load(path, small_log())


def test_without_its_log_a_policy_can_be_told_and_saved_and_says_what_it_needs(path):
    policy = small_policy()
    policy.tell(policy.ask(), 0.5)
    policy.save(path)
    loaded = ar.load(path)
    assert (loaded.used, loaded.unused, loaded.rounds) == (policy.used, policy.unused, policy.rounds)
    for _ in range(3):
        with pytest.raises(InvalidHistory, match=r"extend\(history\)"):
            loaded.ask()
        policy.tell("b", 0.25)
        loaded.tell("b", 0.25)
    for what in (loaded.unused_rows, loaded.cells, loaded.used_by_cell):
        with pytest.raises(InvalidHistory, match=r"extend\(history\)"):
            what()
    loaded.save(path)
    other = ar.load(path)
    other.tell("a", 1.0)
    policy.tell("a", 1.0)
    other.extend(small_log((("a", 0.75),)))
    policy.extend(small_log((("a", 0.75),)))
    check_same_future(policy, other, 30)


def test_without_its_log_a_pending_action_is_still_known(path):
    policy = small_policy()
    action = policy.ask()
    policy.save(path)
    loaded = ar.load(path)
    assert loaded.ask() == action
    loaded.tell(action, 0.5)
    with pytest.raises(InvalidHistory, match=r"extend\(history\)"):
        loaded.ask()


def test_a_full_start_that_has_not_read_its_log_cannot_go_on_without_it(path):
    """What is told comes after the log; shown before it, it would be another algorithm."""
    ar.FullStart(ar.MonUCB(arms=["a", "b"], horizon=10), small_log()).save(path)
    loaded = ar.load(path)
    with pytest.raises(InvalidHistory, match=r"extend\(history\)"):
        loaded.tell("a", 1.0)
    assert loaded.rounds == 0
    loaded.extend(small_log())
    loaded.tell("a", 1.0)
    assert (loaded.rounds, loaded.used) == (1, 4)


def test_an_empty_log_is_a_log(path):
    empty = ar.History([], [])
    for make in (ar.ArtificialReplay, ar.FullStart):
        policy = make(ar.MonUCB(arms=["a", "b"], horizon=10), empty)
        play(policy, 5)
        policy.save(path)
        check_same_future(policy, ar.load(path, empty), 20)
        policy.save(path)
        policy.extend(small_log())
        check_same_future(policy, ar.load(path, small_log()), 20)


# -- what a file cannot hold --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda f: ar.MonUCB(2, 10, bonus=f), "bonus"),
        (lambda f: ar.TopUCB(3, 2, 10, bonus=f), "bonus"),
        (lambda f: ar.PsiUCB(2, 10, psi=lambda x: f(1) * x * x / 8), "psi"),
    ],
    ids=["MonUCB", "TopUCB", "PsiUCB"],
)
def test_a_callable_must_be_given_again_and_be_the_same(path, make, name):
    ar.Ignorant(make(lambda n: 1.0 / n)).save(path)
    with pytest.raises(InvalidParameter, match=f"give {name}= again"):
        ar.load(path)
    other = {"bonus": lambda n: 2.0 / n, "psi": lambda x: 2.0 * x * x / 8}[name]
    same = {"bonus": lambda n: 1.0 / n, "psi": lambda x: 1.0 * x * x / 8}[name]
    with pytest.raises(InvalidParameter, match="must be the one the policy was saved with"):
        ar.load(path, **{name: other})
    with pytest.raises(InvalidParameter):
        ar.load(path, **{name: 5})
    assert ar.load(path, **{name: same}).ask() is not None


def test_a_callable_that_differs_only_far_out_is_another_one(path):
    """As far as it was used, which may be further than a fresh table reaches."""
    policy = ar.Ignorant(ar.MonUCB(2, 10, bonus=narrow))
    for _ in range(300):
        policy.tell(0, 1.0)
    policy.save(path)
    with pytest.raises(InvalidParameter, match="must be the one the policy was saved with"):
        ar.load(path, bonus=lambda n: narrow(n) if n < 200 else 0.0)


def test_a_relation_must_be_given_again(path):
    policy = ar.ArtificialReplay(ar.MonUCB(arms=["a", "b"], horizon=10), small_log(), relation=equal)
    play(policy, 3)
    policy.save(path)
    with pytest.raises(InvalidParameter, match="give relation= again"):
        ar.load(path, small_log())
    check_same_future(policy, ar.load(path, small_log(), relation=equal), 20)


@pytest.mark.parametrize(
    "relation", ["trivial", "equal", 5], ids=lambda value: re.sub(" at 0x[0-9a-f]+", "", repr(value))
)
def test_a_relation_that_is_given_again_must_be_a_callable(path, relation):
    policy = ar.ArtificialReplay(ar.MonUCB(arms=["a", "b"], horizon=10), small_log(), relation=equal)
    play(policy, 3)
    policy.save(path)
    with pytest.raises(InvalidParameter, match="relation"):
        ar.load(path, small_log(), relation=relation)


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@pytest.mark.parametrize(
    "arms",
    [
        [Colour.RED, Colour.BLUE],
        [datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)],
        [frozenset([1]), frozenset([2])],
        [("a", Colour.RED), "b"],
        [1j, 2j],
        [len, abs],
        [int, str],
        [("call", len), "b"],
    ],
    ids=lambda arms: type(arms[0]).__name__,
)
def test_labels_that_cannot_be_saved_are_refused_when_saving_and_the_old_file_stays(path, arms):
    small_policy().save(path)
    before = path.read_bytes()
    with pytest.raises(CannotSave) as refused:
        ar.Ignorant(ar.MonUCB(arms=arms, horizon=10)).save(path)
    assert "\n" not in str(refused.value)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(
    "arms",
    [
        ["\udcff", "\ud800"],
        ["$tuple", '{"$tuple": []}', "\x00", '"', "\\"],
        [0.1, -0.0, 1e300, 5e-324, math.inf],
        [True, 0],
        [(), ((),), ("",)],
        [b"", b"\x00\xff"],
        [np.int64(3), np.str_("x"), np.float32(0.1)],
        [2**64, -(2**200)],
    ],
    ids=lambda value: re.sub(" at 0x[0-9a-f]+", "", repr(value)),
)
def test_labels_come_back_as_they_were(path, arms):
    policy = ar.Ignorant(ar.MonUCB(arms=arms, horizon=10))
    policy.ask()
    policy.save(path)
    loaded = ar.load(path)
    assert list(loaded.base.arms) == list(policy.base.arms)
    assert [type(arm) for arm in loaded.base.arms] == [type(arm) for arm in policy.base.arms]
    check_same_future(policy, loaded, 20)


class Favourite(ar.MonUCB):
    """An algorithm of a user's own that is made out of one of ours."""

    def propose(self) -> Any:
        return super().propose()


def test_an_algorithm_made_out_of_one_of_ours_is_refused_when_saving_or_comes_back(path):
    policy = ar.Ignorant(Favourite(3, 10))
    try:
        policy.save(path)
    except CannotSave:
        return
    assert type(ar.load(path).base) is Favourite


# -- plain objects ------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("relation", [None, "trivial", equal], ids=["own", "trivial", "callable"])
@pytest.mark.parametrize("cls", [Keeping, KeepingSeveral])
@pytest.mark.parametrize("pending", [False, True])
def test_a_plain_object_with_state_and_restore_is_saved(path, relation, cls, pending):
    policy = ar.ArtificialReplay(cls(), PLAIN_LOG, relation)
    play_plain(policy, 2)
    if pending:
        policy.ask()
    policy.save(path)
    loaded = ar.load(path, PLAIN_LOG, base=cls(), relation=relation if callable(relation) else None)
    assert loaded.base.shown == policy.base.shown
    assert loaded.unused_rows() == policy.unused_rows()
    assert play_plain(loaded, 20) == play_plain(policy, 20)
    assert loaded.base.shown == policy.base.shown


def test_a_plain_object_without_state_cannot_be_saved_and_the_sentence_says_what_it_lacks(path):
    with pytest.raises(CannotSave, match=r"Plain.*state\(\).*restore\(state\)") as refused:
        ar.Ignorant(Plain()).save(path)
    assert "\n" not in str(refused.value)
    assert not path.exists()


def test_a_plain_object_must_be_given_again(path):
    ar.Ignorant(Keeping()).save(path)
    with pytest.raises(InvalidParameter, match=r"Keeping.*give base= again"):
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


# -- components ---------------------------------------------------------------------------------------------


@compiled
class InTurn(NamedTuple):
    count: np.ndarray
    total: np.ndarray
    step: int

    def propose(self, out):
        out[0] = (int(self.count.sum()) * self.step) % len(self.count)
        return 1

    def update(self, unit, reward):
        self.count[unit] += 1
        self.total[unit] += reward


@compiled
class OtherTurn(NamedTuple):
    count: np.ndarray

    def propose(self, out):
        out[0] = 0
        return 1

    def update(self, unit, reward):
        self.count[unit] += 1


@compiled
class Tape(NamedTuple):
    length: np.ndarray
    reward: np.ndarray

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
    with pytest.raises(InvalidParameter, match=r"InTurn.*give base= again"):
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


# -- writing ------------------------------------------------------------------------------------------------


class Broken(Exception):
    pass


@pytest.mark.parametrize(
    "error",
    [OSError(28, "No space left on device"), Broken(), KeyboardInterrupt()],
    ids=lambda value: re.sub(" at 0x[0-9a-f]+", "", repr(value)),
)
@pytest.mark.parametrize("at", ["first array", "sync", "rename"])
def test_a_save_that_fails_half_way_leaves_the_old_file(path, monkeypatch, error, at):
    policy = small_policy()
    policy.save(path)
    before = path.read_bytes()
    policy.tell("a", 1.0)

    def fail(*arguments, **options):
        raise error

    with monkeypatch.context() as patch:
        where = {
            "first array": (np.lib.format, "write_array"),
            "sync": (saving.os, "fsync"),
            "rename": (saving.os, "replace"),
        }[at]
        patch.setattr(*where, fail)
        with pytest.raises(InvalidFile if isinstance(error, OSError) else type(error)):
            policy.save(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]
    assert ar.load(path, small_log()).rounds == 0
    policy.save(path)
    assert ar.load(path, small_log()).rounds == 1


SAVING = """
import sys, time
import numpy as np
import artreplay as ar
from artreplay.replay import saving

policy = ar.Ignorant(ar.MonUCB(2000, 100))
policy.save(sys.argv[1])
if sys.argv[2] == "half":
    write = np.lib.format.write_array
    def stop(*arguments, **options):
        write(*arguments, **options)
        print("half", flush=True)
        time.sleep(60)
    np.lib.format.write_array = stop
print("first", flush=True)
while True:
    policy.tell(policy.ask(), 0.5)
    policy.save(sys.argv[1])
"""


def killed(path: Path, how: str, line: str, delay: float = 0.0) -> None:
    """Let a process save until it has said `line` and some time has passed, and kill it."""
    with subprocess.Popen([sys.executable, "-c", SAVING, str(path), how], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        while process.stdout.readline().strip() != line:
            assert process.poll() is None
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)


def test_a_process_that_is_killed_while_it_saves_leaves_the_old_file(path):
    killed(path, "half", "half")
    assert ar.load(path).rounds == 0


def test_a_process_that_is_killed_at_any_time_leaves_a_whole_file(path):
    rounds = []
    for delay in (0.05, 0.0931):
        killed(path, "loop", "first", delay)
        rounds.append(ar.load(path).rounds)
    assert max(rounds) > 0


@pytest.mark.parametrize("name", ["no/such/folder/policy.ar", "a file/policy.ar", "", ".", "x" * 300])
def test_a_place_that_cannot_be_written_is_said_in_one_sentence(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a file").write_text("")
    with pytest.raises(InvalidFile, match="cannot be written") as refused:
        small_policy().save(name)
    assert "\n" not in str(refused.value)
    assert sorted(tmp_path.iterdir()) == [tmp_path / "a file"]


def test_any_name_a_folder_can_hold_is_a_name_for_a_policy(tmp_path):
    for name in ("x" * 255, "ü" * 127, ".hidden", "a b", "-"):
        small_policy().save(tmp_path / name)
        ar.load(tmp_path / name, small_log())


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="needs a folder that may not be written to")
def test_a_folder_that_may_not_be_written_to_is_said_in_one_sentence(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(InvalidFile, match=r"cannot be written: Permission denied"):
            small_policy().save(tmp_path / "policy.ar")
    finally:
        tmp_path.chmod(0o700)


def test_a_folder_that_refuses_is_said_in_one_sentence(path, monkeypatch):
    def refuse(*arguments, **options):
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr("builtins.open", refuse)
        with pytest.raises(InvalidFile, match=r"policy\.ar cannot be written: Permission denied$"):
            small_policy().save(path)


def test_a_folder_that_cannot_be_synced_does_not_undo_a_save(path, monkeypatch):
    """The file is written and renamed; some systems cannot open a folder at all."""
    opened = os.open

    def refuse(name, *arguments, **options):
        if Path(name) == path.parent:
            raise PermissionError(13, "Permission denied")
        return opened(name, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(saving.os, "open", refuse)
        small_policy().save(path)
    assert ar.load(path, small_log()).rounds == 0


def test_texts_are_paths_too(path):
    small_policy().save(str(path))
    assert ar.load(str(path), small_log()).rounds == 0


# -- reading ------------------------------------------------------------------------------------------------


def rewritten(path: Path, change: Callable[[dict[str, Any], dict[str, bytes]], None]) -> None:
    """A policy file with something else in it."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    document = json.loads(parts.pop("policy.json"))
    change(document, parts)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("policy.json", json.dumps(document))
        for name, data in parts.items():
            archive.writestr(name, data)


def npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def asked_policy() -> Any:
    policy = small_policy()
    policy.ask()
    return policy


def test_a_file_that_is_not_there_is_said_in_one_sentence(path):
    with pytest.raises(InvalidFile, match=r"policy\.ar does not exist$"):
        ar.load(path)
    with pytest.raises(InvalidFile, match="cannot be read"):
        ar.load(path.parent)


def test_a_file_cut_short_anywhere_is_said_in_one_sentence(path):
    asked_policy().save(path)
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(InvalidFile, match="truncated, damaged, or not a policy file") as refused:
            ar.load(path, small_log())
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("flip", "step"), [(0x01, 7), (0xFF, 5), pytest.param(0x80, 1, marks=pytest.mark.long)])
def test_a_byte_that_is_changed_anywhere_is_noticed_or_plays_no_part(path, flip, step):
    policy = asked_policy()
    policy.save(path)
    whole = path.read_bytes()
    for place in range(0, len(whole), step):
        damaged = bytearray(whole)
        damaged[place] ^= flip
        path.write_bytes(damaged)
        try:
            loaded = ar.load(path, small_log())
        except ArtReplayError as error:
            assert "\n" not in str(error)  # noqa: PT017
            continue
        assert state(loaded) == state(policy)
        assert loaded.ask() == policy.ask()


@pytest.mark.parametrize("size", [0, 1, 10, 1000, 100_000])
def test_garbage_is_said_to_be_garbage(path, size):
    path.write_bytes(random.Random(size).randbytes(size))
    with pytest.raises(InvalidFile, match="not a policy file"):
        ar.load(path)
    path.write_text("PK\x03\x04" + "x" * size)
    with pytest.raises(InvalidFile, match="not a policy file"):
        ar.load(path)


def test_other_archives_are_not_policies(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("other.json", "{}")
    with pytest.raises(InvalidFile, match="not a policy file"):
        ar.load(path)
    for text in ("{}", "[]", "5", "null", '{"magic": "other"}', "not json", "\xff"):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("policy.json", text.encode("latin-1"))
        with pytest.raises(InvalidFile, match="not a policy file"):
            ar.load(path)
    np.savez(path.with_suffix(".npz"), x=np.zeros(3))
    with pytest.raises(InvalidFile, match="not a policy file"):
        ar.load(path.with_suffix(".npz"))


@pytest.mark.parametrize("number", [0, 2, 99, "1", None])
def test_another_format_is_named(path, number):
    asked_policy().save(path)
    rewritten(path, lambda document, parts: document.update(format=number))
    with pytest.raises(InvalidFile, match=f"in format {number!r}, this version of artreplay reads 1"):
        ar.load(path, small_log())


COUNTS = "base.index.tally.counts.npy"

DAMAGE: dict[str, Callable[[dict[str, Any], dict[str, bytes]], Any]] = {
    "another algorithm": lambda d, parts: d["base"].update({"class": "Sorcery"}),
    "another policy": lambda d, parts: d.update(policy="clairvoyant"),
    "another kind of base": lambda d, parts: d["base"].update(kind="other"),
    "no policy": lambda d, parts: d.pop("policy"),
    "no base": lambda d, parts: d.pop("base"),
    "base is a number": lambda d, parts: d.update(base=5),
    "no parameters": lambda d, parts: d["base"].pop("parameters"),
    "parameters are a list": lambda d, parts: d["base"].update(parameters=[1]),
    "a parameter too many": lambda d, parts: d["base"]["parameters"].update(colour=1),
    "a parameter of another type": lambda d, parts: d["base"]["parameters"].update(horizon=[1]),
    "a parameter out of range": lambda d, parts: d["base"]["parameters"].update(horizon=-1),
    "an unknown spec": lambda d, parts: d["base"]["parameters"].update(bonus={"$spec": "Magic", "fields": {}}),
    "a spec of other fields": lambda d, parts: d["base"]["parameters"]["bonus"].update(fields={"x": 1}),
    "bytes that are none": lambda d, parts: d["base"]["parameters"].update(arms=[{"$bytes": "zz"}, "b"]),
    "no pending": lambda d, parts: d.pop("pending"),
    "pending is a number": lambda d, parts: d.update(pending=5),
    "pending has no units": lambda d, parts: d.update(pending={"units": [], "several": False}),
    "no history": lambda d, parts: d.pop("history"),
    "history is a list": lambda d, parts: d.update(history=[]),
    "rows are text": lambda d, parts: d["history"].update(rows="x"),
    "no position": lambda d, parts: parts.pop("position.npy"),
    "a short position": lambda d, parts: parts.update({"position.npy": npy(np.zeros(2, np.int64))}),
    "no digests": lambda d, parts: parts.pop("digests.npy"),
    "no used": lambda d, parts: parts.pop("used.npy"),
    "used of another shape": lambda d, parts: parts.update({"used.npy": npy(np.zeros(9, np.int64))}),
    "used beyond the log": lambda d, parts: parts.update({"used.npy": npy(np.array([99, 99]))}),
    "no counts": lambda d, parts: parts.pop(COUNTS),
    "counts of fewer arms": lambda d, parts: parts.update({COUNTS: npy(np.zeros(1, np.int64))}),
    "counts of two dimensions": lambda d, parts: parts.update({COUNTS: npy(np.zeros((2, 2), np.int64))}),
    "counts that are text": lambda d, parts: parts.update({COUNTS: npy(np.array(["a", "b"]))}),
    "an array cut short": lambda d, parts: parts.update({"used.npy": parts["used.npy"][:-3]}),
    "an array that is none": lambda d, parts: parts.update({"used.npy": b"nothing"}),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_file_whose_parts_do_not_fit_is_said_in_one_sentence(path, damage):
    asked_policy().save(path)
    rewritten(path, damage)
    with pytest.raises(ArtReplayError) as refused:
        ar.load(path, small_log())
    assert isinstance(refused.value, (InvalidFile, InvalidParameter))
    assert "\n" not in str(refused.value)


class Trap:
    """What a pickled array would run."""

    def __reduce__(self):
        return (Path.touch, (Path("trapped"),))


@pytest.mark.parametrize("name", ["used", "position", "digests", "base.index.value", "anything"])
def test_nothing_is_executed_on_loading(path, monkeypatch, name):
    monkeypatch.chdir(path.parent)
    asked_policy().save(path)
    trap = npy(np.array([Trap()], dtype=object))
    rewritten(path, lambda document, parts: parts.update({f"{name}.npy": trap}))
    with pytest.raises(InvalidFile):
        ar.load(path, small_log())
    assert not Path("trapped").exists()
    np.load(io.BytesIO(trap), allow_pickle=True)  # the trap works
    assert Path("trapped").exists()


def test_a_file_holds_arrays_and_text_only(path):
    asked_policy().save(path)
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            data = archive.read(name)
            if name == "policy.json":
                json.loads(data)
            else:
                np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)


# -- notes --------------------------------------------------------------------------------------------------


def test_a_note_is_handed_back(path):
    note = {"log": "clicks.parquet", "until": 5, "text": "ü"}
    saving.save(small_policy(), path, note)
    assert saving.read_note(path) == note
    ar.load(path, small_log()).save(path)
    assert saving.read_note(path) is None
