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


def test_the_numbers_of_the_readme_are_those_of_the_tables() -> None:
    """What `KLUCB` reads, and what a log costs that makes the best arm look bad."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    trusting = (ROOT / "docs/understand/trusting-a-log.md").read_text(encoding="utf-8")
    clicks = (ROOT / "docs/start/which-algorithm.md").read_text(encoding="utf-8").partition("<!-- table: clicks -->")[2]
    wrong, reading = (trusting.partition(f"<!-- table: {name} -->")[2] for name in ("stale", "reading"))
    cell = "the best arm .4 too low"
    with_log, without = cells_of(wrong, "KLUCB")[cell], cells_of(wrong, "KLUCB, without the log")[cell]
    assert f"`KLUCB` loses {with_log}, and {without} without the log" in readme
    far = cells_of(reading, "KLUCB")["honest"].replace("%", " %")
    assert f"{far} of a log of ten arms" in readme
    read = cells_of(clicks, "KLUCB")["read of the longest"].replace("%", " %")
    assert f"but {read} at click rates" in readme


def cells_of(table: str, name: str) -> dict[str, str]:
    """The cells of the first row with this name, by their columns."""
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if line.startswith("|")]
    row = next(line for line in lines if line[0] == name)
    return dict(zip(lines[0], row, strict=True))
