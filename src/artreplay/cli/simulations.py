"""`demo` and `simulate`: policies in simulated worlds."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, cast, get_args

import typer

from artreplay.algorithms import KLUCB, ArmAlgorithm, LinUCB, MonUCB, RandomChoice
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
from artreplay.cli.names import IN_SIMULATIONS, class_of, make_base, name_of, takes
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
from artreplay.environments import ArmEnvironment, KArmed, Linear
from artreplay.environments.arm_environments import LogShares, Rewards
from artreplay.errors import InvalidParameter, checked_count

_ARMS, _ROUNDS, _SAMPLES = 10, 1000, 1000  # of the demo, as in the paper


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
    algorithm: Annotated[
        str, typer.Option(help="The base algorithm: kl-ucb, or mon-ucb, which is the paper's.")
    ] = "kl-ucb",
) -> None:
    """Show what Artificial Replay does, in a table and a figure.

    There are ten arms, 1,000 rounds and a log of 1,000 samples: it has the regret of reading the whole log, but reads
    only a part of it.
    """
    kind = checked_figure(out)
    cls = class_of(algorithm, (KLUCB, MonUCB))
    base = KLUCB(_ARMS, _ROUNDS) if cls is KLUCB else MonUCB(_ARMS, _ROUNDS + 1)  # the paper's code has log(1 + T)
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
    horizon: Annotated[int, typer.Option(help="Rounds played, which the algorithm knows.")] = 1000,
    replications: ReplicationsOption = 60,
    log: Annotated[
        str,
        typer.Option(help="How often each arm is in the log: uniform, random; or a log of your own: what is it worth?"),
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
    out: Annotated[Path | None, typer.Option(help="With a log of your own: where a figure goes.")] = None,
    bad_share: Annotated[
        float | None, typer.Option(help="The share of the log that is on the worst fifth of the arms.")
    ] = None,
    rewards: Annotated[Rewards, typer.Option(help="How rewards are distributed.")] = "bernoulli",
    dim: Annotated[int | None, typer.Option(help="How many features an arm has (lin-ucb); 4 by default.")] = None,
    blocks: Annotated[
        int | None, typer.Option(help="How many blocks the features form (lin-ucb); 1 by default.")
    ] = None,
    start: Annotated[
        list[StartChoice] | None, typer.Option(help="A policy to run, may be repeated; by default the paper's three.")
    ] = None,
    seed: SeedOption = 0,
    threads: Annotated[
        int | None, typer.Option(help="How many threads; by default one per core. The result is the same.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare policies in simulated worlds.

    Every policy plays the same replications of one algorithm, each with means and a log of its own. With --log LOG,
    --unit and --reward the worlds are drawn from what your log says of its arms, and your log is the history: the
    table says what it is worth.
    """
    tuning = tuning_of(level, bonus, prior)
    columns: dict[str, Any] = {"unit": column_of_arms(unit, log, reward), "reward": reward, "table": table}
    columns |= {"count": count, "sum": sum_, "csv": csv_of(csv)}
    allowance, number = column_or_drift(drift)
    if log not in get_args(LogShares):
        how = {"rounds": checked_count("horizon", horizon), "seed": seed, "threads": threads}
        how["worlds"] = checked_count("replications", replications)
        column_options = {
            name: value for name, value in (columns | {"allowance": allowance}).items() if value is not None
        }
        simulate_log(log, column_options, algorithm, tuning | {"reward_range": reward_range}, number, how, out, as_json)
        return
    _refuse_without_log({**columns, "drift": drift, "reward_range": reward_range, "out": out})
    cls = class_of(algorithm or "kl-ucb", IN_SIMULATIONS)
    env = _environment(cls, n_arms, dim, blocks, cast(LogShares, log), rewards, bad_share, seed)
    base = _base(cls, env, tuning, horizon)
    starts = list(dict.fromkeys(start or StartChoice))
    contestants = [Contestant(each.replace("-", " "), base, each.value) for each in starts]
    result = compare(contestants, env, history, horizon, replications, seed, threads)
    if as_json:
        setting = {"algorithm": name_of(cls), "arms": n_arms, "history": history, "horizon": horizon}
        setting |= {"replications": replications, "log": str(log), "bad_share": bad_share, "rewards": str(rewards)}
        _show_as_json(result, setting | {"seed": seed}, env)
        return
    note = "" if cls.exact else f" ({name_of(cls)} is not exact: they need not be)"
    show_comparison(result, horizon, replications, note)


def _show_as_json(result: PolicyRuns, setting: dict[str, Any], env: ArmEnvironment) -> None:
    if isinstance(env, Linear):
        setting |= {"dim": env.dim, "blocks": env.blocks}
    show_json(
        {
            "setting": setting,
            "policies": [row | {"policy": row["policy"].replace(" ", "-")} for row in result.summaries()],
            "identical_replications": result.identical,
            "seconds": result.seconds,
            "loops_compiled": result.compiled,
        }
    )


def _environment(
    cls: type[ArmAlgorithm],
    arms: int,
    dim: int | None,
    blocks: int | None,
    log: LogShares,
    rewards: Rewards,
    bad_share: float | None,
    seed: int,
) -> ArmEnvironment:
    if cls is LinUCB:
        return Linear(
            arms,
            4 if dim is None else dim,
            1 if blocks is None else blocks,
            None,
            log,
            rewards,
            bad_share,
            seed,
        )
    for option, value in (("--dim", dim), ("--blocks", blocks)):
        if value is not None:
            raise InvalidParameter(f"{option} is for lin-ucb: {name_of(cls)} has no features")
    return KArmed(arms, None, log, rewards, bad_share)


def _refuse_without_log(options: dict[str, Any]) -> None:
    """Options that speak of a log of the user's own."""
    for name, value in options.items():
        if value is not None:
            raise InvalidParameter(f"--{name.replace('_', '-')} belongs to a log of your own: name it with --log")


def _base(cls: type[ArmAlgorithm], env: ArmEnvironment, parameters: dict[str, Any], horizon: int) -> ArmAlgorithm:
    # Rounds are the simulation's; an algorithm that does not ask for their number is not told.
    fixed = {"features": env.features} if isinstance(env, Linear) else {"n_arms": env.n_arms}
    return make_base(cls, parameters, **fixed, **({"horizon": horizon} if takes(cls, "horizon") else {}))


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
