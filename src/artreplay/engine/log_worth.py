"""What a log is worth: the regret with it and without it, in worlds that the log makes plausible."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from artreplay.algorithms import ArmAlgorithm, IndexArmAlgorithm
from artreplay.compiling import Floats
from artreplay.engine.progress import Progress
from artreplay.engine.setting import DriftValue
from artreplay.engine.simulate import simulate
from artreplay.environments.log_worlds import LogWorlds
from artreplay.history import History, Totals

MakeAlgorithm = Callable[[int, int], ArmAlgorithm]  # takes the rounds to come and the number of rows of a log


@dataclass(frozen=True)
class Worth:
    """The regret of an algorithm in each world: without the log, with it, and with it and an allowance for drift."""

    name: str
    without: Floats
    with_log: Floats
    with_drift: Floats | None
    read_share: float  # the share of the log that replay read

    @property
    def makes_worse(self) -> float:
        """The share of worlds in which the log increased the regret. By pure chance it would be a half."""
        return float((self.with_log > self.without).mean())


def worth_of(
    name: str,
    make_algorithm: MakeAlgorithm,
    history: History | Totals,
    rounds: int,
    worlds: int,
    seed: int = 0,
    threads: int | None = None,
    drift: DriftValue | None = None,
) -> Worth:
    """Let an algorithm play in worlds drawn from a log of rewards in [0, 1], without the log and with it.

    A third run adds `drift`, or uses the allowances of the log.
    """
    base = make_algorithm(rounds, len(history))
    totals = Totals.of(history)
    counts, sums = np.zeros(base.n_arms, np.int64), np.zeros(base.n_arms)
    numbers = [base.number(label) for label in totals.labels]
    counts[numbers], sums[numbers] = totals.counts, totals.sums
    options: dict[str, Any] = {"env": LogWorlds(counts, sums), "horizon": rounds, "replications": worlds}
    options |= {"seed": seed, "threads": threads, "keep": "final"}
    # Without an index, replay would decide differently or be slow, so the whole log is shown.
    start: Any = "artificial-replay" if isinstance(base, IndexArmAlgorithm) else "full-start"
    with Progress.in_lines(f"{name} without the log"):
        without = simulate(make_algorithm(rounds, 0), start="ignorant", history=0, **options)
    with Progress.in_lines(f"{name} with the log"):
        with_log = simulate(base, start=start, history=without_allowances(history), **options)
    allowing = None
    if drift is not None or history.has_allowances:
        with Progress.in_lines(f"{name} allowing for drift"):
            allowing = simulate(base, start=start, history=history, drift=0.0 if drift is None else drift, **options)
    return Worth(
        name,
        without.regret[:, -1],
        with_log.regret[:, -1],
        None if allowing is None else allowing.regret[:, -1],
        float(with_log.used[:, -1].mean()) / max(len(history), 1),
    )


def without_allowances(history: History | Totals) -> History | Totals:
    """Return a log of arms without its allowances."""
    if isinstance(history, Totals) or not history.has_allowances:
        return history
    return History.from_columns(history.rewards, history.labels, history.codes)
