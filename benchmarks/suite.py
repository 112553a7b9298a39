"""Seventeen ways of starting from a log, in the same worlds and logs, into the results that `ar.benchmark` shows.

make bench-suite            what is missing of the stored results; the page is written from them
make bench-suite SMOKE=1    two worlds of each, into no file
make bench-suite ONLY=HUCB1 this algorithm again
"""

from __future__ import annotations

import csv
import os
import sys
import time
import warnings
from pathlib import Path

from baselines import ALGORITHMS
from tables_in_pages import filled, table

from artreplay.engine.benchmark_suite import EXPERIMENTS, RESULTS, Line, play, stored_lines

PAGE = Path(__file__).parent.parent / "docs" / "results" / "benchmark-suite.md"
SMOKE = bool(os.environ.get("SMOKE"))
ONLY = [name for name in os.environ.get("ONLY", "").split(";") if name]
CLEARLY = 2.0  # standard errors of a difference above which the better of two is called so


def group_table(lines: list[Line], group: str) -> str:
    """Regret in the experiments of a group; the lowest of each is bold."""
    experiments = [each.name for each in EXPERIMENTS if each.group == group]
    found = {(line.algorithm, line.experiment): line for line in lines}
    best = {name: min(line.regret for line in lines if line.experiment == name) for name in experiments}
    rows = []
    for algorithm in ALGORITHMS:
        cells = []
        for name in experiments:
            line = found[algorithm, name]
            text = f"{line.regret:,.0f} ± {line.error:.0f}"
            cells.append(f"**{text}**" if line.regret == best[name] else text)
        rows.append([algorithm, *cells])
    return table(["", *experiments], rows)


def reading_table(lines: list[Line]) -> str:
    """What share of the log is read, over the honest logs."""
    names = [each.name for each in EXPERIMENTS if each.group == EXPERIMENTS[0].group]
    found = {(line.algorithm, line.experiment): line for line in lines}
    rows = [[algorithm, *(f"{found[algorithm, name].read:.0%}" for name in names)] for algorithm in ALGORITHMS]
    return table(["", *names], rows)


def losing_table(lines: list[Line], ours: str = "KLUCB, as we recommend") -> str:
    """Where others have clearly less regret than what we recommend."""
    found = {(line.algorithm, line.experiment): line for line in lines}
    rows = []
    for experiment in EXPERIMENTS:
        mine = found[ours, experiment.name]
        others = [found[algorithm, experiment.name] for algorithm in ALGORITHMS if algorithm != ours]
        better = [one for one in others if mine.regret - one.regret > CLEARLY * (mine.error**2 + one.error**2) ** 0.5]
        if better:
            best = min(better, key=lambda line: line.regret)
            told = f"{best.algorithm}, {best.regret:,.0f} ± {best.error:.0f}"
            rows.append([experiment.name, f"{mine.regret:,.0f} ± {mine.error:.0f}", told, str(len(better))])
    return table(["", ours, "the best", "how many are clearly better"], rows)


def written(page: str, lines: list[Line]) -> str:
    """The page with its tables as the results have them."""
    made = {"reading": reading_table, "losing": losing_table}
    return filled(page, lambda name: made[name](lines) if name in made else group_table(lines, name))


def store(lines: list[Line]) -> None:
    """Write the results in the order of the experiments and algorithms."""
    order = [each.name for each in EXPERIMENTS]
    names = list(ALGORITHMS)
    kept = [line for line in lines if line.experiment in order and line.algorithm in names]
    kept.sort(key=lambda line: (order.index(line.experiment), names.index(line.algorithm)))
    with RESULTS.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Line._fields)
        for line in kept:
            writer.writerow([*line[:3], *(f"{value:.6g}" for value in line[3:])])


def main() -> None:
    warnings.simplefilter("ignore")  # a log that is longer than the rounds, and bases that are not exact
    lines = [] if SMOKE else [line for line in stored_lines() if line.algorithm not in ONLY]
    done = {(line.experiment, line.algorithm) for line in lines}
    for name, make in ALGORITHMS.items():
        for experiment in EXPERIMENTS:
            if (experiment.name, name) in done or (ONLY and name not in ONLY):
                continue
            began = time.process_time()
            lines.append(play(experiment, name, make, 0.02 if SMOKE else 1.0))
            print(f"{lines[-1]}  {time.process_time() - began:.1f} s", file=sys.stderr, flush=True)
            if not SMOKE:
                store(lines)
    if not SMOKE and not ONLY:
        PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), stored_lines()), encoding="utf-8")


if __name__ == "__main__":
    main()
