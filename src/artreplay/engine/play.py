"""The loop over replications: enter a world, draw its log, then repeat the step and the rewards of what is played.

It can leave after any step and continue there, because all that says where it stands is in arrays.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from artreplay.compiling import Floats, Ints, Loop, compiled, natural
from artreplay.engine.simulated_logs import DRAW, ENTER, FEED, LOADED, PHASE, PLACE, PLAY, ROW, ROWS, STEPS, WORLD
from artreplay.replay import (
    AGAIN,
    CERTAIN,
    DONE,
    NEEDS_ROOM,
    PENDING,
    ROUND,
    USED,
    propose,
    read_cells,
    show,
)

GROWN = -30  # Python is to give back the arrays of before they grew; no step and no environment says so


@compiled
class Order(NamedTuple):
    """What is asked of every replication."""

    horizon: int
    first: Ints  # units whose cells are read to the end before anything is proposed: one of each for Full Start
    loaded: int  # samples of the log that the base has taken in before it begins


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
    by_arm: Ints  # how many samples of each arm were used; no columns where nobody wants to know
    start: Ints  # scratch: of each cell, where its queue begins; empty where nobody wants to know


@compiled
def enter(algorithm: Any, rewards: Any, memory: Any, position: Any, world: int, loaded: int) -> None:
    """Begin a replication: everything as it was at first, under this world's keys."""
    for at in range(len(memory.state)):
        memory.state[at] = memory.fresh[at]
    rewards.enter(world)
    algorithm.reseed(rewards.worlds.base_key[world])
    for at in range(len(position)):
        position[at] = 0
    position[USED] = loaded


@compiled
def meet(rewards: Any, proposal: Any, units: int, round_: int) -> int:
    """Look at the units that are to be played; AGAIN, or what is in the way."""
    for j in range(units):
        found: int = rewards.meet(proposal[j], round_, j)
        if found != AGAIN:
            return found
    return AGAIN


@compiled
def go_online(algorithm: Any, rewards: Any, record: Any, proposal: Any, units: int, world: int, round_: int) -> float:
    """Play units that were met; their expected reward."""
    expected = 0.0
    for j in range(units):
        unit = natural(proposal[j])
        expected += rewards.expected(unit, j)
        if record.actions.shape[1] > 0:
            record.actions[world, round_, j] = rewards.name(unit, j)
            if record.levels.shape[1] > 0:
                record.levels[world, round_, j] = rewards.level(j)
        algorithm.update(rewards.played(unit, j), rewards.pull(unit, round_, j))
    return expected


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
    width: int,
    limit: int,
) -> int:
    """Steps until the horizon or the limit; AGAIN, or what is in the way.

    Where the loop stands is in local variables meanwhile, which machine code keeps in registers.
    """
    steps = cursor[STEPS]
    world = natural(cursor[WORLD])
    round_ = natural(position[ROUND])
    units = position[PENDING]  # of a round that waited for a mean
    total = record.total[0]
    keep_all = record.regret.shape[1] == order.horizon
    status = AGAIN
    while steps < limit and round_ < order.horizon:
        if units == 0:
            if algorithm.room() < width:
                status = NEEDS_ROOM
                break
            steps += 1
            units = propose(algorithm, ledger, proposal, round_, width)
            if units > 0:
                units = show(algorithm, ledger, position, proposal, units, 0, 0)
            elif units == CERTAIN:
                units = 1
            if units == AGAIN:
                continue
            if units < 0:
                status, units = units, 0
                break
        playing = 1 if width == 1 else units  # so that machine code has no loop where there is one unit
        status = meet(rewards, proposal, playing, round_)
        if status != AGAIN:
            break
        expected = go_online(algorithm, rewards, record, proposal, playing, world, round_)
        total += rewards.optimum[0] - expected  # which a world of the user's own may move from round to round
        units = 0
        if keep_all or round_ == order.horizon - 1:
            at = round_ if keep_all else 0
            record.regret[world, at] = total
            record.used[world, at] = position[USED]
        round_ += 1
    cursor[STEPS] = steps
    position[ROUND] = round_
    position[PENDING] = units
    record.total[0] = total
    return status


@compiled
def play_worlds(
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
    width: int,
    limit: int,
) -> int:
    """Play the worlds of `rewards`, one after another, at most `limit` steps and about `ROWS` rows of a log.

    Full Start first shows the rows in `queue`, which is `ledger` itself where they are shown cell by cell. An action
    has at most `width` units.
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
            enter(algorithm, rewards, memory, position, cursor[WORLD], order.loaded)
            log.begin(queue)
            record.total[0] = 0.0
            cursor[ROW] = 0
            cursor[PHASE] = DRAW
        elif phase in (DRAW, PLACE):
            rows += log.advance(queue, rewards, cursor)
        elif phase == LOADED:
            cursor[PHASE] = FEED
            for cell in range(len(record.start)):
                record.start[cell] = queue.next[cell]
        elif phase == FEED:
            before = position[USED]
            fed = read_cells(algorithm, queue, position, order.first, limit - cursor[STEPS])
            cursor[STEPS] += position[USED] - before
            if fed != DONE:
                return fed
            cursor[PHASE] = PLAY
        else:
            wrong = play_rounds(algorithm, ledger, rewards, order, record, position, cursor, proposal, width, limit)
            if wrong != AGAIN:
                return wrong
            if position[ROUND] >= order.horizon:
                if len(record.start) > 0:
                    queue.count_used(record.start, record.by_arm[cursor[WORLD]])
                cursor[PHASE] = ENTER
                cursor[WORLD] += 1
    return DONE


@Loop
def play_one(
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
    """`play_worlds` where one unit is played at a time: to know this in advance makes much shorter machine code."""
    return play_worlds(
        algorithm, ledger, queue, rewards, log, memory, order, record, position, cursor, proposal, 1, limit
    )


@Loop
def play_several(
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
    """`play_worlds` where an action is a list of units."""
    width = record.actions.shape[2]
    return play_worlds(
        algorithm, ledger, queue, rewards, log, memory, order, record, position, cursor, proposal, width, limit
    )
