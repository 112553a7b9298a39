"""`demo` and `simulate`: policies in simulated worlds."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from artreplay.algorithms import KLUCB, MonUCB, RandomChoice
from artreplay.cli.algorithm_options import (
    BonusOption,
    DriftOption,
    LevelOption,
    PriorOption,
    column_or_drift,
    tuning_of,
)
from artreplay.cli.compare import FULL_START, REPLAY, Contestant, PolicyRuns, compare, show_comparison
from artreplay.cli.log_arguments import column_of_arms, csv_of
from artreplay.cli.names import OVER_ARMS, class_of, make_base, name_of, takes
from artreplay.cli.simulate_log import simulate_log
from artreplay.console.figures import checked_figure, write_figure
from artreplay.console.options import (
    AlgorithmOption,
    CountOption,
    CsvOption,
    JsonOption,
    ReplicationsOption,
    RewardOption,
    RewardRangeOption,
    SeedOption,
    SumOption,
    TableOption,
    UnitOption,
)
from artreplay.console.output import show, show_json
from artreplay.environments import KArmed
from artreplay.environments.logs import LogShares
from artreplay.errors import InvalidParameter, checked_count

_ARMS, _ROUNDS, _SAMPLES = 10, 1000, 1000  # the setting of the demo, as in the paper


class StartChoice(StrEnum):
    """How a policy starts. An option that may be repeated cannot be a `Literal`."""

    IGNORANT = "ignorant"
    FULL_START = "full-start"
    REPLAY = "artificial-replay"


def demo(
    out: Annotated[Path, typer.Option(help="The file for the figure: .png, .pdf or .svg.")] = Path(
        "artreplay-demo.png"
    ),
    replications: ReplicationsOption = 10,
    seed: SeedOption = 0,
    algorithm: Annotated[str, typer.Option(help="The base algorithm: kl-ucb, or the paper's mon-ucb.")] = "kl-ucb",
) -> None:
    """Show what Artificial Replay does, in a table and a figure.

    Plays ten arms for 1,000 rounds, with a log of 1,000 samples. Artificial Replay has the same regret as reading the
    whole log, and reads only a part of it.
    """
    kind = checked_figure(out)
    cls = class_of(algorithm, (KLUCB, MonUCB))
    base = KLUCB(_ARMS, _ROUNDS) if cls is KLUCB else MonUCB(_ARMS, _ROUNDS + 1)  # the paper's code uses log(1 + T)
    contestants = [
        Contestant("random", RandomChoice(_ARMS), "ignorant"),
        Contestant("ignorant", base, "ignorant"),
        Contestant(FULL_START, base, "full-start"),
        Contestant(REPLAY, base, "artificial-replay"),
    ]
    result = compare(contestants, KArmed(_ARMS), _SAMPLES, _ROUNDS, replications, seed)
    _draw(result, out, kind)
    show(f"{_ARMS} arms, {_ROUNDS:,} rounds, a log of {_SAMPLES:,} samples, {name_of(cls)}", "")
    show_comparison(result, _ROUNDS, replications)
    show(f"the figure is in {out}")


def simulate(
    algorithm: AlgorithmOption = None,
    n_arms: Annotated[int, typer.Option("--arms", help="How many arms there are.")] = 10,
    history: Annotated[int, typer.Option(help="Samples in the log.")] = 1000,
    horizon: Annotated[int, typer.Option(help="How many rounds are played. The algorithm knows this number.")] = 1000,
    replications: ReplicationsOption = 60,
    log: Annotated[
        str,
        typer.Option(
            help="How often each arm is in the log: uniform or random. Or your own log, to see what it is worth."
        ),
    ] = "uniform",
    unit: UnitOption = None,
    reward: RewardOption = None,
    count: CountOption = None,
    sum_: SumOption = None,
    table: TableOption = None,
    csv: CsvOption = None,
    level: LevelOption = None,
    bonus: BonusOption = None,
    prior: PriorOption = None,
    drift: DriftOption = None,
    reward_range: RewardRangeOption = None,
    out: Annotated[Path | None, typer.Option(help="With your own log: the file for a figure.")] = None,
    start: Annotated[
        list[StartChoice] | None, typer.Option(help="A policy to run. May be repeated. By default the paper's three.")
    ] = None,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Compare policies in simulated worlds.

    Every policy plays the same replications of one algorithm, each with its own means and log. With --log LOG, --unit
    and --reward, the worlds are invented too, but drawn from what your log says of its arms, and your log is the
    history. The table then shows what your log is worth. `artreplay evaluate` plays policies on the log itself.
    """
    tuning = tuning_of(level, bonus, prior)
    columns: dict[str, Any] = {"unit": column_of_arms(unit, log, reward), "reward": reward, "table": table}
    columns |= {"count": count, "sum": sum_, "csv": csv_of(csv)}
    allowance, number = column_or_drift(drift)
    if log not in get_args(LogShares):
        how = {"rounds": checked_count("horizon", horizon), "seed": seed}
        how["worlds"] = checked_count("replications", replications)
        column_options = {k: v for k, v in (columns | {"allowance": allowance}).items() if v is not None}
        simulate_log(log, column_options, algorithm, tuning | {"reward_range": reward_range}, number, how, out, as_json)
        return
    _refuse_without_log({**columns, "drift": drift, "reward_range": reward_range, "out": out})
    cls, env = class_of(algorithm or "kl-ucb", OVER_ARMS), KArmed(n_arms, log=log)
    base = make_base(cls, tuning, n_arms=n_arms, **({"horizon": horizon} if takes(cls, "horizon") else {}))
    starts = list(dict.fromkeys(start or StartChoice))
    contestants = [Contestant(each.replace("-", " "), base, each.value) for each in starts]
    result = compare(contestants, env, history, horizon, replications, seed)
    if as_json:
        setting = {"algorithm": name_of(cls), "arms": n_arms, "history": history, "horizon": horizon}
        _show_as_json(result, setting | {"replications": replications, "log": log, "seed": seed})
        return
    note = "" if cls.exact else f" ({name_of(cls)} is not exact, so they may differ)"
    show_comparison(result, horizon, replications, note)


def _show_as_json(result: PolicyRuns, setting: dict[str, Any]) -> None:
    show_json(
        {
            "setting": setting,
            "policies": [row | {"policy": row["policy"].replace(" ", "-")} for row in result.summaries()],
            "identical_replications": result.identical,
            "seconds": result.seconds,
            "loops_compiled": result.compiled,
        }
    )


def _refuse_without_log(options: dict[str, Any]) -> None:
    """Refuse options that need the user's own log."""
    for name, value in options.items():
        if value is not None:
            raise InvalidParameter(f"--{name.replace('_', '-')} needs your own log. Name it with --log")


def _draw(result: PolicyRuns, out: Path, kind: str) -> None:
    from artreplay.plots import headline

    figure = headline(
        random=result.runs["random"],
        ignorant=result.runs["ignorant"],
        full_start=result.runs[FULL_START],
        replay=result.runs[REPLAY],
        setting=f"{_ARMS} Bernoulli arms, a log of {_SAMPLES:,} samples",
    )
    write_figure(figure, out, kind)
