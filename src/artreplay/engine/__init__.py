"""Repeats the step over rounds and replications."""

from artreplay.engine.benchmark_suite import Benchmark, benchmark
from artreplay.engine.comparing import Comparison, compare
from artreplay.engine.evaluating import evaluate
from artreplay.engine.evaluation import Evaluation, PolicyValue
from artreplay.engine.progress import Progress
from artreplay.engine.runs import Runs, mean_and_error
from artreplay.engine.simulate import simulate

__all__ = [
    "Benchmark",
    "Comparison",
    "Evaluation",
    "PolicyValue",
    "Progress",
    "Runs",
    "benchmark",
    "compare",
    "evaluate",
    "mean_and_error",
    "simulate",
]
