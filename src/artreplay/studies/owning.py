"""One call at a time, and one commit for several: how threads share a study that a process owns."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Self, TypeVar

from artreplay.errors import ArtReplayError, StudyRefused, StudyUnavailable
from artreplay.replay.log import AnyHistory
from artreplay.studies.live import Live
from artreplay.studies.study_tables import Group, Tables

T = TypeVar("T")
Clock = Callable[[], float]

_MOST_IN_GROUP = 256  # calls that share a commit
_PATIENCE = 0.05  # seconds after which a thread looks for itself whether its group is committed


class Owned:
    """A study that this process owns, or only looks at."""

    def __init__(self, tables: Tables, clock: Clock, history: AnyHistory | None) -> None:
        """Use `Study.create` or `Study.open`."""
        self._tables, self._clock, self._history = tables, clock, history
        self._live: Live | None = None
        self._epoch = -1  # of the time that this process owns the study
        self._process = os.getpid()
        self._mutex = threading.RLock()
        self._group = Group()
        self._coming = 0  # calls that wait for the mutex, or have it
        self._counting = threading.Lock()
        self._inside = 0  # the thread that is in a call
        self._closed = False

    def close(self) -> None:
        """Write a snapshot and let go; a study that is not closed loses nothing but the time to fold it again."""
        with self._mutex:
            if self._closed:
                return
            with suppress(ArtReplayError):
                if self._live is not None and not self._tables.read_only and self._process == os.getpid():
                    self._live.keep_snapshot(1)
                    self._commit()
            self._closed = True
            self._live = None
            self._tables.close()
            self._tables.disown()

    def __del__(self) -> None:
        """A study that nobody has any more lets go, without a snapshot."""
        self._tables.close()
        self._tables.disown()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ready(self) -> Live:
        """The study in memory; read again if a commit failed."""
        if self._closed:
            raise StudyUnavailable(f"{self._tables.name} is closed: open it again")
        if self._process != os.getpid():
            raise StudyUnavailable(f"{self._tables.name} was opened by the process this one comes from: open it here")
        if self._live is None or self._tables.read_only:
            live = Live(self._tables, self._clock, self._history)
            if not self._tables.read_only:
                if self._epoch >= 0 and live.epoch != self._epoch:
                    raise StudyUnavailable(f"{self._tables.name} was taken over by another process: open it again")
                if self._epoch < 0:
                    live.take_over()
                    self._tables.commit()
                    self._epoch = live.epoch
            self._live = live
        return self._live

    def _read(self, look: Callable[[Live], T]) -> T:
        with self._mutex:
            return look(self._ready())

    def _write(self, work: Callable[[Live], T]) -> T:
        """Do something, and return when it is durable: whoever is last in the line commits for all before it."""
        if self._inside == threading.get_ident():  # a part of `together`
            return _raised(work(self._ready()))
        with self._counting:
            self._coming += 1
        left = False
        try:
            with self._mutex:
                group, self._inside = self._group, threading.get_ident()
                try:
                    result = work(self._ready())
                    group.writes += 1
                except BaseException as error:
                    if not isinstance(error, ArtReplayError) or isinstance(error, StudyUnavailable):
                        self._fail(error)
                    raise
                finally:
                    self._inside = 0
                    left = self._leave(group)
        finally:
            if not left:
                with self._counting:
                    self._coming -= 1
        while not group.wait(_PATIENCE):
            with self._mutex:
                self._commit()
        if group.error is not None:
            raise StudyUnavailable(str(group.error)) from group.error
        return _raised(result)

    def _leave(self, group: Group) -> bool:
        """The end of a call: commit, if no other waits to join in."""
        with self._counting:
            self._coming -= 1
            last = self._coming == 0
        if last or group.writes >= _MOST_IN_GROUP:
            self._commit()
        return True

    def _commit(self) -> None:
        """Make everything durable that was written, and tell those who wait for it."""
        group, self._group = self._group, Group()
        error: Exception | None = None
        try:
            if self._tables.in_transaction and self._live is not None:
                self._live.settle()
                self._tables.commit()
        except ArtReplayError as failed:
            error = failed
            self._forget()
        group.end(error)

    def _fail(self, error: BaseException) -> None:
        """Undo everything since the last commit; those who wait for it are told."""
        group, self._group = self._group, Group()
        self._forget()
        said = error if isinstance(error, StudyUnavailable) else StudyUnavailable(f"a call was cut short: {error!r}")
        group.end(said)

    def _forget(self) -> None:
        """What is in memory is not what is durable: it is read again when it is needed."""
        self._live = None
        self._tables.close()


def _raised(result: T) -> T:
    """What a call returns; a refusal that had to be counted is raised now."""
    if isinstance(result, StudyRefused):
        raise result
    return result
