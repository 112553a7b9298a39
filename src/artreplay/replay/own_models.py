"""A model of the user's own that knows who is asking: an object that scores arms in a context."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from artreplay.algorithms import ArmValue, Available
from artreplay.compiling import Floats, Ints
from artreplay.errors import InvalidAction, InvalidHistory, InvalidParameter
from artreplay.history import Contexts
from artreplay.history.labels import is_missing, plain_label
from artreplay.replay.bases import ObjectBase
from artreplay.replay.own_methods import check_signature, described

ROWS_OF_A_SLICE = 256  # that a model learns before anyone else may say something


class ModelBase(ObjectBase):
    """An object with `contextual = True`, `score(arm, context, round)` and `update(arm, reward, context)`.

    It says which `arms` it scores, or how many, `n_arms`. It is shown its log in order, so any model is exact. The arm
    of the highest score is played, the first among equals. A context is a dict of the columns of the log, in which a
    missing value is None. If its `contexts` are an `ar.Contexts`, the columns are those. Where it offers
    `update_logged(arm, reward, context)`, rows of the log are shown to that.
    """

    exact = True
    contextual = True
    n_segments = 1  # also where its contexts have segments: what to make of them is for the model to say

    def __init__(self, thing: Any) -> None:
        for method in ("score", "update"):
            if not callable(getattr(thing, method, None)):
                raise InvalidParameter(
                    "a model of contexts must have score(arm, context, round) and update(arm, reward, context), "
                    f"got {thing!r}"
                )
            check_signature(thing, method, of_contexts=True)
        super().__init__(thing)
        self.reads_whole_log = True
        arms, n_arms = getattr(thing, "arms", None), getattr(thing, "n_arms", None)
        if arms is None and (isinstance(n_arms, bool) or not isinstance(n_arms, (int, np.integer)) or n_arms < 1):
            name = type(thing).__qualname__
            raise InvalidParameter(f"{name} must say which arms it scores, as arms or n_arms, got {n_arms!r}")
        self._is_complete = False
        for arm in range(int(n_arms or 0)) if arms is None else arms:
            self.checked_number(arm)
        self._is_complete = True
        self.n_arms = len(self._units)
        own = getattr(thing, "contexts", None)
        self.contexts = own if isinstance(own, Contexts) else None
        # The columns of contexts, once the model or a log has said which there are.
        self._columns = None if self.contexts is None else frozenset(self.contexts.columns)
        self._context: dict[str, Any] = {}

    def checked_number(self, unit: object) -> int:
        """The number of an arm."""
        known = len(self._units)
        number = super().checked_number(unit)
        if self._is_complete and number >= known:
            del self._numbers[next(reversed(self._numbers))], self._units[-1]
            raise InvalidAction(f"{unit!r} is not one of the {self.n_arms} arms of {type(self.thing).__name__}")
        return number

    # -- what the step calls ------------------------------------------------------------------------------------

    def propose_over(self, ledger: object, out: list[int], round_: int) -> int:
        """The arm of the highest score in the current context."""
        return self.propose_among(out, round_, None)

    def propose_among(self, out: Any, round_: int, available: Available | None) -> int:
        """The same, among the arms that are available."""
        numbers = range(self.n_arms) if available is None else np.flatnonzero(available).tolist()
        scores = {number: self._score(number, round_) for number in numbers}
        out[0] = max(scores, key=lambda number: (scores[number], -number))
        return 1

    def _score(self, number: int, round_: int) -> float:
        score = float(self.thing.score(self.unit(number), dict(self._context), int(round_)))
        if math.isnan(score):
            raise InvalidAction(f"{described(self.thing, 'score')} must return a number, got nan")
        return score

    def update(self, number: int, reward: float) -> None:
        """Show the model what was played in the current context."""
        self.thing.update(self.unit(number), float(reward), dict(self._context))

    def learn_rows(self, units: Ints, rewards: Floats, contexts: Any, played: bool) -> Iterator[int]:
        """Show rows of a log, or online rewards, with their contexts and in order. Yield how many were shown so far."""
        show = self.thing.update if played else getattr(self.thing, "update_logged", self.thing.update)
        for first in range(0, len(units), ROWS_OF_A_SLICE):
            some = slice(first, first + ROWS_OF_A_SLICE)
            rows = zip(units[some].tolist(), rewards[some].tolist(), contexts[some], strict=True)
            for unit, reward, context in rows:
                show(self.unit(unit), reward, dict(context))
            yield min(first + ROWS_OF_A_SLICE, len(units))

    def values(self, context: Mapping[str, Any] | None, round_: int) -> dict[Any, ArmValue]:
        """The score of each arm in a context; what else there is to say of it only the model knows."""
        self.set_context(self.checked_context(context))
        name, unknown = type(self.thing).__name__, math.nan
        return {
            self.unit(number): ArmValue(self._score(number, round_), unknown, unknown, name, "all")
            for number in range(self.n_arms)
        }

    # -- contexts -----------------------------------------------------------------------------------------------

    def checked_context(self, context: Mapping[str, Any] | None) -> Any:
        """A context as a dict of plain values, which has the columns of the log."""
        name = type(self.thing).__name__
        if context is None:
            raise InvalidParameter(f"{name} needs a context, got None. Give context={{...}}")
        if not isinstance(context, Mapping) or not all(isinstance(key, str) for key in context):
            raise InvalidParameter(f"must be a mapping of names to values, got {context!r}", parameter="context")
        if self._columns is not None and context.keys() != self._columns:
            expected = ", ".join(map(repr, sorted(self._columns)))
            raise InvalidParameter(
                f"must have the columns of the {'log' if self.contexts is None else 'model'}, {expected}, got "
                f"{', '.join(map(repr, context))}",
                parameter="context",
            )
        return {key: None if is_missing(value) else plain_label(value) for key, value in context.items()}

    def is_context(self, context: Any) -> bool:
        """Whether what was read from a file can be a context."""
        return isinstance(context, dict)

    def in_context(self, unit: int, context: Any) -> int:
        """An arm is the same in every context."""
        return unit

    def set_context(self, context: Any) -> None:
        """Score and learn in this context from now on."""
        self._context = context

    def check_contexts(self, history: Any) -> None:
        """Refuse a log without contexts."""
        if not history.n_rows:
            return
        if self.contexts is not None:
            super().check_contexts(history)
        elif not history.context_names:
            raise InvalidHistory(
                f"the log must have contexts for {type(self.thing).__name__}: make it with "
                "ar.History(arms, rewards, contexts=table), or open it with contexts=[...]"
            )
        else:
            self._columns = frozenset(history.context_names)

    def contexts_of_rows(self, table: Any, rows: int) -> Any:
        """The contexts of some rows of a log, as dicts."""
        contexts = np.empty(0 if table is None else len(table), np.object_)
        if table is not None:
            contexts[:] = (table if self.contexts is None else table.select(self.contexts.columns)).to_pylist()
        return contexts

    def units_of_rows(self, units: Ints, contexts: Any) -> Ints:
        """An arm is the same in every context."""
        return units
