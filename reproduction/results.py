"""Finds the results of settings, and compares them."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from artreplay.compiling import Floats
from artreplay.engine import mean_and_error
from artreplay.errors import InvalidFile
from reproduction.catalogue import Experiment, Scale
from reproduction.computing import code_fingerprint
from reproduction.result_store import Result, Store
from reproduction.setting import Setting

WIDE = 3.5  # a difference of up to this many standard errors is agreement
SURE = 3.0  # a claim is judged if what it says is this many standard errors from the limit
FOUND = 0.84  # standard errors above such a limit: where a true difference lies that is found four times in five
_ROUNDING = 1e-12  # of a mean
TELLING = 0.5  # a comparison that would not find a difference of this share of the number tells nothing


class Estimate(NamedTuple):
    """A mean with its standard error, which is nan for a single value."""

    mean: float
    error: float
    replications: int

    def agrees(self, mean: float, error: float | None, rounding: float = 0.0) -> bool:
        """Return whether the difference from another mean is within 3.5 of its standard errors.

        `rounding` is how far the other mean may be from what was rounded to it.
        """
        return abs(self.mean - mean) <= rounding + WIDE * self._error_with(error)

    def found(self, error: float | None) -> float:
        """Return the smallest true difference from another mean that would be found four times in five."""
        return (WIDE + FOUND) * self._error_with(error)

    def _error_with(self, error: float | None) -> float:
        return math.hypot(0.0 if math.isnan(self.error) else self.error, error or 0.0)


def shown(value: Estimate) -> str:
    """Format a mean and its standard error for people, with as many digits as the error supports.

    >>> shown(Estimate(29.31, 1.64, 60)), shown(Estimate(962.0, 9.9, 60)), shown(Estimate(2248.06, 0.36, 60))
    ('29.3 ± 1.6', '962 ± 10', '2,248.06 ± 0.36')
    """
    if math.isnan(value.error) or value.error == 0.0:
        exact = value.mean == round(value.mean) or abs(value.mean) >= 1000.0
        return f"{value.mean:,.{0 if exact else 2}f}".replace("-", "−")
    digits = next((digits for digits in range(3) if value.error >= 0.95 * 10.0 ** (1 - digits)), 3)
    return f"{value.mean:,.{digits}f} ± {value.error:,.{digits}f}".replace("-", "−")


def estimate(values: Floats) -> Estimate:
    """Return the mean over replications with its standard error, which is 0 where all are equal up to rounding."""
    mean, error = mean_and_error(values)
    return Estimate(mean, 0.0 if error < _ROUNDING * abs(mean) else error, len(values))


class Results:
    """The stored results of a catalogue; what was not computed is None."""

    def __init__(self, scale: Scale, experiments: Sequence[Experiment], store: Store) -> None:
        self.scale = scale
        self.experiments = list(experiments)
        self.store = store
        self._of: dict[str, Result | None] = {}
        self.damaged: dict[str, str] = {}  # what is wrong with a result, by the key of its setting
        self.of_other_code = 0  # results that other sources computed
        for setting in self.settings():
            if setting.key not in self._of:
                self._of[setting.key] = self._read(setting)

    def _read(self, setting: Setting) -> Result | None:
        if not self.store.folder(setting).exists():
            return None
        try:
            result = self.store.read(setting)
            self.of_other_code += result.code != code_fingerprint()
            return result
        except InvalidFile as error:
            self.damaged[setting.key] = str(error)
            return None

    def only(self, name: str) -> Results:
        """Return the results of one experiment, without reading them again."""
        part = copy.copy(self)
        part.experiments = [experiment for experiment in self.experiments if experiment.name == name]
        wanted = {setting.key for setting in part.settings()}
        part._of = {key: result for key, result in self._of.items() if key in wanted}
        return part

    def settings(self) -> list[Setting]:
        """Return all settings, in the order of the catalogue."""
        return [setting for experiment in self.experiments for setting in experiment.settings]

    def has(self, experiment: str) -> bool:
        """Return whether any setting of an experiment has a result."""
        return any(self._of[setting.key] is not None for setting in self.settings() if setting.experiment == experiment)

    def missing(self) -> list[Setting]:
        """Return the settings without a result."""
        return [setting for setting in self.settings() if self._of[setting.key] is None]

    def of(self, setting: Setting) -> Result | None:
        """Return the result of a setting."""
        return self._of[setting.key]

    def get(self, experiment: str, **parameters: Any) -> Result | None:
        """Return the result of the one setting of an experiment with these parameters. None means without one."""
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
    """Return the share of replications in which both took the same actions in every round."""
    return float((one.at_end("digest") == other.at_end("digest")).mean())


def paired(one: Result, other: Result, metric: str = "regret") -> tuple[Floats, Floats]:
    """Return what both have at the end, in the replications that both have."""
    first, second = one.at_end(metric), other.at_end(metric)
    common = min(len(first), len(second))
    return first[:common], second[:common]


def difference(one: Result, other: Result, metric: str = "regret") -> Estimate:
    """Return how much larger the first is at the end: the mean over paired replications."""
    first, second = paired(one, other, metric)
    return estimate(first - second)


def larger(one: Result, other: Result) -> bool:
    """Return whether the first has more regret, beyond two standard errors of the difference."""
    mean, error, _ = difference(one, other)
    return mean > 2.0 * (0.0 if math.isnan(error) else error) and mean > 0.0


def share_found(replications: int) -> float:
    """Return the smallest share of replications that differ of which one would be found four times in five.

    >>> round(share_found(400), 4)
    0.004
    """
    return float(1.0 - 0.2 ** (1.0 / replications))


def slower(one: Result, other: Result) -> bool:
    """Return whether a replication of the first takes longer, beyond two standard errors of the difference."""
    if not one.timings or not other.timings:
        return False
    mine, theirs = estimate(np.array(one.timings)), estimate(np.array(other.timings))
    return mine.mean - theirs.mean > 2.0 * math.hypot(mine.error, theirs.error)


def curve(result: Result, metric: str) -> tuple[Floats, Floats, Floats]:
    """Return the rounds, the mean and the standard error of a series."""
    x, values = result.measured[metric]
    error = values.std(axis=0, ddof=1) / math.sqrt(len(values)) if len(values) > 1 else np.zeros(values.shape[1])
    return x, values.mean(axis=0), error
