"""The tables of the docs are those of the stored results, and every part of the results has one."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

import decision_tables  # noqa: E402


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
