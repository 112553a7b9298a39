"""The loop over replications: enter a world, draw its log, then repeat the step and the rewards of what is played.

It can leave after any step and continue there, because all that says where it stands is in arrays.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from artreplay.compiling import Floats, Ints, Loop, compiled
from artreplay.engine.simulated_logs import DRAW, ENTER, FEED, LOADED, PHASE, PLACE, PLAY, ROW, ROWS, STEPS, WORLD
from artreplay.environments.stack import NOT_A_UNIT, PLAYABLE
from artreplay.replay.step import (
    AGAIN,
    BAD_PROPOSAL,
    NEEDS_ROOM,
    PENDING,
    ROUND,
    USED,
    read_cells,
    step,
)

# What a slice can end with, besides AGAIN, NEEDS_ROOM and BAD_PROPOSAL.
DONE = 1
NOT_AN_ARM = -11  # a unit was proposed that the environment does not have
LOG_IS_DRAWN = -12  # Python is to load it in one batch, or to put it into named cells
GROWN = -13  # Python is to give back the arrays of before they grew
NEEDS_MEAN = -14  # Python is to work out the mean reward of a point


@compiled
class Order(NamedTuple):
    """What is asked of every replication."""

    horizon: int
    first: Ints  # units whose cells are read to the end before anything is proposed: one of each for Full Start
    pause: int  # 1 if Python takes the log, once it is drawn, and does something else with it


@compiled
class Memory(NamedTuple):
    """The state of the base in one buffer, and what it is at the beginning of a replication."""

    state: Ints
    fresh: Ints
    grown: Ints  # 1 if the base has left its buffer, in one entry


@compiled
class Record(NamedTuple):
    """What is written down: every round, or the last only where there is one column. One row per replication."""

    total: Floats  # regret so far of the replication at hand, in one entry
    regret: Floats
    used: Ints
    actions: Ints
    levels: Ints  # numbers of the levels of the actions; no columns where there are none


@compiled
def enter(algorithm: Any, rewards: Any, memory: Any, position: Any, world: int) -> None:
    """Begin a replication: everything as it was at first, under this world's keys."""
    for at in range(len(memory.state)):
        memory.state[at] = memory.fresh[at]
    rewards.enter(world)
    algorithm.reseed(rewards.worlds.base_key[world])
    for at in range(len(position)):
        position[at] = 0


@compiled
def go_online(
    algorithm: Any,
    rewards: Any,
    position: Any,
    proposal: Any,
    units: int,
    world: int,
    horizon: int,
    record: Any,
) -> int:
    """Play the first units of the proposal and write the round down; AGAIN, or what is in the way."""
    round_ = position[ROUND]
    keep_all = record.regret.shape[1] == horizon
    if units > record.actions.shape[2]:
        return BAD_PROPOSAL
    for j in range(units):
        found = rewards.meet(proposal[j], round_, j)
        if found != PLAYABLE:
            position[PENDING] = units
            return NOT_AN_ARM if found == NOT_A_UNIT else NEEDS_MEAN
    mean = 0.0
    for j in range(units):
        unit = proposal[j]
        mean += rewards.expected(unit, j)
        if record.actions.shape[1] > 0:
            record.actions[world, round_, j] = rewards.name(unit, j)
            if record.levels.shape[1] > 0:
                record.levels[world, round_, j] = rewards.level(j)
        algorithm.update(rewards.played(unit, j), rewards.pull(unit, round_, j))
    record.total[0] += rewards.optimum[0] - mean
    if keep_all or round_ == horizon - 1:
        at = round_ if keep_all else 0
        record.regret[world, at] = record.total[0]
        record.used[world, at] = position[USED]
    position[ROUND] = round_ + 1
    return AGAIN


@compiled
def play_rounds(
    algorithm: Any,
    ledger: Any,
    rewards: Any,
    order: Any,
    record: Any,
    position: Any,
    cursor: Any,
    proposal: Any,
    limit: int,
) -> int:
    """Steps until the horizon or the limit; AGAIN, or what is in the way."""
    steps = cursor[STEPS]
    status = AGAIN
    if position[PENDING] > 0:  # units of a round that waited for a mean
        units = position[PENDING]
        position[PENDING] = 0
        status = go_online(algorithm, rewards, position, proposal, units, cursor[WORLD], order.horizon, record)
    while status == AGAIN and steps < limit and position[ROUND] < order.horizon:
        if algorithm.room() < len(proposal):
            status = NEEDS_ROOM
            break
        steps += 1
        units = step(algorithm, ledger, position, proposal)
        if units > 0:
            status = go_online(algorithm, rewards, position, proposal, units, cursor[WORLD], order.horizon, record)
        else:
            status = units
    cursor[STEPS] = steps
    return status


@Loop
def play(
    algorithm: Any,
    ledger: Any,
    queue: Any,
    rewards: Any,
    log: Any,
    memory: Memory,
    order: Order,
    record: Record,
    position: Ints,
    cursor: Ints,
    proposal: Any,
    limit: int,
) -> int:
    """Play the worlds of `rewards`, one after another, at most `limit` steps and about `ROWS` rows of a log.

    Full Start first shows the rows in `queue`, which is `ledger` itself where they are shown cell by cell.
    """
    rows = 0
    cursor[STEPS] = 0
    while cursor[WORLD] < len(rewards.worlds.key):
        phase = cursor[PHASE]
        if cursor[STEPS] >= limit or rows >= ROWS:
            return AGAIN
        if phase == ENTER:
            if memory.grown[0] == 1:
                return GROWN
            enter(algorithm, rewards, memory, position, cursor[WORLD])
            log.begin(queue)
            log.reopen(ledger)
            record.total[0] = 0.0
            cursor[ROW] = 0
            cursor[PHASE] = DRAW
        elif phase in (DRAW, PLACE):
            rows += log.advance(queue, rewards, cursor)
        elif phase == LOADED:
            cursor[PHASE] = FEED
            if order.pause == 1:
                cursor[PHASE] = PLAY
                return LOG_IS_DRAWN
        elif phase == FEED:
            before = position[USED]
            fed = read_cells(algorithm, queue, position, order.first, limit - cursor[STEPS])
            cursor[STEPS] += position[USED] - before
            if fed != 1:
                return fed
            cursor[PHASE] = PLAY
        else:
            wrong = play_rounds(algorithm, ledger, rewards, order, record, position, cursor, proposal, limit)
            if wrong != AGAIN:
                return wrong
            if position[ROUND] >= order.horizon:
                cursor[PHASE] = ENTER
                cursor[WORLD] += 1
    return DONE
