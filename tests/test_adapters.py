"""Algorithms of other libraries as bases. Stand-ins have what the adapters call; the libraries themselves run in an
example."""

from __future__ import annotations

import math
import random
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import artreplay as ar
from artreplay.errors import InvalidHistory, InvalidParameter

LOG = ar.History([0, 1, 2, 1, 0, 2, 2] * 5, [0, 1, 1, 0, 0, 1, 0] * 5)


class Policy:
    """As a policy of river: Thompson sampling, with a generator that nobody seeded."""

    def __init__(self) -> None:
        self._rng = random.Random()
        self.counts: dict[Any, list[float]] = {}

    def pull(self, arms: list[Any]) -> Any:
        return max(arms, key=lambda arm: self._rng.betavariate(*self.counts.get(arm, [1.0, 1.0])))

    def update(self, arm: Any, reward: float) -> None:
        counts = self.counts.setdefault(arm, [1.0, 1.0])
        counts[0] += reward
        counts[1] += 1 - reward


class Bandit:
    """As a MAB of MABWiser: ε-greedy. It counts its calls, which take long there."""

    calls = 0

    def __init__(self) -> None:
        self.arms = [0, 1, 2]
        self._rng = np.random.default_rng()

    def fit(self, decisions: list[Any], rewards: list[float]) -> None:
        self.sums, self.counts = np.zeros(3), np.zeros(3)
        self.partial_fit(decisions, rewards)

    def partial_fit(self, decisions: list[Any], rewards: list[float]) -> None:
        type(self).calls += 1
        np.add.at(self.sums, np.array(decisions, int), rewards)
        np.add.at(self.counts, np.array(decisions, int), 1)

    def predict(self) -> int:
        if self._rng.random() < 0.2:
            return int(self._rng.integers(3))
        return int(np.argmax(self.sums / np.maximum(self.counts, 1)))


class Node:
    def __init__(self, depth: int, domain: list[list[float]]) -> None:
        self.depth, self.domain, self.children = depth, domain, None
        self.b_value, self.rewards = math.inf, []

    def get_domain(self) -> Any:
        return self.domain

    def get_children(self) -> Any:
        return self.children

    def get_cpoint(self) -> list[float]:
        return [(low + high) / 2 for low, high in self.domain]


class Tree:
    """As a partition of PyXAB, which draws the axis of a split from what everything shares."""

    def __init__(self) -> None:
        self.root = Node(0, [[0.0, 1.0], [0.0, 1.0]])
        self.depth, self.node_list = 0, [[self.root]]

    def get_root(self) -> Node:
        return self.root

    def get_depth(self) -> int:
        return self.depth

    def split(self, node: Node) -> None:
        axis = np.random.randint(2)  # noqa: NPY002
        low, high = node.domain[axis]
        halves = [[low, (low + high) / 2], [(low + high) / 2, high]]
        node.children = [Node(node.depth + 1, [*node.domain[:axis], half, *node.domain[axis + 1 :]]) for half in halves]
        self.depth = max(self.depth, node.depth + 1)


class Walker:
    """As T_HOO of PyXAB: goes where `b_value` is highest, and learns along the path of its last walk."""

    def __init__(self) -> None:
        self.partition = Tree()
        self.expand(self.partition.root)

    def expand(self, node: Node) -> None:
        self.partition.split(node)

    def optTraverse(self) -> list[Node]:  # noqa: N802
        path = [self.partition.root]
        while path[-1].children:
            path.append(max(path[-1].children, key=lambda child: child.b_value))
        return path

    def pull(self, time: int) -> list[float]:
        self.path = self.optTraverse()
        return self.path[-1].get_cpoint()

    def receive_reward(self, time: int, reward: float) -> None:
        for node in self.path:
            node.rewards.append(reward)
            node.b_value = sum(node.rewards) / len(node.rewards) + 1 / math.sqrt(len(node.rewards))
        self.expand(self.path[-1])


POINTS = ar.History(np.random.default_rng(0).random((40, 2)), np.random.default_rng(1).integers(2, size=40))
MAKERS = {
    "river": (lambda: ar.adapters.river(Policy(), 3), LOG),
    "mabwiser": (lambda: ar.adapters.mabwiser(Bandit()), LOG),
    "pyxab": (lambda: ar.adapters.pyxab(Walker()), POINTS),
}


def played(policy: Any, rounds: int, seed: int = 3) -> list[Any]:
    """What a policy plays against rewards that do not depend on it."""
    rewards = np.random.default_rng(seed).integers(2, size=rounds)
    actions = []
    for reward in rewards.tolist():
        actions.append(policy.ask())
        policy.tell(actions[-1], float(reward))
    return actions


def over_log(name: str, kind: str) -> Any:
    make, log = MAKERS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ar.Ignorant(make()) if kind == "Ignorant" else getattr(ar, kind)(make(), log)


@pytest.mark.parametrize("kind", ["Ignorant", "FullStart", "ArtificialReplay"])
@pytest.mark.parametrize("name", MAKERS)
def test_one_seed_is_one_result_and_a_saved_policy_goes_on_the_same(name: str, kind: str, tmp_path: Path) -> None:
    policy = over_log(name, kind)
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    actions = played(policy, 12)
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002
    assert played(over_log(name, kind), 12) == actions
    policy.save(tmp_path / "policy.ar")
    make, log = MAKERS[name]
    again = ar.load(tmp_path / "policy.ar", *([] if kind == "Ignorant" else [log]), base=make())
    assert played(again, 8, seed=4) == played(policy, 8, seed=4)


@pytest.mark.parametrize("name", MAKERS)
def test_another_seed_is_another_result(name: str) -> None:
    make, _ = MAKERS[name]
    runs = []
    for seed in range(6):
        base = make()
        base.reseed(seed)
        runs.append(tuple(played(ar.Ignorant(base), 12)))
    assert len(set(runs)) > 1


def test_replay_says_once_that_it_is_not_exact() -> None:
    with pytest.warns(UserWarning, match=r"not exact.*ar.FullStart\(base, history\) is right") as said:
        ar.simulate(MAKERS["river"][0](), ar.environments.KArmed(3), history=20, horizon=5, replications=3)
    assert len({(one.filename, one.lineno) for one in said}) == 1
    assert said[0].filename == __file__
    ar.FullStart(MAKERS["river"][0](), LOG)  # a warning would be an error


def test_a_log_reaches_mabwiser_in_one_call() -> None:
    Bandit.calls = 0
    policy = ar.FullStart(ar.adapters.mabwiser(Bandit()), LOG)
    policy.ask()
    assert (Bandit.calls, policy.used) == (1, len(LOG))
    assert policy.base.algorithm.counts.tolist() == [10, 10, 15]


def test_pyxab_learns_from_points_that_it_did_not_choose_where_they_lie() -> None:
    base = ar.adapters.pyxab(Walker())
    points, rewards = POINTS.points, POINTS.rewards.tolist()
    for point, reward in zip(points, rewards, strict=True):
        base.update(point, reward)
    root = base.algorithm.partition.root
    assert root.rewards == rewards
    for child in root.children:
        inside = [all(low <= x <= high for x, (low, high) in zip(point, child.domain, strict=True)) for point in points]
        assert child.rewards == [reward for reward, here in zip(rewards, inside, strict=True) if here]


def test_pyxab_plays_by_itself_what_it_plays_in_a_policy() -> None:
    base = ar.adapters.pyxab(Walker())
    alone, state = ar.adapters.pyxab(Walker()).algorithm, base._draws
    shared = np.random.get_state()  # noqa: NPY002
    policy = ar.Ignorant(base)
    for time in range(1, 20):
        point = policy.ask()
        assert list(point) == alone.pull(time)
        policy.tell(point, point[0])
        np.random.set_state(state)  # noqa: NPY002
        alone.receive_reward(time, point[0])
        state = np.random.get_state()  # noqa: NPY002
        np.random.set_state(shared)  # noqa: NPY002


def test_replay_of_pyxab_is_full_start() -> None:
    assert played(over_log("pyxab", "ArtificialReplay"), 10) == played(over_log("pyxab", "FullStart"), 10)


@pytest.mark.parametrize("start", ["ignorant", "full-start", "artificial-replay"])
@pytest.mark.parametrize("name", ["river", "mabwiser"])
def test_simulations_give_one_result_for_one_seed(name: str, start: Any) -> None:
    env = ar.environments.KArmed(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first, again = (
            ar.simulate(MAKERS[name][0](), env, start, history=15, horizon=8, replications=3, seed=5) for _ in range(2)
        )
    assert (first.actions == again.actions).all()
    assert len({tuple(row) for row in first.actions.ravel(order="C").reshape(3, -1).tolist()}) > 1


class NeedsContext(Policy):
    pass


NeedsContext.__mro__[0].__name__ = "ContextualPolicy"


class Exp3(Policy):
    pass


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ar.adapters.river(object(), 3), "is none of river: it must have pull, update"),
        (lambda: ar.adapters.river(NeedsContext(), 3), "policy must be a policy without contexts"),
        (lambda: ar.adapters.river(Exp3(), 3), "policy must learn from any arm"),
        (lambda: ar.adapters.river(Policy(), ["red", "red"]), "arms must be a number of at least 1, or different"),
        (lambda: ar.adapters.river(Policy(), 3, seed=-1), "seed must be an integer of at least 0"),
        (lambda: ar.adapters.mabwiser(Policy()), "is none of MABWiser: it must have fit, partial_fit, predict, arms"),
        (lambda: ar.adapters.pyxab(Policy()), "algorithm must be one of PyXAB that walks down a tree"),
        (lambda: ar.adapters.sklearn(Policy(), 3, None), "contexts must be ar.Contexts without segments"),
    ],
)
def test_what_cannot_be_wrapped_is_refused_in_a_sentence(make: Any, words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        make()


def test_a_log_of_other_arms_or_points_is_refused_with_its_row() -> None:
    with pytest.raises(InvalidHistory, match="unit in row 1 is refused: 'blue' is not an arm"):
        ar.FullStart(ar.adapters.river(Policy(), ["red"]), ar.History(["red", "blue"], [0, 1]))
    with pytest.raises(InvalidHistory, match=r"unit in row 1 is refused.*does not lie in the domain"):
        ar.FullStart(ar.adapters.pyxab(Walker()), ar.History([[0.5, 0.5], [0.5, 2.0]], [0, 1]))


# -- scikit-learn ---------------------------------------------------------------------------------------------

CONTEXTS = ar.Contexts({"age": ar.Numeric(18, 82)}, {"country": ["NL", "DE"]})


def taught(model: Any, rows: int = 60, seed: int = 0) -> Any:
    """Models that have seen which arm is good where: red for the young, blue for the old."""
    base = ar.adapters.sklearn(model, ["red", "blue", "new"], CONTEXTS, explore=0.0, seed=seed)
    rng = np.random.default_rng(2)
    for _ in range(rows):
        arm, context = ["red", "blue"][int(rng.integers(2))], {"age": float(rng.uniform(18, 82)), "country": "NL"}
        base.update(arm, float((context["age"] < 50) == (arm == "red")), context)
    return base


def models() -> list[Any]:
    from sklearn.linear_model import LogisticRegression, SGDClassifier, SGDRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.tree import DecisionTreeRegressor

    return [
        LogisticRegression(),
        SGDClassifier(loss="log_loss"),
        SGDRegressor(),
        DecisionTreeRegressor(max_depth=2),
        make_pipeline(StandardScaler(), LogisticRegression()),
    ]


@pytest.mark.parametrize("number", range(5))
def test_models_of_scikit_learn_say_which_arm_is_good_where(number: int) -> None:
    base = taught(models()[number])
    for age, good, bad in ((25, "red", "blue"), (75, "blue", "red")):
        context = {"age": age, "country": "NL"}
        assert base.score(good, context, 0) > base.score(bad, context, 0)
        assert base.score("new", context, 0) == math.inf
    again = ar.adapters.sklearn(models()[number], ["red", "blue", "new"], CONTEXTS, explore=0.0)
    again.restore(base.state())
    assert again.score("red", context, 0) == base.score("red", context, 0)


def test_a_forecast_depends_on_the_rows_and_not_on_when_it_is_asked() -> None:
    """A model that is fitted anew, with the same rows, is the same whether or not it was asked in between."""
    from sklearn.ensemble import RandomForestRegressor

    context = {"age": 30, "country": "DE"}
    base = ar.adapters.sklearn(RandomForestRegressor(3), ["red"], CONTEXTS, explore=0.0)
    rng = np.random.default_rng(0)
    for row in range(35):
        base.update("red", float(rng.random()), {"age": float(rng.uniform(18, 82)), "country": "NL"})
        base.score("red", context, row)
    alone = ar.adapters.sklearn(RandomForestRegressor(3), ["red"], CONTEXTS, explore=0.0)
    alone.restore(base.state())
    assert alone.score("red", context, 35) == base.score("red", context, 35)
    assert base._fits[0]._fit_rows in range(32, 36)  # at most a tenth of the rows are not in it


def test_rounds_that_explore_are_a_share_and_draw_the_arm() -> None:
    base = ar.adapters.sklearn(models()[0], [0, 1, 2], CONTEXTS, explore=0.25)
    context = {"age": 30, "country": "NL"}
    for arm in range(3):
        for reward in (0.0, 1.0):
            base.update(arm, reward * (arm == 2), context)
    best = [max(range(3), key=lambda arm: base.score(arm, context, round_)) for round_ in range(400)]
    drawn = [round_ for round_ in range(400) if best[round_] != 2]
    assert 40 < len(drawn) < 95  # two thirds of a quarter
    assert {best[round_] for round_ in drawn} == {0, 1}


def test_a_model_of_scikit_learn_starts_from_a_log_with_contexts(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    ages, arms = rng.uniform(18, 82, 80), rng.choice(["red", "blue"], 80)
    rewards = ((ages < 50) == (arms == "red")).astype(float)
    log = ar.History(arms.tolist(), rewards, contexts={"age": ages, "country": ["NL", "DE"] * 40})

    def base() -> Any:
        return ar.adapters.sklearn(models()[0], ["red", "blue"], CONTEXTS)

    def decisions(policy: Any) -> list[str]:
        found = []
        for age in range(20, 80, 3):
            found.append(policy.ask(context={"age": age, "country": "NL"}))
            policy.tell(found[-1], float((age < 50) == (found[-1] == "red")))
        return found

    replay, full = ar.ArtificialReplay(base(), log), ar.FullStart(base(), log)
    decided = decisions(replay)
    assert decided == decisions(full)
    assert sum((age < 50) == (arm == "red") for age, arm in zip(range(20, 80, 3), decided, strict=True)) >= 18
    replay.save(tmp_path / "policy.ar")
    assert decisions(ar.load(tmp_path / "policy.ar", log, base=base())) == decisions(replay)
