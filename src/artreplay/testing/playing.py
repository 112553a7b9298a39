"""Plays a world and writes down each call, so that a user can run a counterexample."""

from __future__ import annotations

import inspect
import os
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from artreplay import errors
from artreplay.errors import InvalidParameter
from artreplay.history import Allocation, History, Unit
from artreplay.replay import Base, ObjectBase, Relation, attributes_of
from artreplay.testing.random_worlds import Points, Sample, Units, World

_INDENT = "    "
_NOBODYS = ("<frozen", "<string>", os.path.dirname(np.__file__))  # neither ours nor the user's
_PACKAGE = os.path.dirname(errors.__file__) + os.sep
_CALLERS = os.path.join(_PACKAGE, "replay")  # where all that a user brings is called
# What happens after a decision, and how often: its reward arrives in the same round, late or never, another action is
# told, or the log grows.
EVENTS = ("now",) * 10 + ("late",) * 5 + ("lost",) + ("foreign",) * 3 + ("grow",) * 3


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
        """Return a program in which a base proposes something else once it is shown rows of other units."""
        head = ["import artreplay as ar", "", f"history = {code_of(self._log())}"]
        loop = [f"for rows in ({cut}, {len(self._samples)}):"]
        return "\n".join([*head, *loop, f"{_INDENT}print(ar.FullStart(make_base(), history.first(rows)).ask())"])

    def _log(self) -> History:
        """Return the samples that were shown, as a log."""
        return World(tuple(self._samples), (), 1).history()

    def of_policies(self, relation: Relation | None, ask_number: int) -> str:
        """Return a program in which two policies differ in an ask."""
        lines = [*self._head(), f"for policy in ({_FULL_START}, {_replay(relation)}):"]
        return "\n".join(lines + [_INDENT + line for line in [*self.until(ask_number), "print(policy.ask())"]])

    def of_states(self, relation: Relation | None, replay: Playthrough) -> str:
        """Return a program in which full start, whose calls these are, and replay end in different states."""
        lines = self._head()
        for policy, calls in ((_FULL_START, self), (_replay(relation), replay.calls)):
            lines += [f"policy = {policy}", *calls.lines, *_completing(replay.policy.drive.base)]
        return "\n".join(lines)

    def _head(self) -> list[str]:
        return ["import artreplay as ar", "", f"history = {code_of(self.history)}"]


_FULL_START = "ar.FullStart(make_base(), history)"


def _replay(relation: Relation | None) -> str:
    return f"ar.ArtificialReplay(make_base(), history{'' if relation is None else ', relation'})"


def _completing(base: Base) -> list[str]:
    """Return lines that show a base of this kind the unread rows and print its state."""
    thing, rows = base.thing, "for row in policy.unused_rows():"
    if not isinstance(base, ObjectBase):
        number = "base.checked_number(history.unit(row))"
        return [
            "base = policy.drive.base",
            rows,
            f"{_INDENT}base.component.update_logged({number}, base.scaled(float(history.rewards[row])), 0.0)",
            "print(base.component)",
        ]
    if hasattr(thing, "update_logged"):
        call = "policy.base.update_logged(history.unit(row), float(history.rewards[row]), 0.0)"
    else:
        call = "policy.base.update(history.unit(row), float(history.rewards[row]))"
    lines = [rows, _INDENT + call]
    if hasattr(thing, "note_unread"):
        lines.append("policy.base.note_unread(0)")
    if hasattr(thing, "state"):
        return [*lines, "print(policy.base.state())"]
    if len(getattr(thing, "__dict__", ())) == len(attributes_of(thing)):  # none of them is in slots
        return [*lines, "print(vars(policy.base))"]
    return [*lines, f"print([getattr(policy.base, name, None) for name in {list(attributes_of(thing))!r}])"]


def call_that_raised(error: BaseException) -> str | None:
    """Return the call of the user's code that raised an error, with its arguments, or None if the error is ours."""
    frame, is_ours = error.__traceback__, False
    while frame is not None:
        code = frame.tb_frame.f_code
        was_ours, is_ours = is_ours, code.co_filename.startswith(_CALLERS)
        if was_ours and not is_ours and not code.co_filename.startswith((_PACKAGE, *_NOBODYS)):
            names, _, _, values = inspect.getargvalues(frame.tb_frame)
            arguments = [f"{name}={values[name]!r}" for name in names if name != "self"]
            return f"{code.co_qualname}({', '.join(arguments)})"
        frame = frame.tb_next
    return None


class Playthrough(NamedTuple):
    """A policy, what it did, the calls that led to it, and how many rows of its log are unread."""

    policy: Any
    actions: list[Any]
    calls: Calls
    unread: int = 0
    earned: float = 0.0


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


class WorldRewards:
    """The rewards of a world, in the order they are asked for."""

    def __init__(self, world: World, units: Units) -> None:
        self._world = world
        self._units = units
        self._number = {} if isinstance(units, Points) else {unit: place for place, unit in enumerate(units)}
        self._pulls = [0] * len(self._number)
        self.total = 0.0  # so far

    def of(self, action: Any, round_: int) -> Any:
        """Return the reward of an action, or one for each of its units."""
        rewards = [self._of(unit, round_) for unit in (action if isinstance(action, list) else [action])]
        self.total += sum(rewards)
        return rewards if isinstance(action, list) else rewards[0]

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
    calls, rewards, actions = Calls(_first(whole, rows)), WorldRewards(world, units), []
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
        event = rng.choice(EVENTS)
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
    return Playthrough(policy, actions, calls, rows - int(policy.used), rewards.total)


def first_difference(full: Playthrough, replayed: Playthrough, relation: Relation | None) -> Failure | None:
    """Return the first round in which two runs differ, or None."""
    for round_, (mine, theirs) in enumerate(zip(full.actions, replayed.actions, strict=True)):
        if mine != theirs:
            where = f"round {round_}: full start plays {mine!r}, replay plays {theirs!r}"
            sides = {"full start": full.actions[: round_ + 1], "replay": replayed.actions[: round_ + 1]}
            return Failure(where, sides, full.calls.of_policies(relation, round_))
    return None
