"""Every rule we have for points and budgets, beside a network, a Gaussian process on the whole log, and random ones.

    make bench-space                     everything: 16 seeds, hours on two cores
    make bench-space SEEDS=3             a first look
    make bench-space SEEDS=3 ONLY="quadratic,hot;bernoulli" RULES="CellRegression;TreeAllocation"
    make bench-space TABLES=1            nothing is played: the tables of docs/continuous.md are made from the results

Results go to benchmarks/space.csv, one line for each rule in each setting, with the number of seeds behind it; a line
that is there is replaced if it is played with at least as many seeds. ONLY names domains, noises and logs as they stand
in the file; semicolons separate what must hold at once, commas what will do. RULES names rules.
Regret is after 1,000 rounds; time is what a round takes, of one process, with the log's reading in it.
"""

from __future__ import annotations

import csv
import math
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import artreplay as ar
from artreplay.engine.runs import mean_and_error

HERE = Path(__file__).parent
RESULTS, DOCS = HERE / "space.csv", HERE.parent / "docs" / "continuous.md"
HORIZON, SIDE = 1_000, 32
EFFORT = {"levels": (0.5, 1.0), "budget": 2.0, "max_units": 5}
SPOTS = np.array([[0.13, 0.82], [0.31, 0.22], [0.58, 0.61], [0.77, 0.11], [0.91, 0.87]])

Points = np.ndarray[Any, Any]


def distance(points: Points, *centre: float) -> Any:
    return np.sqrt(((points - np.array(centre)) ** 2).sum(axis=1))


def himmelblau(points: Points) -> Any:
    x, y = 10.0 * points[:, 0] - 5.0, 10.0 * points[:, 1] - 5.0
    return 1.0 - ((x * x + y - 11.0) ** 2 + (x + y * y - 7.0) ** 2) / 890.0


# Of a place at full effort; a level of effort multiplies it, except where the name says that it does not.
SURFACES: dict[str, Callable[[Points], Any]] = {
    "quadratic": lambda p: 1.0 - distance(p, 0.5, 0.5) ** 2,
    "pwl": lambda p: p.mean(axis=1),
    "offquad": lambda p: np.clip(1.0 - 1.5 * distance(p, 0.23, 0.71) ** 2, 0.0, 1.0),
    "hot": lambda p: np.max([np.exp(-((distance(p, *spot) / 0.05) ** 2)) for spot in SPOTS], axis=0),
    "rare": lambda p: 0.05 * np.exp(-((distance(p, 0.65, 0.35) / 0.3) ** 2)),
    "ridge": lambda p: np.exp(-(((p[:, 0] + 0.6 * p[:, 1] - 0.8) / 0.1) ** 2)),
}
POINTS: dict[str, Callable[[Points], Any]] = {
    "point quadratic": lambda p: 1.0 - distance(p, 0.5, 0.5) ** 2,
    "two bumps": lambda p: np.maximum(
        0.8 * np.exp(-(distance(p, 0.25, 0.25) ** 2) / 0.02), np.exp(-(distance(p, 0.8, 0.7) ** 2) / 0.002)
    ),
    "himmelblau": himmelblau,
    "plane": lambda p: p.mean(axis=1),
    "sines": lambda p: 0.5 + 0.25 * (np.sin(7.0 * p[:, 0]) + np.sin(9.0 * p[:, 1] + 1.0)),
    "cone": lambda p: 1.0 - distance(p, 0.37, 0.62),
}
LOGS: dict[str, tuple[int, float | None]] = {
    "0": (0, None),
    "300": (300, None),
    "3000": (3_000, None),
    "30000": (30_000, None),
    "3000 imbalanced": (3_000, 0.7),
    "30000 imbalanced": (30_000, 0.7),
}
COLUMNS = ("domain", "noise", "log", "rule", "seeds", "regret", "error", "used", "milliseconds")


class KernelRegression:
    """A Gaussian process of scikit-learn on at most 2,000 samples, fitted again when a tenth more was seen."""

    def __init__(self, levels: tuple[float, ...] | None, seed: int = 0) -> None:
        self.levels, self.seed = levels, seed
        axis = (np.arange(SIDE) + 0.5) / SIDE
        places = np.stack([each.ravel() for each in np.meshgrid(axis, axis, indexing="ij")], axis=1)
        self.places = places
        self.rows: list[list[float]] = []
        self.rewards: list[float] = []
        self.fitted, self.value = 0, np.ones((len(places), len(levels or (1.0,))))

    def update(self, unit: Any, reward: float) -> None:
        point, level = (unit, 1.0) if self.levels is None else unit
        self.rows.append([*point, level])
        self.rewards.append(reward)

    def propose(self) -> Any:
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import RBF, WhiteKernel

        if len(self.rows) > 1.1 * self.fitted + 10:
            self.fitted = len(self.rows)
            kept = np.random.default_rng(self.seed).permutation(len(self.rows))[:2_000]
            kernel = RBF([0.2, 0.2, 0.5]) + WhiteKernel(0.1)
            model = GaussianProcessRegressor(kernel, optimizer=None, normalize_y=True)
            model.fit(np.array(self.rows)[kept], np.array(self.rewards)[kept])
            for column, level in enumerate(self.levels or (1.0,)):
                there = np.column_stack([self.places, np.full(len(self.places), level)])
                mean, deviation = model.predict(there, return_std=True)
                self.value[:, column] = np.clip(mean + deviation, 0.0, 1.0)
        if self.levels is None:
            return tuple(self.places[int(np.argmax(self.value[:, 0]))].tolist())
        chosen = ar.algorithms.exact_choice(self.value, self.levels, EFFORT["budget"], EFFORT["max_units"])
        return [ar.Allocation(tuple(self.places[box].tolist()), self.levels[level]) for box, level in chosen]


def of_allocation() -> dict[str, Callable[[], Any]]:
    known = {**EFFORT, "horizon": HORIZON}
    return {
        "TreeAllocation": lambda: ar.TreeAllocation(2, epsilon=1 / SIDE, **known),
        "GridAllocation": lambda: ar.GridAllocation(2, cells_per_side=SIDE, **known),
        "CellRegression": lambda: ar.CellRegression(2, side=SIDE, **known),
        "CellRegression, cells=2": lambda: ar.CellRegression(2, side=SIDE, cells=2, **known),
        "CellRegression, joint": lambda: ar.CellRegression(2, side=SIDE, effort="joint", **known),
        "network": lambda: ar.Regressor(dim=2, cells_per_side=SIDE, **EFFORT),
        "Gaussian process": lambda: KernelRegression(EFFORT["levels"]),
        "random": lambda: ar.RandomAllocation(2, cells_per_side=SIDE, **EFFORT),
    }


def of_points() -> dict[str, Callable[[], Any]]:
    return {
        "TreeUCB": lambda: ar.TreeUCB(2, HORIZON, 1 / SIDE),
        "TreeUCB, sharp": lambda: ar.TreeUCB(2, HORIZON, 1 / SIDE, rule="sharp"),
        "GridUCB": lambda: ar.GridUCB(2, HORIZON, SIDE),
        "PointRegression": lambda: ar.PointRegression(2, HORIZON, SIDE),
        "PointRegression, cells=2": lambda: ar.PointRegression(2, HORIZON, SIDE, 2),
        "Gaussian process": lambda: KernelRegression(None),
        "HCT": lambda: None,
    }


NOT_COUPLED = ("network", "Gaussian process", "random")  # these see the whole log
SLOW = ("network", "Gaussian process", "HCT")  # three seeds at most


class Task(NamedTuple):
    """A rule in a setting."""

    domain: str
    noise: str
    log: str
    rule: str


def tasks() -> list[Task]:
    """Everything there is to play, in the order of the file."""
    allocations = [
        Task(domain, noise, log, rule)
        for domain in SURFACES
        for noise in ("bernoulli", "none")
        for log in LOGS
        for rule in of_allocation()
    ]
    points = [
        Task(domain, "bernoulli", log, rule) for domain in POINTS for log in list(LOGS)[:4] for rule in of_points()
    ]
    return allocations + [task for task in points if task.rule != "HCT" or task.log == "0"]


def environment(task: Task) -> ar.environments.Metric:
    share = LOGS[task.log][1]
    if task.domain in POINTS:
        return ar.environments.Metric(POINTS[task.domain], dim=2, noise=task.noise, bad_share=share, finest=SIDE)
    at_full = SURFACES[task.domain]
    return ar.environments.Metric(
        lambda points, levels: levels * at_full(points), dim=2, noise=task.noise, bad_share=share, **EFFORT
    )


def played(task: Task, seeds: int) -> list[Any]:
    """One line of the file."""
    env, rows = environment(task), LOGS[task.log][0]
    if task.rule == "HCT":
        regrets, used, seconds = hct(env, task, seeds)
    else:
        base = {**of_points(), **of_allocation()}[task.rule]() if task.domain in SURFACES else of_points()[task.rule]()
        start = "ignorant" if rows == 0 else "full-start" if task.rule in NOT_COUPLED else "artificial-replay"
        ar.simulate(base, env, start, history=min(rows, 10), horizon=2, replications=1, threads=1, keep="final")
        began = time.process_time()
        runs = ar.simulate(
            base, env, start, history=rows, horizon=HORIZON, replications=seeds, seed=1, threads=1, keep="final"
        )
        seconds = time.process_time() - began
        regrets, used = runs.regret[:, -1].tolist(), float(runs.used[:, -1].mean())
    mean, error = mean_and_error(regrets)
    return [*task, seeds, f"{mean:.2f}", f"{error:.2f}", f"{used:.0f}", f"{1e3 * seconds / (seeds * HORIZON):.4f}"]


def hct(env: Any, task: Task, seeds: int) -> tuple[list[float], float, float]:
    """PyXAB's HCT, which takes no log; where it is not installed the rule is left out."""
    from PyXAB.algos.HCT import HCT
    from PyXAB.partition.BinaryPartition import BinaryPartition

    regrets, began = [], time.process_time()
    for seed in range(seeds):
        made, rng, regret = (
            HCT(domain=[[0.0, 1.0], [0.0, 1.0]], partition=BinaryPartition),
            np.random.default_rng(seed),
            0.0,
        )
        for round_ in range(1, HORIZON + 1):
            mean = float(POINTS[task.domain](np.array([made.pull(round_)], dtype=float))[0])
            regret += env.optimum - mean
            made.receive_reward(round_, float(rng.random() < mean))
        regrets.append(regret)
    return regrets, 0.0, time.process_time() - began


def read() -> dict[Task, list[str]]:
    if not RESULTS.exists():
        return {}
    with RESULTS.open(newline="", encoding="utf-8") as file:
        lines = list(csv.reader(file))[1:]
    return {Task(*line[:4]): line for line in lines}


def write(results: dict[Task, list[Any]]) -> None:
    order = {task: number for number, task in enumerate(tasks())}
    with RESULTS.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(results[task] for task in sorted(results, key=lambda task: order.get(task, math.inf)))


def cell_text(line: list[str] | None) -> str:
    return "" if line is None else f"{float(line[5]):,.0f} ± {float(line[6]):,.0f}"


def table(results: dict[Task, list[str]], domains: list[str], noise: str) -> str:
    """Regret in Markdown: one row for each domain and rule, one column for each log."""
    kept = {task: line for task, line in results.items() if task.domain in domains and task.noise == noise}
    logs = [log for log in LOGS if any(task.log == log for task in kept)]
    rules = [
        rule for rule in dict.fromkeys((*of_allocation(), *of_points())) if any(task.rule == rule for task in kept)
    ]
    seeds = sorted({int(line[4]) for line in kept.values()})
    lines = [f"| domain | rule | {' | '.join(logs)} | rows read of the longest | ms a round |"]
    lines.append("| --- " * (len(logs) + 4) + "|")
    for domain in domains:
        for rule in rules:
            row = [kept.get(Task(domain, noise, log, rule)) for log in logs]
            there = [line for line in row if line is not None]
            if there:
                cells = " | ".join(map(cell_text, row))
                lines.append(f"| {domain} | {rule} | {cells} | {int(there[-1][7]):,} | {float(there[-1][8]):.2f} |")
    return "\n".join(
        [*lines, "", f"Seeds behind a number: {' to '.join(map(str, {seeds[0], seeds[-1]}))}." if seeds else ""]
    )


def write_tables() -> None:
    """Put the tables between their marks in the docs."""
    results, text = read(), DOCS.read_text(encoding="utf-8")
    made = {
        "allocation": table(results, list(SURFACES), "bernoulli"),
        "without noise": table(results, list(SURFACES), "none"),
        "points": table(results, list(POINTS), "bernoulli"),
    }
    for name, lines in made.items():
        mark = f"<!-- space: {name} -->"
        first, last = text.find(mark), text.rfind(mark)
        if first < last:
            text = f"{text[:first]}{mark}\n{lines}\n{text[last:]}"
    DOCS.write_text(text, encoding="utf-8")


def main() -> None:
    if os.environ.get("TABLES"):
        write_tables()
        return
    seeds = int(os.environ.get("SEEDS") or 16)
    only = [each for each in (os.environ.get("ONLY") or "").split(";") if each]
    rules = [each for each in (os.environ.get("RULES") or "").split(";") if each]
    results: dict[Task, list[Any]] = dict(read())
    for task in tasks():
        if only and not all(any(each in task for each in group.split(",")) for group in only):
            continue
        if rules and task.rule not in rules:
            continue
        count = min(seeds, 3) if task.rule in SLOW else seeds
        if task in results and int(results[task][4]) > count:
            continue
        try:
            results[task] = played(task, count)
        except ImportError as error:
            print(f"{task.rule} is left out: {error}", file=sys.stderr)
            continue
        print(",".join(map(str, results[task])), flush=True)
        write(results)
    write_tables()


if __name__ == "__main__":
    main()
