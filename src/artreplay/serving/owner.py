"""The one thread that writes to a study. Requests that wait at the same time share a commit."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeVar

from artreplay.errors import ArtReplayError, StudyRefused, StudyUnavailable
from artreplay.studies import Study

T = TypeVar("T")

MAX_TOGETHER = 500  # calls in one commit, so that a commit stays short
CLOSING_SECONDS = 1.0  # after which windows that are over are closed, whenever no call waits
OWN_SECONDS = 0.5  # how long one attempt to become the owner lasts
_log = logging.getLogger("artreplay.serving")


class WaitingCall(NamedTuple):
    """What a request wants done, and where its result goes."""

    work: Callable[[Study], Any]
    requests: Sequence[str]  # of decisions that the work makes or rewards
    result: asyncio.Future[Any]


class Owner:
    """A study that this process owns, or waits to own.

    Parameters
    ----------
    name
        The name of the study in addresses.
    place
        The file or the address of the study.
    algorithm
        The function that makes its algorithm, if it is the user's own.
    """

    def __init__(self, name: str, place: str, algorithm: str | None = None) -> None:
        self.name, self.place, self._algorithm = name, place, algorithm
        self.study: Study | None = None
        self.batches = self.calls = 0  # commits so far, and the calls in them
        self._read: Callable[[Study], None] = lambda _: None
        self._problem: str | None = None  # why the study cannot be opened, if it is not only in use
        self._closes = time.monotonic() + CLOSING_SECONDS  # when to close windows next
        self._waiting: SimpleQueue[WaitingCall | None] = SimpleQueue()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"study {name}", daemon=True)

    def own(self, seconds: float) -> None:
        """Open the study for writing, and wait at most `seconds` for another process that owns it."""
        study = Study.open(self.place, algorithm=self._algorithm, timeout=seconds)
        try:
            _ = study.base
        except Exception as error:
            study.close()
            if isinstance(error, StudyUnavailable):  # its algorithm was not named, so it can only be looked at
                raise StudyRefused(f"{self.name} cannot be served, because {error.in_shell}") from None
            raise
        self.study = study

    def give_up(self) -> None:
        """Close a study that was opened before the service could start."""
        if self.study is not None:
            self.study.close()

    def start(self, read: Callable[[Study], None] | None = None) -> None:
        """Start the thread. It waits for the study if it is not open yet, and reads it in another thread then."""
        self._read = read or self._read
        self._thread.start()

    def stop(self) -> None:
        """Finish all calls that wait, and close the study."""
        self._stopping.set()
        self._waiting.put(None)
        self._thread.join()

    async def call(self, work: Callable[[Study], T], *requests: str | None) -> T:
        """Do work with the study, and return its result once it is durable. `requests` are those it will look up."""
        self._owned()
        names = [request for request in requests if request is not None and request.isprintable()]  # others are refused
        result: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.put(WaitingCall(work, names, result))
        return await result

    def _owned(self) -> Study:
        if self.study is None:
            raise StudyUnavailable(
                self._problem or f"another process still owns {self.name}. This one takes over when it ends"
            )
        return self.study

    async def look(self, work: Callable[[Study], T]) -> T:
        """Read from the study in a thread of its own. Long lists come over a second connection and keep nobody."""
        return await asyncio.to_thread(work, self._owned())

    # -- the thread -------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while self.study is None and not self._stopping.is_set():
            try:
                self.own(OWN_SECONDS)
                _log.info("%s: this process owns the study now", self.name)
            except StudyUnavailable:
                self._problem = None
                self._stopping.wait(OWN_SECONDS)
            except Exception as error:  # an algorithm of the user's own may raise anything
                self._problem = f"{self.name} cannot be opened: {error!r}"
                _log.error("%s", self._problem)
                self._stopping.wait(10 * OWN_SECONDS)
        if self.study is not None:
            threading.Thread(target=self._read_ahead, args=[self.study], daemon=True).start()
            with suppress(Exception):  # those who ask are told what is wrong, such as that the log is missing
                _ = self.study.policy  # folds the journal before the first decision is asked for
        while calls := self._next_calls():
            outcomes = self._done(calls)
            self.batches, self.calls = self.batches + 1, self.calls + len(calls)
            calls[0].result.get_loop().call_soon_threadsafe(_deliver, calls, outcomes)
        if self.study is not None:
            self.study.close()

    def _read_ahead(self, study: Study) -> None:
        with suppress(ArtReplayError):  # those who ask are told, and the service may stop meanwhile
            self._read(study)

    def _next_calls(self) -> list[WaitingCall]:
        """Wait for a call, and take all that wait with it. There are none once the service stops."""
        calls: list[WaitingCall] = []
        while True:
            try:
                call = self._waiting.get(timeout=max(self._closes - time.monotonic(), 0.0))
                break
            except Empty:
                self._close_windows()
                self._closes = time.monotonic() + CLOSING_SECONDS
        while call is not None:
            calls.append(call)
            if len(calls) == MAX_TOGETHER:
                return calls
            try:
                call = self._waiting.get_nowait()
            except Empty:
                return calls
        if calls:
            self._waiting.put(None)  # the service stops, after these
        return calls

    def _close_windows(self) -> None:
        """Let decisions expire whose time is over. Calls do that too, but nobody may call."""
        if self.study is not None:
            with suppress(Exception):  # those who ask are told
                self.study.change()

    def _done(self, calls: list[WaitingCall]) -> list[Any]:
        """Do calls in one commit, and return the result or the error of each. What one does wrong is its own error."""
        study = self._owned()
        requests = [request for call in calls for request in call.requests]
        try:
            return study.together(lambda inside: [_outcome(inside, call.work) for call in calls], requests)
        except StudyUnavailable as error:
            return [error] * len(calls)
        except Exception as error:  # nothing of this commit has happened, so each call is done by itself
            return [error] if len(calls) == 1 else [outcome for call in calls for outcome in self._done([call])]


def _outcome(study: Study, work: Callable[[Study], Any]) -> Any:
    try:
        return work(study)
    except StudyUnavailable:
        raise
    except ArtReplayError as error:
        return error


def _deliver(calls: list[WaitingCall], outcomes: list[Any]) -> None:
    for call, outcome in zip(calls, outcomes, strict=True):
        if call.result.cancelled():
            continue
        if isinstance(outcome, Exception):
            call.result.set_exception(outcome)
        else:
            call.result.set_result(outcome)
