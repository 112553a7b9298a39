"""What to know of a log before starting from it, and what in it could do harm."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from artreplay.compiling import Floats, Ints
from artreplay.history.history import History
from artreplay.history.labels import Label
from artreplay.history.sources.parts import Numbering
from artreplay.inspecting.repeats import Repeats

_SIDE = 8  # regions along an axis
_LEAST = 20  # fewer samples of an arm do not show whether its order is random
_DRIFT = 4.0  # a trend of rewards along the log counts as drift from this many standard errors on
_UNLIKELY = 1e-4  # a run of lowest rewards at the start gets a warning if its chance is below this


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
    inspection.warnings = _warnings(inspection)
    return inspection


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
        codes, rewards = codes[order], part.rewards[order]
        present, starts = np.unique(codes, return_index=True)
        self._grow(int(codes[-1]) + 1)
        if part.allowances is not None:
            self.allowances += np.bincount(codes, part.allowances[order], minlength=len(self.allowances))
        for code, values in zip(present.tolist(), np.split(rewards, starts[1:]), strict=True):
            self._add(code, values)
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

    def _add(self, code: int, values: Floats) -> None:
        x = self.sums[code, 0] + np.arange(len(values))
        self.sums[code] += (len(values), x.sum(), values.sum(), (x * values).sum(), (x * x).sum(), (values**2).sum())
        steps = np.diff(values, prepend=self.last[code])
        self.ups[code] += int((steps > 0).sum())
        self.downs[code] += int((steps < 0).sum())
        if self.opening[code] >= 0:
            ends = np.flatnonzero(values > self.low)
            run = self.opening[code] + (int(ends[0]) if len(ends) else len(values))
            self.opening[code] = -1 - run if len(ends) else run
        self.last[code] = values[-1]

    def groups(self) -> list[Group]:
        """Return each arm, or each region that has samples."""
        names: list[Label | str] = list(self.numbering.labels)
        found = []
        for code in np.flatnonzero(self.sums[:, 0]).tolist():
            n, _, y, *_ = self.sums[code].tolist()
            run = int(self.opening[code])
            ordered = min(self.ups[code], self.downs[code]) == 0 and max(self.ups[code], self.downs[code]) > 0
            name = names[code] if self.kind == "arms" else self._region(code)
            opening, allowance = -1 - run if run < 0 else run, float(self.allowances[code]) / n
            found.append(Group(name, int(n), y / n, _drift(self.sums[code]), bool(ordered), opening, allowance))
        return found

    def _region(self, code: int) -> str:
        low, high = self.box if self.box is not None else (np.zeros(1), np.ones(1))
        places = [code] if len(low) == 1 else list(divmod(code, _SIDE))
        edges = [
            (low[axis] + (high[axis] - low[axis]) * np.array([place, place + 1]) / _SIDE)
            for axis, place in enumerate(places)
        ]
        return " × ".join(f"[{edge[0]:g}, {edge[1]:g})" for edge in edges)


def _drift(sums: Floats) -> float:
    """Return how strongly the rewards of a group rise or fall along the log, in standard errors."""
    n, x, y, xy, xx, yy = sums.tolist()
    across, along = yy - y * y / n, xx - x * x / n
    if n < _LEAST or across <= 1e-12 * max(yy, 1.0):
        return math.nan
    r = (xy - x * y / n) / math.sqrt(across * along)
    return float(r * math.sqrt((n - 2) / max(1 - r * r, 1e-12)))


def _warnings(inspection: Inspection) -> list[str]:
    what = "arm" if inspection.kind == "arms" else "region"
    warnings = []
    if inspection.missing:
        lack, them = ("row lacks", "it") if inspection.missing == 1 else ("rows lack", "them")
        warnings.append(f"{inspection.missing:,} {lack} a finite reward or a unit, and a policy refuses {them}")
    if inspection.rows == 0:
        return [*warnings, "the log is empty, so a policy over it starts from nothing"]
    if not (inspection.low >= 0.0 and inspection.high <= 1.0):
        warnings.append(
            f"rewards lie in [{inspection.low:g}, {inspection.high:g}], outside [0, 1]. Tell the algorithm their range "
            "(reward_range, --reward-range)"
        )
    for group in inspection.groups:
        name = f"{what} {group.name}"
        chance = (
            (1.0 - (group.mean - inspection.low) / (inspection.high - inspection.low))
            if inspection.high > inspection.low
            else 1.0
        )
        if group.rows >= _LEAST and group.is_sorted:
            warnings.append(f"{name}: its rewards are sorted, but the method assumes a random order. Shuffle the log")
        elif abs(group.drift) > _DRIFT:
            way = "rise" if group.drift > 0 else "fall"
            warnings.append(
                f"{name}: its rewards {way} along the log ({group.drift:+.0f} standard errors), but the method assumes "
                "that they do not. Use the recent part, or shuffle"
            )
        elif group.opening >= 5 and chance < 1.0 and chance**group.opening < _UNLIKELY:
            warnings.append(
                f"{name}: its first {group.opening:,} rewards are the lowest possible, although its mean is "
                f"{group.mean:.2g}. Its index falls and stays low"
            )
    single = sum(group.rows == 1 for group in inspection.groups)
    if single and inspection.kind == "arms":
        warnings.append(f"{single:,} arm{'s have' if single > 1 else ' has'} a single row, which says almost nothing")
    if inspection.repeats_at is not None:
        warnings.append(
            f"from row {inspection.repeats_at:,} on the log repeats its first rows, so each row would count twice"
        )
    return warnings
