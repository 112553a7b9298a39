"""Other libraries and textbook rules that `contextual.py` plays beside ours, each over the same table of numbers.

A rival has `learn_log(features, arms, rewards, chances)`, `choose(features, round)` and `learn(features, arm, reward,
chance)`. Features are those of our linear map: a constant, scaled numbers, and one column for each value of a category.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

GROWTH = 1.1  # the regression of an arm is fitted again when its rows have grown by this factor


class RidgeUCB:
    """LinUCB with disjoint arms: ridge regression, raised by `alpha` standard deviations. With 0 it is greedy."""

    def __init__(self, n_arms: int, n_features: int, alpha: float) -> None:
        self.alpha = alpha
        self.inverse = np.repeat(np.eye(n_features)[None], n_arms, axis=0)
        self.response = np.zeros((n_arms, n_features))
        self.weights = np.zeros((n_arms, n_features))

    def learn_log(self, features: Any, arms: Any, rewards: Any, chances: Any) -> None:
        for arm in range(len(self.weights)):
            mine = features[arms == arm]
            self.inverse[arm] = np.linalg.inv(np.eye(mine.shape[1]) + mine.T @ mine)
            self.response[arm] = mine.T @ rewards[arms == arm]
            self.weights[arm] = self.inverse[arm] @ self.response[arm]

    def choose(self, phi: Any, round_: int) -> tuple[int, float]:
        worth = self.weights @ phi
        if self.alpha:
            worth = worth + self.alpha * np.sqrt(np.maximum(0.0, (self.inverse @ phi) @ phi))
        return int(np.argmax(worth)), 1.0

    def learn(self, phi: Any, arm: int, reward: float, chance: float) -> None:
        product = self.inverse[arm] @ phi
        self.inverse[arm] -= np.outer(product, product) / (1.0 + product @ phi)
        self.response[arm] += reward * phi
        self.weights[arm] = self.inverse[arm] @ self.response[arm]


class VowpalWabbit:
    """`--cb_explore --squarecb`. It is told the chance with which the log chose each arm, which ours is not."""

    def __init__(self, n_arms: int, n_features: int, seed: int) -> None:
        import vowpalwabbit

        self.workspace = vowpalwabbit.Workspace(f"--cb_explore {n_arms} --squarecb --quiet --random_seed {seed}")
        self.draws = np.random.default_rng(seed)

    def learn_log(self, features: Any, arms: Any, rewards: Any, chances: Any) -> None:
        for row in zip(features, arms.tolist(), rewards.tolist(), chances.tolist(), strict=True):
            self.learn(*row)

    def choose(self, phi: Any, round_: int) -> tuple[int, float]:
        chances = np.array(self.workspace.predict(f"| {self.named(phi)}"))
        arm = int(min(np.searchsorted(np.cumsum(chances), self.draws.random() * chances.sum()), len(chances) - 1))
        return arm, float(chances[arm])

    def learn(self, phi: Any, arm: int, reward: float, chance: float) -> None:
        self.workspace.learn(f"{arm + 1}:{-reward}:{chance} | {self.named(phi)}")

    def named(self, phi: Any) -> str:
        """The features by name: numbers in their place would share weights without a word. It has its own constant."""
        return " ".join(f"f{at}:{value:.6g}" for at, value in enumerate(phi[1:].tolist()) if value)


class RefittedLogistic:
    """scikit-learn's logistic regression of each arm, fitted again and again on all of its rows, played greedily.

    An arm whose rewards are all the same is worth (sum + 1) / (rows + 2).
    """

    def __init__(self, n_arms: int, n_features: int) -> None:
        self.features: list[list[Any]] = [[] for _ in range(n_arms)]
        self.rewards: list[list[float]] = [[] for _ in range(n_arms)]
        self.fitted = [0] * n_arms
        self.weights = np.zeros((n_arms, n_features))

    def learn_log(self, features: Any, arms: Any, rewards: Any, chances: Any) -> None:
        for phi, arm, reward in zip(features, arms.tolist(), rewards.tolist(), strict=True):
            self.features[arm].append(phi)
            self.rewards[arm].append(reward)
        for arm in range(len(self.weights)):
            self.fit(arm)

    def choose(self, phi: Any, round_: int) -> tuple[int, float]:
        worth = 1.0 / (1.0 + np.exp(-(self.weights @ phi)))
        for arm, rewards in enumerate(self.rewards):
            if self.fitted[arm] == 0:
                worth[arm] = (sum(rewards) + 1.0) / (len(rewards) + 2.0)
        return int(np.argmax(worth)), 1.0

    def learn(self, phi: Any, arm: int, reward: float, chance: float) -> None:
        self.features[arm].append(phi)
        self.rewards[arm].append(reward)
        if len(self.rewards[arm]) > GROWTH * self.fitted[arm]:
            self.fit(arm)

    def fit(self, arm: int) -> None:
        from sklearn.linear_model import LogisticRegression

        if len(set(self.rewards[arm])) < 2:
            return
        self.fitted[arm] = len(self.rewards[arm])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of fits that end before they converge
            model = LogisticRegression(fit_intercept=False, max_iter=100)
            model.fit(np.array(self.features[arm]), np.array(self.rewards[arm]) > 0.5)
        self.weights[arm] = model.coef_[0]


class MABWiserUCB:
    """MABWiser's LinUCB, as its documentation has it."""

    def __init__(self, n_arms: int, n_features: int, seed: int) -> None:
        from mabwiser.mab import MAB, LearningPolicy

        self.bandit = MAB(list(range(n_arms)), LearningPolicy.LinUCB(alpha=1.0), seed=seed)
        nothing = np.zeros((n_arms, n_features))
        self.bandit.fit(np.arange(n_arms), np.zeros(n_arms), nothing)  # which it wants before it chooses

    def learn_log(self, features: Any, arms: Any, rewards: Any, chances: Any) -> None:
        if len(arms):
            self.bandit.partial_fit(arms, rewards, features)

    def choose(self, phi: Any, round_: int) -> tuple[int, float]:
        return int(self.bandit.predict(phi[None])), 1.0

    def learn(self, phi: Any, arm: int, reward: float, chance: float) -> None:
        self.bandit.partial_fit(np.array([arm]), np.array([reward]), phi[None])
