"""Seven algorithms of other libraries start from one log: river, MABWiser, PyXAB, scikit-learn, and NumPy by hand.

pip install river mabwiser PyXAB scikit-learn
"""

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from mabwiser.mab import MAB, LearningPolicy
from PyXAB.algos.HOO import T_HOO
from river import bandit, proba
from sklearn.linear_model import LogisticRegression, SGDClassifier

import artreplay as ar

BANNERS = ["red", "green", "blue"]
RATES = {"red": 0.3, "green": 0.5, "blue": 0.7}
ROUNDS = 200


class Softmax:
    """Plays an arm with a probability that grows with its mean. Written with NumPy; our policies seed its generator."""

    exact = False

    def __init__(self, arms: list[str]) -> None:
        self.arms = arms
        self.sums, self.counts = np.zeros(len(arms)), np.ones(len(arms))
        self.rng = np.random.default_rng(0)

    def propose(self) -> str:
        weights = np.exp(self.sums / self.counts / 0.1)
        return self.arms[self.rng.choice(len(self.arms), p=weights / weights.sum())]

    def update(self, arm: str, reward: float) -> None:
        number = self.arms.index(arm)
        self.sums[number] += reward
        self.counts[number] += 1

    def state(self) -> dict[str, Any]:
        return {"sums": self.sums, "counts": self.counts, "rng": self.rng.bit_generator.state}

    def restore(self, state: dict[str, Any]) -> None:
        self.sums, self.counts = state["sums"], state["counts"]
        self.rng.bit_generator.state = state["rng"]


rng = np.random.default_rng(0)
shown = rng.choice(BANNERS, 300).tolist()
clicks = [float(rng.random() < RATES[banner]) for banner in shown]
ages = rng.uniform(18, 82, 300)
chances = [0.8 if (age < 50) == (banner == "red") else 0.2 for age, banner in zip(ages, shown, strict=True)]
likes = [float(rng.random() < chance) for chance in chances]
places = rng.random((300, 2))
finds = [float(rng.random() < 1 - abs(x - 0.3)) for x, _ in places]

of_banners = ar.History(shown, clicks)
of_people = ar.History(shown, likes, contexts={"age": ages})
of_places = ar.History(places, finds)
contexts = ar.Contexts.from_history(of_people)

ALGORITHMS: dict[str, tuple[Callable[[], Any], ar.History]] = {
    "river, UCB": (lambda: ar.adapters.river(bandit.UCB(delta=1), BANNERS), of_banners),
    "river, Thompson sampling": (
        lambda: ar.adapters.river(bandit.ThompsonSampling(reward_obj=proba.Beta()), BANNERS),
        of_banners,
    ),
    "MABWiser, UCB1": (lambda: ar.adapters.mabwiser(MAB(BANNERS, LearningPolicy.UCB1(alpha=1))), of_banners),
    "PyXAB, T-HOO": (lambda: ar.adapters.pyxab(T_HOO(domain=[[0, 1], [0, 1]])), of_places),
    "scikit-learn, refitted": (lambda: ar.adapters.sklearn(LogisticRegression(), BANNERS, contexts), of_people),
    "scikit-learn, row by row": (
        lambda: ar.adapters.sklearn(SGDClassifier(loss="log_loss"), BANNERS, contexts),
        of_people,
    ),
    "NumPy, softmax": (lambda: Softmax(BANNERS), of_banners),
}


def play(policy: Any, log: ar.History, rounds: int, seed: int) -> tuple[list[Any], float]:
    """What a policy plays in the world that the log is of, and what it earns."""
    world, actions, earned = np.random.default_rng(seed), [], 0.0
    for _ in range(rounds):
        context = {"age": float(world.uniform(18, 82))} if log is of_people else None
        action = policy.ask(context=context)
        if log is of_people:
            mean = 0.8 if (context["age"] < 50) == (action == "red") else 0.2
        else:
            mean = 1 - abs(action[0] - 0.3) if log is of_places else RATES[action]
        policy.tell(action, float(world.random() < mean))
        actions.append(action)
        earned += mean
    return actions, earned / rounds


print(f"{'':25}{'no log':>10}{'full start':>12}{'replay':>10}{'rows read by replay':>22}")
for name, (make, log) in ALGORITHMS.items():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that replay of most of them is not exact; the table shows it
        policies = [ar.Ignorant(make()), ar.FullStart(make(), log), ar.ArtificialReplay(make(), log)]
    earned = []
    for policy in policies:
        before, mean = play(policy, log, ROUNDS, seed=1)
        earned.append(mean)
    replay = policies[-1]
    print(f"{name:25}{earned[0]:10.3f}{earned[1]:12.3f}{earned[2]:10.3f}{replay.used:15} of {len(log)}")

    with tempfile.TemporaryDirectory() as folder:  # what was saved goes on as if nothing had happened
        replay.save(Path(folder) / "policy.ar")
        again = ar.load(Path(folder) / "policy.ar", log, base=make())
    assert play(again, log, 20, seed=2) == play(replay, log, 20, seed=2), name
