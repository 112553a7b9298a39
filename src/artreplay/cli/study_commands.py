"""`artreplay study …`: decisions that last, from the shell, on the same files as from Python."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import sys
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

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
from artreplay.cli.context_arguments import (
    AtOption,
    ContextOption,
    SegmentsOption,
    at_of_study,
    columns_to_open,
    context_columns_of,
    context_in_words,
    contexts_taken_again,
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
from artreplay.history import StoredLog, Totals
from artreplay.history.labels import as_label
from artreplay.history.parquet import ParquetLog
from artreplay.replay import Unknown
from artreplay.studies import Decision, Stopping, Study

study = typer.Typer(no_args_is_help=True, help="Decisions that last: many can be open, and rewards may come late.")

Place = Annotated[str, typer.Argument(metavar="STUDY", help="The file of the study, or postgresql://…#name.")]
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


WaitOption = Annotated[
    str | None,
    typer.Option(metavar="2d", help="How long to wait for a reward: 30s, 15m, 12h, 2d, 1w, or none for ever."),
]
HoldoutOption = Annotated[float | None, typer.Option(help="The share of decisions that control makes, such as 0.05.")]
ControlOption = Annotated[
    str | None, typer.Option(metavar="uniform", help="What control plays: uniform, an arm, or red=1,blue=2.")
]


def from_here(place: str | None) -> str | None:
    """Let the module of one's own algorithm lie in the current folder, as it may for `python -m`."""
    if place is not None and ":" in place and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    return place


OwnOption = Annotated[
    str | None,
    typer.Option(
        "--algorithm",
        metavar="MODULE:FUNCTION",
        help="What makes the algorithm, if it is your own.",
        callback=from_here,
    ),
]


@study.command()
def create(
    place: Place,
    log: Annotated[str | None, typer.Argument(metavar="[LOG]", help="The log to start from, if there is one.")] = None,
    unit: UnitOption = None,
    reward: RewardOption = None,
    horizon: Annotated[int | None, typer.Option(help="How many decisions there will be.")] = None,
    algorithm: Annotated[
        str | None, typer.Option(help="The base algorithm. By default kl-ucb.", callback=from_here)
    ] = None,
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
    wait: WaitOption = None,
    default: Annotated[
        str, typer.Option(help="The reward of a decision that got none in time, or discard to learn nothing from it.")
    ] = "0",
    rewards: Annotated[
        str, typer.Option(help="What several rewards of one decision make: the first, the last, or their sum.")
    ] = "first",
    holdout: HoldoutOption = None,
    control: ControlOption = None,
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
    if wait is None:
        raise InvalidParameter(
            "--wait must say how long a reward may take, as in --wait 2d, or none if every decision is rewarded"
        )
    settings: dict[str, Any] = {"wait": _duration(wait), **_without_reward(default)}
    settings |= {"rewards": rewards, "holdout": holdout or 0.0}
    request = Request(
        log or "", columns, algorithm, parameters, arms or None, unknown, None, drift, tuple(names), tuple(within)
    )
    if algorithm is not None and ":" in algorithm:
        base, history = algorithm, None if log is None else read_log(log, columns).history
        settings["arms"] = [as_label(label) for label in split_labels(*arms)] if arms else None
        settings["arguments"] = {name: value for name, value in parameters.items() if value is not None}
    elif log is None:
        base, history = _base_without_log(algorithm, parameters, arms), None
    else:
        base, history_argument, settings["note"] = new_base(request)
        history = history_argument.history
        if isinstance(history, StoredLog) and not isinstance(history, ParquetLog):
            raise InvalidParameter(
                f"{place_of(log)} must be indexed first, so that the study finds it again. "
                "`artreplay index LOG --output FOLDER` does that"
            )
    if control is not None:
        settings["control"] = _control(control, base)
    with errors_in(file="the study" if log is None else place_of(log)):
        drift_ = drift_of_request(request, base)
        new = Study.create(place, base, history, unknown=unknown or "error", drift=drift_, **settings)
    with new:
        kind = "samples" if isinstance(history, Totals) else "rows"
        rows = "no log" if history is None else f"a log of {len(history):,} {kind}"
        show(f"{new.place}: {base if isinstance(base, str) else name_of(type(base))} over {_many(new)}, {rows}")


def _without_reward(text: str) -> dict[str, Any]:
    """Read what happens to a decision that got no reward in time."""
    if text == "discard":
        return {"on_timeout": "discard"}
    try:
        return {"on_timeout": "default", "default": float(text)}
    except ValueError:
        raise InvalidParameter(f"must be a number, or discard, got {text!r}", parameter="default") from None


def _many(new: Study) -> str:
    base = new.base
    if hasattr(base, "arms"):
        return f"{len(base.arms):,} arms"
    return f"points of {base.dim} coordinates" if hasattr(base, "dim") else "actions of its own"


def _base_without_log(algorithm: str | None, parameters: dict[str, Any], arms: list[str] | None) -> Any:
    cls = KLUCB if algorithm is None else class_of(algorithm)
    if not arms:
        raise InvalidParameter("--arms must name the arms if there is no log to take them from")
    return make_base(cls, parameters, arms=[as_label(label) for label in split_labels(*arms)])


def _control(text: str, base: Any) -> Any:
    """Read what control plays: uniform, an arm, or arms with shares, as in red=1,blue=2."""
    labels = {str(label): label for label in getattr(base, "arms", ())}
    if text in labels or "=" not in text:
        return labels.get(text, text)
    pairs = [part.rpartition("=") for part in split_labels(text, option="--control")]
    try:
        return {labels.get(label, label): float(share) for label, _, share in pairs}
    except ValueError:
        raise InvalidParameter(f"--control must be uniform, an arm, or red=1,blue=2, got {text!r}") from None


def _duration(text: str) -> timedelta | None:
    if text == "none":
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw])", text)
    if match is None:
        raise InvalidParameter(
            f"--wait must be a number and a unit, as in 30s, 15m, 12h, 2d or 1w, or none, got {text!r}"
        )
    return timedelta(**{_UNITS[match[2]]: float(match[1])})


@study.command()
def decide(
    place: Place,
    request_id: Annotated[str | None, typer.Option(help="A retry with the same id gets the same decision.")] = None,
    among: Annotated[list[str] | None, typer.Option(metavar="A,B,C", help="The arms that can be chosen now.")] = None,
    many: Annotated[int | None, typer.Option("--count", help="How many decisions to make.")] = None,
    context: AtOption = None,
    subject: Annotated[
        str | None, typer.Option(help="Who is asking. A subject is always in the same group of the hold-out.")
    ] = None,
    info: Annotated[str | None, typer.Option(metavar="JSON", help="What to keep with the decision.")] = None,
    deferred: Annotated[
        bool, typer.Option("--deferred", help="It may never be shown, and waits for `artreplay study activate`.")
    ] = False,
    algorithm: OwnOption = None,
    as_json: JsonOption = False,
) -> None:
    """Decide what to do. Tell the reward later with the id."""
    asked: dict[str, Any] = {"subject": subject, "info": None if info is None else _json(info), "deferred": deferred}
    with Study.open(place, algorithm=algorithm) as opened:
        arms = None if algorithm is not None and among is None else ArmsByText(opened.base)
        chosen = [arms.arm(label) for label in split_labels(*among, option="--among")] if among and arms else None
        if algorithm is None:
            at = at_of_study(opened.base, context)
            if many is not None and at.is_file:
                raise InvalidParameter("--count must be left out with a file, which has a row for each decision")
            asked |= {"contexts": at.contexts} if at.is_file else {"context": at.context}
        decisions: Any = opened.decide(request_id, among=chosen, count=many, **asked)
        is_list = isinstance(decisions, list)
        _show_decisions(decisions if is_list else [decisions], as_json, not is_list)


@study.command(context_settings={"ignore_unknown_options": True})
def reward(
    place: Place,
    decision: Annotated[str, typer.Argument(help="The id of the decision.")],
    value: Annotated[str, typer.Argument(help="The reward.")],
    key: Annotated[str | None, typer.Option(help="What names this part of a reward that is a sum.")] = None,
    algorithm: OwnOption = None,
) -> None:
    """Tell the reward of a decision. It is final, and only the same reward may be told again."""
    earned = outcome_value(value)
    with Study.open(place, algorithm=algorithm) as opened:
        opened.reward(decision, earned, key)
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
def activate(
    place: Place,
    decision: Annotated[str, typer.Argument(help="The id of the decision.")],
    algorithm: OwnOption = None,
) -> None:
    """Open a decision that was deferred, because it is shown now."""
    with Study.open(place, algorithm=algorithm) as opened:
        opened.activate(decision)
    show(f"{decision} is open")


@study.command()
def void(
    place: Place,
    decision: Annotated[str, typer.Argument(help="The id of the decision.")],
    erase: Annotated[bool, typer.Option("--erase", help="Also remove its subject and its info from the file.")] = False,
    algorithm: OwnOption = None,
) -> None:
    """Take a decision out, together with its reward if it has one."""
    with Study.open(place, algorithm=algorithm) as opened:
        opened.void(decision, erase=erase)
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
    horizon: Annotated[int | None, typer.Option(min=1, help="How many decisions are to come from now on.")] = None,
    unknown: Annotated[
        Unknown | None,
        typer.Option(help="Refuse a log with rows that belong to no arm (error), or leave these rows out (skip)."),
    ] = None,
    drift: DriftOption = None,
    wait: WaitOption = None,
    default: Annotated[float | None, typer.Option(help="The reward of a decision that got none in time.")] = None,
    holdout: HoldoutOption = None,
    control: ControlOption = None,
    contexts: ContextOption = None,
    segments: SegmentsOption = None,
    reset_clock: Annotated[
        bool, typer.Option("--reset-clock", help="Go on from the present time, after a clock was wrong.")
    ] = False,
    algorithm: OwnOption = None,
) -> None:
    """Change the settings of a study for decisions to come.

    Another horizon or drift, other unknown arms, or other contexts fold its whole journal again. Scales and categories
    of contexts are taken again from the log as it is now, and from what the study was asked for since.
    """
    names, within = context_columns_of(contexts, segments)
    with Study.open(place, algorithm=algorithm) as opened:
        base = opened.base
        labels = {str(label): label for label in getattr(base, "arms", ())}
        if horizon is not None and not takes(type(base), "horizon"):
            raise InvalidParameter(f"{name_of(type(base))} has no horizon. Leave --horizon out")
        settings: dict[str, Any] = {"unknown": unknown, "drift": drift_of(drift, labels), "default": default}
        settings |= {"holdout": holdout, "control": None if control is None else _control(control, base)}
        settings = {name: value for name, value in settings.items() if value is not None}
        if wait is not None:
            settings["wait"] = _duration(wait)
        if horizon is not None:
            settings["horizon"] = horizon
        if names:
            settings["contexts"] = contexts_taken_again(opened, names, within)
        if reset_clock:
            opened.reset_clock()
        opened.change(**settings)
    show(f"{place} is changed")


@study.command()
def check(place: Place) -> None:
    """Read a whole study and see whether anything in it is damaged."""
    with Study.open(place, read_only=True) as opened:
        entries = opened.check()
    show(f"{place} is whole: {entries:,} entries")


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
    show(f"{place} has a log of {facts['rows']:,} rows")


@study.command("show")
def show_study(
    place: Place,
    open_: Annotated[bool, typer.Option("--open", help="List the decisions that wait for a reward.")] = False,
    algorithm: OwnOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a study, even while another process owns it."""
    with Study.open(place, algorithm=algorithm, read_only=True) as opened:
        if open_:
            _show_decisions(opened.open_decisions(), as_json, False)
            return
        facts, wrong, warnings = opened.facts(), opened.contradictions(), opened.warnings()
        groups, comparison, whole = opened.groups(), opened.comparison(), opened.stopping()
        stoppings = opened.stopping_by_segment() if whole is None else [whole]
        if opened.wait is None and warnings:  # only successes may have been told, which says nothing of arms
            stoppings = []
        if as_json:
            entries: dict[str, Any] = {"contradictions": [dataclasses.asdict(one) for one in wrong]}
            entries |= {"warnings": warnings, "groups": [dataclasses.asdict(group) for group in groups]}
            entries["comparison"] = None if comparison is None else dataclasses.asdict(comparison)
            entries["stopping"] = [_stopping_as_json(stopping) for stopping in stoppings]
            show_json(facts | entries)
            return
        states = facts["decisions"]
        horizon = "" if facts["horizon"] is None else f", for {facts['horizon']:,} decisions"
        can_decide = facts["log"] is not None
        show(f"{opened.place}: {facts['algorithm']}" + (f" over {_many(opened)}{horizon}" if can_decide else ""))
        if facts["allowances"]:
            show("the log may be stale, and its rows say by how much")
        elif facts["drift"] != 0.0:
            show(f"the log may be stale: drift {_drift_in_words(opened.drift)}")
        made = sum(states.values())
        outcomes = ", ".join(f"{n:,} {state}" for state, n in states.items()) or "none"
        show(f"{made:,} decision{'' if made == 1 else 's'}: {outcomes}")
        if facts["observations"]:
            show(f"{facts['observations']:,} observations that nobody asked for")
        if facts["waiting"]:
            many = facts["waiting"] > 1
            rewards, windows = (
                ("rewards are", "windows of their decisions are")
                if many
                else ("reward is", "window of its decision is")
            )
            show(f"{facts['waiting']:,} {rewards} learnt when the {windows} over")
        if facts["late"]:
            show(f"{facts['late']:,} rewards came too late and were refused")
        show(*_about_contexts(facts["contexts"]))
        log = facts["log"] or {"rows": 0}
        show(
            f"used {log['used']:,} of {log['rows']:,} rows of the log, {percent(log['used'] / log['rows'])}"
            if log["rows"]
            else "no log"
        )
        show(*(f"the log may be out of date: {one}" for one in wrong[:MAX_ROWS]))
        show(*(f"warning: {sentence}" for sentence in warnings))
        for group in groups:
            between = f"between {number(group.low)} and {number(group.high)}"
            show(f"{group.name}: {number(group.mean)} on average over {group.decisions:,} decisions, {between}")
        if comparison is not None:
            between = f"between {comparison.low:+.4g} and {comparison.high:+.4g}"
            show(f"the policy against control: {comparison.difference:+.4g}, {between}")
        for stopping in stoppings:
            about = "about " if stopping.is_approximate else ""
            chance, loss = percent(stopping.chance), number(stopping.loss)
            where = "".join(f"{text_of(value)}, " for value in stopping.segment).replace(", ", " · ")
            best = f"{where}the chance that {text_of(stopping.leader)} is the best is {about}{chance}"
            show(f"{best}. Playing only this from now on loses {about}{loss} a decision on average")
        if not can_decide:
            show("Its algorithm is your own, and is only imported if you name it with --algorithm")
        elif isinstance(opened.base, ArmAlgorithm) or getattr(opened.base, "contextual", False):
            show("")
            _show_arms(opened, False, False)


def _stopping_as_json(stopping: Stopping) -> dict[str, Any]:
    entries = dataclasses.asdict(stopping)
    return entries | {"chances": [{"arm": arm, "best": chance} for arm, chance in stopping.chances.items()]}


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


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidParameter(f"--info must be JSON, got {text!r}: {error}") from None


def _show_decisions(decisions: list[Decision], as_json: bool, single: bool) -> None:
    if as_json:
        entries = [
            {
                "id": one.id,
                "action": one.action,
                "due": None if one.due is None else one.due.isoformat(),
                "state": one.state,
                "group": one.group,
                "propensity": one.propensity,
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
