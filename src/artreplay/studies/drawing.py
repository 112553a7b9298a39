"""How likely a rule that draws was to choose each action: its posteriors at every decision, from the journal alone."""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from artreplay.algorithms import RandomChoice, ThompsonSampling
from artreplay.history import Totals
from artreplay.replay import decode
from artreplay.studies.chances import chances_of
from artreplay.studies.decisions import details_of
from artreplay.studies.settings import Arm
from artreplay.studies.study_journal import Entry, Journal
from artreplay.studies.study_state import StudyState

MAX_ARMS = 100  # above this a propensity takes longer than the decision did
KINDS = ("arms", "retire", "return", "log", "decision", "due", "reward", "expiry", "observation", "void")


class DrawingRule(NamedTuple):
    """An algorithm that draws, and the totals of its log by the number of its rows."""

    base: Any
    totals: dict[int, Totals]


class Draws:
    """The samples that a rule has seen of each arm, open decisions as failures, as the journal goes on.

    `chance` is how likely the rule was to choose the action of each decision, nan where that is not known.
    """

    def __init__(self, journal: Journal, arms: Sequence[Arm], until: int, rule: DrawingRule) -> None:
        self._numbers = {arm.label: number for number, arm in enumerate(arms)}
        self._base, self._totals = rule
        self._n, self._total, self._open = (np.zeros(len(arms)) for _ in range(3))
        self._is_there = np.zeros(len(arms), np.bool_)
        self._logged = (self._n, self._total)
        self._made: dict[int, tuple[int | None, bool]] = {}  # of each decision: its arm, and whether it is open
        self._earned: dict[int, tuple[int, float]] = {}
        self._known: Any = None  # the last posteriors, and the chances under them
        self.chance = array("d")
        for entry in journal.read(kinds=KINDS, until=until):
            self._take(entry)

    def propensity(self, made: Entry) -> float | None:
        """Return how likely the action of a decision was, by the rule and by control together."""
        chance, details = self.chance[(made.decision or 0) - 1], details_of(made)
        if np.isnan(chance):
            return None
        holdout = details.get("holdout", 0.0)
        return float((1.0 - holdout) * chance + holdout * details.get("share", 0.0))

    def _take(self, entry: Entry) -> None:
        kind, number = entry.kind, entry.decision or 0
        if kind == "decision":
            details = details_of(entry)
            self.chance.append(self._chance(entry, details.get("among")))
            self._made[number] = entry.unit, False
            if "deferred" not in details:
                self._set_open(number, True)
        elif kind == "due":
            self._set_open(number, True)
        elif kind in ("reward", "expiry", "observation"):
            if kind != "observation":
                self._set_open(number, False)
            if entry.unit is not None and entry.reward is not None:
                value = float(self._base.scaled(entry.reward))
                self._earned[number] = entry.unit, value
                self._learn(entry.unit, value, 1.0)
        elif kind == "void":
            if number in self._earned:
                self._learn(*self._earned.pop(number), -1.0)
            self._set_open(number, False)
        elif kind == "arms":
            for label, _ in json.loads(entry.body or ""):
                self._is_there[self._numbers[decode(label)]] = True
        elif kind in ("retire", "return"):
            self._is_there[entry.unit] = kind == "return"
        elif self._totals:
            self._take_log(json.loads(entry.body or "")["rows"])
        self._known = None if kind != "decision" else self._known

    def _set_open(self, number: int, is_open: bool) -> None:
        unit, was_open = self._made[number]
        self._made[number] = unit, is_open
        if unit is not None and is_open != was_open:
            self._open[unit] += 1.0 if is_open else -1.0
            self._known = None

    def _learn(self, unit: int, value: float, sign: float) -> None:
        self._n[unit] += sign
        self._total[unit] += sign * value

    def _take_log(self, rows: int) -> None:
        totals = self._totals[rows]
        n, total = np.zeros_like(self._n), np.zeros_like(self._total)
        sums = self._base.scaled_sums(totals.sums, totals.counts)
        for label, count, sum_ in zip(totals.labels, totals.counts, sums, strict=True):
            if (arm := self._numbers.get(label)) is not None:
                n[arm], total[arm] = count, sum_
        before, self._logged = self._logged, (n, total)
        self._n, self._total = self._n + n - before[0], self._total + total - before[1]

    def _chance(self, entry: Entry, among: list[Any] | None) -> float:
        if entry.unit is None:
            return float("nan")
        allowed = self._is_there
        if among is not None:
            allowed = np.zeros_like(self._is_there)
            allowed[[self._numbers[decode(label)] for label in among]] = True
        if isinstance(self._base, RandomChoice):
            return float(allowed[entry.unit] / allowed.sum())
        if self._known is None or not np.array_equal(self._known[0], allowed):
            a, b = self._base.prior
            numbers = np.flatnonzero(allowed)
            n, total = (self._n + self._open)[numbers], self._total[numbers]
            best = np.zeros(len(allowed))
            best[numbers] = chances_of(a + total, b + np.maximum(n - total, 0.0)).best
            self._known = allowed.copy(), best
        return float(self._known[1][entry.unit])


def drawing_rule(state: StudyState) -> DrawingRule | None:
    """Return the rule of a study and its log, if it draws by chances that can be computed."""
    if not state.can_decide or len(state.arms) > MAX_ARMS:
        return None
    base = state.base.thing
    if state.base.contextual:
        return None
    if isinstance(base, RandomChoice) and base.budget == 1:
        return DrawingRule(base, {})
    if not isinstance(base, ThompsonSampling) or base.prior == "log":
        return None
    log = state.fold().log
    rows = [description["rows"] for _, description in state.logs]
    return DrawingRule(base, {} if log is None else {each: Totals.of(log.first(each)) for each in rows})
