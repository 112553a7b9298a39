"""The loop over replications: enter a world, draw its log, then repeat the step and the rewards of what is played.

It can leave after any step and continue there, because all that says where it stands is in arrays.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from artreplay.compiling import Floats, Ints, Loop, compiled
from artreplay.replay.step import AGAIN, BAD_PROPOSAL, FEED, NEEDS_ROOM, ROUND, USED, step

# Where the loop stands, in one array.
WORLD = 0  # the replication at hand, counted inside the batch
PHASE = 1
ROW = 2  # of the log, while it is drawn
STEPS = 3  # made in the last slice

ENTER, DRAW, PLACE, LOADED, PLAY = range(5)  # phases of a replication

ROWS = 1 << 18  # of a log, drawn in one slice

# What a slice can end with, besides AGAIN, NEEDS_ROOM and BAD_PROPOSAL.
DONE = 1
NOT_AN_ARM = -3  # a unit was proposed that the environment does not have
LOG_IS_DRAWN = -4  # Python is to load it in one batch
GROWN = -5  # Python is to give back the arrays of before they grew


@compiled
class Order(NamedTuple):
    """What is asked of every replication."""

    horizon: int
    rows: int  # of the log, if it is to be drawn
    feed: int  # samples that are shown from front to back
    pause: int  # 1 if Python loads the log itself


@compiled
class Memory(NamedTuple):
    """The state of the base in one buffer, and what it is at the beginning of a replication."""

    state: Ints
    fresh: Ints
    grown: Ints  # 1 if the base has left its buffer, in one entry
    arms: Ints  # scratch: the arm of each row of the log


@compiled
class Record(NamedTuple):
    """What is written down: every round, or the last only where there is one column. One row per replication."""

    total: Floats  # regret so far of the replication at hand, in one entry
    regret: Floats
    used: Ints
    actions: Ints


@compiled
def enter(algorithm: Any, ledger: Any, rewards: Any, memory: Any, order: Any, position: Any, world: int) -> None:
    """Begin a replication: everything as it was at first, under this world's keys."""
    for at in range(len(memory.state)):
        memory.state[at] = memory.fresh[at]
    rewards.enter(world)
    algorithm.reseed(rewards.worlds.base_key[world])
    for at in range(len(position)):
        position[at] = 0
    position[FEED] = order.feed
    for cell in range(len(ledger.next)):
        if order.rows > 0:
            ledger.stop[cell] = 0
        ledger.next[cell] = 0 if cell == 0 else ledger.stop[cell - 1]


@compiled
def draw(ledger: Any, rewards: Any, arms: Any, first: int, last: int) -> None:
    """The arms of these rows of the log, counted by cell."""
    for row in range(first, last):
        arm = rewards.logged_arm(row)
        arms[row] = arm
        if len(ledger.cell) > 0:
            ledger.stop[ledger.cell[arm]] += 1


@compiled
def open_queues(ledger: Any) -> None:
    """From the number of samples of each cell to where its samples begin; `stop` follows as they are placed."""
    start = 0
    for cell in range(len(ledger.next)):
        count = ledger.stop[cell]
        ledger.next[cell] = start
        ledger.stop[cell] = start
        start += count


@compiled
def place(ledger: Any, rewards: Any, arms: Any, first: int, last: int) -> None:
    """Put these rows of the log where they are served from: behind the others of their cell, or as they come."""
    for row in range(first, last):
        arm = arms[row]
        at = row
        if len(ledger.cell) > 0:
            cell = ledger.cell[arm]
            at = ledger.stop[cell]
            ledger.stop[cell] = at + 1
        ledger.unit[at] = arm
        ledger.reward[at] = rewards.logged_reward(arm, row)


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
    """Play the first units of the proposal and write the round down; AGAIN, or what is wrong with the proposal."""
    round_ = position[ROUND]
    keep_all = record.regret.shape[1] == horizon
    if units > record.actions.shape[2]:
        return BAD_PROPOSAL
    mean = 0.0
    for j in range(units):
        arm = proposal[j]
        if arm < 0 or arm >= len(rewards.pulls):
            return NOT_AN_ARM
        mean += rewards.truth[arm]
        if record.actions.shape[1] > 0:
            record.actions[world, round_, j] = arm
        algorithm.update(arm, rewards.pull(arm))
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
    while steps < limit and position[ROUND] < order.horizon:
        if algorithm.room() < len(proposal):
            status = NEEDS_ROOM
            break
        steps += 1
        units = step(algorithm, ledger, position, proposal)
        if units > 0:
            status = go_online(algorithm, rewards, position, proposal, units, cursor[WORLD], order.horizon, record)
        elif units < 0:
            status = BAD_PROPOSAL
        if status != AGAIN:
            break
    cursor[STEPS] = steps
    return status


@Loop
def play(
    algorithm: Any,
    ledger: Any,
    rewards: Any,
    memory: Memory,
    order: Order,
    record: Record,
    position: Ints,
    cursor: Ints,
    proposal: Any,
    limit: int,
) -> int:
    """Play the worlds of `rewards`, one after another, at most `limit` steps and about `ROWS` rows of a log."""
    rows = 0
    cursor[STEPS] = 0
    while cursor[WORLD] < len(rewards.worlds.key):
        phase = cursor[PHASE]
        if cursor[STEPS] >= limit or rows >= ROWS:
            return AGAIN
        if phase == ENTER:
            if memory.grown[0] == 1:
                return GROWN
            enter(algorithm, ledger, rewards, memory, order, position, cursor[WORLD])
            record.total[0] = 0.0
            cursor[ROW] = 0
            cursor[PHASE] = DRAW
        elif phase in (DRAW, PLACE):
            last = min(cursor[ROW] + ROWS, order.rows)
            if phase == DRAW:
                draw(ledger, rewards, memory.arms, cursor[ROW], last)
            else:
                place(ledger, rewards, memory.arms, cursor[ROW], last)
            rows += last - cursor[ROW]
            cursor[ROW] = last
            if last == order.rows:
                cursor[ROW] = 0
                cursor[PHASE] = phase + 1
                if phase == DRAW and order.rows > 0:
                    open_queues(ledger)
        elif phase == LOADED:
            cursor[PHASE] = PLAY
            if order.pause == 1:
                return LOG_IS_DRAWN
        else:
            wrong = play_rounds(algorithm, ledger, rewards, order, record, position, cursor, proposal, limit)
            if wrong != AGAIN:
                return wrong
            if position[ROUND] >= order.horizon:
                cursor[PHASE] = ENTER
                cursor[WORLD] += 1
    return DONE
