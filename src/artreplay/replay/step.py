"""The one step: propose, show a row, or play. Policies and simulations repeat it, and nothing else shows rows."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from artreplay.compiling import UNBOUNDED, Floats, Ints, Loop, assume_nonnegative, compiled

# Positions in the array that says where a policy stands.
USED = 0  # how many rows of the log were shown
ROUND = 1  # how many online rounds were told
PENDING = 2  # how many units of the proposal are to be played, 0 if there is no decision
SERVING = 3  # how many units a proposal has that waits for rows to be read, 0 if none waits
SLOT = 4  # ... which of them comes next
SHOWN = 5  # ... and for how many a row was shown
READ_UNITS = 6  # for how many units `read_to_end` is done
PLACES = 7  # how many of these positions there are
SAVE_SIZE = 3  # how many of them, from the first, a saved policy keeps

# Results of a loop or step. A result above 0 counts units to play.
(
    AGAIN,  # go on
    NEEDS_ROOM,  # arrays must grow first, or Python must compute something; a base may return it as well
    DONE,  # there is nothing left to do
    NO_ROW,  # the cell has no unread row
    UNREAD,  # the cell may have an unread row, which is still in the store
    NEEDS_ROWS,  # rows of the log must be read first
    BAD_PROPOSAL,  # a proposal has no units, or too many
    BAD_VALUE,  # a base returned an impossible value for an arm
    CERTAIN,  # the proposed unit is played without reading on, whatever the unread rows contain
) = range(0, -9, -1)


class Learner(Protocol):
    """The part of a base that the step calls. Units are numbers."""

    def propose_over(self, ledger: UnreadRows, out: Ints, round_: int) -> int: ...
    def update(self, unit: int, reward: float) -> None: ...
    def update_logged(self, unit: int, reward: float, allowance: float) -> None: ...
    def room(self) -> int: ...


class UnreadRows(Protocol):
    """Unread rows of a log, by the cell that a unit lies in."""

    def locate(self, algorithm: Learner, unit: int) -> int: ...
    def first_unread(self, cell: int) -> int: ...
    def show(self, algorithm: Learner, cell: int, at: int) -> None: ...


@compiled
def serve(algorithm: Learner, ledger: UnreadRows, position: Ints, cell: int) -> int:
    """Show the earliest unread row of a cell, as it was logged. Return where it is, or NO_ROW or UNREAD."""
    at: int = ledger.first_unread(cell)
    if at >= 0:
        ledger.show(algorithm, cell, at)
        position[USED] += 1
    return at


@compiled
def propose(algorithm: Learner, ledger: UnreadRows, proposal: Ints, round_: int, most: int) -> int:
    """Let the base write a proposal. Return how many units it has, at most `most`, or one of the results above.

    A base that is read until its choice is certain (`certified.py`) returns CERTAIN itself.
    """
    units: int = algorithm.propose_over(ledger, proposal, round_)
    if units in (CERTAIN, BAD_VALUE, NEEDS_ROOM):
        return units
    return units if 1 <= units <= min(most, len(proposal)) else BAD_PROPOSAL


@compiled
def show(
    algorithm: Learner, ledger: UnreadRows, position: Ints, proposal: Ints, units: int, first: int, shown: int
) -> int:
    """Show the base the next rows for a proposal. Return AGAIN, NEEDS_ROWS, or the number of units to play.

    For each unit in order, this shows the earliest unread row of the cell the unit lies in now. If there is none for
    any unit, the proposal is played. If a row must first be read from the store, this stops with NEEDS_ROWS, and later
    continues with the unit `first` after `shown` rows.
    """
    for j in range(first, units):
        at = serve(algorithm, ledger, position, assume_nonnegative(ledger.locate(algorithm, proposal[j])))
        if at >= 0:
            shown += 1
        elif at == UNREAD:
            position[SERVING], position[SLOT], position[SHOWN] = units, j, shown
            return NEEDS_ROWS
    return AGAIN if shown > 0 else units


@compiled
def step(algorithm: Learner, ledger: UnreadRows, position: Ints, proposal: Ints) -> int:
    """Propose and show rows, or continue where rows were missing. Return what came of it."""
    units = position[SERVING]
    if units > 0:
        position[SERVING] = 0
        return show(algorithm, ledger, position, proposal, units, position[SLOT], position[SHOWN])
    units = propose(algorithm, ledger, proposal, position[ROUND], UNBOUNDED)
    if units < 0:
        return 1 if units == CERTAIN else units
    return show(algorithm, ledger, position, proposal, units, 0, 0)


@Loop
def settle(algorithm: Learner, ledger: UnreadRows, position: Ints, proposal: Ints, limit: int) -> int:
    """Repeat the step until there is something to play, at most `limit` times. Return how many units that is."""
    width = len(proposal)
    room = 0
    while limit > 0:
        if room < width:
            room = algorithm.room()
            if room < width:
                return NEEDS_ROOM
        units = step(algorithm, ledger, position, proposal)
        if units != AGAIN:
            if units > 0:
                position[PENDING] = units
            return units
        room -= width  # because a step shows at most one row per unit
        limit -= 1
    return AGAIN


@Loop
def read_to_end(algorithm: Learner, ledger: UnreadRows, position: Ints, units: Ints, limit: int) -> int:
    """Show all unread rows of these units' cells, cell after cell, at most `limit` rows. Return DONE at the end.

    If a cell divides meanwhile, only the part that the unit lies in is read on. `position` says which unit is next.
    """
    room = 0
    while position[READ_UNITS] < len(units):
        unit = units[position[READ_UNITS]]
        at = 0
        while at != NO_ROW:
            if limit <= 0:
                return AGAIN
            if room < 1:
                room = algorithm.room()
                if room < 1:
                    return NEEDS_ROOM
            at = serve(algorithm, ledger, position, ledger.locate(algorithm, unit))
            if at == UNREAD:
                return NEEDS_ROWS
            room -= 1
            limit -= 1
        position[READ_UNITS] += 1
    return DONE


@compiled
class Rounds(NamedTuple):
    """The unit that was played in each of several rounds, and its reward."""

    units: Ints
    rewards: Floats


@Loop
def take_rounds(algorithm: Learner, ledger: UnreadRows, position: Ints, rounds: Rounds, limit: int) -> int:
    """Show what was played, at most `limit` rounds. Return DONE at the end. `position` says which round is next."""
    room = 0
    while position[READ_UNITS] < len(rounds.units):
        if limit <= 0:
            return AGAIN
        if room < 1:
            room = algorithm.room()
            if room < 1:
                return NEEDS_ROOM
        at = position[READ_UNITS]
        algorithm.update(rounds.units[at], rounds.rewards[at])
        position[READ_UNITS] = at + 1
        position[ROUND] += 1
        room -= 1
        limit -= 1
    return DONE
