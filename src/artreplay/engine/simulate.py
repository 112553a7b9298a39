"""`simulate`: plays replications of a policy in an environment. The number of threads does not change the result."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any

import numpy as np

from artreplay.algorithms import PointAlgorithm
from artreplay.compiling import can_compile, current_mode, using
from artreplay.engine.asking import play_by_asking
from artreplay.engine.descriptions import description_of, version_of
from artreplay.engine.progress import Progress
from artreplay.engine.runs import Runs
from artreplay.engine.setting import DriftValue, Keep, Outputs, Setting, Start, StoppingRule, checked_setting
from artreplay.engine.stages import as_earned, law_for
from artreplay.engine.worker import Worker
from artreplay.environments import ArmEnvironment, ContextEnvironment, PointEnvironment
from artreplay.history import History, Totals
from artreplay.parameters import Count, Seed, checked
from artreplay.replay import Relation

MAX_REPLICATIONS = 64  # replications in one batch
MAX_WORLD_ENTRIES = 1 << 17  # arms of all worlds that are drawn in one go
BATCHES_PER_THREAD = 4  # enough that all threads end at about the same time


@checked
def simulate(
    base: object,
    env: ArmEnvironment | PointEnvironment,
    start: Start = "artificial-replay",
    history: int | History | Totals = 1000,
    horizon: Count = 1000,
    replications: Count = 60,
    seed: Seed = 0,
    threads: Count | None = None,
    keep: Keep | Sequence[int] = "all",
    *,
    drift: DriftValue = 0.0,
    relation: Relation | None = None,
    stop: StoppingRule | None = None,
    first_replication: int = 0,
) -> Runs:
    """Play `base` in `env` for `horizon` rounds, `replications` times, each with its own log.

    The same seed gives every policy and every algorithm the same means, logs and rewards, so comparisons are paired.

    Parameters
    ----------
    base
        The algorithm. Replication r starts from a copy that draws with the key (seed, seed of the base, r).
    env
            One of `ar.environments`, or your own object with `n_arms`, `mean(arm, round)` and `reward(arm, round, u)`.
            See `ar.environments.OwnEnvironment`.
    start
        How to use the log: `"artificial-replay"`, `"full-start"` or `"ignorant"`.
    history
            How many samples each replication draws from the log of the environment. Or a `History` or `Totals` that all
            replications use.
    horizon
            How many rounds to play. The base has its own horizon, which may differ. If it counts the rows of a log as
            well, it counts those of `history`.
    replications
        How often to repeat this, each time in another world.
    seed
        The seed of all random draws in the worlds.
    threads
        How many threads play, by default one for each processor. The result does not depend on it.
    keep
        The rounds to keep in the result: `"all"`, `"final"` for the last one, or a list of rounds, counted from 0.
    drift
        How far the means of the log may lie from today's, as in `ar.ArtificialReplay`.
    relation
            A callable `(logged_unit, proposed_unit, base) -> bool` that replaces the base's cells, as in
            `ar.ArtificialReplay`. A simulation with it is interpreted.
    stop
            A function of a policy that returns the arm to recommend, or None to go on. It is called before each round,
            after the policy has decided. Where it returns an arm the replication ends: regret and rows stay what they
            are. A simulation with it is interpreted.
    first_replication
            The number of the first replication. With 60, the replications are those that come after 60 others of the
            same seed, and `ar.Runs.join` puts both together.

    >>> import artreplay as ar
    >>> env = ar.environments.KArmed(3)
    >>> replay, full = (
    ...     ar.simulate(ar.MonUCB(3, 100), env, start=start, history=200, horizon=100, replications=5)
    ...     for start in ("artificial-replay", "full-start")
    ... )
    >>> bool((replay.actions == full.actions).all()), bool((replay.used[:, -1] < full.used[:, -1]).all())
    (True, True)
    """
    began = time.perf_counter()
    setting = checked_setting(
        base, env, start, history, horizon, replications, seed, first_replication, keep, drift, relation, stop
    )
    settings = _settings_of(setting, history)
    outputs = setting.outputs()
    with Progress("simulating", setting.replications) as progress:
        if setting.asks_policies:
            play_by_asking(setting, outputs, progress.update)
        else:
            _play_in_threads(setting, outputs, _checked_threads(threads, setting), progress.update)
    return _runs(setting, outputs, settings, time.perf_counter() - began)


def _settings_of(setting: Setting, history: int | History | Totals) -> dict[str, Any]:
    """Say what is simulated, and with which versions."""
    return {
        "base": description_of(setting.user_base),
        "env": description_of(setting.env),
        "start": setting.start,
        "history": description_of(history),
        "drift": description_of(setting.user_drift),
        "relation": description_of(setting.relation),
        "stop": description_of(setting.stop),
        "seed": setting.seed,
    } | {package: version_of(package) for package in ("artreplay", "numpy", "numba")}


def _runs(setting: Setting, outputs: Outputs, settings: dict[str, Any], seconds: float) -> Runs:
    """Collect what is to be kept of a simulation."""
    rounds = setting.rounds if setting.keep_all else None
    columns = slice(None) if rounds is None else rounds
    actions = levels = grid = rewards = None
    if setting.keep_all:
        actions, rewards = outputs.actions[:, columns], outputs.rewards[:, columns]
        if not setting.asks_policies:
            rewards = as_earned(rewards, law_for(setting.base, setting.env))
        if setting.levels is not None:
            # The last entry, nan, stands for no unit.
            levels = np.array([*setting.levels, np.nan])[outputs.levels[:, columns]]
        elif setting.width == 1:
            actions = actions[:, :, 0]
        if setting.levels is None and setting.width == 1:
            rewards = rewards[:, :, 0]
    if isinstance(setting.env, PointEnvironment):  # a user's own object plays points of the environment
        grid = setting.env.lattice
        if isinstance(setting.base, PointAlgorithm) and not setting.asks_policies:
            grid = setting.base.lattice
    return Runs(
        regret=outputs.regret[:, columns],
        used=outputs.used[:, columns],
        actions=actions,
        horizon=setting.horizon,
        history=setting.rows,
        seconds=seconds,
        levels=levels,
        cells=outputs.boxes if outputs.boxes.all() else None,
        rounds=rounds,
        used_by_arm=outputs.by_arm if outputs.by_arm.shape[1] else None,
        lattice=grid,
        rewards=rewards,
        first_replication=setting.first,
        settings=settings,
        stopped=None if setting.stop is None else outputs.stopped,
        recommended=None if setting.stop is None else outputs.recommended,
        simple_regret=None if setting.stop is None else outputs.lost,
    )


def _play_in_threads(setting: Setting, outputs: Outputs, n_threads: int, report: Callable[[float], None]) -> None:
    """Share the replications among workers. The main thread only waits, so that Ctrl-C reaches it."""
    batches, stop, mode = _Batches(setting, n_threads), threading.Event(), current_mode()
    workers = [Worker(setting, outputs, stop) for _ in range(n_threads)]

    def work(worker: Worker) -> None:
        """Run in the caller's mode, which a new thread does not inherit."""
        with using(mode):
            worker.run(batches)

    if not can_compile():  # so that a debugger can stop in the user's code
        workers[0].run(batches)
        report(workers[0].progress())
        return
    with ThreadPoolExecutor(n_threads) as pool:
        try:
            pending = {pool.submit(work, worker) for worker in workers}
            while pending:
                done, pending = wait(pending, timeout=0.1, return_when=FIRST_EXCEPTION)
                for future in done:
                    future.result()
                report(sum(worker.progress() for worker in workers))
        except BaseException:
            stop.set()  # workers look at it after each slice
            raise


class _Batches:
    """Hands out replications to workers, a few at a time and in order."""

    def __init__(self, setting: Setting, n_threads: int) -> None:
        self._next = 0
        self._total = setting.replications
        self._lock = threading.Lock()
        self._size = 1
        env = setting.env
        if (
            isinstance(env, ArmEnvironment)
            and not isinstance(env, ContextEnvironment)
            and not setting.draws_logs_singly
        ):
            fair = -(-self._total // (BATCHES_PER_THREAD * n_threads))
            self._size = min(fair, max(1, MAX_WORLD_ENTRIES // env.n_arms), MAX_REPLICATIONS)

    def __iter__(self) -> Iterator[range]:
        while True:
            with self._lock:
                first = self._next
                self._next = min(first + self._size, self._total)
            if first == self._total:
                return
            yield range(first, min(first + self._size, self._total))


def _checked_threads(threads: int | None, setting: Setting) -> int:
    """Return how many threads play. It is one if Python's lock would make them take turns."""
    if not can_compile():
        return 1
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(threads or available, setting.replications)
