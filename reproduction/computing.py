"""Computes the result of a setting, with one pure function for each kind of computation."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

import artreplay as ar
import artreplay_patrol
from artreplay.compiling import Floats, Ints, Mode, using
from artreplay.environments import KArmed, PointEnvironment, world_keys
from reproduction.algorithms import BatchStart
from reproduction.algorithms.published_allocation import framed_log, play
from reproduction.base_and_environment import base_of, bonus_of, environment_of
from reproduction.result_store import Measured, Result, Series
from reproduction.setting import BATCH, FULL, REBUILT, Setting

CURVE = 101  # points of a curve
TIMINGS, TIMED = 8, 5  # how often time is measured, and over how many replications
STREAMS = 200  # how many cells of a replication have their index watched
_WITHOUT_INFLUENCE = (
    "cli",
    "console",
    "plots",
    "serving",
    "studies",
    "testing",
)  # folders of the package that results do not depend on


def compute(setting: Setting, threads: int | None = 1, mode: Mode = "auto") -> Result:
    """Compute a setting. The result is the same in every mode; the processor time is not."""
    with using(mode):
        began = time.process_time()
        measured = _KINDS[setting.kind](setting, threads)
        seconds = time.process_time() - began
    return Result(measured, seconds, _timings(setting) if setting.get("timed") else (), code_fingerprint())


@cache
def code_fingerprint() -> str:
    """Return a hash of all sources that results depend on."""
    digest = hashlib.blake2b(digest_size=10)
    for inside, path in sorted(sources().items()):
        digest.update(inside.as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def sources() -> dict[Path, Path]:
    """Return the files that results depend on, by name: of both packages and of the reproduction."""
    core, patrol, here = (Path(str(file)).parent for file in (ar.__file__, artreplay_patrol.__file__, __file__))
    found = {path.relative_to(core.parent): path for path in core.rglob("*.py")}
    found = {inside: path for inside, path in found.items() if inside.parts[1] not in _WITHOUT_INFLUENCE}
    found |= {path.relative_to(patrol.parent): path for path in patrol.rglob("*.py")}
    own = [here / "base_and_environment.py", here / "computing.py", *(here / "algorithms").glob("*.py")]
    return found | {path.relative_to(here.parent): path for path in own}


def _timings(setting: Setting) -> tuple[float, ...]:
    """Measure the processor seconds of a replication several times, compiled, and without drawing its log."""
    env, rows = environment_of(setting), setting["history"]
    each = []
    with using("compiled"):
        _simulated(setting, 1, 1)  # compiles the loops first
        for _ in range(TIMINGS):
            began = time.process_time()
            _simulated(setting, TIMED, 1)
            simulated = time.process_time()
            for replication in range(TIMED):
                env.draw_history(rows, setting.seed, replication)
            drawn = time.process_time() - simulated
            each.append(max(simulated - began - drawn, 0.0) / TIMED)
    return tuple(each)


def rounds_kept(horizon: int) -> Ints:
    """Return the rounds at which curves are kept, counted from 1, including the first and the last."""
    return np.unique(np.linspace(1, horizon, min(CURVE, horizon)).round().astype(np.int64))


# -- simulations --------------------------------------------------------------------------------------------------


def _simulate(setting: Setting, threads: int | None) -> Measured:
    """Simulate: regret and samples used over rounds, a digest of all actions, and the final number of cells."""
    runs = _simulated(setting, setting.replications, threads)
    kept = rounds_kept(runs.horizon)
    rounds, last = kept.astype(np.float64), np.array([float(runs.horizon)])
    measured: dict[str, Series] = {
        "regret": (rounds, runs.regret[:, kept - 1]),
        "used": (rounds, runs.used[:, kept - 1].astype(np.float64)),
        "digest": (last, digests(runs)[:, None]),
    }
    if runs.cells is not None:
        measured["cells"] = (last, runs.cells[:, None].astype(np.float64))
    if runs.levels is not None:
        measured["spent"] = (last, np.nansum(runs.levels, axis=2).mean(axis=1)[:, None])
    return measured


def _published_allocation(setting: Setting, threads: int | None) -> Measured:
    """Play the authors' code for allocations, rebuilt. It has no digest: its replay need not act like Full Start."""
    env, horizon = environment_of(setting), setting["horizon"]
    if not isinstance(env, PointEnvironment):
        raise TypeError(f"{setting.describe()} has no places")
    played = []
    for replication in range(setting.replications):
        seed = (setting.seed, replication)
        log = framed_log(env, setting["history"], setting.get("bad_share"), seed)
        played.append(play(env, log, setting["start"], setting["adaptive"], horizon, setting["finest"], seed))
    kept = rounds_kept(horizon)
    rounds = kept.astype(np.float64)
    return {
        "regret": (rounds, np.array([one.regret[kept - 1] for one in played])),
        "used": (rounds, np.array([one.used[kept - 1] for one in played])),
        "cells": (np.array([float(horizon)]), np.array([[float(one.cells)] for one in played])),
    }


def _simulated(setting: Setting, replications: int, threads: int | None) -> ar.Runs:
    base, start = base_of(setting), setting["start"]
    if start == BATCH:
        base, start = BatchStart(base), FULL
    return ar.simulate(
        base,
        environment_of(setting),
        start=start,
        history=setting["history"],
        horizon=setting["horizon"],
        replications=replications,
        seed=setting.seed,
        threads=threads,
    )


def digests(runs: ar.Runs) -> Floats:
    """Return one number for all actions of each replication. Equal actions give equal numbers."""
    actions = np.zeros((runs.replications, 0)) if runs.actions is None else runs.actions
    levels = np.zeros((runs.replications, 0)) if runs.levels is None else runs.levels
    found = []
    for mine, at in zip(actions, levels, strict=True):
        digest = hashlib.blake2b(np.ascontiguousarray(mine).tobytes(), digest_size=6)
        digest.update(np.nan_to_num(at, nan=-1.0).tobytes())
        found.append(int.from_bytes(digest.digest(), "big"))  # 48 bits: a whole number in a float
    return np.array(found, dtype=np.float64)


# -- pictures -----------------------------------------------------------------------------------------------------


def _partition(setting: Setting, threads: int | None) -> Measured:
    """Return the cells after a log was shown and some rounds were played, and the samples of the log."""
    env = environment_of(setting)
    if not isinstance(env, PointEnvironment):
        raise TypeError(f"{setting.describe()} has no partition")
    history = env.draw_history(setting["history"], seed=setting.seed)
    base = base_of(setting)
    policy = ar.FullStart(base, history) if len(history) else ar.Ignorant(base)
    rng = np.random.default_rng(setting.seed)
    for _ in range(setting.get("rounds", setting["horizon"])):
        point = policy.ask()
        mean = env.means(np.array([point]), np.ones(1))[0]
        policy.tell(point, float(rng.random() < mean))
    policy.ask()
    measured = {"cell": _flat(np.array([_columns(cell) for cell in policy.cells()]))}
    if history.points is not None and len(history):
        levels = np.zeros(len(history)) if history.levels is None else history.levels
        measured["sample"] = _flat(np.column_stack([history.points, levels, history.rewards]))
    return measured


def _columns(cell: ar.Cell) -> list[float]:
    """Return the columns that `CELL` names."""
    low, high = cell.low or (), cell.high or ()
    return [*low, *high, cell.level or 0.0, float(cell.count), cell.index]


def _surface(setting: Setting, threads: int | None) -> Measured:
    """Return the mean rewards on a grid at one level, row by row along the second coordinate."""
    env = environment_of(setting)
    if not isinstance(env, PointEnvironment):
        raise TypeError(f"{setting.describe()} has no surface")
    side = setting["shown"]
    axis = (np.arange(side) + 0.5) / side
    points = np.stack([grid.ravel() for grid in np.meshgrid(axis, axis)], axis=1)
    means = env.means(points, np.full(len(points), setting.get("level", 1.0)))
    return {"mean": _flat(means)}


def _flat(values: Floats) -> Series:
    return np.arange(values.size, dtype=np.float64), values.reshape(1, -1).astype(np.float64)


# -- theory -------------------------------------------------------------------------------------------------------


def _pulls(setting: Setting, threads: int | None) -> Measured:
    """Return the online pulls of each arm, its gap, and the pulls that the paper's lemma allows it."""
    runs = _simulated(setting, setting.replications, threads)
    env, arms, horizon = KArmed(setting["arms"]), setting["arms"], setting["horizon"]
    replications = np.arange(setting.replications)
    means = env.draw_means(world_keys(setting.seed, replications))
    gaps = means.max(axis=1)[:, None] - means
    logged = np.zeros(gaps.shape)
    for replication in replications.tolist():
        history = env.draw_history(setting["history"], setting.seed, replication)
        numbers = np.array(history.labels, np.int64)[history.codes]
        logged[replication] = np.bincount(numbers, minlength=arms)
    with np.errstate(divide="ignore"):
        needed = 2.0 * math.log(2 * horizon * arms) / (gaps**2 / 2.0)  # ψ*(Δ/2) = Δ²/2 for ψ(λ) = λ²/8
    actions = np.zeros((len(gaps), 0), np.int64) if runs.actions is None else runs.actions
    pulls = np.array([np.bincount(mine, minlength=arms) for mine in actions])
    x = np.arange(arms)
    bound = 1.0 + np.maximum(0.0, needed - logged)
    return {"gap": (x, gaps), "pulls": (x, pulls), "bound": (x, np.minimum(bound, 1.0 + horizon))}


def _below_mean(setting: Setting, threads: int | None) -> Measured:
    """Return the share of cells whose index has fallen below their true mean, after growing numbers of samples."""
    samples = np.array(setting["samples"])
    bonus = bonus_of(setting["bonus"], setting["horizon"], int(samples[-1]))
    count = np.arange(1, samples[-1] + 1)[:, None]
    scale = 2.0 * math.log(setting["horizon"]) if setting["bonus"] == "theory" else bonus.scale(setting["horizon"])
    shares = np.zeros((setting.replications, len(samples)))
    for replication in range(setting.replications):
        rng = np.random.default_rng([setting.seed, replication])
        means = rng.random(STREAMS)
        totals = np.cumsum(rng.random((samples[-1], STREAMS)) < means, axis=0)
        lowest = np.minimum.accumulate(totals / count + np.sqrt(scale / count), axis=0)
        shares[replication] = (lowest[samples - 1] < means).mean(axis=1)
    return {"share": (samples, shares)}


_KINDS: dict[str, Callable[[Setting, int | None], Measured]] = {
    "simulate": _simulate,
    REBUILT: _published_allocation,
    "partition": _partition,
    "surface": _surface,
    "pulls": _pulls,
    "below-mean": _below_mean,
}
