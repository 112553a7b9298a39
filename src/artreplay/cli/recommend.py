"""`recommend` and `tell`: one decision at a time, from a log on disk."""

from __future__ import annotations

import dataclasses
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from artreplay.cli.actions import Actions, actions_of
from artreplay.cli.algorithm_options import LEVELS, Bonus, Drift, Level, Prior, tuning_of
from artreplay.cli.log_arguments import csv_of
from artreplay.cli.names import ALLOCATORS, name_of
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
from artreplay.console.output import NONE, percent, show, show_json, size
from artreplay.console.output import table as table_of
from artreplay.errors import InvalidAction, InvalidParameter
from artreplay.history import Reading

_MOST_ROWS = 20


def recommend(
    log: Source,
    unit: Units = None,
    reward: Annotated[str | None, typer.Option(help="The column with the reward.")] = None,
    count: Count = None,
    sum_: Sum = None,
    horizon: Annotated[int | None, typer.Option(help="How many rounds are still to be played.")] = None,
    algorithm: Annotated[
        str | None,
        typer.Option(
            help="The base algorithm, see `artreplay algorithms`; kl-ucb, or for points point-regression or tree-ucb, "
            "for a budget cell-regression."
        ),
    ] = None,
    state: Annotated[
        Path | None, typer.Option(help="Keep the policy in this file: continue it if it exists, else create it.")
    ] = None,
    arms: Arms = None,
    box: Annotated[
        list[str] | None,
        typer.Option(metavar="LOW,HIGH", help="The range of a coordinate, once for each; 0,1 by default."),
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="The finest boxes of tree-ucb, as a share of the side of the space.")
    ] = None,
    cells_per_side: Annotated[int | None, typer.Option(help="Boxes along each axis (grid-ucb).")] = None,
    unknown: Annotated[
        Unknown | None,
        typer.Option(
            help="Refuse rows that belong to no arm, or lie outside the box (error), or leave them out (skip)."
        ),
    ] = None,
    until: Annotated[
        int | None,
        typer.Option(help="Use only this many rows of the log, from its beginning; later rows were told already."),
    ] = None,
    order: Order = None,
    order_seed: OrderSeed = None,
    table: Table = None,
    csv: Csv = None,
    allow_scan: Annotated[
        bool, typer.Option("--allow-scan", help="Read a PostgreSQL table although it lacks an index.")
    ] = False,
    reward_range: Annotated[
        tuple[float, float] | None, typer.Option(metavar="LOW HIGH", help="The range of the rewards; 0 1 by default.")
    ] = None,
    budget: Annotated[
        float | None, typer.Option(help="Arms played in one round (top-ucb, random), or effort to divide over places.")
    ] = None,
    places: Annotated[int | None, typer.Option(help="The most places that get effort in one round.")] = None,
    seed: Annotated[int | None, typer.Option(help="The seed of algorithms that draw at random; 0 by default.")] = None,
    policy: Annotated[
        WithLog | None,
        typer.Option(help="How the log is used; artificial-replay by default, full-start where --state needs it."),
    ] = None,
    all_rows: Annotated[bool, typer.Option("--all", help=f"Show all arms or cells, not only {_MOST_ROWS}.")] = False,
    level: Level = None,
    bonus: Bonus = None,
    prior: Prior = None,
    drift: Drift = None,
    as_json: AsJson = False,
) -> None:
    """Recommend what to play next, from a log of arms, or of points (give --unit once for each coordinate).

    Where --level names the column with the effort at each point, --budget is divided over at most --places points.

    Without --state every call starts afresh from the log. With --state the policy is kept between calls: play what is
    recommended, tell the reward with `artreplay tell`, and call this again with the log, which may have grown. Options
    that the state file already holds need not be repeated.
    """
    is_column = level is not None and (len(unit or ()) > 1 or algorithm in [name_of(each) for each in ALLOCATORS])
    if level not in (None, *LEVELS) and not is_column:
        raise InvalidParameter(
            f"--level must be {', '.join(LEVELS)}, got {level!r}; for points, with several --unit or --algorithm "
            "cell-regression, it names the column of effort"
        )
    columns: dict[str, Any] = {"reward": reward, "until": until, "order": order, "seed": order_seed, "table": table}
    columns |= {"allow_scan": allow_scan or None, "count": count, "sum": sum_, "level": level if is_column else None}
    columns |= {"csv": csv_of(csv)}
    parameters: dict[str, Any] = {"horizon": horizon, "max_units": places, "seed": seed, "reward_range": reward_range}
    parameters["budget"] = int(budget) if budget is not None and budget.is_integer() else budget
    parameters |= {"epsilon": epsilon, "cells_per_side": cells_per_side}
    parameters |= tuning_of(None if is_column else level, bonus, prior)
    request = Request(
        log, unit or None, columns, algorithm, parameters, arms or None, box or None, unknown, policy, drift
    )
    found = recommended(request, state)
    actions = actions_of(found.policy.base)
    if as_json:
        show_json(_as_json(found, actions))
    else:
        _show(found, actions, all_rows)


def tell(
    outcome: Annotated[
        list[str],
        typer.Argument(
            metavar="ACTION REWARD",
            help="An arm, or a point such as 0.3,0.7, or one at a level, 0.3,0.7@2, and its reward; one pair for each "
            "unit that was played.",
        ),
    ],
    state: StateFile,
) -> None:
    """Record the reward of an action.

    The policy is the one that `recommend --state` keeps. You may tell any arm or point, recommended or not, and do not
    need the log for it. Several processes may tell at the same time.
    """
    base, action, reward, rounds = told(state, partial(_outcome, outcome))
    pairs = zip(action, reward, strict=True) if base.proposes_list else [(action, reward)]
    actions = actions_of(base)
    show(f"round {rounds}: {', '.join(f'{actions.text(unit)} gave {value:g}' for unit, value in pairs)}")


def _outcome(words: list[str], base: Any) -> tuple[Any, Any]:
    """The action and the reward that the words say, or a list of each."""
    actions = actions_of(base)
    if len(words) % 2:
        raise InvalidAction(f"{actions.noun} and reward must come in pairs, got {' '.join(words)}")
    units = [actions.unit(text) for text in words[::2]]
    rewards = [outcome_value(text) for text in words[1::2]]
    if len(units) > 1 and not base.proposes_list:
        raise InvalidAction(f"{name_of(type(base))} plays one {actions.noun} in a round, got {len(units)}")
    return (units, rewards) if base.proposes_list else (units[0], rewards[0])


def outcome_value(text: str) -> float:
    """A reward as it is written."""
    try:
        return float(text)
    except ValueError:
        raise InvalidAction(f"reward is {text!r}, expected a number") from None


def _show(found: Recommended, actions: Actions, all_rows: bool) -> None:
    action, policy = found.action, found.policy
    units = action if isinstance(action, list) else [action]
    standings = actions.standings(policy)
    shown = standings if all_rows else standings[:_MOST_ROWS]
    headings, rows = actions.headings, [actions.row(standing) for standing in shown]
    if all(row[-1] == NONE for row in rows):  # an algorithm without an index
        headings, rows = headings[:-1], [row[:-1] for row in rows]
    show(f"next action: {', '.join(map(actions.text, units))}", "", table_of(headings, rows))
    if len(shown) < len(standings):
        show(f"… and {len(standings) - len(shown):,} more (--all shows them)")
    show("", *_use_of_log(found, actions))


def _use_of_log(found: Recommended, actions: Actions) -> list[str]:
    policy, rounds = found.policy, found.rounds
    rows = policy.used + policy.unused
    lines = [f"used {policy.used:,} of {rows:,} samples, {percent(policy.used / rows)}" if rows else "the log is empty"]
    lines[-1] += _what_was_read(policy.reading)
    reason = actions.reason(rows)
    if reason is not None:
        lines.insert(0, reason)
    if policy.skipped:
        lines.append(f"skipped {policy.skipped:,} rows whose {actions.strange}")
    if rounds:
        lines.append(f"{rounds:,} online round{'s' if rounds > 1 else ''} told so far")
    return lines + [f"the log may be out of date: {found}" for found in policy.contradictions()]


def _what_was_read(reading: Reading) -> str:
    """What was read in its own unit: rows, sums that stand for many rows, or both."""
    units = [("row", reading.rows)] if reading.rows or not reading.sums else []
    units += [("sum", reading.sums)] if reading.sums else []
    read = " and ".join(f"{number:,} {name}{'' if number == 1 else 's'}" for name, number in units)
    if reading.requests:
        return f"; read {read}, {size(reading.bytes)}, in {reading.requests:,} requests"
    return f"; read {read}" if reading.sums else ""


def _plain(action: Any, actions: Actions) -> Any:
    return [actions.plain(unit) for unit in action] if isinstance(action, list) else actions.plain(action)


def _as_json(found: Recommended, actions: Actions) -> dict[str, Any]:
    policy = found.policy
    return {
        "action": _plain(found.action, actions),
        "algorithm": name_of(type(policy.base)),
        "policy": policy.kind,
        "rounds": found.rounds,
        "log": {"samples": policy.used + policy.unused, "used": policy.used, "skipped": policy.skipped},
        "reading": dataclasses.asdict(policy.reading),
        actions.rows: [actions.entry(standing) for standing in actions.standings(policy)],
    }
