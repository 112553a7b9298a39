"""The tables of the docs are those of the stored results, and every part of the results has one."""

from __future__ import annotations

from pathlib import Path

import decision_tables
import large_logs
import store_tables

ROOT = Path(__file__).parent.parent


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


def test_the_page_about_large_logs_is_as_the_results_have_it() -> None:
    assert large_logs.page() == large_logs.PAGE.read_text(encoding="utf-8"), "run benchmarks/large_logs.py --table"


def test_the_tables_about_stores_are_those_of_the_results() -> None:
    page = store_tables.PAGE.read_text(encoding="utf-8")
    assert store_tables.written(page) == page, "run benchmarks/store_tables.py: docs/how-to/logs.md is out of date"
