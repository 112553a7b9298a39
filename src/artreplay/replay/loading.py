"""Logs that are loaded from front to back, and never enter a ledger: totals, and rows with their contexts."""

from __future__ import annotations

from artreplay.replay.drive import Drive
from artreplay.replay.log import BaseLog
from artreplay.replay.step import USED


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
        shown, slices = 0, drive.base.learn_log(part.units, part.rewards, part.contexts)
        while shown < len(part.rows):
            with drive.whole():
                before, shown = shown, next(slices)
                drive.position[USED] += shown - before
                log.loaded = int(part.rows[shown - 1]) + 1
