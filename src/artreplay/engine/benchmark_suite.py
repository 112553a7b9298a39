"""A benchmark of ways to start from a log: worlds and logs as data, and `benchmark`, which adds an algorithm."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from artreplay.algorithms import MonUCB
from artreplay.compiling import Floats, compiled
from artreplay.engine.comparing import OF_THE_WORLDS
from artreplay.engine.runs import mean_and_error
from artreplay.engine.simulate import simulate
from artreplay.environments import KArmed, OwnEnvironment, logs, world_keys
from artreplay.errors import InvalidParameter
from artreplay.history import History, Totals
from artreplay.parameters import Positive, checked
from artreplay.streams import MEANS, THETA, uniform, uniforms

RESULTS = Path(__file__).with_name("benchmark_results.csv")
ARMS = 10
WORLDS = 100
LONGEST_DELAY = 400  # rounds

Make = Callable[[int, int], Any]  # an algorithm, or arguments of `simulate`, for some arms and rounds


class Line(NamedTuple):
    """What an algorithm did in an experiment: the means over worlds, with the standard error of the regret."""

    experiment: str
    algorithm: str
    worlds: int
    regret: float
    error: float
    read: float


@compiled
class Changing(NamedTuple):
    """A world whose means are drawn anew in one round."""

    means: Floats  # (before and after, arm)
    change: int

    @property
    def n_arms(self) -> int:
        """The number of arms."""
        return int(self.means.shape[1])

    def enter(self, key: np.uint64) -> None:
        """Draw the means of a world."""
        for phase in range(2):
            for arm in range(self.means.shape[1]):
                self.means[phase, arm] = uniform(key, MEANS, phase, arm)

    def mean(self, arm: int, round_: int) -> float:
        """The mean reward of an arm."""
        value: float = self.means[1 if round_ >= self.change else 0, arm]
        return value

    def reward(self, arm: int, round_: int, u: float) -> float:
        """A reward of 0 or 1."""
        return 1.0 if u < self.mean(arm, round_) else 0.0


@compiled
class Censored(NamedTuple):
    """A world that tells some rewards of 1 as 0, since they are late: of each arm another share. Its logs are whole."""

    means: Floats
    seen: Floats  # which share of the rewards of 1 is told

    @property
    def n_arms(self) -> int:
        """The number of arms."""
        return len(self.means)

    def enter(self, key: np.uint64) -> None:
        """Draw the means and the shares of a world."""
        for arm in range(len(self.means)):
            self.means[arm] = uniform(key, MEANS, 0, arm)
            self.seen[arm] = 0.6 + 0.4 * uniform(key, THETA, 0, arm)

    def mean(self, arm: int, round_: int) -> float:
        """The mean of what an arm earns, told or not."""
        value: float = self.means[arm]
        return value

    def reward(self, arm: int, round_: int, u: float) -> float:
        """A reward of 0 or 1, as it is told."""
        told = self.means[arm] * (self.seen[arm] if round_ >= 0 else 1.0)
        return 1.0 if u < told else 0.0


class Delayed:
    """A world whose rewards are late by 50 rounds on average."""

    n_arms = ARMS

    def enter(self, key: int) -> None:
        """Draw the means of a world."""
        self._means = uniforms(np.array([key], np.uint64), MEANS, ARMS)[0].tolist()

    def mean(self, arm: int, round_: int) -> float:
        """The mean reward of an arm."""
        value: float = self._means[arm]
        return value

    def reward(self, arm: int, round_: int, u: float) -> float:
        """A reward of 0 or 1."""
        return float(u < self._means[arm])

    def delay(self, arm: int, round_: int, u: float) -> int:
        """How many rounds the reward takes."""
        return min(int(-50.0 * math.log(u)), LONGEST_DELAY)


class Rare(KArmed):
    """Arms with means of at most 5 %."""

    def draw_means(self, keys: Any) -> Floats:
        """Draw the means."""
        means: Floats = 0.05 * uniforms(keys, MEANS, self.n_arms)
        return means


@dataclass(frozen=True)
class Experiment:
    """A world, a log and a number of rounds."""

    name: str
    group: str
    log: Any = "uniform"
    world: Callable[[Any], Any] = field(default=lambda log: KArmed(ARMS, log=log))
    rows: int = 1_000
    horizon: int = 2_000
    restarts: bool = False  # in the middle everything is lost but the log, which has the online rewards as well
    worlds: int = WORLDS


HONEST, WRONG, ONLINE = "honest logs", "wrong logs", "trouble online"
EXPERIMENTS = (
    Experiment("uniform", HONEST),
    Experiment("90 % on bad arms", HONEST, logs.Shares(bad_share=0.9)),
    Experiment("ε-greedy", HONEST, logs.EpsilonGreedy(0.1, noise=0.2)),
    Experiment("adaptive", HONEST, logs.Adaptive(MonUCB(ARMS, 1_000))),
    Experiment("cold start", HONEST, logs.Missing("best")),
    Experiment("each arm off by .2", WRONG, logs.Biased(0.2)),
    Experiment("best arm .2 too low", WRONG, logs.Biased({"best": -0.2})),
    Experiment("drifted", WRONG, logs.Drifted(0.4)),
    Experiment("permuted", WRONG, logs.Permuted()),
    Experiment("confounded", WRONG, logs.Confounded(0.3)),
    Experiment("30 false 0 for the best", WRONG, logs.Poisoned(30, "best", 0.0)),
    Experiment("200 false 1 for the worst", WRONG, logs.Poisoned(200, "worst", 1.0)),
    Experiment(
        "drifting", ONLINE, world=lambda log: OwnEnvironment(Changing(np.zeros((2, ARMS)), 1_000), log), horizon=2_000
    ),
    Experiment("rare rewards", ONLINE, world=lambda log: Rare(ARMS, log=log), rows=5_000, horizon=10_000),
    Experiment("delayed", ONLINE, world=lambda log: OwnEnvironment(Delayed(), log), worlds=20),
    Experiment("censored", ONLINE, world=lambda log: OwnEnvironment(Censored(np.zeros(ARMS), np.zeros(ARMS)), log)),
    Experiment("restart", ONLINE, restarts=True),
)


def play(experiment: Experiment, algorithm: str, make: Make, scale: float = 1.0) -> Line:
    """Play an experiment. The worlds, the logs and the rewards are the same for every algorithm."""
    worlds = max(2, round(experiment.worlds * scale))
    arguments = _arguments(make(ARMS, experiment.horizon))
    env = experiment.world(experiment.log)
    if experiment.restarts or callable(arguments.get("history")):
        found = [_one_world(experiment, env, make, world) for world in range(worlds)]
        regret, used = np.array([regret for regret, _ in found]), np.array([used for _, used in found])
    else:
        sizes: dict[str, Any] = {"history": experiment.rows, "horizon": experiment.horizon, "replications": worlds}
        runs = simulate(env=env, keep="final", **sizes, **arguments)
        regret, used = runs.regret[:, -1], runs.used[:, -1]
    mean, error = mean_and_error(regret)
    return Line(experiment.name, algorithm, worlds, mean, error, float(used.mean()) / experiment.rows)


def _arguments(made: Any) -> dict[str, Any]:
    """Return the arguments of `simulate` that an algorithm stands for."""
    arguments = dict(made) if isinstance(made, Mapping) else {"base": made}
    if "base" not in arguments:
        raise InvalidParameter(f"algorithm must return a base, or a dict with a base, got {made!r}")
    for name in OF_THE_WORLDS:
        if name in arguments:
            raise InvalidParameter(f"algorithm must leave {name} to the benchmark, got {arguments[name]!r}")
    ready = arguments.get("history", History)
    if not callable(ready):
        raise InvalidParameter(f"history must be a function of a log, such as ar.Totals.of, got {ready!r}")
    return arguments


def _one_world(experiment: Experiment, env: Any, make: Make, world: int) -> tuple[float, int]:
    """Return the regret in a world, and how many rows were read, with a log that is handed over whole."""
    log = env.draw_history(experiment.rows, replication=world)
    if not experiment.restarts:
        runs = _runs(env, log, _arguments(make(ARMS, experiment.horizon)), experiment.horizon, world, seed=0)
        return float(runs.regret[0, -1]), int(runs.used[0, -1])
    half, regret, used = experiment.horizon // 2, 0.0, 0
    keys = world_keys(0, np.array([world]))
    same = KArmed(ARMS, means=env.worlds(keys, keys).truth[0])
    for part in range(2):  # another seed after the restart, so that its rewards are others
        runs = _runs(same, log, _arguments(make(ARMS, experiment.horizon - part * half)), half, world, seed=part)
        regret, used = regret + float(runs.regret[0, -1]), used + int(runs.used[0, -1])
        arms = [log.unit(row) for row in range(len(log))] + runs.actions[0].tolist()
        log = History(arms, np.concatenate([log.rewards, runs.rewards[0]]))
    return regret, used


def _runs(env: Any, log: History, arguments: dict[str, Any], horizon: int, world: int, seed: int) -> Any:
    history = arguments.pop("history", lambda log: log)(log)
    if not isinstance(history, (History, Totals)):
        raise InvalidParameter(f"what history makes of a log must be a History or Totals, got {history!r}")
    sizes: dict[str, Any] = {"horizon": horizon, "replications": 1, "first_replication": world, "seed": seed}
    return simulate(env=env, history=history, **sizes, **arguments)


def stored_lines(path: Path = RESULTS) -> list[Line]:
    """Return the stored results."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [
            Line(
                row["experiment"],
                row["algorithm"],
                int(row["worlds"]),
                *(float(row[name]) for name in Line._fields[3:]),
            )
            for row in csv.DictReader(file)
        ]


@dataclass(frozen=True)
class Benchmark:
    """Holds the results of an algorithm, beside the stored ones of others. `print` shows a table."""

    lines: list[Line]
    stored: list[Line]

    def regret(self, experiment: str) -> float:
        """Return the mean regret in an experiment.

        Parameters
        ----------
        experiment
            The name of the experiment.
        """
        found = {line.experiment: line.regret for line in self.lines}
        if experiment not in found:
            raise InvalidParameter(f"experiment must be one of {', '.join(found)}, got {experiment!r}")
        return found[experiment]

    def __str__(self) -> str:
        names = list(dict.fromkeys(line.algorithm for line in (*self.lines, *self.stored)))
        found = {(line.algorithm, line.experiment): line for line in (*self.stored, *self.lines)}
        width, texts = max(map(len, names)), []
        for experiment in dict.fromkeys(line.experiment for line in self.lines):
            texts.append(f"{experiment}:")
            here = sorted((found[name, experiment] for name in names if (name, experiment) in found), key=_by_regret)
            texts += [f"  {line.algorithm:{width}}  {line.regret:8.1f} ± {line.error:.1f}" for line in here]
        return "\n".join(texts)


def _by_regret(line: Line) -> float:
    return line.regret


@checked
def benchmark(
    algorithm: Make, name: str = "yours", *, only: Sequence[str] | None = None, scale: Positive = 1.0
) -> Benchmark:
    """Play an algorithm over the worlds and logs of the benchmark, beside the stored results of others.

    It meets the same worlds, logs and rewards as those did. That takes less than a minute if it is compiled, and a few
    minutes if it is a plain object.

    Parameters
    ----------
    algorithm
        A function of the number of arms and of the rounds to come. It returns a base, which starts by Artificial
        Replay, or a dict of arguments for `simulate`, such as `{"base": base, "start": "full-start"}`. A function as
        `"history"`, such as `ar.Totals.of`, is given the log of each world, and returns what to start from.
    name
        What to call it. The names in the stored results are taken.
    only
        The names of some experiments; all by default.
    scale
        The share of the worlds to play. Stored results are of all worlds, so their differences are less certain then.

    >>> import artreplay as ar
    >>> found = ar.benchmark(lambda arms, rounds: ar.Greedy(arms), "greedy", only=["uniform"], scale=0.02)
    >>> [(line.experiment, line.algorithm, line.worlds) for line in found.lines]
    [('uniform', 'greedy', 2)]
    """
    if not callable(algorithm):
        raise InvalidParameter(
            f"algorithm must be a function, such as lambda arms, rounds: ar.KLUCB(arms, rounds), got {algorithm!r}"
        )
    stored = stored_lines()
    if not isinstance(name, str) or name in {line.algorithm for line in stored}:
        raise InvalidParameter(f"name must be a text that is not in the stored results, got {name!r}")
    if only is not None and (isinstance(only, str) or not isinstance(only, Sequence) or len(only) == 0):
        raise InvalidParameter(f'only must be a list of names, such as ["uniform"], got {only!r}')
    known = [experiment.name for experiment in EXPERIMENTS]
    unknown = [each for each in only or () if each not in known]
    if unknown:
        raise InvalidParameter(f"only must name experiments, which are {', '.join(known)}, got {unknown[0]!r}")
    chosen = [experiment for experiment in EXPERIMENTS if only is None or experiment.name in only]
    return Benchmark([play(experiment, name, algorithm, scale) for experiment in chosen], stored)
