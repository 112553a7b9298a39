"""`recommend` and `tell`: one decision at a time, from a log on disk."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from artreplay.cli.algorithm_options import (
    BonusOption,
    DriftOption,
    LevelOption,
    PriorOption,
    column_or_drift,
    tuning_of,
)
from artreplay.cli.context_arguments import (
    AtOption,
    ContextOption,
    SegmentsOption,
    columns_to_open,
    context_columns_of,
    context_in_words,
)
from artreplay.cli.labelled_arms import HEADINGS, best_first, entry_of, row_of
from artreplay.cli.log_arguments import column_of_arms, csv_of
from artreplay.cli.names import name_of
from artreplay.cli.state import Answer, Recommendation, answers_for, recommendation_for, tell_state
from artreplay.console.options import (
    ArmsOption,
    CountOption,
    CsvOption,
    JsonOption,
    LogPlace,
    OrderOption,
    OrderSeedOption,
    Request,
    StateFileOption,
    SumOption,
    TableOption,
    UnitOption,
)
from artreplay.console.output import MAX_ROWS, NONE, number, percent, show, show_json, text_of
from artreplay.console.output import count as counted
from artreplay.console.output import table as table_of
from artreplay.errors import InvalidAction, InvalidParameter
from artreplay.history import History, Totals
from artreplay.replay import Unknown


def recommend(
    log: LogPlace,
    unit: UnitOption = None,
    reward: Annotated[str | None, typer.Option(help="The column with the reward.")] = None,
    count: CountOption = None,
    sum_: SumOption = None,
    horizon: Annotated[int | None, typer.Option(help="How many rounds are still to come.")] = None,
    algorithm: Annotated[
        str | None,
        typer.Option(help="The base algorithm. `artreplay algorithms` lists them. By default kl-ucb."),
    ] = None,
    state: Annotated[
        Path | None, typer.Option(help="The file that keeps the policy. It is continued if it exists, and made if not.")
    ] = None,
    arms: ArmsOption = None,
    unknown: Annotated[
        Unknown | None,
        typer.Option(help="Refuse a log with rows that belong to no arm (error), or leave these rows out (skip)."),
    ] = None,
    until: Annotated[
        int | None,
        typer.Option(help="Use only this many rows, from the start of the log. Later rows were already told."),
    ] = None,
    order: OrderOption = None,
    order_seed: OrderSeedOption = None,
    table: TableOption = None,
    csv: CsvOption = None,
    allow_scan: Annotated[
        bool, typer.Option("--allow-scan", help="Read a PostgreSQL table even if it lacks an index.")
    ] = False,
    reward_range: Annotated[
        tuple[float, float] | None, typer.Option(metavar="LOW HIGH", help="The range of the rewards. By default 0 1.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="The seed of algorithms that draw at random. By default 0.")] = None,
    policy: Annotated[
        Literal["artificial-replay", "full-start"] | None,
        typer.Option(help="How to use the log. By default artificial-replay, or full-start if --state needs it."),
    ] = None,
    all_rows: Annotated[bool, typer.Option("--all", help=f"Show all arms, not only {MAX_ROWS}.")] = False,
    level: LevelOption = None,
    bonus: BonusOption = None,
    prior: PriorOption = None,
    drift: DriftOption = None,
    contexts: ContextOption = None,
    segments: SegmentsOption = None,
    context: AtOption = None,
    as_json: JsonOption = False,
) -> None:
    """Recommend which arm to play next, from a log.

    Without --state every call starts again from the log. With --state the policy is kept between calls: play what is
    recommended, tell the reward with `artreplay tell`, and call this again. You need not repeat options that the state
    file holds, and the log may have grown.

    With --context the recommendation is for the context that --at says, or for each row of a file of them.
    """
    names, within = context_columns_of(contexts, segments)
    if (context is None) != (not names):
        what = "--context or --segments must name the columns of --at"
        raise InvalidParameter(what if context else "--at must say for which context, as in --at '{\"age\": 31}'")
    if names and state is not None:
        raise InvalidParameter("--state must be left out with --context. `artreplay study create` keeps such a policy")
    columns: dict[str, Any] = {"unit": column_of_arms(unit, log, reward), "reward": reward, "until": until}
    columns |= {"order": order, "seed": order_seed, "table": table, "allow_scan": allow_scan or None}
    allowance, drift = column_or_drift(drift)
    columns |= {"count": count, "sum": sum_, "csv": csv_of(csv), "allowance": allowance}
    columns |= {"contexts": columns_to_open(names, log)}
    parameters: dict[str, Any] = {"horizon": horizon, "seed": seed, "reward_range": reward_range}
    parameters |= tuning_of(level, bonus, prior)
    options = (columns, algorithm, parameters, arms or None, unknown, policy, drift, tuple(names), tuple(within))
    request = Request(log, *options)
    if context is not None:
        show_answers(*answers_for(request, context), as_json, all_rows)
        return
    recommendation = recommendation_for(request, state)
    if as_json:
        show_json(_as_json(recommendation))
    else:
        _show(recommendation, all_rows)


def tell(
    arm: Annotated[str, typer.Argument(help="The arm that was played.")],
    reward: Annotated[str, typer.Argument(help="What it earned.")],
    state: StateFileOption,
) -> None:
    """Record the reward of an arm.

    The policy is the one that `recommend --state` keeps. You may tell any arm, whether it was recommended or not, and
    the log is not needed. Several processes may tell at the same time.
    """
    played, value, rounds = tell_state(state, arm, outcome_value(reward))
    show(f"round {rounds}: {text_of(played)} gave {value:g}")


def outcome_value(text: str) -> float:
    """Read a reward as it is written."""
    try:
        return float(text)
    except ValueError:
        raise InvalidAction(f"reward is {text!r}, expected a number") from None


def _show(recommendation: Recommendation, all_rows: bool) -> None:
    arms = best_first(recommendation.policy)
    shown = arms if all_rows else arms[:MAX_ROWS]
    headings, rows = HEADINGS, [row_of(arm) for arm in shown]
    if all(row[-1] == NONE for row in rows):  # an algorithm without an index
        headings, rows = headings[:-1], [row[:-1] for row in rows]
    show(f"next action: {text_of(recommendation.action)}", "", table_of(headings, rows))
    if len(shown) < len(arms):
        show(f"… and {len(arms) - len(shown):,} more (--all shows them)")
    show("", *use_of_log(recommendation.policy, recommendation.rounds))


def use_of_log(policy: Any, rounds: int = 0) -> list[str]:
    """Say how much of its log a policy has read, and where the log may be out of date."""
    rows = policy.used + policy.unused
    kind = "samples" if isinstance(policy.history, Totals) else "rows"
    lines = [f"read {policy.used:,} of {rows:,} {kind}, {percent(policy.used / rows)}" if rows else "the log is empty"]
    fetched = policy.reading.rows
    if not isinstance(policy.history, History):
        lines[-1] += f", fetched {fetched:,} row{'' if fetched == 1 else 's'}"
    if policy.skipped:
        lines.append(f"skipped {policy.skipped:,} rows whose label is not an arm")
    if rounds:
        lines.append(f"{rounds:,} online round{'s' if rounds > 1 else ''} told so far")
    return lines + [f"the log may be out of date: {found}" for found in policy.contradictions()]


def show_answers(policy: Any, answers: list[Answer], as_json: bool, all_rows: bool) -> None:
    """Show what to play in one context with what its arms are worth, or in each of many contexts."""
    is_one = len(answers) == 1
    if as_json:
        entries = [
            {"context": answer.context, "action": answer.action, "arms": [one._asdict() for one in answer.arms]}
            for answer in answers
        ]
        log = {"samples": policy.used + policy.unused, "used": policy.used, "skipped": policy.skipped}
        found: dict[str, Any] = entries[0] if is_one else {"rows": entries}
        show_json({"algorithm": name_of(type(policy.base)), "policy": policy.kind, "log": log} | found)
        return
    lines: list[tuple[str, ...]]
    if is_one:
        show(f"next action: {text_of(answers[0].action)}", "")
        headings, texts = ("arm", "in the log", "forecast", "worth"), 1
        lines = [
            (text_of(arm.arm), counted(arm.in_log), number(arm.forecast), number(arm.worth)) for arm in answers[0].arms
        ]
    else:
        headings, texts = ("context", "action", "forecast", "worth"), 2
        lines = [
            (context_in_words(one.context), text_of(one.action), number(one.played.forecast), number(one.played.worth))
            for one in answers
        ]
    show(table_of(headings, lines if all_rows else lines[:MAX_ROWS], texts=texts))
    if len(lines) > MAX_ROWS and not all_rows:
        show(f"… and {len(lines) - MAX_ROWS:,} more (--all shows them)")
    show("", *use_of_log(policy))


def _as_json(recommendation: Recommendation) -> dict[str, Any]:
    policy = recommendation.policy
    return {
        "action": recommendation.action,
        "algorithm": name_of(type(policy.base)),
        "policy": policy.kind,
        "rounds": recommendation.rounds,
        "log": {"samples": policy.used + policy.unused, "used": policy.used, "skipped": policy.skipped},
        "reading": dataclasses.asdict(policy.reading),
        "arms": [entry_of(arm) for arm in best_first(policy)],
    }
