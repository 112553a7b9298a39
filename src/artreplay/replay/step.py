"""The one step: propose, serve, or go online. Policies and simulations repeat it; nothing else shows rows of a log."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from artreplay.compiling import UNBOUNDED, Floats, Ints, Loop, assume_nonnegative, compiled

# Where a policy stands, in one array.
USED = 0  # rows of the log shown
ROUND = 1  # online rounds
PENDING = 2  # units of the proposal that is to be played, 0 if there is none
SERVING = 3  # units of a proposal that waits for rows to be read, 0 if there is none
SLOT = 4  # ... which of them is served next
SHOWN = 5  # ... and how many were shown something
READ_UNITS = 6  # units whose cells `read_to_end` is done with
PLACES = 7  # how many of these there are
SAVE_SIZE = 3  # how many of them a saved policy has

# What can come of a piece of work. A number above 0 is none of these: it counts units to play.
(
    AGAIN,  # nothing is in the way: go on
    NEEDS_ROOM,  # arrays must grow first, or Python must compute something; a proposal may say so too
    DONE,  # there is nothing left to do
    NO_ROW,  # the cell has no unread row
    UNREAD,  # the cell may have one, which is still where the log lies
    NEEDS_ROWS,  # rows of the log must be read first
    BAD_PROPOSAL,  # a proposal has no units, or more than there is space for
    BAD_VALUE,  # what a base says of the value of an arm cannot be
    CERTAIN,  # the one unit that is proposed is played at once, whatever the unread rows say
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
    """Show the earliest unread row of a cell, as it was logged; its place, NO_ROW or UNREAD."""
    at: int = ledger.first_unread(cell)
    if at >= 0:
        ledger.show(algorithm, cell, at)
        position[USED] += 1
    return at


@compiled
def propose(algorithm: Learner, ledger: UnreadRows, proposal: Ints, round_: int, most: int) -> int:
    """Let the base write a proposal. Returns how many units it has, at most `most`, or what came of it.

    A base that is read until its choice is certain (`certified.py`) says itself when that is so.
    """
    units: int = algorithm.propose_over(ledger, proposal, round_)
    if units in (CERTAIN, BAD_VALUE, NEEDS_ROOM):
        return units
    return units if 1 <= units <= min(most, len(proposal)) else BAD_PROPOSAL


@compiled
def show(
    algorithm: Learner, ledger: UnreadRows, position: Ints, proposal: Ints, units: int, first: int, shown: int
) -> int:
    """Show the base what the log has to say of a proposal; the number of units to be played, AGAIN or NEEDS_ROWS.

    For each unit in order, the earliest unread row of the cell it lies in now is shown; when there is none for any
    unit, the proposal is played. A row that is still where the log lies is waited for, in the middle of a proposal if
    need be: then it goes on with the unit `first`, after `shown` rows.
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
    """Propose and show, or go on where rows were waited for; what came of it."""
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
    """Repeat the step until there is something to play, at most `limit` times. Returns how many units that is."""
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
        room -= width  # a step shows at most one row per unit
        limit -= 1
    return AGAIN


@Loop
def read_to_end(algorithm: Learner, ledger: UnreadRows, position: Ints, units: Ints, limit: int) -> int:
    """Show all unread rows of the cells these units lie in, cell after cell, at most `limit` rows; DONE at the end.

    When a cell divides meanwhile, those of the part that the unit lies in. `position` says which unit is next.
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
    """What was played in some rounds, one unit in each, and what it earned."""

    units: Ints
    rewards: Floats


@Loop
def take_rounds(algorithm: Learner, ledger: UnreadRows, position: Ints, rounds: Rounds, limit: int) -> int:
    """Show what was played, at most `limit` rounds; DONE at the end. `position` says which round is next."""
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
