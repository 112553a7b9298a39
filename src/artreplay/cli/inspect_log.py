"""`inspect`: what a log covers, what it can decide, and how much of it replay will read."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple, cast

import typer

from artreplay.algorithms import KLUCB, ArmAlgorithm
from artreplay.cli.algorithm_options import (
    BonusOption,
    DriftOption,
    LevelOption,
    PriorOption,
    column_or_drift,
    drift_of,
    tuning_of,
)
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
    CountOption,
    CsvOption,
    JsonOption,
    LogPlace,
    OrderOption,
    OrderSeedOption,
    RewardOption,
    RewardRangeOption,
    SumOption,
    TableOption,
    UnitOption,
)
from artreplay.console.output import MAX_BAR, MAX_ROWS, NONE, count, number, percent, show, show_json, text_of
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

MAX_SEGMENTS = 8  # of a column


def inspect(
    log: LogPlace,
    unit: UnitOption = None,
    reward: RewardOption = None,
    count_: CountOption = None,
    sum_: SumOption = None,
    level: LevelOption = None,
    order: OrderOption = None,
    order_seed: OrderSeedOption = None,
    table: TableOption = None,
    csv: CsvOption = None,
    horizon: Annotated[int | None, typer.Option(help="Rounds to come. By default as many as the log has rows.")] = None,
    algorithm: Annotated[str, typer.Option(help="The algorithm to judge, over arms.")] = name_of(KLUCB),
    bonus: BonusOption = None,
    prior: PriorOption = None,
    drift: DriftOption = None,
    reward_range: RewardRangeOption = None,
    propensity: Annotated[
        str | None,
        typer.Option(
            help="The column with the probability of the logged choice. Shows what each arm would have earned."
        ),
    ] = None,
    context: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B,C",
            help="Columns of what was known of each row. Shows whether they matter, and whether they mislead.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Draw what the log can decide in this file: .png, .pdf or .svg.")
    ] = None,
    all_groups: Annotated[bool, typer.Option("--all", help=f"Show all arms, not only {MAX_ROWS}.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Inspect a log: what it covers, what it can decide, how much replay will read, and what could mislead."""
    kind = None if out is None else checked_figure(out)
    cls = class_of(algorithm)
    tuning = tuning_of(level, bonus, prior) | {"reward_range": reward_range}
    allowance, drift = column_or_drift(drift)
    columns = {"unit": units_of(unit), "reward": reward, "order": order, "allowance": allowance}
    totals = {"count": count_, "sum": sum_}
    how: dict[str, Any] = {"table": table, "csv": csv_of(csv)}
    with errors_in(file=place_of(log)):
        inspection = _looked_at(log, columns, totals, {"seed": order_seed, **how})
        say_dialect_of(log, **how)
        rounds = None if horizon is None else checked_count("horizon", horizon)
        decisions = _outlook(cls, tuning, inspection, rounds, drift)
        if decisions is None and (propensity is not None or context):
            option = "--propensity" if propensity is not None else "--context"
            raise InvalidParameter(f"{option} needs --unit and --reward, and a log of arms with rewards in their range")
        off_policy = None if propensity is None else _off_policy(log, columns, propensity, how, decisions)
        log_rows = (
            None
            if not context
            else _read_with_contexts(log, columns, split_labels(*context, option="--context"), how, order_seed)
        )
        checks, forecasts = (None, None) if log_rows is None else _contexts(log_rows, decisions)
    inspection.warnings += _out_of_range(inspection, reward_range)
    if decisions is not None:
        inspection.warnings += warnings_for(decisions.outlook, decisions.base, inspection.rows)
    if checks is not None:
        inspection.warnings += checks.warnings
    findings = Findings(inspection, decisions, off_policy, checks, forecasts, count_ is None)
    if out is not None and kind is not None:
        _draw(findings, cls, out, kind)
    if as_json:
        show_json(_as_json(findings))
        return
    _show(findings, all_groups, cls)
    if out is not None:
        show(f"the figure is in {out}")


class LogDecisions(NamedTuple):
    """What a log can decide, for which algorithm, and what its arms earned."""

    outlook: Outlook
    base: ArmAlgorithm
    totals: Totals


class Findings(NamedTuple):
    """Everything that was inspection; None where it was not asked for, or cannot be sentences."""

    inspection: Inspection
    decisions: LogDecisions | None
    off_policy: OffPolicy | None
    checks: ContextChecks | None
    forecasts: Forecasts | None
    is_rows: bool  # and no table of totals

    def verdict(self) -> list[str]:
        """What the log can decide, in sentences."""
        if self.decisions is None:
            return []
        return verdict(self.decisions.outlook, self.off_policy, self.checks, self.is_rows)


def _looked_at(log: str, columns: dict[str, Any], totals: dict[str, Any], how: dict[str, Any]) -> Inspection:
    if any(name is not None for name in totals.values()):
        read = open_history(log, **columns, **totals, **how)
        return _inspected(cast(Totals, read))
    return inspect_history(log, **columns, **how)


def _out_of_range(inspection: Inspection, reward_range: tuple[float, float] | None) -> list[str]:
    """Warn of rewards that an algorithm would refuse."""
    low, high = reward_range or (0.0, 1.0)
    if math.isnan(inspection.low) or inspection.rows == 0 or (low <= inspection.low and inspection.high <= high):
        return []
    return [
        f"rewards lie in [{inspection.low:g}, {inspection.high:g}], outside [{low:g}, {high:g}]. Say their range with "
        "--reward-range"
    ]


def _draw(findings: Findings, cls: type[ArmAlgorithm], out: Path, kind: str) -> None:
    if findings.decisions is None:
        raise InvalidParameter(
            "--out needs a log of arms with rewards in their range, and this log has nothing to draw"
        )
    from artreplay.plots.log_figures import draw_outlook

    headline, *more = findings.verdict()
    outlook = findings.decisions.outlook
    write_figure(draw_outlook(outlook, headline, " ".join([*more, what_is_read(outlook, cls)])), out, kind)


def _inspected(totals: Totals) -> Inspection:
    """Report on totals, which say nothing of the order of rows."""
    whole = Totals.of(totals)
    rows = zip(whole.labels, whole.counts.tolist(), whole.sums.tolist(), strict=True)
    groups = [Group(arm, n, total / n, math.nan, False, 0) for arm, n, total in rows if n]
    inspection = Inspection(rows=len(totals), groups=groups)
    if not groups:
        inspection.warnings.append("the log is empty, so a policy over it starts from nothing")
    return inspection


def _outlook(
    cls: type[ArmAlgorithm], tuning: dict[str, Any], inspection: Inspection, rounds: int | None, drift: str | None
) -> LogDecisions | None:
    """Return what the log can decide, or None for points, an empty log, and rewards outside their range."""
    low, high = tuning["reward_range"] or (0.0, 1.0)
    bounds = [] if math.isnan(inspection.low) else [inspection.low, inspection.high]
    if inspection.kind != "arms" or not inspection.groups or not all(low <= value <= high for value in bounds):
        return None
    groups = inspection.groups
    totals = Totals([g.name for g in groups], [g.rows for g in groups], [g.mean * g.rows for g in groups])
    rounds = inspection.rows if rounds is None else rounds
    fixed = {"horizon": rounds} if takes(cls, "horizon") else {}
    base = make_base(cls, tuning, arms=[g.name for g in groups], **fixed)
    return LogDecisions(outlook(totals, base, rounds, _allowed(drift, base, groups)), base, totals)


def _allowed(drift: str | None, base: ArmAlgorithm, groups: Sequence[Group]) -> dict[Any, float]:
    """Return the allowance of each arm, or the mean of its rows if the log has a column of allowances."""
    labels = {str(label): label for label in base.arms}
    allowances = drift_of(drift, labels)
    if allowances is None and not (allowances := {group.name: group.allowance for group in groups if group.allowance}):
        return {}
    ArtificialReplay(base, History([], []), drift=allowances)  # refuses an impossible drift
    return allowances if isinstance(allowances, dict) else dict.fromkeys(labels.values(), allowances)


def _off_policy(
    log: str, columns: dict[str, Any], propensity: str, how: dict[str, Any], decisions: LogDecisions | None
) -> OffPolicy:
    """Return what each arm would earn by the log's propensities."""
    if decisions is None or not isinstance(columns["unit"], str) or columns["reward"] is None:
        raise InvalidParameter("--propensity needs --unit and --reward, and a log of arms with rewards in their range")
    how = how | {"reward_range": decisions.base.reward_range}
    return weighted_rows(log, columns["unit"], columns["reward"], propensity, **how).earnings()


def _read_with_contexts(
    log: str, columns: Mapping[str, Any], contexts: list[str], how: dict[str, Any], seed: int | None
) -> History:
    """Read the log with its context columns into memory."""
    named = {name: columns[name] for name in ("unit", "reward", "order")}
    return complete_log(log, **named, contexts=contexts, seed=seed, **how)


def _contexts(log_rows: History, decisions: LogDecisions | None) -> tuple[ContextChecks | None, Forecasts | None]:
    """Return what the context columns do, and whether they forecast anything if they can be contexts."""
    if decisions is None:
        return None, None
    reward_range = decisions.base.reward_range
    checks = check_contexts(log_rows, decisions.outlook.leader, reward_range)
    try:
        return checks, context_forecasts(log_rows, reward_range)
    except (InvalidHistory, InvalidParameter) as error:
        checks.warnings.append(f"the columns cannot be contexts as they are: {error}")
        return checks, None


# -- what is shown ---------------------------------------------------------------------------------------------------


def _show(findings: Findings, all_groups: bool, cls: type[ArmAlgorithm]) -> None:
    inspection, decisions = findings.inspection, findings.decisions
    what = "arms" if inspection.kind == "arms" else "regions of the first two axes"
    lines = [f"{inspection.rows:,} rows, {len(inspection.groups):,} {what}"]
    if inspection.missing:
        lines.append(f"{inspection.missing:,} rows without a reward or a unit, left out here")
    if inspection.rows and not math.isnan(inspection.low):
        lines.append(f"rewards from {inspection.low:g} to {inspection.high:g}")
    sentences = findings.verdict()
    show(*sentences[:1], *lines, "")
    groups = _in_order(findings)
    shown = groups if all_groups else groups[:MAX_ROWS]
    leader = None if decisions is None else decisions.outlook.leader
    shown += [group for group in groups[len(shown) :] if group.name == leader]
    if shown:
        columns = _columns(findings)
        heading = "arm" if inspection.kind == "arms" else "region"
        headings = (heading, "share of the log", "rows", "", "mean", *columns)
        rows = [
            (*row, *(texts.get(group.name, NONE) for texts in columns.values()))
            for row, group in zip(_rows(shown, inspection), shown, strict=True)
        ]
        show(table_of(headings, rows, texts=2))
    if len(shown) < len(groups):
        show(f"… and {len(groups) - len(shown):,} more (--all shows them)")
    if decisions is not None:
        show("", *sentences[1:], what_is_read(decisions.outlook, cls))
    if findings.off_policy is not None:
        show("", *off_policy_lines(findings.off_policy))
    if findings.checks is not None:
        _show_contexts(findings.checks, findings.forecasts, all_groups)
    show("", *([f"warning: {text}" for text in inspection.warnings] or ["no warnings"]))


def _in_order(findings: Findings) -> list[Group]:
    """Sort the arms by what the first sentence is about, the best first, and regions by their rows."""
    places: dict[Any, int] = {}
    if findings.off_policy is not None:
        places = {one.arm: place for place, one in enumerate(findings.off_policy.arms)}
    elif findings.checks is not None and findings.checks.confounding.columns:
        places = {one.arm: place for place, one in enumerate(findings.checks.confounding.arms)}
    elif findings.decisions is not None:
        by_low = sorted(findings.decisions.outlook.standings, key=lambda one: (-one.low, -one.mean))
        places = {one.arm: place for place, one in enumerate(by_low)}
    groups = findings.inspection.groups
    return sorted(groups, key=lambda group: (places.get(group.name, len(groups)), -group.rows))


def _columns(findings: Findings) -> dict[str, dict[Any, str]]:
    """Return more columns of the table, by heading and arm."""
    columns: dict[str, dict[Any, str]] = {}
    if findings.off_policy is not None:
        columns["by propensities"] = {one.arm: with_interval(one.earns) for one in findings.off_policy.arms}
    if findings.checks is not None and findings.checks.confounding.columns:
        columns["adjusted"] = {one.arm: number(one.adjusted) for one in findings.checks.confounding.arms}
    if not columns and findings.decisions is not None:
        standings = findings.decisions.outlook.standings
        columns["true mean between"] = {one.arm: f"{number(one.low)} and {number(one.high)}" for one in standings}
    return columns


def _show_contexts(checks: ContextChecks, forecasts: Forecasts | None, all_segments: bool) -> None:
    rows = []
    for name in checks.columns:
        mine = [one for one in checks.segments if one.column == name]
        for one in mine if all_segments else mine[:MAX_SEGMENTS]:
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
            for one in sorted(forecasts.arms, key=lambda one: -one.gain)[:MAX_ROWS]
        ]  # fmt: skip
        headings_ = ("forecast one row ahead", "rows", "error of the mean", "linear", "cosines", "better by")
        show("", table_of(headings_, errors))
    if lines := context_lines(checks, None if forecasts is None else forecasts.sentence):
        show("", *lines)


def _rows(groups: list[Group], inspection: Inspection) -> list[tuple[str, ...]]:
    most = max(group.rows for group in groups)
    return [
        (
            text_of(group.name),
            "█" * max(round(MAX_BAR * group.rows / most), 1),
            count(group.rows),
            percent(group.rows / inspection.rows),
            number(group.mean),
        )
        for group in groups
    ]


def _as_json(findings: Findings) -> dict[str, Any]:
    parts = {
        "outlook": None if findings.decisions is None else findings.decisions.outlook,
        "off_policy": findings.off_policy,
        "contexts": findings.checks,
        "forecasts": findings.forecasts,
    }
    inspection = dataclasses.asdict(findings.inspection) | {
        name: None if part is None else dataclasses.asdict(part) for name, part in parts.items()
    }
    if findings.forecasts is not None:
        inspection["forecasts"] |= {"outcome": findings.forecasts.outcome, "sentence": findings.forecasts.sentence}
    return inspection | {"sentences": findings.verdict()}
