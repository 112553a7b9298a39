"""What an algorithm does with contexts, where it is made with some: it keeps them encoded, and chooses in a segment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np

from artreplay.compiling import Floats, Ints
from artreplay.errors import InvalidHistory, InvalidParameter
from artreplay.history import Contexts, Label


class Repeated(Sequence[Label]):
    """Labels, each as often as there are segments."""

    def __init__(self, labels: Sequence[Label], times: int) -> None:
        self._labels, self._times = labels, times

    def __len__(self) -> int:
        return len(self._labels) * self._times

    def __getitem__(self, number: Any) -> Any:
        return self._labels[number // self._times]


class HearsContexts:
    """A part of every algorithm. Without contexts, which is the rule, it only refuses those that are given.

    With contexts the number of a unit is arm · n_segments + segment.
    """

    component: Any
    contexts: Contexts | None = None  # how contexts become numbers, for an algorithm that hears of them

    @property
    def thing(self) -> Any:
        """What the user knows as the base: the algorithm itself."""
        return self

    @property
    def contextual(self) -> bool:
        """Whether it must be asked and told with a context."""
        return self.contexts is not None

    @property
    def n_segments(self) -> int:
        """How many segments its contexts make; 1 without any."""
        return 1 if self.contexts is None else self.contexts.n_segments

    def checked_context(self, context: Mapping[str, Any] | None) -> Floats | None:
        """A context as the component sees it; None where there are none."""
        name = type(self.thing).__name__
        if self.contexts is None:
            if context is not None:
                raise InvalidParameter(
                    f"must be left out for a {name} without contexts. ContextRegression uses them", parameter="context"
                )
            return None
        if context is None:
            raise InvalidParameter(f"a {name} with contexts needs a context, got None. Give context={{...}}")
        return self.contexts.encode_one(context)

    def is_context(self, context: Any) -> bool:
        """Whether what was read from a file can be a context as the component sees it."""
        return (
            self.contexts is not None
            and isinstance(context, np.ndarray)
            and context.shape == (self.contexts.width,)
            and context.dtype == np.float64
            and bool(0 <= context[0] < self.n_segments and context[0] == int(context[0]))
        )

    def in_context(self, unit: int, context: Floats) -> int:
        """The number of an arm in a context."""
        return unit * self.n_segments + int(context[0])

    def set_context(self, context: Floats) -> None:
        """Choose and learn in this context from now on."""
        self.component.set_context(context)

    def check_contexts(self, history: Any) -> None:
        """Refuse a log whose rows do not have the contexts it hears of."""
        columns = cast(Contexts, self.contexts).columns
        absent = [name for name in columns if name not in history.context_names]
        if absent and history.n_rows:
            raise InvalidHistory(
                f"the log must have the contexts of this {type(self.thing).__name__}, and lacks "
                f"{', '.join(map(repr, absent))}. Make it with ar.History(arms, rewards, contexts=table), or open it "
                "with contexts=[...]"
            )
        self.check_rows(history.n_rows)

    def check_rows(self, rows: int) -> None:
        """Refuse a log that is too long."""

    def contexts_of_rows(self, table: Any, rows: int) -> Floats:
        """The contexts of some rows of a log as the component sees them."""
        contexts = cast(Contexts, self.contexts)
        return np.empty((0, contexts.width)) if rows == 0 and table is None else contexts.encode(table)

    def units_of_rows(self, units: Ints, contexts: Floats) -> Ints:
        """The numbers of the arms of some rows in the contexts of these rows; −1 stays."""
        return np.where(units < 0, -1, units * self.n_segments + contexts[:, 0].astype(np.int64))

    def learn_rows(self, units: Ints, rewards: Floats, contexts: Any, played: bool) -> Iterator[int]:
        """Show rows of a log, or online rewards, with their contexts and in order. Yield how many were shown so far."""
        raise NotImplementedError
