"""`evaluate` plays policies on a log of one's own: what would they have earned?"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artreplay.algorithms import Algorithm, ArmAlgorithm
from artreplay.compiling import Floats, Ints
from artreplay.engine.evaluation import Evaluation, PolicyValue
from artreplay.errors import InvalidHistory, InvalidParameter, checked_count
from artreplay.history import History, Label, StoredLog
from artreplay.inspecting import Estimate, WeightedRewards, check_chances, mean_of
from artreplay.parameters import Seed, checked
from artreplay.replay import ArtificialReplay, FullStart
from artreplay.streams import ACCEPTANCE, fold, uniforms

SLACK = 1e-9  # of a weight, which is one over a chance

Flags = NDArray[np.bool_]
Rule = Callable[[dict[str, Any]], Label]


@checked
def evaluate(
    policies: Mapping[str, Any],
    history: Any,
    *,
    start: int | None = None,
    propensity: str | None = None,
    seed: Seed = 0,
) -> Evaluation:
    """Play policies on a log: what would they have earned in place of what was played?

    The first `start` rows are the log that a policy starts from. Those after them are played: a learning policy is
    asked, and is told the reward of a row if it chooses the arm that was logged there; all other rows are passed over
    (Li et al., 2011). Where the old policy did not choose uniformly, rows are accepted the less often, the more
    probable their choice was.

    Parameters
    ----------
    policies
        Policies by name. Each is an algorithm, or an object of your own with `propose` and `update`; or an arm of the
        log, which is always played; or a rule, a function that is given the context of a row as a dict and returns an
        arm. An algorithm's horizon is the number of rounds it will play: of a uniform log, a share of 1 over the number
        of arms.
    history
        The log, of arms. Rules, and algorithms with contexts, need those of the log.
    start
        How many rows the policies start from; half of the log by default.
    propensity
        The context column with the probability of the logged choice. Without it the shares of the arms stand in, which
        is right if the old policy chose by chance.
    seed
        The seed of what is drawn to accept rows.

    Examples
    --------
    >>> import artreplay as ar
    >>> arms, clicks = ["red", "blue"] * 1_000, [1, 0, 0, 0, 1, 1, 1, 0] * 250
    >>> found = ar.evaluate({"always red": "red", "kl-ucb": ar.KLUCB(arms=["red", "blue"], horizon=500)},
    ...                     ar.History(arms, clicks))
    >>> round(found["always red"].value.value, 2), found["always red"].rows
    (0.75, 500)
    >>> found["kl-ucb"].value.low > found.logged.value
    True
    """
    log = LogToPlay(history, start, propensity, seed)
    if not isinstance(policies, Mapping) or not policies:
        raise InvalidParameter(f"must be policies by name, got {policies!r}", parameter="policies")
    return log.evaluation({str(name): policy for name, policy in policies.items()})


class LogToPlay:
    """A log in two parts: the one that policies start from, and the one that is played."""

    def __init__(self, history: Any, start: int | None, propensity: str | None, seed: int) -> None:
        if isinstance(history, StoredLog):
            history = history.load()
        if not isinstance(history, History) or history.points is not None:
            raise InvalidHistory(f"evaluate needs the rows of a log of arms, got {history!r}")
        self.start = len(history) // 2 if start is None else checked_count("start", start, least=0)
        self.rows = len(history) - self.start
        if self.rows < 1:
            raise InvalidParameter(f"must leave rows to play, got {self.start} of {len(history)}", parameter="start")
        self.labels = history.labels
        self._numbers = {label: number for number, label in enumerate(self.labels)}
        self.first = history.first(self.start)
        self._plain_first = History.from_columns(
            self.first.rewards, self.first.labels, self.first.codes, allowances=self.first.allowances
        )
        self._rest = history.rows(np.arange(self.start, len(history)))
        self.by_shares = propensity is None
        chances = self._shares() if propensity is None else _column(history, propensity)[self.start :]
        self.propensity = propensity
        self._weights: Floats = 1.0 / chances
        self.least = float(chances.min())  # the share of rows that a policy can be told of
        keys = np.array([fold(seed)], np.uint64)
        self._keeps: Flags = uniforms(keys, ACCEPTANCE, self.rows)[0] * chances < self.least * (1.0 + SLACK)

    @property
    def rounds(self) -> int:
        """How many rounds a policy will play, about."""
        return max(int(self.rows * self.least), 1)

    def _shares(self) -> Floats:
        counts = np.bincount(self._rest.codes, minlength=len(self.labels))
        return np.asarray(counts[self._rest.codes] / self.rows)

    def logged_value(self) -> Estimate:
        """Return what was played earned a round."""
        return mean_of(self._rest.rewards, self._bounds())

    def _bounds(self, base: Any = None) -> tuple[float, float]:
        """Return the range of rewards, by the algorithm, or else by the log with 0 and 1."""
        rewards = self._rest.rewards
        low, high = min(float(rewards.min()), 0.0), max(float(rewards.max()), 1.0)
        stated = getattr(base, "reward_range", (-math.inf, math.inf))
        return (stated[0], stated[1]) if math.isfinite(stated[0]) and math.isfinite(stated[1]) else (low, high)

    def evaluation(self, policies: Mapping[str, Any]) -> Evaluation:
        """Play policies; what is wrong with one is said before any is played."""
        kinds = {name: self.kind_of(name, policy) for name, policy in policies.items()}
        values = [self.value_of(name, policy, kinds[name]) for name, policy in policies.items()]
        return Evaluation(values, self.logged_value(), self.start, self.rows, self.by_shares, self.least)

    # -- what there is to play ----------------------------------------------------------------------------------

    def kind_of(self, name: str, policy: Any) -> str:
        """Return how a policy is played: "arm", "rule", "context" or "learning"."""
        if isinstance(policy, type):
            raise InvalidParameter(f"{name!r} must be a policy that is made, got the class {policy.__name__}")
        if getattr(policy, "contextual", False) is True:
            self._contexts(name)
            return "context"
        if callable(getattr(policy, "propose", None)) or isinstance(policy, Algorithm):
            if getattr(policy, "proposes_list", False) or not getattr(policy, "arms", True):
                raise InvalidParameter(f"{name!r} must play one arm in each round, got {policy!r}")
            if isinstance(policy, Algorithm) and not isinstance(policy, ArmAlgorithm):
                raise InvalidParameter(f"{name!r} must play arms, got {policy!r}")
            return "learning"
        if callable(policy):
            self._contexts(name)
            return "rule"
        try:
            is_arm = policy in self._numbers
        except TypeError:
            is_arm = False
        if not is_arm:
            raise InvalidParameter(f"{name!r} must be an algorithm, a rule or an arm of the log, got {policy!r}")
        return "arm"

    def _contexts(self, name: str) -> Any:
        """Return the contexts of the rows that are played."""
        if self._rest.contexts is None:
            raise InvalidHistory(f"{name!r} needs the contexts of the log: History(arms, rewards, contexts=table)")
        return self._rest.contexts

    def value_of(self, name: str, policy: Any, kind: str) -> PolicyValue:
        """Return what a policy would have earned."""
        bounds = self._bounds(policy)
        if kind in ("learning", "context"):
            rewards = self._learn(policy) if kind == "learning" else self._learn_contexts(policy)
            value = mean_of(rewards, bounds)
            return PolicyValue(name, "learning", value, len(rewards), value, len(rewards), None)
        choices = np.full(self.rows, self._numbers[policy]) if kind == "arm" else self._chosen(name, policy)
        agree = choices == self._rest.codes
        accepted = self._rest.rewards[agree & self._keeps]
        weighting = WeightedRewards(bounds)
        weighting.add(self._rest.rewards[agree], self._weights[agree])
        value = weighting.estimate(self._missed(agree))
        rows = int(agree.sum())
        return PolicyValue(name, "fixed", value, rows, mean_of(accepted, bounds), len(accepted), value)

    def _missed(self, agree: Flags) -> float:
        """Return the share of rows in which the rule's arm had less chance than in any row in which they agreed."""
        if not agree.any():
            return 1.0
        with np.errstate(divide="ignore"):
            least = 1.0 / (1.0 - 1.0 / self._weights[~agree])  # another arm left at most that much
        return float((least > (1.0 + SLACK) * self._weights[agree].max()).sum()) / self.rows

    def _chosen(self, name: str, rule: Rule) -> Ints:
        """Return the arm that a rule chooses in each row."""
        table = self._contexts(name).select(self._columns())
        choices = np.empty(self.rows, np.int64)
        for row, context in enumerate(table.to_pylist()):
            arm = rule(context)
            if arm not in self._numbers:
                raise InvalidParameter(f"{name!r} must choose arms of the log, got {arm!r} for {context!r}")
            choices[row] = self._numbers[arm]
        return choices

    # -- learning policies --------------------------------------------------------------------------------------

    def _learn(self, base: Any) -> Floats:
        """Return the rewards that a policy without contexts is told, in order."""
        policy = self._policy(base, self._plain_first)
        codes, keeps = self._rest.codes, self._keeps
        rows_of = [np.flatnonzero(keeps & (codes == code)) for code in range(len(self.labels))]
        rewards, row = self._rest.rewards, -1
        matches: list[int] = []
        while True:
            arm: Any = policy.ask()
            number = self._numbers.get(arm, -1)
            if number < 0:
                return rewards[np.array(matches, np.int64)]
            place = int(np.searchsorted(rows_of[number], row, side="right"))
            if place == len(rows_of[number]):
                return rewards[np.array(matches, np.int64)]
            row = int(rows_of[number][place])
            policy.tell(arm, float(rewards[row]))
            matches.append(row)

    def _learn_contexts(self, base: Any) -> Floats:
        """Return the rewards that a policy is told that knows the context of each row."""
        frozen = base.contexts if isinstance(base, ArmAlgorithm) else None
        columns = self._columns() if frozen is None else list(frozen.columns)
        first = History.from_columns(
            self.first.rewards,
            self.first.labels,
            self.first.codes,
            allowances=self.first.allowances,
            contexts=None if self.first.contexts is None else self.first.contexts.select(columns),
        )
        policy, matches = self._policy(base, first), []
        contexts = self._contexts("").select(columns).to_pylist()
        for row in np.flatnonzero(self._keeps).tolist():
            arm = policy.ask(context=contexts[row])
            if arm == self.labels[self._rest.codes[row]]:
                policy.tell(arm, float(self._rest.rewards[row]), context=contexts[row])
                matches.append(row)
        return np.asarray(self._rest.rewards[np.array(matches, np.int64)])

    def _columns(self) -> list[str]:
        """Return the context columns that a policy may know."""
        return [name for name in self._rest.context_names if name != self.propensity]

    @staticmethod
    def _policy(base: Any, first: History) -> Any:
        """Make a policy that reads the first rows, or that loads all of them where replay would not be exact."""
        make = FullStart if isinstance(base, Algorithm) and not base.exact else ArtificialReplay
        return make(base, first)


def _column(history: History, name: str) -> Floats:
    """Return the chances of the logged choices, from a column of contexts."""
    if name not in history.context_names or history.contexts is None:
        names = ", ".join(map(repr, history.context_names)) or "none"
        raise InvalidHistory(
            f"must name a context column of the log, got {name!r}; it has {names}", parameter="propensity"
        )
    values = history.contexts.column(name)
    if str(values.type) != "double":
        raise InvalidHistory(f"must be a column of numbers, got one of type {values.type}", parameter="propensity")
    chances = np.asarray(values.combine_chunks().fill_null(math.nan), np.float64)
    check_chances(chances)
    return chances
