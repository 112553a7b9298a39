"""`evaluate`: policies played on a log of the user's own."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from artreplay.algorithms import KLUCB, ContextRegression
from artreplay.cli.log_arguments import LogArgument, column_of_arms, csv_of, place_of, read_log, split_labels
from artreplay.cli.log_sentences import with_interval
from artreplay.cli.names import OVER_ARMS, class_of, make_base, name_of, takes
from artreplay.console.options import (
    CsvOption,
    JsonOption,
    LogPlace,
    OrderOption,
    OrderSeedOption,
    RewardOption,
    RewardRangeOption,
    SeedOption,
    TableOption,
    UnitOption,
)
from artreplay.console.output import NONE, count, show, show_json, text_of
from artreplay.console.output import table as table_of
from artreplay.engine.evaluating import LogToPlay, Rule
from artreplay.errors import InvalidParameter, errors_in
from artreplay.history import Contexts, Label
from artreplay.history.parquet import is_laid_out

CONTEXTUAL = name_of(ContextRegression)


def evaluate(
    log: LogPlace,
    unit: UnitOption = None,
    reward: RewardOption = None,
    play: Annotated[
        list[str] | None,
        typer.Option(
            metavar="POLICY",
            help=f"An algorithm ({name_of(KLUCB)}, thompson, …, or {CONTEXTUAL} with --context); arm=LABEL, which is "
            "always played; or COLUMN:VALUE=LABEL,VALUE=LABEL,other=LABEL, a rule. May be repeated.",
        ),
    ] = None,
    start: Annotated[int | None, typer.Option(help="How many rows policies start from; half of the log.")] = None,
    propensity: Annotated[
        str | None, typer.Option(help="The column with the probability of the logged choice.")
    ] = None,
    context: Annotated[
        list[str] | None, typer.Option(metavar="A,B,C", help="Columns of what was known of each row.")
    ] = None,
    horizon: Annotated[
        int | None, typer.Option(help="Rounds that an algorithm counts on; by default about as many as it will play.")
    ] = None,
    seed: SeedOption = 0,
    reward_range: RewardRangeOption = None,
    order: OrderOption = None,
    order_seed: OrderSeedOption = None,
    table: TableOption = None,
    csv: CsvOption = None,
    as_json: JsonOption = False,
) -> None:
    """Play policies on your own log: what would they have earned in place of what was played?

    The first rows are the log that policies start from, the others are played. A learning policy is told the reward of
    a row if it chooses the arm that was logged there. By default kl-ucb is played, and the arm that leads the first
    rows.
    """
    plays = play or []
    columns: dict[str, Any] = {"unit": column_of_arms(unit, log, reward), "reward": reward, "order": order}
    names = split_labels(*context, option="--context") if context else []
    rule_columns = [text.partition(":")[0] for text in plays if ":" in text.partition("=")[0] and "=" in text]
    context_names = [*names, *rule_columns, *([propensity] if propensity is not None else [])]
    columns |= {
        "seed": order_seed,
        "table": table,
        "csv": csv_of(csv),
        "contexts": None if is_laid_out(log) else list(dict.fromkeys(context_names)) or None,  # else it has its own
    }
    log_rows = read_log(log, {name: value for name, value in columns.items() if value is not None})
    with errors_in(file=place_of(log)):
        ready = LogToPlay(log_rows.history, start, propensity, seed)
        rounds = ready.rounds if horizon is None else horizon
        settings = {"reward_range": reward_range, "seed": seed}
        policies = {text: _policy(text, log_rows, ready, names, rounds, settings) for text in plays}
        if not plays:
            policies = {name_of(KLUCB): _policy(name_of(KLUCB), log_rows, ready, names, rounds, settings)}
            policies |= _leader(ready)
        with warnings.catch_warnings():
            if horizon is None:  # then the rows to play say it, and the user has no other
                warnings.filterwarnings("ignore", "horizon is ")
            evaluation = ready.evaluation(policies)
    if as_json:
        entries = [dataclasses.asdict(one) | {"can_tell": one.can_tell} for one in evaluation.policies]
        show_json(dataclasses.asdict(evaluation) | {"policies": entries, "sentences": evaluation.sentences()})
        return
    rows = [
        (one.name, one.kind, with_interval(one.value) if one.can_tell else "cannot tell", count(one.rows),
         with_interval(one.by_rejection) if one.kind == "fixed" and one.accepted else NONE, count(one.accepted))
        for one in evaluation.policies
    ]  # fmt: skip
    rows.append(("what was played", "", with_interval(evaluation.logged), count(evaluation.rows), NONE, NONE))
    show(
        f"{evaluation.start:,} rows to start from, {evaluation.rows:,} rows to play",
        "",
        table_of(("policy", "", "earns a round", "rows", "by accepted rows alone", "accepted"), rows, texts=2),
        "",
        *evaluation.sentences(),
    )


def _policy(
    text: str, log: LogArgument, ready: LogToPlay, names: list[str], rounds: int, settings: dict[str, Any]
) -> Any:
    """Make the policy that --play names."""
    head, equal, label = text.partition("=")
    if not equal and ":" not in text:
        if text == CONTEXTUAL:
            return _regression(log, ready, names, settings)
        cls = class_of(text, OVER_ARMS, "--play")
        rounds_to_come = {"horizon": rounds} if takes(cls, "horizon") else {}
        mine = {name: value for name, value in settings.items() if takes(cls, name)}
        return make_base(cls, mine, arms=log.labels(), **rounds_to_come)
    if head == "arm":
        return _arm(log, label)
    column, colon, _ = head.partition(":")
    if not colon or not equal:
        raise InvalidParameter(f"--play must be an algorithm, arm=LABEL or COLUMN:VALUE=LABEL, got {text!r}")
    pairs = split_labels(text.partition(":")[2], option="--play")
    arms = {}
    for pair in pairs:
        value, equal, label = pair.partition("=")
        if not equal:
            raise InvalidParameter(f"--play COLUMN: must be followed by VALUE=LABEL, got {pair!r}")
        arms[value] = _arm(log, label)
    return rule_by_column(column, arms)


def _arm(log: LogArgument, label: str) -> Any:
    (arm,) = log.parse([label])
    if arm not in log.labels():
        raise InvalidParameter(f"--play must name arms of the log, got {label!r}")
    return arm


def _regression(log: LogArgument, ready: LogToPlay, names: list[str], settings: dict[str, Any]) -> ContextRegression:
    if not names:
        raise InvalidParameter(f"--play {CONTEXTUAL} needs the columns it looks at, as --context A,B,C")
    for name in names:
        if name not in ready.first.context_names:
            raise InvalidParameter(f"--context must name columns of the log, got {name!r}")
    if not len(ready.first) or ready.first.contexts is None:
        raise InvalidParameter(f"--start must leave rows to take the scales of {CONTEXTUAL} from, got 0")
    contexts = Contexts.from_table({name: ready.first.contexts.column(name) for name in names})
    mine = {name: value for name, value in settings.items() if value is not None}
    return ContextRegression(arms=log.labels(), contexts=contexts, **mine)


def _leader(ready: LogToPlay) -> dict[str, Any]:
    """Return the arm with the highest mean in the first rows, as a policy that always plays it."""
    if not len(ready.first):
        return {}
    totals = ready.first.totals()
    best = max(range(len(totals.labels)), key=lambda arm: totals.sums[arm] / totals.counts[arm])
    label = totals.labels[best]
    return {f"arm={text_of(label)}": label}


def rule_by_column(column: str, arms: Mapping[str, Label]) -> Rule:
    """Make a rule that looks at one column; "other" stands for values that are not listed.

    >>> rule = rule_by_column("country", {"NL": "red", "other": "blue"})
    >>> rule({"country": "NL"}), rule({"country": "DE"})
    ('red', 'blue')
    """

    def rule(context: dict[str, Any]) -> Label:
        if column not in context:
            raise InvalidParameter(f"the rule by {column!r} must look at a context column of the log")
        value = context[column]
        text = str(int(value)) if isinstance(value, float) and value == int(value) else str(value)
        if text not in arms and "other" not in arms:
            raise InvalidParameter(f"the rule by {column!r} must have an arm for {text!r}, or for other")
        return arms.get(text, arms.get("other"))

    return rule
