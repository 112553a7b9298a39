"""Logging policies, which say how the log of a simulation was made: who chose its arms, and what is wrong with it.

Give one as `log=` to an environment of arms. Those with `of=` change what another logging policy writes down.

>>> import artreplay as ar
>>> logs = ar.environments.logs
>>> env = ar.environments.KArmed(10, log=logs.Poisoned(30, arm="best", reward=0.0, of=logs.EpsilonGreedy(0.2)))
>>> len(env.draw_history(1_000))
1000
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, NamedTuple, Protocol, cast, get_args, runtime_checkable

import numpy as np

from artreplay.algorithms import ArmAlgorithm
from artreplay.compiling import Floats, Ints, Loop, Words, copied
from artreplay.environments.past_rounds import ArmName, PastRounds, run_whole
from artreplay.errors import InvalidParameter, checked_number
from artreplay.parameters import NotNegative, Share, Size, check_fields
from artreplay.replay import AGAIN, DONE, as_base
from artreplay.streams import LOG_WEIGHT, fold, normal, uniforms

__all__ = [
    "Adaptive",
    "Biased",
    "Confounded",
    "Drifted",
    "EpsilonGreedy",
    "Logged",
    "LoggingPolicy",
    "Missing",
    "Permuted",
    "Poisoned",
    "Shares",
]

LogShares = Literal["uniform", "random"]
Offsets = float | Mapping[ArmName | Literal["others"], float] | Sequence[float]

# Which draws of a row, and of an arm, are for what.
ARM, EXPLORES, HIDDEN, PREFERS, PLACE = range(5)
WEIGHT, NOISE, SIGN, NEW_LABEL, LOGGER = range(5)


class Logged(NamedTuple):
    """Contains what a logging policy wrote down, row by row."""

    arms: Ints
    rewards: Floats
    chances: Floats | None = None  # with which these arms were chosen, where that is known


@runtime_checkable
class LoggingPolicy(Protocol):
    """Makes logs. It must not keep anything from one log to the next."""

    def draw(self, past: PastRounds) -> Logged:
        """Draw a log."""


LogLike = str | Sequence[float] | LoggingPolicy | Callable[[PastRounds], tuple[Ints, Floats]]


@dataclass(frozen=True)
class Shares:
    """Each row has an arm at random. `log="uniform"`, `"random"` and a list of weights are short for it.

    Parameters
    ----------
    weights
        How often each arm is in a log: `"uniform"` for equally often, `"random"` for weights drawn in each world, or a
        list of weights.
    bad_share
        The share of the log on the worst fifth of the arms. The other arms share the rest in the proportions of
        `weights`.

    >>> Shares([1, 2, 1])
    Shares(weights=(1.0, 2.0, 1.0), bad_share=None)
    """

    weights: LogShares | Sequence[float] = "uniform"
    bad_share: Share | None = None

    def __post_init__(self) -> None:
        if isinstance(self.weights, str):
            if self.weights not in get_args(LogShares):
                raise InvalidParameter(
                    f'log must be "uniform", "random", one weight per arm or one of ar.environments.logs, got '
                    f"{self.weights!r}"
                )
        else:
            object.__setattr__(self, "weights", _checked_weights(self.weights))
        check_fields(self)

    @property
    def is_uniform(self) -> bool:
        """Whether all arms are equally likely."""
        return self.weights == "uniform" and self.bad_share is None

    def check_arms(self, n_arms: int) -> None:
        """Refuse another number of arms than there are weights."""
        if not isinstance(self.weights, str) and len(self.weights) != n_arms:
            _refuse_weights(self.weights, n_arms)
        if self.bad_share is not None and n_arms < 2:
            raise InvalidParameter(f"bad_share needs at least 2 arms, got {n_arms}")

    def cumulative(self, keys: Words, means: Floats) -> Floats:
        """Return the cumulative shares of arms with these means, a row for each key; no columns if all are equal."""
        if self.is_uniform:
            return np.empty((len(keys), 0))
        self.check_arms(means.shape[1])
        weights = np.ones(means.shape)
        if not isinstance(self.weights, str):
            weights[:] = self.weights
        elif self.weights == "random":
            weights = uniforms(keys, LOG_WEIGHT, means.shape[1])
        if self.bad_share is not None:
            n_bad = max(1, means.shape[1] // 5)
            for row, mean in zip(weights, means, strict=True):
                order = np.argsort(mean, kind="stable")
                for group, share in ((order[:n_bad], self.bad_share), (order[n_bad:], 1.0 - self.bad_share)):
                    total = row[group].sum()
                    row[group] = row[group] / total * share if total > 0 else share / len(group)
        shares = np.cumsum(weights, axis=1)
        shares /= shares[:, -1:]
        for row, weight in zip(shares, weights, strict=True):
            row[np.flatnonzero(weight)[-1] :] = 1.0  # rounding must not leave a gap above the last arm
        return shares

    def draw(self, past: PastRounds) -> Logged:
        """Draw a log."""
        draws = past.uniforms(ARM)
        if self.is_uniform:
            arms = np.minimum((draws * past.n_arms).astype(np.int64), past.n_arms - 1)
            return Logged(arms, past.rewards(arms), np.full(past.rows, 1.0 / past.n_arms))
        means = past.mean_of_arms if self.bad_share is not None else np.zeros(past.n_arms)
        shares = self.cumulative(np.array([past.key], np.uint64), means[None, :])[0]
        arms = np.searchsorted(shares, draws, side="right")
        return Logged(arms, past.rewards(arms), np.diff(shares, prepend=0.0)[arms])


@dataclass(frozen=True)
class EpsilonGreedy:
    """Mostly the arm that looks best, and now and then any arm. Where rounds have contexts, the best of the context.

    Parameters
    ----------
    epsilon
        The share of rows in which the arm is drawn uniformly.
    noise
        The standard deviation of what the policy believes of the mean of an arm. It is drawn once in each world.

    >>> import artreplay as ar
    >>> env = ar.environments.KArmed(2, means=[0.2, 0.8], log=EpsilonGreedy(0.1))
    >>> log = env.draw_history(8)
    >>> [log.unit(row) for row in range(8)]
    [0, 1, 1, 0, 1, 1, 1, 1]
    """

    epsilon: Share = 0.1
    noise: NotNegative = 0.0

    def __post_init__(self) -> None:
        check_fields(self)

    def draw(self, past: PastRounds) -> Logged:
        """Draw a log."""
        any_arm = np.minimum((past.uniforms(ARM) * past.n_arms).astype(np.int64), past.n_arms - 1)
        believed = past.means
        if self.noise > 0.0:
            with np.errstate(over="ignore"):  # counters of random draws may wrap around
                errors = [
                    normal(past.key, LOG_WEIGHT, NOISE, arm, 0.0, self.noise, -math.inf, math.inf)
                    for arm in range(past.n_arms)
                ]
            believed = believed + np.array(errors)
        best = believed.argmax(axis=1)
        arms = np.where(past.uniforms(EXPLORES) < self.epsilon, any_arm, best)
        chances = self.epsilon / past.n_arms + np.where(arms == best, 1.0 - self.epsilon, 0.0)
        return Logged(arms, past.rewards(arms), chances)


@dataclass(frozen=True, eq=False)
class Adaptive:
    """An algorithm that learned as it went, from the rewards that it wrote down.

    Parameters
    ----------
    algorithm
        An algorithm over arms without contexts, such as `ar.UCB1(10)` or `ar.MonUCB(10, horizon=500)`. Each world
        starts from a fresh copy.

    >>> import artreplay as ar
    >>> env = ar.environments.KArmed(3, means=[0.1, 0.9, 0.1], log=Adaptive(ar.ThompsonSampling(3)))
    >>> log = env.draw_history(300)
    >>> sum(log.unit(row) == 1 for row in range(300)) > 200
    True
    """

    algorithm: ArmAlgorithm

    def __post_init__(self) -> None:
        base = self.algorithm
        if not isinstance(base, ArmAlgorithm) or base.contextual or base.width != 1:
            raise InvalidParameter(
                f"algorithm must be one of ar over arms that plays one arm a round without contexts, got {base!r}"
            )

    def draw(self, past: PastRounds) -> Logged:
        """Draw a log."""
        base = cast(ArmAlgorithm, as_base(self.algorithm))
        if base.n_arms != past.n_arms:
            raise InvalidParameter(f"the algorithm of a log has {base.n_arms} arms, and there are {past.n_arms}")
        earned = np.column_stack([past.rewards(np.full(past.rows, arm)) for arm in range(past.n_arms)])
        component = copied(base.component)
        component.reseed(np.uint64(fold(int(past.key), LOGGER)))
        arms = np.empty(past.rows, np.int64)
        if past.rows:
            run_whole(play_the_past, component, base.scaled(earned), arms, np.empty(1, np.int64))
        return Logged(arms, earned[np.arange(past.rows), arms])


@dataclass(frozen=True)
class Missing:
    """Some arms are not in the log, because nobody could play them then.

    Parameters
    ----------
    arms
        An arm, or several: its number, "best" or "worst".
    of
        Who chose among the other arms.

    >>> import artreplay as ar
    >>> env = ar.environments.KArmed(3, means=[0.1, 0.9, 0.5], log=Missing("best"))
    >>> sorted(env.draw_history(100).labels)
    [0, 2]
    """

    arms: ArmName | Sequence[ArmName] = "best"
    of: LogLike = "uniform"

    def draw(self, past: PastRounds) -> Logged:
        """Draw a log."""
        named = self.arms if isinstance(self.arms, Iterable) and not isinstance(self.arms, str) else [self.arms]
        kept = np.setdiff1d(np.arange(past.n_arms), [past.number_of(arm) for arm in named])
        if len(kept) == 0:
            raise InvalidParameter("a log must have at least one arm, and all are missing")
        found = drawn_log(self.of, past.among(kept))
        return found._replace(arms=kept[found.arms])


@dataclass(frozen=True)
class Biased:
    """The arms earned more or less when the log was made than they do today.

    Parameters
    ----------
    by
        How much more an arm earned on average: a number, whose sign is drawn for each arm in each world; a number for
        each arm; or a dict with "best", "worst", "others" or numbers of arms. Means stay in the range of rewards.
    of
        Who chose the arms.

    >>> import artreplay as ar
    >>> env = ar.environments.KArmed(2, means=[0.2, 0.9], log=Biased({"best": -0.9}))
    >>> log = env.draw_history(200)
    >>> {float(log.rewards[row]) for row in range(200) if log.unit(row) == 1}
    {0.0}
    """

    by: Offsets
    of: LogLike = "uniform"

    def draw(self, past: PastRounds) -> Logged:
        """Draw a log."""
        return drawn_log(self.of, past.with_means(past.means + offsets_of(self.by, past)))


@dataclass(frozen=True)
class Drifted:
    """The means of the arms moved while the log was made, evenly, from row to row. They end where they are today.

    Parameters
    ----------
    by
        How much more an arm earned on average in the first row, as for `Biased`.
    of
        Who chose the arms.

    >>> import artreplay as ar
    >>> env = ar.environments.KArmed(2, means=[0.0, 1.0], log=Drifted([1.0, -1.0]))
    >>> log = env.draw_history(2_000)
    >>> best = [log.rewards[row] for row in range(2_000) if log.unit(row) == 1]
    >>> bool(np.mean(best) < 0.6), bool(np.mean(best[-100:]) > 0.8)
    (True, True)
    """

    by: Offsets
    of: LogLike = "uniform"

    def draw(self, past: PastRounds) -> Logged:
        """Draw a log."""
        left = 1.0 - np.arange(past.rows) / max(past.rows, 1)
        return drawn_log(self.of, past.with_means(past.means + left[:, None] * offsets_of(self.by, past)))


@dataclass(frozen=True)
class Permuted:
    """The rewards of an arm stand in the log under another arm.

    Parameters
    ----------
    shift
        Arm a is written down as arm a + `shift`, counted in a circle. By default each world draws a permutation.
    of
        Who chose the arms.

    >>> import artreplay as ar
    >>> log = ar.environments.KArmed(3, means=[1.0, 0.0, 0.0], log=Permuted(shift=1)).draw_history(60)
    >>> {log.unit(row) for row in range(60) if log.rewards[row] == 1}
    {1}
    """

    shift: Size | None = None
    of: LogLike = "uniform"

    def __post_init__(self) -> None:
        check_fields(self)

    def draw(self, past: PastRounds) -> Logged:
        """Draw a log."""
        found = drawn_log(self.of, past)
        if self.shift is not None:
            return found._replace(arms=(found.arms + self.shift) % past.n_arms)
        return found._replace(arms=np.argsort(past.uniforms_of_arms(NEW_LABEL), kind="stable")[found.arms])


@dataclass(frozen=True)
class Confounded:
    """Something that the log does not show raised the rewards of half of the rows, and one arm was preferred in these.

    Over all rows each arm has its true mean, but the log makes the preferred arm look better than it is, and the others
    worse.

    Parameters
    ----------
    strength
        By how much the means of all arms were higher in one half of the rows, and lower in the other, as far as the
        range of rewards allows.
    arm
        The arm that was preferred: its number, "best" or "worst".
    share
        How often it was played for that reason in the better half.
    of
        Who chose the arms otherwise.

    >>> import artreplay as ar
    >>> log = ar.environments.KArmed(2, [0.5, 0.5], log=Confounded(0.4, arm=0, share=0.8)).draw_history(2_000)
    >>> earned = {arm: [log.rewards[row] for row in range(2_000) if log.unit(row) == arm] for arm in (0, 1)}
    >>> bool(np.mean(earned[0]) - np.mean(earned[1]) > 0.3)
    True
    """

    strength: NotNegative = 0.2
    arm: ArmName = "worst"
    share: Share = 0.5
    of: LogLike = "uniform"

    def __post_init__(self) -> None:
        check_fields(self)

    def draw(self, past: PastRounds) -> Logged:
        """Draw a log."""
        low, high = past.reward_range
        is_good = past.uniforms(HIDDEN) < 0.5
        change = np.minimum(self.strength, np.minimum(past.means - low, high - past.means))
        seen = past.with_means(past.means + np.where(is_good, 1.0, -1.0)[:, None] * change)
        arms = drawn_log(self.of, seen).arms
        prefers = is_good & (past.uniforms(PREFERS) < self.share)
        arms = np.where(prefers, past.number_of(self.arm), arms)
        return Logged(arms, seen.rewards(arms))


@dataclass(frozen=True)
class Poisoned:
    """Somebody put rows into the log.

    Parameters
    ----------
    rows
        How many rows of the log are false. A log that is no longer has no others.
    arm
        The arm of these rows: its number, "best" or "worst".
    reward
        Their reward.
    at_front
        Whether they are the first rows of the log. By default their places are drawn.
    of
        Who chose the arms of the other rows.

    >>> import artreplay as ar
    >>> log = ar.environments.KArmed(3, log=Poisoned(4, arm=2, reward=1.0, at_front=True)).draw_history(50)
    >>> [(log.unit(row), float(log.rewards[row])) for row in range(4)]
    [(2, 1.0), (2, 1.0), (2, 1.0), (2, 1.0)]
    """

    rows: Size
    arm: ArmName = "best"
    reward: float = 0.0
    at_front: bool = False
    of: LogLike = "uniform"

    def __post_init__(self) -> None:
        check_fields(self)

    def draw(self, past: PastRounds) -> Logged:
        """Draw a log."""
        low, high = past.reward_range
        if not low <= checked_number("reward", self.reward) <= high:
            raise InvalidParameter(f"reward must lie in [{low:g}, {high:g}], the range of rewards, got {self.reward}")
        found = drawn_log(self.of, past)
        order = np.arange(past.rows) if self.at_front else np.argsort(past.uniforms(PLACE), kind="stable")
        arms, rewards = found.arms.copy(), found.rewards.copy()
        arms[order[: self.rows]], rewards[order[: self.rows]] = past.number_of(self.arm), self.reward
        return found._replace(arms=arms, rewards=rewards)


def as_logging_policy(log: object, n_arms: int | None = None) -> LoggingPolicy:
    """Return the logging policy that `log=` means."""
    if isinstance(log, LoggingPolicy) and not isinstance(log, type):
        policy: LoggingPolicy = log
    elif callable(log) and not isinstance(log, type):
        policy = _Function(log)
    else:
        policy = Shares(cast(Any, log))
    if isinstance(policy, Shares) and n_arms is not None:
        policy.check_arms(n_arms)
    return policy


def drawn_log(log: object, past: PastRounds) -> Logged:
    """Draw a log by any logging policy, and refuse what is no log."""
    found = as_logging_policy(log, past.n_arms).draw(past)
    low, high = past.reward_range
    arms, rewards = np.asarray(found.arms), np.asarray(found.rewards)
    is_right = arms.dtype.kind in "iu" and rewards.dtype.kind in "iufb"
    if arms.shape != (past.rows,) or rewards.shape != (past.rows,) or not is_right:
        raise InvalidParameter(
            f"a logging policy must return {past.rows} numbers of arms and as many rewards, got {arms.dtype} of shape "
            f"{arms.shape} and {rewards.dtype} of shape {rewards.shape}"
        )
    fits = (arms >= 0) & (arms < past.n_arms) & (rewards >= low) & (rewards <= high) & np.isfinite(rewards)
    if not fits.all():
        row = int(fits.argmin())
        raise InvalidParameter(
            f"a logging policy must return arms below {past.n_arms} and finite rewards in [{low:g}, {high:g}], "
            f"got arm {arms[row]} and reward {rewards[row]} in row {row}"
        )
    return Logged(arms.astype(np.int64), rewards.astype(np.float64), found.chances)


def offsets_of(by: Offsets, past: PastRounds) -> Floats:
    """Return what is added to the mean of each arm."""
    if isinstance(by, Mapping):
        offsets = np.full(past.n_arms, checked_number("by", by.get("others", 0.0)))
        for arm, offset in by.items():
            if arm != "others":
                offsets[past.number_of(arm)] = checked_number("by", offset)
    elif isinstance(by, Real):
        offsets = np.where(past.uniforms_of_arms(SIGN) < 0.5, -float(by), float(by))
    else:
        offsets = np.asarray(by)
    if offsets.dtype.kind not in "iuf" or offsets.shape != (past.n_arms,) or not np.isfinite(offsets).all():
        raise InvalidParameter(f"by must be a finite number, or one for each of {past.n_arms} arms, got {by!r}")
    return offsets


@Loop
def play_the_past(algorithm: Any, earned: Floats, arms: Ints, proposal: Ints, cursor: Ints, limit: int) -> int:
    """Let an algorithm play the next rounds of the past, at most `limit`."""
    row = cursor[0]
    last = min(row + limit, len(arms))
    while row < last:
        algorithm.propose(proposal)
        arms[row] = proposal[0]
        algorithm.update(proposal[0], earned[row, proposal[0]])
        row += 1
    cursor[0] = row
    return DONE if row == len(arms) else AGAIN


@dataclass(frozen=True)
class _Function:
    """A function of the user's that returns arms and rewards."""

    function: Callable[[PastRounds], tuple[Ints, Floats]]

    def draw(self, past: PastRounds) -> Logged:
        found = self.function(past)
        if not isinstance(found, tuple) or len(found) not in (2, 3):
            raise InvalidParameter(f"a logging policy must return arms and rewards, got {type(found).__name__}")
        return Logged(*found)

    def __repr__(self) -> str:
        return getattr(self.function, "__qualname__", repr(self.function))


def _checked_weights(weights: Any) -> tuple[float, ...]:
    try:
        values = np.asarray(weights)
        if values.dtype.kind not in "fiub" or values.ndim != 1:
            raise ValueError
    except ValueError:
        raise InvalidParameter(
            f'log must be "uniform", "random", one weight per arm or one of ar.environments.logs, got {weights!r}'
        ) from None
    found = tuple(values.astype(np.float64).tolist())
    if not np.isfinite(values).all() or (values < 0.0).any() or values.sum() <= 0.0:
        _refuse_weights(found, len(found))
    return found


def _refuse_weights(weights: Sequence[float], n_arms: int) -> None:
    raise InvalidParameter(
        f"log must have one weight of at least 0 for each of {n_arms} arms, and one above 0, got {list(weights)}"
    )
