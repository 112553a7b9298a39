"""Writes the tables of the pages from docs/results/patrol-planners.json and patrol-other-worlds.jsonl.

In the folder packages/patrol:

    PYTHONPATH=benchmarks python benchmarks/simulate_patrols.py --parks 20 --seed 90001 --json \\
        -o docs/patrol-planners.png > docs/results/patrol-planners.json
    PYTHONPATH=benchmarks python benchmarks/compare_planners.py docs/results/patrol-other-worlds.jsonl --parks 28 \\
        --seed 500001 --kinds still moving "moving, rare"
    PYTHONPATH=../../benchmarks python benchmarks/patrol_tables.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from tables_in_pages import filled, table

DOCS = Path(__file__).parent.parent / "docs"
PAGE = DOCS / "patrol-planner.md"
PAGES = (PAGE, DOCS / "patrol-samples.md")
OTHERS = DOCS / "results" / "patrol-other-worlds.jsonl"
MAP = "rate map"
GROUPS = {
    "records": ("plain", "rare", "few", "none"),
    "ground": ("patchy", "posts", "short", "drift", "season"),
    "rest": ("deter", "deter2", "deter3", "deterlog"),
}
OURS = "rings and rest"
SHOWN = {OURS: f"**{OURS}**"}


def results() -> dict[str, Any]:
    """What each planner found, by condition."""
    found = json.loads((DOCS / "results" / "patrol-planners.json").read_text(encoding="utf-8"))
    return {one["condition"]: one for one in found}


def standing(of: dict[str, Any], name: str) -> str:
    """The finds of a planner, and how they compare with those of the rate map."""
    if name == MAP:
        return f"{of['finds']:.0f} ± {of['error']:.0f}"
    more = f"{of['more']:+.0f}".replace("-", "−")
    more = "0" if more in ("+0", "−0") else more
    return f"{of['finds']:.0f} ({more} ± {of['more_error']:.0f}; {100 * of['won']:.0f} %)"


def finds(conditions: tuple[str, ...]) -> str:
    """Finds in the year, by planner and condition."""
    found = results()
    planners = found[conditions[0]]["planners"]
    lines = [
        [SHOWN.get(name, name), *(standing(found[one]["planners"][name], name) for one in conditions)]
        for name in planners
    ]
    return table(["finds in the year", *conditions], lines)


def coverage() -> str:
    """How often the truth lies in the range that the first map gives, in the conditions whose records differ."""
    found = results()
    conditions = [one for one in found if one not in ("deter", "deter2", "deter3", "drift")]
    kinds = {"walked": "walked boxes", "unwalked": "boxes nobody walked"}
    shares = [[found[one]["coverage"][kind] for one in conditions] for kind in kinds]
    lines = [
        [name, *("–" if share is None or share != share else f"{100 * share:.0f} %" for share in row)]
        for name, row in zip(kinds.values(), shares, strict=True)
    ]
    return table(["", *conditions], lines)


def other_worlds(names: tuple[str, ...] = ()) -> str:
    """Finds in the year in the second simulator, by planner and kind of park: of some planners, or of all of them."""
    lines = [json.loads(line) for line in OTHERS.read_text(encoding="utf-8").splitlines()]
    found = {(one["kind"], one["seed"], one["planner"]): float(one["finds"]) for one in lines}
    kinds = list(dict.fromkeys(kind for kind, _, _ in found))
    planners = [name for name in dict.fromkeys(name for _, _, name in found) if not names or name in names]
    rows = []
    for name in planners:
        cells = []
        for kind in kinds:
            seeds = sorted(seed for of, seed, planner in found if (of, planner) == (kind, name))
            theirs = np.array([found[kind, seed, name] for seed in seeds])
            more = np.array([found[kind, seed, OURS] for seed in seeds]) - theirs
            ahead = f" ({more.mean():+.1f} ± {more.std(ddof=1) / np.sqrt(len(more)):.1f})".replace("-", "−")
            cells.append(f"{theirs.mean():.1f}" + (ahead if name != OURS else ""))
        rows.append([SHOWN.get(name, name), *cells])
    return table(["finds in the year", *kinds], rows)


def written(page: str) -> str:
    """A page with its tables as the results have them."""
    made = {name: finds(conditions) for name, conditions in GROUPS.items()} | {"coverage": coverage()}
    made |= {"other worlds": other_worlds(), "replay": other_worlds((OURS, "surfaces under replay", "rate map"))}
    return filled(page, made.__getitem__)


if __name__ == "__main__":
    for one in PAGES:
        one.write_text(written(one.read_text(encoding="utf-8")), encoding="utf-8")
