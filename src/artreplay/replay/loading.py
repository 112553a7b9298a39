"""What is learnt from front to back, without a ledger: totals, rows with their contexts, and rounds with theirs."""

from __future__ import annotations

from typing import Any

from artreplay.compiling import Floats, Ints
from artreplay.replay.drive import Drive
from artreplay.replay.log import BaseLog
from artreplay.replay.step import PENDING, ROUND, SERVING, USED


def load_totals(drive: Drive, log: BaseLog) -> None:
    """Let the base take in the rows of totals that are left, in order."""
    for row, unit, samples, total in log.totals_after(log.loaded):
        with drive.whole():
            drive.load(unit, samples, total)
            log.loaded = row + 1
    drive.renew()


def load_rows(drive: Drive, log: BaseLog) -> None:
    """Let the base learn from the rows that are left, in order and each with its context."""
    for part in log.parts(log.loaded):
        shown, slices = 0, drive.base.learn_rows(part.units, part.rewards, part.contexts, played=False)
        while shown < len(part.rows):
            with drive.whole():
                before, shown = shown, next(slices)
                drive.position[USED] += shown - before
                log.loaded = int(part.rows[shown - 1]) + 1


def take_rounds_in_contexts(drive: Drive, units: Ints, rewards: Floats, contexts: Any) -> None:
    """Let the base learn what was played in many rounds, in order and each in its context."""
    shown = 0
    for done in drive.base.learn_rows(units, rewards, contexts, played=True):
        drive.position[ROUND] += done - shown
        shown = done
    drive.position[PENDING] = drive.position[SERVING] = 0
