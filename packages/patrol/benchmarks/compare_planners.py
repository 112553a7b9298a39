"""What each planner finds in a year, in both simulators, park by park: a run that is cut short goes on where it was.

    make bench-patrol PARKS=40 SEED=500001

plays a year in each park with each planner, adds a line to a file for each, leaves out what is there already, and
prints the means with the paired differences from our planner.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from other_worlds import KINDS, finds_in_a_year
from rivals import OURS, PLANNERS
from worlds import CONDITIONS, Ground
from years import year_of

BUDGET, PLACES, WAYPOINTS = 20.0, 5, 20_000


def plays(seed: int, kinds: list[str]) -> dict[str, Callable[[str], float]]:
    """By kind of park, how to play a year in the park of a seed with a planner."""
    made: dict[str, Callable[[str], float]] = {}
    grounds: list[Ground] = []

    def in_a_condition(name: str, condition: str) -> float:
        if not grounds:
            grounds.append(Ground.invent(seed, WAYPOINTS))
        world = grounds[0].world(condition)
        return float(year_of(world, PLANNERS[name](world, BUDGET, PLACES)).finds.sum())

    for kind in kinds:
        if kind in CONDITIONS:
            made[kind] = lambda name, kind=kind: in_a_condition(name, kind)
        else:
            made[kind] = lambda name, kind=kind: finds_in_a_year(kind, seed, name, BUDGET, PLACES)
    return made


def table(lines: list[dict[str, Any]]) -> str:
    """Means over the parks, and the paired difference of our planner from each with its standard error."""
    found = {(one["kind"], one["seed"], one["planner"]): float(one["finds"]) for one in lines}
    rows = []
    for kind in dict.fromkeys(kind for kind, _, _ in found):
        seeds = sorted({seed for of, seed, name in found if of == kind and name == OURS})
        for name in PLANNERS:
            if len(seeds) > 1 and all((kind, seed, name) in found for seed in seeds):
                theirs = np.array([found[kind, seed, name] for seed in seeds])
                more = np.array([found[kind, seed, OURS] for seed in seeds]) - theirs
                error = more.std(ddof=1) / np.sqrt(len(more))
                rows.append(f"{kind:13s} {name:26s} {theirs.mean():6.1f}   ours {more.mean():+5.1f} ± {error:.1f}")
    return "\n".join(rows)


def main() -> None:
    """Play what the file lacks, and print the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("file", type=Path)
    options.add_argument("--parks", type=int, default=40)
    options.add_argument("--seed", type=int, default=500_001)
    options.add_argument("--kinds", nargs="*", default=[*CONDITIONS, *KINDS])
    options.add_argument("--planners", nargs="*", default=[name for name in PLANNERS if "tree" not in name])
    asked = options.parse_args()
    lines = [json.loads(line) for line in asked.file.read_text().splitlines()] if asked.file.exists() else []
    there = {(one["kind"], one["seed"], one["planner"]) for one in lines}
    for seed in range(asked.seed, asked.seed + asked.parks):
        for kind, play in plays(seed, asked.kinds).items():
            for name in asked.planners:
                if (kind, seed, name) not in there:
                    lines.append({"kind": kind, "seed": seed, "planner": name, "finds": play(name)})
                    with open(asked.file, "a") as file:
                        file.write(json.dumps(lines[-1]) + "\n")
    print(table(lines))


if __name__ == "__main__":
    main()
