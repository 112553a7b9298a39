"""One call at a time, and one commit for several: how threads share a study that a process owns."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from time import perf_counter
from typing import Any, Self, TypeVar

from artreplay.compiling.interrupts import NoInterrupt
from artreplay.errors import ArtReplayError, StudyRefused, StudyUnavailable
from artreplay.replay import AnyHistory
from artreplay.studies.decisions import PastHorizon
from artreplay.studies.study_journal import Journal
from artreplay.studies.study_state import StudyState

T = TypeVar("T")
Clock = Callable[[], float]

_PATIENCE = 0.05  # seconds after which a thread looks for itself whether the study is free
_RETURN = 0.001  # seconds within which threads that shared a commit come back, if they do so at once


class Call:
    """What a thread wants done, by itself or by another, and what came of it."""

    __slots__ = ("_error", "_lock", "_result", "_work", "over", "thread")

    def __init__(self, work: Callable[[StudyState], Any]) -> None:
        self._work, self.over, self.thread = work, False, threading.get_ident()
        self._result: Any = None
        self._error: Exception | None = None
        self._lock = threading.Lock()
        self._lock.acquire()

    def do(self, ready: Callable[[], StudyState]) -> None:
        """Do it. A refusal is for the caller alone; anything else that is raised is for all who share the commit."""
        if self.over:
            return
        try:
            self._result = self._work(ready())
        except Exception as error:
            self._error = error
            if not isinstance(error, (ArtReplayError, PastHorizon)) or isinstance(error, StudyUnavailable):
                raise

    def end(self, error: BaseException | None) -> None:
        """It is durable, or it has not happened because of an error of this call or another."""
        if not self.over and error is not None and self._error is None:
            words = str(error) if isinstance(error, StudyUnavailable) else f"a call was cut short: {error!r}"
            self._error = StudyUnavailable(words)
            self._error.__cause__ = error
        self.over = True
        self.wake()

    def outcome(self) -> Any:
        """What it returned, or raises."""
        if self._error is not None:
            try:
                raise self._error
            finally:
                self._error = None  # its traceback knows this call, and the study: nothing should hold those longer
        return self._result

    def leave(self) -> None:
        """Nobody waits for it any more; an error would hold what it was raised over, as a lock of the database."""
        self.over, self._error = True, None

    def wait(self, seconds: float) -> None:
        """Wait until it is over, or it is time to look, for so long at most."""
        self._lock.acquire(timeout=seconds)

    def wake(self) -> None:
        """Let the thread look that waits."""
        with suppress(RuntimeError):  # it does not wait
            self._lock.release()


class StudyConnection:
    """A study that this process owns, or only looks at."""

    def __init__(self, journal: Journal, clock: Clock, history: AnyHistory | None) -> None:
        """Use `Study.create` or `Study.open`."""
        self._journal, self._clock, self._history = journal, clock, history
        self._state: StudyState | None = None
        self._process = os.getpid()
        self._mutex = threading.RLock()
        self._waiting: deque[Call] = deque()
        self._inside = 0  # the thread that is in a call
        self._broken: StudyUnavailable | None = None  # why a part of `together` could not be done
        self._next = 0  # the thread that should do the next calls, 0 for any,
        self._until = 0.0  # and how long it is waited for
        self._closed = False

    def close(self) -> None:
        """Write a snapshot and let go; a study that is not closed loses nothing but the time to fold it again."""
        with self._mutex:
            if self._closed:
                return
            with suppress(ArtReplayError):
                if self._state is not None and not self._journal.read_only and self._process == os.getpid():
                    self._state.keep_snapshot()
                    self._commit()
            self._closed = True
            self._state = None
            self._journal.close()
            self._journal.disown()

    def __del__(self) -> None:
        """A study that nobody has any more lets go, without a snapshot."""
        self._journal.close()
        self._journal.disown()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ready(self) -> StudyState:
        """The study in memory; read again if a commit failed."""
        if self._closed:
            raise StudyUnavailable(f"{self._journal.name} is closed: open it again")
        if self._process != os.getpid():
            raise StudyUnavailable(f"{self._journal.name} was opened by the process this one comes from: open it here")
        journal = self._journal
        if self._state is None:
            if not journal.read_only and journal.epoch < 0:
                journal.check()
                journal.take_over()
            self._state = StudyState(journal, self._clock, self._history)
        elif journal.read_only:
            self._state.catch_up()
        return self._state

    def _read(self, look: Callable[[StudyState], T]) -> T:
        if self._inside == threading.get_ident():
            return self._do_part(look)
        try:
            with self._mutex:
                result = look(self._ready())
                if self._waiting:  # threads that only read would keep them waiting for ever
                    self._do_all()
                return result
        finally:
            self._wake_next()

    def _write(self, work: Callable[[StudyState], T]) -> T:
        """Do something in this thread, and return when it is durable."""
        if self._inside == threading.get_ident():
            return self._do_part(work)
        call = Call(work)
        try:
            with self._mutex:
                self._do_all(call)
        finally:
            self._wake_next()
        result: T = call.outcome()
        return _raised(result)

    def _share(self, work: Callable[[StudyState], T]) -> T:
        """Do something short, or let it be done by the thread that does what all who wait want, with one commit."""
        if self._inside == threading.get_ident():
            return self._do_part(work)
        call, is_first = Call(work), not self._waiting
        try:
            self._waiting.append(call)
            if self._next not in (0, call.thread) and (left := self._until - perf_counter()) > 0.0:
                # Another thread should do this. The first who waits does it if that one does not come.
                call.wait(left if is_first else _PATIENCE)
            while not call.over:
                if self._inside:
                    call.wait(_PATIENCE)
                    continue
                try:
                    with self._mutex:  # which Ctrl-C cannot leave locked, as it could where it is only tried
                        if not call.over:
                            self._do_all()
                finally:
                    self._wake_next()
        except BaseException:  # Ctrl-C: what nobody has begun is left out
            call.leave()
            raise
        result: T = call.outcome()
        return _raised(result)

    def _do_part(self, work: Callable[[StudyState], T]) -> T:
        """Do a part of `together`; if it makes the study unavailable, the whole of it fails, whatever comes after."""
        try:
            if self._broken is not None:
                raise self._broken
            return _raised(work(self._ready()))
        except StudyUnavailable as error:
            self._broken = error
            raise

    def _wake_next(self) -> None:
        """Let the first look who waits: the study is free."""
        with suppress(IndexError):
            self._waiting[0].wake()

    def _do_all(self, first: Call | None = None) -> None:
        """Do a call, and then all that wait; commit once, and tell everyone.

        Threads often come back at once. The one that is told last then finds the others waiting, and should do the next
        calls; another does so if it does not come. Under load this is also fairer than if one thread did all the work.
        """
        calls = [] if first is None else [first]
        self._inside, self._broken = threading.get_ident(), None
        try:
            if first is not None:
                first.do(self._ready)
                if self._broken is not None:  # which the caller has caught: what was written before it is gone
                    raise self._broken
            while self._waiting:
                calls.append(self._waiting[0])
                self._waiting.popleft()
                calls[-1].do(self._ready)
            with NoInterrupt():
                self._commit()
                self._next = calls[-1].thread if len(calls) > 1 else 0
                self._until = perf_counter() + _RETURN
                for call in calls:
                    call.end(None)
                calls.clear()
        except BaseException as error:
            with NoInterrupt():
                if calls:  # else Ctrl-C was pressed during the commit, and all is well
                    self._forget()
                for call in calls:
                    call.end(error)
            if not isinstance(error, Exception):
                raise
        finally:
            self._inside = 0

    def _commit(self) -> None:
        """Make everything durable that was written."""
        self._journal.commit()

    def _forget(self) -> None:
        """What is in memory is not what is durable: it is read again when it is needed."""
        self._state = None
        self._journal.undo()


def _raised(result: T) -> T:
    """What a call returns; a refusal that had to be counted is raised now."""
    if isinstance(result, StudyRefused):
        raise result
    return result
