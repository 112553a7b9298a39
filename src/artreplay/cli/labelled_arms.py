"""Arms on the command line: labels that people read and type again."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

from artreplay.algorithms import ArmAlgorithm
from artreplay.cli.log_arguments import LogArgument, place_of, split_labels
from artreplay.cli.names import make_base
from artreplay.console.options import Request
from artreplay.console.output import count, number, text_of
from artreplay.errors import InvalidAction, InvalidParameter
from artreplay.replay import Cell

HEADINGS: tuple[str, ...] = ("arm", "in the log", "used", "online", "mean", "index")


class ArmsByText:
    """The arms of a base algorithm, by their labels."""

    def __init__(self, base: Any) -> None:
        if not isinstance(base, ArmAlgorithm) or base.proposes_list:
            raise InvalidParameter(f"{type(base).__name__} does not play one arm in each round. Use it from Python")
        self._base = base
        self._by_text: dict[str, list[Hashable]] = {}
        for arm in base.arms:
            self._by_text.setdefault(str(arm), []).append(arm)

    def arm(self, text: str) -> Hashable:
        """Return the arm with this label."""
        same = self._by_text.get(text, [])
        if not same:
            raise InvalidAction(f"{text!r} is not an arm; the arms are {self._base.describe_arms()}")
        if len(same) > 1:
            raise InvalidAction(f"{text!r} could be any of the arms {', '.join(map(repr, same))}")
        return same[0]


def base_over_arms(algorithm: type[Any], request: Request, log: LogArgument, fixed: dict[str, Any]) -> Any:
    """Make a base algorithm over the labels of a log, or over the arms that were named."""
    arms = log.labels() if request.arms is None else log.parse(split_labels(*request.arms))
    if not arms:
        raise InvalidParameter(f"{place_of(request.log)} has no rows to take the arms from. Give --arms")
    return make_base(algorithm, request.parameters, arms=arms, **fixed)


def settings_of(base: Any) -> dict[str, Any]:
    """Return the parameters of a base over arms, with the arms as texts."""
    return {**base.parameters(), "arms": [str(arm) for arm in base.arms]}


def best_first(policy: Any) -> list[Cell]:
    """Return what is known of the arms, sorted by index, or by mean if there is no index. Equals keep their order."""
    return sorted(policy.cells(), key=_rank)


def row_of(cell: Cell) -> tuple[str, ...]:
    """Return an arm as a row of a table."""
    return (
        text_of(cell.unit),
        count(cell.logged),
        count(cell.used),
        count(cell.count - cell.used),
        number(cell.mean),
        number(cell.index),
    )


def entry_of(cell: Cell) -> dict[str, Any]:
    """Return an arm as JSON."""
    return {
        "arm": cell.unit,
        "in_log": cell.logged,
        "used": cell.used,
        "online": cell.count - cell.used,
        "mean": cell.mean,
        "index": cell.index,
    }


def _rank(cell: Cell) -> float:
    """Return a number that is lower for better arms."""
    value = cell.mean if math.isnan(cell.index) else cell.index
    return math.inf if math.isnan(value) else -value
