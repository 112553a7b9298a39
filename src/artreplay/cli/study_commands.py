"""`artreplay study …`: decisions that last, from the shell, on the same files as from Python."""

from __future__ import annotations

import dataclasses
import re
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from artreplay.algorithms import KLUCB
from artreplay.cli.algorithm_options import (
    BonusOption,
    DriftOption,
    LevelOption,
    PriorOption,
    column_or_drift,
    drift_of,
    tuning_of,
)
from artreplay.cli.context_arguments import (
    AtOption,
    ContextOption,
    SegmentsOption,
    at_of_study,
    columns_to_open,
    context_columns_of,
    context_in_words,
)
from artreplay.cli.labelled_arms import ArmsByText
from artreplay.cli.log_arguments import column_of_arms, csv_of, place_of, read_log, split_labels
from artreplay.cli.names import class_of, make_base, name_of, takes
from artreplay.cli.recommend import outcome_value
from artreplay.cli.state import drift_of_request, new_base
from artreplay.console.options import (
    ArmsOption,
    CountOption,
    CsvOption,
    JsonOption,
    LogPlace,
    OrderOption,
    Request,
    RewardOption,
    SumOption,
    TableOption,
    UnitOption,
)
from artreplay.console.output import MAX_ROWS, number, percent, show, show_json, text_of
from artreplay.console.output import count as counted
from artreplay.console.output import table as table_of
from artreplay.errors import InvalidParameter, errors_in
from artreplay.history import StoredLog
from artreplay.history.labels import as_label
from artreplay.history.parquet import ParquetLog
from artreplay.replay import Unknown
from artreplay.studies import Decision, Study

study = typer.Typer(no_args_is_help=True, help="Decisions that last: many can be open, and rewards may come late.")

Place = Annotated[str, typer.Argument(metavar="STUDY", help="The file of the study, or postgresql://…#name.")]
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@study.command()
def create(
    place: Place,
    log: Annotated[str | None, typer.Argument(metavar="[LOG]", help="The log to start from, if there is one.")] = None,
    unit: UnitOption = None,
    reward: RewardOption = None,
    horizon: Annotated[int | None, typer.Option(help="How many decisions there will be.")] = None,
    algorithm: Annotated[str | None, typer.Option(help="The base algorithm. By default kl-ucb.")] = None,
    count: CountOption = None,
    sum_: SumOption = None,
    arms: ArmsOption = None,
    seed: Annotated[int | None, typer.Option(help="The seed of algorithms that draw at random.")] = None,
    reward_range: Annotated[
        tuple[float, float] | None, typer.Option(metavar="LOW HIGH", help="The range of the rewards. By default 0 1.")
    ] = None,
    unknown: Annotated[Unknown | None, typer.Option(help="Rows that belong to no arm: error, or skip.")] = None,
    until: Annotated[int | None, typer.Option(help="Use only this many rows, from the start of the log.")] = None,
    order: OrderOption = None,
    table: TableOption = None,
    csv: CsvOption = None,
    wait: Annotated[
        str | None, typer.Option(metavar="2d", help="How long to wait for a reward: 30s, 15m, 12h, 2d, 1w.")
    ] = None,
    on_timeout: Annotated[
        str, typer.Option(help="What happens after --wait without a reward: default or discard.")
    ] = "default",
    default: Annotated[float, typer.Option(help="The reward of a decision that got none in time.")] = 0.0,
    level: LevelOption = None,
    bonus: BonusOption = None,
    prior: PriorOption = None,
    drift: DriftOption = None,
    contexts: ContextOption = None,
    segments: SegmentsOption = None,
) -> None:
    """Make a study over a log, or over arms alone."""
    names, within = context_columns_of(contexts, segments)
    if names and log is None:
        raise InvalidParameter("needs a log, to take scales and categories from", parameter="contexts")
    parameters = {"horizon": horizon, "seed": seed, "reward_range": reward_range}
    parameters |= tuning_of(level, bonus, prior)
    columns: dict[str, Any] = {
        "unit": column_of_arms(unit, log or "", reward),
        "reward": reward,
        "until": until,
        "order": order,
        "table": table,
        "count": count,
        "sum": sum_,
    }
    allowance, drift = column_or_drift(drift)
    columns |= {"csv": csv_of(csv), "allowance": allowance, "contexts": columns_to_open(names, log or "")}
    settings: dict[str, Any] = {"wait": _duration(wait), "on_timeout": on_timeout, "default": default}
    request = Request(
        log or "", columns, algorithm, parameters, arms or None, unknown, None, drift, tuple(names), tuple(within)
    )
    if log is None:
        base, history = _base_without_log(algorithm, parameters, arms), None
    else:
        base, history_argument, settings["note"] = new_base(request)
        history = history_argument.history
        if isinstance(history, StoredLog) and not isinstance(history, ParquetLog):
            raise InvalidParameter(
                f"{place_of(log)} must be indexed first, so that the study finds it again. "
                "`artreplay index LOG --output FOLDER` does that"
            )
    with errors_in(file="the study" if log is None else place_of(log)):
        drift_ = drift_of_request(request, base)
        new = Study.create(place, base, history, unknown=unknown or "error", drift=drift_, **settings)
    with new:
        rows = "no log" if history is None else f"a log of {len(history):,} samples"
        show(f"{new.place}: {name_of(type(base))} over {_many(new)}, {rows}")


def _many(new: Study) -> str:
    base = new.base
    return f"{base.n_arms:,} arms" if hasattr(base, "arms") else f"points of {base.dim} coordinates"


def _base_without_log(algorithm: str | None, parameters: dict[str, Any], arms: list[str] | None) -> Any:
    cls = KLUCB if algorithm is None else class_of(algorithm)
    if not arms:
        raise InvalidParameter("--arms must name the arms if there is no log to take them from")
    return make_base(cls, parameters, arms=[as_label(label) for label in split_labels(*arms)])


def _duration(text: str | None) -> timedelta | None:
    if text is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw])", text)
    if match is None:
        raise InvalidParameter(f"--wait must be a number and a unit, as in 30s, 15m, 12h, 2d or 1w, got {text!r}")
    return timedelta(**{_UNITS[match[2]]: float(match[1])})


@study.command()
def decide(
    place: Place,
    request_id: Annotated[str | None, typer.Option(help="A retry with the same id gets the same decision.")] = None,
    among: Annotated[list[str] | None, typer.Option(metavar="A,B,C", help="The arms that can be chosen now.")] = None,
    many: Annotated[int | None, typer.Option("--count", help="How many decisions to make.")] = None,
    context: AtOption = None,
    as_json: JsonOption = False,
) -> None:
    """Decide what to do. Tell the reward later with the id."""
    with Study.open(place) as opened:
        arms = ArmsByText(opened.base)
        chosen = [arms.arm(label) for label in split_labels(*among, option="--among")] if among else None
        at = at_of_study(opened.base, context)
        if many is not None and at.is_file:
            raise InvalidParameter("--count must be left out with a file, which has a row for each decision")
        asked: dict[str, Any] = {"contexts": at.contexts} if at.is_file else {"context": at.context, "count": many}
        decisions: Any = opened.decide(request_id, among=chosen, **asked)
        is_list = isinstance(decisions, list)
        _show_decisions(decisions if is_list else [decisions], as_json, not is_list)


@study.command(context_settings={"ignore_unknown_options": True})
def reward(
    place: Place,
    decision: Annotated[str, typer.Argument(help="The id of the decision.")],
    value: Annotated[str, typer.Argument(help="The reward.")],
) -> None:
    """Tell the reward of a decision. It is final, and only the same reward may be told again."""
    earned = outcome_value(value)
    with Study.open(place) as opened:
        opened.reward(decision, earned)
    show(f"{decision} gave {earned:g}")


@study.command(context_settings={"ignore_unknown_options": True})
def observe(
    place: Place,
    arm: Annotated[str, typer.Argument(help="The arm that was played.")],
    value: Annotated[str, typer.Argument(metavar="REWARD", help="What it earned.")],
    request_id: Annotated[str | None, typer.Option(help="Told again under the same id, it counts once.")] = None,
    context: AtOption = None,
) -> None:
    """Tell the reward of an arm that nobody asked for."""
    earned = outcome_value(value)
    with Study.open(place) as opened:
        at, played = at_of_study(opened.base, context), ArmsByText(opened.base).arm(arm)
        if at.is_file:
            raise InvalidParameter("must be an object of JSON, because one reward is told", parameter="context")
        opened.observe(played, earned, request_id, context=at.context)
    show(f"{text_of(played)} gave {earned:g}")


@study.command()
def void(place: Place, decision: Annotated[str, typer.Argument(help="The id of the decision.")]) -> None:
    """Take a decision out, together with its reward if it has one."""
    with Study.open(place) as opened:
        opened.void(decision)
    show(f"{decision} is taken out")


@study.command()
def arms(
    place: Place,
    add: Annotated[list[str] | None, typer.Option(help="An arm to add, or to bring back. May be repeated.")] = None,
    retire: Annotated[list[str] | None, typer.Option(help="An arm to retire. May be repeated.")] = None,
    all_rows: Annotated[bool, typer.Option("--all", help=f"Show all arms, not only {MAX_ROWS}.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Add or retire arms, and show all arms as they are now."""
    if add or retire:
        with Study.open(place) as opened:
            typed = {str(arm.label): arm.label for arm in opened.arms()}
            texts = all(isinstance(label, str) for label in typed.values())
            for text in add or []:
                opened.add_arm(typed.get(text, text if texts else as_label(text)))
            for text in retire or []:
                opened.retire_arm(typed.get(text, text))
    with Study.open(place, read_only=True) as opened:
        _show_arms(opened, all_rows, as_json)


def _show_arms(opened: Study, all_rows: bool, as_json: bool) -> None:
    states = opened.arms()
    if as_json:
        names = ("retired", "logged", "used", "online", "open", "mean", "index")
        show_json([{"arm": arm.label} | {name: getattr(arm, name) for name in names} for arm in states])
        return
    rows = [
        (text_of(arm.label), counted(arm.logged), counted(arm.used), counted(arm.online), counted(arm.open))
        + (number(arm.mean), "retired" if arm.retired else number(arm.index))
        for arm in states
    ]
    show(
        table_of(
            ("arm", "in the log", "used", "online", "open", "mean", "index"), rows if all_rows else rows[:MAX_ROWS]
        )
    )
    if len(rows) > MAX_ROWS and not all_rows:
        show(f"… and {len(rows) - MAX_ROWS:,} more (--all shows them)")


@study.command()
def change(
    place: Place,
    horizon: Annotated[int | None, typer.Option(min=1, help="How many decisions the study will make in all.")] = None,
    unknown: Annotated[
        Unknown | None,
        typer.Option(help="Refuse a log with rows that belong to no arm (error), or leave these rows out (skip)."),
    ] = None,
    drift: DriftOption = None,
) -> None:
    """Change the settings of a study. Its whole journal is folded again."""
    with Study.open(place) as opened:
        labels = {str(label): label for label in getattr(opened.base, "arms", ())}
        if horizon is not None and not takes(type(opened.base), "horizon"):
            raise InvalidParameter(f"{name_of(type(opened.base))} has no horizon. Leave --horizon out")
        opened.change(unknown=unknown, drift=drift_of(drift, labels))
        if horizon is not None:
            opened.set_horizon(horizon)
    show(f"{place} is changed")


@study.command()
def extend(
    place: Place,
    log: LogPlace,
    unit: UnitOption = None,
    reward: RewardOption = None,
    count: CountOption = None,
    sum_: SumOption = None,
    exclude: Annotated[
        str | None, typer.Option(help="The column with decision ids. Rows that the study produced itself are left out.")
    ] = None,
) -> None:
    """Continue with a log that has grown or moved. Its columns have the same names as before."""
    with Study.open(place, read_only=True) as look:
        note = look.note
    options = {"unit": column_of_arms(unit, log, reward), "reward": reward, "count": count, "sum": sum_}
    columns = {name: note.get(name) if value is None else value for name, value in options.items()}
    columns |= {
        name: note[name] for name in ("until", "order", "table", "allowance", "contexts") if note.get(name) is not None
    }
    history = read_log(log, {name: value for name, value in columns.items() if value is not None}).history
    with Study.open(place, history if isinstance(history, StoredLog) else None) as opened:
        with errors_in(file=place_of(log)):
            if exclude is None:
                opened.extend(history)
            else:
                opened.extend(log, exclude=exclude, **columns)
        facts = opened.facts()["log"]
    show(f"{place} has a log of {facts['rows']:,} samples")


@study.command("show")
def show_study(
    place: Place,
    open_: Annotated[bool, typer.Option("--open", help="List the decisions that wait for a reward.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show a study, even while another process owns it."""
    with Study.open(place, read_only=True) as opened:
        if open_:
            _show_decisions(opened.open_decisions(), as_json, False)
            return
        facts, wrong = opened.facts(), opened.contradictions()
        if as_json:
            show_json(facts | {"contradictions": [dataclasses.asdict(one) for one in wrong]})
            return
        states = facts["decisions"]
        horizon = "" if facts["horizon"] is None else f", for {facts['horizon']:,} decisions"
        show(f"{opened.place}: {facts['algorithm']} over {_many(opened)}{horizon}")
        if facts["allowances"]:
            show("the log may be stale, and its rows say by how much")
        elif facts["drift"] != 0.0:
            show(f"the log may be stale: drift {_drift_in_words(opened.drift)}")
        show(
            f"{sum(states.values()):,} decisions: "
            + (", ".join(f"{n:,} {state}" for state, n in states.items()) or "none")
        )
        if facts["observations"]:
            show(f"{facts['observations']:,} observations that nobody asked for")
        if facts["late"]:
            show(f"{facts['late']:,} rewards came too late and were refused")
        show(*_about_contexts(facts["contexts"]))
        log = facts["log"]
        show(
            f"used {log['used']:,} of {log['rows']:,} rows of the log, {percent(log['used'] / log['rows'])}"
            if log["rows"]
            else "no log"
        )
        show(*(f"the log may be out of date: {one}" for one in wrong[:MAX_ROWS]))
        if hasattr(opened.base, "arms"):
            show("")
            _show_arms(opened, False, False)


def _about_contexts(contexts: dict[str, Any] | None) -> list[str]:
    """Say which contexts a study has, and which columns were absent or dropped."""
    if contexts is None:
        return []
    within = f", in segments by {', '.join(contexts['segments'])}" if contexts["segments"] else ""
    return [
        f"contexts: {', '.join(contexts['columns'])}{within}",
        *(f"{_contexts(n)} had no {name!r}, which counts as missing" for name, n in contexts["absent"].items()),
        *(f"{_contexts(n)} had a column {name!r}, which was dropped" for name, n in contexts["unknown"].items()),
    ]


def _contexts(count: int) -> str:
    return f"{count:,} context{'' if count == 1 else 's'}"


def _drift_in_words(drift: Any) -> str:
    if isinstance(drift, dict):
        return ",".join(f"{text_of(label)}={value:g}" for label, value in drift.items())
    return f"{drift:g}"


@study.command()
def export(place: Place, file: Annotated[Path, typer.Argument(help="The Parquet file to write.")]) -> None:
    """Write decisions and observations to a Parquet file, one row for each unit."""
    with Study.open(place, read_only=True) as opened:
        opened.export(file)
    show(f"{file} is written")


@study.command()
def report(place: Place, file: Annotated[Path, typer.Argument(help="The HTML file to write.")]) -> None:
    """Write a page about a study: its rewards and those of the log, shares of arms, and open decisions."""
    from artreplay.plots import write_study_report

    with Study.open(place, read_only=True) as opened:
        write_study_report(opened, file)
    show(f"{file} is written")


def _show_decisions(decisions: list[Decision], as_json: bool, single: bool) -> None:
    if as_json:
        entries = [
            {
                "id": one.id,
                "action": one.action,
                "due": None if one.due is None else one.due.isoformat(),
                "state": one.state,
            }
            | ({} if one.context is None else {"context": one.context})
            for one in decisions
        ]
        show_json(entries[0] if single else entries)
        return
    has_contexts = any(one.context is not None for one in decisions)
    rows = [
        (one.id, ", ".join(map(text_of, one.action if isinstance(one.action, list) else [one.action])))
        + (f"{one.due:%Y-%m-%d %H:%M:%S}" if one.due else "never",)
        + ((context_in_words(one.context),) if has_contexts else ())
        for one in decisions
    ]
    headings = ("decision", "action", "due", "context") if has_contexts else ("decision", "action", "due")
    show(table_of(headings, rows, texts=len(headings)))
