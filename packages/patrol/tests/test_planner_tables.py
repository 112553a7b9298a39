"""The tables of the page about the planner are those of the stored results, and so is what it says in short."""

from __future__ import annotations

import patrol_tables


def test_the_tables_of_the_patrol_planner_are_those_of_the_results():
    for path in patrol_tables.PAGES:
        page = path.read_text(encoding="utf-8")
        assert patrol_tables.written(page) == page, "run benchmarks/patrol_tables.py: the page is out of date"
    page = patrol_tables.PAGE.read_text(encoding="utf-8")
    assert all(f"<!-- table: {name} -->" in page for name in (*patrol_tables.GROUPS, "coverage", "other worlds"))


def test_what_the_page_says_in_short_is_what_was_measured():
    page = patrol_tables.PAGE.read_text(encoding="utf-8")
    found = {name: one["planners"] for name, one in patrol_tables.results().items()}
    ours = {name: planners["rings and rest"] for name, planners in found.items()}
    for name in ("plain", "rare", "few", "none", "patchy", "posts", "short", "drift", "season", "deter3"):
        assert ours[name]["more"] > -2.0 * ours[name]["more_error"], name
    for name in ("deter", "deter2", "deterlog"):
        assert f"{ours[name]['ratio']:.2f} times (*{name}*)" in page
    for name, planners in found.items():
        assert ours[name]["finds"] > max(planners[rival]["finds"] for rival in ("chance", "tree under replay"))
