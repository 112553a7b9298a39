"""What is played, as the command line has it: arms by their labels, points by their coordinates."""

from __future__ import annotations

import inspect
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from artreplay.algorithms import (
    ALGORITHMS,
    ARM_ALGORITHMS,
    KLUCB,
    ArmAlgorithm,
    CellRegression,
    PointRegression,
    TreeAllocation,
    TreeUCB,
)
from artreplay.cli.log_arguments import Log, place_of, split_labels
from artreplay.cli.names import ALLOCATORS, POINT_CHOOSERS, class_of, make_base, name_of, takes
from artreplay.console.options import Request
from artreplay.console.output import count, number, text_of
from artreplay.errors import InvalidAction, InvalidParameter, exact
from artreplay.history import Allocation
from artreplay.history.stores import PointStore
from artreplay.replay import Cell

MOST_COORDINATES, MOST_ROWS = 2, 10**6  # of a log that a regression is quick over
ONLY_FROM_PYTHON = "use it from Python"


class Actions:
    """The actions of a base algorithm: how they are written and read, and what is shown of them."""

    noun: ClassVar[str]
    plural: ClassVar[str]
    algorithms: ClassVar[Sequence[type[Any]]]
    usual: ClassVar[type[Any]]  # of these, if none is named
    strange: ClassVar[str]  # why rows are skipped, for the note about them
    headings: ClassVar[tuple[str, ...]]
    rows: ClassVar[str]  # what the rows below the headings are

    def __init__(self, base: Any) -> None:
        self.base = base

    @classmethod
    def made(cls, algorithm: type[Any], request: Request, log: Log) -> Any:
        """A fresh base algorithm over a log."""
        raise NotImplementedError

    @classmethod
    def usual_for(cls, request: Request, log: Log) -> type[Any]:
        """The algorithm for a log if none is named."""
        return cls.usual

    def reason(self, rows: int) -> str | None:
        """Why this algorithm, in a line; None if there is nothing to say."""
        return None

    @classmethod
    def columns(cls, units: Sequence[str]) -> Any:
        """The columns of a unit, as open_history is told them."""
        raise NotImplementedError

    def settings(self) -> dict[str, Any]:
        """What the base was made with, in the form in which options ask for it."""
        raise NotImplementedError

    def text(self, unit: Any) -> str:
        """An action as people see it, and tell it again."""
        raise NotImplementedError

    def unit(self, text: str) -> Any:
        """The action that is written like this."""
        raise NotImplementedError

    def plain(self, unit: Any) -> Any:
        """An action as JSON."""
        return unit

    def standings(self, policy: Any) -> list[Any]:
        """Everything that could be played, the best first."""
        raise NotImplementedError

    def row(self, standing: Any) -> tuple[str, ...]:
        """One of them in a table."""
        raise NotImplementedError

    def entry(self, standing: Any) -> dict[str, Any]:
        """One of them as JSON."""
        raise NotImplementedError


class Arms(Actions):
    """Actions that are labels."""

    noun, plural, rows = "arm", "arms", "arms"
    algorithms, usual = ARM_ALGORITHMS, KLUCB
    strange = "label is not an arm"
    headings = ("arm", "in the log", "used", "online", "mean", "index")

    def __init__(self, base: Any) -> None:
        super().__init__(base)
        self._by_text: dict[str, list[Hashable]] = {}
        for arm in base.arms:
            self._by_text.setdefault(str(arm), []).append(arm)

    @classmethod
    def made(cls, algorithm: type[Any], request: Request, log: Log) -> Any:
        """A fresh base algorithm over the labels of a log, or over those that were named."""
        if not takes(algorithm, "n_arms"):
            what = next(iter(inspect.signature(algorithm).parameters))
            raise InvalidParameter(
                f"{name_of(algorithm)} needs {what}, not arms alone: use {algorithm.__name__} from Python"
            )
        arms = log.labels() if request.arms is None else log.parse(split_labels(*request.arms))
        if not arms:
            raise InvalidParameter(f"{place_of(request.log)} has no rows to take the arms from: give --arms")
        given = {**request.parameters, "box": request.box}
        base = make_base(algorithm, given, arms=arms)
        if algorithm is KLUCB or base.most_rows is not None:  # its horizon counts the rows of the log too
            base = make_base(algorithm, given | {"horizon": base.horizon + len(log.history)}, arms=arms)
        return base

    @classmethod
    def columns(cls, units: Sequence[str]) -> Any:
        """The one column of labels."""
        if len(units) > 1:
            names = " and ".join(map(name_of, POINT_CHOOSERS))
            raise InvalidParameter(
                f"--unit must name one column of arms, got {', '.join(units)}; points are for {names}"
            )
        return units[0]

    def settings(self) -> dict[str, Any]:
        """Its parameters, the arms as texts."""
        return {**self.base.parameters(), "arms": [str(arm) for arm in self.base.arms]}

    def text(self, unit: Any) -> str:
        """The label."""
        return text_of(unit)

    def unit(self, text: str) -> Any:
        """The arm with this label."""
        same = self._by_text.get(text, [])
        if not same:
            raise InvalidAction(f"{text!r} is not an arm; the arms are {self.base.describe_arms()}")
        if len(same) > 1:
            raise InvalidAction(f"{text!r} could be any of the arms {', '.join(map(repr, same))}")
        return same[0]

    def standings(self, policy: Any) -> list[Any]:
        """The arms; equals stay in their order."""
        return sorted(policy.cells(), key=_rank)

    def row(self, standing: Cell) -> tuple[str, ...]:
        """An arm in a table."""
        return (
            text_of(standing.unit),
            count(standing.logged),
            count(standing.used),
            count(standing.count - standing.used),
            number(standing.mean),
            number(standing.index),
        )

    def entry(self, standing: Cell) -> dict[str, Any]:
        """An arm as JSON."""
        return {
            "arm": standing.unit,
            "in_log": standing.logged,
            "used": standing.used,
            "online": standing.count - standing.used,
            "mean": standing.mean,
            "index": standing.index,
        }


@dataclass(frozen=True, slots=True)
class _Standing:
    """What is known of a box; its rows in the log are not counted, because that would mean reading the whole log."""

    box: int
    count: int
    mean: float
    index: float


class Points(Actions):
    """Actions that are points, written as coordinates with commas between them."""

    noun, plural, rows = "point", "points", "cells"
    algorithms = POINT_CHOOSERS
    usual: ClassVar[type[Any]] = TreeUCB
    regression: ClassVar[type[Any]] = PointRegression  # where it is quick
    strange = "point is not in the box"
    headings: ClassVar[tuple[str, ...]] = ("cell", "samples", "mean", "index")

    @classmethod
    def made(cls, algorithm: type[Any], request: Request, log: Log) -> Any:
        """A fresh base algorithm over a box of as many axes as the points of a log have."""
        name = name_of(algorithm)
        for option, given in (("--arms", request.arms), ("--seed", request.parameters.get("seed"))):
            if given is not None:
                what = "plays points, not arms" if option == "--arms" else "draws nothing at random"
                raise InvalidParameter(f"{name} {what}: leave {option} out")
        dim = _dim_of(request, log)
        box = None if request.box is None else box_of(request.box)
        if box is not None and len(box) != dim:
            raise InvalidParameter(f"--box must be given once for each of the {dim} coordinates, got {len(box)}")
        return make_base(algorithm, request.parameters, dim=dim, box=box, **cls.fixed(request, log))

    @classmethod
    def fixed(cls, request: Request, log: Log) -> dict[str, Any]:
        """What else the log says about the algorithm."""
        return {}

    @classmethod
    def usual_for(cls, request: Request, log: Log) -> type[Any]:
        """A regression where it is quick: few coordinates, and a log that can be read in one pass."""
        quick = _dim_of(request, log) <= MOST_COORDINATES and len(log.history) <= MOST_ROWS
        return cls.regression if quick and request.parameters.get("epsilon") is None else cls.usual

    def reason(self, rows: int) -> str | None:
        """Why this algorithm, in a line."""
        name, regression = name_of(type(self.base)), name_of(self.regression)
        if isinstance(self.base, self.regression):
            return f"by {name}, which reads the log in one pass and fits a surface to it"
        if self.base.dim <= MOST_COORDINATES and rows <= MOST_ROWS:
            return f"by {name}; {regression} has a lower regret on most logs like this"
        return f"by {name}, which reads little"

    @classmethod
    def columns(cls, units: Sequence[str]) -> Any:
        """The columns of the coordinates."""
        if len(set(units)) < len(units):
            raise InvalidParameter(f"--unit must name different columns, got {', '.join(units)}")
        return list(units)

    def settings(self) -> dict[str, Any]:
        """Its parameters; `seed` is none of them, because centres are played."""
        held = {name: value for name, value in self.base.parameters().items() if name != "seed"}
        return {**held, "box": self.base.edges(), "coordinates": self.base.dim}

    def text(self, unit: Any) -> str:
        """The coordinates with every digit, so that what is told is what was played."""
        return ",".join(map(exact, unit))

    def unit(self, text: str) -> Any:
        """The point with these coordinates, if it has a place in the box."""
        point = self.coordinates(text)
        self.base.checked_place(point)
        return point

    def coordinates(self, text: str) -> tuple[float, ...]:
        """As many coordinates as points have."""
        point = _floats(text)
        if point is None or len(point) != self.base.dim:
            like = ",".join(["0.5"] * self.base.dim)
            raise InvalidAction(
                f"{text!r} is not a point: expected {self.base.dim} number{'s' if self.base.dim > 1 else ''} "
                f"with commas between them, as in {like}"
            )
        return point

    def standings(self, policy: Any) -> list[Any]:
        """The cells; equals stay in Z-order."""
        counts, means, indices = self.base.statistics()
        indices = means * math.nan if indices is None else indices
        columns = (self.base.cell_numbers().tolist(), counts.tolist(), means.tolist(), indices.tolist())
        return sorted((_Standing(*row) for row in zip(*columns, strict=True)), key=_rank)

    def row(self, standing: _Standing) -> tuple[str, ...]:
        """A cell in a table."""
        box = self.base.box_of(standing.box)
        sides = [f"[{low:g}, {high:g})" for low, high in zip(box.low, box.high, strict=True)]
        return " × ".join(sides), count(standing.count), number(standing.mean), number(standing.index)

    def entry(self, standing: _Standing) -> dict[str, Any]:
        """A cell as JSON."""
        box = self.base.box_of(standing.box)
        return {
            "low": box.low,
            "high": box.high,
            "samples": standing.count,
            "mean": standing.mean,
            "index": standing.index,
        }


class Places(Points):
    """Actions that are a few points with a level of effort each, written as coordinates@level."""

    noun, plural = "place", "points with a level of effort"
    algorithms, usual, regression = ALLOCATORS, TreeAllocation, CellRegression
    strange = "point is not in the box, or level is unknown"
    headings = ("cell", "level", "samples", "mean", "index")

    @classmethod
    def fixed(cls, request: Request, log: Log) -> dict[str, Any]:
        """The levels there are: those of the log."""
        levels = levels_of(log.history)
        if not levels:
            raise InvalidParameter(f"{place_of(request.log)} has no rows to take the levels of effort from")
        return {"levels": levels}

    def text(self, unit: Any) -> str:
        """The coordinates with every digit, and the level behind them."""
        return f"{super().text(unit.point)}@{exact(unit.level)}"

    def unit(self, text: str) -> Any:
        """The point and the level that are written like this."""
        point, sign, level = text.partition("@")
        effort = _floats(level) if sign else None
        if effort is None or len(effort) != 1 or effort[0] not in self.base.levels:
            levels = ", ".join(map(exact, self.base.levels))
            raise InvalidAction(
                f"{text!r} must end in @ and one of the levels {levels}, as in 0.5,0.5@{exact(self.base.levels[0])}"
            )
        place = Allocation(self.coordinates(point), effort[0])
        self.base.checked_place(place)
        return place

    def plain(self, unit: Any) -> Any:
        """A point and its level as JSON."""
        return {"point": unit.point, "level": unit.level}

    def row(self, standing: _Standing) -> tuple[str, ...]:
        """A cell in a table."""
        cell, *others = super().row(standing)
        return cell, exact(self.base.box_of(standing.box).level or 0.0), *others

    def entry(self, standing: _Standing) -> dict[str, Any]:
        """A cell as JSON."""
        return {**super().entry(standing), "level": self.base.box_of(standing.box).level}


def levels_of(history: Any) -> list[float] | None:
    """The levels of effort in a log of points, ascending; None where it has none."""
    if isinstance(history, PointStore):
        return None if history.level_values is None else sorted(map(float, history.level_values))
    levels = getattr(history, "levels", None)
    return None if levels is None else sorted(set(levels.tolist()))


def _dim_of(request: Request, log: Log) -> int:
    """How many coordinates the points of a log have."""
    return log.history.dim if isinstance(log.history, PointStore) else len(request.unit or ())


def actions_of(base: Any) -> Actions:
    """The actions of a base algorithm, whatever it was made by."""
    if isinstance(base, ArmAlgorithm):
        return Arms(base)
    if isinstance(base, ALLOCATORS):
        return Places(base)
    if isinstance(base, POINT_CHOOSERS):
        return Points(base)
    raise InvalidParameter(f"{type(base).__name__} plays neither an arm nor a point: use it from Python")


def algorithm_named(name: str) -> type[Any]:
    """The algorithm with this name, over arms or over points."""
    offered = (*ARM_ALGORITHMS, *POINT_CHOOSERS, *ALLOCATORS)
    for other in ALGORITHMS:
        if other not in offered and name_of(other) == name:
            raise InvalidParameter(f"{name} is not for `recommend`: {ONLY_FROM_PYTHON}")
    return class_of(name, offered)


def box_of(texts: Sequence[str]) -> tuple[tuple[float, ...], ...]:
    """A box from LOW,HIGH for each axis."""
    found = []
    for text in texts:
        edges = _floats(text)
        if edges is None or len(edges) != 2 or not all(map(math.isfinite, edges)) or edges[0] >= edges[1]:
            raise InvalidParameter(f"--box must be LOW,HIGH with LOW < HIGH, as in 0,1, got {text!r}")
        found.append(edges)
    return tuple(found)


def _floats(text: str) -> tuple[float, ...] | None:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        return None


def _rank(standing: Any) -> float:
    """Where something stands among the others, by index, or by mean where there is none: the better, the lower."""
    value = standing.mean if math.isnan(standing.index) else standing.index
    return math.inf if math.isnan(value) else -value
