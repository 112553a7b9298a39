"""Simulations in worlds with contexts: they are the fold that anyone can write, paired, and the same at both speeds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import artreplay as ar
from artreplay.environments import (
    CategoryContexts,
    ContextEnvironment,
    KArmed,
    LinearContexts,
    context_environments,
    from_classification,
    logs,
    world_keys,
)
from artreplay.errors import ArtReplayError
from artreplay.streams import REWARD, fold, fold_each, uniforms_at
from engine.simulated import same

MIXED = {"age": [31.0, 40.0, None, 22.0, 35.0, 25.0], "country": ["NL", "DE", "DE", "NL", "NL", "DE"]}
WORLDS: dict[str, Any] = {
    "linear": lambda log: LinearContexts(3, 2, log),
    "categories": lambda log: CategoryContexts(3, [3, 2], log),
    "classification": lambda log: from_classification(MIXED, ["b", "a", "c", "b", "a", "c"], log),
}


def regression(env: ContextEnvironment, **options: Any) -> ar.ContextRegression:
    frozen = env.contexts
    few = ar.Contexts(frozen.numeric, frozen.categories, cosines=3)
    return ar.ContextRegression(env.n_arms, few, **options)


def run(base: Any, env: Any, **options: Any) -> ar.Runs:
    return ar.simulate(base, env, **({"history": 25, "horizon": 15, "replications": 2, "seed": 4} | options))


def folded(base: ar.ContextRegression, env: ContextEnvironment, seed: int, rows: int, horizon: int) -> Any:
    """The arms and the regret of one replication: a fold of the log and the rounds, by propose and update."""
    key = world_keys(seed, np.zeros(1, np.int64))[0]
    base = base.duplicate()
    base.component.reseed(fold_each(fold(seed, base.seed), np.zeros(1, np.int64))[0])
    log, rounds = env.log_rows(key, rows), env.rounds(key, 0, horizon)
    for row in range(rows):
        base.update_logged(int(log.arms[row]), log.rewards[row], context_at(log.contexts, row))
    arms, regret, total = [], [], 0.0
    for round_ in range(horizon):
        context = context_at(rounds.contexts, round_)
        arm = base.propose(context, round_)
        total += rounds.means[round_].max() - rounds.means[round_, arm]
        draw = float(uniforms_at(key, REWARD, arm, round_))
        base.update(arm, float(draw < rounds.means[round_, arm]), context)
        arms.append(arm)
        regret.append(total)
    return arms, regret


def context_at(columns: dict[str, Any], row: int) -> dict[str, Any]:
    return {name: column[row : row + 1].tolist()[0] for name, column in columns.items()}


@pytest.mark.parametrize("kind", WORLDS)
@given(
    seed=st.integers(0, 1000),
    rows=st.integers(0, 12),
    log=st.sampled_from(["uniform", logs.Permuted(shift=1)]),
    explore=st.sampled_from(["ucb", "thompson"]),
)
def test_a_simulation_is_the_fold(kind: str, seed: int, rows: int, log: Any, explore: Any) -> None:
    env = WORLDS[kind](log)
    base = regression(env, explore=explore)
    runs = ar.simulate(base, env, history=rows, horizon=10, replications=1, seed=seed)
    arms, regret = folded(base, env, seed, rows, 10)
    assert runs.actions is not None
    assert runs.actions[0].tolist() == arms
    assert runs.regret[0].tolist() == regret
    assert (runs.used == rows).all()


def in_segments(make: Any, columns: list[str]) -> Any:
    """A base for the categories of a world, some of which make segments."""
    return lambda env: make(ar.Contexts(categories=env.contexts.categories, segments=columns, cosines=3))


SEGMENTED: dict[str, Any] = {
    "KLUCB": in_segments(lambda contexts: ar.KLUCB(3, 200, contexts=contexts), ["c0"]),
    "MonUCB": in_segments(lambda contexts: ar.MonUCB(3, 200, contexts=contexts), ["c1"]),
    "Thompson": in_segments(lambda contexts: ar.ThompsonSampling(3, contexts=contexts), ["c0", "c1"]),
    "Greedy": in_segments(lambda contexts: ar.Greedy(3, contexts=contexts), ["c1"]),
    "regression": in_segments(lambda contexts: ar.ContextRegression(3, contexts), ["c0"]),
}


@pytest.mark.filterwarnings("ignore:the log has .* rows for each of")
@pytest.mark.parametrize("name", SEGMENTED)
@given(seed=st.integers(0, 1000), rows=st.integers(0, 60), start=st.sampled_from(["artificial-replay", "full-start"]))
def test_a_simulation_is_a_policy_that_is_asked(name: str, seed: int, rows: int, start: Any) -> None:
    env = CategoryContexts(3, [3, 2])
    base = SEGMENTED[name](env)
    runs = ar.simulate(base, env, start, history=rows, horizon=12, replications=1, seed=seed)
    make = ar.ArtificialReplay if start == "artificial-replay" else ar.FullStart
    policy = make(base, env.draw_history(rows, seed=seed))
    policy.drive.base.component.reseed(fold_each(fold(seed, getattr(base, "seed", 0)), np.zeros(1, np.int64))[0])
    key = world_keys(seed, np.zeros(1, np.int64))[0]
    rounds = env.rounds(key, 0, 12)
    for round_ in range(12):
        context = context_at(rounds.contexts, round_)
        arm = policy.ask(context=context)
        assert arm == runs.actions[0, round_]
        assert policy.used == runs.used[0, round_]
        policy.tell(arm, float(uniforms_at(key, REWARD, arm, round_) < rounds.means[round_, arm]), context=context)
    assert runs.used_by_arm is not None
    assert runs.used_by_arm.sum() == runs.used[0, -1]


class Leaning:
    """A model of one's own that knows who is asking: it counts rewards for each value of a column."""

    contextual = True

    def __init__(self) -> None:
        self.sums: dict[Any, float] = {}
        self.counts: dict[Any, int] = {}
        self.arms = [0, 1, 2]

    def score(self, arm: int, context: dict[str, Any], round: int) -> float:
        at = arm, context["c0"]
        return (self.sums.get(at, 0.0) + 1.0) / (self.counts.get(at, 0) + 1.0)

    def update(self, arm: int, reward: float, context: dict[str, Any]) -> None:
        at = arm, context["c0"]
        self.sums[at] = self.sums.get(at, 0.0) + reward
        self.counts[at] = self.counts.get(at, 0) + 1


def test_a_model_of_ones_own_hears_the_contexts() -> None:
    env = CategoryContexts(3, [3, 2])
    runs = run(Leaning(), env, history=40)
    model, key = Leaning(), world_keys(4, np.zeros(1, np.int64))[0]
    log, rounds = env.log_rows(key, 40), env.rounds(key, 0, 15)
    for row in range(40):
        model.update(int(log.arms[row]), log.rewards[row], context_at(log.contexts, row))
    for round_ in range(15):
        context = context_at(rounds.contexts, round_)
        arm = max(range(3), key=lambda arm: (model.score(arm, context, round_), -arm))
        assert runs.actions is not None
        assert arm == runs.actions[0, round_]
        model.update(arm, float(uniforms_at(key, REWARD, arm, round_) < rounds.means[round_, arm]), context)


def test_starts_and_counts() -> None:
    env = LinearContexts(3, 2)
    base = regression(env)
    replay, full, without = (run(base, env, start=start) for start in ("artificial-replay", "full-start", "ignorant"))
    assert same(replay, full)  # the log is read whole, as by every policy
    assert (without.used == 0).all()
    assert same(without, run(base, env, history=0))
    assert replay.used_by_arm is not None
    assert (replay.used_by_arm.sum(axis=1) == 25).all()
    logs = [env.draw_history(25, seed=4, replication=replication) for replication in range(2)]
    counts = [[labels.count(arm) for arm in range(3)] for labels in map(labels_of, logs)]
    assert replay.used_by_arm.tolist() == counts
    assert (replay.actions[0] != replay.actions[1]).any()


def labels_of(history: ar.History) -> list[Any]:
    """The arm of each row."""
    return [history.unit(row) for row in range(len(history))]


def test_a_log_of_ones_own_is_used_in_every_replication() -> None:
    env = CategoryContexts(3, [3, 2])
    history = env.draw_history(25, seed=4)
    own, drawn = run(regression(env), env, history=history), run(regression(env), env)
    assert (own.actions[0] == drawn.actions[0]).all()
    assert (own.actions[1] != drawn.actions[1]).any()


@pytest.mark.parametrize("kind", WORLDS)
def test_rounds_may_be_drawn_a_few_at_a_time(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    env = WORLDS[kind](logs.EpsilonGreedy(0.1))
    bases = [regression(env), ar.KLUCB(3, 15), Fewest(3)]
    at_once = [run(base, env) for base in bases]
    monkeypatch.setattr(context_environments, "ROUNDS_AHEAD", 4)
    assert all(same(run(base, env), runs) for base, runs in zip(bases, at_once, strict=True))


class Fewest:
    """A plain object without contexts, which policies play by asking."""

    def __init__(self, n_arms: int) -> None:
        self.count = [0] * n_arms

    def propose(self) -> int:
        return self.count.index(min(self.count))

    def update(self, unit: int, reward: float) -> None:
        self.count[unit] += 1


def test_what_an_arm_earns_in_a_round_is_the_same_for_everyone() -> None:
    env = LinearContexts(3, 2)
    result = ar.compare(
        {"regression": regression(env), "KLUCB": ar.KLUCB(3, 15), "arm 1": ar.Greedy(3)},
        env, history=25, horizon=15, replications=3,
    )  # fmt: skip
    lost: dict[Any, float] = {}
    for runs in result.runs.values():
        steps = np.diff(runs.regret, axis=1, prepend=0.0)
        for (replication, round_), arm in np.ndenumerate(runs.actions):
            at = replication, round_, int(arm)
            assert np.isclose(lost.setdefault(at, steps[replication, round_]), steps[replication, round_])


def test_an_algorithm_without_contexts_plays_as_if_there_were_none() -> None:
    env = CategoryContexts(3, [3, 2])
    replay, full = (run(ar.KLUCB(3, 15), env, start=start, history=60) for start in ("artificial-replay", "full-start"))
    assert (replay.actions == full.actions).all()
    assert (replay.regret == full.regret).all()
    assert (replay.used[:, -1] < 60).any()
    log = env.draw_history(60, seed=4)
    policy = ar.ArtificialReplay(ar.KLUCB(3, 15), ar.History(labels_of(log), log.rewards))
    rounds = env.rounds(world_keys(4, np.zeros(1, np.int64))[0], 0, 15)
    for round_ in range(15):
        arm = policy.ask()
        assert arm == replay.actions[0, round_]
        draw = uniforms_at(world_keys(4, np.zeros(1, np.int64))[0], REWARD, arm, round_)
        policy.tell(arm, float(draw < rounds.means[round_, arm]))


def test_rewards_in_another_range_reach_the_base_scaled() -> None:
    env = LinearContexts(3, 2)
    wide = run(regression(env, reward_range=(-1.0, 3.0)), env)
    assert (wide.regret[:, -1] >= 0).all()
    assert not same(wide, run(regression(env), env))


@pytest.mark.parametrize(
    ("base", "env", "options", "sentence"),
    [
        (lambda env: regression(env), KArmed(3), {}, "needs a world with contexts, such as"),
        (
            lambda env: ar.ContextRegression(3, ar.Contexts({"age": ar.Numeric(0, 9)})),
            LinearContexts(3, 2), {}, "needs the column 'age', and the columns of .* are 'x0', 'x1'",
        ),
        (
            lambda env: regression(env),
            LinearContexts(3, 2), {"history": ar.History([0], [1])}, "must have the contexts of this ContextRegression",
        ),
        (lambda env: regression(env), LinearContexts(4, 2), {}, "has 3 arms, and the environment has 4"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(base: Any, env: Any, options: Any, sentence: str) -> None:
    with pytest.raises(ArtReplayError, match=sentence):
        run(base(LinearContexts(3, 2)), env, **options)


@pytest.mark.long
@pytest.mark.parametrize("kind", WORLDS)
def test_both_speeds_and_any_number_of_threads_are_the_same(kind: str) -> None:
    env = WORLDS[kind](logs.Permuted(shift=1))
    more = [SEGMENTED[name](env) for name in ("KLUCB", "Thompson")] if kind == "categories" else []
    for base in (regression(env), ar.KLUCB(3, 15), *more):
        with ar.compiling.using("interpreted"):
            slow = run(base, env, replications=4)
        with ar.compiling.using("compiled"):
            assert same(slow, run(base, env, replications=4, threads=1))
            assert same(slow, run(base, env, replications=4, threads=3))
