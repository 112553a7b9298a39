"""`artreplay inspect`: what a log covers, and what about it could mislead."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from command_kit import COLUMNS, Run

SIZE = 2_000


def fair(seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    arms = rng.integers(0, 3, SIZE)
    return {"arm": arms, "click": (rng.random(SIZE) < 0.2 + 0.2 * arms).astype(float)}


def inspected(run: Run, table: dict[str, object], *options: object) -> str:
    pq.write_table(pa.table(table), "log.parquet")
    done = run("inspect", "log.parquet", *(options or COLUMNS))
    assert done.code == 0, done.err
    return done.out


def test_a_fair_log_has_nothing_to_warn_of(run: Run) -> None:
    out = inspected(run, fair())
    assert "2,000 rows, 3 arms" in out
    assert "rewards from 0 to 1" in out
    assert "█" in out
    assert "no warnings" in out


def worse(name: str) -> dict[str, np.ndarray]:
    log = fair()
    mine = np.flatnonzero(log["arm"] == 2)
    if name == "sorted":
        log["click"][mine] = np.sort(log["click"][mine])
    elif name == "drift":
        log["click"][mine] = np.random.default_rng(1).random(len(mine)) < np.linspace(0.9, 0.1, len(mine))
    elif name == "opening":
        log["click"][mine[:30]] = 0.0
    elif name == "twice":
        log = {column: np.concatenate([values, values]) for column, values in log.items()}
    elif name == "single":
        log["arm"][0] = 9
    elif name == "range":
        log["click"] = log["click"] * 5
    elif name == "nan":
        log["click"][[3, 5]] = np.nan
    return log


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("sorted", "warning: arm 2: its rewards are sorted"),
        ("drift", "warning: arm 2: its rewards fall along the log"),
        ("opening", "warning: arm 2: its first 3"),
        ("twice", "warning: from row 2,000 on the log repeats its first rows"),
        ("single", "warning: 1 arm has a single row"),
        ("range", "warning: rewards lie in [0, 5], outside [0, 1]"),
        ("nan", "warning: 2 rows lack a finite reward or a unit"),
    ],
)
def test_what_could_mislead_is_warned_of(run: Run, name: str, sentence: str) -> None:
    assert sentence in inspected(run, worse(name))


def test_rewards_in_the_range_that_was_said_are_no_warning(run: Run) -> None:
    assert "no warnings" in inspected(run, worse("range"), *COLUMNS, "--reward-range", "0", "5")


def test_recommend_and_studies_warn_of_the_same_and_once(run: Run) -> None:
    said = next(line for line in inspected(run, worse("sorted")).splitlines() if line.startswith("warning: "))
    expected = said.replace("warning: ", "warning: the log may mislead: ")
    calls = [
        ("recommend", "log.parquet", *COLUMNS, "--horizon", 5_000),
        ("recommend", "log.parquet", *COLUMNS, "--horizon", 5_000, "--state", "state.study"),
        ("study", "create", "new.study", "log.parquet", *COLUMNS, "--horizon", 5_000, "--wait", "none"),
    ]
    for call in calls:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            done = run(*call)
        assert done.code == 0, done.err
        assert done.err.splitlines() == [expected]


def test_a_horizon_that_is_far_shorter_than_the_log_is_warned_of(run: Run) -> None:
    assert "warning: horizon is 150, far fewer than the 2,000 rows" in inspected(
        run, fair(), *COLUMNS, "--horizon", 150
    )


def test_points_are_shown_by_region(run: Run) -> None:
    rng = np.random.default_rng(0)
    log = {"x": rng.random(500) / 4, "y": rng.random(500), "caught": rng.random(500)}
    out = inspected(run, log, "--unit", "x", "--unit", "y", "--reward", "caught")
    assert "16 regions" in out
    assert "[0, 0.125) × [0.875, 1)" in out


def test_a_store_is_inspected_like_its_log(run: Run) -> None:
    out = inspected(run, worse("drift"))
    run("index", "log.parquet", *COLUMNS, "-o", "log.arh")
    assert run("inspect", "log.arh").out == out
    assert run("inspect", "log.arh", "--json").json["rows"] == SIZE


def test_an_empty_log(run: Run, folder: Path) -> None:
    (folder / "log.csv").write_text("arm,click\n")
    assert "the log is empty" in run("inspect", "log.csv", *COLUMNS).out
    assert run("index", "log.csv", *COLUMNS, "-o", "log.arh").code == 0
    assert "the log is empty" in run("inspect", "log.arh").out
    assert run("recommend", "log.arh", "--arms", "a,b", "--horizon", 9).out.startswith("next action: a")
