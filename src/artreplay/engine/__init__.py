"""Repeats the step over rounds and replications."""

from artreplay.engine.runs import Runs
from artreplay.engine.simulate import simulate

__all__ = ["Runs", "simulate"]
