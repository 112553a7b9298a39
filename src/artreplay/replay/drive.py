"""`Drive` repeats the step over a base and a ledger. It alone knows two speeds, growth, reading and interruptions."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from time import perf_counter
from typing import Any, cast

import numpy as np

from artreplay.compiling import UNBOUNDED, Loop, current_mode, views, worth_compiling
from artreplay.errors import Interrupted, InvalidAction
from artreplay.replay.bases import Base, ComponentBase
from artreplay.replay.certified import complaint
from artreplay.replay.ledger import Ledger, enlarged
from artreplay.replay.reader import Reader, ledger_without_rows
from artreplay.replay.related import RelatedRows
from artreplay.replay.step import (
    AGAIN,
    BAD_PROPOSAL,
    BAD_VALUE,
    DONE,
    NEEDS_ROOM,
    NEEDS_ROWS,
    NO_ROW,
    PENDING,
    PLACES,
    READ_UNITS,
    ROUND,
    SERVING,
    read_to_end,
    settle,
)

FIRST_STEPS = 16  # in the first slice of a call
MAX_STEPS = 1 << 20  # in one slice of a loop
SLICE_SECONDS = 0.05  # what a slice should take, so that Ctrl-C is heard soon
SLOW_SLICE = 1e-3  # seconds: a quicker one gains nothing by machine code, which must be handed its arrays first

_CUT = -1  # where the number of a thread would be: what was to be done was cut in two


class Drive:
    """Runs the step over a base and a ledger at the speed that pays, and gives it the room and the rows it stops for.

    Whoever changes something calls `enter` before the first change and `leave` after the last. A Ctrl-C in between
    leaves a base that nobody can use, and every later call says so.
    """

    def __init__(self, base: Base) -> None:
        self.base = base
        self.position = np.zeros(PLACES, np.int64)
        self.proposal, self.proposed = base.proposal_space()
        self.ledger: Ledger | RelatedRows = ledger_without_rows(base)
        self.reader: Reader | None = None
        self._parts: tuple[Any, ...] = ()  # of a step, as interpreted code reads them fastest
        self._fills = True  # whether arrays of the base can run over
        self._is_slow = False  # whether even the first slice of a call is worth compiling
        self._wraps = isinstance(base, ComponentBase)  # whether counters of a user's own may wrap around
        self._inside = 0  # the thread that is changing something

    # -- one thread at a time, and whole ----------------------------------------------------------------------

    def enter(self) -> None:
        """Something is about to change."""
        if self._inside:
            if self._inside not in (_CUT, threading.get_ident()):
                raise Interrupted("a policy belongs to one thread at a time, and another thread is using this one")
            raise Interrupted(
                "this policy was interrupted in the middle of a step: load it from where it was saved, or make it again"
            )
        self._inside = threading.get_ident()

    def leave(self, error: BaseException | None = None) -> None:
        """All is changed, or an error came out of it: what is no ordinary error has cut a step in two."""
        self._inside = 0 if error is None or isinstance(error, Exception) else _CUT

    def check_whole(self) -> None:
        """Refuse to go on, or to be saved, after a step was cut in two."""
        if self.is_cut:
            self.enter()

    @property
    def is_cut(self) -> bool:
        """Whether a step was cut in two."""
        return self._inside == _CUT

    # -- the step ---------------------------------------------------------------------------------------------

    def settle(self, chooser: Any = None) -> int:
        """Repeat the step until there is something to play; how many units that is.

        `chooser` proposes in place of the base, and is shown what the base is shown.
        """
        return self._run(settle, None, chooser)

    def read_to_end(self, units: Any) -> None:
        """Show all unread rows of the cells of these units."""
        self.position[READ_UNITS] = self.position[SERVING] = 0
        self._run(read_to_end, np.asarray(units, np.int64))

    def has_unread(self, units: Iterable[int]) -> bool:
        """Whether a cell of these units has unread rows."""
        component, ledger, _ = self._parts or self._viewed()
        return any(ledger.first_unread(ledger.locate(component, unit)) != NO_ROW for unit in units)

    def take(self, samples: list[tuple[int, float]]) -> None:
        """Show the base what was played in a round, which is over then."""
        component, _, position = self._parts or self._viewed()
        if self._fills:
            self._make_room(len(samples) + len(self.proposal))  # a step looks for room for a whole proposal
            component, _, position = self._parts or self._viewed()
        if self._wraps:
            with np.errstate(over="ignore"):
                for unit, reward in samples:
                    component.update(unit, reward)
        else:
            for unit, reward in samples:
                component.update(unit, reward)
        position[ROUND] += 1
        position[PENDING] = 0
        position[SERVING] = 0  # a proposal that waits for rows is out of date

    def load(self, unit: int, samples: int, total: float) -> None:
        """Let the base take many samples of a unit in at once."""
        self._make_room(samples)
        self.base.component.load(unit, samples, total)

    def replace(self, ledger: Ledger | RelatedRows, reader: Reader | None = None) -> None:
        """Go on over another ledger."""
        self.ledger, self.reader, self._parts = ledger, reader, ()

    def renew(self) -> None:
        """The component of the base was replaced."""
        self._parts = ()

    def _viewed(self) -> tuple[Any, ...]:
        """Base, ledger and position through views, whose entries are plain numbers."""
        component, ledger = self.base.component, self.ledger
        self._fills = component.room() < UNBOUNDED
        if isinstance(component, tuple):
            component = views(component)
        parts = component, views(ledger) if isinstance(ledger, tuple) else ledger, memoryview(cast(Any, self.position))
        self._parts = parts
        return parts

    def _run(self, loop: Loop[Any, int], units: Any, chooser: Any = None) -> int:
        """Run a loop until it is done, and return what it returns.

        It runs in slices, between which Ctrl-C is heard, arrays grow, and rows are read. Interpreted at first; compiled
        once that pays. Both do the same. A chooser is always interpreted.
        """
        steps = FIRST_STEPS
        interpreted: Any = loop.interpreted if self._wraps else loop.function
        compiled = None
        if chooser is None and (self._is_slow or current_mode() == "compiled"):
            compiled = loop.bound_to(self.base.component, self.ledger)
        while True:
            began = perf_counter()
            if compiled is not None:
                target = self.proposal if units is None else units
                result = compiled(self.base.component, self.ledger, self.position, target, steps)
                seconds = perf_counter() - began
            else:
                component, ledger, position = self._parts or self._viewed()
                target = self.proposed if units is None else units
                result = interpreted(chooser or component, ledger, position, target, steps)
                seconds = perf_counter() - began
                if seconds > SLOW_SLICE and chooser is None:
                    pays = worth_compiling(loop, (self.base.component, self.ledger), seconds)
                    self._is_slow = pays and steps == FIRST_STEPS
                    if pays and result == AGAIN:
                        compiled, steps = loop.bound_to(self.base.component, self.ledger), FIRST_STEPS
            if result > 0 or result == DONE:
                return int(result)
            if result == NEEDS_ROOM:
                self._make_room(max(len(self.proposal), 1))
                if chooser is not None:
                    chooser.renew()
            elif result == NEEDS_ROWS:
                self._read_rows()
            elif result == BAD_PROPOSAL:
                raise InvalidAction(
                    f"{type(self.base.thing).__qualname__} must propose at least 1 unit and at most "
                    f"{len(self.proposal)}; a component that means to propose more must offer `width`"
                )
            elif result == BAD_VALUE:
                arm = int(self.proposed[0])
                raise InvalidAction(
                    complaint(self.base.component, arm, self.base.unit(arm), type(self.base.thing).__name__)
                )
            else:
                steps = next_limit(steps, seconds)

    def _read_rows(self) -> None:
        """Read the rows that the ledger wants."""
        if self.reader is not None and isinstance(self.ledger, Ledger):
            self.ledger = self.reader.put(self.ledger, self.reader.read(self.ledger))
            self._parts = ()

    def _make_room(self, need: int) -> None:
        if self.base.component.room() < need:
            self.base.make_room(need)
            self.ledger = enlarged(self.ledger, self.base.unit_cells(np.empty(0, np.int64)).space)
            self._parts = ()

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and copy: without the views of memory, which are made again."""
        self.check_whole()
        return self.__dict__ | {"_parts": (), "proposed": None, "proposal": list(self.proposal), "_inside": 0}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.proposal, self.proposed = self.base.proposal_space()
        self.proposal[:] = state["proposal"]


def next_limit(limit: int, took: float) -> int:
    """How many steps the next slice may have, so that it takes about `SLICE_SECONDS`."""
    if took < SLICE_SECONDS / 2:
        return min(limit * 2, MAX_STEPS)
    return max(limit // 2, 1) if took > SLICE_SECONDS else limit
