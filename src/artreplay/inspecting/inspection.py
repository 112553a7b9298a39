"""What to know of a log before starting from it, and what in it could do harm."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from artreplay.compiling import Floats, Ints
from artreplay.errors import callers_level
from artreplay.history.history import History
from artreplay.history.labels import Label
from artreplay.history.sources.parts import Numbering
from artreplay.inspecting.misleading_logs import FAR, LEAST_ROWS, SHORT_RUN, misleading, warnings_of
from artreplay.inspecting.repeats import Repeats

_SIDE = 8  # regions along an axis
MAX_LOOKED_AT = 2_000_000  # rows of a log that are looked at when a policy is made, in half a second
_LOOKED_AT: WeakSet[History] = WeakSet()  # logs that were looked at already


@dataclass
class Group:
    """An arm or a region: its samples, their mean, and the trend of its rewards along the log."""

    name: Label | str
    rows: int
    mean: float
    drift: float  # in standard errors; nan if unknown
    is_sorted: bool
    opening: int  # how many lowest rewards come before the first other reward
    allowance: float = 0.0  # the mean allowance of its rows


@dataclass
class Inspection:
    """What `inspect` has found in a log."""

    rows: int = 0
    missing: int = 0  # rows without a finite reward, or without a unit, which are left out
    kind: str = "arms"
    low: float = math.nan
    high: float = math.nan
    groups: list[Group] = field(default_factory=list)
    repeats_at: int | None = None
    warnings: list[str] = field(default_factory=list)


def inspected(parts: Iterable[History], missing: Callable[[], int] = lambda: 0) -> Inspection:
    """Read a log once, in order and in bounded memory; `missing` returns at the end how many rows were left out."""
    looks = _Looks()
    for part in parts:
        if len(part):
            looks.see(part)
    inspection = Inspection(
        looks.rows, missing(), looks.kind, looks.low, looks.high, looks.groups(), looks.repeats.at()
    )
    inspection.warnings = warnings_of(inspection)
    return inspection


def warn_of_log(log: object) -> None:
    """Warn of what in a log in memory could mislead, once for each log, however many policies are made over it."""
    if not isinstance(log, History) or log in _LOOKED_AT:
        return
    _LOOKED_AT.add(log)
    if not LEAST_ROWS <= len(log) <= MAX_LOOKED_AT:
        return
    looks = _Looks()
    looks.see(log)
    groups = looks.groups(only_odd=True)
    inspection = Inspection(looks.rows, 0, looks.kind, looks.low, looks.high, groups, looks.repeats.at())
    for sentence in misleading(inspection):
        warnings.warn(f"the log may mislead: {sentence}", stacklevel=callers_level())


def look_no_more(log: object) -> None:
    """Say that a log needs no look, because it was drawn by a simulation."""
    if isinstance(log, History):
        _LOOKED_AT.add(log)


class _Looks:
    """Running sums for each arm or region."""

    def __init__(self) -> None:
        self.rows = 0
        self.kind = "arms"
        self.low, self.high = math.inf, -math.inf
        self.numbering = Numbering()
        self.sums: Floats = np.zeros(
            (0, 6)
        )  # samples; sums of x, y, xy, xx, yy, where x is the number of a sample and y its reward
        self.allowances: Floats = np.zeros(0)  # the sum of allowances
        self.last: Floats = np.zeros(0)
        self.ups: Ints = np.zeros(0, np.int64)
        self.downs: Ints = np.zeros(0, np.int64)
        self.opening: Ints = np.zeros(0, np.int64)  # becomes −1 − length when the run ends
        self.box: tuple[Floats, Floats] | None = None
        self.repeats = Repeats()

    def see(self, part: History) -> None:
        """Take in the next rows."""
        self.repeats.see(part.row_hashes, part.rewards)
        self.low, self.high = min(self.low, float(part.rewards.min())), max(self.high, float(part.rewards.max()))
        codes = self._codes(part)
        order = np.argsort(codes, kind="stable")
        self._grow(int(codes.max()) + 1)
        if part.allowances is not None:
            self.allowances += np.bincount(codes, part.allowances, minlength=len(self.allowances))
        self._add(codes[order], part.rewards[order])
        self.rows += len(part)

    def _codes(self, part: History) -> Ints:
        if part.points is None:
            return self.numbering.codes(part)
        self.kind = "points"
        if self.box is None:
            low, high = part.points.min(axis=0), part.points.max(axis=0)
            unit = (low >= 0).all() and (high <= 1).all()
            self.box = (np.zeros_like(low), np.ones_like(low)) if unit else (low, high)
        low, high = self.box
        axes = slice(0, 2)  # regions of only the first two axes, because more would be too many to look at
        span = np.where(high > low, high - low, 1.0)
        places = np.clip((part.points - low) / span * _SIDE, 0, _SIDE - 1).astype(np.int64)[:, axes]
        codes: Ints = places[:, 0] if places.shape[1] == 1 else places[:, 0] * _SIDE + places[:, 1]
        return codes

    def _grow(self, groups: int) -> None:
        more = groups - len(self.sums)
        if more > 0:
            self.sums = np.concatenate([self.sums, np.zeros((more, 6))])
            self.allowances = np.concatenate([self.allowances, np.zeros(more)])
            self.last = np.concatenate([self.last, np.full(more, math.nan)])
            zeros = np.zeros(more, np.int64)
            self.ups, self.downs, self.opening = (
                np.concatenate([column, zeros]) for column in (self.ups, self.downs, self.opening)
            )

    def _add(self, codes: Ints, values: Floats) -> None:
        """Take in rows that are sorted by group."""
        groups = len(self.sums)
        starts = np.flatnonzero(np.diff(codes, prepend=-1))
        codes_here = codes[starts]
        place = np.arange(len(codes)) - np.repeat(starts, np.diff(starts, append=len(codes)))  # in its group
        x = self.sums[codes, 0] + place
        for column, summed in enumerate((np.ones(len(x)), x, values, x * values, x * x, values * values)):
            self.sums[:, column] += np.bincount(codes, summed, minlength=groups)
        steps = np.diff(values, prepend=0.0)
        steps[starts] = values[starts] - self.last[codes_here]  # nan where there was none before
        self.ups += np.bincount(codes[steps > 0], minlength=groups)
        self.downs += np.bincount(codes[steps < 0], minlength=groups)
        sizes = np.bincount(codes, minlength=groups)[codes_here]
        first = np.minimum.reduceat(np.where(values > self.low, place, len(codes)), starts)  # that is not the lowest
        opens, ends = self.opening[codes_here] >= 0, first < sizes
        run = self.opening[codes_here] + np.where(ends, first, sizes)
        self.opening[codes_here] = np.where(opens, np.where(ends, -1 - run, run), self.opening[codes_here])
        self.last[codes_here] = values[starts + sizes - 1]

    def groups(self, only_odd: bool = False) -> list[Group]:
        """Return each arm, or each region that has samples, or only those that may be worth a warning."""
        names: list[Label | str] = list(self.numbering.labels)
        drifts, is_sorted = _drifts(self.sums), self._is_sorted()
        to_report = self.sums[:, 0] > 0
        if only_odd:
            openings = np.where(self.opening < 0, -1 - self.opening, self.opening)
            to_report &= (np.abs(drifts) > FAR) | (openings >= SHORT_RUN)
        inspection = []
        for code in np.flatnonzero(to_report).tolist():
            n, y = float(self.sums[code, 0]), float(self.sums[code, 2])
            run = int(self.opening[code])
            name = names[code] if self.kind == "arms" else self._region(code)
            opening, allowance = -1 - run if run < 0 else run, float(self.allowances[code]) / n
            drift = float(drifts[code])
            inspection.append(Group(name, int(n), y / n, drift, bool(is_sorted[code]), opening, allowance))
        return inspection

    def _is_sorted(self) -> NDArray[np.bool_]:
        """Which groups only rise, or only fall."""
        only_one_way = (np.minimum(self.ups, self.downs) == 0) & (np.maximum(self.ups, self.downs) > 0)
        return np.asarray(only_one_way)

    def _region(self, code: int) -> str:
        low, high = self.box if self.box is not None else (np.zeros(1), np.ones(1))
        places = [code] if len(low) == 1 else list(divmod(code, _SIDE))
        edges = [
            (low[axis] + (high[axis] - low[axis]) * np.array([place, place + 1]) / _SIDE)
            for axis, place in enumerate(places)
        ]
        return " × ".join(f"[{edge[0]:g}, {edge[1]:g})" for edge in edges)


def _drifts(sums: Floats) -> Floats:
    """Return how strongly the rewards of each group rise or fall along the log, in standard errors."""
    n, x, y, xy, xx, yy = sums.T
    with np.errstate(invalid="ignore", divide="ignore"):
        across, along = yy - y * y / n, xx - x * x / n
        r = (xy - x * y / n) / np.sqrt(across * along)
        drift = r * np.sqrt((n - 2) / np.maximum(1 - r * r, 1e-12))
    can_tell = (n >= LEAST_ROWS) & (across > 1e-12 * np.maximum(yy, 1.0))
    return np.where(can_tell, drift, math.nan)
