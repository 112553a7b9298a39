"""`recommend` and `tell`: one decision at a time, from a log on disk."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import typer

from artreplay.cli.actions import ALLOCATIONS, Actions, actions_of
from artreplay.cli.names import name_of
from artreplay.cli.state import keep, prepared, recalled, reopen
from artreplay.console.options import (
    AsJson,
    Budget,
    Count,
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
from artreplay.errors import InvalidAction, InvalidHistory, InvalidParameter
from artreplay.history import Reading

_MOST_ROWS = 20


def recommend(
    log: Source,
    unit: Units = None,
    reward: Annotated[str | None, typer.Option(help="The column with the reward.")] = None,
    count: Count = None,
    sum_: Sum = None,
    horizon: Annotated[int | None, typer.Option(help="How many rounds will be played in all.")] = None,
    algorithm: Annotated[
        str | None,
        typer.Option(help="The base algorithm, see `artreplay algorithms`; mon-ucb, or for points tree-ucb."),
    ] = None,
    state: Annotated[
        Path | None, typer.Option(help="Keep the policy in this file: continue it if it exists, else create it.")
    ] = None,
    arms: Annotated[
        str | None, typer.Option(metavar="A,B,C", help="The arms, in order; by default all labels of the log.")
    ] = None,
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
    allow_scan: Annotated[
        bool, typer.Option("--allow-scan", help="Read a PostgreSQL table although it lacks an index.")
    ] = False,
    reward_range: Annotated[
        tuple[float, float] | None, typer.Option(metavar="LOW HIGH", help="The range of the rewards; 0 1 by default.")
    ] = None,
    budget: Budget = None,
    seed: Annotated[int | None, typer.Option(help="The seed of algorithms that draw at random; 0 by default.")] = None,
    policy: Annotated[WithLog | None, typer.Option(help="How the log is used; artificial-replay by default.")] = None,
    all_rows: Annotated[bool, typer.Option("--all", help=f"Show all arms or cells, not {_MOST_ROWS} at most.")] = False,
    level: Annotated[str | None, typer.Option(hidden=True)] = None,
    as_json: AsJson = False,
) -> None:
    """Recommend what to play next, from a log of arms, or of points (give --unit once for each coordinate).

    Without --state every call starts afresh from the log. With --state the policy is kept between calls: play what is
    recommended, `artreplay tell` what came of it, and call this again with the log, which may have grown. Options that
    the state file already holds need not be repeated.
    """
    if level is not None:
        raise InvalidParameter(f"--level must be left out: {ALLOCATIONS}")
    columns = {"reward": reward, "until": until, "order": order, "seed": order_seed, "table": table}
    columns |= {"allow_scan": allow_scan or None, "count": count, "sum": sum_}
    parameters: dict[str, Any] = {"horizon": horizon, "budget": budget, "seed": seed, "reward_range": reward_range}
    parameters |= {"epsilon": epsilon, "cells_per_side": cells_per_side}
    request = Request(log, unit or None, columns, algorithm, parameters, arms, box or None, unknown, policy)
    asked, note = prepared(request, state)
    action = asked.ask()
    if state is not None:
        keep(asked, state, note)
    actions = actions_of(asked.base)
    if as_json:
        show_json(_as_json(asked, actions, action))
    else:
        _show(asked, actions, action, all_rows)


def tell(
    outcome: Annotated[
        list[str],
        typer.Argument(
            metavar="ACTION REWARD",
            help="An arm, or a point such as 0.3,0.7, and its reward; one pair for each unit that was played.",
        ),
    ],
    state: StateFile,
    log: Annotated[
        str | None,
        typer.Option(metavar="LOG", help="Where the log is now, if it has moved; it is opened only if it must be."),
    ] = None,
) -> None:
    """Record what came of an action.

    The policy is the one that `recommend --state` keeps. Any arm or point may be told, recommended or not: it is data.
    What was recommended last can be told without the log. For anything else the log is opened, because rows of it come
    before what is told.
    """
    policy, note = recalled(state)
    actions = actions_of(policy.base)
    if len(outcome) % 2:
        raise InvalidAction(f"{actions.noun} and reward must come in pairs, got {' '.join(outcome)}")
    units = [actions.unit(text) for text in outcome[::2]]
    rewards = [_number(text) for text in outcome[1::2]]
    if len(units) > 1 and not policy.base.proposes_list:
        raise InvalidAction(f"{name_of(type(policy.base))} plays one {actions.noun} in a round, got {len(units)}")
    told = (units, rewards) if policy.base.proposes_list else (units[0], rewards[0])
    try:
        policy.tell(*told)
    except InvalidHistory:
        reopen(policy, note, log, " ".join(outcome[::2]))
        policy.tell(*told)
    keep(policy, state, note)
    shown = ", ".join(f"{actions.text(unit)} gave {value:g}" for unit, value in zip(units, rewards, strict=True))
    show(f"round {policy.rounds}: {shown}")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidAction(f"reward is {text!r}, expected a number") from None


def _show(policy: Any, actions: Actions, action: Any, all_rows: bool) -> None:
    units = action if isinstance(action, list) else [action]
    standings = actions.standings(policy)
    shown = standings if all_rows else standings[:_MOST_ROWS]
    headings, rows = actions.headings, [actions.row(standing) for standing in shown]
    if all(row[-1] == NONE for row in rows):  # an algorithm without an index
        headings, rows = headings[:-1], [row[:-1] for row in rows]
    show(f"next action: {', '.join(map(actions.text, units))}", "", table_of(headings, rows))
    if len(shown) < len(standings):
        show(f"… and {len(standings) - len(shown):,} more (--all shows them)")
    show("", *_use_of_log(policy, actions))


def _use_of_log(policy: Any, actions: Actions) -> list[str]:
    rows = policy.used + policy.unused
    lines = [f"used {policy.used:,} of {rows:,} samples, {percent(policy.used / rows)}" if rows else "the log is empty"]
    lines[-1] += _what_was_read(policy.reading)
    if policy.skipped:
        lines.append(f"skipped {policy.skipped:,} rows whose {actions.strange}")
    if policy.rounds:
        lines.append(f"{policy.rounds:,} online round{'s' if policy.rounds > 1 else ''} told so far")
    return lines


def _what_was_read(reading: Reading) -> str:
    """What was read in its own unit: rows, sums that stand for many rows, or both."""
    units = [("row", reading.rows)] if reading.rows or not reading.sums else []
    units += [("sum", reading.sums)] if reading.sums else []
    read = " and ".join(f"{number:,} {name}{'' if number == 1 else 's'}" for name, number in units)
    if reading.requests:
        return f"; read {read}, {size(reading.bytes)}, in {reading.requests:,} requests"
    return f"; read {read}" if reading.sums else ""


def _as_json(policy: Any, actions: Actions, action: Any) -> dict[str, Any]:
    return {
        "action": action,
        "algorithm": name_of(type(policy.base)),
        "policy": policy.kind,
        "rounds": policy.rounds,
        "log": {"samples": policy.used + policy.unused, "used": policy.used, "skipped": policy.skipped},
        "reading": dataclasses.asdict(policy.reading),
        actions.rows: [actions.entry(standing) for standing in actions.standings(policy)],
    }
