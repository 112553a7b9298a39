"""Logs with allowances: decisions of the whole journal, as without them."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bases import EXACT
from journals import Difference, DriftOracle, Shelf, play
from point_bases import EXACT_POINTS

import artreplay as ar

ALL = {**EXACT, **EXACT_POINTS}
ARMS = [name for name in EXACT if not name.startswith("LinUCB")]
POINTS = [name for name in EXACT_POINTS if "Regression" not in name and "sharp" not in name]  # which refuse drift
BY_ARM = {0: 0.3, 2: 0.05}


def check(name: str, drift: Any, cases: int, mode: ar.compiling.Mode, folder: Path, seed: int) -> None:
    """All cases hold, and in many of them rows are left over."""
    rng = random.Random(f"{name} {drift} {seed}")
    shelf = Shelf(ALL[name], folder, logs=40, stores=2, seed=seed)
    replay, full = (partial(policy, drift=drift) for policy in (ar.ArtificialReplay, ar.FullStart))
    grown = 0
    with ar.compiling.using(mode):
        for case in range(cases):
            log = shelf.take(rng, from_store=case % 4 == 0)
            make_full = full if case % 3 == 0 else None
            outcome = play(ALL[name], *log, rng, folder, replay, make_full, lambda base: DriftOracle(base, drift))
            grown += outcome.grown
    assert grown > cases / 4


@pytest.mark.parametrize(
    ("name", "drift"),
    [("KLUCB", 0.05), ("TopUCB, KL", 0.05), ("MonUCB", BY_ARM), ("TreeUCB, d=2", 0.3)],
)
def test_every_decision_is_that_of_the_whole_journal_with_drift(name, drift, tmp_path):
    check(name, drift, 30, "interpreted", tmp_path, seed=1)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "drift"),
    [
        *((name, drift) for name in [*ARMS, *POINTS] for drift in (0.05, 0.3)),
        *((name, BY_ARM) for name in ("KLUCB", "MonUCB, theory", "PsiUCB, own", "TopUCB")),
    ],
)
def test_the_same_holds_in_many_cases(name, drift, tmp_path):
    check(name, drift, 300, "interpreted", tmp_path, seed=2)


@pytest.mark.long
@pytest.mark.parametrize(("name", "drift"), [("KLUCB", 0.05), ("TopUCB, KL", 0.3), ("MonUCB, callable", BY_ARM)])
def test_the_same_holds_compiled(name, drift, tmp_path):
    check(name, drift, 150, "compiled", tmp_path, seed=3)


class ShowsAtOnce(ar.ArtificialReplay):
    """What is told is shown at once, before rows of its arm that came earlier."""

    def show_before(self, units: Any) -> None:
        pass


@pytest.mark.parametrize(("name", "drift"), [("KLUCB", 0.05), ("TopUCB, KL", 0.05)])
def test_without_reading_first_what_comes_before_it_would_not_hold(name, drift, tmp_path):
    rng, found = random.Random(0), 0
    shelf = Shelf(ALL[name], tmp_path, logs=40, stores=0)
    with ar.compiling.using("interpreted"):
        for _ in range(60):
            log = shelf.take(rng, from_store=False)
            try:
                make_oracle = partial(DriftOracle, drift=drift)
                play(ALL[name], *log, rng, tmp_path, partial(ShowsAtOnce, drift=drift), make_oracle=make_oracle)
            except Difference:
                found += 1
    assert found > 10


def small_log(rng: random.Random, rows: int) -> tuple[list[int], list[float], list[float]]:
    """Arms, rewards and allowances, or times, of so many rows; some say nothing."""
    arms = [rng.randrange(4) for _ in range(rows)]
    return arms, [rng.choice([0.0, 0.5, 1.0]) for _ in arms], [rng.choice([0.0, 0.1, 0.3, 0.8, 1.0]) for _ in arms]


@pytest.mark.parametrize("by_age", [False, True])
@pytest.mark.parametrize("make", [lambda: ar.KLUCB(4, 60), lambda: ar.TopUCB(4, 2, 60, bonus=ar.bonus.kl())])
def test_allowances_of_rows_are_exact_too(make, by_age, tmp_path):
    """Also when the log grows, and through files; with ages each part is read newest first."""
    rng, left = random.Random(1), 0

    def drift_of(values: list[float]) -> Any:
        return ar.drift.age(1.0, 2.0, [2.0 - value for value in values]) if by_age else values

    with ar.compiling.using("interpreted"):
        for case in range(60):
            arms, rewards, drift = small_log(rng, 20)
            drift[0] = 0.1  # a policy that is made without any would stay without
            first = rng.randint(1, 20)
            history, whole = ar.History(arms[:first], rewards[:first]), ar.History(arms, rewards)
            policies = [
                make_one(make(), history, drift=drift_of(drift[:first]))
                for make_one in (ar.ArtificialReplay, ar.FullStart)
            ]
            for round_ in range(10):
                if round_ == 4:
                    for policy in policies:
                        policy.extend(whole, drift=drift_of(drift))
                if round_ == 7 and case % 5 == 0:
                    for place, policy in enumerate(policies):
                        policy.save(tmp_path / "policy")
                        policies[place] = ar.load(tmp_path / "policy", whole)
                action = policies[0].ask()
                assert policies[1].ask() == action
                told = [rng.choice([0.0, 1.0]) for _ in action] if isinstance(action, list) else rng.choice([0.0, 1.0])
                for policy in policies:
                    policy.tell(action, told)
            assert policies[1].used + policies[1].skipped == 20
            assert policies[1].skipped == sum(value >= 1.0 for value in drift)
            left += policies[0].unused > 0
            unused = policies[0].unused_rows()
            assert len(unused) == policies[0].unused
            assert all(drift[row] < 1.0 for row in unused)
    assert left > 10


def test_with_no_drift_nothing_is_kept_beside():
    log = ar.History([0, 1, 2] * 5, [0.0, 1.0, 0.5] * 5)
    plain = ar.ArtificialReplay(ar.KLUCB(3, 60), log)
    for drift in (0, 0.0, {}, {1: 0}, np.zeros(15), ar.drift.age(0, 5, range(5, -10, -1))):
        other = ar.ArtificialReplay(ar.KLUCB(3, 60), log, drift=drift)
        assert type(other.base.component.index) is type(plain.base.component.index)
        assert other.ask() == plain.ask()
