"""The rounds in which the log of a simulation was made: what each arm would have earned, and draws to choose by."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Literal

import numpy as np

from artreplay.compiling import Floats, Ints, Loop, Slices
from artreplay.errors import InvalidParameter, checked_count
from artreplay.replay import AGAIN, DONE
from artreplay.streams import LOG_REWARD, LOG_UNIT, LOG_WEIGHT, uniforms_at

ArmName = int | Literal["best", "worst"]
Draw = Callable[[Ints, Floats | None], Floats]  # rewards of arms, one in each row, around means other than their own


class PastRounds:
    """The rounds in which a log was made. A logging policy chooses an arm in each, and writes down a reward.

    All draws depend on the world and on the number of the row alone, so every algorithm meets the same log.

    Parameters
    ----------
    key
        The key of the world.
    rows
        How many rows the log has.
    n_arms
        The number of arms.
    means
        A function that returns the mean reward of each arm in each row, with one column for each arm.
    draw
        A function that draws rewards of arms, one arm in each row. Its second argument are means to draw around in
        place of the true ones, or None.
    reward_range
        The range of the rewards.

    >>> import artreplay as ar
    >>> def alternate(past):
    ...     arms = np.arange(past.rows) % past.n_arms
    ...     return arms, past.rewards(arms)
    >>> log = ar.environments.KArmed(2, log=alternate).draw_history(4)
    >>> [log.unit(row) for row in range(4)]
    [0, 1, 0, 1]
    """

    def __init__(
        self,
        key: Any,
        rows: int,
        n_arms: int,
        means: Callable[[], Floats],
        draw: Draw,
        reward_range: tuple[float, float],
    ) -> None:
        self.key, self.rows, self.n_arms, self.reward_range = key, rows, n_arms, reward_range
        self._make_means, self._draw = means, draw

    @cached_property
    def means(self) -> Floats:
        """The mean reward of each arm in each row, with one column for each arm."""
        return self._make_means()

    @cached_property
    def mean_of_arms(self) -> Floats:
        """The mean reward of each arm over all rows."""
        if self.rows == 0:
            return np.zeros(self.n_arms)
        same = self.means.strides[0] == 0 or (self.means == self.means[:1]).all()
        average: Floats = self.means[0] if same else self.means.mean(axis=0)
        return average

    def rewards(self, arms: Ints) -> Floats:
        """Draw what an arm earned in each row.

        Parameters
        ----------
        arms
            The arm of each row.
        """
        return self._draw(arms, None)

    def uniforms(self, number: int) -> Floats:
        """Draw a number between 0 and 1 for each row.

        Parameters
        ----------
        number
            Other numbers give draws that are independent of these.
        """
        return uniforms_at(self.key, LOG_UNIT, number, np.arange(self.rows))

    def uniforms_of_arms(self, number: int) -> Floats:
        """Draw a number between 0 and 1 for each arm, once for the whole log.

        Parameters
        ----------
        number
            Other numbers give draws that are independent of these.
        """
        return uniforms_at(self.key, LOG_WEIGHT, number, np.arange(self.n_arms))

    def number_of(self, arm: ArmName) -> int:
        """Return the number of an arm. The best and the worst one are those of all rows together.

        Parameters
        ----------
        arm
            The number of an arm, "best" or "worst".
        """
        if arm == "best":
            return int(self.mean_of_arms.argmax())
        if arm == "worst":
            return int(self.mean_of_arms.argmin())
        number = checked_count("an arm of the log", arm, least=0)
        if number >= self.n_arms:
            raise InvalidParameter(f"an arm of the log must be below {self.n_arms}, the number of arms, got {number}")
        return number

    def with_means(self, means: Floats) -> PastRounds:
        """Return the same rounds as if the arms had these means, within the range of rewards.

        Parameters
        ----------
        means
            The mean reward of each arm in each row, with one column for each arm.
        """
        low, high = self.reward_range
        wanted = np.clip(np.broadcast_to(means, (self.rows, self.n_arms)), low, high)
        numbers = np.arange(self.rows)

        def draw(arms: Ints, changed: Floats | None) -> Floats:
            return self._draw(arms, wanted[numbers, arms] if changed is None else changed)

        return PastRounds(self.key, self.rows, self.n_arms, lambda: wanted, draw, self.reward_range)

    def among(self, arms: Ints) -> PastRounds:
        """Return the same rounds as if there were only these arms, numbered from 0.

        Parameters
        ----------
        arms
            The numbers of the arms to keep.
        """

        def draw(chosen: Ints, changed: Floats | None) -> Floats:
            return self._draw(arms[chosen], changed)

        return PastRounds(self.key, self.rows, len(arms), lambda: self.means[:, arms], draw, self.reward_range)


def rewards_by_law(law: Any, key: Any, arms: Ints, means: Floats) -> Floats:
    """Draw the rewards of a log around means, one for each row."""
    rewards = np.empty(len(arms))
    run_whole(draw_by_law, law, key, np.ascontiguousarray(arms, np.int64), np.ascontiguousarray(means), rewards)
    return rewards


@Loop
def draw_by_law(law: Any, key: Any, arms: Ints, means: Floats, out: Floats, cursor: Ints, limit: int) -> int:
    """Draw the next rewards of a log, at most `limit`."""
    row = cursor[0]
    last = min(row + limit, len(arms))
    while row < last:
        out[row] = law.draw(key, LOG_REWARD, arms[row], row, means[row])
        row += 1
    cursor[0] = row
    return DONE if row == len(arms) else AGAIN


def run_whole(loop: Loop[..., int], *parts: Any) -> None:
    """Run a loop until it is done. Its last arguments are where it is and how many steps it may make."""
    slices, cursor = Slices(loop, 0.0), np.zeros(1, np.int64)
    while slices.run(*parts, cursor) == AGAIN:
        pass
