"""The one step: propose, serve, or go online. Policies and simulations repeat it; nothing else shows rows of a log."""

from __future__ import annotations

from typing import Any

from artreplay.compiling import Loop, compiled

# Where a policy stands, in one array.
USED = 0  # rows of the log shown
ROUND = 1  # online rounds
PENDING = 2  # units of the proposal that is to be played, 0 if there is none
SERVING = 3  # units of a proposal that waits for rows to be read, 0 if there is none
SLOT = 4  # ... which of them is served next
SHOWN = 5  # ... and how many were shown something
READ_UNITS = 6  # units whose cells `read_to_end` is done with
PLACES = 7  # how many of these there are
KEPT = 3  # how many of them a saved policy has

# What a slice of a loop can end with, besides the number of units that are to be played. The engine has more, from
# −11 on.
AGAIN = 0  # the slice is over
NEEDS_ROOM = -1  # arrays must grow first, or Python must compute something; a proposal may say so too
BAD_PROPOSAL = -2  # a proposal has no units, or more than there is space for
NEEDS_ROWS = -3  # rows of the log must be read first
BAD_VALUE = -4  # what a base says of the value of an arm cannot be

CERTAIN = -100  # instead of the number of units: the one proposed is played at once, whatever the unread rows say

# What a ledger says when it has no row to show.
NO_ROW = -1  # the cell has no unread row
UNREAD = -2  # the cell may have one, which is still where the log lies

NO_ALLOWANCE = 0.0  # how far the mean behind a logged row may lie from today's


@compiled
def serve(algorithm: Any, ledger: Any, position: Any, cell: int) -> int:
    """Show the earliest unread row of a cell, as it was logged, or a block of rows; its place, NO_ROW or UNREAD."""
    at: int = ledger.first_unread(cell)
    if at >= 0:
        position[USED] += ledger.show(algorithm, at)
        ledger.use(cell, at)
    return at


@compiled
def step(algorithm: Any, ledger: Any, position: Any, proposal: Any) -> int:
    """Show the base what the log has to say. Returns the number of units to play, 0 if something was shown.

    For each unit of a proposal in order, the earliest unread row of the cell it lies in now is shown; when there is
    none for any unit, the proposal is played. A cell that has no unread row left is closed, once; a base that wants to
    know of it proposes again. A base that is read until its choice is certain (`certified.py`) says itself when that
    is so. A row that is still where the log lies is waited for, in the middle of a proposal if need be.
    """
    units = position[SERVING]
    first = 0
    shown = 0
    if units > 0:
        first, shown = position[SLOT], position[SHOWN]
        position[SERVING] = 0
    else:
        units = algorithm.propose_over(ledger, proposal, position[ROUND])
        if units == CERTAIN:
            return 1
        if units == BAD_VALUE:
            return BAD_VALUE
        if units < 1 or units > len(proposal):
            return NEEDS_ROOM if units == NEEDS_ROOM else BAD_PROPOSAL
    for j in range(first, units):
        cell = ledger.locate(algorithm, proposal[j])
        at = serve(algorithm, ledger, position, cell)
        if at >= 0:
            shown += 1
        elif at == UNREAD:
            position[SERVING], position[SLOT], position[SHOWN] = units, j, shown
            return NEEDS_ROWS
        else:
            shown += ledger.close(algorithm, cell)
    return 0 if shown > 0 else units


@Loop
def settle(algorithm: Any, ledger: Any, position: Any, proposal: Any, limit: int) -> int:
    """Repeat the step until there is something to play, at most `limit` times. Returns how many units that is."""
    width = len(proposal)
    room = 0
    while limit > 0:
        if room < width:
            room = algorithm.room()
            if room < width:
                return NEEDS_ROOM
        units = step(algorithm, ledger, position, proposal)
        if units != 0:
            if units > 0:
                position[PENDING] = units
            return units
        room -= width  # a step shows at most one row per unit
        limit -= 1
    return AGAIN


@compiled
def read_cells(algorithm: Any, ledger: Any, position: Any, units: Any, limit: int) -> int:
    """Show all unread rows of the cells these units lie in, cell after cell, at most `limit` rows; 1 at the end.

    When a cell divides meanwhile, those of the part that the unit lies in. `position` says which unit is next.
    """
    room = 0
    while position[READ_UNITS] < len(units):
        if limit <= 0:
            return AGAIN
        if room < 1:
            room = algorithm.room()
            if room < 1:
                return NEEDS_ROOM
        at = serve(algorithm, ledger, position, ledger.locate(algorithm, units[position[READ_UNITS]]))
        if at == UNREAD:
            return NEEDS_ROWS
        if at == NO_ROW:
            position[READ_UNITS] += 1
        else:
            room -= 1
            limit -= 1
    return 1


@Loop
def read_to_end(algorithm: Any, ledger: Any, position: Any, units: Any, limit: int) -> int:
    """`read_cells`, for a policy: before what is told, and all cells of a log for Full Start."""
    return read_cells(algorithm, ledger, position, units, limit)
