"""`evaluate`: policies played on a log of the user's own."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

import typer

from artreplay.algorithms import KLUCB, ContextRegression
from artreplay.cli.log_arguments import Log, column_of_arms, csv_of, place_of, read_log, split_labels
from artreplay.cli.log_sentences import with_interval
from artreplay.cli.names import OVER_ARMS, class_of, make_base, name_of, takes
from artreplay.console.options import AsJson, Csv, Order, OrderSeed, Reward, RewardBounds, Seed, Source, Table, Units
from artreplay.console.output import NONE, count, show, show_json, text_of
from artreplay.console.output import table as table_of
from artreplay.engine.evaluating import LogToPlay, rule_by_column
from artreplay.errors import InvalidParameter, errors_in
from artreplay.history import Contexts

CONTEXTUAL = name_of(ContextRegression)


def evaluate(
    log: Source,
    unit: Units = None,
    reward: Reward = None,
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
    seed: Seed = 0,
    reward_range: RewardBounds = None,
    order: Order = None,
    order_seed: OrderSeed = None,
    table: Table = None,
    csv: Csv = None,
    as_json: AsJson = False,
) -> None:
    """Play policies on your own log: what would they have earned in place of what was played?

    The first rows are the log that policies start from, the others are played. A learning policy is told the reward of
    a row if it chooses the arm that was logged there. By default kl-ucb is played, and the arm that leads the first
    rows.
    """
    plays = play or []
    columns: dict[str, Any] = {"unit": column_of_arms(unit, log, reward), "reward": reward, "order": order}
    names = split_labels(*context, option="--context") if context else []
    ruled = [text.partition(":")[0] for text in plays if ":" in text.partition("=")[0] and "=" in text]
    wanted = [*names, *ruled, *([propensity] if propensity is not None else [])]
    columns |= {"seed": order_seed, "table": table, "csv": csv_of(csv), "contexts": list(dict.fromkeys(wanted)) or None}
    opened = read_log(log, {name: value for name, value in columns.items() if value is not None})
    with errors_in(file=place_of(log)):
        ready = LogToPlay(opened.history, start, propensity, seed)
        rounds = ready.rounds if horizon is None else horizon
        given = {"reward_range": reward_range, "seed": seed}
        policies = {text: _policy(text, opened, ready, names, rounds, given) for text in plays}
        if not plays:
            policies = {name_of(KLUCB): _policy(name_of(KLUCB), opened, ready, names, rounds, given)}
            policies |= _leader(ready)
        found = ready.evaluation(policies)
    if as_json:
        entries = [dataclasses.asdict(one) | {"can_tell": one.can_tell} for one in found.policies]
        show_json(dataclasses.asdict(found) | {"policies": entries, "sentences": found.sentences()})
        return
    rows = [
        (one.name, one.kind, with_interval(one.value) if one.can_tell else "cannot tell", count(one.rows),
         with_interval(one.by_rejection) if one.kind == "fixed" and one.accepted else NONE, count(one.accepted))
        for one in found.policies
    ]  # fmt: skip
    rows.append(("what was played", "", with_interval(found.played), count(found.rows), NONE, NONE))
    show(
        f"{found.start:,} rows to start from, {found.rows:,} rows to play",
        "",
        table_of(("policy", "", "earns a round", "rows", "by accepted rows alone", "accepted"), rows, texts=2),
        "",
        *found.sentences(),
    )


def _policy(text: str, log: Log, ready: LogToPlay, names: list[str], rounds: int, given: dict[str, Any]) -> Any:
    """The policy that --play names."""
    head, equal, label = text.partition("=")
    if not equal and ":" not in text:
        if text == CONTEXTUAL:
            return _regression(log, ready, names, given)
        cls = class_of(text, OVER_ARMS)
        fixed = {"horizon": rounds} if takes(cls, "horizon") else {}
        mine = {name: value for name, value in given.items() if takes(cls, name)}
        return make_base(cls, mine, arms=log.labels(), **fixed)
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


def _arm(log: Log, label: str) -> Any:
    (arm,) = log.parse([label])
    if arm not in log.labels():
        raise InvalidParameter(f"--play must name arms of the log, got {label!r}")
    return arm


def _regression(log: Log, ready: LogToPlay, names: list[str], given: dict[str, Any]) -> ContextRegression:
    if not names:
        raise InvalidParameter(f"--play {CONTEXTUAL} needs the columns it looks at, as --context A,B,C")
    if not len(ready.first) or ready.first.contexts is None:
        raise InvalidParameter(f"--start must leave rows to take the scales of {CONTEXTUAL} from, got 0")
    contexts = Contexts.from_table({name: ready.first.contexts.column(name) for name in names})
    mine = {name: value for name, value in given.items() if value is not None}
    return ContextRegression(arms=log.labels(), contexts=contexts, **mine)


def _leader(ready: LogToPlay) -> dict[str, Any]:
    """The arm with the highest mean in the first rows, always played."""
    if not len(ready.first):
        return {}
    totals = ready.first.totals()
    best = max(range(len(totals.labels)), key=lambda arm: totals.sums[arm] / totals.counts[arm])
    label = totals.labels[best]
    return {f"arm={text_of(label)}": label}
