"""Decisions that last: how many a second, how long a start takes, and what decisions in flight cost.

    make bench-study                       everything, about ten minutes on two cores
    make bench-study ONLY=speed            decisions with rewards a second, beside Optuna's ask and tell
    make bench-study ONLY=start ROWS=1e5   a start from so many decisions, 10⁶ by default
    make bench-study ONLY=flight SEEDS=4   regret with decisions in flight, 5 seeds by default

Everything is durable: a call has returned when it is on disk. Optuna chooses among the same 80 arms, at random, which
is the fastest it can do, and by its own sampler. A number for Optuna is of this machine and of this run only.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import artreplay as ar
from artreplay.studies.choice import chooser_of
from artreplay.studies.decisions import kept_action

ARMS, HORIZON = 80, 100_000
SECONDS = 6.0  # that each speed is measured for
GROUP, THREADS = 50, 16
FLIGHTS = (0, 100, 1_000, 10_000)


def base() -> Any:
    """The algorithm of all studies here."""
    return ar.KLUCB(ARMS, horizon=HORIZON)


# -- speed --------------------------------------------------------------------------------------------------------


def rate(turn: Callable[[], int]) -> float:
    """Decisions with rewards a second: `turn` makes some and says how many."""
    turn()
    began, done = time.perf_counter(), 0
    while time.perf_counter() - began < SECONDS:
        done += turn()
    return done / (time.perf_counter() - began)


def study_rates(folder: Path) -> dict[str, float]:
    """A study in SQLite: one by one, from threads, and in groups."""
    found = {}
    with ar.Study.create(folder / "one", base()) as study:
        found["one by one"] = rate(lambda: study.reward(study.decide().id, 0.0) or 1)
    with ar.Study.create(folder / "threads", base()) as study:
        found[f"{THREADS} threads"] = rate_of_threads(study)
    with ar.Study.create(folder / "groups", base()) as study:
        found[f"groups of {GROUP}"] = rate(lambda: study.together(one_group))
    return found


def one_group(study: ar.Study) -> int:
    """Some decisions, and their rewards, in one commit."""
    for decision in study.decide(count=GROUP):
        study.reward(decision.id, 0.0)
    return GROUP


def rate_of_threads(study: ar.Study) -> float:
    """Threads that each decide and reward, one after the other; commits are shared by whoever waits."""
    until, done = time.perf_counter() + SECONDS, []

    def work() -> None:
        count = 0
        while time.perf_counter() < until:
            study.reward(study.decide().id, 0.0)
            count += 1
        done.append(count)

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done) / (time.perf_counter() - began)


def optuna_rates(folder: Path) -> dict[str, float]:
    """Optuna's ask and tell on its SQLite and journal storages."""
    import optuna
    from optuna.storages import JournalStorage, RDBStorage
    from optuna.storages.journal import JournalFileBackend

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.simplefilter("ignore")
    storages: dict[str, Callable[[str], Any]] = {
        "SQLite": lambda name: RDBStorage(f"sqlite:///{folder / name}.db"),
        "journal": lambda name: JournalStorage(JournalFileBackend(str(folder / f"{name}.log"))),
    }
    samplers: dict[str, Any] = {"at random": optuna.samplers.RandomSampler, "its sampler": optuna.samplers.TPESampler}
    found = {}
    for where, storage in storages.items():
        for how, sampler in samplers.items():
            peer = optuna.create_study(storage=storage(f"{where} {how}"), sampler=sampler(seed=0), direction="maximize")

            def turn(peer: Any = peer) -> int:
                trial = peer.ask()
                trial.suggest_categorical("arm", list(range(ARMS)))
                peer.tell(trial, 0.0)
                return 1

            found[f"Optuna, {where}, {how}"] = rate(turn)
    return found


def speed(console: Console) -> None:
    """Decisions with rewards a second, and the ratio to each of Optuna's."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("FOLDER") or None) as name:
        ours, theirs = study_rates(Path(name)), optuna_rates(Path(name))
    table = Table(title=f"decisions with rewards a second, durable, {ARMS} arms")
    table.add_column("what")
    table.add_column("a second", justify="right")
    for peer in theirs:
        table.add_column(f"× {peer}", justify="right")
    for what, per_second in {**{f"study, {how}": value for how, value in ours.items()}, **theirs}.items():
        table.add_row(what, f"{per_second:,.0f}", *(f"{per_second / other:.1f}" for other in theirs.values()))
    console.print(table)


# -- a start ------------------------------------------------------------------------------------------------------


def start(console: Console) -> None:
    """A start from a journal of many decisions: folded from the beginning, and from a snapshot."""
    rows = int(float(os.environ.get("ROWS") or 1e6))
    with tempfile.TemporaryDirectory(dir=os.environ.get("FOLDER") or None) as name:
        place = Path(name) / "long"
        write_journal(place, rows)
        times = [first_decision(place) for _ in range(2)]
        size = place.stat().st_size
    console.print(
        f"{rows:,} decisions with rewards, {size / rows:.0f} bytes each: the first decision after opening comes after "
        f"{times[0]:.1f} s without a snapshot, and after {times[1]:.2f} s from one"
    )


def write_journal(place: Path, rows: int) -> None:
    """A study with so many decisions and rewards, written at once."""
    draw = np.random.default_rng(0)
    arms, rewards = draw.integers(0, ARMS, rows).tolist(), draw.integers(0, 2, rows).tolist()
    with ar.Study.create(place, ar.KLUCB(ARMS, horizon=2 * rows)) as study:
        tables = study._tables
        tables.run_many(
            "INSERT INTO decision VALUES (?, ?, NULL, ?, NULL, ?, NULL, 'rewarded', NULL)",
            [(at + 1, f"{at + 1}-{at:08x}", kept_action(arm), 1.0 + at) for at, arm in enumerate(arms)],
        )
        tables.run_many(
            "INSERT INTO entry VALUES (?, 'reward', ?, ?, ?, NULL)",
            [(at + 1, 1.0 + at, at + 1, json.dumps(float(reward))) for at, reward in enumerate(rewards)],
        )
        tables.run("UPDATE study SET entries = ?, decisions = ?", rows, rows)
        tables.commit()


def first_decision(place: Path) -> float:
    """Seconds from opening a study to its first decision; closing it leaves a snapshot."""
    began = time.perf_counter()
    study = ar.Study.open(place)
    study.decide()
    took = time.perf_counter() - began
    study.close()
    return took


# -- decisions in flight ------------------------------------------------------------------------------------------


def flight(console: Console) -> None:
    """Regret where the reward of a decision comes so many decisions later, open decisions counted and not."""
    seeds = int(os.environ.get("SEEDS") or 5)
    table = Table(
        title=f"regret after {HORIZON:,} decisions among {ARMS} arms, mean of {seeds} worlds ± standard error"
    )
    for heading in ("in flight", "counted", "to none", "not counted", "to none"):
        table.add_column(heading, justify="right")
    none = np.array([regret(seed, 0, True) for seed in range(seeds)])
    for flying in FLIGHTS:
        cells = []
        for counted in (True, False):
            found = np.array([regret(seed, flying, counted) for seed in range(seeds)])
            error = found.std(ddof=1) / np.sqrt(seeds) if seeds > 1 else 0.0
            cells += [f"{found.mean():,.0f} ± {error:,.0f}", f"{found.mean() / none.mean():.2f}"]
        table.add_row(f"{flying:,}", *cells)
    chance = np.mean([HORIZON * (means.max() - means.mean()) for means in map(world, range(seeds))])
    console.print(table)
    console.print(f"random play: {chance:,.0f}")


def world(seed: int) -> Any:
    """The chance of a click on each of the items of a page: a few in a hundred."""
    return np.random.default_rng([seed, 0]).beta(2.0, 100.0, ARMS)


def regret(seed: int, flying: int, counted: bool) -> float:
    """The regret of one run: the policy and the chooser of a study, without its database."""
    means, draw = world(seed), np.random.default_rng([seed, 1])
    gaps, uniform = means.max() - means, draw.random(HORIZON)
    policy = ar.ArtificialReplay(ar.KLUCB(ARMS, horizon=HORIZON), ar.History([], []))
    chooser = chooser_of(policy)
    waiting: deque[tuple[int, int]] = deque()
    total = 0.0
    with ar.compiling.using("interpreted"):
        for number in range(HORIZON):
            arm = policy.choose(chooser if counted and chooser.is_needed else None, number)
            total += gaps[arm]
            waiting.append((number, arm))
            if counted:
                chooser.opened(number, [arm])
            if len(waiting) > flying:
                earlier, told = waiting.popleft()
                policy.tell(told, float(uniform[earlier] < means[told]))
                if counted:
                    chooser.closed(earlier)
                    chooser.renew()
    return float(total)


def main() -> None:
    """Measure what was asked for."""
    console, parts = Console(), {"speed": speed, "start": start, "flight": flight}
    only = os.environ.get("ONLY") or ""
    for name, part in parts.items():
        if only in ("", name):
            part(console)


if __name__ == "__main__":
    main()
