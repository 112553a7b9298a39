"""The one step: propose, serve, or go online. Policies and simulations repeat it; nothing else shows samples."""

from __future__ import annotations

from typing import Any

from artreplay.compiling import Loop, compiled

# Where a policy stands, in one array.
FED = 0  # logged samples shown from front to back so far
FEED = 1  # ... and how many are to be (all for Full Start, none for the others)
USED = 2  # logged samples shown, in whichever way
ROUND = 3  # online rounds
PENDING = 4  # units of the proposal that is to be played, 0 if there is none
SERVING = 5  # units of a proposal that waits for samples to be read, 0 if there is none
SLOT = 6  # ... which of them is served next
SHOWN = 7  # ... and how many were shown something
PLACES = 8  # how many of these there are
KEPT = 5  # how many of them a saved policy has

# What a slice of a loop can end with, besides the number of units that are to be played.
AGAIN = 0  # the slice is over
NEEDS_ROOM = -1  # arrays must grow first
BAD_PROPOSAL = -2  # a proposal has no units, or more than there is space for
NEEDS_ROWS = -3  # samples must be read first

# What a ledger says when it has no row to show.
NO_ROW = -1  # the cell has no unused sample
UNREAD = -2  # the cell may have one, which is not read yet


@compiled
def step(algorithm: Any, ledger: Any, position: Any, proposal: Any) -> int:
    """Show the base what the log has to say; the number of units to be played, 0 if it was shown something.

    Full Start first shows the log from front to back. Artificial Replay shows, for each unit of a proposal in order,
    the earliest unused sample of its cell as it was logged; when there is none for any unit, the proposal is played.
    A sample that is not read yet is waited for, in the middle of a proposal if need be.
    """
    feeding = position[FED] < position[FEED]
    first = 0
    shown = 0
    if feeding:
        units = 1
    elif position[SERVING] > 0:
        units, first, shown = position[SERVING], position[SLOT], position[SHOWN]
        position[SERVING] = 0
    else:
        units = algorithm.propose(proposal)
    if units < 1 or (units > len(proposal) and not feeding):
        return BAD_PROPOSAL
    for j in range(first, units):
        if feeding:
            row = position[FED]
            position[FED] = row + 1
        else:
            row = ledger.take(algorithm, proposal[j])
        if row >= 0:
            position[USED] += 1
            algorithm.update(ledger.unit[row], ledger.reward[row])
            shown += 1
        elif row == UNREAD:
            position[SERVING], position[SLOT], position[SHOWN] = units, j, shown
            return NEEDS_ROWS
    return 0 if shown > 0 else units


@Loop
def settle(algorithm: Any, ledger: Any, position: Any, proposal: Any, feed_only: int, limit: int) -> int:
    """Steps until there is something to play, at most `limit` of them; how many units that is.

    With `feed_only` it ends, with 1, when the log has been shown from front to back: nothing is proposed.
    """
    width = len(proposal)
    room = 0
    while limit > 0:
        if feed_only == 1 and position[FED] >= position[FEED]:
            return 1
        if room < width:
            room = algorithm.room()
            if room < width:
                return NEEDS_ROOM
        units = step(algorithm, ledger, position, proposal)
        if units != 0:
            if units > 0:
                position[PENDING] = units
            return units
        room -= width  # a step shows at most one sample per unit
        limit -= 1
    return AGAIN
