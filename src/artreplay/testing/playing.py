"""Plays a world and writes down each call, so that a user can run a counterexample."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from artreplay.errors import InvalidParameter
from artreplay.history import Allocation, History, Unit
from artreplay.replay import Relation
from artreplay.testing.random_worlds import Points, Sample, Units, World

_INDENT = "    "
# What happens after a decision, and how often: its reward arrives in the same round, late or never, another action is
# told, or the log grows.
_EVENTS = ("now",) * 10 + ("late",) * 5 + ("lost",) + ("foreign",) * 3 + ("grow",) * 3


class Failure(NamedTuple):
    """What differs, what each side did, and how to see it."""

    where: str
    actions: dict[str, Any]
    snippet: str = ""


class Calls:
    """The calls that were made, as lines of Python."""

    def __init__(self, history: History | None = None) -> None:
        self.history = history
        self.lines: list[str] = []
        self._samples: list[Sample] = []

    def show(self, sample: Sample) -> None:
        """Write down that a sample was shown to a base."""
        self._samples.append(sample)

    def until(self, number: int) -> list[str]:
        """Return the calls before the ask of this number, counted from 0."""
        lines: list[str] = []
        for line in self.lines:
            if line == "policy.ask()":
                number -= 1
            if number < 0:
                return lines
            lines.append(line)
        return lines

    def of_a_base(self, cut: int, row: int) -> str:
        """Return a program in which a base changes its proposal."""
        first, rest = self._samples[:cut], self._samples[cut:]
        lines = ["base = make_base()", *(f"base.update({unit!r}, {reward!r})" for unit, reward in first)]
        lines.append("print(base.propose())")
        lines += [f"base.update({unit!r}, {reward!r})" for unit, reward in rest]
        return "\n".join([*lines, "print(base.propose())"])

    def of_policies(
        self, relation: Relation | None, left: list[int] | None = None, ask_number: int | None = None
    ) -> str:
        """Return a program in which two policies differ, in an ask or in their states after all rows are shown."""
        more = "" if relation is None else ", relation"
        both = f"(ar.FullStart(make_base(), history), ar.ArtificialReplay(make_base(), history{more}))"
        head = ["import artreplay as ar", "", f"history = {code_of(self.history)}", f"for policy in {both}:"]
        if ask_number is not None:
            return "\n".join(head + [_INDENT + line for line in [*self.until(ask_number), "print(policy.ask())"]])
        rows = [
            "for row in policy.unused_rows():",
            f"{_INDENT}policy.base.update(history.unit(row), history.rewards[row])",
            "print(vars(policy.base))",
        ]
        return "\n".join(head + [_INDENT + line for line in [*self.lines, *rows]])


class Playthrough(NamedTuple):
    """A policy, what it did, the calls that led to it, and how many rows of its log are unread."""

    policy: Any
    actions: list[Any]
    calls: Calls
    unread: int = 0


def code_of(history: History | None) -> str:
    """Return a history as Python."""
    if history is None or len(history) == 0:
        return "ar.History([], [])"
    units = [history.unit(row) for row in range(len(history))]
    rewards = history.rewards.tolist()
    if isinstance(units[0], Allocation):
        points, levels = [unit.point for unit in units], [unit.level for unit in units]
        return f"ar.History({points!r}, {rewards!r}, levels={levels!r})"
    return f"ar.History({units!r}, {rewards!r})"


def _first(history: History, rows: int) -> History:
    """Return the first rows of a history."""
    return history.rows(np.arange(rows))


class _Rewards:
    """The rewards of a world, in the order they are asked for."""

    def __init__(self, world: World, units: Units) -> None:
        self._world = world
        self._units = units
        self._number = {} if isinstance(units, Points) else {unit: place for place, unit in enumerate(units)}
        self._pulls = [0] * len(self._number)

    def of(self, action: Any, round_: int) -> Any:
        """Return the reward of an action, or one for each of its units."""
        return [self._of(unit, round_) for unit in action] if isinstance(action, list) else self._of(action, round_)

    def _of(self, unit: Unit, round_: int) -> float:
        """Return a reward by the round for points, and by the number of pulls for arms."""
        if isinstance(self._units, Points):
            at: float = self._world.reward_at(unit, round_)
            return at
        if unit not in self._number:
            raise InvalidParameter(f"the base proposed {unit!r}, which is not one of the units {self._units}")
        place = self._number[unit]
        self._pulls[place] += 1
        reward: float = self._world.reward(place, self._pulls[place] - 1)
        return reward


def play(make_policy: Callable[[History], Any], world: World, units: Units, delays: int | None = None) -> Playthrough:
    """Let a policy play a world, round by round.

    With `delays` some rewards come up to that many rounds late or never, other actions are told, and the log grows.
    """
    whole = world.history()
    rows = len(whole) if delays is None else 2 * len(whole) // 3
    policy = make_policy(_first(whole, rows))
    calls, rewards, actions = Calls(_first(whole, rows)), _Rewards(world, units), []
    rng = random.Random(f"{world.salt} {delays}")  # the same for every policy that makes the same decisions
    late: list[tuple[int, Any]] = []

    def tell(action: Any, round_: int) -> None:
        """Tell the reward of an action."""
        reward = rewards.of(action, round_)
        policy.tell(action, reward)
        calls.lines.append(f"policy.tell({action!r}, {reward!r})")

    for round_ in range(world.horizon):
        actions.append(policy.ask())
        calls.lines.append("policy.ask()")
        if delays is None:
            tell(actions[-1], round_)
            continue
        event = rng.choice(_EVENTS)
        other = units.draw(rng) if isinstance(units, Points) else rng.choice(units)
        if event == "now":
            tell(actions[-1], round_)
        elif event == "late":
            late.append((round_ + rng.randint(0, delays), actions[-1]))
        elif event == "foreign":
            tell([other] if isinstance(actions[-1], list) else other, round_)
        elif event == "grow" and rows < len(whole) and hasattr(policy, "extend"):
            rows = rng.randint(rows + 1, len(whole))
            policy.extend(_first(whole, rows))
            calls.lines.append(f"policy.extend({code_of(_first(whole, rows))})")
        for due in [entry for entry in late if entry[0] <= round_]:
            late.remove(due)
            tell(due[1], round_)
    return Playthrough(policy, actions, calls, rows - int(policy.used))


def first_difference(full: Playthrough, replayed: Playthrough, relation: Relation | None) -> Failure | None:
    """Return the first round in which two runs differ, or None."""
    for round_, (mine, theirs) in enumerate(zip(full.actions, replayed.actions, strict=True)):
        if mine != theirs:
            where = f"round {round_}: full start plays {mine!r}, replay plays {theirs!r}"
            sides = {"full start": full.actions[: round_ + 1], "replay": replayed.actions[: round_ + 1]}
            return Failure(where, sides, full.calls.of_policies(relation, ask_number=round_))
    return None
