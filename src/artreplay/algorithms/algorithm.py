"""What the named algorithms share: a thin class that checks its parameters and holds one component as its state."""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Hashable, Iterable, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np

from artreplay.cells import ArmSet
from artreplay.compiling import Floats, Ints, copied, with_room
from artreplay.compiling.growth import Growers
from artreplay.errors import InvalidAction, InvalidParameter
from artreplay.history import Label
from artreplay.streams import checked_seed, fold

RewardRange = tuple[float, float]


class ArmAlgorithm:
    """A base algorithm over finite arms: it proposes from what it has been shown.

    `propose()` gives an arm, or a list of arms where several are played at once; `update(arm, reward)` shows it one
    sample. Policies work on a copy of their own and go straight to `component`, whose arms are numbered.
    """

    coupled: ClassVar[bool] = False  # whether Artificial Replay acts exactly like Full Start
    rule: ClassVar[str] = ""  # a few words for the list of algorithms
    several: bool = False  # whether a proposal is a list
    component: Any

    def __init__(
        self, n_arms: int | None, arms: Iterable[Label] | None, reward_range: RewardRange, bounded: bool = True
    ) -> None:
        self.arm_set = ArmSet(n_arms, arms)
        self.reward_range = checked_range(reward_range)
        if bounded and self.reward_range[1] == math.inf:
            raise InvalidParameter(
                f"reward_range must be finite for {type(self).__name__}; PsiUCB with sub_gaussian takes all rewards"
            )

    @property
    def n_arms(self) -> int:
        """How many arms there are."""
        return len(self.arm_set)

    @property
    def arms(self) -> Sequence[Label]:
        """The labels of the arms; 0..n−1 where none were given."""
        return self.arm_set.labels

    @property
    def width(self) -> int:
        """The most units in one proposal."""
        return 1

    def propose(self) -> Any:
        """The arm to play next, or the list of arms."""
        out = np.empty(self.width, np.int64)
        units = self.component.propose(out)
        labels = [self.arms[arm] for arm in out[:units].tolist()]
        return labels if self.several else labels[0]

    def update(self, unit: Hashable, reward: float) -> None:
        """Show one sample."""
        arm = self.number(unit)
        if arm < 0:
            raise InvalidAction(f"{unit!r} is not an arm; the arms are {self.describe_arms()}")
        value = self.scaled(checked_reward(reward, self.reward_range))
        self.make_room(1)
        self.component.update(arm, value)

    def number(self, label: Any) -> int:
        """The number of an arm, −1 if there is no such arm."""
        return self.arm_set.number(label)

    def describe_arms(self) -> str:
        """A few words for error messages: which arms there are."""
        return self.arm_set.describe()

    def cell_of_arms(self) -> Ints:
        """The cell each arm lies in."""
        return np.arange(self.n_arms, dtype=np.int64)

    def make_room(self, need: int) -> None:
        """Let `need` more samples be shown without an array running over."""
        if self.component.room() < need:
            self.component = with_room(self.component, need, self.growers())

    def growers(self) -> Growers:
        """How parts grow that need more than a component can hold."""
        return {}

    def reseed(self, key: int) -> None:
        """Give a randomised algorithm another stream of draws; the others have nothing to change."""
        self.component.reseed(np.uint64(fold(checked_seed(key))))

    def duplicate(self) -> Self:
        """The same algorithm with a state of its own."""
        new = copy.copy(self)
        new.component = copied(self.component)
        return new

    def statistics(self) -> tuple[Ints, Floats, Floats | None]:
        """Per arm, as they stand: samples shown, their mean (nan without samples), index if there is one."""
        tally = self._tally()
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = self.unscaled(tally.totals / tally.counts)
        values = self._values()
        return tally.counts.copy(), mean, None if values is None else self.unscaled(values)

    def _tally(self) -> Any:
        return self.component.tally

    def _values(self) -> Floats | None:
        return None

    @property
    def scales(self) -> bool:
        """Whether rewards reach the component as anything but themselves."""
        return self.reward_range not in ((0.0, 1.0), (-math.inf, math.inf))

    def scaled(self, rewards: Any) -> Any:
        """Rewards of the reward range as the component sees them: in [0, 1], or as they are if unbounded."""
        low, high = self.reward_range
        return (rewards - low) / (high - low) if self.scales else rewards

    def unscaled(self, values: Any) -> Any:
        """The way back."""
        low, high = self.reward_range
        return low + values * (high - low) if self.scales else values

    def parameters(self) -> dict[str, Any]:
        """What it was made with, by the names of its constructor."""
        values = {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}
        if isinstance(self.arms, range):
            values["arms"] = None
        elif "n_arms" in values:
            values["n_arms"] = None
        return values

    def __repr__(self) -> str:
        given = {name: value for name, value in self.parameters().items() if value is not None}
        shown = ", ".join(f"{name}={_short(value)}" for name, value in given.items())
        return f"{type(self).__name__}({shown})"


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"<{'×'.join(map(str, value.shape))} array>"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def checked_range(reward_range: Any) -> RewardRange:
    """A reward range as two floats, the lower one first; both may be infinite together."""
    try:
        low, high = (float(edge) for edge in reward_range)
    except (TypeError, ValueError):
        raise InvalidParameter(f"reward_range must be a pair (low, high), got {reward_range!r}") from None
    unbounded = (low, high) == (-math.inf, math.inf)
    if not unbounded and not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InvalidParameter(f"reward_range must be finite with low < high, got ({low}, {high})")
    return low, high


def describe_range(reward_range: RewardRange) -> str:
    """For error messages: what a reward must be."""
    low, high = reward_range
    return "a finite number" if high == math.inf else f"a number in [{low:g}, {high:g}]"


def checked_reward(reward: Any, reward_range: RewardRange) -> float:
    """A reward as a plain float in the range."""
    if type(reward) is float:
        value = reward
    elif isinstance(reward, (Real, Decimal, np.bool_)) or (isinstance(reward, np.ndarray) and reward.shape == ()):
        try:
            value = float(reward)
        except OverflowError:
            value = math.inf
    else:
        raise InvalidAction(f"reward is {reward!r}, expected {describe_range(reward_range)}")
    # Written so that nan fails it.
    if not (reward_range[0] <= value <= reward_range[1] and abs(value) != math.inf):
        raise InvalidAction(f"reward is {value}, expected {describe_range(reward_range)}")
    return value
