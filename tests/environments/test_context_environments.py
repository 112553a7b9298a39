"""Worlds with contexts: what is drawn depends on its number alone, logs are made as they say, labels become arms."""

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
    LinearContexts,
    SmoothContexts,
    from_classification,
    logs,
    world_keys,
)
from artreplay.errors import InvalidHistory, InvalidParameter
from artreplay.streams import LOG_CONTEXT


def first_half(past: Any) -> Any:
    """The first half of the arms alone."""
    return logs.Missing(range((past.n_arms + 1) // 2, past.n_arms)).draw(past)


LOGS = ("uniform", logs.EpsilonGreedy(0.1), first_half, logs.Permuted(shift=1))
TABLE: dict[str, Any] = {
    "age": [31.0, 40.0, None, 22.0, 31.0, 25.0],
    "country": ["NL", "DE", "DE", "NL", "NL", "DE"],
    "same": [1.0] * 6,
}
LABELS = ["b", "a", "c", "b", "a", "c"]
KINDS: dict[str, Any] = {
    "linear": lambda log: LinearContexts(4, 3, log),
    "smooth": lambda log: SmoothContexts(3, 2, log),
    "categories": lambda log: CategoryContexts(3, [4, 2], log),
    "classification": lambda log: from_classification(TABLE, LABELS, log),
}


def key_of(seed: int) -> Any:
    return world_keys(seed, np.zeros(1, np.int64))[0]


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return list(one) == list(other) and all(
        np.array_equal(one[name], other[name], equal_nan=one[name].dtype.kind == "f") for name in one
    )


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 2**70), log=st.sampled_from(LOGS), rows=st.integers(0, 30), more=st.integers(0, 9))
def test_a_shorter_log_begins_a_longer_one(kind: str, seed: int, log: Any, rows: int, more: int) -> None:
    env, key = KINDS[kind](log), key_of(seed)
    short, long = env.log_rows(key, rows), env.log_rows(key, rows + more)
    assert same(short.contexts, {name: column[:rows] for name, column in long.contexts.items()})
    for mine, theirs in zip(short[1:], long[1:], strict=True):
        assert (mine == theirs[:rows]).all()


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 2**70), cut=st.integers(0, 12))
def test_rounds_do_not_depend_on_how_many_are_drawn_together(kind: str, seed: int, cut: int) -> None:
    env, key = KINDS[kind]("uniform"), key_of(seed)
    whole, parts = env.rounds(key, 0, 12), [env.rounds(key, 0, cut), env.rounds(key, cut, 12)]
    assert (np.concatenate([part.means for part in parts]) == whole.means).all()
    assert ((whole.means >= 0) & (whole.means <= 1)).all()
    joined = {name: np.concatenate([part.contexts[name] for part in parts]) for name in whole.contexts}
    assert same(joined, whole.contexts)


@pytest.mark.parametrize("kind", KINDS)
def test_logs_are_made_as_they_say(kind: str) -> None:
    uniform, decent, half, exchanged = (KINDS[kind](log).log_rows(key_of(3), 4000) for log in LOGS)
    n_arms = KINDS[kind]("uniform").n_arms
    assert np.allclose(np.bincount(uniform.arms, minlength=n_arms) / 4000, 1 / n_arms, atol=0.04)
    is_best = decent.chances > 0.5
    assert np.isclose(is_best.mean(), 0.9 + 0.1 / n_arms, atol=0.03)
    assert np.allclose(decent.chances[is_best], 0.9 + 0.1 / n_arms)
    assert decent.rewards.mean() > uniform.rewards.mean() + 0.05
    assert np.unique(half.arms).tolist() == list(range((n_arms + 1) // 2))
    assert (exchanged.arms == (uniform.arms + 1) % n_arms).all()
    assert (exchanged.rewards == uniform.rewards).all()


@pytest.mark.parametrize("kind", KINDS)
def test_rewards_of_a_log_have_the_means_of_the_world(kind: str) -> None:
    env = KINDS[kind]("uniform")
    rows, key = env.log_rows(key_of(5), 4000), key_of(5)
    means = env._drawn(key, LOG_CONTEXT, np.arange(4000)).means[np.arange(4000), rows.arms]
    error = np.sqrt((means * (1 - means)).sum()) / 4000
    assert abs((rows.rewards - means).mean()) <= 5 * error


def test_arms_are_linear_smooth_or_add_up_as_they_say() -> None:
    drawn = LinearContexts(4, 3).rounds(key_of(1), 0, 500)
    x = np.column_stack([np.ones(500), *drawn.contexts.values()])
    for means in drawn.means.T:
        inside = (means > 0) & (means < 1)
        weights, *_ = np.linalg.lstsq(x[inside], means[inside], rcond=None)
        assert np.allclose(x[inside] @ weights, means[inside])
        assert np.isclose(weights[0], 0.5)
    drawn = CategoryContexts(2, [3, 2]).rounds(key_of(1), 0, 500)
    logits, values = np.log(drawn.means / (1 - drawn.means)), np.column_stack(list(drawn.contexts.values()))
    found = {tuple(row): logit for row, logit in zip(values.tolist(), logits, strict=True)}
    assert len(found) == 6
    for value in ("v1", "v2"):
        assert np.allclose(found[value, "v0"] - found["v0", "v0"], found[value, "v1"] - found["v0", "v1"])


def test_labels_become_arms_and_rows_contexts() -> None:
    env = from_classification(TABLE, LABELS)
    assert env.labels.tolist() == ["a", "b", "c"]
    assert env.contexts.columns == ["age", "country"]  # the column that never changes is left out
    drawn = env.rounds(key_of(2), 0, 200)
    rows = {(age, country): set() for age, country in zip(TABLE["age"], TABLE["country"], strict=True)}
    for age, country, label in zip(TABLE["age"], TABLE["country"], LABELS, strict=True):
        rows[age, country].add(label)
    for age, country, means in zip(drawn.contexts["age"], drawn.contexts["country"], drawn.means, strict=True):
        assert sorted(means.tolist()) == [0, 0, 1]
        assert env.labels[int(means.argmax())] in rows[None if np.isnan(age) else age, country]


def test_a_world_of_ones_own_says_how_it_draws() -> None:
    class Hours(ContextEnvironment):
        def __init__(self) -> None:
            super().__init__(2, ar.Contexts({"hour": ar.Numeric(0, 24)}), n_draws=1)

        def draw(self, key: Any, draws: Any) -> Any:
            morning = draws[:, 0] < 0.5
            means = np.where(morning[:, None], [0.8, 0.2], [0.2, 0.8])
            return ar.environments.Drawn({"hour": 24 * draws[:, 0]}, means)

    with ar.compiling.using("interpreted"):
        base = ar.ContextRegression(2, ar.Contexts({"hour": ar.Numeric(0, 24)}, cosines=4))
        mine = ar.simulate(base, Hours(), history=60, horizon=60, replications=3)
        without = ar.simulate(ar.KLUCB(2, 60), Hours(), history=60, horizon=60, replications=3)
    assert mine.final_regret()[0] < without.final_regret()[0]


@pytest.mark.parametrize(
    ("make", "error", "sentence"),
    [
        (
            lambda: from_classification([[0.0], [1.0]], ["a"]),
            InvalidParameter,
            "one label for each of 2 rows",
        ),
        (
            lambda: from_classification([[0.0], [1.0]], ["a", "a"]),
            InvalidParameter,
            "at least 2 different labels",
        ),
        (lambda: from_classification([[1.0], [1.0]], ["a", "b"]), InvalidParameter, "a column whose values differ"),
        (lambda: from_classification([1.0, 2.0], ["a", "b"]), InvalidParameter, "must be a table of numbers"),
        (lambda: from_classification({"x": [0.0, np.inf]}, ["a", "b"]), InvalidHistory, "inf"),
        (lambda: LinearContexts(3, 0), InvalidParameter, "dim must be"),
        (lambda: LinearContexts(3, 2, log="best"), InvalidParameter, "log must be"),
        (lambda: CategoryContexts(3, [4, 1]), InvalidParameter, "the size of a category must be at least 2, got 1"),
    ],
)
def test_what_makes_no_world_is_refused(make: Any, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        make()
