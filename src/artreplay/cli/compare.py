"""Several policies in the same worlds: what `demo` and `simulate` compute and print."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from artreplay.compiling import loops_compiled
from artreplay.console.output import NONE, count, percent, seconds, show, table
from artreplay.engine import Runs, simulate
from artreplay.engine.runs import mean_and_error
from artreplay.environments import ArmEnvironment

REPLAY, FULL_START = "artificial replay", "full start"
MAX_ROUNDS_IN_MEMORY = 20_000_000  # rounds of all replications that are kept, about half a gigabyte for each policy


@dataclass(frozen=True)
class Contestant:
    """A policy by name: a base, and how it starts."""

    name: str
    base: Any
    start: Any


@dataclass(frozen=True)
class PolicyRuns:
    """Policies that played in the same worlds, on the same logs."""

    runs: dict[str, Runs]
    history: int
    identical: int | None  # replications in which replay and full start played the same; None if unknown
    seconds: float
    compiled: int  # loops that were compiled for the first time

    def summaries(self) -> list[dict[str, Any]]:
        """Return the numbers that are shown for each policy."""
        return [{"policy": name, **self._summary(runs)} for name, runs in self.runs.items()]

    def _summary(self, runs: Runs) -> dict[str, Any]:
        regret, error = runs.final_regret()
        every_round = runs.actions is not None
        used = mean_and_error(runs.used[:, -1])[0]
        return {
            "regret": regret,
            "standard_error": error,
            "used_before_first_action": mean_and_error(runs.used[:, 0])[0] if every_round else math.nan,
            "used": used,
            "unused_share": 1.0 - used / self.history if self.history else math.nan,
            "seconds": runs.seconds,
        }


def compare(
    contestants: Sequence[Contestant],
    env: ArmEnvironment,
    history: int,
    horizon: int,
    replications: int,
    seed: int,
) -> PolicyRuns:
    """Let each policy play the same replications. Every round is kept, unless there are too many."""
    began, compiled = time.perf_counter(), loops_compiled()[0]
    fits = replications * horizon * env.budget <= MAX_ROUNDS_IN_MEMORY
    runs = {
        contestant.name: simulate(
            contestant.base,
            env,
            start=contestant.start,
            history=history,
            horizon=horizon,
            replications=replications,
            seed=seed,
            keep="all" if fits else "final",
        )
        for contestant in contestants
    }
    return PolicyRuns(
        runs,
        history,
        identical_replications(runs.get(REPLAY), runs.get(FULL_START)),
        time.perf_counter() - began,
        loops_compiled()[0] - compiled,
    )


def identical_replications(mine: Runs | None, theirs: Runs | None) -> int | None:
    """Count the replications in which two policies took the same action in every round."""
    if mine is None or theirs is None or mine.actions is None or theirs.actions is None:
        return None
    same = mine.actions == theirs.actions
    return int(same.reshape(len(same), -1).all(axis=1).sum())


def show_comparison(comparison: PolicyRuns, horizon: int, replications: int, note: str = "") -> None:
    """Print the table, whether replay and full start played the same, and the time it took."""
    headers = ("policy", f"regret at round {horizon:,}", "used before round 1", f"used by round {horizon:,}", "unused")
    rows = [
        (
            row["policy"],
            _with_error(row["regret"], row["standard_error"]),
            count(row["used_before_first_action"]),
            count(row["used"]),
            percent(row["unused_share"]),
        )
        for row in comparison.summaries()
    ]
    show(table(headers, rows), "", _how_many(replications))
    if comparison.identical is not None:
        words = f"identical in {comparison.identical:,} of {replications:,} replications, action by action"
        show(f"{REPLAY} and {FULL_START}: {words}{note}")
    elif REPLAY in comparison.runs and FULL_START in comparison.runs:
        show(f"{REPLAY} and {FULL_START}: not compared, because there are too many rounds to keep every action")
    show(f"took {seconds(comparison.seconds)}{_compiling(comparison.compiled)}")


def _how_many(replications: int) -> str:
    if replications == 1:
        return "one replication, so there is no standard error"
    return f"means over {replications:,} replications, ± one standard error"


def _with_error(mean: float, error: float) -> str:
    return f"{mean:,.1f} ± {NONE if math.isnan(error) else f'{error:,.1f}'}"


def _compiling(loops: int) -> str:
    if loops == 0:
        return ""
    what = "1 loop" if loops == 1 else f"{loops} loops"
    return f", in which {what} had to be compiled; the next run finds {'it' if loops == 1 else 'them'} on disk"
