"""Coupling, irrelevant data, completion: what makes Artificial Replay act exactly like Full Start."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from artreplay.compiling import is_component, state_of
from artreplay.errors import ArtReplayError, InvalidParameter
from artreplay.history import History
from artreplay.parameters import Count, Seed, checked
from artreplay.replay import ArtificialReplay, FullStart, Ignorant
from artreplay.replay.adapters import checked_relation
from artreplay.replay.own_bases import adapt
from artreplay.testing.random_worlds import Points, Units, World, draw_world, shrink, units_of

MakeBase = Callable[[], Any]
MakePolicy = Callable[[Any, History], Any]  # (base, history) → something with ask, tell, used


@dataclass(frozen=True)
class Summary:
    """A check that passed: how many cases were tried, and how many of them could have failed."""

    check: str
    cases: int
    telling: int  # not vacuous

    @property
    def share(self) -> float:
        """The share of cases that were not vacuous."""
        return self.telling / self.cases

    def __str__(self) -> str:
        return f"{self.check}: holds in {self.cases} cases, {self.share:.0%} of them not vacuous"


class CheckFailed(ArtReplayError, AssertionError):
    """A counterexample.

    `history` is the log as (unit, reward) pairs, `actions` what each side did, `where` what differs first.
    """

    def __init__(self, check: str, history: list[tuple[Any, float]], actions: dict[str, Any], where: str) -> None:
        self.check = check
        self.history = history
        self.actions = actions
        self.where = where
        super().__init__(self._text())

    def _text(self) -> str:
        lines = [f"{self.check} fails: {self.where}", "  log:"]
        lines += [f"    {unit!r}  reward {reward:g}" for unit, reward in self.history] or ["    (empty)"]
        lines += [f"  {side}: {done}" for side, done in self.actions.items()]
        return "\n".join(lines)


class Failure(NamedTuple):
    """What differs, and what each side did."""

    where: str
    actions: dict[str, Any]


class Verdict(NamedTuple):
    """The result of one case: a failure or None, and whether the case could have failed at all."""

    failure: Failure | None
    telling: bool


def check_coupling(
    make_base: MakeBase,
    units: Any = None,
    *,
    relation: Any = None,
    full_start: MakePolicy | None = None,
    replay: MakePolicy | None = None,
    cases: int = 200,
    max_history: int = 12,
    horizon: int = 12,
    rewards: Sequence[float] = (0, 0.5, 1),
    seed: int = 0,
) -> Summary:
    """Check that Artificial Replay plays exactly what Full Start plays, on the same reward stack.

    `make_base()` gives a fresh base. `units` is a number of arms, labels, or `Points` (default: asked from
    the base). `full_start` and `replay` are `(base, history) -> policy` and replace the two policies, so that wrong
    ones can be tried. A case is not vacuous when history is left over and Full Start plays differently from Ignorant.

    >>> import artreplay as ar
    >>> ar.testing.check_coupling(lambda: ar.MonUCB(3, horizon=20)).cases
    200
    """
    make_full = full_start or FullStart
    make_replay = replay or (lambda base, history: ArtificialReplay(base, history, relation))

    def judge(world: World) -> Verdict:
        """Play the world with all three policies."""
        history = world.history()
        full = play(make_full(make_base(), history), world, labels)
        replaying = make_replay(make_base(), history)
        replayed = play(replaying, world, labels)
        alone = play(Ignorant(make_base()), world, labels)
        left_over = len(history) - int(replaying.used) > 0
        return Verdict(first_difference(full, replayed), left_over and full != alone)

    labels = units_of(make_base, units)
    return _search("coupling", judge, labels, cases, max_history, horizon, rewards, seed)


def check_irrelevant_data(
    make_base: MakeBase,
    units: Any = None,
    *,
    relation: Any = None,
    cases: int = 200,
    max_history: int = 12,
    horizon: int = 12,
    rewards: Sequence[float] = (0, 0.5, 1),
    seed: int = 0,
) -> Summary:
    """Check that a proposal does not change when samples outside its cells are shown.

    A random part of the log is shown first; then every sample of the rest that is unrelated to the proposal. A case
    is not vacuous when there is such a sample.

    >>> import artreplay as ar
    >>> ar.testing.check_irrelevant_data(lambda: ar.MonUCB(3, horizon=20)).cases
    200
    """
    checked_relation(relation)

    def judge(world: World) -> Verdict:
        """Look for an unrelated sample that changes the proposal."""
        adapter = adapt(make_base())
        related = relation_of(adapter, relation)
        history = world.history()
        numbers = adapter.numbers_of(history, "error").tolist()
        values = adapter.rewards_of(history).tolist()
        adapter.make_room(len(numbers) + 1)
        cut = world.horizon * len(numbers) // (2 * horizon)  # so that shrinking the horizon shrinks this part
        for number, value in zip(numbers[:cut], values[:cut], strict=True):
            adapter.algorithm.update(number, value)
        before = proposal_of(adapter)
        shown = 0
        for number, value in zip(numbers[cut:], values[cut:], strict=True):
            if any(related(number, proposed) for proposed in before):
                continue
            adapter.algorithm.update(number, value)
            shown += 1
            after = proposal_of(adapter)
            if after != before:
                named = [[adapter.unit(unit) for unit in side] for side in (before, after)]
                changed = f"a sample of {adapter.unit(number)!r} made it {named[1]}"
                where = f"after {cut} samples the proposal was {named[0]}; {changed}"
                return Verdict(Failure(where, {"before": named[0], "after": named[1]}), telling=True)
        return Verdict(None, shown > 0)

    labels = units_of(make_base, units)
    return _search("irrelevant data", judge, labels, cases, max_history, horizon, rewards, seed)


def check_completion(
    make_base: MakeBase,
    units: Any = None,
    *,
    relation: Any = None,
    cases: int = 200,
    max_history: int = 12,
    horizon: int = 12,
    rewards: Sequence[float] = (0, 0.5, 1),
    seed: int = 0,
) -> Summary:
    """Check that a replay run, shown the left-over history in order, ends in the very state of Full Start.

    States are compared bit for bit: `state()` if the base offers it, else its attributes. A case is not vacuous when
    history is left over.

    >>> import artreplay as ar
    >>> ar.testing.check_completion(lambda: ar.MonUCB(3, horizon=20)).cases
    200
    """

    def judge(world: World) -> Verdict:
        """Play the world with both policies, and show the replaying one what it left over."""
        history = world.history()
        full = FullStart(make_base(), history)
        replaying = ArtificialReplay(make_base(), history, relation)
        actions = {"full start": play(full, world, labels), "replay": play(replaying, world, labels)}
        left = replaying.unused_rows()
        adapter = replaying._adapter
        numbers, values = adapter.numbers_of(history, "error"), adapter.rewards_of(history)
        adapter.make_room(len(left) + 1)
        for row in left:
            adapter.algorithm.update(int(numbers[row]), float(values[row]))
        differs = state_difference(state_of_base(full.base), state_of_base(replaying.base))
        failure = None if differs is None else Failure(f"the states differ in {differs}", actions)
        return Verdict(failure, len(left) > 0)

    labels = units_of(make_base, units)
    return _search("completion", judge, labels, cases, max_history, horizon, rewards, seed)


@checked
def _search(
    check: str,
    judge: Callable[[World], Verdict],
    units: Units,
    cases: Count,
    max_history: Count,
    horizon: Count,
    rewards: Sequence[float],
    seed: Seed,
) -> Summary:
    """Try random worlds, and simplify the first that fails as far as possible."""
    if len(rewards) == 0:
        raise InvalidParameter("rewards must have at least one value, got none")
    rng = random.Random(seed)
    telling = 0
    for _ in range(cases):
        world = draw_world(rng, units, max_history, horizon, rewards)
        verdict = judge(world)
        telling += verdict.telling
        if verdict.failure is not None:
            world = shrink(world, lambda candidate: judge(candidate).failure, rewards)
            failure = judge(world).failure or verdict.failure
            raise CheckFailed(check, list(world.log), failure.actions, failure.where)
    return Summary(check, cases, telling)


def play(policy: Any, world: World, units: Units) -> list[Any]:
    """What a policy does in a world, round by round."""
    number = {} if isinstance(units, Points) else {unit: place for place, unit in enumerate(units)}
    pulls = [0] * len(number)

    def pull(unit: Any, round_: int) -> float:
        """The reward of a unit: by the round for points, by how often it was pulled for arms."""
        if isinstance(units, Points):
            return world.reward_at(unit, round_)
        if unit not in number:
            raise InvalidParameter(f"the base proposed {unit!r}, which is not one of the units {units}")
        place = number[unit]
        pulls[place] += 1
        return world.reward(place, pulls[place] - 1)

    actions = []
    for round_ in range(world.horizon):
        action = policy.ask()
        actions.append(action)
        several = isinstance(action, list)
        policy.tell(action, [pull(unit, round_) for unit in action] if several else pull(action, round_))
    return actions


def first_difference(full: list[Any], replayed: list[Any]) -> Failure | None:
    """The first place where two runs differ."""
    for round_, (mine, theirs) in enumerate(zip(full, replayed, strict=True)):
        if mine != theirs:
            where = f"round {round_}: full start plays {mine!r}, replay plays {theirs!r}"
            return Failure(where, {"full start": full[: round_ + 1], "replay": replayed[: round_ + 1]})
    return None


def relation_of(adapter: Any, relation: Any) -> Callable[[int, int], bool]:
    """Whether a logged and a proposed unit, as numbers, are related."""
    if callable(relation):
        return lambda logged, proposed: relation(adapter.unit(logged), adapter.unit(proposed), adapter.base)
    if relation == "trivial":
        return lambda logged, proposed: True
    same: Callable[[int, int], bool] = adapter.same_cell
    return same


def proposal_of(adapter: Any) -> list[int]:
    """The numbers of the units proposed now."""
    return [int(number) for number in adapter.proposal[: adapter.algorithm.propose_in_round(adapter.proposal, 0)]]


def state_of_base(base: Any) -> Any:
    """What a base knows, in a form that can be compared."""
    if is_component(base):
        return state_of(base)
    return base.state() if hasattr(base, "state") else dict(vars(base))


def state_difference(mine: Any, theirs: Any, name: str = "") -> str | None:
    """The name of the first thing that differs, None if nothing does."""
    if isinstance(mine, dict) and isinstance(theirs, dict):
        if mine.keys() != theirs.keys():
            return name or "their keys"
        found = (state_difference(mine[key], theirs[key], f"{name}.{key}" if name else str(key)) for key in mine)
        return next((difference for difference in found if difference is not None), None)
    if isinstance(mine, np.ndarray) and isinstance(theirs, np.ndarray):
        same = mine.dtype == theirs.dtype and mine.shape == theirs.shape and mine.tobytes() == theirs.tobytes()
    else:
        same = type(mine) is type(theirs) and bool(mine == theirs)
    return None if same else name or "their value"
