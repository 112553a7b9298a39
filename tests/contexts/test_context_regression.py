"""`ContextRegression` does exactly what its specification says, at both speeds."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import artreplay as ar
from artreplay.errors import InvalidAction, InvalidParameter
from contexts.context_kit import PlainRegression, random_context, random_contexts

EXPLORE = ("ucb", "thompson", "greedy")


def rewards_of(g: random.Random) -> float:
    return g.choice([0.0, 1.0, 0.0, 1.0, 0.3])


@pytest.mark.parametrize("seed", range(12))
def test_every_value_is_that_of_a_plain_fold(seed: int) -> None:
    g = random.Random(seed)
    contexts, explore, trust = random_contexts(g), g.choice(EXPLORE), g.choice(["auto", "log"])
    rate = g.choice([None, 0.01, 0.2])
    base = ar.ContextRegression(3, contexts, explore=explore, trust=trust, seed=seed, rate=rate)
    fold = PlainRegression(3, contexts, explore, trust, seed=seed, rate=rate)
    for round_ in range(60):
        context, arm, reward, played = random_context(g), g.randrange(3), rewards_of(g), g.random() < 0.5
        (base.update if played else base.update_logged)(arm, reward, context)
        fold.show(arm, reward, context, played)
        asked = random_context(g)
        values = base.values(asked, round_)
        for arm in range(3):
            assert values[arm].worth == pytest.approx(fold.worth(arm, asked, round_), abs=1e-9)
        chosen = base.propose(asked, round_)
        assert values[chosen].worth == max(value.worth for value in values.values())
        assert all(values[arm].worth < values[chosen].worth for arm in range(chosen))


@pytest.mark.parametrize("open_decisions", [0, 1, 100])
def test_open_decisions_narrow_what_an_arm_is_worth(open_decisions: int) -> None:
    g = random.Random(5)
    contexts = random_contexts(g)
    base, fold = ar.ContextRegression(2, contexts), PlainRegression(2, contexts)
    for _ in range(20):
        context, reward = random_context(g), rewards_of(g)
        base.update(0, reward, context)
        fold.show(0, reward, context, True)
    base.component.open[:] = open_decisions
    for arm in range(2):  # nothing is known of arm 1: it is worth 1, or valued from its prior
        asked = random_context(g)
        worth = fold.worth(arm, asked, 0, open_decisions)
        assert base.values(asked)[arm].worth == pytest.approx(worth, abs=1e-9)


def test_a_log_that_contradicts_what_is_played_is_left_aside() -> None:
    g = random.Random(0)
    contexts = ar.Contexts({"x": ar.Numeric(0, 1)}, cosines=8)
    base, trusting = ar.ContextRegression(1, contexts), ar.ContextRegression(1, contexts, trust="log")
    for _ in range(600):
        x = g.random()
        for each in (base, trusting):
            each.update_logged(0, float(x < 0.5), {"x": x})
    assert base.values({"x": 0.9})[0].source == "all"
    for _ in range(60):
        x = g.random()
        for each in (base, trusting):
            each.update(0, float(x > 0.5), {"x": x})
    assert base.values({"x": 0.9})[0].source == "online"
    assert trusting.values({"x": 0.9})[0].source == "all"
    assert base.values({"x": 0.9})[0].forecast > 0.6 > trusting.values({"x": 0.9})[0].forecast


def test_cosines_are_used_once_they_forecast_better() -> None:
    g = random.Random(1)
    base = ar.ContextRegression(1, ar.Contexts({"x": ar.Numeric(0, 1)}, cosines=16))
    assert base.values({"x": 0.5})[0].model == "linear"
    for _ in range(300):
        x = g.random()
        base.update(0, float(abs(x - 0.5) < 0.25), {"x": x})
    middle, end = base.values({"x": 0.5})[0], base.values({"x": 0.02})[0]
    assert middle.model == "cosines"
    assert middle.forecast > 0.7 > 0.3 > end.forecast


def log_of(contexts: ar.Contexts, rows: int, seed: int = 3) -> tuple[Any, Any, Any]:
    g = random.Random(seed)
    table = [random_context(g) for _ in range(rows)]
    encoded = np.array([contexts.encode_one(context) for context in table])
    units = contexts.n_segments * np.array([g.randrange(3) for _ in range(rows)]) + encoded[:, 0].astype(np.int64)
    return units, np.array([rewards_of(g) for _ in range(rows)]), encoded


@pytest.mark.parametrize("segments", [[], ["country"]])
def test_compiled_and_interpreted_are_the_same_bits(segments: list[str]) -> None:
    contexts = ar.Contexts(
        {"age": ar.Numeric(0, 2, missing=True)},
        {"country": ["NL", "DE"], "device": ["phone", "desk"]},
        segments=segments,
        cosines=16,
    )
    units, rewards, encoded = log_of(contexts, 150)
    found = []
    for mode in ("interpreted", "compiled"):
        base = ar.ContextRegression(3, contexts, explore="thompson")
        with ar.compiling.using(mode):  # type: ignore[arg-type]
            assert list(base.learn_rows(units, rewards, encoded, played=False))[-1] == len(units)
        found.append(base)
    one_by_one = ar.ContextRegression(3, contexts, explore="thompson")
    for unit, reward, row in zip(units.tolist(), rewards.tolist(), encoded, strict=True):
        one_by_one.set_context(row)
        one_by_one.component.update_logged(unit, reward, 0.0)
    for other in (found[1], one_by_one):
        for name, array in found[0].state().items():
            assert np.array_equal(array, other.state()[name]), name
    context = {"age": 0.5, "country": "DE", "device": "desk"}
    assert found[0].values(context, 7) == found[1].values(context, 7)


def test_a_covariance_stays_symmetric_to_the_last_bit() -> None:
    contexts = ar.Contexts({"x": ar.Numeric(0, 1), "y": ar.Numeric(0, 1)}, cosines=8)
    base = ar.ContextRegression(1, contexts)
    g = random.Random(2)
    for _ in range(100):
        base.update(0, rewards_of(g), {"x": g.random(), "y": g.random()})
    size = contexts.n_features
    rich = base.component.fits.covariance[3 * 3 : 3 * 3 + size * size].reshape(size, size)
    assert np.array_equal(rich, rich.T)


def test_rewards_are_scaled() -> None:
    contexts = ar.Contexts({"x": ar.Numeric(0, 1)})
    plain, wide = ar.ContextRegression(1, contexts), ar.ContextRegression(1, contexts, reward_range=(-10, 10))
    for x, reward in [(0.1, 0.0), (0.5, 1.0), (0.9, 0.5)]:
        plain.update(0, reward, {"x": x})
        wide.update(0, 20 * reward - 10, {"x": x})
    assert wide.values({"x": 0.4})[0].worth == pytest.approx(20 * plain.values({"x": 0.4})[0].worth - 10)
    assert wide.statistics()[1].tolist() == [0.0]
    with pytest.raises(InvalidAction, match=r"reward is 11"):
        wide.update(0, 11, {"x": 0.5})


def test_what_is_refused() -> None:
    contexts = ar.Contexts({"x": ar.Numeric(0, 1)}, {"page": list(range(40))}, segments=["page"])
    with pytest.raises(
        InvalidParameter,
        match=r"must fit into 1024 MB, got 2727 MB for 41000 pairs of arm and segment with 66 features",
    ):
        ar.ContextRegression(1000, contexts)
    with pytest.raises(InvalidParameter, match=r"needs contexts, which is missing"):
        ar.ContextRegression(3)
    base = ar.ContextRegression(3, ar.Contexts({"x": ar.Numeric(0, 1)}))
    for rate in (0.0, 1.0, -0.2):
        with pytest.raises(InvalidParameter, match=r"rate must lie between 0 and 1, got"):
            ar.ContextRegression(3, contexts, rate=rate)
    with pytest.raises(InvalidParameter, match=r"needs a context, got None"):
        base.propose()
    with pytest.raises(InvalidParameter, match=r"context must have 'x'. If its value is missing, give None"):
        base.propose({})


def test_a_rate_is_where_forecasts_begin() -> None:
    contexts = ar.Contexts({"x": ar.Numeric(0, 1)})
    values = ar.ContextRegression(2, contexts, rate=0.01).values({"x": 0.3})
    assert values[0].worth == 1.0  # an arm without rows is tried
    assert values[0].forecast == pytest.approx(0.01)
    wide = ar.ContextRegression(2, contexts, rate=-0.9, reward_range=(-1.0, 9.0)).values({"x": 0.3})
    assert wide[0].forecast == pytest.approx(-0.9)


def test_a_long_log_needs_numba() -> None:
    base = ar.ContextRegression(3, ar.Contexts({"x": ar.Numeric(0, 1)}, cosines=0))
    log = ar.History([0] * 2001, [0.0] * 2001, contexts={"x": [0.5] * 2001})
    with (
        ar.compiling.using("interpreted"),
        pytest.raises(
            InvalidParameter, match=r"at most 2,000 rows for a ContextRegression without numba, got 2,001\. Run"
        ),
    ):
        ar.FullStart(base, log)
