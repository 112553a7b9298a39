"""`simulate --log`: what a log is worth, in worlds that the log makes plausible."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from artreplay.algorithms import KLUCB, ArmAlgorithm, ThompsonSampling
from artreplay.cli.algorithm_options import drift_of
from artreplay.cli.log_arguments import LogArgument, read_log
from artreplay.cli.names import class_of, make_base, name_of, takes
from artreplay.console.figures import checked_figure, write_figure
from artreplay.console.output import NONE, percent, show, show_json, table
from artreplay.engine.log_worth import Worth, worth_of
from artreplay.engine.runs import mean_and_error
from artreplay.errors import InvalidParameter
from artreplay.history import History, StoredLog, Totals


def simulate_log(
    path: str,
    columns: dict[str, Any],
    algorithm: str | None,
    tuning: dict[str, Any],
    drift: str | None,
    how: dict[str, Any],
    out: Path | None,
    as_json: bool,
) -> None:
    """Say what a log is worth; `how` holds the rounds to come, the number of worlds, the seed and the threads."""
    kind = None if out is None else checked_figure(out)
    log = read_log(path, columns)
    history, reward = _scaled(log, tuning.pop("reward_range", None))
    cls = KLUCB if algorithm is None else class_of(algorithm)
    labels = log.labels()
    allowed = drift_of(drift, {str(label): label for label in labels})
    if cls is ThompsonSampling and tuning.get("prior") is None:
        tuning = tuning | {"prior": "log"}
    make = partial(_base, cls, tuning, labels)
    one = _in_units_of_reward(worth_of(name_of(cls), make, history, drift=_in_units(allowed, reward), **how), reward)
    sentences = _sentences(one, how["rounds"], how["worlds"], len(history), len(labels))
    if out is not None and kind is not None:
        from artreplay.plots.log_figures import draw_worth

        write_figure(draw_worth([one], sentences[0], " ".join(sentences[1:])), out, kind)
    if as_json:
        show_json({"rounds": how["rounds"], "worlds": how["worlds"], "log": len(history), "algorithms": [_entry(one)]})
        return
    show(_INVENTED.format(worlds=how["worlds"]), "", table(_HEADINGS, [_row(one)]), "", *sentences)
    if out is not None:
        show(f"the figure is in {out}")


def _base(
    cls: type[ArmAlgorithm], parameters: dict[str, Any], labels: list[Any], rounds: int, rows: int
) -> ArmAlgorithm:
    """Make the algorithm for some rounds to come. Without rows of a log, no prior is fitted."""
    fixed = {"horizon": rounds} if takes(cls, "horizon") else {}
    parameters = parameters | ({"prior": None} if rows == 0 and parameters.get("prior") == "log" else {})
    return make_base(cls, parameters, arms=labels, **fixed)


def _scaled(log: LogArgument, reward_range: tuple[float, float] | None) -> tuple[History | Totals, float]:
    """Return the log in memory with rewards in [0, 1], and what a reward of 1 is worth."""
    history = log.history.load() if isinstance(log.history, StoredLog) else log.history
    if len(history) == 0:
        raise InvalidParameter("--log must have rows, because worlds are drawn from what it says of the arms")
    low, high = reward_range or (0.0, 1.0)
    values = history.sums / np.maximum(history.counts, 1) if isinstance(history, Totals) else history.rewards
    if values.min() < low or values.max() > high:
        raise InvalidParameter(
            f"rewards must lie in [{low:g}, {high:g}], got {values.min():g} to {values.max():g} in the log. "
            "Give their range with --reward-range"
        )
    if isinstance(history, Totals):
        sums = (history.sums - low * history.counts) / (high - low)
        arms = [history.unit(row) for row in range(history.n_rows)]
        return Totals(arms, history.counts, sums), high - low
    width = high - low
    allowances = None if history.allowances is None else history.allowances / width
    rewards = (history.rewards - low) / width
    return History.from_columns(rewards, history.labels, history.codes, allowances=allowances), width


def _in_units(drift: Any, reward: float) -> Any:
    """Turn a drift into units of rewards in [0, 1]."""
    if isinstance(drift, dict):
        return {arm: value / reward for arm, value in drift.items()}
    return None if drift is None else drift / reward


def _in_units_of_reward(one: Worth, reward: float) -> Worth:
    more = None if one.with_drift is None else one.with_drift * reward
    return Worth(one.name, one.without * reward, one.with_log * reward, more, one.read_share)


_INVENTED = (
    "These {worlds:,} worlds are invented: only their means are drawn from the log. `artreplay evaluate` plays on the "
    "rows of the log itself."
)
_HEADINGS = ("algorithm", "without the log", "with it", "allowing for drift", "log made it worse in", "read of the log")


def _row(one: Worth) -> tuple[str, ...]:
    return (
        one.name,
        _mean(one.without),
        _mean(one.with_log),
        NONE if one.with_drift is None else _mean(one.with_drift),
        percent(one.makes_worse),
        percent(one.read_share),
    )


def _mean(regret: Any) -> str:
    mean, error = mean_and_error(regret)
    return f"{mean:,.1f} ± {NONE if math.isnan(error) else f'{error:,.1f}'}"


def _sentences(one: Worth, rounds: int, worlds: int, rows: int, arms: int) -> list[str]:
    before, after = float(one.without.mean()), float(one.with_log.mean())
    saving = 1.0 - after / before if before > 0 else 0.0
    change = f"{before:,.1f} without it, {after:,.1f} with it"
    spared = f"{percent(saving)} of what it loses while it learns" if saving > 0 else "nothing"
    worse = f"it made {one.name} worse in {percent(one.makes_worse)} of them"
    return [
        f"The log saves {one.name} {spared} in {rounds:,} rounds: {change}.",
        f"Means in {worlds:,} worlds, drawn from what {rows:,} rows of the log say of its {arms:,} arms; {worse}.",
        "In all of these worlds the log is honest, so they cannot show what a stale log costs.",
    ]


def _entry(one: Worth) -> dict[str, Any]:
    return {
        "algorithm": one.name,
        "regret_without": float(one.without.mean()),
        "regret_with": float(one.with_log.mean()),
        "regret_with_drift": None if one.with_drift is None else float(one.with_drift.mean()),
        "makes_worse": one.makes_worse,
        "read_share": one.read_share,
    }
