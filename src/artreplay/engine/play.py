"""The loop over replications. For each it enters a world with its log, then repeats steps and rewards.

Arrays hold everything that says where the loop is, so it can stop after any step and continue later.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from artreplay.compiling import Floats, Ints, Loop, Words, assume_nonnegative, compiled
from artreplay.replay import AGAIN, CERTAIN, DONE, NEEDS_ROOM, PENDING, ROUND, USED, Learner, Ledger, propose, show

GROWN = -30  # Python must restore the arrays as they were before they grew; steps and environments never return this

# Positions in the array that says where the loop is.
WORLD = 0  # the current replication, counted within the batch
ENTERED = 1  # 1 once this replication has begun
STEPS = 2  # steps of this slice so far
CURSOR_SIZE = 3


class Player(Learner, Protocol):
    """The part of a base that the loop calls."""

    def reseed(self, key: np.uint64) -> None: ...


class Keys(Protocol):
    """The keys of the replications of a batch: of their worlds, and of the base's own draws."""

    @property
    def key(self) -> Words: ...
    @property
    def base_key(self) -> Words: ...


class Rewards(Protocol):
    """What an environment is to the loop. A slot is the place of a unit in an action."""

    @property
    def worlds(self) -> Keys: ...
    @property
    def optimum(self) -> Floats: ...
    def enter(self, world: int) -> None: ...
    def introduce(self, algorithm: Any, round_: int) -> int: ...
    def meet(self, unit: int, round_: int, slot: int) -> int: ...
    def expected(self, unit: int, slot: int) -> float: ...
    def played(self, unit: int, slot: int) -> int: ...
    def name(self, unit: int, slot: int) -> int: ...
    def level(self, slot: int) -> int: ...
    def pull(self, unit: int, round_: int, slot: int) -> float: ...


@compiled
class ArmLog(NamedTuple):
    """The rows of a log of arms, in order. Each replication draws its own log, unless all use the same."""

    is_drawn: bool
    unit: Ints
    reward: Floats
    allowance: Floats  # of each row; a single 0 if rows have none
    allowance_of_arm: Floats  # of each arm, if the log is drawn; empty if rows have none
    start: Ints  # of each cell: where its queue begins in the ledger

    def begin(self, ledger: Ledger, rewards: Any) -> None:
        """Draw the log of a replication, unless all share one, and mark all its rows as unread."""
        if self.is_drawn:
            rewards.draw_rows(0, len(self.unit), self.unit, self.reward)
            if len(self.allowance_of_arm) > 0:
                for row in range(len(self.unit)):
                    self.allowance[row] = self.allowance_of_arm[self.unit[row]]
            if len(ledger.unit) > 0:
                self.fill(ledger)
        for cell in range(len(self.start)):
            ledger.start[cell] = self.start[cell]

    def introduce(self, algorithm: object, row: int) -> None:
        """These rows have no contexts."""

    def fill(self, ledger: Ledger) -> None:
        """Sort the rows into the queues of a ledger."""
        for cell in range(len(self.start)):
            ledger.stop[cell] = 0
        for row in range(len(self.unit)):
            ledger.stop[assume_nonnegative(ledger.cells.find(None, self.unit[row]))] += 1
        first = 0
        for cell in range(len(self.start)):
            self.start[cell] = first
            first += ledger.stop[cell]
            ledger.stop[cell] = self.start[cell]  # grows as rows are added below
        has_allowances = len(self.allowance_of_arm) > 0
        for row in range(len(self.unit)):
            cell = assume_nonnegative(ledger.cells.find(None, self.unit[row]))
            at = assume_nonnegative(ledger.stop[cell])
            ledger.stop[cell] = at + 1
            ledger.unit[at] = self.unit[row]
            ledger.reward[at] = self.reward[row]
            if has_allowances:
                ledger.allowance[at] = self.allowance[row]

    def count_used(self, ledger: Ledger, by_arm: Ints) -> None:
        """Add the rows that a replication was shown to `by_arm`."""
        if len(ledger.unit) > 0:
            ledger.count_used(self.start, by_arm)
        else:  # all rows were shown
            for row in range(len(self.unit)):
                by_arm[self.unit[row]] += 1


@compiled
class ContextLog(NamedTuple):
    """A log of arms with contexts, drawn by Python. Its rows are in the ledger, or here if they are shown first."""

    unit: Ints
    reward: Floats
    allowance: Floats  # of each row; a single 0 where rows have none
    start: Ints  # of each cell: where its queue begins in the ledger
    contexts: Any  # of each row, as the base sees them: `ContextRows`, or none
    n_segments: int  # of the base, whose units are arm · n_segments + segment; 1 where it has none

    def begin(self, ledger: Ledger, rewards: Any) -> None:
        """Python has prepared the ledger for this replication."""

    def introduce(self, algorithm: object, row: int) -> None:
        """Tell the base the context of a row."""
        self.contexts.tell(algorithm, row)

    def count_used(self, ledger: Ledger, by_arm: Ints) -> None:
        """Add to counts by arm what a replication was shown."""
        if len(ledger.unit) > 0:
            for cell in range(len(self.start)):
                for at in range(self.start[cell], ledger.start[cell]):
                    by_arm[assume_nonnegative(ledger.unit[at] // self.n_segments)] += 1
        else:  # all of it was shown
            for row in range(len(self.unit)):
                by_arm[assume_nonnegative(self.unit[row] // self.n_segments)] += 1


@compiled
class PointLog(NamedTuple):
    """A log of points, drawn by Python. Its rows are in the ledger, or here if all of them are shown first."""

    unit: Ints
    reward: Floats
    allowance: Floats  # of each row; a single 0 if rows have none

    def begin(self, ledger: Ledger, rewards: Any) -> None:
        """Do nothing, because Python has prepared the ledger for this replication."""

    def introduce(self, algorithm: object, row: int) -> None:
        """Points have no contexts."""

    def count_used(self, ledger: Ledger, by_arm: Ints) -> None:
        """Do nothing, because there are no arms to count."""


@compiled
class Session(NamedTuple):
    """What some replications need and produce: the settings, the state of their base, and their results, row by row.

    Every round is kept, or only the last one if there is a single column.
    """

    horizon: int
    loaded: int  # samples of totals, which the base takes in first
    shows_all: bool  # whether the log is shown before anything is proposed
    state: Ints  # the state of the base, in one buffer
    fresh: Ints  # this state at the start of a replication
    grown: Ints  # one entry: 1 if the base has outgrown its buffer
    cursor: Ints  # where the loop is
    total: Floats  # one entry: the regret of the current replication so far
    regret: Floats
    used: Ints
    actions: Ints
    levels: Ints  # the number of the level of each unit; no columns without levels
    rewards: Floats  # of each unit, as the base sees them; no columns if only the last round is kept
    by_arm: Ints  # how many samples of each arm were used; no columns if nobody asked


@compiled
def enter(
    algorithm: Player,
    ledger: Ledger,
    log: ArmLog | ContextLog | PointLog,
    rewards: Rewards,
    session: Session,
    position: Ints,
) -> None:
    """Begin a replication: reset everything, and use the keys of this world."""
    world = session.cursor[WORLD]
    for at in range(len(session.state)):
        session.state[at] = session.fresh[at]
    rewards.enter(world)
    algorithm.reseed(rewards.worlds.base_key[world])
    log.begin(ledger, rewards)
    for at in range(len(position)):
        position[at] = 0
    position[USED] = session.loaded
    session.total[0] = 0.0
    session.cursor[ENTERED] = 1
    session.cursor[STEPS] += len(log.unit)


@compiled
def show_log(
    algorithm: Player, log: ArmLog | ContextLog | PointLog, session: Session, position: Ints, limit: int
) -> int:
    """Show the base the rest of the log in order. Return DONE at the end."""
    room = 0
    step = 1 if len(log.allowance) == len(log.unit) else 0
    row = position[USED] - session.loaded
    status = DONE
    while row < len(log.unit):
        if room < 1:
            room = algorithm.room()
            if room < 1:
                status = NEEDS_ROOM
                break
        if session.cursor[STEPS] >= limit:
            status = AGAIN
            break
        log.introduce(algorithm, row)
        algorithm.update_logged(assume_nonnegative(log.unit[row]), log.reward[row], log.allowance[row * step])
        session.cursor[STEPS] += 1
        room -= 1
        row += 1
    position[USED] = row + session.loaded
    return status


@compiled
def meet(rewards: Rewards, proposal: Ints, units: int, round_: int) -> int:
    """Check the units that are about to be played. Return AGAIN, or what Python must do first."""
    for j in range(units):
        status: int = rewards.meet(proposal[j], round_, j)
        if status != AGAIN:
            return status
    return AGAIN


@compiled
def go_online(
    algorithm: Player, rewards: Rewards, session: Session, proposal: Ints, units: int, world: int, round_: int
) -> float:
    """Play units that `meet` has checked. Return their expected reward."""
    expected = 0.0
    for j in range(units):
        unit = assume_nonnegative(proposal[j])
        expected += rewards.expected(unit, j)
        reward = rewards.pull(unit, round_, j)
        if session.actions.shape[1] > 0:
            session.actions[world, round_, j] = rewards.name(unit, j)
            session.rewards[world, round_, j] = reward
            if session.levels.shape[1] > 0:
                session.levels[world, round_, j] = rewards.level(j)
        algorithm.update(rewards.played(unit, j), reward)
    return expected


@compiled
def play_rounds(
    algorithm: Player,
    ledger: Ledger,
    rewards: Rewards,
    session: Session,
    position: Ints,
    proposal: Ints,
    width: int,
    limit: int,
) -> int:
    """Step until the horizon or the limit. Return AGAIN, or what Python must do first.

    Meanwhile the position is in local variables, which machine code keeps in registers.
    """
    horizon = session.horizon
    steps = session.cursor[STEPS]
    world = assume_nonnegative(session.cursor[WORLD])
    round_ = assume_nonnegative(position[ROUND])
    units = position[PENDING]  # more than 0 if a round waited for a mean
    total = session.total[0]
    keep_all = session.regret.shape[1] == horizon
    status = AGAIN
    while steps < limit and round_ < horizon:
        if units == 0:
            if algorithm.room() < width:
                status = NEEDS_ROOM
                break
            status = rewards.introduce(algorithm, round_)
            if status != AGAIN:
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
        playing = 1 if width == 1 else units  # a constant, so that machine code needs no loop for one unit
        status = meet(rewards, proposal, playing, round_)
        if status != AGAIN:
            break
        expected = go_online(algorithm, rewards, session, proposal, playing, world, round_)
        total += rewards.optimum[0] - expected  # in a user's own world the best mean may change from round to round
        units = 0
        if keep_all or round_ == horizon - 1:
            at = round_ if keep_all else 0
            session.regret[world, at] = total
            session.used[world, at] = position[USED]
        round_ += 1
    session.cursor[STEPS] = steps
    position[ROUND] = round_
    position[PENDING] = units
    session.total[0] = total
    return status


@compiled
def play_worlds(
    algorithm: Player,
    ledger: Ledger,
    log: ArmLog | ContextLog | PointLog,
    rewards: Rewards,
    session: Session,
    position: Ints,
    proposal: Ints,
    width: int,
    limit: int,
) -> int:
    """Play the worlds of `rewards`, one after another, in about `limit` steps. Return DONE, AGAIN, or what is missing.

    An action has at most `width` units.
    """
    cursor = session.cursor
    cursor[STEPS] = 0
    while cursor[WORLD] < len(rewards.worlds.key):
        if cursor[ENTERED] == 0:
            if session.grown[0] == 1:
                return GROWN
            enter(algorithm, ledger, log, rewards, session, position)
        if session.shows_all:
            status = show_log(algorithm, log, session, position, limit)
            if status != DONE:
                return status
        status = play_rounds(algorithm, ledger, rewards, session, position, proposal, width, limit)
        if status != AGAIN:
            return status
        if position[ROUND] < session.horizon:
            return AGAIN
        if session.by_arm.shape[1] > 0:
            log.count_used(ledger, session.by_arm[cursor[WORLD]])
        cursor[ENTERED] = 0
        cursor[WORLD] += 1
    return DONE


@Loop
def play_one(
    algorithm: Player,
    ledger: Ledger,
    log: ArmLog | ContextLog | PointLog,
    rewards: Rewards,
    session: Session,
    position: Ints,
    proposal: Ints,
    limit: int,
) -> int:
    """Run `play_worlds` for actions of one unit. Knowing this while compiling makes much shorter machine code."""
    return play_worlds(algorithm, ledger, log, rewards, session, position, proposal, 1, limit)


@Loop
def play_several(
    algorithm: Player,
    ledger: Ledger,
    log: ArmLog | ContextLog | PointLog,
    rewards: Rewards,
    session: Session,
    position: Ints,
    proposal: Ints,
    limit: int,
) -> int:
    """Run `play_worlds` for actions that are lists of units."""
    width = session.actions.shape[2]
    return play_worlds(algorithm, ledger, log, rewards, session, position, proposal, width, limit)
