"""Domains in which the mean rewards of arms depend on a context, which is drawn anew in every round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from artreplay.compiling import Floats, Ints, Words
from artreplay.environments.arm_environments import ArmEnvironment, world_keys
from artreplay.environments.context_stack import ContextRewards, ContextRows, WithoutContexts
from artreplay.environments.logs import LogLike, drawn_log
from artreplay.environments.past_rounds import PastRounds, rewards_by_law
from artreplay.environments.stack import Law, WorldKeys
from artreplay.errors import InvalidParameter, checked_count
from artreplay.history import Contexts, History, Numeric
from artreplay.history.context_columns import as_contexts
from artreplay.history.context_values import context_columns
from artreplay.parameters import Count, checked
from artreplay.streams import CONTEXT, LOG_CONTEXT, THETA, uniforms, uniforms_at

ROUNDS_AHEAD = 4096  # whose contexts are drawn together
SPREAD = 0.25  # the standard deviation of the mean rewards of an arm in `LinearContexts`
REACH = 0.25  # how far from its centre an arm of `SmoothContexts` is good, as a standard deviation
MOST_OF_A_VALUE = 1.5  # what a value of a category adds to the logit of an arm, at most


class Drawn(NamedTuple):
    """Contains contexts and what each arm earns in them."""

    contexts: dict[str, Any]  # a column for each name
    means: Floats  # (context, arm)


class LoggedRows(NamedTuple):
    """Contains the rows of a log."""

    contexts: dict[str, Any]
    arms: Ints
    rewards: Floats
    chances: Floats | None  # with which these arms were chosen, where that is known


class ContextEnvironment(ArmEnvironment):
    """Has arms with Bernoulli rewards whose means depend on a context. Each round draws a context of its own.

    Regret is measured against the best arm of each context. What an arm would earn in a round is the same for every
    policy, so that comparisons are paired. An algorithm without contexts plays as if there were none. For a world of
    your own, inherit from this class and write `draw`.

    Parameters
    ----------
    n_arms
        The number of arms.
    contexts
        The columns, as an `ar.Contexts`. An algorithm may take them from here: `env.contexts`.
    n_draws
        How many uniform draws make a context.
    log
        How the log was made, as for `KArmed`.
    """

    @checked
    def __init__(self, n_arms: Count, contexts: Contexts, n_draws: Count, log: LogLike = "uniform") -> None:
        super().__init__(n_arms, 1, log, "bernoulli")
        self.contexts, self.n_draws = contexts, n_draws

    def draw(self, key: Any, draws: Floats) -> Drawn:
        """Turn uniform draws, one row for each context, into contexts and mean rewards in the world with this key."""
        raise NotImplementedError

    def rounds(self, key: Any, first: int, last: int) -> Drawn:
        """Draw the contexts of online rounds of the world with this key, from `first` to the one before `last`."""
        return self._drawn(key, CONTEXT, np.arange(first, last))

    def log_rows(self, key: Any, rows: int) -> LoggedRows:
        """Draw the log of the world with this key."""
        numbers = np.arange(rows)
        contexts, means = self._drawn(key, LOG_CONTEXT, numbers)

        def draw(arms: Ints, changed: Floats | None) -> Floats:
            return rewards_by_law(self.law, key, arms, means[numbers, arms] if changed is None else changed)

        past = PastRounds(key, rows, self.n_arms, lambda: means, draw, self.reward_range)
        return LoggedRows(contexts, *drawn_log(self.log, past))

    def draw_history(self, size: int, seed: int = 0, replication: int = 0) -> History:
        """Draw the log that `simulate(seed=seed)` uses in one replication, to look at it or to use it elsewhere.

        >>> LinearContexts(3, dim=2).draw_history(5, seed=1).context_names
        ('x0', 'x1')
        """
        keys = world_keys(seed, np.array([checked_count("replication", replication, least=0)]))
        rows = self.log_rows(keys[0], checked_count("size", size, least=0))
        return History(rows.arms, rows.rewards, contexts=rows.contexts)

    def history_of(self, rewards: Any, rows: int, base: Any) -> History:
        """Draw the log of a world with the labels of a base, and with contexts if the base hears of them."""
        logged = self.log_rows(rewards.key[0], rows)
        labels = list(base.arms) if hasattr(base, "arms") else list(range(self.n_arms))
        contexts = as_contexts(logged.contexts, rows) if base.contextual else None
        return History.from_columns(logged.rewards, labels, logged.arms, contexts=contexts)

    def _drawn(self, key: Any, purpose: int, numbers: Ints) -> Drawn:
        return self.draw(key, uniforms_at(key, purpose, np.arange(self.n_draws), numbers[:, None]))

    def worlds(self, keys: Words, base_keys: Words) -> Any:
        """Return the replications with these keys."""
        return WorldKeys(keys, base_keys)

    def stack(self, worlds: Any, law: Law | None = None, contexts: Contexts | None = None, horizon: int = 1) -> Any:
        """Return the rewards of these worlds for `horizon` rounds, for a base that hears of `contexts`, if of any."""
        ahead = min(horizon, ROUNDS_AHEAD)
        return ContextRewards(
            worlds,
            WithoutContexts() if contexts is None else ContextRows(np.zeros((ahead, contexts.width))),
            key=worlds.key[:1].copy(),
            n_segments=1 if contexts is None else contexts.n_segments,
            mean=np.zeros((ahead, self.n_arms)),
            at_hand=np.zeros(2, np.int64),
            round=np.zeros(1, np.int64),
            optimum=np.zeros(1),
            law=self.law if law is None else law,
        )

    def draw_ahead(self, rewards: ContextRewards, contexts: Contexts | None) -> Drawn:
        """Draw the rounds that these rewards lack, from the one that was asked for, as `contexts` encodes them."""
        first = int(rewards.round[0])
        drawn = self.rounds(rewards.key[0], first, first + len(rewards.mean))
        rewards.mean[:] = drawn.means
        if contexts is not None:
            rewards.contexts.encoded[:] = contexts.encode(drawn.contexts)
        rewards.at_hand[:] = first, first + len(rewards.mean)
        return drawn

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.n_arms} arms, {len(self.contexts.columns)} columns>"


class LinearContexts(ContextEnvironment):
    """Has `dim` columns, uniform on [−1, 1], and means 1/2 + w·x, clipped to [0, 1]. Each arm draws its own w.

    >>> LinearContexts(5, dim=10)
    <LinearContexts: 5 arms, 10 columns>
    """

    @checked
    def __init__(self, n_arms: Count, dim: Count, log: LogLike = "uniform") -> None:
        super().__init__(n_arms, Contexts({f"x{at}": Numeric(-1, 1) for at in range(dim)}), dim, log)

    def draw(self, key: Any, draws: Floats) -> Drawn:
        """Draw the numbers, and add them up with the weights of each arm."""
        x = 2.0 * draws - 1.0
        weights = 2.0 * uniforms(np.array([key]), THETA, self.n_arms * self.n_draws).reshape(self.n_arms, -1) - 1.0
        length = np.sqrt(_summed(weights * weights))
        weights *= SPREAD * np.sqrt(3.0) / length[:, None]
        means = np.stack([0.5 + _summed(x * own) for own in weights], axis=1)
        return Drawn({f"x{at}": x[:, at] for at in range(self.n_draws)}, np.clip(means, 0.0, 1.0))


class SmoothContexts(ContextEnvironment):
    """Has `dim` columns, uniform on [0, 1]. Each arm is good near a point of its own: .9 there, .1 far away.

    >>> SmoothContexts(5)
    <SmoothContexts: 5 arms, 2 columns>
    """

    @checked
    def __init__(self, n_arms: Count, dim: Count = 2, log: LogLike = "uniform") -> None:
        super().__init__(n_arms, Contexts({f"x{at}": Numeric(0, 1) for at in range(dim)}), dim, log)

    def draw(self, key: Any, draws: Floats) -> Drawn:
        """Draw the numbers, and see how near they are to the point of each arm."""
        points = uniforms(np.array([key]), THETA, self.n_arms * self.n_draws).reshape(self.n_arms, -1)
        squares = np.stack([_summed((draws - point) ** 2) for point in points], axis=1)
        means = 0.1 + 0.8 * np.exp(-squares / (2.0 * REACH**2))
        return Drawn({f"x{at}": draws[:, at] for at in range(self.n_draws)}, means)


class CategoryContexts(ContextEnvironment):
    """Has a category for each of `sizes`, with that many values, equally likely.

    Each value adds something of its own to the logit of each arm.

    >>> CategoryContexts(3, sizes=[4, 2]).contexts
    <Contexts: c0 of 4 values; c1 of 2 values>
    """

    @checked
    def __init__(self, n_arms: Count, sizes: Sequence[int] = (5, 4, 3), log: LogLike = "uniform") -> None:
        self.sizes = [checked_count("the size of a category", size, least=2) for size in sizes]
        values = {f"c{at}": [f"v{value}" for value in range(size)] for at, size in enumerate(self.sizes)}
        super().__init__(n_arms, Contexts(categories=values), len(self.sizes), log)

    def draw(self, key: Any, draws: Floats) -> Drawn:
        """Draw the values, and add up what each is worth to each arm."""
        size = sum(self.sizes)
        effects = MOST_OF_A_VALUE * (2.0 * uniforms(np.array([key]), THETA, self.n_arms * size) - 1.0)
        of_value = effects.reshape(self.n_arms, size).T
        logits, columns, first = np.zeros((len(draws), self.n_arms)), {}, 0
        for at, (name, values) in enumerate(self.contexts.categories.items()):
            codes = np.minimum((draws[:, at] * len(values)).astype(np.int64), len(values) - 1)
            columns[name] = np.array(values)[codes]
            logits += of_value[first + codes]
            first += len(values)
        return Drawn(columns, 1.0 / (1.0 + np.exp(-logits)))


class Classification(ContextEnvironment):
    """Has an arm for each class of labelled rows, and draws contexts from these rows. `from_classification` makes it.

    Parameters
    ----------
    X, y, log
        As for `from_classification`.
    """

    @checked
    def __init__(self, X: Any, y: Any, log: LogLike = "uniform") -> None:
        columns = _varying(X)
        self.labels, self._class = np.unique(np.asarray(y), return_inverse=True)
        rows = len(next(iter(columns.values())))
        if self._class.shape != (rows,):
            raise InvalidParameter(f"y must have one label for each of {rows} rows of X, got {len(self._class)}")
        if len(self.labels) < 2:
            raise InvalidParameter(f"y must have at least 2 different labels, got {len(self.labels)}")
        self._columns = columns
        super().__init__(len(self.labels), Contexts.from_table(columns), 1, log)

    def draw(self, key: Any, draws: Floats) -> Drawn:
        """Draw rows of the table. The arm of the right label earns 1, and all others 0."""
        rows = np.minimum((draws[:, 0] * len(self._class)).astype(np.int64), len(self._class) - 1)
        means = (self._class[rows, None] == np.arange(self.n_arms)).astype(np.float64)
        return Drawn({name: column[rows] for name, column in self._columns.items()}, means)


def from_classification(X: Any, y: Any, log: LogLike = "uniform") -> Classification:
    """Turn labelled rows into a world: an arm for each label, reward 1 for the right one, contexts drawn from the rows.

    Parameters
    ----------
    X
        The rows: an array of numbers, whose columns are then called x0, x1 and so on, or a mapping or frame with named
        columns. Columns that are the same in every row are left out.
    y
        The label of each row. Arm a stands for the a-th label in sorted order, `env.labels[a]`.
    log
        How the log was made, as for `KArmed`.

    >>> from_classification([[0.0, 3.0], [1.0, 3.0], [0.2, 3.0]], ["no", "yes", "no"])
    <Classification: 2 arms, 1 columns>
    """
    return Classification(X, y, log)


def _varying(X: Any) -> dict[str, Any]:
    """Return the columns of a table that are not the same in every row."""
    if isinstance(X, (np.ndarray, list, tuple)):
        array = np.asarray(X)
        if array.ndim != 2 or array.dtype.kind not in "fiub":
            raise InvalidParameter(f"X must be a table of numbers, or have named columns, got shape {array.shape}")
        X = {f"x{at}": array[:, at].astype(np.float64) for at in range(array.shape[1])}
    found: dict[str, Any] = {}
    for name, column in context_columns(X).items():
        values = np.array(column.values, object)[column.codes] if column.numbers is None else column.numbers
        if len(values) and any(value != values[0] for value in values):
            found[name] = values
    if not found:
        raise InvalidParameter("X must have a column whose values differ, got none")
    return found


def _summed(terms: Floats) -> Floats:
    """Add up each row, in a fixed order."""
    total: Floats = np.zeros(len(terms))
    for at in range(terms.shape[1]):
        total += terms[:, at]
    return total
