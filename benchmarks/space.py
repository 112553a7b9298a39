"""Every rule we have for points and budgets, beside a network, a Gaussian process on the whole log, and random ones.

    make bench-space                     everything with 8 seeds, in two processes: about half an hour on two idle cores
    make bench-space SEEDS=16 MINUTES=60 more seeds; after an hour nothing new is begun, and the next call goes on
    make bench-space SEEDS=3 ONLY="quadratic,hot;bernoulli" RULES="CellRegression;TreeAllocation"
    make bench-space TABLES=1            nothing is played: the docs are written from the results

Results go to benchmarks/space.csv, one line for each rule in each setting, with the number of seeds behind it; a line
that is there with at least as many seeds is kept. ONLY names domains, noises and logs as they stand in the file;
semicolons separate what must hold at once, commas what will do. RULES names rules.
Regret is after 1,000 rounds; time is what a round takes, of one process, with the log's reading in it. The network has
at most 3 seeds.
"""

from __future__ import annotations

import csv
import math
import os
import sys
import time
from collections.abc import Callable, Iterable
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import artreplay as ar
from artreplay.engine.runs import mean_and_error
from reproduction.algorithms import Regressor

HERE = Path(__file__).parent
RESULTS = HERE / "space.csv"
DOCS = HERE.parent / "docs"
SUMMARY, PAGE = DOCS / "how-to" / "continuous.md", DOCS / "results" / "space-results.md"
HORIZON, SIDE = 1_000, 32
EFFORT: dict[str, Any] = {"levels": (0.5, 1.0), "budget": 2.0, "max_units": 5}
THREE_LEVELS = (0.25, 0.5, 1.0)
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
# The same, on which no constant of ours was chosen.
UNSEEN: dict[str, Callable[[Points], Any]] = {
    "hills": lambda p: np.maximum(
        0.7 * np.exp(-((distance(p, 0.2, 0.25) / 0.15) ** 2)), 0.9 * np.exp(-((distance(p, 0.75, 0.7) / 0.2) ** 2))
    ),
    "valley": lambda p: 1.0 - 0.9 * np.exp(-(((p[:, 0] - p[:, 1]) / 0.25) ** 2)),
    "terraces": lambda p: 0.2 * np.floor(4.0 * p[:, 0]) + 0.1 * p[:, 1],
    "swirl": lambda p: 0.5 + 0.45 * np.sin(8.0 * distance(p, 0.3, 0.3)) * np.cos(3.0 * p[:, 0]),
    "peak": lambda p: 0.9 / (1.0 + (distance(p, 0.85, 0.15) / 0.2) ** 2),
}
# Of a place at a level: effort that saturates, two surfaces that have nothing to do with each other, and effort that is
# worth more in one corner than in the other; three levels each.
EFFORTS: dict[str, Callable[[Points, Any], Any]] = {
    "saturating": lambda p, level: 1.0 - np.exp(-3.0 * level * np.exp(-((distance(p, 0.3, 0.6) / 0.25) ** 2))),
    "crossed": lambda p, level: level * np.where(level > 0.6, p[:, 0], 1.0 - p[:, 0]),
    "corner": lambda p, level: level ** (0.3 + 1.4 * p[:, 0]) * np.exp(-((distance(p, 0.5, 0.4) / 0.4) ** 2)),
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
    """A Gaussian process of scikit-learn on the mean of each box at each level, fitted again at a tenth more samples.

    So it knows the whole log. It chooses by its mean and one standard deviation; its kernel is fixed.
    """

    def __init__(self, levels: tuple[float, ...] | None) -> None:
        import sklearn.gaussian_process  # noqa: F401, here and not in a round, because importing it draws at random

        self.levels = levels
        axis = (np.arange(SIDE) + 0.5) / SIDE
        self.places = np.stack([each.ravel() for each in np.meshgrid(axis, axis, indexing="ij")], axis=1)
        shape = (SIDE * SIDE, len(levels or (1.0,)))
        self.count, self.total, self.value = np.zeros(shape), np.zeros(shape), np.ones(shape)
        self.squares, self.fitted = 0.0, 0.0

    def update(self, unit: Any, reward: float) -> None:
        (x, y), level = (unit, 0) if self.levels is None else (unit[0], self.levels.index(unit[1]))
        box = min(int(x * SIDE), SIDE - 1) * SIDE + min(int(y * SIDE), SIDE - 1)
        self.count[box, level] += 1.0
        self.total[box, level] += reward
        self.squares += reward * reward

    def propose(self) -> Any:
        if self.count.sum() > 1.1 * self.fitted + 10:
            self.fit()
        if self.levels is None:
            return tuple(self.places[int(np.argmax(self.value[:, 0]))].tolist())
        values = self.value / max(1.0, float(self.value.max()))
        chosen = ar.algorithms.exact_choice(values, self.levels, EFFORT["budget"], EFFORT["max_units"])
        return [ar.Allocation(tuple(self.places[box].tolist()), self.levels[level]) for box, level in chosen]

    def fit(self) -> None:
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import RBF, ConstantKernel

        self.fitted = float(self.count.sum())
        efforts = np.array(self.levels or (1.0,))
        seen = self.count > 0
        box, level = np.nonzero(seen)
        mean = self.total[seen] / self.count[seen]
        centre = self.total.sum() / self.fitted
        noise = max(self.squares / self.fitted - float((self.count[seen] * mean**2).sum()) / self.fitted, 1e-3)
        kernel = ConstantKernel(0.1) * RBF([0.25, 0.25, 1.0])
        model = GaussianProcessRegressor(kernel, alpha=noise / self.count[seen], optimizer=None, random_state=0)
        model.fit(np.column_stack([self.places[box], efforts[level]]), mean - centre)
        for column, effort in enumerate(efforts):
            there = np.column_stack([self.places, np.full(len(self.places), effort)])
            expected, deviation = model.predict(there, return_std=True)
            self.value[:, column] = np.maximum(centre + expected + deviation, 0.0)


def of_allocation(levels: tuple[float, ...] = EFFORT["levels"]) -> dict[str, Callable[[], Any]]:
    known = {**EFFORT, "levels": levels, "horizon": HORIZON}
    return {
        "TreeAllocation": lambda: ar.TreeAllocation(2, epsilon=1 / SIDE, **known),
        "GridAllocation": lambda: ar.GridAllocation(2, cells_per_side=SIDE, **known),
        "CellRegression": lambda: ar.CellRegression(2, side=SIDE, **known),
        "CellRegression, joint": lambda: ar.CellRegression(2, side=SIDE, effort="joint", **known),
        "network": lambda: Regressor(dim=2, cells_per_side=SIDE, **EFFORT),
        "Gaussian process": lambda: KernelRegression(EFFORT["levels"]),
        "random": lambda: ar.RandomAllocation(2, cells_per_side=SIDE, **EFFORT),
    }


def of_points() -> dict[str, Callable[[], Any]]:
    return {
        "TreeUCB": lambda: ar.TreeUCB(2, HORIZON, 1 / SIDE),
        "TreeUCB, sharp": lambda: ar.TreeUCB(2, HORIZON, 1 / SIDE, rule="sharp"),
        "GridUCB": lambda: ar.GridUCB(2, HORIZON, SIDE),
        "PointRegression": lambda: ar.PointRegression(2, HORIZON, SIDE),
        "Gaussian process": lambda: KernelRegression(None),
        "HCT": lambda: None,
    }


NOT_EXACT = ("network", "Gaussian process", "random")  # these see the whole log
MAX_SEEDS = {"network": 3, "HCT": 3}  # of those that take long
SLOWEST = ("CellRegression, joint", "Gaussian process")
ON_UNSEEN = ("TreeAllocation", "CellRegression", "CellRegression, joint", "network", "Gaussian process")
JOINT = ("TreeAllocation", "CellRegression", "CellRegression, joint")  # compared where levels matter in other ways


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
    efforts = [Task(domain, "bernoulli", log, rule) for domain in EFFORTS for log in list(LOGS)[:4] for rule in JOINT]
    unseen = [Task(domain, "bernoulli", log, rule) for domain in UNSEEN for log in list(LOGS)[:4] for rule in ON_UNSEEN]
    return allocations + unseen + efforts + [task for task in points if task.rule != "HCT" or task.log == "0"]


def environment(task: Task) -> ar.environments.Metric:
    share = LOGS[task.log][1]
    if task.domain in POINTS:
        return ar.environments.Metric(POINTS[task.domain], dim=2, noise=task.noise, bad_share=share, finest=SIDE)
    if task.domain in EFFORTS:
        return ar.environments.Metric(EFFORTS[task.domain], dim=2, **{**EFFORT, "levels": THREE_LEVELS})
    at_full = {**SURFACES, **UNSEEN}[task.domain]
    return ar.environments.Metric(
        lambda points, levels: levels * at_full(points), dim=2, noise=task.noise, bad_share=share, **EFFORT
    )


def played(task: Task, seeds: int) -> list[Any]:
    """One line of the file."""
    env, rows = environment(task), LOGS[task.log][0]
    if task.rule == "HCT":
        regrets, used, seconds = hct(env, task, seeds)
    else:
        rules = of_points() if task.domain in POINTS else of_allocation()
        base = (of_allocation(THREE_LEVELS) if task.domain in EFFORTS else rules)[task.rule]()
        start = "ignorant" if rows == 0 else "full-start" if task.rule in NOT_EXACT else "artificial-replay"
        once: Any = {"threads": 1, "keep": "final"}
        with ar.compiling.using("compiled"):
            ar.simulate(base, env, start, history=min(rows, 10), horizon=2, replications=1, **once)
            began = time.process_time()
            runs = ar.simulate(base, env, start, history=rows, horizon=HORIZON, replications=seeds, seed=1, **once)
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
    if not seeds:
        return "Not played yet."
    return "\n".join([*lines, "", f"Seeds for each number: {' to '.join(map(str, sorted({seeds[0], seeds[-1]})))}."])


class Compared(NamedTuple):
    """One rule against another, over the settings in which both were played."""

    lower: list[Task]  # by more than two standard errors of the difference
    higher: list[Task]
    settings: int
    ratio: float  # the geometric mean of (regret + 5) over (regret + 5)


def compared(results: dict[Task, list[str]], rule: str, other: str, domains: Iterable[str]) -> Compared:
    lower, higher, logs = [], [], []
    for task in tasks():
        rival = results.get(task._replace(rule=other))
        if task.rule == rule and task.domain in domains and task in results and rival is not None:
            (mine, error), (theirs, doubt) = regret_of(results[task]), regret_of(rival)
            logs.append(math.log((mine + 5.0) / (theirs + 5.0)))
            if abs(mine - theirs) > 2.0 * math.hypot(error, doubt):
                (lower if mine < theirs else higher).append(task)
    return Compared(lower, higher, len(logs), math.exp(sum(logs) / len(logs)) if logs else math.nan)


def regret_of(line: list[str]) -> tuple[float, float]:
    return float(line[5]), float(line[6])


def losses(results: dict[Task, list[str]], rule: str, others: list[str], domains: Iterable[str]) -> list[str]:
    """Where a rule is higher than one of the others by more than two standard errors, in words."""
    found: dict[Task, list[str]] = {}
    for other in others:
        for task in compared(results, rule, other, domains).higher:
            found.setdefault(task, []).append(f"{other} {cell_text(results[task._replace(rule=other)])}")
    return [
        f"- {task.domain}, {'Bernoulli' if task.noise == 'bernoulli' else 'no noise'}, log of {task.log}: "
        f"{cell_text(results[task])} against {', '.join(rivals)}"
        for task, rivals in found.items()
    ]


def verdict(results: dict[Task, list[str]], rule: str, others: list[str], domains: Iterable[str], goal: str) -> str:
    """How often a rule is not beaten, by how much it is lower, and where it is not."""
    known = [task for task in tasks() if task.rule == rule and task.domain in domains and task in results]
    if not known:
        return ""
    lost = losses(results, rule, others, domains)
    ratios = []
    for other in others:
        found = compared(results, rule, other, domains)
        counts = f"lower in {len(found.lower)}, higher in {len(found.higher)} of {found.settings}"
        ratios.append(f"{found.ratio:.2f} of the regret of {other} ({counts})")
    words = f"`{rule}` is not beaten by {' or '.join(others)}, by more than two standard errors, in "
    words += f"{len(known) - len(lost)} of {len(known)} settings{goal}. It has {'; '.join(ratios)}."
    return "\n".join([*([f"{words} It loses here:", "", *lost] if lost else [words]), ""])


def in_short(results: dict[Task, list[str]], rule: str, other: str, domains: Iterable[str], log: str = "") -> str:
    """How one rule compares with another, in a sentence; over logs whose name has `log` in it."""
    found = compared({task: line for task, line in results.items() if log in task.log}, rule, other, domains)
    where = f" over {log} logs" if log else ""
    counts = f"lower in {len(found.lower)}, higher in {len(found.higher)} of {found.settings}"
    return f"`{rule}` has {found.ratio:.2f} of the regret of {other}{where} ({counts})." if found.settings else ""


def with_a_tenth(results: dict[Task, list[str]]) -> str:
    """Whether a regression needs a long log to be better than a tree with one."""
    ours = [task for task in results if (task.log, task.rule) == ("3000", "CellRegression") and task.domain in SURFACES]
    pairs = [(task, task._replace(log="30000", rule="TreeAllocation")) for task in ours]
    lower = [float(results[mine][5]) < float(results[tree][5]) for mine, tree in pairs if tree in results]
    words = "With 3,000 rows CellRegression has a lower mean than TreeAllocation with 30,000"
    return f"{words} in {sum(lower)} of {len(lower)} domains."


def summary(results: dict[Task, list[str]]) -> str:
    """What the results say about the goals, losses first."""
    joint = "CellRegression, joint"
    goal = " (the goal was 62 of 72, and a quarter of the regret of each)"
    parts = [
        verdict(results, "CellRegression", ["TreeAllocation", "network"], list(SURFACES), goal),
        verdict(results, joint, ["TreeAllocation", "network"], list(SURFACES), " (the same goal)"),
        "On five surfaces that we did not use to choose our constants:\n",
        verdict(results, "CellRegression", ["TreeAllocation", "network", "Gaussian process"], list(UNSEEN), ""),
        verdict(results, joint, ["TreeAllocation", "network", "Gaussian process"], list(UNSEEN), ""),
        verdict(results, "PointRegression", ["TreeUCB, sharp", "HCT"], list(POINTS), " (the goal was 18 of 24)"),
        "Compared with a Gaussian process on the whole log, which is a few lines of scikit-learn:\n",
        verdict(results, "CellRegression", ["Gaussian process"], list(SURFACES), ""),
        verdict(results, "PointRegression", ["Gaussian process"], list(POINTS), ""),
    ]
    others = [
        with_a_tenth(results),
        in_short(results, joint, "CellRegression", list(SURFACES)),
        in_short(results, joint, "CellRegression", list(SURFACES), "imbalanced"),
        in_short(results, joint, "CellRegression", list(EFFORTS)).replace(" (", " with three levels of effort ("),
        in_short(results, "TreeUCB, sharp", "TreeUCB", list(POINTS)),
    ]
    parts.append("\n".join(["Other comparisons:", "", *(f"- {words}" for words in others if words), ""]))
    return "\n".join(part for part in parts if part)


def documents() -> dict[Path, str]:
    """The page of tables, and the one with the summary between its marks, as they are written from the results."""
    results, text = read(), SUMMARY.read_text(encoding="utf-8")
    mark = "<!-- space -->"
    first, last = text.find(mark), text.rfind(mark)
    text = f"{text[:first]}{mark}\n{summary(results)}{text[last:]}"
    words = (
        "This page is for looking up a number behind [points, grids, trees and budgets](../how-to/continuous.md), "
        "or one that the page leaves out. Each table has the regret after 1,000 rounds, mean ± standard error, by "
        "the number of rows in the log. Where there is a budget, it is 2, for up to five places at levels {½, 1}, "
        "or at three levels {¼, ½, 1} where it says so. The space has 32 × 32 boxes. Imbalanced logs have seven "
        "rows in ten where the mean is in its lowest fifth. Ours are played by Artificial Replay. The network, the "
        "Gaussian process and chance see the whole log. What is empty was not played. `make bench-space` writes "
        "this page from benchmarks/space.csv."
    )
    parts = [
        "# Points and budgets: all results",
        words,
        *("## A budget over places, Bernoulli rewards", table(results, list(SURFACES), "bernoulli")),
        *("## The same without noise", table(results, list(SURFACES), "none")),
        *("## Surfaces on which no constant was chosen", table(results, list(UNSEEN), "bernoulli")),
        *("## Effort that matters in other ways, three levels", table(results, list(EFFORTS), "bernoulli")),
        *("## Single points, Bernoulli rewards", table(results, list(POINTS), "bernoulli")),
    ]
    return {SUMMARY: text, PAGE: "\n\n".join(part.strip() for part in parts) + "\n"}


def line_of(job: tuple[Task, int, float]) -> list[Any] | None:
    """One line of the file, in a process of its own; None where something is not installed, or time is up."""
    task, seeds, until = job
    try:
        return played(task, seeds) if time.time() < until else None
    except ImportError as error:
        print(f"{task.rule} is left out: {error}", file=sys.stderr)
        return None


def jobs(results: dict[Task, list[Any]], until: float) -> Iterable[tuple[Task, int, float]]:
    """What is to be played, with how many seeds, and begun until when; the slowest come last."""
    seeds = int(os.environ.get("SEEDS") or 8)
    only = [each for each in (os.environ.get("ONLY") or "").split(";") if each]
    rules = [each for each in (os.environ.get("RULES") or "").split(";") if each]
    for task in sorted(tasks(), key=lambda task: SLOWEST.index(task.rule) if task.rule in SLOWEST else -1):
        count = min(seeds, MAX_SEEDS.get(task.rule, seeds))
        wanted = all(any(each in task for each in group.split(",")) for group in only)
        known = task in results and int(results[task][4]) >= count
        if wanted and not known and (not rules or task.rule in rules):
            yield task, count, until


def main() -> None:
    results: dict[Task, list[Any]] = dict(read())
    if not os.environ.get("TABLES"):
        until = time.time() + 60 * float(os.environ.get("MINUTES") or 600)
        with get_context("spawn").Pool(int(os.environ.get("PROCESSES") or 2)) as pool:
            for line in pool.imap_unordered(line_of, jobs(results, until)):
                if line is not None:
                    results[Task(*line[:4])] = line
                    print(",".join(map(str, line)), flush=True)
                    write(results)
    for path, text in documents().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
