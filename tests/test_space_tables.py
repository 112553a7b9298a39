"""What the docs say of the rules for points and budgets is written from the stored results."""

from __future__ import annotations

import space


def test_the_summary_and_the_tables_are_those_of_the_results():
    assert space.documents() == {path: path.read_text(encoding="utf-8") for path in (space.SUMMARY, space.PAGE)}


def test_a_rule_that_is_higher_than_another_is_among_the_losses():
    task = space.Task("hot", "bernoulli", "0", "CellRegression")
    line = [*task, "6", "800.00", "20.00", "0", "0.1"]
    rival = [*task._replace(rule="TreeAllocation"), "6", "600.00", "20.00", "0", "0.1"]
    results = {task: line, task._replace(rule="TreeAllocation"): rival}
    words = space.verdict(results, "CellRegression", ["TreeAllocation", "network"], ["hot"], "")
    assert "in 0 of 1 settings" in words
    assert "1.33 of the regret of TreeAllocation (lower in 0, higher in 1 of 1)" in words
    assert "- hot, Bernoulli, log of 0: 800 ± 20 against TreeAllocation 600 ± 20" in words
