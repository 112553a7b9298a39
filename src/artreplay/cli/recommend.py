"""`recommend` and `tell`: one decision at a time, from a log on disk."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import typer

from artreplay.cli.algorithm_options import Bonus, Drift, Level, Prior, column_or_drift, tuning_of
from artreplay.cli.labelled_arms import HEADINGS, best_first, entry_of, row_of
from artreplay.cli.log_arguments import column_of_arms, csv_of
from artreplay.cli.names import name_of
from artreplay.cli.state import Recommended, recommended, told
from artreplay.console.options import (
    Arms,
    AsJson,
    Count,
    Csv,
    Order,
    OrderSeed,
    Request,
    Source,
    StateFile,
    Sum,
    Table,
    Units,
    Unknown,
    WithLog,
)
from artreplay.console.output import NONE, percent, show, show_json, text_of
from artreplay.console.output import table as table_of
from artreplay.errors import InvalidAction
from artreplay.history import History

_MOST_ROWS = 20


def recommend(
    log: Source,
    unit: Units = None,
    reward: Annotated[str | None, typer.Option(help="The column with the reward.")] = None,
    count: Count = None,
    sum_: Sum = None,
    horizon: Annotated[int | None, typer.Option(help="How many rounds are still to come.")] = None,
    algorithm: Annotated[
        str | None,
        typer.Option(help="The base algorithm. `artreplay algorithms` lists them. By default kl-ucb."),
    ] = None,
    state: Annotated[
        Path | None, typer.Option(help="The file that keeps the policy. It is continued if it exists, and made if not.")
    ] = None,
    arms: Arms = None,
    unknown: Annotated[
        Unknown | None,
        typer.Option(help="Refuse a log with rows that belong to no arm (error), or leave these rows out (skip)."),
    ] = None,
    until: Annotated[
        int | None,
        typer.Option(help="Use only this many rows, from the start of the log. Later rows were already told."),
    ] = None,
    order: Order = None,
    order_seed: OrderSeed = None,
    table: Table = None,
    csv: Csv = None,
    allow_scan: Annotated[
        bool, typer.Option("--allow-scan", help="Read a PostgreSQL table even if it lacks an index.")
    ] = False,
    reward_range: Annotated[
        tuple[float, float] | None, typer.Option(metavar="LOW HIGH", help="The range of the rewards. By default 0 1.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="The seed of algorithms that draw at random. By default 0.")] = None,
    policy: Annotated[
        WithLog | None,
        typer.Option(help="How to use the log. By default artificial-replay, or full-start if --state needs it."),
    ] = None,
    all_rows: Annotated[bool, typer.Option("--all", help=f"Show all arms, not only {_MOST_ROWS}.")] = False,
    level: Level = None,
    bonus: Bonus = None,
    prior: Prior = None,
    drift: Drift = None,
    as_json: AsJson = False,
) -> None:
    """Recommend which arm to play next, from a log.

    Without --state every call starts again from the log. With --state the policy is kept between calls: play what is
    recommended, tell the reward with `artreplay tell`, and call this again. You need not repeat options that the state
    file holds, and the log may have grown.
    """
    columns: dict[str, Any] = {"unit": column_of_arms(unit, log, reward), "reward": reward, "until": until}
    columns |= {"order": order, "seed": order_seed, "table": table, "allow_scan": allow_scan or None}
    allowance, drift = column_or_drift(drift)
    columns |= {"count": count, "sum": sum_, "csv": csv_of(csv), "allowance": allowance}
    parameters: dict[str, Any] = {"horizon": horizon, "seed": seed, "reward_range": reward_range}
    parameters |= tuning_of(level, bonus, prior)
    found = recommended(Request(log, columns, algorithm, parameters, arms or None, unknown, policy, drift), state)
    if as_json:
        show_json(_as_json(found))
    else:
        _show(found, all_rows)


def tell(
    arm: Annotated[str, typer.Argument(help="The arm that was played.")],
    reward: Annotated[str, typer.Argument(help="What it earned.")],
    state: StateFile,
) -> None:
    """Record the reward of an arm.

    The policy is the one that `recommend --state` keeps. You may tell any arm, whether it was recommended or not, and
    the log is not needed. Several processes may tell at the same time.
    """
    played, value, rounds = told(state, arm, outcome_value(reward))
    show(f"round {rounds}: {text_of(played)} gave {value:g}")


def outcome_value(text: str) -> float:
    """Read a reward as it is written."""
    try:
        return float(text)
    except ValueError:
        raise InvalidAction(f"reward is {text!r}, expected a number") from None


def _show(found: Recommended, all_rows: bool) -> None:
    arms = best_first(found.policy)
    shown = arms if all_rows else arms[:_MOST_ROWS]
    headings, rows = HEADINGS, [row_of(arm) for arm in shown]
    if all(row[-1] == NONE for row in rows):  # an algorithm without an index
        headings, rows = headings[:-1], [row[:-1] for row in rows]
    show(f"next action: {text_of(found.action)}", "", table_of(headings, rows))
    if len(shown) < len(arms):
        show(f"… and {len(arms) - len(shown):,} more (--all shows them)")
    show("", *_use_of_log(found))


def _use_of_log(found: Recommended) -> list[str]:
    policy, rounds = found.policy, found.rounds
    rows = policy.used + policy.unused
    lines = [f"used {policy.used:,} of {rows:,} samples, {percent(policy.used / rows)}" if rows else "the log is empty"]
    read = policy.reading.rows
    if not isinstance(policy.history, History):
        lines[-1] += f", read {read:,} row{'' if read == 1 else 's'}"
    if policy.skipped:
        lines.append(f"skipped {policy.skipped:,} rows whose label is not an arm")
    if rounds:
        lines.append(f"{rounds:,} online round{'s' if rounds > 1 else ''} told so far")
    return lines + [f"the log may be out of date: {found}" for found in policy.contradictions()]


def _as_json(found: Recommended) -> dict[str, Any]:
    policy = found.policy
    return {
        "action": found.action,
        "algorithm": name_of(type(policy.base)),
        "policy": policy.kind,
        "rounds": found.rounds,
        "log": {"samples": policy.used + policy.unused, "used": policy.used, "skipped": policy.skipped},
        "reading": dataclasses.asdict(policy.reading),
        "arms": [entry_of(arm) for arm in best_first(policy)],
    }
