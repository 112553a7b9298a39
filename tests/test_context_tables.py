"""What the docs say of rules with contexts is written from the stored results."""

from __future__ import annotations

import context_tables
import contextual


def test_the_page_is_that_of_the_results() -> None:
    page = context_tables.PAGE.read_text(encoding="utf-8")
    assert context_tables.page() == page, "run benchmarks/context_tables.py"


def test_every_world_and_rule_is_shown() -> None:
    page = context_tables.page()
    results = contextual.read()
    assert set(contextual.WORLDS) == set(context_tables.WORDS)
    assert set(results) <= set(contextual.tasks())
    for world in {task.world for task in results}:
        assert f"## {world}: " in page


def test_a_goal_that_is_missed_is_said_to_be() -> None:
    task = contextual.Task("lin10x5", "none", 0, contextual.AUTO)
    results = {
        task: contextual.Line(15.0, [95.0, 105.0]),
        task._replace(rule="VW squarecb"): contextual.Line(30.0, [100.0]),
    }
    first, *_ = contextual.goals(results)
    assert (first.value, first.settings) == ((95.0 + 5.0) / (100.0 + 5.0), 1)  # over the seeds that both have
    assert context_tables.in_words(first)[-1] == "**no**"
    assert context_tables.in_words(first._replace(value=0.6))[-1] == "yes"
