"""Block ends and totals: decisions of the whole journal, from a few sums."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bases import EXACT
from hypothesis import given, settings
from hypothesis import strategies as st
from journals import BlockOracle, Shelf, play
from store_logs import PLACES, Log, opened, played, random_log, stands

import artreplay as ar
from artreplay.testing import check_coupling

REPLAY, FULL = (partial(policy, lower="blocks") for policy in (ar.ArtificialReplay, ar.FullStart))
NAMES = [name for name in EXACT if not name.startswith("LinUCB")]
FRACTIONS = [0.0, 0.1, 0.3, 0.7, 1.0]  # whose sums are rounded


def check(name: str, cases: int, mode: ar.compiling.Mode, folder: Path, seed: int) -> None:
    rng = random.Random(f"{name} {seed}")
    shelf = Shelf(EXACT[name], folder, logs=40, stores=2, seed=seed)
    grown = 0
    with ar.compiling.using(mode):
        for case in range(cases):
            log = shelf.take(rng, from_store=case % 4 == 0)
            grown += play(EXACT[name], *log, rng, folder, REPLAY, FULL, BlockOracle).grown
    assert grown > cases / 4


@pytest.mark.parametrize("name", ["MonUCB, callable", "TopUCB"])
def test_every_decision_is_that_of_the_whole_journal_in_blocks(name, tmp_path):
    check(name, 30, "interpreted", tmp_path, seed=1)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_the_same_holds_in_many_cases(name, tmp_path):
    for mode, cases in (("interpreted", 500), ("compiled", 150)):
        folder = tmp_path / mode
        folder.mkdir()
        check(name, cases, mode, folder, seed=cases)


class ToyArms:
    """Replay, or Full Start, of a running minimum over arms, as plain as can be, with another rule for blocks."""

    def __init__(self, n_arms: int, reads_all: bool, keeps_parts: bool) -> None:
        self.rows: list[list[float]] = [[] for _ in range(n_arms)]
        self.ends: list[set[int]] = [set() for _ in range(n_arms)]  # rows at which a part ended
        self.read = [0] * n_arms
        self.seen: list[list[float]] = [[] for _ in range(n_arms)]
        self.index = [1.0] * n_arms
        self.reads_all, self.keeps_parts = reads_all, keeps_parts

    def extend(self, part: list[tuple[int, float]]) -> None:
        for arm, reward in part:
            self.rows[arm].append(reward)
        for arm, rows in enumerate(self.rows):
            self.ends[arm] = (self.ends[arm] if self.keeps_parts else set()) | {len(rows)}

    def lower(self, arm: int) -> None:
        seen = self.seen[arm]
        self.index[arm] = min(self.index[arm], sum(seen) / len(seen) + 1.0 / len(seen) ** 0.5)

    def serve(self, arm: int) -> bool:
        """Show rows up to the next end of a block."""
        while self.read[arm] < len(self.rows[arm]):
            self.seen[arm].append(self.rows[arm][self.read[arm]])
            self.read[arm] += 1
            if self.read[arm] & (self.read[arm] - 1) == 0 or self.read[arm] in self.ends[arm]:
                self.lower(arm)
                return True
        return False

    def ask(self) -> int:
        while self.reads_all and any(map(self.serve, range(len(self.rows)))):
            pass
        while self.serve(arm := max(range(len(self.rows)), key=lambda arm: (self.index[arm], -arm))):
            pass
        return arm

    def tell(self, arm: int, reward: float) -> None:
        self.seen[arm].append(reward)
        self.lower(arm)


@pytest.mark.parametrize("keeps_parts", [True, False])
def test_with_its_last_row_alone_a_log_that_grows_would_break_it(keeps_parts):
    rng, differ = random.Random(4), 0
    for _ in range(150):
        replay, full = (ToyArms(3, reads_all, keeps_parts) for reads_all in (False, True))
        actions = []
        for _ in range(20):
            part = [(rng.randrange(3), rng.choice((0.0, 0.5, 1.0))) for _ in range(rng.choice((0, 0, 12)))]
            reward = rng.choice((0.0, 0.5, 1.0))
            for policy in (replay, full):
                policy.extend(part)
                actions.append(policy.ask())
                policy.tell(actions[-1], reward)
            if actions[-1] != actions[-2]:
                differ += 1
                break
    assert differ == 0 if keeps_parts else differ > 10


def fractions(base: Any, rows: int, seed: int) -> Log:
    log = random_log(base, rows, seed)
    rewards = np.random.default_rng(seed).choice(FRACTIONS, rows)
    return log._replace(table=log.table.set_column(1, "click", [rewards]))


@given(
    name=st.sampled_from(NAMES[:5]),
    place=st.sampled_from(list(PLACES)),
    rows=st.integers(0, 40),
    seed=st.integers(0, 99),
)
@settings(max_examples=12)
def test_sums_that_a_store_keeps_are_those_of_memory_bit_for_bit(name, place, rows, seed):
    log = fractions(EXACT[name](), rows, seed)
    with opened(log, place) as store, ar.compiling.using("interpreted"):
        here, there = (REPLAY(EXACT[name](), history) for history in (log.history(), store))
        assert played(here, 6, seed) == played(there, 6, seed)
        assert stands(here) == stands(there)
        reading = there.reading
        assert reading.sums or not there.used
        assert place == "cut" or reading.rows == 0  # the last row of a log that is cut may lie between two sums


@pytest.mark.parametrize("name", ["MonUCB, callable", "TopUCB"])
def test_simulations_in_blocks_are_the_policies(name):
    env = ar.environments.KArmed(4) if name != "TopUCB" else ar.environments.TopArms(5, 2)
    how: dict[str, Any] = {"history": 50, "horizon": 12, "replications": 4, "lower": "blocks"}
    with ar.compiling.using("interpreted"):
        replay, full = (
            ar.simulate(EXACT[name](), env, start=start, **how) for start in ("artificial-replay", "full-start")
        )
        given = ar.simulate(EXACT[name](), env, **how | {"history": env.draw_history(50, 0, 2)})
    assert replay.actions.tolist() == full.actions.tolist()
    assert given.used[2].tolist() == replay.used[2].tolist()
    rows = ar.simulate(EXACT[name](), env, **how | {"lower": "rows"})
    assert rows.used.tolist() != replay.used.tolist()


@pytest.mark.long
@pytest.mark.parametrize("start", ["artificial-replay", "full-start"])
@pytest.mark.parametrize("name", ["MonUCB, callable", "PsiUCB, Bernoulli KL"])
def test_simulations_in_blocks_are_the_same_at_both_speeds(name, start):
    runs = []
    for mode in ("interpreted", "compiled"):
        with ar.compiling.using(mode):
            base = EXACT[name]()
            env = ar.environments.KArmed(base.n_arms, rewards="beta")
            run = ar.simulate(base, env, start, 200, 12, 4, lower="blocks")
            runs.append((run.actions.tolist(), run.used.tolist(), run.regret.tolist()))
    assert runs[0] == runs[1]


def test_all_three_properties_hold_in_blocks():
    with ar.compiling.using("interpreted"):
        check_coupling(EXACT["MonUCB"], full_start=FULL, replay=REPLAY, cases=60, max_history=30)


@pytest.mark.long
def test_blocks_cost_no_regret_and_need_few_numbers():
    """K=10, H=T=10⁴: 300 paired seeds."""
    env, regret = ar.environments.KArmed(10), {}
    for lower in ("rows", "blocks"):
        runs = ar.simulate(
            ar.MonUCB(10, 10_000), env, history=10_000, horizon=10_000, replications=300, keep="final", lower=lower
        )
        regret[lower] = runs.regret[:, -1]
    more = regret["blocks"] - regret["rows"]
    assert more.mean() < 3.5 * more.std(ddof=1) / np.sqrt(len(more)) + 0.02 * regret["rows"].mean()
    policy = REPLAY(ar.MonUCB(10, 10_000), env.draw_history(10_000, seed=1))
    policy.ask()
    assert len(policy._ledger.unit) <= 10 * (np.log2(1200) + 2)
