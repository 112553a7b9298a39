"""TreeUCB beside PyXAB's HCT and T_HOO: the same objectives, the same rewards, T = 10,000 rounds in two dimensions.

    make bench-peers                 20 seeds, most of an hour on two cores, nearly all of it T_HOO
    make bench-peers SEEDS=2         a first look
    make bench-peers WITHOUT=T_HOO   the others only, a few minutes
    make bench-peers ON=peak         one objective

Time is per pull and reward, as a ratio in one run; regret is the mean over seeds with its standard error. TreeUCB is
timed twice: one decision at a time from Python, as the peers are, and as a simulation, which the peers do not have.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from PyXAB.algos.HCT import HCT
from PyXAB.algos.HOO import T_HOO
from PyXAB.partition.BinaryPartition import BinaryPartition
from rich.console import Console
from rich.progress import track
from rich.table import Table

import artreplay as ar
from artreplay.engine.runs import mean_and_error

HORIZON = 10_000
DOMAIN = [[0.0, 1.0], [0.0, 1.0]]

Objective = Callable[[np.ndarray[Any, Any]], Any]


def peak(points: np.ndarray[Any, Any]) -> Any:
    """One peak with a constant slope."""
    return 1.0 - np.abs(points - np.array([0.3, 0.7])).max(axis=1)


def himmelblau(points: np.ndarray[Any, Any]) -> Any:
    """Four equal peaks on a smooth surface."""
    x, y = 10.0 * points[:, 0] - 5.0, 10.0 * points[:, 1] - 5.0
    return 1.0 - ((x * x + y - 11.0) ** 2 + (x + y * y - 7.0) ** 2) / 890.0


def ripples(points: np.ndarray[Any, Any]) -> Any:
    """Many peaks of nearly the same height."""
    distance = np.abs(points - np.array([0.62, 0.41])).max(axis=1)
    return (1.0 - distance) * (0.75 + 0.25 * np.cos(40.0 * distance))


OBJECTIVES: dict[str, Objective] = {"peak": peak, "himmelblau": himmelblau, "ripples": ripples}
ALGORITHMS: dict[str, Callable[[], Any]] = {
    "HCT": lambda: HCT(domain=DOMAIN, partition=BinaryPartition),
    "T_HOO": lambda: T_HOO(rounds=HORIZON, domain=DOMAIN, partition=BinaryPartition),
    "TreeUCB, ask and tell": lambda: ar.Ignorant(ar.TreeUCB(2, HORIZON)),
}


def environment(name: str) -> ar.environments.Metric:
    return ar.environments.Metric(OBJECTIVES[name], dim=2)


def play(task: tuple[str, str, int]) -> tuple[float, float]:
    """Regret, and seconds per round, of one algorithm on one objective with one seed; the objective is not timed."""
    algorithm, name, seed = task
    sys.setrecursionlimit(100_000)
    objective, made = OBJECTIVES[name], ALGORITHMS[algorithm]()
    own = algorithm.startswith("TreeUCB")
    rng = np.random.default_rng(seed)
    spent = regret = 0.0
    best = environment(name).optimum
    for round_ in range(1, HORIZON + 1):
        began = time.perf_counter()
        point = made.ask() if own else made.pull(round_)
        spent += time.perf_counter() - began
        mean = float(objective(np.array([point], dtype=float))[0])
        reward = float(rng.random() < mean)
        regret += best - mean
        began = time.perf_counter()
        if own:
            made.tell(point, reward)
        else:
            made.receive_reward(round_, reward)
        spent += time.perf_counter() - began
    return regret, spent / HORIZON


def simulated(name: str, seeds: int) -> tuple[list[float], float]:
    """The regrets of TreeUCB as a simulation, and seconds per round."""
    env, base = environment(name), ar.TreeUCB(2, HORIZON)
    ar.simulate(base, env, "ignorant", horizon=HORIZON, replications=1)  # compiles
    began = time.perf_counter()
    runs = ar.simulate(base, env, "ignorant", horizon=HORIZON, replications=seeds, threads=1, keep="final")
    return runs.regret[:, -1].tolist(), (time.perf_counter() - began) / (seeds * HORIZON)


def main() -> None:
    seeds = int(os.environ.get("SEEDS") or 20)
    chosen = [algorithm for algorithm in ALGORITHMS if algorithm not in os.environ.get("WITHOUT", "").split(",")]
    objectives = [name for name in OBJECTIVES if name in (os.environ.get("ON") or ",".join(OBJECTIVES)).split(",")]
    tasks = [(algorithm, name, seed) for name in objectives for algorithm in chosen for seed in range(seeds)]
    with ProcessPoolExecutor(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None) as pool:
        results = dict(zip(tasks, track(pool.map(play, tasks), total=len(tasks), description="playing"), strict=True))
    table = Table(title=f"T = {HORIZON:,}, two dimensions, Bernoulli rewards, {seeds} seeds")
    for column in ("objective", "algorithm", "regret", "µs a round", "simulated TreeUCB is faster by"):
        table.add_column(column, justify="left" if column in ("objective", "algorithm") else "right")
    for name in objectives:
        regrets, fast = simulated(name, seeds)
        rows = [(algorithm, [results[algorithm, name, seed] for seed in range(seeds)]) for algorithm in chosen]
        for algorithm, values in rows:
            seconds = min(each for _, each in values)
            regret = "{:,.0f} ± {:,.0f}".format(*mean_and_error([value for value, _ in values]))
            table.add_row(name, algorithm, regret, f"{seconds * 1e6:,.1f}", f"{seconds / fast:,.0f}×")
        regret = "{:,.0f} ± {:,.0f}".format(*mean_and_error(regrets))
        table.add_row(name, "TreeUCB, simulated", regret, f"{fast * 1e6:,.3f}", "")
        table.add_section()
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
