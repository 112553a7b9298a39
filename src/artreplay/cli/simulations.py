"""`demo` and `simulate`: policies in simulated worlds."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from artreplay.algorithms import KLUCB, ArmAlgorithm, LinUCB, MonUCB, RandomChoice
from artreplay.cli.compare import FULL_START, REPLAY, Comparison, Contestant, compare, show_comparison
from artreplay.cli.names import class_of, make_base, name_of, takes
from artreplay.console.options import Algorithm, AsJson, Budget, LogShares, Replications, Rewards, Seed, Start
from artreplay.console.output import show, show_json
from artreplay.environments import ArmEnvironment, KArmed, Linear, TopArms
from artreplay.errors import InvalidFile, InvalidParameter

_ARMS, _ROUNDS, _SAMPLES = 10, 1000, 1000  # of the demo, as in the paper
_FORMATS = ("png", "pdf", "svg")
_DEFAULT_STARTS = (Start.IGNORANT, Start.FULL_START, Start.REPLAY)


def demo(
    out: Annotated[Path, typer.Option(help="The file for the figure: .png, .pdf or .svg.")] = Path(
        "artreplay-demo.png"
    ),
    replications: Replications = 60,
    seed: Seed = 0,
    algorithm: Annotated[
        str, typer.Option(help="The base algorithm: kl-ucb, or mon-ucb, which is the paper's.")
    ] = "kl-ucb",
) -> None:
    """Show what Artificial Replay does, in a table and a figure.

    There are ten arms, 1,000 rounds and a log of 1,000 samples: it has the regret of reading the whole log, but reads
    only a part of it.
    """
    kind = _checked_place(out)
    cls = class_of(algorithm, (KLUCB, MonUCB))
    # The horizon of KLUCB counts the rows of the log; the code behind the paper has log(1 + T) in its bonus.
    base = KLUCB(_ARMS, _ROUNDS + _SAMPLES) if cls is KLUCB else MonUCB(_ARMS, _ROUNDS + 1)
    contestants = [
        Contestant("random", RandomChoice(_ARMS), "ignorant"),
        Contestant("ignorant", base, "ignorant"),
        Contestant(FULL_START, base, "full-start"),
        Contestant(REPLAY, base, "artificial-replay"),
    ]
    done = compare(contestants, KArmed(_ARMS), _SAMPLES, _ROUNDS, replications, seed)
    _draw(done, out, kind)
    show(f"{_ARMS} arms, {_ROUNDS:,} rounds, a log of {_SAMPLES:,} samples, {name_of(cls)}", "")
    show_comparison(done, _ROUNDS, replications)
    show(f"the figure is in {out}")


def simulate(
    algorithm: Algorithm = None,
    arms: Annotated[int, typer.Option(help="How many arms there are.")] = 10,
    history: Annotated[int, typer.Option(help="Samples in the log.")] = 1000,
    horizon: Annotated[int, typer.Option(help="Rounds played; also the T of the algorithm.")] = 1000,
    replications: Replications = 60,
    log: Annotated[LogShares, typer.Option(help="How often each arm is in the log.")] = LogShares.UNIFORM,
    bad_share: Annotated[
        float | None, typer.Option(help="The share of the log that is on the worst fifth of the arms.")
    ] = None,
    rewards: Annotated[Rewards, typer.Option(help="How rewards are distributed.")] = Rewards.BERNOULLI,
    budget: Budget = None,
    dim: Annotated[int | None, typer.Option(help="How many features an arm has (lin-ucb); 4 by default.")] = None,
    blocks: Annotated[
        int | None, typer.Option(help="How many blocks the features form (lin-ucb); 1 by default.")
    ] = None,
    start: Annotated[
        list[Start] | None, typer.Option(help="A policy to run, may be repeated; by default the paper's three.")
    ] = None,
    seed: Seed = 0,
    threads: Annotated[
        int | None, typer.Option(help="How many threads; by default one per core. The result is the same.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare policies in simulated worlds.

    Every policy plays the same replications of one algorithm, each with means and a log of its own.
    """
    cls = class_of(algorithm or "kl-ucb")
    env = _environment(cls, arms, budget, dim, blocks, log, rewards, bad_share, seed)
    # The horizon of KLUCB counts the rows of the log too.
    base = _base(cls, env, budget, horizon + history if cls is KLUCB else horizon)
    starts = list(dict.fromkeys(start or _DEFAULT_STARTS))
    contestants = [Contestant(each.replace("-", " "), base, str(each)) for each in starts]
    done = compare(contestants, env, history, horizon, replications, seed, threads)
    if as_json:
        setting = {
            "algorithm": name_of(cls),
            "arms": arms,
            "history": history,
            "horizon": horizon,
            "replications": replications,
            "log": str(log),
            "bad_share": bad_share,
            "rewards": str(rewards),
            "budget": env.budget,
            "seed": seed,
        }
        if isinstance(env, Linear):
            setting |= {"dim": env.dim, "blocks": env.blocks}
        show_json(
            {
                "setting": setting,
                "policies": [row | {"policy": row["policy"].replace(" ", "-")} for row in done.summaries()],
                "identical_replications": done.identical,
                "seconds": done.seconds,
                "loops_compiled": done.compiled,
            }
        )
        return
    note = "" if cls.coupled else f" ({name_of(cls)} is not coupled: they need not be)"
    show_comparison(done, horizon, replications, note)


def _environment(
    cls: type[ArmAlgorithm],
    arms: int,
    budget: int | None,
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
            log.value,
            rewards.value,
            bad_share,
            seed,
        )
    for option, value in (("--dim", dim), ("--blocks", blocks)):
        if value is not None:
            raise InvalidParameter(f"{option} is for lin-ucb: {name_of(cls)} has no features")
    if budget is None:
        return KArmed(arms, None, log.value, rewards.value, bad_share)
    return TopArms(arms, budget, None, log.value, rewards.value, bad_share)


def _base(cls: type[ArmAlgorithm], env: ArmEnvironment, budget: int | None, horizon: int) -> ArmAlgorithm:
    given = {"budget": budget}
    # Rounds are the simulation's; an algorithm that does not ask for their number is not told.
    fixed = {"features": env.features} if isinstance(env, Linear) else {"n_arms": env.n_arms}
    return make_base(cls, given, **fixed, **({"horizon": horizon} if takes(cls, "horizon") else {}))


def _checked_place(out: Path) -> str:
    """The format of a figure; refused before anything is computed if it could not be written."""
    kind = out.suffix.removeprefix(".").lower()
    if kind not in _FORMATS:
        raise InvalidParameter(f"--out must end in .png, .pdf or .svg, got {str(out)!r}")
    if not out.parent.is_dir():
        raise InvalidFile(f"cannot be written: there is no folder {out.parent}", file=out)
    if out.is_dir() or not os.access(out.parent, os.W_OK):
        raise InvalidFile("cannot be written", file=out)
    return kind


def _draw(done: Comparison, out: Path, kind: str) -> None:
    from artreplay.plots import headline
    from artreplay.whole_files import write_whole

    figure = headline(
        random=done.runs["random"],
        ignorant=done.runs["ignorant"],
        full_start=done.runs[FULL_START],
        replay=done.runs[REPLAY],
        setting=f"{_ARMS} Bernoulli arms, a log of {_SAMPLES:,} samples",
    )
    write_whole(out, lambda file: figure.savefig(file, format=kind, dpi=150))
