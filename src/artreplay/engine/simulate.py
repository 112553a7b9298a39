"""`simulate`: replications of a policy in an environment, in threads, the same in any number of them."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any, Literal

import numpy as np

from artreplay.algorithms import ArmAlgorithm, PointAlgorithm
from artreplay.cells.boxes import checked_space, outside
from artreplay.compiling import Ints, current_mode, using
from artreplay.engine.delayed import play_delayed
from artreplay.engine.progress import Progress
from artreplay.engine.runs import Runs
from artreplay.engine.stages import Outputs, Setting, number_arms
from artreplay.engine.worker import Worker
from artreplay.environments import ArmEnvironment, OwnEnvironment, PointEnvironment, is_own_environment
from artreplay.errors import InvalidHistory, InvalidParameter, checked_count, exact
from artreplay.history import History, Totals
from artreplay.parameters import Count, Seed, checked
from artreplay.replay import (
    Base,
    ComponentBase,
    Drift,
    Log,
    ObjectBase,
    as_base,
    warn_of_short_horizon,
)

Start = Literal["artificial-replay", "full-start", "ignorant"]
Keep = Literal["all", "final"]

_WORLD_ENTRIES = 1 << 17  # arms of all worlds that are drawn at a time


@checked
def simulate(
    base: Any,
    env: ArmEnvironment | PointEnvironment,
    start: Start = "artificial-replay",
    history: int | History | Totals = 1000,
    horizon: Count = 1000,
    replications: Count = 60,
    seed: Seed = 0,
    threads: Count | None = None,
    keep: Keep | Sequence[int] = "all",
    *,
    drift: Any = 0.0,
) -> Runs:
    """Play `base` in `env` for `horizon` rounds, `replications` times, each over a log of its own.

    `base` is a template: replication r starts from a copy of it, re-keyed by (seed, its own seed, r). Its own horizon,
    the T in its bonus, may be another one. `history` is a number of samples drawn from the environment's log, or a
    `History` or `Totals` used in every replication. The same seed gives the same means, log and rewards to every policy
    and every algorithm, so that comparisons are paired; the result does not depend on `threads`. `drift` is that of the
    policies. With `keep="final"` only the last round is kept, with a list of rounds, counted from 0, only those. `env`
    is one of `ar.environments`, or an object of your own with `n_arms`, `mean(arm, round)` and
    `reward(arm, round, u)`: see `ar.environments.OwnEnvironment`.

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
    setting = _checked_setting(base, env, start, history, horizon, replications, seed, keep, drift)
    warn_of_short_horizon(base, range(setting.rows))
    n_threads = _checked_threads(threads, setting)
    outputs = setting.outputs()
    if isinstance(setting.env, OwnEnvironment) and setting.env.has_delays:
        with Progress("simulating", setting.replications) as progress:
            play_delayed(setting, outputs, progress.update)
        return _runs(setting, outputs, None, began)
    cells = np.zeros(setting.replications, np.int64)
    stop = threading.Event()
    batches = _Batches(setting, n_threads)
    workers = [Worker(setting, outputs, cells, stop) for _ in range(n_threads)]
    with Progress("simulating", setting.replications) as progress:

        def report() -> None:
            """Move the progress bar to where the workers are."""
            progress.update(sum(worker.progress() for worker in workers))

        if setting.compilable:
            _run_threads(workers, batches, stop, report)
        else:
            workers[0].run(batches, report)
    regions = cells if cells.all() else None  # the algorithms over points tell how many they have
    return _runs(setting, outputs, regions, began)


def _runs(setting: Setting, outputs: Outputs, cells: Ints | None, began: float) -> Runs:
    """What came of a simulation, as far as it is to be kept."""
    regret, used, actions, levels, by_arm = outputs
    if setting.rounds is not None and len(setting.rounds):
        regret, used, actions = regret[:, setting.rounds], used[:, setting.rounds], actions[:, setting.rounds]
        levels = levels[:, setting.rounds] if levels.shape[1] else levels
    rounds = None if setting.rounds is None or len(setting.rounds) == 0 else setting.rounds
    played, at_levels = setting.actions_of(actions), setting.levels_of(levels)
    seconds = time.perf_counter() - began
    arms = by_arm if by_arm.shape[1] else None
    grid = None
    if isinstance(setting.env, PointEnvironment):  # an object of the user's own plays points of the environment
        grid = setting.base.lattice if isinstance(setting.base, PointAlgorithm) else setting.env.lattice
    return Runs(regret, used, played, setting.horizon, setting.rows, seconds, at_levels, cells, rounds, arms, grid)


def _run_threads(workers: list[Worker], batches: _Batches, stop: threading.Event, report: Any) -> None:
    """The main thread only waits, so that it hears Ctrl-C; workers stop at the end of their slice."""
    mode = current_mode()

    def work(worker: Worker) -> None:
        """Run in the caller's mode, which a new thread does not know."""
        with using(mode):
            worker.run(batches, None)

    with ThreadPoolExecutor(len(workers)) as pool:
        try:
            pending = {pool.submit(work, worker) for worker in workers}
            while pending:
                done, pending = wait(pending, timeout=0.1, return_when=FIRST_EXCEPTION)
                for future in done:
                    future.result()
                report()
        except BaseException:
            stop.set()
            raise


class _Batches:
    """Hands out replications, a few at a time and in order, to whoever asks."""

    def __init__(self, setting: Setting, n_threads: int) -> None:
        self._next = 0
        self._total = setting.replications
        self._lock = threading.Lock()
        fair = -(-setting.replications // (4 * n_threads))  # several batches for each, so that all end together
        self._size = 1
        if setting.compilable and isinstance(setting.env, ArmEnvironment):
            self._size = min(fair, max(1, _WORLD_ENTRIES // setting.env.n_arms), 64)

    def take(self) -> range:
        """The next replications; none when all are taken."""
        with self._lock:
            first = self._next
            self._next = min(first + self._size, self._total)
            return range(first, self._next)


def _checked_setting(
    base: Any,
    env: Any,
    start: Start,
    history: int | History | Totals,
    horizon: int,
    replications: int,
    seed: int,
    keep: Any,
    drift: Any,
) -> Setting:
    if not isinstance(env, (ArmEnvironment, PointEnvironment)):
        if not is_own_environment(env):
            offers = "n_arms, mean(arm, round) and reward(arm, round, u)"
            raise InvalidParameter(f"env must be one of ar.environments, or have {offers}, got {env!r}")
        env = OwnEnvironment(env)
    rounds = _checked_rounds(keep, horizon)
    taken = as_base(base)
    if isinstance(env, ArmEnvironment):
        _check_arms(taken, env)
    else:
        _check_points(taken, env)
    given, rows = None, 0
    if isinstance(history, (History, Totals)):
        given, rows = history, len(history)
        _check_log(taken, env, history)
    else:
        rows = checked_count("history", history, least=0)
    if isinstance(env, OwnEnvironment):
        env.rows = rows
    if getattr(base, "wants_totals", False) and start != "ignorant":
        if given is None:
            raise InvalidParameter('prior="log" needs a log to fit it to: give history= as a History, not as a number')
        base = taken.thing
        base.take_totals(*Log(taken, given, "error").totals())
    allowed = _checked_drift(drift, taken, start, given)
    return Setting(
        base=taken.thing if allowed.is_there else base,
        env=env,
        start=start,
        given=given,
        rows=0 if start == "ignorant" else rows,
        horizon=horizon,
        replications=replications,
        seed=seed,
        keep_all=rounds is None or len(rounds) > 0,
        rounds=rounds,
        drift=allowed,
        totals=_rows_of_totals(taken, given) if isinstance(given, Totals) and start != "ignorant" else [],
        compilable=_is_compilable(taken, env),
    )


def _rows_of_totals(base: Base, totals: Totals) -> list[tuple[int, int, float]]:
    """The arm, the samples and the sum of each row of totals, as the base sees them."""
    part = Log(base, totals, "error").whole
    if part is None or part.samples is None:
        return []
    return list(zip(part.units.tolist(), part.samples.tolist(), part.rewards.tolist(), strict=True))


def _checked_drift(drift: Any, base: Base, start: str, given: History | Totals | None) -> Drift:
    """The allowances of the log, for a base that is made to take them; none where there is no log."""
    if start == "ignorant":
        return Drift(0.0, base)
    allowed = Drift(drift, base, given is not None and given.has_allowances)
    if given is not None:
        Log(base, given, "error", allowed)
    elif allowed.leaves_out_arms:
        raise InvalidParameter(
            "drift as wide as the range of rewards needs a log that is given: history= is a number here"
        )
    if allowed.is_there:
        base.allow_drift()
    return allowed


def _is_compilable(base: Base, env: Any) -> bool:
    """Whether nothing is a plain object, and compiling is not turned off."""
    plain = isinstance(base, ObjectBase) or (isinstance(env, OwnEnvironment) and not env.is_compilable)
    return not plain and current_mode() != "interpreted"


def _checked_rounds(keep: Any, horizon: int) -> Ints | None:
    """The rounds to keep: None for all, none for the last alone."""
    if isinstance(keep, str):
        if keep not in ("all", "final"):
            raise InvalidParameter(f'keep must be "all", "final" or a list of rounds, got {keep!r}')
        return None if keep == "all" else np.empty(0, np.int64)
    if not isinstance(keep, (Sequence, np.ndarray, range)) or len(keep) == 0:
        raise InvalidParameter(f'keep must be "all", "final" or a list of rounds, got {keep!r}')
    rounds = [checked_count("a round to keep", round_, least=0) for round_ in keep]
    if max(rounds) >= horizon or sorted(set(rounds)) != rounds:
        raise InvalidParameter(f"the rounds to keep must rise and lie in 0..{horizon - 1}, got {rounds}")
    return np.array(rounds, np.int64)


def _check_log(base: Base, env: ArmEnvironment | PointEnvironment, history: History | Totals) -> None:
    """A log that is given must be one of what the environment plays."""
    if isinstance(history, Totals):
        Log(base, history, "error")  # the arms are those of the environment, or it was refused before
        return
    if isinstance(env, ArmEnvironment):
        if history.points is not None and len(history):
            raise InvalidHistory("simulate needs a log of arms, got one of points")
        if isinstance(base, ObjectBase):
            number_arms(base, env.n_arms)
        units = base.numbers_of(history, skip=False)
        if units.max(initial=-1) >= env.n_arms:
            row = int(np.argmax(units >= env.n_arms))
            problem = f"is not an arm of the environment, which has 0..{env.n_arms - 1}"
            raise InvalidHistory(problem, what=f"label {history.unit(row)!r}", row=row)
    elif isinstance(base, ObjectBase):
        _check_logged_points(history, env)
    else:
        base.numbers_of(history, skip=False)
    base.rewards_of(history)


def _check_logged_points(history: History, env: PointEnvironment) -> None:
    """What an algorithm of this package would say of a log, said for an object that takes any unit."""
    if len(history) == 0:
        return
    if history.points is None:
        raise InvalidHistory("simulate needs a log of points, got one of arms")
    if history.points.shape[1] != env.dim:
        raise InvalidHistory(f"points must have {env.dim} coordinates, the log's have {history.points.shape[1]}")
    if (history.levels is None) != (env.levels is None):
        raise InvalidHistory(f"the log has {'no levels' if history.levels is None else 'levels'}, unlike {env!r}")
    rows = outside(env.lattice, history.points)
    if len(rows):
        problem = f"is {history.points[rows[0]].tolist()}, outside {env!r}"
        raise InvalidHistory(problem, what="point", row=rows[0])
    if history.levels is not None and env.levels is not None:
        rows = np.flatnonzero(~np.isin(history.levels, env.levels))
        if len(rows):
            known, level = ", ".join(map(exact, env.levels)), exact(history.levels[rows[0]])
            raise InvalidHistory(f"is {level}, the levels are {known}", what="level", row=rows[0])


def _check_points(taken: Base, env: PointEnvironment) -> None:
    """An algorithm and an environment must agree on the space, the levels, the budget."""
    base = taken.thing
    if isinstance(taken, ObjectBase):
        return  # what it plays is checked when it plays
    if not isinstance(base, PointAlgorithm):
        raise InvalidParameter(f"{env!r} is for algorithms over points, got {base!r}")
    for name in ("dim", "levels", "box", "budget", "max_units"):
        mine, theirs = getattr(base, name, None), getattr(env, name)
        if name == "box":
            mine, theirs = _edges(base), _edges(env)
        if mine != theirs:
            raise InvalidParameter(f"the algorithm has {name} {mine}, the environment has {theirs}")
    _check_range(base.reward_range)


def _edges(space: Any) -> tuple[tuple[float, float], ...]:
    """The box of an algorithm or an environment, as one (low, high) pair per axis."""
    low, high = checked_space(space.box, space.dim)
    return tuple(zip(low.tolist(), high.tolist(), strict=True))


def _check_range(reward_range: tuple[float, float], needed: tuple[float, float] = (0.0, 1.0)) -> None:
    low, high = reward_range
    if low > needed[0] or high < needed[1]:
        covered = f"[{needed[0]:g}, {needed[1]:g}]"
        raise InvalidParameter(f"reward_range must cover the environment's {covered}, got [{low:g}, {high:g}]")


def _check_arms(taken: Base, env: ArmEnvironment) -> None:
    """An algorithm and an environment must agree on what is played, and on what rewards there can be."""
    base = taken.thing
    if not isinstance(base, PointAlgorithm):
        _check_range(taken.reward_range, env.reward_range)
    if isinstance(base, PointAlgorithm):
        raise InvalidParameter(f"{env!r} is for algorithms over arms, got {base!r}")
    if isinstance(base, ArmAlgorithm):
        if base.n_arms != env.n_arms:
            raise InvalidParameter(f"the algorithm has {base.n_arms} arms, the environment has {env.n_arms}")
        if base.width != env.budget:
            raise InvalidParameter(
                f"the algorithm plays {base.width} arms in a round, the environment expects {env.budget}"
            )
    elif isinstance(taken, ComponentBase):
        name = type(base).__qualname__
        if taken.width > env.budget:
            raise InvalidParameter(
                f"{name} plays up to {taken.width} arms in a round, the environment expects {env.budget}"
            )
        if taken.n_arms < env.n_arms:
            raise InvalidParameter(f"{name} has {taken.n_arms} arms, the environment has {env.n_arms}")


def _checked_threads(threads: int | None, setting: Setting) -> int:
    if not setting.compilable:
        return 1  # interpreted code holds the GIL
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(threads or available, setting.replications)
