"""The reward stack of arms with contexts: what each arm gives in each round, whoever plays it."""

from __future__ import annotations

from typing import Any, NamedTuple

from artreplay.compiling import Floats, Ints, Words, assume_nonnegative, compiled
from artreplay.environments.stack import NEEDS_MEANS, NOT_A_UNIT, WorldKeys
from artreplay.replay import AGAIN
from artreplay.streams import REWARD


@compiled
class ContextRows(NamedTuple):
    """Tells a base contexts, one in each row, encoded as the base wants them."""

    encoded: Floats

    def tell(self, algorithm: Any, row: int) -> None:
        """Make the context of a row the current one."""
        algorithm.set_context(self.encoded[row])


@compiled
class WithoutContexts(NamedTuple):
    """Stands for contexts where there are none, or where the base hears of none."""

    width: int = 0

    def tell(self, algorithm: Any, row: int) -> None:
        """Do nothing."""


@compiled
class ContextRewards(NamedTuple):
    """Draws the rewards of one replication. What an arm earns in a round does not depend on what was played before."""

    worlds: WorldKeys
    contexts: Any  # of the rounds at hand: `ContextRows`, or none
    key: Words  # of the world that is played, in one entry
    n_segments: int  # of the base, whose units are arm · n_segments + segment; 1 where it has none
    mean: Floats  # (round, arm) of the rounds at hand
    at_hand: Ints  # the first of these rounds, and the one after the last
    round: Ints  # the one that is played or asked for, in one entry
    optimum: Floats  # the best expected reward of that round, in one entry
    law: Any  # how a reward is drawn around a mean

    def enter(self, world: int) -> None:
        """Play this world from now on, from its beginning."""
        self.key[0] = self.worlds.key[world]
        self.at_hand[0] = 0
        self.at_hand[1] = 0

    def introduce(self, algorithm: Any, round_: int) -> int:
        """Tell the base the context of a round. Returns AGAIN, or NEEDS_MEANS if it is not drawn yet."""
        self.round[0] = round_
        if round_ < self.at_hand[0] or round_ >= self.at_hand[1]:
            return NEEDS_MEANS
        self.contexts.tell(algorithm, assume_nonnegative(round_ - self.at_hand[0]))
        return AGAIN

    def meet(self, unit: int, round_: int, slot: int) -> int:
        """Look at a unit before it is played. Returns AGAIN if it is one of the arms, else NOT_A_UNIT."""
        n_arms = self.mean.shape[1]
        if unit < 0 or unit >= n_arms * self.n_segments:
            return NOT_A_UNIT
        at = assume_nonnegative(round_ - self.at_hand[0])
        best = self.mean[at, 0]
        for arm in range(1, n_arms):
            best = max(best, self.mean[at, arm])
        self.optimum[0] = best
        return AGAIN

    def expected(self, unit: int, slot: int) -> float:
        """Return the expected reward of a unit that was met."""
        mean: float = self.mean[
            assume_nonnegative(self.round[0] - self.at_hand[0]), assume_nonnegative(unit // self.n_segments)
        ]
        return mean

    def played(self, unit: int, slot: int) -> int:
        """Return the unit that the base learns from."""
        return unit

    def name(self, unit: int, slot: int) -> int:
        """Return the arm of a unit, which is written down."""
        return unit // self.n_segments

    def level(self, slot: int) -> int:
        """Return the number of its level, of which there is one."""
        return 0

    def pull(self, unit: int, round_: int, slot: int) -> float:
        """Draw the reward of an arm in a round, as the base sees it."""
        arm = assume_nonnegative(unit // self.n_segments)
        mean = self.mean[assume_nonnegative(round_ - self.at_hand[0]), arm]
        value: float = self.law.draw(self.key[0], REWARD, arm, round_, mean)
        return value
