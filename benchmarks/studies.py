"""Decisions that last: how many a second, how long a start takes, and what decisions in flight cost.

    make bench-study                       everything, about fifteen minutes on two cores
    make bench-study ONLY=speed            decisions with rewards a second, beside Optuna's ask and tell
    make bench-study ONLY=start ROWS=1e5   a start from this many decisions, 10⁶ by default
    make bench-study ONLY=flight SEEDS=4   regret with decisions in flight, 40 to 400 worlds by default

Results go into docs/results/studies.csv, and the tables of docs/how-to/studies.md are written from there. Everything is
durable: a call has returned when it is on disk. Optuna chooses among the same 80 arms, at random, which is the fastest
it can do, and by its own sampler. A number for Optuna is of this machine and of this run only.
"""

from __future__ import annotations

import csv
import os
import sqlite3
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import in_flight
import numpy as np
from rich.console import Console
from rich.table import Table

import artreplay as ar
from artreplay.engine.runs import mean_and_error
from artreplay.plots.study_page import page_of
from artreplay.plots.study_view import view_of
from artreplay.studies.decision_columns import DecisionColumns
from artreplay.studies.study_journal import Entry

FILE = Path(__file__).parent.parent / "docs" / "results" / "studies.csv"
ARMS = in_flight.ARMS
WORLDS = (  # arms, decisions, and how many worlds
    (in_flight.FEW, 10_000, 400),
    (in_flight.FEW, 100_000, 200),
    (in_flight.ARMS, 10_000, 400),
    (in_flight.ARMS, 100_000, 200),
    (in_flight.ARMS, 1_000_000, 40),
)
SLICE, SLICES = 1.5, 8  # seconds that each speed is measured for in turn, and how often
GROUP, THREADS = 50, 16
MANY_ARMS = 100_000
FLIGHTS = (0, 100, 1_000, 10_000)
BEGINNING = 2  # entries of a journal before the first decision: settings and arms


class Result(NamedTuple):
    """One line of the file."""

    part: str
    setting: str
    name: str
    value: float
    error: float = 0.0
    ratio: float = 0.0  # to the same without decisions in flight
    ratio_error: float = 0.0
    worlds: int = 1


def base() -> Any:
    """The algorithm of all studies here."""
    return ar.KLUCB(ARMS, horizon=100_000)


# -- speed --------------------------------------------------------------------------------------------------------


Measured = Callable[[], tuple[int, float]]  # decisions with rewards, and the seconds they took


def for_a_while(turn: Callable[[], int]) -> Measured:
    """Turns, each of which makes some decisions and says how many, for as long as a slice is."""

    def measured() -> tuple[int, float]:
        began, done = time.perf_counter(), 0
        while time.perf_counter() - began < SLICE:
            done += turn()
        return done, time.perf_counter() - began

    turn()
    return measured


def our_studies(folder: Path) -> dict[str, Measured]:
    """A study in SQLite: one by one, from threads, and in groups."""
    one, threads, groups = (ar.Study.create(folder / name, base(), wait=None) for name in ("one", "threads", "groups"))
    large = ar.Study.create(folder / "large", ar.KLUCB(MANY_ARMS, horizon=10 * MANY_ARMS), wait=None)
    return {
        "study in SQLite, one by one": for_a_while(lambda: one.reward(one.decide().id, 0.0) or 1),
        f"study in SQLite, one by one, {MANY_ARMS:,} arms": for_a_while(
            lambda: large.reward(large.decide().id, 0.0) or 1
        ),
        f"study in SQLite, {THREADS} threads": lambda: by_threads(threads),
        f"study in SQLite, groups of {GROUP}": for_a_while(lambda: groups.together(one_group)),
    }


def one_group(study: ar.Study) -> int:
    """Some decisions, and their rewards, in one commit."""
    for decision in study.decide(count=GROUP):
        study.reward(decision.id, 0.0)
    return GROUP


def by_threads(study: ar.Study) -> tuple[int, float]:
    """Threads that each decide and reward, one after the other; commits are shared by whoever waits."""
    began, done = time.perf_counter(), []

    def work() -> None:
        count = 0
        while time.perf_counter() - began < SLICE:
            study.reward(study.decide().id, 0.0)
            count += 1
        done.append(count)

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done), time.perf_counter() - began


def bare_writes(folder: Path) -> dict[str, Measured]:
    """What the disk allows whoever forces a decision and its reward to it, one by one."""
    file = (folder / "lines").open("ab", buffering=0)

    def turn() -> int:
        for _ in ("a decision", "its reward"):
            file.write(b"." * 200)
            os.fsync(file.fileno())
        return 1

    return {"two lines of a file, forced to disk, nothing else": for_a_while(turn)}


def optunas(folder: Path) -> dict[str, Measured]:
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

            found[f"Optuna, {where}, {how}"] = for_a_while(turn)
    return found


def speed(console: Console) -> list[Result]:
    """Decisions with rewards a second, and the ratio to each of Optuna's; all take turns, for the machine is busy."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("FOLDER") or None) as name:
        theirs = optunas(Path(name))
        measured = our_studies(Path(name)) | bare_writes(Path(name)) | theirs
        slices: dict[str, list[tuple[int, float]]] = {what: [] for what in measured}
        for _ in range(SLICES):
            for what, measure in measured.items():
                slices[what].append(measure())
    rates = {what: sum(done for done, _ in many) / sum(took for _, took in many) for what, many in slices.items()}
    table = Table(title=f"decisions with rewards a second, durable, {ARMS} arms")
    for heading in ("what", "a second", *(f"× {peer}" for peer in theirs)):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    for what, value in rates.items():
        table.add_row(what, f"{value:,.0f}", *(f"{value / rates[peer]:.1f}" for peer in theirs))
    console.print(table)
    return [
        Result("speed", peer or "a second", what, value / rates.get(peer, 1.0))
        for peer in ("", *theirs)
        for what, value in rates.items()
    ]


# -- a start ------------------------------------------------------------------------------------------------------


def start(console: Console) -> list[Result]:
    """A start from a journal of many decisions: folded from the beginning, and from a snapshot."""
    rows = int(float(os.environ.get("ROWS") or 1e6))
    with tempfile.TemporaryDirectory(dir=os.environ.get("FOLDER") or None) as name:
        place = Path(name) / "long"
        write_journal(place, rows)
        times = [first_decision(place) for _ in range(2)]
        times.append(first_decision(place, horizon=3 * rows))
        pages = page_times(place)
        size = place.stat().st_size
        in_contexts = start_in_contexts(Path(name) / "contexts", rows // 10)
    console.print(
        f"{rows:,} decisions with rewards, {size / rows:.0f} bytes each: the first decision after opening comes after "
        f"{times[0]:.1f} s without a snapshot, {times[1]:.2f} s from one, and {times[2]:.1f} s under another horizon. "
        f"A page about it takes {pages[0]:.1f} s, and with its decisions read before {pages[1]:.2f} s. "
        f"With ContextRegression and {rows // 10:,} decisions a start takes {in_contexts[0]:.1f} s without a snapshot, "
        f"and {in_contexts[1]:.2f} s from one"
    )
    return [
        Result("start", f"{rows} decisions", what, value)
        for what, value in (
            ("seconds without a snapshot", times[0]),
            ("seconds from a snapshot", times[1]),
            ("seconds after `set_horizon`", times[2]),
            ("seconds for the first page", pages[0]),
            ("seconds for a later page", pages[1]),
            ("bytes a decision", size / rows),
            ("seconds without a snapshot, ContextRegression, a tenth of the decisions", in_contexts[0]),
            ("seconds from a snapshot, ContextRegression, a tenth of the decisions", in_contexts[1]),
        )
    ]


def write_journal(place: Path, rows: int) -> None:
    """A study with this many decisions and rewards, written in one transaction."""
    draw = np.random.default_rng(0)
    arms, rewards = draw.integers(0, ARMS, rows).tolist(), draw.integers(0, 2, rows).tolist()
    with ar.Study.create(place, ar.KLUCB(ARMS, horizon=2 * rows), wait=None) as study:
        began, made = time.time() - rows, []
        for number, (arm, reward) in enumerate(zip(arms, rewards, strict=True), 1):
            seq, asked = BEGINNING + 2 * number, began + number
            made.append(Entry(seq - 1, "decision", asked, number, f"{number}-{number:08x}", unit=arm))
            made.append(Entry(seq, "reward", asked, number, unit=arm, reward=float(reward)))
        study._journal.append(made)
        study._journal.commit()


def start_in_contexts(place: Path, rows: int) -> list[float]:
    """Seconds for a start of `ContextRegression` over two columns, folded from the beginning and from a snapshot."""
    draw = np.random.default_rng(0)
    seen = {"age": draw.random(4_000), "country": draw.choice(["NL", "DE", "BE"], 4_000).tolist()}
    log = ar.History(draw.integers(0, ARMS, 4_000), draw.integers(0, 2, 4_000).astype(float), contexts=seen)
    base = ar.ContextRegression(ARMS, contexts=ar.Contexts.from_history(log))
    with ar.Study.create(place, base, log, wait=None) as study:
        for _ in range(rows // GROUP):
            decisions = study.decide(contexts=[{"age": float(age), "country": "NL"} for age in draw.random(GROUP)])

            def reward(inside: ar.Study, decisions: Any = decisions) -> None:
                for decision in decisions:
                    inside.reward(decision.id, float(draw.random() < 0.05))

            study.together(reward)
    journal = sqlite3.connect(place)
    journal.execute("DELETE FROM snapshot")
    journal.commit()
    journal.close()
    return [first_decision(place, context={"age": 0.5, "country": "DE"}) for _ in range(2)]


def first_decision(place: Path, horizon: int | None = None, context: dict[str, Any] | None = None) -> float:
    """Seconds from opening a study to its first decision, under another horizon if one is given.

    Closing it leaves a snapshot.
    """
    began = time.perf_counter()
    study = ar.Study.open(place)
    if horizon is not None:
        study.set_horizon(horizon)
    study.decide(context=context)
    took = time.perf_counter() - began
    study.close()
    return took


def page_times(place: Path) -> list[float]:
    """Seconds for a page that reads all decisions, and for the next one, which reads what is new."""
    took = []
    with ar.Study.open(place) as study:
        columns = DecisionColumns(study)
        for _ in range(2):
            began = time.perf_counter()
            page_of(view_of(study, columns))
            took.append(time.perf_counter() - began)
    return took


# -- decisions in flight ------------------------------------------------------------------------------------------


def flight(console: Console) -> list[Result]:
    """Regret where rewards come a number of decisions later, open decisions counted and not."""
    found = []
    for arms, horizon, usual in WORLDS:
        seeds = range(int(os.environ.get("SEEDS") or usual))
        setting = f"K={arms} T={horizon}"
        none = np.array([in_flight.regret(seed, arms, horizon, 0, True) for seed in seeds])
        chance = np.array([in_flight.regret_at_random(seed, arms, horizon) for seed in seeds])
        mine = [flight_line(setting, "at random", chance, none)]
        for flying in FLIGHTS:
            for counted in (True, False):
                regrets = np.array([in_flight.regret(seed, arms, horizon, flying, counted) for seed in seeds])
                name = f"{flying} in flight, {'' if counted else 'not '}counted"
                mine.append(flight_line(setting, name, regrets, none))
        table = Table("", "regret", "to none", title=f"{arms} arms, {horizon:,} decisions, {len(seeds)} worlds")
        for one in mine:
            row = (f"{one.value:,.0f} ± {one.error:,.0f}", f"{one.ratio:.2f} ± {one.ratio_error:.2f}")
            table.add_row(one.name, *row)
        console.print(table)
        found += mine
    return found


def flight_line(setting: str, name: str, regrets: Any, none: Any) -> Result:
    """A line about regrets in worlds, beside those with nothing in flight."""
    return Result("flight", setting, name, *mean_and_error(regrets), *ratio(regrets, none), len(regrets))


def ratio(some: Any, others: Any) -> tuple[float, float]:
    """The ratio of two means over the same worlds, and its standard error: worlds are paired."""
    quotient = float(some.mean() / others.mean())
    if len(some) < 2:
        return quotient, 0.0
    return quotient, float((some - quotient * others).std(ddof=1) / np.sqrt(len(some)) / others.mean())


# -- what is kept -------------------------------------------------------------------------------------------------


def keep(part: str, found: list[Result]) -> None:
    """Put the results of a part into the file, in place of those that are there."""
    kept: list[dict[str, Any]] = []
    if FILE.exists():
        with FILE.open(newline="", encoding="utf-8") as file:
            kept = [row for row in csv.DictReader(file) if row["part"] != part]
    kept += [
        {name: f"{value:.6g}" if isinstance(value, float) else value for name, value in one._asdict().items()}
        for one in found
    ]
    kept.sort(key=lambda row: list(PARTS).index(row["part"]))
    with FILE.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, Result._fields, lineterminator="\n")
        writer.writeheader()
        writer.writerows(kept)


PARTS = {"speed": speed, "start": start, "flight": flight}


def main() -> None:
    """Measure what was asked for."""
    only = os.environ.get("ONLY") or ""
    for name, part in PARTS.items():
        if only in ("", name):
            keep(name, part(Console()))


if __name__ == "__main__":
    main()
