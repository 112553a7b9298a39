"""The arguments of a simulation, checked once before anything is played."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal, NamedTuple

import numpy as np

from artreplay.algorithms import UCB1, Algorithm, ArmAlgorithm, GridUCB, PointAlgorithm, RandomAllocation
from artreplay.cells.boxes import checked_space
from artreplay.compiling import Floats, Ints, Words
from artreplay.environments import (
    ArmEnvironment,
    ContextEnvironment,
    OwnEnvironment,
    PointEnvironment,
    is_own_environment,
)
from artreplay.errors import InvalidParameter, checked_count
from artreplay.history import Contexts, History, Totals
from artreplay.replay import (
    Base,
    BaseLog,
    ComponentBase,
    Drift,
    ObjectBase,
    Policy,
    Relation,
    as_base,
    checked_relation,
    warn_of_short_horizon,
)
from artreplay.streams import fold, fold_each

Start = Literal["artificial-replay", "full-start", "ignorant"]
Keep = Literal["all", "final"]
DriftValue = float | Mapping[Any, float]
StoppingRule = Callable[[Policy], Any]  # returns the arm to recommend, or None to go on


class Outputs(NamedTuple):
    """Arrays for the results, with a row for each replication."""

    regret: Floats
    used: Ints
    actions: Ints
    levels: Ints  # numbers of levels
    rewards: Floats  # as the base sees them
    by_arm: Ints  # samples used of each arm
    boxes: Ints  # how many boxes an algorithm over points has in the end
    stopped: Floats  # rounds played before a rule stopped; nan if none did
    recommended: Ints  # the arm that a rule recommended, else −1
    lost: Floats  # how much less than the best arm it earns


@dataclass(frozen=True)
class Setting:
    """What is simulated, after all checks."""

    user_base: Any  # as the user passed it
    base: Base  # ready for the log; replications start with copies of it
    env: ArmEnvironment | PointEnvironment
    start: Start
    history: History | Totals | None  # the log that all replications use, or None if each draws its own
    rows: int
    horizon: int
    replications: int
    seed: int
    first: int  # the number of the first replication
    rounds: Ints | None  # the rounds to keep: None for all, an empty array for the last one
    user_drift: DriftValue
    drift: Drift
    relation: Relation | None
    stop: StoppingRule | None
    totals: list[tuple[int, int, float]]  # arms, samples and sums that the base takes in first

    @property
    def width(self) -> int:
        """The largest number of units in an action."""
        return self.env.width

    @property
    def keep_all(self) -> bool:
        """Whether more than the last round is kept."""
        return self.rounds is None or len(self.rounds) > 0

    @property
    def levels(self) -> tuple[float, ...] | None:
        """The levels of effort of units, or None if they have none."""
        return self.env.levels if isinstance(self.env, PointEnvironment) else None

    @property
    def asks_policies(self) -> bool:
        """Whether policies must play it and no loop can: a plain object, an own world or rule, or late rewards."""
        env, base = self.env, self.base
        if self.relation is not None or self.stop is not None:
            return True
        is_plain = isinstance(env, OwnEnvironment) and (env.has_delays or not env.is_compilable)
        return is_plain or isinstance(base, ObjectBase)

    @property
    def draws_logs_singly(self) -> bool:
        """Whether each replication has a log of its own that no loop can draw."""
        env = self.env
        return (
            isinstance(env, ArmEnvironment) and self.history is None and self.rows > 0 and not env.draws_logs_in_loops
        )

    def shows_log(self, base: Base) -> bool:
        """Whether the whole log is shown before anything is proposed."""
        return self.start == "full-start" or (self.start != "ignorant" and base.reads_whole_log)

    def describe_units(self) -> str:
        """Say in a few words, for error messages, what can be played."""
        return (
            f"the {self.env.n_arms} arms" if isinstance(self.env, ArmEnvironment) else "the points of the environment"
        )

    def outputs(self) -> Outputs:
        """Make the arrays for the results of all replications."""
        size, rounds = self.replications, self.horizon if self.keep_all else 1
        shape = (size, self.horizon if self.keep_all else 0, self.width)
        arms = self.env.n_arms if self.keep_all and isinstance(self.env, ArmEnvironment) else 0
        has_gaps = self.asks_policies or self.width > 1  # otherwise a loop writes every entry
        return Outputs(
            regret=np.zeros((size, rounds)),
            used=np.zeros((size, rounds), np.int64),
            actions=np.full(shape, -1, np.int64) if has_gaps else np.empty(shape, np.int64),
            levels=np.full(shape if self.levels is not None else (size, 0, self.width), -1, np.int64),
            rewards=np.full(shape, np.nan) if has_gaps else np.empty(shape),
            by_arm=np.zeros((size, arms), np.int64),
            boxes=np.zeros(size, np.int64),
            stopped=np.full(size, np.nan),
            recommended=np.full(size, -1, np.int64),
            lost=np.full(size, np.nan),
        )

    def numbers(self, batch: range) -> Ints:
        """Return the numbers of the replications of a batch, which their draws depend on."""
        return np.arange(batch.start, batch.stop) + self.first

    def base_keys(self, numbers: Ints) -> Words:
        """Return the keys of the base's own draws in these replications."""
        seed = getattr(self.base.thing, "seed", 0)  # a user's own object may lack one
        return fold_each(fold(self.seed, max(int(seed), 0) if isinstance(seed, Integral) else 0), numbers)


def checked_setting(
    base: object,
    env: object,
    start: Start,
    history: int | History | Totals,
    horizon: int,
    replications: int,
    seed: int,
    first: int,
    keep: Keep | Sequence[int],
    drift: DriftValue,
    relation: Relation | None,
    stop: StoppingRule | None,
) -> Setting:
    """Check the arguments of `simulate`."""
    if not isinstance(env, (ArmEnvironment, PointEnvironment)):
        if not is_own_environment(env):
            offers = "n_arms, mean(arm, round) and reward(arm, round, u)"
            raise InvalidParameter(f"env must be one of ar.environments, or offer {offers}, got {env!r}")
        env = OwnEnvironment(env)
    rounds = _checked_rounds(keep, horizon)
    if checked_relation(relation) is not None and start != "artificial-replay":
        raise InvalidParameter(f'relation needs start="artificial-replay", got {start!r}')
    _check_stop(stop, env)
    ready = as_base(base, plain=relation is not None)
    _check_base(ready, env)
    log = history if isinstance(history, (History, Totals)) else None
    rows = len(history) if isinstance(history, (History, Totals)) else checked_count("history", history, least=0)
    _check_contexts(ready, env)
    if log is not None:
        _check_log(ready, env, log)
    if isinstance(env, OwnEnvironment):
        env.rows = rows
    has_log = start != "ignorant"
    if has_log and isinstance(ready, Algorithm) and ready.wants_totals:
        if log is None:
            raise InvalidParameter('prior="log" is fitted to a log. Pass history= as a History, not as a number')
        ready.take_totals(*BaseLog(ready, log, "error").totals())
    allowed = _checked_drift(drift, ready, log) if has_log else Drift(0.0, ready)
    if has_log and isinstance(ready, Algorithm) and ready.counts_log and ready.log_rows is None:
        ready.count_log(rows if log is None else BaseLog(ready, log, "error", allowed).rows_to_count())
        warn_of_short_horizon(ready, rows)
    return Setting(
        user_base=base,
        base=ready,
        env=env,
        start=start,
        history=log,
        rows=rows if has_log else 0,
        horizon=horizon,
        replications=replications,
        seed=seed,
        first=checked_count("first_replication", first, least=0),
        rounds=rounds,
        user_drift=drift if has_log else 0.0,
        drift=allowed,
        relation=relation,
        stop=stop,
        totals=_rows_of_totals(ready, log) if isinstance(log, Totals) and has_log else [],
    )


def _rows_of_totals(base: Base, totals: Totals) -> list[tuple[int, int, float]]:
    """Return the arm, the samples and the sum of each row of totals, as the base sees them."""
    part = BaseLog(base, totals, "error").whole
    if part is None or part.samples is None:
        return []
    return list(zip(part.units.tolist(), part.samples.tolist(), part.rewards.tolist(), strict=True))


def _checked_drift(drift: DriftValue, base: Base, history: History | Totals | None) -> Drift:
    """Return the allowances of the log, and prepare the base for them."""
    allowed = Drift(drift, base, history is not None and history.has_allowances)
    if history is not None:
        BaseLog(base, history, "error", allowed)
    elif allowed.leaves_out_arms:
        raise InvalidParameter(
            "drift must be less than the range of rewards if history= is a number. Pass the log as a History"
        )
    if allowed.is_there:
        base.allow_drift()
    return allowed


def _checked_rounds(keep: object, horizon: int) -> Ints | None:
    """Return the rounds to keep: None for all, an empty array for the last one."""
    if isinstance(keep, str) and keep in ("all", "final"):
        return None if keep == "all" else np.empty(0, np.int64)
    if isinstance(keep, str) or not isinstance(keep, (Sequence, np.ndarray)) or len(keep) == 0:
        raise InvalidParameter(f'keep must be "all", "final" or a list of rounds, got {keep!r}')
    rounds = [checked_count("a round to keep", round_, least=0) for round_ in keep]
    if max(rounds) >= horizon or sorted(set(rounds)) != rounds:
        raise InvalidParameter(f"the rounds to keep must rise and lie in 0..{horizon - 1}, got {rounds}")
    return np.array(rounds, np.int64)


# -- what must agree with the environment -----------------------------------------------------------------------------


def _check_base(ready: Base, env: ArmEnvironment | PointEnvironment) -> None:
    """Refuse a base that plays other units than the environment, or takes other rewards."""
    base, is_for_points = ready.thing, isinstance(ready, PointAlgorithm)
    if is_for_points != isinstance(env, PointEnvironment) and not (
        isinstance(ready, ObjectBase) and isinstance(env, PointEnvironment)
    ):
        raise InvalidParameter(f"{env!r} is for algorithms over {'arms' if is_for_points else 'points'}, got {base!r}")
    if isinstance(ready, ObjectBase) and isinstance(env, PointEnvironment):
        return  # the actions of a plain object are checked when it plays
    low, high = env.reward_range if isinstance(env, ArmEnvironment) else (0.0, 1.0)
    if isinstance(ready, PointAlgorithm) and isinstance(env, PointEnvironment):
        _check_space(ready, env)
    if ready.reward_range[0] > low or ready.reward_range[1] < high:
        got = f"[{ready.reward_range[0]:g}, {ready.reward_range[1]:g}]"
        raise InvalidParameter(f"reward_range must cover the environment's [{low:g}, {high:g}], got {got}")
    if isinstance(env, ArmEnvironment) and isinstance(ready, (ArmAlgorithm, ComponentBase)):
        is_own = isinstance(ready, ComponentBase)  # a user's component may play fewer units than it has width for
        name = type(base).__qualname__ if is_own else "the algorithm"
        if ready.width > env.budget or (ready.width < env.budget and not is_own):
            plays = f"{name} plays {'up to ' if is_own else ''}{ready.width} arms in a round"
            raise InvalidParameter(f"{plays}, and the environment expects {env.budget}")
        if ready.n_arms < env.n_arms or (ready.n_arms > env.n_arms and not is_own):
            raise InvalidParameter(f"{name} has {ready.n_arms} arms, and the environment has {env.n_arms}")


def frozen_contexts(base: Base) -> Contexts | None:
    """Return the contexts that an algorithm hears of. An object of the user's own may hear of any."""
    return base.contexts if isinstance(base, Algorithm) else None


def _check_stop(stop: object, env: ArmEnvironment | PointEnvironment) -> None:
    """Refuse what is no rule for stopping, and worlds without a single best arm to recommend."""
    if stop is None:
        return
    if not callable(stop):
        raise InvalidParameter(f"stop must be a function of a policy that returns an arm or None, got {stop!r}")
    if not isinstance(env, ArmEnvironment) or isinstance(env, ContextEnvironment):
        raise InvalidParameter(f"stop needs a world of arms without contexts, and {env!r} is another")


def _check_contexts(ready: Base, env: ArmEnvironment | PointEnvironment) -> None:
    """Refuse a world that lacks what a base wants to know of each round."""
    if not ready.contextual:
        return
    name, contexts = type(ready.thing).__qualname__, frozen_contexts(ready)
    if not isinstance(env, ContextEnvironment):
        raise InvalidParameter(
            f"{name} needs a world with contexts, such as ar.environments.LinearContexts, and {env!r} has none"
        )
    for column in () if contexts is None else contexts.columns:
        if column not in env.contexts.columns:
            listed = ", ".join(map(repr, env.contexts.columns))
            raise InvalidParameter(f"{name} needs the column {column!r}, and the columns of {env!r} are {listed}")


def _check_space(base: PointAlgorithm, env: PointEnvironment) -> None:
    """Refuse an algorithm with another space, other levels or another budget than the environment."""
    for name in ("dim", "levels", "box", "budget", "max_units"):
        mine, theirs = getattr(base, name, None), getattr(env, name)
        if name == "box":
            mine, theirs = _edges(base), _edges(env)
        if mine != theirs:
            raise InvalidParameter(f"the algorithm has {name} {mine}, and the environment has {theirs}")


def _edges(space: PointAlgorithm | PointEnvironment) -> tuple[tuple[float, float], ...]:
    """Return the box of an algorithm or an environment, as one (low, high) pair per axis."""
    low, high = checked_space(space.box, space.dim)
    return tuple(zip(low.tolist(), high.tolist(), strict=True))


def _check_log(base: Base, env: ArmEnvironment | PointEnvironment, history: History | Totals) -> None:
    """Refuse a log of units that the environment does not have, or of rewards that the base cannot take."""
    if isinstance(history, Totals):
        BaseLog(base, history, "error")  # `_check_base` has made sure that the arms are those of the environment
        return
    judge = base if isinstance(base, Algorithm) else space_of(env)
    judge.numbers_of(history, skip=False)
    base.rewards_of(history)


def space_of(env: ArmEnvironment | PointEnvironment) -> Algorithm:
    """Make an algorithm over the environment's units. It only says what can be logged and played, and never plays."""
    if isinstance(env, ArmEnvironment):
        return UCB1(env.n_arms)
    if env.levels is None or env.budget is None:
        return GridUCB(env.dim, horizon=1, cells_per_side=1, box=env.box)
    return RandomAllocation(env.dim, env.levels, env.budget, env.max_units or 1, cells_per_side=1, box=env.box)
