"""The tables of the docs are those of the stored results, and every part of the results has one."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

import decision_tables  # noqa: E402
import large_logs  # noqa: E402
import patrol_tables  # noqa: E402
import store_tables  # noqa: E402


def test_the_tables_are_those_of_the_results():
    rows = decision_tables.results()
    for name in decision_tables.PAGES:
        page = (ROOT / "docs" / name).read_text(encoding="utf-8")
        assert decision_tables.written(page, rows) == page, f"run benchmarks/decision_tables.py: {name} is out of date"


def test_every_part_of_the_results_is_shown():
    pages = "".join((ROOT / "docs" / name).read_text(encoding="utf-8") for name in decision_tables.PAGES)
    shown = {name for name in decision_tables.TABLES if f"<!-- table: {name} -->" in pages}
    assert shown == set(decision_tables.TABLES)
    assert {row["part"] for row in decision_tables.results()} <= {part for part, _ in decision_tables.TABLES.values()}


def test_the_tables_of_the_patrol_planner_are_those_of_the_results():
    page = patrol_tables.PAGE.read_text(encoding="utf-8")
    assert patrol_tables.written(page) == page, "run benchmarks/patrol_tables.py: the page is out of date"
    assert all(f"<!-- table: {name} -->" in page for name in (*patrol_tables.GROUPS, "coverage"))


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


def test_the_page_about_large_logs_is_as_the_results_have_it() -> None:
    assert large_logs.page() == large_logs.PAGE.read_text(encoding="utf-8"), "run benchmarks/large_logs.py --table"


def test_the_tables_about_stores_are_those_of_the_results() -> None:
    page = store_tables.PAGE.read_text(encoding="utf-8")
    assert store_tables.written(page) == page, "run benchmarks/store_tables.py: docs/logs.md is out of date"
