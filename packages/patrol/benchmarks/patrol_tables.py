"""Writes the tables of docs/patrol-planner.md from docs/results/patrol-planners.json, which a command has written.

In the folder packages/patrol:

    PYTHONPATH=benchmarks python benchmarks/simulate_patrols.py --parks 20 --seed 90001 --json \\
        -o docs/patrol-planners.png > docs/results/patrol-planners.json
    PYTHONPATH=../../benchmarks python benchmarks/patrol_tables.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tables_in_pages import filled, table

DOCS = Path(__file__).parent.parent / "docs"
PAGE = DOCS / "patrol-planner.md"
MAP = "rate map"
GROUPS = {
    "records": ("plain", "rare", "few", "none"),
    "ground": ("patchy", "posts", "short", "drift", "season"),
    "rest": ("deter", "deter2", "deter3", "deterlog"),
}
SHOWN = {"rings and rest": "**rings and rest**"}


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


def written(page: str) -> str:
    """The page with its tables as the results have them."""
    made = {name: finds(conditions) for name, conditions in GROUPS.items()} | {"coverage": coverage()}
    return filled(page, made.__getitem__)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
