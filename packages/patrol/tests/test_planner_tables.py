"""The tables of the page about the planner are those of the stored results, and so is what it says in short."""

from __future__ import annotations

import numpy as np
import patrol_tables
from patrol_tables import HELD, MAP, OURS, PAGE, RESULTS, best_simple, means, read


def test_the_tables_of_the_patrol_planner_are_those_of_the_results():
    for path in patrol_tables.PAGES:
        page = path.read_text(encoding="utf-8")
        assert patrol_tables.written(page) == page, "run benchmarks/patrol_tables.py: the page is out of date"
    page = PAGE.read_text(encoding="utf-8")
    assert all(f"<!-- table: {name} -->" in page for name in (*patrol_tables.GROUPS, "coverage", "best simple rival"))


def test_the_page_names_every_kind_of_park_where_a_simple_rival_finds_more():
    lead = PAGE.read_text(encoding="utf-8").split("## What it is worth")[1].split("### The parks")[0]
    said = lead.split("<!-- table")[0]
    found = means(read(RESULTS))
    best = {kind: of[best_simple(of)] for kind, of in found.items()}
    behind = {kind for kind, of in best.items() if of.more < -2.0 * of.error}
    assert {kind for kind in found if f"*{kind}*" in said} == behind
    assert all(of.more > -0.05 * of.finds for of in best.values()), "the page says at most 5 % less"
    assert found["rare"][MAP].more > -2.0 * found["rare"][MAP].error
    for name in patrol_tables.SIMPLE:
        lost = max(of[name].more / of[OURS].finds for of in found.values())
        assert lost > 1.0 / 3.0, f"{name} is nowhere far behind, and the page says that every simple rule is somewhere"


def test_ranges_hold_eight_of_ten_where_plans_go():
    rows = read(RESULTS)
    for kind in means(rows):
        held = [float(row[HELD[0]]) for row in rows if row["kind"] == kind and row[HELD[0]]]
        assert len(held) >= 20
        assert np.mean(held) > 0.78, kind
