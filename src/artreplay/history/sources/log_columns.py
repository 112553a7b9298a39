"""The columns of a source that make up the log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from artreplay.errors import InvalidHistory, InvalidParameter

SHUFFLE = "shuffle"


class Columns(NamedTuple):
    """The names of the columns of a log. If `unit` has several, they are the coordinates of a point."""

    unit: str | tuple[str, ...]
    reward: str
    level: str | None = None
    order: str | None = None
    allowance: str | None = None
    contexts: tuple[str, ...] = ()
    segments: tuple[str, ...] = ()  # the contexts that an indexed folder is sorted by, before the arms

    @property
    def units(self) -> tuple[str, ...]:
        """The columns that say what was played."""
        return (self.unit,) if isinstance(self.unit, str) else self.unit

    @property
    def are_points(self) -> bool:
        """Whether a unit is a point."""
        return not isinstance(self.unit, str)

    @property
    def sorted_by(self) -> str | None:
        """The column that the log is sorted by, or None if it is shuffled or in the order of the source."""
        return None if self.order == SHUFFLE else self.order

    def by_role(self) -> dict[str, str | None]:
        """The column of each role. A point has no column for its unit, because its coordinates have several."""
        unit = None if self.are_points else self.units[0]
        return {"unit": unit, "reward": self.reward, "level": self.level, "allowance": self.allowance}

    def read(self, with_order: bool = True) -> list[str]:
        """The columns that must be read, without duplicates."""
        extra = [self.level, self.allowance, self.sorted_by if with_order else None, *self.contexts]
        return list(dict.fromkeys([*self.units, self.reward, *(name for name in extra if name is not None)]))

    def check(self, names: Sequence[str]) -> None:
        """Refuse a source that lacks a column, or has it twice."""
        roles: list[tuple[str, str | None]] = [*(("unit", name) for name in self.units), ("reward", self.reward)]
        roles += [("level", self.level), ("allowance", self.allowance), ("order", self.sorted_by)]
        check_names(names, [*roles, *(("contexts", name) for name in self.contexts)])


def check_names(names: Sequence[str], roles: Iterable[tuple[str | None, str | None]]) -> None:
    """Refuse a source that lacks the column of a role, or has it twice."""
    for role, name in roles:
        if name is not None and list(names).count(name) != 1:
            columns = ", ".join(map(repr, names)) or "none"
            if role is None:
                raise InvalidHistory(f"there must be exactly one column {name!r}, got the columns {columns}")
            raise InvalidHistory(f"must name one column, got {name!r}. The columns are {columns}", parameter=role)


def as_columns(
    unit: Any,
    reward: Any,
    level: Any = None,
    order: Any = None,
    allowance: Any = None,
    contexts: Any = None,
    segments: Any = None,
) -> Columns:
    """Check the columns that a caller names. `unit` is a name, or a list of names of coordinates."""
    for name, value in (("reward", reward), ("level", level), ("order", order), ("allowance", allowance)):
        if not isinstance(value, str) and (value is not None or name == "reward"):
            raise InvalidParameter(f"must name a column, got {value!r}", parameter=name)
    units = (unit,) if isinstance(unit, str) else tuple(unit) if isinstance(unit, (list, tuple)) else ()
    if not units or not all(isinstance(name, str) for name in units):
        raise InvalidParameter(
            f"must name at least one column, as a text or as a list of texts, got {unit!r}", parameter="unit"
        )
    if level is not None and isinstance(unit, str):
        raise InvalidParameter(f"level needs points, whose unit is a list of coordinates, got the one column {unit!r}")
    if reward in units or level in units or reward == level:
        raise InvalidParameter(f"unit, reward and level must be different columns, got {units}, {reward!r}, {level!r}")
    if allowance is not None and allowance in (*units, reward, level):
        raise InvalidParameter(
            f"must be a column other than unit, reward and level, got {allowance!r}", parameter="allowance"
        )
    names = () if contexts is None else contexts
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        raise InvalidParameter(f"contexts must be a list of column names, got {contexts!r}")
    if len({*names}) < len(names) or {*names} & {*units, reward}:
        raise InvalidParameter(f"contexts must be distinct columns other than unit and reward, got {list(names)}")
    within = () if segments is None else segments
    if not isinstance(within, (list, tuple)) or not {*within} <= {*names} or len({*within}) < len(within):
        raise InvalidParameter(f"must be some of the contexts, got {segments!r}", parameter="segments")
    units_ = unit if isinstance(unit, str) else units
    return Columns(units_, reward, level, order, allowance, tuple(names), tuple(within))


def check_seed_and_order(columns: Columns, seed: int | None) -> None:
    """Refuse a shuffle without a seed, and a seed without a shuffle."""
    if columns.order == SHUFFLE and seed is None:
        error = InvalidParameter('"shuffle" needs a seed', parameter="order")
        raise error.advising("Give one, such as seed=0", "Give one, such as --order-seed 0")
    if columns.order != SHUFFLE and seed is not None:
        got = "no order" if columns.order is None else repr(columns.order)
        raise InvalidParameter(f'must be "shuffle" if there is a seed, got {got}', parameter="order")
