"""One call at a time, and one commit for several calls: how the threads of a process share its study."""

from __future__ import annotations

import logging
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
from artreplay.studies.folding import Fold
from artreplay.studies.settings import Arm, Factory
from artreplay.studies.study_journal import Journal
from artreplay.studies.study_state import StudyState

T = TypeVar("T")
Clock = Callable[[], float]
LOGGER = logging.getLogger("artreplay.studies")

_PATIENCE = 0.05  # seconds after which a waiting thread checks whether the study is free
_RETURN = 0.001  # seconds to wait for the next call of a thread that has just shared a commit


class Call:
    """What a thread wants done, by itself or by another thread, and the result."""

    __slots__ = ("_error", "_is_whole", "_lock", "_result", "_work", "over", "thread")

    def __init__(self, work: Callable[[StudyState], Any], is_whole: bool = False) -> None:
        self._work, self.over, self.thread = work, False, threading.get_ident()
        self._is_whole = is_whole  # whether an error of any kind undoes what the work did before
        self._result: Any = None
        self._error: Exception | None = None
        self._lock = threading.Lock()
        self._lock.acquire()

    def do(self, ready: Callable[[], StudyState]) -> None:
        """Do the work. An error is for the caller alone, unless something was lost or left half done."""
        if self.over:
            return
        try:
            state = ready()
        except Exception as error:
            self._error = error
            raise
        before, was_in_transaction = state.seq, state.journal.in_transaction
        try:
            self._result = self._work(state)
        except Exception as error:
            self._error = error
            if was_in_transaction and not state.journal.in_transaction:
                raise  # what others have written before is lost
            is_refusal = isinstance(error, (ArtReplayError, PastHorizon)) and not isinstance(error, StudyUnavailable)
            if state.seq != before and (self._is_whole or not is_refusal):
                raise

    def end(self, error: BaseException | None) -> None:
        """Note that the work is durable, or that it failed because of an error of this call or another."""
        if not self.over and error is not None and self._error is None:
            words = str(error) if isinstance(error, StudyUnavailable) else f"a call was cut short: {error!r}"
            self._error = StudyUnavailable(words)
            self._error.__cause__ = error
        self.over = True
        self.wake()

    def outcome(self) -> Any:
        """Return the result, or raise the error."""
        if self._error is not None:
            try:
                raise self._error
            finally:
                self._error = None  # its traceback would keep this call and the study in memory
        return self._result

    def leave(self) -> None:
        """Drop the error, because nobody waits for it and its traceback could hold a lock of the database."""
        self.over, self._error = True, None

    def wait(self, seconds: float) -> None:
        """Wait until the call is over or the thread is woken, at most `seconds`."""
        self._lock.acquire(timeout=seconds)

    def wake(self) -> None:
        """Wake the waiting thread."""
        with suppress(RuntimeError):  # raised if no thread is waiting
            self._lock.release()


class StudyConnection:
    """A study that this process owns, or only looks at."""

    def __init__(self, journal: Journal, clock: Clock, history: AnyHistory | None, factory: Factory | None) -> None:
        """Do not call this. Use `Study.create` or `Study.open`."""
        self._journal, self._clock, self._history, self._factory = journal, clock, history, factory
        self._state: StudyState | None = None
        self._committed = 0  # the last entry that is durable
        self._learnt: tuple[Fold, int] | None = None  # a policy that outlives a state that was dropped
        self._process = os.getpid()
        self._mutex = threading.RLock()
        self._waiting: deque[Call] = deque()
        self._inside = 0  # the number of the thread that is in a call
        self._broken: StudyUnavailable | None = None  # why a part of `together` could not be done
        self._next = 0  # the thread that should do the next calls, or 0 for any thread
        self._until = 0.0  # ... and until when to wait for that thread
        self._closed = False

    def close(self) -> None:
        """Write a snapshot and release the study. Without this nothing is lost, but the next start takes longer.

        >>> import artreplay as ar
        >>> study = ar.Study.create(":memory:", ar.KLUCB(2, horizon=100), wait=None)
        >>> study.close()
        """
        if self._process != os.getpid():  # the study stays with the process that opened it
            self._closed = True
            return
        with self._mutex:
            if self._closed:
                return
            with suppress(ArtReplayError, OSError):  # a snapshot only saves time
                if self._state is not None and not self._journal.read_only:
                    self._state.keep_snapshot()
                    self._commit()
            self._closed = True
            self._state = self._learnt = None
            self._journal.close()
            self._journal.disown()
        LOGGER.info("%s is closed", self._journal.name)

    def __del__(self) -> None:
        """Release a study that nobody refers to any more, without a snapshot."""
        self._journal.close()
        self._journal.disown()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ready(self) -> StudyState:
        """Return the study in memory, and read it again if a commit failed."""
        if self._closed:
            raise StudyUnavailable(f"{self._journal.name} is closed. Open it again")
        if self._process != os.getpid():
            raise StudyUnavailable(f"{self._journal.name} was opened by the parent of this process. Open it again here")
        journal = self._journal
        if self._state is None:
            if not journal.read_only and journal.epoch < 0:
                journal.check()
                journal.take_over()
            self._state = StudyState(journal, self._clock, self._history, self._factory)
            self._committed = self._state.seq
            if self._learnt is not None:
                self._state.go_on_with(*self._learnt)
                self._learnt = None
        elif journal.read_only:
            self._state.catch_up()
        return self._state

    def _read(self, look: Callable[[StudyState], T]) -> T:
        if self._inside == threading.get_ident():
            return self._do_part(look)
        try:
            with self._mutex:
                result = look(self._ready())
                if self._waiting:  # else threads that only read could keep writers waiting for ever
                    self._do_all()
                return result
        finally:
            self._wake_next()

    def _look(self, look: Callable[[Journal, list[Arm], int], T]) -> T:
        """Look at the journal up to now through a second connection, so that nobody waits for a long list."""
        second = None if self._inside == threading.get_ident() else self._journal.reader()
        if second is None:
            return self._read(lambda state: look(state.journal, state.arms, state.seq))
        arms, until = self._read(lambda state: (list(state.arms), state.seq))
        try:
            return look(second, arms, until)
        finally:
            second.close()

    def _write(self, work: Callable[[StudyState], T], is_whole: bool = False) -> T:
        """Do the work in this thread, and return when it is durable."""
        if self._inside == threading.get_ident():
            return self._do_part(work)
        call = Call(work, is_whole)
        try:
            with self._mutex:
                self._do_all(call)
        finally:
            self._wake_next()
        result: T = call.outcome()
        return _raised(result)

    def _share(self, work: Callable[[StudyState], T]) -> T:
        """Do short work in this thread, or let another thread do it in one commit with all waiting work."""
        if self._inside == threading.get_ident():
            return self._do_part(work)
        call, is_first = Call(work), not self._waiting
        try:
            self._waiting.append(call)
            if self._next not in (0, call.thread) and (left := self._until - perf_counter()) > 0.0:
                # Another thread should do this. If it does not come, the first thread that waits does it.
                call.wait(left if is_first else _PATIENCE)
            while not call.over:
                if self._inside:
                    call.wait(_PATIENCE)
                    continue
                try:
                    with self._mutex:  # `with`, because Ctrl-C could leave the lock held after a plain acquire
                        if not call.over:
                            self._do_all()
                finally:
                    self._wake_next()
        except BaseException:  # Ctrl-C: drop this call if nobody has begun it
            call.leave()
            raise
        result: T = call.outcome()
        return _raised(result)

    def _do_part(self, work: Callable[[StudyState], T]) -> T:
        """Do a part of `together`. If it makes the study unavailable, all of `together` fails, whatever follows."""
        try:
            if self._broken is not None:
                raise self._broken
            return _raised(work(self._ready()))
        except StudyUnavailable as error:
            self._broken = error
            raise

    def _wake_next(self) -> None:
        """Wake the first waiting thread, because the study is free."""
        with suppress(IndexError):
            self._waiting[0].wake()

    def _do_all(self, first: Call | None = None) -> None:
        """Do a call, and then all calls that wait. Commit once, and tell every thread.

        Threads often call again right away. The thread that is told last then finds the others waiting, and should do
        the next calls. Another thread does them if it does not come. Under load this is also fairer than one thread
        doing all the work.
        """
        calls = [] if first is None else [first]
        self._inside, self._broken = threading.get_ident(), None
        try:
            if first is not None:
                first.do(self._ready)
                if self._broken is not None:  # the caller caught this error, but what was written before it is gone
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
            self._keep_snapshot()
        except BaseException as error:
            with NoInterrupt():
                if calls:  # otherwise Ctrl-C came during the commit, and all is well
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
        if self._state is not None:
            self._committed = self._state.seq

    def _keep_snapshot(self) -> None:
        """Write a snapshot if the last one is old, in a commit of its own, when all calls are durable."""
        if self._state is not None and self._state.snapshot_is_due:
            try:
                self._state.keep_snapshot()
                self._commit()
            except BaseException:
                self._forget()
                raise

    def _forget(self) -> None:
        """Drop the study in memory, which is no longer what the database holds. The next call reads it again.

        The policy stays, unless it has learnt something that was undone.
        """
        state, self._state = self._state, None
        if state is not None:
            self._learnt = state.fold_until(self._committed)
            self._history = state.outside_log  # which may have grown since the study was opened
        self._journal.undo()


def _raised(result: T) -> T:
    """Return the result of a call, or raise it if it is a refusal that had to be counted first."""
    if isinstance(result, StudyRefused):
        raise result
    return result
