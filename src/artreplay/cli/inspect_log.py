"""`inspect`: what a log covers, what it can decide, and how much of it replay will read."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
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
from artreplay.cli.log_arguments import csv_of, place_of, say_dialect_of, units_of
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
from artreplay.console.output import MAX_BAR, MAX_ROWS, count, number, percent, show, show_json, text_of
from artreplay.console.output import table as table_of
from artreplay.engine.log_outlook import Outlook, outlook
from artreplay.errors import InvalidParameter, checked_count, errors_in
from artreplay.history import History, Totals, open_history
from artreplay.inspecting import Estimate, Group, Inspection, OffPolicy, inspect_history, weighted_rows
from artreplay.replay import ArtificialReplay

_MAX_NAMED = 6


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
            help="The column with the probability of the logged choice. Shows what the best arm would have earned."
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
        off_policy = None if propensity is None else _off_policy(log, columns, propensity, how, decisions)
    if decisions is not None:
        inspection.warnings += _more_warnings(decisions.outlook, cls)
    if out is not None and kind is not None:
        _draw(decisions, cls, out, kind)
    if as_json:
        show_json(_as_json(inspection, decisions, off_policy))
        return
    _show(inspection, all_groups, decisions, off_policy, cls)
    if out is not None:
        show(f"the figure is in {out}")


class Decisions(NamedTuple):
    """What a log can decide, for which algorithm, and what its arms earned."""

    outlook: Outlook
    base: ArmAlgorithm
    totals: Totals


def _looked_at(log: str, columns: dict[str, Any], totals: dict[str, Any], how: dict[str, Any]) -> Inspection:
    if any(name is not None for name in totals.values()):
        read = open_history(log, **columns, **totals, **how)
        return _inspected(cast(Totals, read))
    return inspect_history(log, **columns, **how)


def _draw(decisions: Decisions | None, cls: type[ArmAlgorithm], out: Path, kind: str) -> None:
    if decisions is None:
        raise InvalidParameter(
            "--out needs a log of arms with rewards in their range, and this log has nothing to draw"
        )
    from artreplay.plots.log_figures import draw_outlook

    headline, *more = what_it_decides(decisions.outlook)
    write_figure(
        draw_outlook(decisions.outlook, headline, " ".join([*more, what_is_read(decisions.outlook, cls)])), out, kind
    )


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
) -> Decisions | None:
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
    return Decisions(outlook(totals, base, rounds, _allowed(drift, base, groups)), base, totals)


def _allowed(drift: str | None, base: ArmAlgorithm, groups: Sequence[Group]) -> dict[Any, float]:
    """Return the allowance of each arm, or the mean of its rows if the log has a column of allowances."""
    labels = {str(label): label for label in base.arms}
    allowances = drift_of(drift, labels)
    if allowances is None and not (allowances := {group.name: group.allowance for group in groups if group.allowance}):
        return {}
    ArtificialReplay(base, History([], []), drift=allowances)  # refuses an impossible drift
    return allowances if isinstance(allowances, dict) else dict.fromkeys(labels.values(), allowances)


def _off_policy(
    log: str, columns: dict[str, Any], propensity: str, how: dict[str, Any], decisions: Decisions | None
) -> OffPolicy:
    """Compare what the recommended arm would have earned with what was played."""
    if decisions is None or not isinstance(columns["unit"], str) or columns["reward"] is None:
        raise InvalidParameter("--propensity needs --unit and --reward, and a log of arms with rewards in their range")
    action = ArtificialReplay(decisions.base, decisions.totals).ask()
    arm = action[0] if isinstance(action, list) else action
    return weighted_rows(log, columns["unit"], columns["reward"], propensity, **how).estimate(arm)


# -- sentences ------------------------------------------------------------------------------------------------------


def what_it_decides(forecast: Outlook) -> list[str]:
    """Say in sentences what the log can decide."""
    arms, worse = len(forecast.standings), sum(one.is_worse for one in forecast.standings)
    rewards = f"Rewards of {forecast.successes:,.0f} in all, over {arms:,} arms,"
    if arms < 2:
        return ["The log has only one arm, so there is nothing to decide."]
    if worse == 0:
        sentences = [f"{rewards} cannot tell the arms apart."]
    elif forecast.undecided == 0:
        sentences = [f"{text_of(forecast.leader)} is the best of {arms:,} arms beyond doubt."]
    else:
        names = [text_of(one.arm) for one in forecast.standings if not one.is_worse and one.arm != forecast.leader]
        more = f" and {len(names) - _MAX_NAMED:,} more" if len(names) > _MAX_NAMED else ""
        race = f"these may be as good: {', '.join(names[:_MAX_NAMED])}{more}"
        sentences = [f"{worse:,} of {arms:,} arms are clearly worse than {text_of(forecast.leader)}; {race}."]
    if forecast.undecided and math.isfinite(forecast.rows_for_half):
        which = "half of the others" if worse == 0 else "half of those that are left"
        apart = f"tell {which} from {text_of(forecast.leader)}"
        if forecast.rows_for_half > 1e12:
            sentences.append(f"Their means are so close together that no log will {apart}.")
        else:
            sentences.append(f"About {_rounded(forecast.rows_for_half)} rows like these would {apart}.")
    return sentences


def what_is_read(forecast: Outlook, cls: type[ArmAlgorithm]) -> str:
    """Say in a sentence how much replay will read."""
    if math.isnan(forecast.read_share) and cls.offers_value:
        return (
            f"With {name_of(cls)} replay reads until its choice is certain. Nobody can say beforehand how much that is."
        )
    if math.isnan(forecast.read_share):
        return f"Under {name_of(cls)} the whole log is read."
    about = "nearly all" if forecast.read_share > 0.95 else f"about {percent(forecast.read_share)}"
    return f"With {name_of(cls)} replay will probably read {about} of the log in {forecast.rounds:,} rounds."


def _more_warnings(forecast: Outlook, cls: type[ArmAlgorithm]) -> list[str]:
    if not forecast.bonus_is_too_wide:
        return []
    other = "" if cls is KLUCB else f"; {name_of(KLUCB)} has a narrower one"
    return [
        f"the bonus of {name_of(cls)} is still {number(forecast.bonus)} after {forecast.rounds:,} rounds, wider than "
        f"the {number(forecast.differences)} between the best and the worst arm, so it will play nearly at "
        f"random{other}"
    ]


def _off_policy_lines(off_policy: OffPolicy) -> list[str]:
    return [
        f"By the log's propensities, always playing {text_of(off_policy.arm)} would earn "
        f"{_with_interval(off_policy.earns)} a round. What was played earned {_with_interval(off_policy.was_earned)}.",
        f"The difference is {_with_interval(off_policy.gain)} (95 % intervals, {off_policy.rows:,} rows of that arm).",
    ]


def _with_interval(one: Estimate) -> str:
    return f"{number(one.value)} [{number(one.low)}, {number(one.high)}]"


def _rounded(rows: float) -> str:
    """Round a number of rows to two significant digits."""
    size = 10 ** max(int(math.log10(max(rows, 1.0))) - 1, 0)
    return f"{round(rows / size) * size:,}"


def _show(
    inspection: Inspection,
    all_groups: bool,
    decisions: Decisions | None,
    off_policy: OffPolicy | None,
    cls: type[ArmAlgorithm],
) -> None:
    what = "arms" if inspection.kind == "arms" else "regions of the first two axes"
    lines = [f"{inspection.rows:,} rows, {len(inspection.groups):,} {what}"]
    if inspection.missing:
        lines.append(f"{inspection.missing:,} rows without a reward or a unit, left out here")
    if inspection.rows and not math.isnan(inspection.low):
        lines.append(f"rewards from {inspection.low:g} to {inspection.high:g}")
    show(*lines, "")
    groups = sorted(inspection.groups, key=lambda group: -group.rows)
    shown = groups if all_groups else groups[:MAX_ROWS]
    if shown:
        heading = "arm" if inspection.kind == "arms" else "region"
        show(table_of((heading, "share of the log", "rows", "", "mean"), _rows(shown, inspection), texts=2))
    if len(shown) < len(groups):
        show(f"… and {len(groups) - len(shown):,} more (--all shows them)")
    if decisions is not None:
        show("", *what_it_decides(decisions.outlook), what_is_read(decisions.outlook, cls))
    if off_policy is not None:
        show("", *_off_policy_lines(off_policy))
    show("", *([f"warning: {text}" for text in inspection.warnings] or ["no warnings"]))


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


def _as_json(inspection: Inspection, decisions: Decisions | None, off_policy: OffPolicy | None) -> dict[str, Any]:
    return dataclasses.asdict(inspection) | {
        "outlook": None if decisions is None else dataclasses.asdict(decisions.outlook),
        "off_policy": None if off_policy is None else dataclasses.asdict(off_policy),
    }
