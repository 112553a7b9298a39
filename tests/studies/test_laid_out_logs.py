"""A study over a log that was laid out: it grows and is merged meanwhile, and the study folds to the same decisions."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import artreplay as ar
from artreplay.history.parquet import parquet_files
from artreplay.replay import reader

ARMS = ["red", "blue", "green", "pink"]
ROWS = [40, 55, 70, 100]  # of the log at first, and after each time it grew
COLUMNS = {"unit": "arm", "reward": "click"}


@pytest.fixture(autouse=True)
def small_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few rows are many portions."""
    monkeypatch.setattr(parquet_files, "ROWS_PER_GROUP", 8)
    monkeypatch.setattr(reader, "_FIRST_ROWS", 1)


def log_of(rows: int) -> pa.Table:
    rng = np.random.default_rng(1)
    arms = rng.choice(ARMS[:3], ROWS[-1])
    arms[90:] = "pink"  # an arm that the log has late
    return pa.table({"arm": arms, "click": rng.choice([0.0, 0.5, 1.0], ROWS[-1])})[:rows]


def grow(place: Path, kind: str, step: int) -> None:
    """Bring the log to so many rows, in the way of its kind."""
    first, last = ([0, *ROWS][step], ROWS[step])
    new = log_of(last)[first:]
    if kind == "adopted":
        place.mkdir(exist_ok=True)
        numbered = new.append_column("at", pa.array(range(first, last)))
        ordered = numbered.sort_by([("arm", "ascending"), ("at", "ascending")])
        pq.write_table(ordered, place / f"part-{step}.parquet", row_group_size=8)
        ar.index_history(place, already_sorted=True, order="at", **COLUMNS)
    elif step == 0:
        ar.index_history(new, place, **COLUMNS)
    else:
        ar.append_history(new, place, grown=False)
        if kind == "compacted each time":
            ar.compact_history(place)


def live(study: Any, opened: Any) -> list[Any]:
    """Decisions, rewards that come late, rewards nobody asked for, and a log that grows three times."""
    rng, decisions, waiting = random.Random(3), [], []
    for step in range(4):
        if step:
            study.extend(opened(step))
        for _ in range(12):
            waiting.append(study.decide())
            decisions.append(waiting[-1].action)
            if rng.random() < 0.7:
                study.reward(waiting.pop(rng.randrange(len(waiting))).id, rng.choice([0.0, 0.5, 1.0]))
            if rng.random() < 0.3:
                study.observe(rng.choice(ARMS), rng.choice([0.0, 1.0]))
    return decisions


def goes_on(study: Any) -> list[Any]:
    found = []
    for number in range(10):
        decision = study.decide()
        study.reward(decision.id, float(number % 3 == 0))
        found.append((decision.action, [(cell.count, cell.used) for cell in study.cells()]))
    return found


@pytest.mark.parametrize("kind", ["appended", "compacted at the end", "compacted each time", "adopted"])
@pytest.mark.parametrize("base", [ar.MonUCB, ar.KLUCB])
def test_a_study_whose_log_grew_three_times_folds_to_the_same_decisions(base, kind, tmp_path):
    def memory(step: int) -> ar.History:
        return ar.History.from_frame(log_of(ROWS[step]), "arm", "click")

    def laid_out(step: int) -> Any:
        grow(tmp_path / "log", kind, step)
        return ar.open_history(tmp_path / "log")

    made = base(arms=ARMS, horizon=500)
    in_memory = ar.Study.create(tmp_path / "memory", made, history=memory(0), wait=None)
    in_parts = ar.Study.create(tmp_path / "parts", made, history=laid_out(0), wait=None)
    expected = live(in_memory, memory)
    assert live(in_parts, laid_out) == expected
    if kind == "compacted at the end":
        assert ar.compact_history(tmp_path / "log") > 1
    for study in (in_memory, in_parts):
        study._journal.run("DELETE FROM snapshot")
        study._journal.commit()
        study.close()
    with ar.Study.open(tmp_path / "memory") as one, ar.Study.open(tmp_path / "parts") as other:
        assert [decision.action for decision in other.decisions()] == [decision.action for decision in one.decisions()]
        assert goes_on(other) == goes_on(one)
