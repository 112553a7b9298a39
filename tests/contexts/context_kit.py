"""What the tests of contexts share: random contexts, and a plain fold of a regression of the context in numpy."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np

import artreplay as ar
from artreplay.streams import POSTERIOR, fold, normal


class PlainFit:
    """One logistic regression that learns row by row."""

    def __init__(self, size: int, rate: float | None = None) -> None:
        self.weights = np.zeros(size)
        self.covariance = np.diag([10.0] + [1.0] * (size - 1))
        if rate is not None:
            self.weights[0] = math.log(rate / (1.0 - rate))
            self.covariance = np.diag([1.0] + [0.03] * (size - 1))
        self.error = 0.0

    def forecast(self, phi: Any) -> float:
        return sigma(self.weights @ phi)

    def learn(self, phi: Any, reward: float) -> None:
        p = self.forecast(phi)
        self.error += (reward - p) ** 2
        u, h = self.covariance @ phi, p * (1 - p)
        k = 1 + h * max(0.0, u @ phi)
        self.covariance = self.covariance - h / k * np.outer(u, u)
        self.weights = self.weights + (reward - p) / k * u


def sigma(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-min(30.0, max(-30.0, float(x)))))


def plain_features(contexts: ar.Contexts, context: dict[str, Any]) -> list[Any]:
    """The features of both maps, from the specification."""
    phi = [1.0]
    for name, scale in contexts.numeric.items():
        value = context[name]
        gone = value is None or value != value
        phi.append(0.0 if gone else min(3.0, max(-3.0, (value - scale.centre) / scale.width)))
        if scale.missing:
            phi.append(float(gone))
    for name, values in contexts.categories.items():
        if name not in contexts.segments:
            value = context[name]
            place = values.index(value) if value in values else len(values)
            phi += [float(place == at) for at in range(len(values) + 1)]
    linear = np.array(phi)
    if contexts.cosines == 0:
        return [linear]
    angles = contexts.frequencies @ linear[1:] + contexts.shifts
    return [linear, np.concatenate([linear, math.sqrt(8 / contexts.cosines) * np.cos(angles)])]


class PlainRegression:
    """A fold of the journal, row by row, written from the specification and not from the code."""

    def __init__(
        self,
        arms: int,
        contexts: ar.Contexts,
        explore: str = "ucb",
        trust: str = "auto",
        alpha: float | None = None,
        seed: int = 0,
        rate: float | None = None,
    ) -> None:
        self.rate = rate
        self.arms, self.contexts, self.explore, self.trust, self.seed = arms, contexts, explore, trust, seed
        self.alpha = {"ucb": 1.0, "thompson": 0.5, "greedy": 0.0}[explore] if alpha is None else alpha
        self.cells: dict[Any, dict[str, Any]] = {}

    def cell(self, arm: int, context: dict[str, Any]) -> dict[str, Any]:
        segment = tuple(self.segment_code(name, context[name]) for name in self.contexts.segments)
        if (arm, segment) not in self.cells:
            sizes = [len(phi) for phi in plain_features(self.contexts, context)]
            fits = {q: [PlainFit(size, self.rate) for size in sizes] for q in SOURCES}
            one = {q: {"fits": fits[q], "n": 0, "sum": 0.0, "trial": 0.0} for q in SOURCES}
            self.cells[arm, segment] = one
        return self.cells[arm, segment]

    def segment_code(self, name: str, value: Any) -> int:
        values = self.contexts.categories[name]
        return values.index(value) if value in values else len(values)

    def segment_number(self, context: dict[str, Any]) -> int:
        number = 0
        for name in self.contexts.segments:
            number = number * (len(self.contexts.categories[name]) + 1) + self.segment_code(name, context[name])
        return number

    def show(self, arm: int, reward: float, context: dict[str, Any], played: bool) -> None:
        cell, maps = self.cell(arm, context), plain_features(self.contexts, context)
        for name in SOURCES if played else SOURCES[:1]:
            source = cell[name]
            best = min(range(len(maps)), key=lambda at: source["fits"][at].error)
            if played:
                source["trial"] += (reward - source["fits"][best].forecast(maps[best])) ** 2
            for fit, phi in zip(source["fits"], maps, strict=True):
                fit.learn(phi, reward)
            source["n"] += 1
            source["sum"] += reward

    def worth(self, arm: int, context: dict[str, Any], round_: int, m: int = 0) -> float:
        cell, maps = self.cell(arm, context), plain_features(self.contexts, context)
        every, online = cell["all"], cell["online"]
        g = (every["sum"] + 1) / (every["n"] + 2)
        doubted = every["trial"] - online["trial"] > 8 * g * (1 - g) + 0.01 * online["n"]
        source = online if self.trust == "auto" and doubted else every
        if source["n"] == 0 and m == 0:
            return 1.0
        best = min(range(len(maps)), key=lambda at: source["fits"][at].error)
        fit, phi = source["fits"][best], maps[best]
        p, s = fit.forecast(phi), max(0.0, float(phi @ fit.covariance @ phi))
        s = s / (1 + m * p * (1 - p) * s)
        c = self.alpha
        if self.explore == "thompson":
            number = arm * self.contexts.n_segments + self.segment_number(context)
            with np.errstate(over="ignore"):
                key = np.uint64(fold(self.seed))
                c *= float(normal(key, POSTERIOR, number, round_, 0.0, 1.0, -math.inf, math.inf))
        return sigma(fit.weights @ phi + c * math.sqrt(s))


SOURCES = ("all", "online")


def random_contexts(g: random.Random, cosines: int = 4) -> ar.Contexts:
    """Frozen contexts with one number and two categories, one of them perhaps the segment."""
    return ar.Contexts(
        {"age": ar.Numeric(0, 2, missing=g.random() < 0.5)},
        {"country": ["NL", "DE"], "device": ["phone", "desk"]},
        segments=g.choice([[], ["country"]]),
        cosines=g.choice([0, cosines]),
        seed=g.randrange(5),
    )


def random_context(g: random.Random) -> dict[str, Any]:
    """A context with ties, unseen and missing values."""
    return {
        "age": g.choice([0.0, 1.0, 2.0, None]),
        "country": g.choice(["NL", "DE", "FR"]),
        "device": g.choice(["phone", "desk", None]),
    }
