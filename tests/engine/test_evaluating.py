"""`ar.evaluate`: what policies would have earned on a log, against what they do earn in the world it is of."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import artreplay as ar
from artreplay.errors import ArtReplayError
from inspecting.context_worlds import TRUE_MEANS, linear_world, shown_by_position

MEANS = np.array([0.2, 0.4, 0.6])


def uniform_log(seed: int, rows: int) -> ar.History:
    rng = np.random.default_rng(seed)
    arms = rng.integers(0, 3, rows)
    return ar.History(arms, (rng.random(rows) < MEANS[arms]).astype(float))


def skewed_log(seed: int, rows: int) -> ar.History:
    """A log that was chosen by chance, with a column of the chances."""
    rng = np.random.default_rng(seed)
    shares = np.array([0.2, 0.3, 0.5])
    arms = rng.choice(3, rows, p=shares)
    clicks = (rng.random(rows) < MEANS[arms]).astype(float)
    return ar.History(arms, clicks, contexts={"p": shares[arms]})


def online_mean(seed: int, start: ar.History, rounds: int) -> float:
    """What KLUCB earns in the world itself."""
    rng, total = np.random.default_rng([seed, 1]), 0.0
    policy = ar.ArtificialReplay(ar.KLUCB(3, horizon=100), ar.History(start.codes, start.rewards))
    for _ in range(rounds):
        arm = policy.ask()
        reward = float(rng.random() < MEANS[arm])
        policy.tell(arm, reward)
        total += reward
    return total / rounds


@pytest.mark.parametrize("weighted", [False, True])
def test_a_learning_policy_earns_what_it_earns_online(weighted: bool) -> None:
    """The mean over many logs is that over as many worlds that it plays itself."""
    played, online = [], []
    for seed in range(60):
        log = skewed_log(seed, 330) if weighted else uniform_log(seed, 330)
        how: dict[str, Any] = {"start": 30, "propensity": "p" if weighted else None}
        result = ar.evaluate({"ucb": ar.KLUCB(3, horizon=100)}, log, **how)["ucb"]
        assert result.accepted == result.rows
        played.append(result.value.value)
        online.append(online_mean(seed, log.rows(np.arange(30)), max(result.rows, 1)))
    error = math.sqrt((np.var(played) + np.var(online)) / len(played))
    assert abs(np.mean(played) - np.mean(online)) < 3.5 * error


def test_fixed_policies_earn_their_means_however_the_old_policy_chose() -> None:
    shown = shown_by_position(0, 12_000)
    policies: dict[str, Any] = {f"always {arm}": arm for arm in range(3)}
    policies["rule"] = lambda context: 0 if context["position"] == 1 else 2
    result = ar.evaluate(policies, shown.history, start=0, propensity="p")
    for arm in range(3):
        value = result[f"always {arm}"]
        assert value.value.low <= TRUE_MEANS[arm] <= value.value.high
        assert value.by_rejection.low <= TRUE_MEANS[arm] <= value.by_rejection.high
        assert value.accepted < value.rows
    assert result["rule"].value.low <= (0.05 + 0.30 + 0.10 + 0.05 + 0.10) / 3 <= result["rule"].value.high
    believing = ar.evaluate({"always 0": 0}, shown.history, start=0)
    assert believing["always 0"].value.low > TRUE_MEANS[0]  # the control: shares in place of propensities
    assert believing.sentences()[0].startswith("If the old policy chose by chance")


def test_intervals_of_fixed_policies_hold() -> None:
    held = 0
    for seed in range(40):
        result = ar.evaluate({"one": 1}, shown_by_position(seed, 600).history, start=0, propensity="p")["one"]
        held += result.value.low <= TRUE_MEANS[1] <= result.value.high
    assert held >= 38


def test_a_regression_of_the_context_is_played_as_if_it_were_asked() -> None:
    drawn = linear_world(0, 400, 0.25)
    table = {name: drawn.contexts.column(name).to_pylist() for name in drawn.context_names}
    history = ar.History(drawn.codes, drawn.rewards, contexts=table | {"p": [0.5] * 400})  # every row is accepted
    base = ar.ContextRegression(arms=history.labels, contexts=ar.Contexts.from_table(table, cosines=0))
    result = ar.evaluate({"regression": base}, history, start=100, propensity="p")["regression"]
    plain, rewards = base.duplicate(), []
    for row, context in enumerate(drawn.contexts.to_pylist()):
        arm, reward = history.unit(row), history.rewards[row]
        if row < 100:
            plain.update_logged(arm, reward, context)
        elif plain.propose(context, len(rewards)) == arm:
            plain.update(arm, reward, context)
            rewards.append(reward)
    assert result.rows == len(rewards) < 300
    assert result.value.value == pytest.approx(np.mean(rewards))


def test_segments_are_played_as_one_policy_for_each() -> None:
    history = linear_world(1, 1_200, 0.2)
    country = history.contexts.column("country").to_pylist()
    log = ar.History(history.codes, history.rewards, contexts={"country": country, "p": [0.5] * 1_200})
    contexts = ar.Contexts(categories={"country": ["NL", "DE"]}, segments=["country"])
    base = ar.KLUCB(arms=history.labels, horizon=500, contexts=contexts)
    together = ar.evaluate({"by country": base}, log, start=400, propensity="p")["by country"]
    rewards, rows = 0.0, 0
    policy = ar.ArtificialReplay(
        base, ar.History(log.codes[:400], log.rewards[:400], contexts={"country": country[:400]})
    )
    for row in range(400, 1_200):
        if policy.ask(context={"country": country[row]}) == log.unit(row):
            policy.tell(log.unit(row), log.rewards[row], context={"country": country[row]})
            rewards, rows = rewards + log.rewards[row], rows + 1
    assert together.rows == rows
    assert together.value.value == pytest.approx(rewards / rows)


def test_few_rows_cannot_tell() -> None:
    result = ar.evaluate({"ucb": ar.KLUCB(3, horizon=20), "always": 2}, uniform_log(0, 200))
    assert not result["ucb"].can_tell
    assert "Fewer than 100 rows cannot tell what these would earn: ucb (" in result.sentences()[-1]
    assert ar.evaluate({"always": 2}, uniform_log(0, 1_000))["always"].can_tell


def test_the_same_seed_gives_the_same_result_and_the_base_is_left_alone() -> None:
    base, log = ar.ThompsonSampling(3, seed=4), skewed_log(0, 600)
    results = [ar.evaluate({"ts": base}, log, propensity="p", seed=seed) for seed in (1, 1, 2)]
    assert results[0] == results[1]
    assert results[0]["ts"].accepted != results[2]["ts"].accepted
    assert base.propose() == ar.ThompsonSampling(3, seed=4).propose()
    assert not np.asarray(base.tally[0]).any()
    frame = results[0].to_frame()
    assert frame.column("policy").to_pylist() == ["ts"]


class Plain:
    """An object of a user's own, which plays the arm with the best mean so far."""

    def __init__(self) -> None:
        self.sums, self.counts = np.zeros(3), np.ones(3)

    def propose(self) -> int:
        return int(np.argmax(self.sums / self.counts))

    def update(self, unit: int, reward: float) -> None:
        self.sums[unit] += reward
        self.counts[unit] += 1


def test_an_object_of_ones_own_is_played() -> None:
    assert ar.evaluate({"mine": Plain()}, uniform_log(0, 900))["mine"].rows > 50


@pytest.mark.parametrize(
    ("policies", "options", "sentence"),
    [
        ({}, {}, "policies must be policies by name"),
        ({"a": 7}, {}, "'a' must be an algorithm, a rule or an arm of the log, got 7"),
        ({"a": ar.KLUCB}, {}, "'a' must be a policy that is made, got the class KLUCB"),
        ({"a": ar.TopUCB(3, 2, 9)}, {}, "'a' must play one arm in each round"),
        ({"a": ar.TreeUCB(2, 9)}, {}, "'a' must play arms"),
        ({"a": lambda context: 1}, {}, "'a' needs the contexts of the log"),
        ({"a": 1}, {"start": 200}, "start must leave rows to play, got 200 of 200"),
        ({"a": 1}, {"start": -1}, "start must be at least 0, got -1"),
        ({"a": 1}, {"propensity": "p"}, "propensity must name a context column of the log, got 'p'; it has none"),
    ],
)  # fmt: skip
def test_what_cannot_be_played_is_refused(policies: Any, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ArtReplayError) as refused:
        ar.evaluate(policies, uniform_log(0, 200), **options)
    assert sentence in str(refused.value)


def test_chances_that_are_none_are_refused() -> None:
    for chances, sentence in (([0.5, 0.0], "row 1 is 0, expected a number in"), (["a", "b"], "a column of numbers")):
        log = ar.History([0, 1], [1, 0], contexts={"p": chances})
        with pytest.raises(ArtReplayError, match=sentence):
            ar.evaluate({"a": 0}, log, start=0, propensity="p")
    with pytest.raises(ArtReplayError, match="needs the rows of a log of arms"):
        ar.evaluate({"a": 0}, ar.Totals([0], [2], [1]))
