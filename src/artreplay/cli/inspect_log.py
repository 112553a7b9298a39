"""`inspect`: a look at a log, what it can decide, and what it will cost to read."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple, cast

import typer

from artreplay.algorithms import KLUCB, ArmAlgorithm
from artreplay.cli.algorithm_options import Bonus, Drift, Level, Prior, column_or_drift, drift_of, tuning_of
from artreplay.cli.log_arguments import csv_of, place_of, say_dialect_of, split_labels, units_of
from artreplay.cli.log_sentences import (
    context_lines,
    off_policy_lines,
    verdict,
    warnings_for,
    what_is_read,
    with_interval,
)
from artreplay.cli.names import class_of, make_base, name_of, takes
from artreplay.console.figures import checked_figure, write_figure
from artreplay.console.options import (
    AsJson,
    Count,
    Csv,
    Order,
    OrderSeed,
    Reward,
    RewardBounds,
    Source,
    Sum,
    Table,
    Units,
)
from artreplay.console.output import NONE, count, number, percent, show, show_json, text_of
from artreplay.console.output import table as table_of
from artreplay.engine.context_forecasts import Forecasts, context_forecasts
from artreplay.engine.log_outlook import Outlook, outlook
from artreplay.errors import InvalidHistory, InvalidParameter, checked_count, errors_in
from artreplay.history import History, Totals, open_history
from artreplay.inspecting import (
    ContextChecks,
    Group,
    Inspection,
    OffPolicy,
    check_contexts,
    complete_log,
    inspect_history,
    weighted_rows,
)
from artreplay.replay import ArtificialReplay

_MOST_ROWS = 20
_BAR = 30  # letters of the longest bar
_MOST_SEGMENTS = 8  # of a column


def inspect(
    log: Source,
    unit: Units = None,
    reward: Reward = None,
    count_: Count = None,
    sum_: Sum = None,
    level: Level = None,
    order: Order = None,
    order_seed: OrderSeed = None,
    table: Table = None,
    csv: Csv = None,
    horizon: Annotated[int | None, typer.Option(help="Rounds to come; by default as many as the log has rows.")] = None,
    algorithm: Annotated[str, typer.Option(help="Whose bonus and reading are judged, over arms.")] = name_of(KLUCB),
    bonus: Bonus = None,
    prior: Prior = None,
    drift: Drift = None,
    reward_range: RewardBounds = None,
    propensity: Annotated[
        str | None, typer.Option(help="The column with the probability of the logged choice: what would an arm earn?")
    ] = None,
    context: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B,C", help="Columns of what was known of each row: do they matter, and do they mislead?"
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Draw what the log can decide: .png, .pdf or .svg.")] = None,
    all_groups: Annotated[bool, typer.Option("--all", help=f"Show all arms, not {_MOST_ROWS} at most.")] = False,
    as_json: AsJson = False,
) -> None:
    """Inspect a log: what it covers, what it can decide, what replay will read of it, and what could mislead."""
    kind = None if out is None else checked_figure(out)
    cls = class_of(algorithm)
    given = tuning_of(level, bonus, prior) | {"reward_range": reward_range}
    allowance, drift = column_or_drift(drift)
    columns = {"unit": units_of(unit), "reward": reward, "order": order, "allowance": allowance}
    totals = {"count": count_, "sum": sum_}
    how: dict[str, Any] = {"table": table, "csv": csv_of(csv)}
    with errors_in(file=place_of(log)):
        found = _looked_at(log, columns, totals, {"seed": order_seed, **how})
        say_dialect_of(log, **how)
        rounds = None if horizon is None else checked_count("horizon", horizon)
        decided = _outlook(cls, given, found, rounds, drift)
        if decided is None and (propensity is not None or context):
            option = "--propensity" if propensity is not None else "--context"
            raise InvalidParameter(f"{option} needs --unit and --reward, and a log of arms with rewards in their range")
        off_policy = None if propensity is None else _off_policy(log, columns, propensity, how, decided)
        seen = None if not context else _seen(log, columns, split_labels(*context, option="--context"), how, order_seed)
        checks, forecasts = (None, None) if seen is None else _contexts(seen, decided)
    if decided is not None:
        found.warnings += warnings_for(decided.outlook, decided.base, found.rows)
    if checks is not None:
        found.warnings += checks.warnings
    looked = Looked(found, decided, off_policy, checks, forecasts, count_ is None)
    if out is not None and kind is not None:
        _draw(looked, cls, out, kind)
    if as_json:
        show_json(_as_json(looked))
        return
    _show(looked, all_groups, cls)
    if out is not None:
        show(f"the figure is in {out}")


class Decided(NamedTuple):
    """What a log can decide, for which algorithm, and what its arms earned."""

    outlook: Outlook
    base: ArmAlgorithm
    totals: Totals


class Looked(NamedTuple):
    """Everything that was found; None where it was not asked for, or cannot be said."""

    found: Inspection
    decided: Decided | None
    off_policy: OffPolicy | None
    checks: ContextChecks | None
    forecasts: Forecasts | None
    is_rows: bool  # and no table of totals

    def verdict(self) -> list[str]:
        """What the log can decide, in sentences."""
        if self.decided is None:
            return []
        return verdict(self.decided.outlook, self.off_policy, self.checks, self.is_rows)


def _looked_at(log: str, columns: dict[str, Any], totals: dict[str, Any], how: dict[str, Any]) -> Inspection:
    if any(name is not None for name in totals.values()):
        read = open_history(log, **columns, **totals, **how)
        return _inspected(cast(Totals, read))
    return inspect_history(log, **columns, **how)


def _draw(looked: Looked, cls: type[ArmAlgorithm], out: Path, kind: str) -> None:
    if looked.decided is None:
        raise InvalidParameter("--out needs a log of arms with rewards in their range: there is nothing to draw")
    from artreplay.plots.log_figures import draw_outlook

    headline, *more = looked.verdict()
    outlook = looked.decided.outlook
    write_figure(draw_outlook(outlook, headline, " ".join([*more, what_is_read(outlook, cls)])), out, kind)


def _inspected(totals: Totals) -> Inspection:
    """What can be said of totals: nothing of their order."""
    whole = Totals.of(totals)
    rows = zip(whole.labels, whole.counts.tolist(), whole.sums.tolist(), strict=True)
    groups = [Group(arm, n, total / n, math.nan, False, 0) for arm, n, total in rows if n]
    found = Inspection(rows=len(totals), groups=groups)
    if not groups:
        found.warnings.append("the log is empty: a policy over it starts from nothing")
    return found


def _outlook(
    cls: type[ArmAlgorithm], given: dict[str, Any], found: Inspection, rounds: int | None, drift: str | None
) -> Decided | None:
    """What the log can decide; None for points, an empty log, and rewards that are not in their range."""
    low, high = given["reward_range"] or (0.0, 1.0)
    known = [] if math.isnan(found.low) else [found.low, found.high]
    if found.kind != "arms" or not found.groups or not all(low <= value <= high for value in known):
        return None
    groups = found.groups
    totals = Totals([g.name for g in groups], [g.rows for g in groups], [g.mean * g.rows for g in groups])
    rounds = found.rows if rounds is None else rounds
    fixed = {"horizon": rounds} if takes(cls, "horizon") else {}
    base = make_base(cls, given, arms=[g.name for g in groups], **fixed)
    return Decided(outlook(totals, base, rounds, _allowed(drift, base, groups)), base, totals)


def _allowed(drift: str | None, base: ArmAlgorithm, groups: Sequence[Group]) -> dict[Any, float]:
    """The allowance of each arm; the mean of its rows where the log has a column of them."""
    labels = {str(label): label for label in base.arms}
    given = drift_of(drift, labels)
    if given is None and not (given := {group.name: group.allowance for group in groups if group.allowance}):
        return {}
    ArtificialReplay(base, History([], []), drift=given)  # which refuses what cannot be
    return given if isinstance(given, dict) else dict.fromkeys(labels.values(), given)


def _off_policy(
    log: str, columns: dict[str, Any], propensity: str, how: dict[str, Any], decided: Decided | None
) -> OffPolicy:
    """What each arm would earn by the log's propensities."""
    if decided is None or not isinstance(columns["unit"], str) or columns["reward"] is None:
        raise InvalidParameter("--propensity needs --unit and --reward, and a log of arms with rewards in their range")
    how = how | {"reward_range": decided.base.reward_range}
    return weighted_rows(log, columns["unit"], columns["reward"], propensity, **how).earnings()


def _seen(log: str, columns: Mapping[str, Any], contexts: list[str], how: dict[str, Any], seed: int | None) -> History:
    """The log with its context columns, in memory."""
    named = {name: columns[name] for name in ("unit", "reward", "order")}
    return complete_log(log, **named, contexts=contexts, seed=seed, **how)


def _contexts(seen: History, decided: Decided | None) -> tuple[ContextChecks | None, Forecasts | None]:
    """What the context columns do, and whether they forecast anything; nothing of columns that say nothing."""
    if decided is None:
        return None, None
    reward_range = decided.base.reward_range
    checks = check_contexts(seen, decided.outlook.leader, reward_range)
    try:
        return checks, context_forecasts(seen, reward_range)
    except (InvalidHistory, InvalidParameter) as error:
        checks.warnings.append(f"the columns cannot be contexts as they are: {error}")
        return checks, None


# -- what is shown ---------------------------------------------------------------------------------------------------


def _show(looked: Looked, all_groups: bool, cls: type[ArmAlgorithm]) -> None:
    found, decided = looked.found, looked.decided
    what = "arms" if found.kind == "arms" else "regions of the first two axes"
    lines = [f"{found.rows:,} rows, {len(found.groups):,} {what}"]
    if found.missing:
        lines.append(f"{found.missing:,} rows without a reward or a unit, left out here")
    if found.rows and not math.isnan(found.low):
        lines.append(f"rewards from {found.low:g} to {found.high:g}")
    said = looked.verdict()
    show(*said[:1], *lines, "")
    groups = _in_order(looked)
    shown = groups if all_groups else groups[:_MOST_ROWS]
    leader = None if decided is None else decided.outlook.leader
    shown += [group for group in groups[len(shown) :] if group.name == leader]
    if shown:
        columns = _columns(looked)
        heading = "arm" if found.kind == "arms" else "region"
        headings = (heading, "share of the log", "rows", "", "mean", *columns)
        rows = [
            (*row, *(texts.get(group.name, NONE) for texts in columns.values()))
            for row, group in zip(_rows(shown, found), shown, strict=True)
        ]
        show(table_of(headings, rows, texts=2))
    if len(shown) < len(groups):
        show(f"… and {len(groups) - len(shown):,} more (--all shows them)")
    if decided is not None:
        show("", *said[1:], what_is_read(decided.outlook, cls))
    if looked.off_policy is not None:
        show("", *off_policy_lines(looked.off_policy))
    if looked.checks is not None:
        _show_contexts(looked.checks, looked.forecasts, all_groups)
    show("", *([f"warning: {text}" for text in found.warnings] or ["no warnings"]))


def _in_order(looked: Looked) -> list[Group]:
    """The arms, the best first by what the first sentence is about; regions by their rows."""
    places: dict[Any, int] = {}
    if looked.off_policy is not None:
        places = {one.arm: place for place, one in enumerate(looked.off_policy.arms)}
    elif looked.checks is not None and looked.checks.confounding.columns:
        places = {one.arm: place for place, one in enumerate(looked.checks.confounding.arms)}
    elif looked.decided is not None:
        by_low = sorted(looked.decided.outlook.standings, key=lambda one: (-one.low, -one.mean))
        places = {one.arm: place for place, one in enumerate(by_low)}
    groups = looked.found.groups
    return sorted(groups, key=lambda group: (places.get(group.name, len(groups)), -group.rows))


def _columns(looked: Looked) -> dict[str, dict[Any, str]]:
    """More columns of the table, by heading and arm."""
    columns: dict[str, dict[Any, str]] = {}
    if looked.off_policy is not None:
        columns["by propensities"] = {one.arm: with_interval(one.earns) for one in looked.off_policy.arms}
    if looked.checks is not None and looked.checks.confounding.columns:
        columns["adjusted"] = {one.arm: number(one.adjusted) for one in looked.checks.confounding.arms}
    if not columns and looked.decided is not None:
        standings = looked.decided.outlook.standings
        columns["true mean between"] = {one.arm: f"{number(one.low)} and {number(one.high)}" for one in standings}
    return columns


def _show_contexts(checks: ContextChecks, forecasts: Forecasts | None, all_segments: bool) -> None:
    rows = []
    for name in checks.columns:
        mine = [one for one in checks.segments if one.column == name]
        for one in mine if all_segments else mine[:_MOST_SEGMENTS]:
            apart = "yes" if one.is_told_apart else "no"
            rows.append((name, one.value, text_of(one.best), apart, count(one.rows), count(one.arms)))
    headings = ("column", "value", "best arm", "told apart", "rows", "arms seen")
    show("", table_of(headings, rows, texts=4))
    sizes = [
        (" × ".join(one.columns), count(one.cells), count(one.rows_per_cell), percent(one.thin)) for one in checks.cells
    ]
    show("", table_of(("as segments", "segments × arms", "rows for each", "with fewer than 20"), sizes))
    if forecasts is not None:
        errors = [
            (text_of(one.arm), count(one.rows), *(f"{value:.5f}" if value == value else NONE for value in
             (one.mean, one.linear, one.cosines)), f"{100 * one.gain:+.1f} % ± {100 * one.gain_error:.1f}")
            for one in sorted(forecasts.arms, key=lambda one: -one.gain)[:_MOST_ROWS]
        ]  # fmt: skip
        headings_ = ("forecast one row ahead", "rows", "error of the mean", "linear", "cosines", "better by")
        show("", table_of(headings_, errors))
    show("", *context_lines(checks, None if forecasts is None else forecasts.sentence))


def _rows(groups: list[Group], found: Inspection) -> list[tuple[str, ...]]:
    most = max(group.rows for group in groups)
    return [
        (
            text_of(group.name),
            "█" * max(round(_BAR * group.rows / most), 1),
            count(group.rows),
            percent(group.rows / found.rows),
            number(group.mean),
        )
        for group in groups
    ]


def _as_json(looked: Looked) -> dict[str, Any]:
    parts = {
        "outlook": None if looked.decided is None else looked.decided.outlook,
        "off_policy": looked.off_policy,
        "contexts": looked.checks,
        "forecasts": looked.forecasts,
    }
    found = dataclasses.asdict(looked.found) | {
        name: None if part is None else dataclasses.asdict(part) for name, part in parts.items()
    }
    if looked.forecasts is not None:
        found["forecasts"] |= {"outcome": looked.forecasts.outcome, "sentence": looked.forecasts.sentence}
    return found | {"sentences": looked.verdict()}
