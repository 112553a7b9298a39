"""Arms, each of which is a cell, and their labels."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import NamedTuple, SupportsIndex, cast

from artreplay.compiling import compiled
from artreplay.errors import InvalidParameter, checked_count
from artreplay.history import Label
from artreplay.history.labels import is_missing, plain_label


@compiled
class Arms(NamedTuple):
    """The cells of an algorithm whose arms are each a cell of their own."""

    n_arms: int

    def locate(self, unit: int) -> int:
        """The cell of an arm."""
        return unit

    def unit(self, cell: int) -> int:
        """The arm of a cell."""
        return cell


class ArmSet:
    """The arms of an algorithm, either 0..n−1 or labels in the order the user gave them.

    Parameters
    ----------
    n_arms
        The number of arms, if they have no labels.
    labels
        The labels of the arms, in place of `n_arms`.

    >>> ArmSet(labels=["red", "blue"]).number("blue")
    1
    """

    def __init__(self, n_arms: int | None = None, labels: Iterable[Label] | None = None) -> None:
        if (n_arms is None) == (labels is None):
            raise InvalidParameter("either n_arms or arms, a list of labels, must be given, and not both")
        self.labels: Sequence[Label]
        self._numbers: dict[Label, int] | None
        if labels is None:
            self.labels, self._numbers = range(checked_count("n_arms", n_arms)), None
        else:
            if isinstance(labels, (str, bytes)) or not hasattr(labels, "__iter__"):
                what = "the text " if isinstance(labels, (str, bytes)) else ""
                raise InvalidParameter(f"arms must be a list of labels, got {what}{labels!r}")
            self.labels = [plain_label(label) for label in labels]
            if not self.labels:
                raise InvalidParameter("arms must have at least one label, got none")
            try:
                self._numbers = {label: number for number, label in enumerate(self.labels)}
            except TypeError:
                raise InvalidParameter("arms must be hashable labels") from None
            if any(is_missing(label) for label in self.labels):
                raise InvalidParameter("arms must be labels, and one of them is missing")
            if len(self._numbers) != len(self.labels):
                twice = next(label for label in self.labels if self.labels.count(label) > 1)
                raise InvalidParameter(f"arms must be distinct, got {twice!r} twice")
        self._size = len(self.labels)

    def __len__(self) -> int:
        return self._size

    def number(self, label: object) -> int:
        """Return the number of the arm with this label, or −1 if there is no such arm."""
        if self._numbers is not None:
            try:
                return self._numbers.get(label, -1)
            except TypeError:
                return -1
        if type(label) is int:
            return label if 0 <= label < self._size else -1
        try:
            number = operator.index(cast(SupportsIndex, label))
        except TypeError:
            return -1
        return number if 0 <= number < self._size else -1

    def describe(self) -> str:
        """Say in a few words which arms there are, for error messages."""
        if self._numbers is None:
            return f"0..{len(self) - 1}" if len(self) > 1 else "0 alone"
        shown = ", ".join(map(repr, self.labels[:5]))
        return shown if len(self) <= 5 else f"{shown} and {len(self) - 5} more"
