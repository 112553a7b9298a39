"""How often the intervals of `inspect --propensity` and `evaluate` hold, into docs/results/intervals.csv.

The table of docs/understand/log-worth.md is written from there by `decision_tables.py`.

    make bench-intervals                seven kinds of logs, a thousand of each; five minutes on two cores
    make bench-intervals WORLDS=100     a first look

Seeds are 0, 1, 2, …: nothing is chosen. Each log has two arms, and the interval is that of arm a, whose true value is
known. Beside it stands the interval that is usual: the normal one, by linearisation.
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from artreplay.engine.progress import Progress
from artreplay.inspecting import WeightedLog

FILE = Path(__file__).parent.parent / "docs" / "results" / "intervals.csv"
WORLDS = int(os.environ.get("WORLDS") or 1000)
FEW_ROWS, MANY_ROWS = 24, 1_000
RARE, HEAVIEST = 0.2, 100  # the share of contexts in which arm a is hardly ever chosen, and its weight there


class Log(NamedTuple):
    """What was played: arms, rewards, and the chance of each choice."""

    arms: np.ndarray
    rewards: np.ndarray
    chances: np.ndarray


class Setting(NamedTuple):
    """A kind of log, and what arm a truly earns in it."""

    name: str
    draw: Callable[[np.random.Generator], Log]
    truth: float


def with_rows(rows: int, rate: float) -> Callable[[np.random.Generator], Log]:
    """Arm a has this many rows, always with the same chance."""

    def draw(rng: np.random.Generator) -> Log:
        arms = np.array(["a"] * rows + ["b"] * (2 * rows))
        return Log(arms, (rng.random(3 * rows) < rate).astype(float), np.where(arms == "a", 1 / 3, 2 / 3))

    return draw


def with_heavy_weights(in_rare: float, in_common: float) -> Callable[[np.random.Generator], Log]:
    """Arm a is hardly ever chosen in a fifth of the contexts; its rate there and elsewhere."""

    def draw(rng: np.random.Generator) -> Log:
        is_rare = rng.random(MANY_ROWS) < RARE
        chance = np.where(is_rare, 1 / HEAVIEST, 0.5)
        is_a = rng.random(MANY_ROWS) < chance
        rewards = (rng.random(MANY_ROWS) < np.where(is_rare, in_rare, in_common)).astype(float)
        return Log(np.where(is_a, "a", "b"), rewards, np.where(is_a, chance, 1 - chance))

    return draw


SETTINGS = [
    *(Setting(f"{FEW_ROWS} rows, rate {rate:g}", with_rows(FEW_ROWS, rate), rate) for rate in (0.002, 0.01, 0.05)),
    Setting("1,000 rows, about 40 clicks", with_rows(MANY_ROWS, 0.04), 0.04),
    Setting("weights up to 100, clicks anywhere", with_heavy_weights(0.04, 0.04), 0.04),
    Setting("weights up to 100, clicks at the heavy ones", with_heavy_weights(0.2, 0.0), 0.04),
    Setting("weights up to 100, clicks at the light ones", with_heavy_weights(0.0, 0.05), 0.04),
]


def ours(log: Log) -> tuple[float, float]:
    """The interval that `inspect` shows."""
    rows = WeightedLog()
    rows.add(log.arms.tolist(), log.rewards, log.chances)
    found = rows.earnings().of("a").earns
    return found.low, found.high


def normal(log: Log) -> tuple[float, float]:
    """The usual interval of a self-normalised mean."""
    is_a = log.arms == "a"
    weights, rewards = 1 / log.chances[is_a], log.rewards[is_a]
    value = float((weights * rewards).sum() / weights.sum())
    half = 1.96 * math.sqrt(float((weights**2 * (rewards - value) ** 2).sum())) / float(weights.sum())
    return value - half, value + half


METHODS = {"inspect": ours, "normal": normal}


def measured(setting: Setting, worlds: int, report: Callable[[], None]) -> list[dict[str, object]]:
    """How often each interval holds, and how wide it is in the middle."""
    held, widths = dict.fromkeys(METHODS, 0), {name: np.zeros(worlds) for name in METHODS}
    for seed in range(worlds):
        log = setting.draw(np.random.default_rng(seed))
        for name, interval in METHODS.items():
            low, high = interval(log)
            held[name] += low <= setting.truth <= high
            widths[name][seed] = high - low
        report()
    return [
        {
            "part": "coverage",
            "setting": setting.name,
            "method": name,
            "worlds": worlds,
            "held": held[name] / worlds,
            "width": float(np.median(widths[name])),
        }
        for name in METHODS
    ]


def main() -> None:
    """Measure everything, and write it down."""
    done = [0]
    with Progress("logs", WORLDS * len(SETTINGS), lines=True) as progress:

        def report() -> None:
            done[0] += 1
            progress.update(done[0])

        rows = [row for setting in SETTINGS for row in measured(setting, WORLDS, report)]
    with FILE.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
