"""Looking results up by what they are results of, and comparing them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from artreplay.compiling import Floats
from artreplay.engine.runs import mean_and_error
from artreplay.errors import InvalidFile
from artreplay.experiments.catalogue import Experiment, Scale
from artreplay.experiments.setting import Setting
from artreplay.experiments.store import Result, Store

WIDE = 3.5  # standard errors of a difference that are still agreement


class Estimate(NamedTuple):
    """A mean with its standard error (nan where there is one value only)."""

    mean: float
    error: float
    replications: int

    def agrees(self, mean: float, error: float | None) -> bool:
        """Whether the difference from another mean is within 3.5 of its standard errors."""
        own = 0.0 if math.isnan(self.error) else self.error
        return abs(self.mean - mean) <= WIDE * math.hypot(own, error or 0.0)


def shown(value: Estimate) -> str:
    """A mean and its standard error, for people to read.

    >>> shown(Estimate(29.31, 1.64, 60)), shown(Estimate(962.0, 9.9, 60))
    ('29.3 ± 1.6', '962 ± 10')
    """
    digits = 0 if abs(value.mean) >= 100.0 else 1
    error = "" if math.isnan(value.error) else f" ± {value.error:,.{digits}f}"
    return f"{value.mean:,.{digits}f}{error}".replace("-", "−")


def estimate(values: Floats) -> Estimate:
    """The mean over replications."""
    return Estimate(*mean_and_error(values), len(values))


class Results:
    """The stored results of a catalogue; what was not computed is None."""

    def __init__(self, scale: Scale, experiments: Sequence[Experiment], store: Store) -> None:
        self.scale = scale
        self.experiments = list(experiments)
        self.store = store
        self._of: dict[str, Result | None] = {}
        self.damaged: dict[str, str] = {}  # by the key of a setting, what is wrong with its result
        for setting in self.settings():
            if setting.key not in self._of:
                self._of[setting.key] = self._read(setting)

    def _read(self, setting: Setting) -> Result | None:
        if not self.store.folder(setting).exists():
            return None
        try:
            return self.store.read(setting)
        except InvalidFile as error:
            self.damaged[setting.key] = str(error)
            return None

    def settings(self) -> list[Setting]:
        """All settings, in the order of the catalogue."""
        return [setting for experiment in self.experiments for setting in experiment.settings]

    def has(self, experiment: str) -> bool:
        """Whether any setting of an experiment has a result."""
        return any(self._of[setting.key] is not None for setting in self.settings() if setting.experiment == experiment)

    def missing(self) -> list[Setting]:
        """The settings without a result."""
        return [setting for setting in self.settings() if self._of[setting.key] is None]

    def of(self, setting: Setting) -> Result | None:
        """The result of a setting."""
        return self._of[setting.key]

    def get(self, experiment: str, **parameters: Any) -> Result | None:
        """The result of the one setting of an experiment that has these parameters (None: that lacks them)."""
        kind = parameters.pop("kind", None)
        fitting = [
            setting
            for setting in self.settings()
            if setting.experiment == experiment
            and kind in (None, setting.kind)
            and all(setting.get(name) == value for name, value in parameters.items())
        ]
        if len(fitting) > 1:
            raise LookupError(f"{experiment} has {len(fitting)} settings with {parameters}")
        return self._of[fitting[0].key] if fitting else None


def same_actions(one: Result, other: Result) -> float:
    """The share of replications in which both played the same in every round."""
    return float((one.at_end("digest") == other.at_end("digest")).mean())


def difference(one: Result, other: Result, metric: str = "regret") -> Estimate:
    """By how much the first is larger at the end: the mean over replications, which are paired."""
    first, second = one.at_end(metric), other.at_end(metric)
    paired = min(len(first), len(second))
    return estimate(first[:paired] - second[:paired])


def larger(one: Result, other: Result) -> bool:
    """Whether the regret of the first is larger, beyond two standard errors of the difference."""
    mean, error, _ = difference(one, other)
    return mean > 2.0 * (0.0 if math.isnan(error) else error) and mean > 0.0


def curve(result: Result, metric: str) -> tuple[Floats, Floats, Floats]:
    """Where, mean and standard error of a series."""
    x, values = result.measured[metric]
    error = values.std(axis=0, ddof=1) / math.sqrt(len(values)) if len(values) > 1 else np.zeros(values.shape[1])
    return x, values.mean(axis=0), error
