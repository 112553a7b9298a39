"""All decisions of a study as columns of numbers, for a page that shows what came of them."""

from __future__ import annotations

import json
import math
import threading
from array import array
from typing import Any, NamedTuple

import numpy as np

from artreplay.compiling import Floats, Ints
from artreplay.history import Label
from artreplay.replay import decode
from artreplay.studies.decisions import value_of
from artreplay.studies.settings import Arm
from artreplay.studies.study import Study
from artreplay.studies.study_journal import Entry, Journal

NO_ARM = -1  # in the place of an arm, for points
OPEN, REWARDED, EXPIRED, VOID = range(4)  # what has become of a decision; a deferred one counts as open


class Event(NamedTuple):
    """Something that people did to a study, and when."""

    at: float  # seconds since 1970
    number: int  # of the last decision before it
    words: str


class DecisionRows(NamedTuple):
    """One row for each unit of each decision, in order."""

    number: Ints  # of the decision
    arm: Ints  # its number, or NO_ARM
    asked: Floats  # seconds since 1970, as the next two
    due: Floats  # infinite if a decision waits for ever
    answered: Floats  # when its reward came; nan without one
    state: Ints
    reward: Floats  # nan without one
    is_control: Ints


class DecisionColumns:
    """Reads the journal of a study once, and afterwards only what is new.

    >>> import artreplay as ar
    >>> study = ar.Study.create(":memory:", ar.KLUCB(arms=["red", "blue"], horizon=100), wait=None)
    >>> columns = DecisionColumns(study)
    >>> study.reward(study.decide().id, 1.0)
    >>> columns.read().reward.tolist()
    [1.0]
    >>> study.close()
    """

    def __init__(self, study: Study) -> None:
        self.study = study
        self.events: list[Event] = []
        self.arms: list[Arm] = []
        self._numbers: dict[Label, int] = {}
        self._settings: dict[str, Any] = {}
        self.seq, self.now = 0, 0.0  # the last entry that was read, and when
        self._until = 0  # the last entry to read
        self._first = array("q")  # the first row of each decision
        self._number, self._arm, self._state = array("q"), array("q"), array("q")
        self._asked, self._due, self._answered, self._reward = array("d"), array("d"), array("d"), array("d")
        self._is_control = array("q")
        self._lock = threading.Lock()

    def read(self) -> DecisionRows:
        """Read what is new in the journal, and return all columns."""
        with self._lock:
            self.study._look(self._catch_up)
            self.now = self.study._clock()
            ints = (self._number, self._arm, self._state, self._is_control)
            number, arm, state, control = (np.array(column, np.int64) for column in ints)
            floats = (self._asked, self._due, self._answered, self._reward)
            asked, due, answered, reward = (np.array(column, np.float64) for column in floats)
        return DecisionRows(number, arm, asked, due, answered, state, reward, control)

    @property
    def progress(self) -> float:
        """The share of the journal that has been read."""
        return self.seq / max(self._until, 1)

    def _catch_up(self, journal: Journal, arms: list[Arm], until: int) -> None:
        self._until = until
        self.arms, self._numbers = arms, {arm.label: number for number, arm in enumerate(arms)}
        for entry in journal.read(self.seq, tuple(_TAKE), until=until):
            _TAKE[entry.kind](self, entry)
            self.seq = entry.seq

    def _take_decision(self, entry: Entry) -> None:
        self._first.append(len(self._number))
        if entry.unit is not None and '"control"' not in (entry.body or ""):  # by far the most are like this
            self._append(entry, entry.unit, False)
            return
        body = json.loads(entry.body or "{}")
        is_control = body.get("group") == "control"
        if entry.unit is not None:
            self._append(entry, entry.unit, is_control)
            return
        action = body["action"]
        for unit in action if isinstance(action, list) else [action]:
            is_label = not isinstance(unit, dict) and bool(self._numbers)
            self._append(entry, self._numbers.get(decode(unit), NO_ARM) if is_label else NO_ARM, is_control)

    def _append(self, entry: Entry, arm: int, is_control: bool) -> None:
        self._number.append(entry.decision or 0)
        self._arm.append(arm)
        self._asked.append(entry.written)
        self._due.append(math.inf if entry.due is None else entry.due)
        self._answered.append(math.nan)
        self._state.append(OPEN)
        self._reward.append(math.nan)
        self._is_control.append(is_control)

    def _rows(self, entry: Entry) -> range:
        number = entry.decision or 0
        end = self._first[number] if number < len(self._first) else len(self._number)
        return range(self._first[number - 1], end)

    def _take_outcome(self, entry: Entry) -> None:
        value = value_of(entry)
        for place, row in enumerate(self._rows(entry)):
            self._state[row] = REWARDED if entry.kind == "reward" else EXPIRED
            if value is not None:
                self._reward[row] = value[place] if isinstance(value, list) else value
            if entry.kind == "reward" and math.isnan(self._answered[row]):
                self._answered[row] = entry.written

    def _take_part(self, entry: Entry) -> None:
        for row in self._rows(entry):
            if math.isnan(self._answered[row]):
                self._answered[row] = entry.written

    def _take_due(self, entry: Entry) -> None:
        for row in self._rows(entry):
            self._due[row] = math.inf if entry.due is None else entry.due

    def _take_void(self, entry: Entry) -> None:
        for row in self._rows(entry):
            self._state[row], self._reward[row] = VOID, math.nan

    def _take_event(self, entry: Entry) -> None:
        if entry.kind in ("retire", "return"):
            label = self.arms[entry.unit or 0].label
            words = f"{label} is {'retired' if entry.kind == 'retire' else 'back'}"
        elif entry.kind == "arms":
            labels = [str(decode(label)) for label, _ in json.loads(entry.body or "[]")]
            words = f"{labels[0]} is added" if len(labels) == 1 else f"{len(labels):,} arms are added"
        elif entry.kind == "settings":
            words = self._changed(json.loads(entry.body or "{}"))
        else:
            words = "the log has grown"
        if self._first:  # what came before the first decision is how the study began
            self.events.append(Event(entry.written, len(self._first), words))

    def _changed(self, settings: dict[str, Any]) -> str:
        """Say which settings have changed, to what."""
        before, self._settings = self._settings, settings["terms"] | settings["parameters"] | settings
        new = {name: value for name, value in self._settings.items() if before.get(name) != value}
        inside = ("terms", "parameters", "decided")  # what changes with others
        units = {"wait": " seconds"} if new.get("wait") is not None else {}
        words = [f"{name} is now {json.dumps(new[name])}{units.get(name, '')}" for name in new if name not in inside]
        return ", ".join(words) or "no change"


_TAKE = {
    "decision": DecisionColumns._take_decision,
    "reward": DecisionColumns._take_outcome,
    "expiry": DecisionColumns._take_outcome,
    "part": DecisionColumns._take_part,
    "due": DecisionColumns._take_due,
    "void": DecisionColumns._take_void,
    **dict.fromkeys(("arms", "retire", "return", "settings", "log"), DecisionColumns._take_event),
}
