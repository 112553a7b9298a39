"""`recommend` and `tell`: one decision at a time, from a log on disk."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Annotated, Any

import typer

from artreplay.cli.names import name_of
from artreplay.cli.options import (
    Algorithm,
    AsJson,
    Budget,
    Order,
    OrderSeed,
    Source,
    StateFile,
    Table,
    Unknown,
    WithLog,
)
from artreplay.cli.output import count, number, percent, show, show_json, size, text_of
from artreplay.cli.output import table as table_of
from artreplay.cli.state import Request, arms_by_text, keep, prepared, recalled
from artreplay.errors import InvalidAction, InvalidHistory
from artreplay.replay import Cell

_MOST_ROWS = 20


def recommend(
    log: Source,
    unit: Annotated[str | None, typer.Option(help="The column with the arm that was played.")] = None,
    reward: Annotated[str | None, typer.Option(help="The column with the reward that came of it.")] = None,
    horizon: Annotated[int | None, typer.Option(help="How many rounds are to be played in all.")] = None,
    algorithm: Algorithm = None,
    state: Annotated[
        Path | None, typer.Option(help="Keep the policy in this file: continue it if it exists, else create it.")
    ] = None,
    arms: Annotated[
        str | None, typer.Option(metavar="A,B,C", help="The arms, in order; all labels of the log if not said.")
    ] = None,
    unknown: Annotated[
        Unknown | None, typer.Option(help="What to do with rows whose label is not an arm; error if not said.")
    ] = None,
    until: Annotated[
        int | None, typer.Option(help="Only the first so many rows are the log; later ones were told already.")
    ] = None,
    order: Order = None,
    order_seed: OrderSeed = None,
    table: Table = None,
    allow_scan: Annotated[
        bool, typer.Option("--allow-scan", help="Read a PostgreSQL table although it lacks an index.")
    ] = False,
    reward_range: Annotated[
        tuple[float, float] | None, typer.Option(metavar="LOW HIGH", help="What rewards can be; 0 1 if not said.")
    ] = None,
    budget: Budget = None,
    seed: Annotated[int | None, typer.Option(help="For algorithms that draw at random; 0 if not said.")] = None,
    policy: Annotated[WithLog | None, typer.Option(help="How the log is used; artificial-replay if not said.")] = None,
    summaries: Annotated[
        bool, typer.Option("--summaries", help="Take whole blocks of a store in by their summaries; same decisions.")
    ] = False,
    all_arms: Annotated[bool, typer.Option("--all", help=f"Show all arms, not {_MOST_ROWS} at most.")] = False,
    as_json: AsJson = False,
) -> None:
    """Say what to play next, given a log.

    Without --state every call starts afresh from the log. With --state the policy is kept between calls: play what is
    recommended, `artreplay tell` what came of it, and call this again with the log, which may have grown. Options that
    the state file already holds need not be repeated.
    """
    columns = {"unit": unit, "reward": reward, "until": until, "order": order, "seed": order_seed, "table": table}
    columns["allow_scan"] = allow_scan or None
    request = Request(log, columns, algorithm, horizon, budget, seed, reward_range, arms, unknown, policy, summaries)
    asked, note = prepared(request, state)
    action = asked.ask()
    if state is not None:
        keep(asked, state, note)
    if as_json:
        show_json(_as_json(asked, action))
    else:
        _show(asked, action, all_arms)


def tell(
    outcome: Annotated[
        list[str],
        typer.Argument(metavar="ARM REWARD", help="What was played and its reward; several pairs if several."),
    ],
    state: StateFile,
) -> None:
    """Record what came of an action.

    The policy is the one that `recommend --state` keeps; the log is not needed. Any arm may be told, recommended or
    not: it is data.
    """
    if len(outcome) % 2:
        raise InvalidAction(f"an arm and its reward must come in pairs, got {' '.join(outcome)}")
    policy, note = recalled(state)
    arms = arms_by_text(policy, outcome[::2])
    rewards = [_number(text) for text in outcome[1::2]]
    if len(arms) > 1 and not policy.base.several:
        raise InvalidAction(f"{name_of(type(policy.base))} plays one arm in a round, got {len(arms)}")
    try:
        policy.tell(*((arms, rewards) if policy.base.several else (arms[0], rewards[0])))
    except InvalidHistory:  # a full start that was never asked must read its log before anything else
        raise InvalidHistory(f"{state} has not read its log: run `artreplay recommend` with it first") from None
    keep(policy, state, note)
    told = ", ".join(f"{text_of(arm)} gave {value:g}" for arm, value in zip(arms, rewards, strict=True))
    show(f"round {policy.rounds}: {told}")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidAction(f"reward is {text!r}, expected a number") from None


def _show(policy: Any, action: Any, all_arms: bool) -> None:
    units = action if isinstance(action, list) else [action]
    cells = _best_first(policy.cells())
    shown = cells if all_arms else cells[:_MOST_ROWS]
    indexed = any(not math.isnan(cell.index) for cell in cells)
    headers: tuple[str, ...] = ("arm", "in the log", "used", "online", "mean", "index")
    rows: list[tuple[str, ...]] = [
        (
            text_of(cell.unit),
            count(cell.logged),
            count(cell.used),
            count(cell.count - cell.used),
            number(cell.mean),
            number(cell.index),
        )
        for cell in shown
    ]
    if not indexed:
        headers, rows = headers[:-1], [row[:-1] for row in rows]
    show(f"next action: {', '.join(map(text_of, units))}", "", table_of(headers, rows))
    if len(shown) < len(cells):
        show(f"… and {len(cells) - len(shown):,} more (--all shows them)")
    show("", *_use_of_log(policy))


def _use_of_log(policy: Any) -> list[str]:
    rows = policy.used + policy.unused
    lines = [f"used {policy.used:,} of {rows:,} samples, {percent(policy.used / rows)}" if rows else "the log is empty"]
    reading = policy.reading
    if reading.requests:
        lines[-1] += f"; read {reading.rows:,} rows, {size(reading.bytes)}, in {reading.requests:,} requests"
        lines[-1] += " (blocks by their summaries)" if getattr(policy, "replay", "") == "summaries" else ""
    if policy.skipped:
        lines.append(f"skipped {policy.skipped:,} rows whose label is not an arm")
    if policy.rounds:
        lines.append(f"{policy.rounds:,} online round{'s' if policy.rounds > 1 else ''} told so far")
    return lines


def _best_first(cells: list[Cell]) -> list[Cell]:
    """By index, or by mean where there is none; arms without either come last, equals in the order of the arms."""
    return sorted(cells, key=_rank)


def _rank(cell: Cell) -> float:
    """Where a cell stands among the others: the better it may be, the lower."""
    value = cell.mean if math.isnan(cell.index) else cell.index
    return math.inf if math.isnan(value) else -value


def _as_json(policy: Any, action: Any) -> dict[str, Any]:
    return {
        "action": action,
        "algorithm": name_of(type(policy.base)),
        "policy": policy.kind,
        "rounds": policy.rounds,
        "log": {"samples": policy.used + policy.unused, "used": policy.used, "skipped": policy.skipped},
        "reading": dataclasses.asdict(policy.reading),
        "arms": [
            {
                "arm": cell.unit,
                "in_log": cell.logged,
                "used": cell.used,
                "online": cell.count - cell.used,
                "mean": cell.mean,
                "index": cell.index,
            }
            for cell in _best_first(policy.cells())
        ],
    }
