"""Speed, as ratios within one run wherever there is something to compare with.

    make bench            everything
    make bench ONLY=c     one part: c, kl, arms, headline, random, certified, ask, start, threads,
                          trees, allocations, points, surfaces

Times are the best of several, on whatever machine this is; goals are what the project aims at, not assertions. What
runs in one thread is measured in processor time, so that other work on the machine does not count.
"""

from __future__ import annotations

import math
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import artreplay as ar
from artreplay.environments.arm_environments import world_keys

HERE = Path(__file__).parent
Row = tuple[str, str, str, bool | None]  # what, measured, goal, met


def best_of(repeats: int, work: Callable[[], object], clock: Callable[[], float] = time.process_time) -> float:
    """Seconds of the fastest run, after one that does not count."""
    work()
    times = []
    for _ in range(repeats):
        began = clock()
        work()
        times.append(clock() - began)
    return min(times)


def ignorant(n_arms: int, horizon: int, base: object = None, threads: int = 1, replications: int = 1) -> ar.Runs:
    base = base or ar.MonUCB(n_arms, horizon)
    env = ar.environments.KArmed(n_arms)
    return ar.simulate(base, env, "ignorant", horizon=horizon, replications=replications, threads=threads, keep="final")


def against_c() -> Iterator[Row]:
    """MonUCB per step, K=10, and the same algorithm as a C loop compiled on the spot."""
    horizon, n_arms = 10_000_000, 10
    compiler = shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc")
    if compiler is None:
        yield "MonUCB K=10 vs C", "skipped: no C compiler", "< 1×", None
        return
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/mon_ucb"
        # -ffp-contract=off: no fused multiply-add, as in our code, so that the results are the same
        flags = ["-O3", "-march=native", "-ffp-contract=off"]
        subprocess.run([compiler, *flags, "-o", program, HERE / "mon_ucb.c", "-lm"], check=True)
        key = int(world_keys(0, np.array([0]))[0])
        command = [program, str(n_arms), str(horizon), str(key), repr(2.0 * math.log(horizon))]
        runs = ignorant(n_arms, horizon)
        ours, theirs = [], []
        for _ in range(5):  # in turns, so that a busy machine hits both
            regret, seconds = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
            theirs.append(float(seconds))
            began = time.process_time()
            runs = ignorant(n_arms, horizon)
            ours.append(time.process_time() - began)
    same = float(regret) == float(runs.regret[0, -1])
    ratio = min(ours) / min(theirs)
    each = f"{min(ours) / horizon * 1e9:.1f} ns vs {min(theirs) / horizon * 1e9:.1f} ns a step"
    agrees = "same regret to the last bit" if same else f"REGRET DIFFERS: {regret} vs {runs.regret[0, -1]!r}"
    yield "MonUCB K=10 vs C", f"{ratio:.2f}×  ({each}, {agrees})", "< 1×", ratio < 1.0 and same


def sharp_index() -> Iterator[Row]:
    """KLUCB per step beside MonUCB, K=10, at each of its levels."""
    horizon, n_arms = 3_000_000, 10
    bases = {level: ar.KLUCB(n_arms, horizon, level=level) for level in ("++", "log", "moss")}
    times: dict[str, list[float]] = {name: [] for name in ("MonUCB", *bases)}
    for repeat in range(6):  # in turns, so that a busy machine hits all; the first does not count
        for name, taken in times.items():
            began = time.perf_counter()
            ignorant(n_arms, horizon, bases.get(name))
            if repeat > 0:
                taken.append(time.perf_counter() - began)
    plain = min(times.pop("MonUCB"))
    for level, taken in times.items():
        each = f"{min(taken) / horizon * 1e9:.1f} ns vs {plain / horizon * 1e9:.1f} ns a step"
        ratio = min(taken) / plain
        yield f'KLUCB, level "{level}", K=10 vs MonUCB', f"{ratio:.2f}×  ({each})", "≤ 3×", ratio <= 3.0


def many_arms() -> Iterator[Row]:
    """The best arm in O(log K)."""
    horizon = 10_000_000
    few = best_of(4, lambda: ignorant(10, horizon)) / horizon
    for n_arms in (1_000, 100_000):
        many = best_of(4, lambda n=n_arms: ignorant(n, horizon)) / horizon
        goal = ("≤ 2×", many / few <= 2.0) if n_arms == 100_000 else ("", None)
        yield f"MonUCB K={n_arms:,} vs K=10", f"{many / few:.2f}×  ({many * 1e9:.0f} ns vs {few * 1e9:.0f} ns)", *goal


def headline() -> Iterator[Row]:
    """The paper's comparison: K=10, H=T=1,000, 60 replications, three policies; and what one replication takes."""
    env, base = ar.environments.KArmed(10), ar.MonUCB(10, 1001)
    starts = ("ignorant", "full-start", "artificial-replay")

    def all_three() -> None:
        for start in starts:
            ar.simulate(base, env, start, history=1000, horizon=1000, replications=60)

    seconds = best_of(20, all_three, time.perf_counter)
    yield "H=T=1,000, 60 replications × 3 policies, K=10", f"{seconds * 1e3:.1f} ms", "< 20 ms", seconds < 0.02
    sizes: Any = {"history": 1000, "horizon": 1000, "replications": 400, "threads": 1, "keep": "final"}
    for start in starts:
        each = best_of(20, partial(ar.simulate, base, env, start, **sizes)) / 400
        goal = ("< 40 µs", each < 40e-6) if start == "artificial-replay" else ("", None)
        yield f"    one replication, {start}", f"{each * 1e6:.0f} µs", *goal


def randomised() -> Iterator[Row]:
    """Thompson sampling, and IDS with 256 nodes, per step and beside MonUCB."""
    plain = best_of(3, lambda: ignorant(10, 1_000_000)) / 1_000_000
    for name, base, horizon, goal in (
        ("ThompsonSampling", ar.ThompsonSampling(10), 100_000, 1e-6),
        ("IDS, 256 nodes", ar.IDS(10), 5_000, 25e-6),
    ):
        each = best_of(3, lambda b=base, t=horizon: ignorant(10, t, b)) / horizon
        measured = f"{each * 1e6:.2f} µs a step, {each / plain:.0f}× MonUCB"
        yield f"{name}, K=10", measured, f"≤ {goal * 1e6:g} µs" if goal else "", each <= goal if goal else None


def certified() -> Iterator[Row]:
    """Thompson sampling by certified reading, per arm and round; Full Start makes the same choices."""
    horizon = 10_000
    for n_arms, rows in ((10, 1_000), (10, 10_000), (100, 10_000)):
        base, env = ar.ThompsonSampling(n_arms), ar.environments.KArmed(n_arms)
        sizes: Any = {"history": rows, "horizon": horizon, "replications": 1, "threads": 1, "keep": "final"}
        replay, full = (
            best_of(3, partial(ar.simulate, base, env, start, **sizes)) / horizon / n_arms
            for start in ("artificial-replay", "full-start")
        )
        used = int(ar.simulate(base, env, **sizes).used[0, -1])
        name = f"Thompson, certified reading, K={n_arms}, {used:,} of {rows:,} rows read"
        yield name, f"{replay * 1e6:.2f} µs per arm and round", "≤ 0.15 µs", replay <= 0.15e-6
        yield "    vs Full Start", f"{replay / full:.2f}×", "", None


class BareMonUCB:
    """The least a decision can cost in Python: no log, no checks, no labels, nothing to undo or save."""

    def __init__(self, n_arms: int, horizon: int) -> None:
        self.counts, self.totals, self.index = [0] * n_arms, [0.0] * n_arms, [1.0] * n_arms
        self.scale = 2.0 * math.log(horizon)

    def ask(self) -> int:
        return self.index.index(max(self.index))

    def tell(self, arm: int, reward: float) -> None:
        self.counts[arm] += 1
        self.totals[arm] += reward
        value = self.totals[arm] / self.counts[arm] + math.sqrt(self.scale / self.counts[arm])
        self.index[arm] = min(self.index[arm], value)


def one_decision() -> Iterator[Row]:
    """ask + tell from Python: what someone who serves decisions pays."""
    for base, n_arms in product((ar.MonUCB, ar.KLUCB), (10, 100_000)):
        rng = np.random.default_rng(0)
        history = ar.History(rng.integers(n_arms, size=1000), rng.integers(2, size=1000))
        policy = ar.ArtificialReplay(base(n_arms, horizon=1_000_000), history)
        rewards = rng.integers(2, size=1_000).astype(float).tolist()

        def decide(policy: Any = policy, rewards: list[float] = rewards) -> None:
            for reward in rewards:
                policy.tell(policy.ask(), reward)

        each = best_of(100, decide) / len(rewards)
        bare = best_of(20, partial(decide, BareMonUCB(n_arms, 100_000), rewards[:100])) / 100
        goal = 8e-6 if n_arms == 10 else 10e-6
        yield f"ask + tell, {base.__name__} K={n_arms:,}", f"{each * 1e6:.2f} µs", f"≤ {goal * 1e6:g} µs", each <= goal
        if base is ar.MonUCB:
            yield f"    vs ten bare lines of Python, K={n_arms:,}", f"{each / bare:.2g}×", "", None


def starting() -> Iterator[Row]:
    """Import, the first run ever, and the first run of a later process."""
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"NUMBA_CACHE_DIR": cache}

        def seconds(code: str) -> float:
            script = f"import time; began = time.perf_counter()\n{code}\nprint(time.perf_counter() - began)"
            command = [sys.executable, "-c", script]
            return float(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)

        run = "import artreplay as ar; ar.simulate(ar.MonUCB(10, 1000), ar.environments.KArmed(10))"
        numpy = statistics.median(seconds("import numpy") for _ in range(5))
        imported = statistics.median(seconds("import artreplay") for _ in range(5))
        cold, cached = seconds(run), min(seconds(run) for _ in range(3))
    measured = f"{imported:.2f} s, {imported / numpy:.1f}× import numpy"
    yield "import artreplay", measured, "well under 1 s", imported < 0.7
    yield "first run, nothing compiled yet", f"{cold:.1f} s", "", None
    ratio = f"{cached:.2f} s, {cold / cached:.0f}× sooner"
    yield "first run of a later process (import, load, run)", ratio, "< 1 s", cached < 1.0


def threads() -> Iterator[Row]:
    """Two threads against one."""
    for name, horizon, replications in (("64 × T=100,000", 100_000, 64), ("4,000 × T=1,000", 1_000, 4_000)):
        one, two = [], []
        for _ in range(5):  # in turns, so that a busy machine hits both
            for count, times in ((1, one), (2, two)):
                began = time.perf_counter()
                ignorant(10, horizon, threads=count, replications=replications)
                times.append(time.perf_counter() - began)
        gain = min(one) / min(two)
        yield f"two threads vs one, K=10, {name}", f"{gain:.2f}× faster", "≥ 1.7×", gain >= 1.7


def peak(points: Any) -> Any:
    return 1.0 - np.abs(points - 0.37).max(axis=1)


def tree_step(dim: int, horizon: int, epsilon: float | None = None) -> float:
    """Seconds per step of TreeUCB without a log."""
    base, env = ar.TreeUCB(dim, horizon, epsilon), ar.environments.Metric(peak, dim)
    run = partial(ar.simulate, base, env, "ignorant", horizon=horizon, replications=1, keep="final")
    return best_of(3, run) / horizon


def trees() -> Iterator[Row]:
    """TreeUCB per step, and how that grows with depth and dimension."""
    usual = tree_step(2, 1_000_000)
    yield "TreeUCB, two dimensions", f"{usual * 1e9:.0f} ns", "≤ 45 ns", usual <= 45e-9
    for depth in (3, 6):
        yield f"    at most {depth} deep vs 15", f"{tree_step(2, 1_000_000, 0.5**depth) / usual:.2f}×", "", None
    for dim in (1, 3, 5):
        ratio = tree_step(dim, 1_000_000) / usual
        yield f"    {dim} dimensions vs 2", f"{ratio:.2f}×", *(("≤ 4×", ratio <= 4.0) if dim == 5 else ("", None))


def allocations() -> Iterator[Row]:
    """TreeAllocation per round over a log of 10,000: N = 5, three levels, depth 5; and how that grows."""
    horizon = 5_000

    def round_of(solver: Any, rows: int = 10_000, depth: int = 5, start: Any = "full-start") -> float:
        levels = (0.25, 0.5, 1.0)
        base = ar.TreeAllocation(2, levels, 2.0, 5, horizon, 0.5**depth, solver)
        env = ar.environments.Quadratic(levels, finest=1 << depth)
        run = partial(ar.simulate, base, env, start, rows, horizon, replications=1, keep="final")
        return best_of(3, run) / horizon

    for solver, goal in (("greedy", 8e-6), ("exact", 10e-6)):
        each = round_of(solver)
        yield f"TreeAllocation, {solver}", f"{each * 1e6:.1f} µs", f"≤ {goal * 1e6:g} µs", each <= goal
        yield (
            "    Artificial Replay vs full start",
            f"{round_of(solver, start='artificial-replay') / each:.2f}×",
            "",
            None,
        )
        yield "    depth 7 vs 5", f"{round_of(solver, depth=7) / each:.2f}×", "", None
        yield "    a log of 100,000 vs 10,000", f"{round_of(solver, rows=100_000) / each:.2f}×", "", None


def large_point_log() -> Iterator[Row]:
    """A log of 10⁶ points, from arrays to the first action."""
    rng = np.random.default_rng(0)
    points, rewards = rng.random((1_000_000, 2)), rng.integers(2, size=1_000_000).astype(float)

    def ready() -> ar.ArtificialReplay:
        return ar.ArtificialReplay(ar.TreeUCB(2, 1000), ar.History(points, rewards))

    seconds = best_of(3, ready)
    yield "a log of 10⁶ points is ready", f"{seconds:.2f} s", "< 1 s", seconds < 1.0
    policy = ready()
    began = time.perf_counter()
    policy.ask()
    took = time.perf_counter() - began
    yield f"    first action, after {policy.used:,} samples", f"{took:.2f} s", "", None

    def decided() -> ar.ArtificialReplay:
        policy = ar.ArtificialReplay(ar.PointRegression(2, 1000), ar.History(points, rewards))
        policy.ask()
        return policy

    with ar.compiling.using("compiled"):
        seconds = best_of(3, decided)
    yield "    PointRegression: ready, all read, and the first action", f"{seconds:.2f} s", "< 1 s", seconds < 1.0


def surfaces() -> Iterator[Row]:
    """CellRegression per round, 32 × 32 boxes at two levels, without a log and with 3,000 rows."""
    levels, horizon = (0.5, 1.0), 1_000
    env = ar.environments.Quadratic(levels)
    for name, options, goal in (
        ("a surface for each level", {}, 2.5e-3),
        ("joint", {"effort": "joint"}, 2.5e-3),
    ):
        base = ar.CellRegression(2, levels, 2.0, 5, horizon, **options)
        for rows in (0, 3_000):
            run = partial(ar.simulate, base, env, "artificial-replay", rows, horizon, replications=1, keep="final")
            with ar.compiling.using("compiled"):
                each = best_of(3, run) / horizon  # other work on the machine comes and goes
            measured, wanted = f"{each * 1e3:.3f} ms", f"≤ {goal * 1e3:g} ms"
            yield f"CellRegression, {name}, a log of {rows:,}", measured, wanted, each <= goal


PARTS = {
    "c": against_c,
    "kl": sharp_index,
    "arms": many_arms,
    "headline": headline,
    "random": randomised,
    "certified": certified,
    "ask": one_decision,
    "start": starting,
    "threads": threads,
    "trees": trees,
    "allocations": allocations,
    "points": large_point_log,
    "surfaces": surfaces,
}


def main() -> None:
    only = [part for part in os.environ.get("ONLY", "").split(",") if part] or list(PARTS)
    console = Console(width=None if sys.stdout.isatty() else 150)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    console.print(
        f"artreplay {ar.__version__}, Python {platform.python_version()}, {cores} cores, {platform.machine()}"
    )
    table = Table("what", "measured", "goal", "met")
    for part in only:
        for what, measured, goal, met in PARTS[part]():
            table.add_row(what, measured, goal, "" if met is None else "yes" if met else "no")
    console.print(table)


if __name__ == "__main__":
    main()
