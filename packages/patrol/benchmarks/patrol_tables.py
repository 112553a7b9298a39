"""Writes the tables of the pages from docs/results/patrol-planners.csv.

In the folder packages/patrol:

    PYTHONPATH=benchmarks python benchmarks/compare_planners.py docs/results/patrol-planners.csv
    PYTHONPATH=benchmarks:../../benchmarks python benchmarks/patrol_tables.py
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tables_in_pages import filled, table

DOCS = Path(__file__).parent.parent / "docs"
PAGE = DOCS / "patrol-planner.md"
PAGES = (PAGE, DOCS / "patrol-samples.md")
RESULTS = DOCS / "results" / "patrol-planners.csv"
OURS, MAP, ORACLE = "rings and rest", "rate map", "knows the truth"
SIMPLE = (MAP, *(f"map, rests {weeks} weeks" for weeks in (2, 4, 8)), "map, 3 × 3 rest 8 weeks")
MAP_AND_STORIES = "map and our stories"
LOGISTIC = "logistic map"
TREE, SURFACES = "tree under replay", "surfaces under replay"
NAMES = (OURS, *SIMPLE, MAP_AND_STORIES, LOGISTIC)
UNDER_REPLAY = (TREE, SURFACES)  # played in the parks of the second simulator
HELD = ("range holds, best tenth", "range holds, walked", "range holds, not walked")
GROUPS = {
    "records": ("plain", "rare", "few", "none", "patchy"),
    "ground": ("posts", "short", "drift", "season"),
    "rest": ("deter", "deter2", "deter3", "deterlog", "deter4", "deter5"),
    "other worlds": ("still", "moving", "moving, rare"),
}


class Mean(NamedTuple):
    """What a planner found, and how much more ours did in the same parks, with its standard error."""

    finds: float
    more: float
    error: float
    parks: int


def read(file: Path) -> list[dict[str, str]]:
    """The rows of a file of results: one for each kind of park and seed."""
    with open(file, newline="", encoding="utf-8") as opened:
        return list(csv.DictReader(opened))


def means(rows: list[dict[str, str]]) -> dict[str, dict[str, Mean]]:
    """By kind of park and planner, over the parks in which it was played; kinds in the order of the tables."""
    played = {row["kind"] for row in rows}
    made: dict[str, dict[str, Mean]] = {}
    for kind in (one for kinds in GROUPS.values() for one in kinds if one in played):
        made[kind] = {}
        for name in (*NAMES, *UNDER_REPLAY):
            pairs = np.array(
                [(float(row[OURS]), float(row[name])) for row in rows if row["kind"] == kind and row[name]]
            )
            if len(pairs):
                more = pairs[:, 0] - pairs[:, 1]
                made[kind][name] = Mean(float(pairs[:, 1].mean()), float(more.mean()), _error(more), len(pairs))
    return made


def best_simple(found: dict[str, Mean]) -> str:
    """The simple rival that found most in a kind of park."""
    return max((name for name in SIMPLE if name in found), key=lambda name: -found[name].more)


def beside_the_best() -> str:
    """Ours beside the simple rival that is best in each kind of park, which nobody knows before."""
    lines = []
    for kind, found in means(read(RESULTS)).items():
        name = best_simple(found)
        lines.append(
            [
                kind,
                f"{found[OURS].finds:.1f}",
                name,
                f"{found[OURS].finds - found[name].more:.1f}",
                _signed(found[name]),
                str(found[name].parks),
            ]
        )
    return table(["park", OURS, "the best simple rival there", "finds", "ours finds more", "parks"], lines)


def _error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def _signed(of: Mean) -> str:
    return f"{of.more:+.1f} ± {of.error:.1f}".replace("-", "−")


def _cell(of: Mean | None, name: str) -> str:
    if of is None:
        return "–"
    return f"{of.finds:.1f}" + ("" if name == OURS else f" ({_signed(of)})")


def finds(kinds: tuple[str, ...], names: tuple[str, ...] = NAMES) -> str:
    """Finds in the year, by planner and kind of park."""
    found = means(read(RESULTS))
    lines = [
        [f"**{name}**" if name == OURS else name, *(_cell(found[kind].get(name), name) for kind in kinds)]
        for name in names
    ]
    return table(["finds in the year", *kinds], lines)


def held() -> str:
    """How often the truth lies in the range that the first map gives."""
    rows = read(RESULTS)
    kinds = means(rows)
    words = ("the tenth of the boxes that promises most", "all boxes that were walked", "boxes nobody walked")
    lines = []
    for kind in kinds:
        known = [
            [float(row[name]) for row in rows if row["kind"] == kind and row[name] not in ("", "nan")] for name in HELD
        ]
        lines.append([kind, *(f"{100 * np.mean(shares):.0f} %" if shares else "–" for shares in known)])
    return table(["", *words], lines)


def written(page: str) -> str:
    """A page with its tables as the results have them."""
    made = {name: finds(kinds) for name, kinds in GROUPS.items()} | {
        "coverage": held(),
        "best simple rival": beside_the_best(),
        "replay": finds(GROUPS["other worlds"], (OURS, MAP, *UNDER_REPLAY)),
    }
    return filled(page, made.__getitem__)


if __name__ == "__main__":
    for one in PAGES:
        one.write_text(written(one.read_text(encoding="utf-8")), encoding="utf-8")
