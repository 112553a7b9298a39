"""A policy over a log that was laid out does what it does over the same log in memory, whatever the algorithm."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from bases import EXACT
from hypothesis import given, settings
from hypothesis import strategies as st
from store_logs import PLACES, opened, played, random_log, stands

import artreplay as ar
from artreplay.errors import Interrupted, InvalidFile, InvalidParameter
from artreplay.history.parquet.parquet_files import ParquetColumns
from artreplay.replay import reader

THOROUGH = 30 if os.environ.get("ARTREPLAY_THOROUGH") else 1


class OwnMean:
    """A plain object: plays the arm whose mean is highest, each arm once at first."""

    def __init__(self) -> None:
        self.samples: dict[int, list[float]] = {arm: [] for arm in range(4)}

    def propose(self) -> int:
        fresh = [arm for arm, seen in self.samples.items() if not seen]
        return fresh[0] if fresh else max(self.samples, key=lambda arm: sum(self.samples[arm]) / len(self.samples[arm]))

    def update(self, arm: int, reward: float) -> None:
        self.samples[arm].append(reward)


NOT_EXACT = {
    "UCB1": lambda: ar.UCB1(4),
    "Thompson": lambda: ar.ThompsonSampling(4, seed=3),
    "IDS": lambda: ar.IDS(3, seed=1),
    "RandomChoice": lambda: ar.RandomChoice(4, budget=2, seed=5),
    "own": OwnMean,
}
BASES = {**EXACT, **NOT_EXACT}
POLICIES = [ar.ArtificialReplay, ar.FullStart]
ROWS = st.integers(0, 60)
SEEDS = st.integers(0, 10**6)


@pytest.mark.parametrize("place", PLACES)
@given(
    name=st.sampled_from(sorted(BASES)),
    rows=ROWS,
    seed=SEEDS,
    policy=st.sampled_from(POLICIES),
)
@settings(max_examples=4 * THOROUGH)
def test_a_log_that_was_laid_out_is_as_good_as_memory(place, name, rows, seed, policy):
    log = random_log(BASES[name](), rows, seed)
    with opened(log, place) as store:
        in_memory, in_parts = policy(BASES[name](), log.history()), policy(BASES[name](), store)
        assert played(in_parts, 10, seed) == played(in_memory, 10, seed)
        assert stands(in_parts) == stands(in_memory)


def test_a_relation_wants_rows_in_memory():
    with opened(random_log(ar.UCB1(4), 10, 1), "indexed") as store:
        with pytest.raises(InvalidParameter, match=r"a relation needs rows in memory. Give a History, such as store"):
            ar.ArtificialReplay(ar.UCB1(4), store, lambda *_: True)
        ar.ArtificialReplay(ar.UCB1(4), store.load(), lambda *_: True).ask()


@pytest.mark.parametrize("moved", [None, 7, 64])
@pytest.mark.parametrize("allowance", [None, "off"])
def test_many_arms_that_are_read_at_once_are_as_good_as_memory(moved, allowance, tmp_path, monkeypatch):
    if moved is not None:  # queues are moved often, and a few rows at a time
        for name, value in {"_ROWS_MOVED": moved, "_SPACE": 16, "_FIRST_ROWS": 8}.items():
            monkeypatch.setattr(reader, name, value)
    rng = np.random.default_rng(3)
    arms = rng.permutation(50)[np.minimum(rng.geometric(0.1, 1500) - 1, 49)]
    log = pa.table({"arm": arms, "click": rng.random(1500), "off": rng.random(1500) / 50})
    ar.index_history(log, tmp_path / "log", unit="arm", reward="click", allowance=allowance)
    in_memory = ar.History.from_frame(log, "arm", "click", allowance=allowance)
    logs = ar.open_history(tmp_path / "log"), in_memory
    policies = [ar.ArtificialReplay(ar.KLUCB(50, 1600), history) for history in logs]
    policies.append(ar.FullStart(ar.KLUCB(50, 1600), logs[0]))
    for _ in range(20):
        (action,) = {policy.ask() for policy in policies}
        reward = float(rng.random())
        for policy in policies:
            policy.tell(action, reward)
    assert policies[0].used == policies[1].used


SAVED = sorted(name for name in BASES if "callable" not in name and "own" not in name)


def practical(name: str) -> Any:
    """The algorithm with a bonus that can be saved."""
    base = BASES[name]()
    return (
        base
        if not callable(getattr(base, "bonus", None))
        else type(base)(**base.parameters() | {"bonus": ar.bonus.practical(0.8)})
    )


@given(
    name=st.sampled_from(SAVED),
    rows=ROWS,
    seed=SEEDS,
    rounds=st.integers(0, 5),
    policy=st.sampled_from(POLICIES),
    turns=st.sampled_from(["folder, then memory", "memory, then folder", "folder, then folder"]),
)
@settings(max_examples=4 * THOROUGH)
def test_a_policy_is_saved_over_one_and_continued_over_the_other(
    name, rows, seed, rounds, policy, turns, tmp_path_factory
):
    log = random_log(practical(name), rows, seed)
    file: Path = tmp_path_factory.mktemp("saved") / "policy.ar"
    with opened(log, "indexed") as store:
        places = {"folder": store, "memory": log.history()}
        first, then = (places[turn] for turn in turns.split(", then "))
        straight = policy(practical(name), log.history())
        expected = played(straight, rounds, seed), played(straight, 5, seed + 1)
        broken = policy(practical(name), first)
        begun = played(broken, rounds, seed)
        broken.save(file)
        continued = ar.load(file, then)
        assert (begun, played(continued, 5, seed + 1)) == expected
        assert stands(continued) == stands(straight)


@given(name=st.sampled_from(sorted(set(BASES) - {"own"})), rows=ROWS, seed=SEEDS, policy=st.sampled_from(POLICIES))
@settings(max_examples=5 * THOROUGH)
def test_reading_that_fails_is_taken_up_again(name, rows, seed, policy):
    log = random_log(BASES[name](), rows, seed)
    rng = np.random.default_rng(seed)
    with opened(log, "indexed") as store, pytest.MonkeyPatch.context() as patch:
        in_memory, in_parts = policy(BASES[name](), log.history()), policy(BASES[name](), store)
        patch.setattr(ParquetColumns, "ranges", unreliable(ParquetColumns.ranges, rng))
        patch.setattr(in_parts, "ask", persistent(in_parts.ask))
        patch.setattr(in_parts, "tell", persistent(in_parts.tell))
        assert played(in_parts, 8, seed) == played(in_memory, 8, seed)
        patch.undo()
        assert stands(in_parts) == stands(in_memory)


def unreliable(read: Callable[..., Any], rng: np.random.Generator) -> Callable[..., Any]:
    """Reading that fails every third time."""

    def read_or_not(*arguments: Any, **options: Any) -> Any:
        if rng.random() < 0.3:
            raise InvalidFile("gone")
        return read(*arguments, **options)

    return read_or_not


def persistent(call: Callable[..., Any]) -> Callable[..., Any]:
    """A call that is made again until it succeeds."""

    def call_again(*arguments: Any) -> Any:
        while True:
            try:
                return call(*arguments)
            except InvalidFile:
                continue

    return call_again


@pytest.mark.parametrize("name", ["MonUCB", "TopUCB", "KLUCB"])
def test_a_policy_whose_reading_was_interrupted_decides_nothing_until_it_is_loaded(name, tmp_path):
    def interrupted(*arguments: Any, **options: Any) -> Any:
        raise KeyboardInterrupt

    log = random_log(practical(name), 60, 1)
    with opened(log, "indexed") as store:
        expected = played(ar.ArtificialReplay(practical(name), log.history()), 5, 1)
        policy = ar.ArtificialReplay(practical(name), store)
        policy.save(tmp_path / "policy")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ParquetColumns, "ranges", interrupted)
            with pytest.raises(KeyboardInterrupt):
                policy.ask()
        action = expected[0][0]
        reward = [1.0] * len(action) if isinstance(action, list) else 1.0
        for call in (
            policy.ask,
            lambda: policy.tell(action, reward),
            lambda: policy.extend(store),
            lambda: policy.save(tmp_path / "broken"),
        ):
            with pytest.raises(Interrupted, match=r"was interrupted in the middle of a step\. Load it"):
                call()
        assert not (tmp_path / "broken").exists()
        assert played(ar.load(tmp_path / "policy", store), 5, 1) == expected
