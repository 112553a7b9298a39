"""`Drive` repeats the step over a base and a ledger. Only this file knows two speeds, growth and interruptions."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any, cast

import numpy as np

from artreplay.compiling import UNBOUNDED, Floats, Ints, Loop, current_mode, next_limit, views, worth_compiling
from artreplay.errors import Interrupted, InvalidAction
from artreplay.replay.bases import Base, ComponentBase
from artreplay.replay.certified import complaint
from artreplay.replay.ledger import Ledger, enlarged
from artreplay.replay.reader import Reader, ledger_without_rows
from artreplay.replay.related import RelatedRows
from artreplay.replay.step import (
    AGAIN,
    BAD_PROPOSAL,
    DONE,
    NEEDS_ROOM,
    NEEDS_ROWS,
    NO_ROW,
    PENDING,
    PLACES,
    READ_UNITS,
    ROUND,
    SERVING,
    USED,
    Rounds,
    read_to_end,
    settle,
    take_rounds,
)

FIRST_STEPS = 1  # steps in the first slice of a call, because a step over a large table can take a second
SLOW_CALLS = 3  # slow calls in a row before compiling, because the machine may have been busy during one
SLOW_SLICE = 1e-3  # seconds; below this, handing arrays to machine code costs more than it saves

_CUT = -1  # stands in place of a thread's number after a step was interrupted


class Drive:
    """Runs the step over a base and a ledger at the faster speed, and supplies the room and the rows it stops for.

    Work that must be whole is done between `enter` and `leave`: a slice of a loop with the rows and the room it asks
    for, a whole `tell`, or opening a log that has grown. If Ctrl-C interrupts such work, the base may be half changed,
    so every later call raises an error that says so.
    """

    def __init__(self, base: Base) -> None:
        self.base = base
        self.position = np.zeros(PLACES, np.int64)
        self.proposal, self.proposed = base.proposal_space()
        self.ledger: Ledger | RelatedRows = ledger_without_rows(base)
        self.reader: Reader | None = None
        self._parts: tuple[Any, ...] = ()  # what a step needs, in the form that interpreted code reads fastest
        self._fills = True  # whether arrays of the base can fill up
        self._slow_calls = 0  # calls in a row in which the first slice was slow enough to compile for
        # A user's component may need real arrays, and its counters may wrap around.
        self._is_own = isinstance(base, ComponentBase)
        self._inside = 0  # the number of the thread that is changing something, else 0

    # -- one thread at a time, and whole ----------------------------------------------------------------------

    def enter(self) -> None:
        """Note that something is about to change."""
        if self._inside:
            self.check_whole()
        self._inside = threading.get_ident()

    def leave(self, error: BaseException | None = None) -> None:
        """Note that the change is over. After an error such as Ctrl-C, only half of it may have been done."""
        self._inside = 0 if error is None or isinstance(error, Exception) else _CUT

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Keep what is done inside whole; it may be a part of larger work by the same thread."""
        if self._inside == threading.get_ident():
            yield
            return
        self.enter()
        try:
            yield
        except BaseException as error:
            self.leave(error)
            raise
        self.leave()

    def check_whole(self) -> None:
        """Refuse to go on, or to be saved, after an interrupted step or while another thread uses the policy."""
        if self._inside == 0:
            return
        if self._inside not in (_CUT, threading.get_ident()):
            raise Interrupted("only one thread at a time may use a policy, and another thread is using this one")
        raise Interrupted(
            "this policy was interrupted in the middle of a step. Load it from where it was saved, or make it again"
        )

    @property
    def is_busy(self) -> bool:
        """Whether something is being changed, or was interrupted."""
        return self._inside != 0

    @property
    def is_cut(self) -> bool:
        """Whether a step was interrupted."""
        return self._inside == _CUT

    # -- the step ---------------------------------------------------------------------------------------------

    def settle(self, chooser: Any = None) -> int:
        """Repeat the step until there is something to play. Return how many units that is.

        `chooser` proposes in place of the base, and is shown the same rows as the base.
        """
        return self._run(settle, None, chooser)

    def read_to_end(self, units: Any) -> None:
        """Show all unread rows of the cells of these units."""
        self.position[READ_UNITS] = self.position[SERVING] = 0
        self._run(read_to_end, np.asarray(units, np.int64))

    def has_unread(self, units: Iterable[int]) -> bool:
        """Return whether a cell of these units has unread rows."""
        component, ledger, _, _ = self._parts or self._viewed()
        return any(ledger.first_unread(ledger.locate(component, unit)) != NO_ROW for unit in units)

    def take(self, samples: list[tuple[int, float]]) -> None:
        """Show the base what was played in a round, and end the round.

        If the base raises an error at one of several units, the units before it count, and the caller can tell the
        others.
        """
        _, _, position, update = self._parts or self._viewed()
        if self._fills:
            self._make_room(len(samples) + len(self.proposal))  # a step asks for the room of a whole proposal
            _, _, position, update = self._parts or self._viewed()
        shown = 0
        try:
            for unit, reward in samples:
                update(unit, reward)
                shown += 1
        finally:
            if shown > 0:  # the round is over even if the base raised at a later unit
                position[ROUND] += 1
                position[PENDING] = 0
                position[SERVING] = 0  # a proposal that waits for rows is out of date

    def take_rounds(self, units: Ints, rewards: Floats) -> None:
        """Show the base what was played in many rounds, one unit in each."""
        self.position[READ_UNITS] = 0
        self._run(take_rounds, Rounds(units, rewards))
        self.position[PENDING] = self.position[SERVING] = 0

    def load(self, unit: int, samples: int, total: float) -> None:
        """Let the base take in many samples of a unit in one step."""
        self._make_room(samples)
        self.base.component.load(unit, samples, total)
        self.position[USED] += samples

    def replace(self, ledger: Ledger | RelatedRows, reader: Reader | None = None) -> None:
        """Continue over another ledger."""
        self.ledger, self.reader, self._parts = ledger, reader, ()

    def renew(self) -> None:
        """Note that the component of the base was replaced."""
        self._parts = ()

    def _viewed(self) -> tuple[Any, ...]:
        """Return base, ledger, position and update, our own as memoryviews, which Python reads fastest."""
        component, ledger = self.base.component, self.ledger
        self._fills = component.room() < UNBOUNDED
        if isinstance(component, tuple) and not self._is_own:
            component = views(component)
        update = np.errstate(over="ignore")(component.update) if self._is_own else component.update
        ledger = views(ledger) if isinstance(ledger, tuple) else ledger
        self._parts = component, ledger, memoryview(cast(Any, self.position)), update
        return self._parts

    def _run(self, loop: Loop[Any, int], units: Any, chooser: Any = None) -> int:
        """Run a loop until it is done, and return what it returns.

        The loop runs in slices, and Ctrl-C does no harm between slices. It is interpreted at first and compiled once
        that saves time, with the same result. A chooser is always interpreted.
        """
        is_inner = self._inside == threading.get_ident()  # then the slice is a part of larger work
        steps = FIRST_STEPS
        interpreted: Any = loop.interpreted if self._is_own else loop.function
        compiled = None
        if chooser is None and (self._slow_calls >= SLOW_CALLS or current_mode() == "compiled"):
            compiled = loop.compiled_for(self.base.component, self.ledger)
        while True:
            if not is_inner:
                self.enter()
            is_whole = compiled is not None  # Ctrl-C cannot interrupt a slice of machine code
            began = perf_counter()
            try:
                if compiled is not None:
                    target = self.proposal if units is None else units
                    result = compiled(self.base.component, self.ledger, self.position, target, steps)
                else:
                    component, ledger, position, _ = self._parts or self._viewed()
                    target = self.proposed if units is None else units
                    target = views(target) if isinstance(target, Rounds) else target
                    result = interpreted(chooser or component, ledger, position, target, steps)
                seconds = perf_counter() - began
                if result <= 0 and result not in (DONE, AGAIN):
                    is_whole = False
                    self._provide(result, chooser)
            except BaseException as error:
                if not is_inner:
                    self.leave(None if is_whole else error)
                raise
            if not is_inner:
                self.leave()
            if compiled is None:
                if seconds < SLOW_SLICE:
                    self._slow_calls = 0
                elif chooser is None and worth_compiling(loop, (self.base.component, self.ledger), seconds):
                    self._slow_calls += 1
                    if result == AGAIN:
                        compiled = loop.compiled_for(self.base.component, self.ledger)
                        steps = FIRST_STEPS
            if result > 0 or result == DONE:
                return int(result)
            if result == AGAIN:
                steps = next_limit(steps, seconds)

    def _provide(self, need: int, chooser: Any) -> None:
        """Supply what a loop stopped for, or say what is wrong with the base."""
        base, name = self.base, type(self.base.thing).__qualname__
        if need == NEEDS_ROOM:
            self._make_room(max(len(self.proposal), 1))
            if chooser is not None:
                chooser.renew()
        elif need == NEEDS_ROWS and self.reader is not None and isinstance(self.ledger, Ledger):
            self.ledger = self.reader.fill(self.ledger)
            self._parts = ()
        elif need == BAD_PROPOSAL:
            raise InvalidAction(
                f"{name} must propose at least 1 unit and at most {len(self.proposal)}. A component that means to "
                "propose more must offer `width`"
            )
        else:
            arm = int(self.proposed[0])
            raise InvalidAction(complaint(base.component, arm, base.unit(arm), name))

    def _make_room(self, need: int) -> None:
        if self.base.component.room() < need:
            self.base.make_room(need)
            self.ledger = enlarged(self.ledger, self.base.unit_cells(np.empty(0, np.int64)).space)
            self._parts = ()

    def __getstate__(self) -> dict[str, Any]:
        """Leave the memoryviews out of a pickle or copy; they are made again."""
        self.check_whole()
        return self.__dict__ | {"_parts": (), "proposed": None, "proposal": list(self.proposal), "_inside": 0}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.proposal, self.proposed = self.base.proposal_space()
        self.proposal[:] = state["proposal"]
