"""`evaluate` plays policies on a log of one's own: what would they have earned?"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artreplay.algorithms import Algorithm, ArmAlgorithm, ContextRegression
from artreplay.compiling import Floats, Ints, Loop, current_mode
from artreplay.errors import InvalidHistory, InvalidParameter, checked_count
from artreplay.history import History, Label, StoredLog
from artreplay.inspecting import Estimate, WeightedRewards, check_chances, mean_of
from artreplay.parameters import Seed, checked
from artreplay.replay import ArtificialReplay, FullStart
from artreplay.streams import ACCEPTANCE, fold, uniforms

ENOUGH = 100  # rows that an evaluation must rest on
FEW = 200  # rows of contexts that are played interpreted, because compiling takes longer
SLACK = 1e-9  # of a weight, which is one over a chance

Flags = NDArray[np.bool_]
Rule = Callable[[dict[str, Any]], Label]


@dataclass(frozen=True)
class PolicyValue:
    """What a policy would have earned a round on the rows of a log.

    Parameters
    ----------
    name
        The name it was given.
    kind
        "learning" or "fixed".
    value
        The mean reward of a round with its interval: by weighted rows for a fixed policy, else by accepted ones.
    rows
        How many rows of the log this rests on.
    by_rejection, accepted
        The mean reward over the rows that were accepted, with its interval, and how many there were.
    by_weights
        For a fixed policy, the mean over all rows in which it agrees with the log, by self-normalised weights.
    """

    name: str
    kind: str
    value: Estimate
    rows: int
    by_rejection: Estimate
    accepted: int
    by_weights: Estimate | None

    @property
    def can_tell(self) -> bool:
        """Whether there are enough rows for it to mean anything."""
        return self.rows >= ENOUGH


@dataclass(frozen=True)
class Evaluation:
    """What policies would have earned on a log, see `ar.evaluate`.

    Parameters
    ----------
    policies
        A `PolicyValue` for each.
    played
        What was played earned so much a round, in the same rows.
    start
        The first rows, which were the log that policies started from.
    rows
        The rows after them, on which policies were played.
    by_shares
        Whether the shares of the arms stood in for propensities.
    least_chance
        The chance of the rarest choice, which is the share of the rows that a learning policy can be told of.
    """

    policies: list[PolicyValue]
    played: Estimate
    start: int
    rows: int
    by_shares: bool
    least_chance: float

    def __getitem__(self, name: str) -> PolicyValue:
        """One policy by its name."""
        for policy in self.policies:
            if policy.name == name:
                return policy
        raise KeyError(name)

    def sentences(self) -> list[str]:
        """What follows, in words."""
        said = []
        if self.by_shares:
            said.append(
                "If the old policy chose by chance, with the shares of the log (no propensities were given, and if it "
                "chose by what moves the reward, all of this is wrong):"
            )
        told = [policy for policy in self.policies if policy.can_tell]
        if told:
            best = max(told, key=lambda policy: policy.value.value)
            order = "more" if best.value.value > self.played.value else "less"
            beyond = "by no more than chance explains" if best.value.overlaps(self.played) else "beyond chance"
            said.append(
                f"{best.name} would have earned {_shown(best.value)} a round over {best.rows:,} rows, and what was "
                f"played earned {_shown(self.played)}: {order}, {beyond}."
            )
        few = [f"{policy.name} ({policy.rows:,})" for policy in self.policies if not policy.can_tell]
        if few:
            said.append(
                f"Fewer than {ENOUGH} rows cannot tell what these would earn: {', '.join(few)}. The rarest choice was "
                f"made with the chance {self.least_chance:.2g}: a learning policy can be told that share of the rows."
            )
        return said

    def to_frame(self) -> Any:
        """A table with one row for each policy, as an Arrow table."""
        import pyarrow as pa

        rows = [
            {
                "policy": policy.name,
                "kind": policy.kind,
                "value": policy.value.value,
                "low": policy.value.low,
                "high": policy.value.high,
                "rows": policy.rows,
                "accepted": policy.accepted,
                "can_tell": policy.can_tell,
            }
            for policy in self.policies
        ]
        return pa.Table.from_pylist(rows)


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
        The log, of arms. Rules and a `ContextRegression` need contexts.
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
    >>> found["kl-ucb"].value.low > found.played.value
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
        self._rest = history.rows(np.arange(self.start, len(history)))
        self.by_shares = propensity is None
        chances = self._shares() if propensity is None else _column(history, propensity)[self.start :]
        self.propensity = propensity
        self._weights: Floats = 1.0 / chances
        self.least = float(chances.min())  # the share of rows that a policy can be told of
        keys = np.array([fold(seed)], np.uint64)
        self._kept: Flags = uniforms(keys, ACCEPTANCE, self.rows)[0] * chances < self.least * (1.0 + SLACK)

    @property
    def rounds(self) -> int:
        """How many rounds a policy will play, about."""
        return max(int(self.rows * self.least), 1)

    def _shares(self) -> Floats:
        counts = np.bincount(self._rest.codes, minlength=len(self.labels))
        return np.asarray(counts[self._rest.codes] / self.rows)

    def played(self) -> Estimate:
        """What was played earned this much a round."""
        return mean_of(self._rest.rewards, self._bounds())

    def _bounds(self, base: Any = None) -> tuple[float, float]:
        """Between which numbers rewards lie: by the algorithm, else by the log, at least 0 and 1."""
        rewards = self._rest.rewards
        low, high = min(float(rewards.min()), 0.0), max(float(rewards.max()), 1.0)
        stated = getattr(base, "reward_range", (-math.inf, math.inf))
        return (stated[0], stated[1]) if math.isfinite(stated[0]) and math.isfinite(stated[1]) else (low, high)

    def evaluation(self, policies: Mapping[str, Any]) -> Evaluation:
        """Play policies; what is wrong with one is said before any is played."""
        kinds = {name: self.kind_of(name, policy) for name, policy in policies.items()}
        found = [self.value_of(name, policy, kinds[name]) for name, policy in policies.items()]
        return Evaluation(found, self.played(), self.start, self.rows, self.by_shares, self.least)

    # -- what there is to play ----------------------------------------------------------------------------------

    def kind_of(self, name: str, policy: Any) -> str:
        """How a policy is played: "arm", "rule", "context" or "learning"."""
        if isinstance(policy, ContextRegression):
            self._contexts(name)
            return "context"
        if isinstance(policy, type):
            raise InvalidParameter(f"{name!r} must be a policy that is made, got the class {policy.__name__}")
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
            known = policy in self._numbers
        except TypeError:
            known = False
        if not known:
            raise InvalidParameter(f"{name!r} must be an algorithm, a rule or an arm of the log, got {policy!r}")
        return "arm"

    def _contexts(self, name: str) -> Any:
        """The contexts of the rows that are played."""
        if self._rest.contexts is None:
            raise InvalidHistory(f"{name!r} needs the contexts of the log: History(arms, rewards, contexts=table)")
        return self._rest.contexts

    def value_of(self, name: str, policy: Any, kind: str) -> PolicyValue:
        """What a policy would have earned."""
        bounds = self._bounds(policy)
        if kind in ("learning", "context"):
            rewards = self._learn(policy) if kind == "learning" else self._learn_contexts(policy)
            found = mean_of(rewards, bounds)
            return PolicyValue(name, "learning", found, len(rewards), found, len(rewards), None)
        chosen = np.full(self.rows, self._numbers[policy]) if kind == "arm" else self._chosen(name, policy)
        agree = chosen == self._rest.codes
        accepted = self._rest.rewards[agree & self._kept]
        weighted = WeightedRewards(bounds)
        weighted.add(self._rest.rewards[agree], self._weights[agree])
        value = weighted.estimate(self._missed(agree))
        rows = int(agree.sum())
        return PolicyValue(name, "fixed", value, rows, mean_of(accepted, bounds), len(accepted), value)

    def _missed(self, agree: Flags) -> float:
        """The share of rows in which the chance of the arm of a rule was below that of any row in which it agreed."""
        if not agree.any():
            return 1.0
        with np.errstate(divide="ignore"):
            least = 1.0 / (1.0 - 1.0 / self._weights[~agree])  # another arm left at most that much
        return float((least > (1.0 + SLACK) * self._weights[agree].max()).sum()) / self.rows

    def _chosen(self, name: str, rule: Rule) -> Ints:
        """The arm that a rule chooses in each row."""
        table = self._contexts(name)
        if self.propensity is not None:
            table = table.drop_columns([self.propensity])
        chosen = np.empty(self.rows, np.int64)
        for row, context in enumerate(table.to_pylist()):
            arm = rule(context)
            if arm not in self._numbers:
                raise InvalidParameter(f"{name!r} must choose arms of the log, got {arm!r} for {context!r}")
            chosen[row] = self._numbers[arm]
        return chosen

    # -- learning policies --------------------------------------------------------------------------------------

    def _learn(self, base: Any) -> Floats:
        """The rewards that a policy without contexts is told, in order."""
        make = FullStart if isinstance(base, Algorithm) and not base.exact else ArtificialReplay
        policy = make(base, self.first)
        codes, kept = self._rest.codes, self._kept
        rows_of = [np.flatnonzero(kept & (codes == code)) for code in range(len(self.labels))]
        rewards, row = self._rest.rewards, -1
        told: list[int] = []
        while True:
            arm = policy.ask()
            number = self._numbers.get(arm)
            if number is None:
                return rewards[np.array(told, np.int64)]
            place = int(np.searchsorted(rows_of[number], row, side="right"))
            if place == len(rows_of[number]):
                return rewards[np.array(told, np.int64)]
            row = int(rows_of[number][place])
            policy.tell(arm, float(rewards[row]))
            told.append(row)

    def _learn_contexts(self, base: ContextRegression) -> Floats:
        """The rewards that a regression of the context is told, in order."""
        base = base.duplicate()
        for rows in (self.first, self._rest):
            base.rewards_of(rows)  # which refuses what lies outside the range
        encoded = [base.contexts.encode(rows.contexts) if len(rows) else None for rows in (self.first, self._rest)]
        if encoded[0] is not None:
            base.learn_log(base.numbers_of(self.first, False), self._scaled(base, self.first), encoded[0])
        told = np.zeros(self.rows, np.bool_)
        units = base.numbers_of(self._rest, False)
        few = self.rows <= FEW and not play_rows.is_at_hand(base.component)
        loop = play_rows.interpreted if few and current_mode() != "compiled" else play_rows
        scaled = self._scaled(base, self._rest)
        loop(base.component, np.ascontiguousarray(encoded[1]), units, scaled, self._kept, told, np.zeros(1, np.int64))
        return self._rest.rewards[told]

    @staticmethod
    def _scaled(base: ContextRegression, rows: History) -> Floats:
        return np.asarray(base.scaled(rows.rewards), np.float64)


@Loop
def play_rows(component: Any, encoded: Any, units: Any, rewards: Any, kept: Any, told: Any, out: Any) -> int:
    """Ask a component in the context of each row that is kept, and show it those in which it agrees with the log."""
    rounds = 0
    for row in range(len(units)):
        if not kept[row]:
            continue
        for at in range(encoded.shape[1]):
            component.features.encoded[at] = encoded[row, at]
        component.features.expand()
        component.propose(out, rounds)
        if out[0] == units[row]:
            component.update(units[row], rewards[row])
            told[row] = True
            rounds += 1
    return rounds


def _column(history: History, name: str) -> Floats:
    """The chances of the logged choices, from a column of contexts."""
    if name not in history.context_names or history.contexts is None:
        listed = ", ".join(map(repr, history.context_names)) or "none"
        raise InvalidHistory(
            f"must name a context column of the log, got {name!r}; it has {listed}", parameter="propensity"
        )
    values = history.contexts.column(name)
    if str(values.type) != "double":
        raise InvalidHistory(f"must be a column of numbers, got one of type {values.type}", parameter="propensity")
    chances = np.asarray(values.combine_chunks().fill_null(math.nan), np.float64)
    check_chances(chances)
    return chances


def _shown(one: Estimate) -> str:
    return f"{one.value:.4g} [{one.low:.4g}, {one.high:.4g}]"


def rule_by_column(column: str, arms: Mapping[str, Label]) -> Rule:
    """Make a rule that looks at one column; "other" stands for values that are not listed.

    >>> rule = rule_by_column("country", {"NL": "red", "other": "blue"})
    >>> rule({"country": "NL"}), rule({"country": "DE"})
    ('red', 'blue')
    """

    def rule(context: dict[str, Any]) -> Label:
        value = context[column]
        text = str(int(value)) if isinstance(value, float) and value == int(value) else str(value)
        if text not in arms and "other" not in arms:
            raise InvalidParameter(f"the rule by {column!r} must have an arm for {text!r}, or for other")
        return arms.get(text, arms.get("other"))

    return rule
