"""How good decisions are: regret, and how much of the log is read, into docs/results/decisions.csv.

The tables of docs/start/which-algorithm.md and docs/understand/trusting-a-log.md are written from there by
`decision_tables.py`.

    make bench-decisions                everything, peers included; forty minutes on two cores
    make bench-decisions ONLY=arms      one part: arms, many, clicks, length, stale, alarms, poisoned, peers
    make bench-decisions ONLY=trust     the three parts about logs that are wrong: stale, alarms, poisoned
    make bench-decisions SCALE=0.1      a tenth of the replications, for a first look
    make bench-decisions NAMES=UCB1     some algorithms only, by how their names begin

Seeds are 0, 1, 2, …: nothing is chosen. Regret is pseudo-regret over the rounds to come, the mean over worlds with its
standard error. The horizon is the rounds to come.
"""

from __future__ import annotations

import csv
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import artreplay as ar
from artreplay.engine.runs import mean_and_error

FILE = Path(__file__).parent.parent / "docs" / "results" / "decisions.csv"
SCALE = float(os.environ.get("SCALE") or 1)
NAMES = tuple(name for name in os.environ.get("NAMES", "").split(",") if name)


class Result(NamedTuple):
    """One line of the file."""

    part: str
    setting: str
    algorithm: str
    rows: int
    drift: str
    worlds: int
    regret: float
    error: float
    read: float


def line(part: str, setting: str, algorithm: str, rows: int, drift: Any, regret: Any, read: Any) -> Result:
    """The means of what came out in each world."""
    mean, error = mean_and_error(np.asarray(regret, float))
    return Result(part, setting, algorithm, rows, str(drift), len(regret), mean, error, float(np.mean(read)))


def wanted(name: str) -> bool:
    """Whether an algorithm is to be run."""
    return not NAMES or name.startswith(NAMES)


def worlds(usual: int) -> int:
    """How many worlds are played."""
    return max(2, round(usual * SCALE))


# -- our algorithms, all of which replay the log exactly: how each is made for T rounds and H rows ---------------------

Make = Callable[[int, int, int], Any]
INDICES: dict[str, Make] = {
    "KLUCB": lambda k, t, h: ar.KLUCB(k, t),
    'KLUCB, level "log"': lambda k, t, h: ar.KLUCB(k, t, level="log"),
    'KLUCB, level "moss"': lambda k, t, h: ar.KLUCB(k, t, level="moss"),
    "PsiUCB, Bernoulli KL": lambda k, t, h: ar.PsiUCB(k, t, psi=ar.psi.bernoulli_kl),
    "MonUCB (the paper's)": lambda k, t, h: ar.MonUCB(k, t),
}
CERTIFIED: dict[str, Make] = {  # read until the choice is certain
    "Thompson sampling": lambda k, t, h: ar.ThompsonSampling(k),
    "AnchorThompson": lambda k, t, h: ar.AnchorThompson(k),
    "UCB1": lambda k, t, h: ar.UCB1(k),
}
REPLAY: Any = "artificial-replay"


def some(made: dict[str, Make]) -> list[tuple[str, Make]]:
    """The algorithms that are to be run."""
    return [(name, make) for name, make in made.items() if wanted(name)]


def arms() -> Iterator[Result]:
    """K = 10, means uniform, T = 10,000."""
    env, k, t = ar.environments.KArmed(10), 10, 10_000
    for name, make in some({**INDICES, **CERTIFIED}):
        for h in (0, 100, 1_000, 10_000):
            runs = ar.simulate(make(k, t, h), env, REPLAY, history=h, horizon=t, replications=worlds(200), keep="final")
            yield line("arms", "K=10, T=10,000", name, h, 0, runs.regret[:, -1], runs.used[:, -1])


def many() -> Iterator[Result]:
    """K = 100, means uniform, T = 100,000."""
    env, k, t = ar.environments.KArmed(100), 100, 100_000
    for name, make in some({**INDICES, **CERTIFIED}):
        for h in (0, 10_000):
            count = worlds(10 if name in CERTIFIED else 40)
            runs = ar.simulate(make(k, t, h), env, REPLAY, history=h, horizon=t, replications=count, keep="final")
            yield line("many", "K=100, T=100,000", name, h, 0, runs.regret[:, -1], runs.used[:, -1])


def one_world(base: Any, means: Any, log: Any, t: int, seed: int, start: Any, drift: Any = 0.0) -> tuple[float, int]:
    """The regret, and the rows used, in a world of these means."""
    env = ar.environments.KArmed(len(means), means=means)
    runs = ar.simulate(
        base, env, start, history=log, horizon=t, replications=1, seed=seed, threads=1, keep="final", drift=drift
    )
    return float(runs.regret[0, -1]), int(runs.used[0, -1])


def drawn_log(rng: Any, means: Any, rows: int) -> ar.History:
    """Arms at random, and rewards of 0 and 1 with these means."""
    played = rng.integers(len(means), size=rows)
    return ar.History(played, (rng.random(rows) < means[played]).astype(float))


def clicks() -> Iterator[Result]:
    """K = 30, means uniform in [.002, .006], T = 1,000,000."""
    k, t = 30, 1_000_000
    fitted: dict[str, Make] = {
        'Thompson sampling, prior="log"': lambda k, t, h: ar.ThompsonSampling(k, prior="log" if h else (1, 1)),
    }
    for name, make in some({**INDICES, **CERTIFIED, **fitted}):
        for h in (0, 300_000):
            found = []
            for seed in range(worlds(16 if name in INDICES else 6)):
                rng = np.random.default_rng([1, seed])
                means = rng.uniform(0.002, 0.006, k)
                log = drawn_log(rng, means, h)
                found.append(one_world(make(k, t, h), means, log, t, seed, REPLAY))
            yield line("clicks", "K=30, clicks, T=1,000,000", name, h, 0, *zip(*found, strict=True))


def length() -> Iterator[Result]:
    """K = 10, means in [.4, .6], T = 1,000, and a log a hundred times as long."""
    k, t, h = 10, 1_000, 100_000
    bases = {"KLUCB": ar.KLUCB(k, t), 'KLUCB, level "log"': ar.KLUCB(k, t, level="log")}
    found: dict[str, list[tuple[float, int]]] = {name: [] for name in bases}
    for seed in range(worlds(200)):
        rng = np.random.default_rng([2, seed])
        means = rng.uniform(0.4, 0.6, k)
        log = drawn_log(rng, means, h)
        for name, base in bases.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that the log is far longer than the horizon
                found[name].append(one_world(base, means, log, t, seed, REPLAY))
    for name, values in found.items():
        yield line("length", "K=10, T=1,000, H=100·T", name, h, 0, *zip(*values, strict=True))


# -- logs that are wrong ----------------------------------------------------------------------------------------------


def off_by_a_third(means: Any, rng: Any) -> Any:
    return np.clip(means + rng.choice([-0.3, 0.3], len(means)), 0, 1)


def best_is(change: float) -> Callable[[Any, Any], Any]:
    def changed(means: Any, rng: Any) -> Any:
        wrong = means.copy()
        wrong[np.argmax(means)] += change
        return np.clip(wrong, 0, 1)

    return changed


def others_up(means: Any, rng: Any) -> Any:
    wrong = np.clip(means + 0.3, 0, 1)
    wrong[np.argmax(means)] = means.max()
    return wrong


LOGS: dict[str, Callable[[Any, Any], Any]] = {
    "honest": lambda means, rng: means,
    "each arm off by ±.3": off_by_a_third,
    "the best arm .15 too low": best_is(-0.15),
    "all others .3 too high": others_up,
    "the best arm .4 too low": best_is(-0.4),
    "arms permuted": lambda means, rng: rng.permutation(means),
}


def one_fell(means: Any, rng: Any) -> Any:
    """An arm of the log was twice as good as the best of today."""
    wrong = means.copy()
    wrong[rng.integers(len(means))] = 2.0 * means.max()
    return wrong


CLICKS: dict[str, Callable[[Any, Any], Any]] = {
    "clicks, .5 to 5 %: honest": lambda means, rng: means,
    "clicks, .5 to 5 %: one arm was twice the best": one_fell,
}


def wrong_world(kind: str, seed: int, k: int = 10, h: int = 10_000) -> tuple[Any, ar.History]:
    """True means, and a log of other ones."""
    rng = np.random.default_rng([3, seed])
    means = rng.uniform(0.005, 0.05, k) if kind in CLICKS else rng.random(k)
    return means, drawn_log(rng, (LOGS | CLICKS)[kind](means, rng), h)


def stale() -> Iterator[Result]:
    """K = 10, T = H = 10,000, logs that are right or wrong in several ways."""
    k, t, h = 10, 10_000, 10_000
    mine: list[tuple[str, Any, Any, Any]] = [
        *(("KLUCB", ar.KLUCB(k, t), REPLAY, drift) for drift in (0, 0.05, 0.1, 0.2)),
        ("MonUCB (the paper's)", ar.MonUCB(k, t), REPLAY, 0),
        *((name, make(k, t, h), REPLAY, 0) for name, make in CERTIFIED.items()),
        ("KLUCB, without the log", ar.KLUCB(k, t), "ignorant", 0),
    ]
    mine = [one for one in mine if wanted(one[0])]
    for kind in LOGS:
        found: list[list[tuple[float, int]]] = [[] for _ in mine]
        for seed in range(worlds(60)):
            means, log = wrong_world(kind, seed)
            for place, (_, base, start, drift) in enumerate(mine):
                found[place].append(one_world(base, means, log, t, seed, start, drift))
        for (name, _, start, drift), values in zip(mine, found, strict=True):
            yield line("stale", kind, name, 0 if start == "ignorant" else h, drift, *zip(*values, strict=True))


def alarms() -> Iterator[Result]:
    """In what share of worlds a contradiction is found; `regret` is that share here, `read` how many arms it names."""
    k, t, h = 10, 10_000, 10_000
    for kind in LOGS | CLICKS:
        named = []
        for seed in range(worlds(40)):
            means, log = wrong_world(kind, seed)
            policy = ar.ArtificialReplay(ar.KLUCB(k, t), log)
            rewards = np.random.default_rng([4, seed]).random(t)
            for round_ in range(t):
                arm = policy.ask()
                policy.tell(arm, float(rewards[round_] < means[arm]))
            named.append(len(policy.contradictions()))
        yield line("alarms", kind, "KLUCB", h, 0, [float(count > 0) for count in named], named)


# -- logs that somebody poisons ---------------------------------------------------------------------------------------

# Rows that are put into an honest log of 1,000: the reward they have, how many they are, and whether they come first.
ATTACKS: dict[str, tuple[float, int, bool]] = {
    "no attack": (1.0, 0, False),
    **{f"{n:,} rows of 1 for the worst arm": (1.0, n, False) for n in (100, 300, 1_000)},
    **{f"{n:,} rows of 0 for the best arm": (0.0, n, False) for n in (30, 100, 300)},
    "30 rows of 0 for the best arm, at the front": (0.0, 30, True),
}


def poisoned_world(attack: str, seed: int, k: int = 10, h: int = 1_000) -> tuple[Any, ar.History]:
    """True means, and an honest log with the rows of an attack in it."""
    reward, rows, first = ATTACKS[attack]
    rng = np.random.default_rng([6, seed])
    means = rng.random(k)
    played = rng.integers(k, size=h)
    honest = (rng.random(h) < means[played]).astype(float)
    target = np.argmin(means) if reward else np.argmax(means)
    places = np.zeros(rows, np.int64) if first else rng.integers(h + 1, size=rows)
    return means, ar.History(np.insert(played, places, target), np.insert(honest, places, reward))


def poisoned() -> Iterator[Result]:
    """K = 10, T = 10,000, an honest log of 1,000 rows and those of an attack."""
    k, t, h = 10, 10_000, 1_000
    mine: list[tuple[str, Any, Any, float, bool]] = [
        *(("KLUCB", ar.KLUCB(k, t), REPLAY, drift, False) for drift in (0, 0.05, 0.2)),
        ("KLUCB, log shuffled", ar.KLUCB(k, t), REPLAY, 0, True),
        *((name, make(k, t, h), REPLAY, 0, False) for name, make in CERTIFIED.items() if name != "UCB1"),
        ("KLUCB, without the log", ar.KLUCB(k, t), "ignorant", 0, False),
    ]
    mine = [one for one in mine if wanted(one[0])]
    for attack, (_, rows, _) in ATTACKS.items():
        found: list[list[tuple[float, int]]] = [[] for _ in mine]
        for seed in range(worlds(200)):
            means, log = poisoned_world(attack, seed)
            for place, (_, base, start, drift, shuffled) in enumerate(mine):
                read = log.shuffled(seed) if shuffled else log
                found[place].append(one_world(base, means, read, t, seed, start, drift))
        for (name, _, start, drift, _), values in zip(mine, found, strict=True):
            used = 0 if start == "ignorant" else h + rows
            yield line("poisoned", attack, name, used, drift, *zip(*values, strict=True))


# -- peers: libraries that people would use instead, in ten lines -----------------------------------------------------


class RiverPolicy:
    """A policy of river, shown the log row by row."""

    def __init__(self, policy: Any, log: Any) -> None:
        self.policy = policy
        self.arms = list(range(10))
        for arm, reward in log:
            self.policy.update(int(arm), float(reward))

    def ask(self) -> int:
        return int(self.policy.pull(self.arms))

    def tell(self, arm: int, reward: float) -> None:
        self.policy.update(arm, reward)


class WiserPolicy:
    """A policy of MABWiser, fitted to the log at once."""

    def __init__(self, policy: Any, seed: int, log: Any) -> None:
        from mabwiser.mab import MAB

        self.mab = MAB(arms=list(range(10)), learning_policy=policy, seed=seed)
        played, rewards = zip(*(log or [(arm, 0) for arm in range(10)]), strict=True)
        self.mab.fit(decisions=list(played), rewards=list(rewards))

    def ask(self) -> int:
        return int(self.mab.predict())

    def tell(self, arm: int, reward: float) -> None:
        self.mab.partial_fit(decisions=[arm], rewards=[reward])


def peers() -> Iterator[Result]:
    """river and MABWiser in the worlds of `arms`, with and without 1,000 rows of a log, beside KLUCB and Thompson."""
    from mabwiser.mab import LearningPolicy
    from river import bandit, proba

    k, t = 10, 10_000
    made: dict[str, Any] = {
        "KLUCB": lambda seed, log: ar.ArtificialReplay(ar.KLUCB(k, t), history_of(log)),
        "Thompson sampling": lambda seed, log: ar.ArtificialReplay(ar.ThompsonSampling(k, seed), history_of(log)),
        "river, UCB": lambda seed, log: RiverPolicy(bandit.UCB(delta=1, seed=seed), log),
        "river, Thompson sampling": lambda seed, log: RiverPolicy(
            bandit.ThompsonSampling(reward_obj=proba.Beta(), seed=seed), log
        ),
        "MABWiser, UCB1": lambda seed, log: WiserPolicy(LearningPolicy.UCB1(alpha=1), seed, log),
        "MABWiser, Thompson sampling": lambda seed, log: WiserPolicy(LearningPolicy.ThompsonSampling(), seed, log),
    }
    for name, make in some(made):
        for h in (0, 1_000):
            found = []
            for seed in range(worlds(5 if "MABWiser" in name else 10)):
                rng = np.random.default_rng([5, seed])
                means = rng.random(k)
                played = rng.integers(k, size=h)
                policy = make(seed, list(zip(played, (rng.random(h) < means[played]).astype(int), strict=True)))
                rewards, regret = rng.random(t), 0.0
                for round_ in range(t):
                    arm = policy.ask()
                    regret += means.max() - means[arm]
                    policy.tell(arm, float(rewards[round_] < means[arm]))
                found.append((regret, getattr(policy, "used", h)))
            yield line("peers", "K=10, T=10,000", name, h, 0, *zip(*found, strict=True))


def history_of(log: list[tuple[int, int]]) -> ar.History:
    return ar.History([int(arm) for arm, _ in log], [float(reward) for _, reward in log])


PARTS = {
    "arms": arms,
    "many": many,
    "clicks": clicks,
    "length": length,
    "stale": stale,
    "alarms": alarms,
    "poisoned": poisoned,
    "peers": peers,
}
GROUPS = {"trust": ("stale", "alarms", "poisoned")}


def place_of(row: dict[str, Any]) -> tuple[int, ...]:
    """Where a line stands among those of its part: by what is wrong with the log, then by algorithm."""
    settings = [*LOGS, *CLICKS, *ATTACKS]
    first = settings.index(row["setting"]) if row["setting"] in settings else 0
    order = (*INDICES, *CERTIFIED)
    known = [number for number, name in enumerate(order) if row["algorithm"].startswith(name)]
    return first, max(known, default=len(order)) if row["algorithm"] != "KLUCB, without the log" else len(order)


def main() -> None:
    named = [part for part in os.environ.get("ONLY", "").split(",") if part] or list(PARTS)
    only = [part for name in named for part in GROUPS.get(name, (name,))]
    kept: list[dict[str, Any]] = []
    if FILE.exists():
        with FILE.open(newline="", encoding="utf-8") as file:
            kept = list(csv.DictReader(file))
    for part in only:
        began = time.perf_counter()
        found = [result._asdict() for result in PARTS[part]() if wanted(result.algorithm)]
        for result in found:
            result |= {name: f"{result[name]:.6g}" for name in ("regret", "error", "read")}
        kept = [row for row in kept if row["part"] != part or not wanted(row["algorithm"])] + found
        kept.sort(key=lambda row: (list(PARTS).index(row["part"]), *place_of(row)))
        FILE.parent.mkdir(exist_ok=True)
        with FILE.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, Result._fields, lineterminator="\n")
            writer.writeheader()
            writer.writerows(kept)
        print(f"{part}: {len(found)} lines in {time.perf_counter() - began:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
