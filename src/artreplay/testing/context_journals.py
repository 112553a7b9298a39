"""Journals of algorithms of the user's own that know who is asking: ordinary use against one fold of the journal."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from artreplay.errors import InvalidParameter
from artreplay.history import Contexts, History
from artreplay.replay import ArtificialReplay
from artreplay.testing.playing import EVENTS, Failure, WorldRewards
from artreplay.testing.random_worlds import Points, Units, World
from artreplay.testing.searching import Verdict

Context = dict[str, Any]
_CONTEXTS = 12  # contexts, of those that an algorithm says it knows
_ASKED_BESIDES = (0, 0, 1, 2)  # questions of others before one that comes to something


class JournalRow(NamedTuple):
    """A row of the journal."""

    arm: Any
    reward: float
    context: Context
    is_logged: bool


def contexts_of(base: Any, contexts: Any) -> list[Context]:
    """Return the contexts to draw from: `contexts`, or by default some that the base knows."""
    if contexts is None and isinstance(columns := getattr(base, "contexts", None), Contexts):
        rng = random.Random(0)
        return [_context_of(columns, rng) for _ in range(_CONTEXTS)]
    if not isinstance(contexts, Sequence) or not contexts or not all(isinstance(one, Mapping) for one in contexts):
        got = "none" if contexts is None else repr(contexts)
        raise InvalidParameter(f"must be a list of contexts to draw from, each a dict, got {got}", parameter="contexts")
    return [dict(one) for one in contexts]


def _context_of(columns: Contexts, rng: random.Random) -> Context:
    """Draw a context with a value of each column, which may be missing."""
    context: Context = {}
    for name, scale in columns.numeric.items():
        context[name] = None if scale.missing and rng.random() < 0.2 else rng.gauss(scale.centre, scale.width)
    for name, values in columns.categories.items():
        context[name] = rng.choice(values)
    return context


def judge_of_contexts(
    make_base: Callable[[], Any], units: Units, contexts: list[Context], delays: int
) -> Callable[[World], Verdict]:
    """Return what compares each decision in a world with that of a fresh algorithm that is shown the journal once."""
    if isinstance(units, Points):
        raise InvalidParameter("must be arms for an algorithm with contexts", parameter="units")

    def judge(world: World) -> Verdict:
        """Let a policy live through a journal, and look for a decision that is not that of the fold."""
        return _Life(make_base, units, contexts, delays, world).verdict()

    return judge


class _Life:
    """One policy, its journal, and the calls that were made."""

    def __init__(
        self, make_base: Callable[[], Any], arms: list[Any], contexts: list[Context], delays: int, world: World
    ) -> None:
        self._make_base, self._arms, self._contexts = make_base, arms, contexts
        self._delays, self._world = delays, world
        self._rng = random.Random(world.salt)
        self._rows = [JournalRow(arm, reward, self._rng.choice(contexts), True) for arm, reward in world.log]
        self._n_rows = 2 * len(self._rows) // 3 or len(self._rows)
        self._journal = self._rows[: self._n_rows]
        self._history = self._first(self._n_rows)
        self._policy = ArtificialReplay(make_base(), self._history)
        self._rewards = WorldRewards(world, arms)
        self._n_told = 0
        self._lines = [f"policy = ar.ArtificialReplay(make_base(), {self._code(self._n_rows)})"]

    def verdict(self) -> Verdict:
        """Return the first decision that differs from that of the fold."""
        late: list[tuple[int, Any, Context]] = []
        for round_ in range(self._world.horizon):
            for _ in range(self._rng.choice(_ASKED_BESIDES)):
                self._ask(self._rng.choice(self._contexts))
            context = self._rng.choice(self._contexts)
            action, expected = self._ask(context), self._fold(context)
            if action != expected:
                where = f"round {round_}: in {context} the policy plays {action!r}, a fold of its journal {expected!r}"
                sides = {"policy": action, "fold": expected}
                return Verdict(Failure(where, sides, self._program(context)), telling=True)
            event = self._rng.choice(EVENTS)
            if event == "now":
                self._tell(action, context, round_)
            elif event == "late":
                late.append((round_ + self._rng.randint(0, self._delays), action, context))
            elif event == "foreign":
                self._tell(self._rng.choice(self._arms), self._rng.choice(self._contexts), round_)
            elif event == "grow" and self._n_rows < len(self._rows):
                self._grow()
            for due in [entry for entry in late if entry[0] <= round_]:
                late.remove(due)
                self._tell(due[1], due[2], round_)
        return Verdict(None, telling=len({entry.arm for entry in self._journal}) > 1)

    def _ask(self, context: Context) -> Any:
        self._lines.append(f"policy.ask(context={context!r})")
        return self._policy.ask(context=dict(context))

    def _tell(self, arm: Any, context: Context, round_: int) -> None:
        reward = self._rewards.of(arm, round_)
        self._lines.append(f"policy.tell({arm!r}, {reward!r}, context={context!r})")
        self._policy.tell(arm, reward, context=dict(context))
        self._journal.append(JournalRow(arm, reward, context, False))
        self._n_told += 1

    def _grow(self) -> None:
        before, self._n_rows = self._n_rows, self._rng.randint(self._n_rows + 1, len(self._rows))
        self._lines.append(f"policy.extend({self._code(self._n_rows)})")
        self._policy.extend(self._first(self._n_rows))
        self._journal += self._rows[before : self._n_rows]

    def _fold(self, context: Context) -> Any:
        """Return the decision of a fresh algorithm that is shown the journal in order and asked once."""
        base = self._make_base()
        show = getattr(base, "update_logged", base.update)
        for entry in self._journal:
            (show if entry.is_logged else base.update)(entry.arm, entry.reward, dict(entry.context))
        scores = [base.score(arm, dict(context), self._n_told) for arm in self._arms]
        return self._arms[scores.index(max(scores))]

    def _first(self, rows: int) -> History:
        some = self._rows[:rows]
        return History([one.arm for one in some], [one.reward for one in some], contexts=self._table(rows))

    def _table(self, rows: int) -> dict[str, list[Any]] | None:
        return {name: [one.context[name] for one in self._rows[:rows]] for name in self._contexts[0]} if rows else None

    def _code(self, rows: int) -> str:
        some = self._rows[:rows]
        with_contexts = f", contexts={self._table(rows)!r}" if rows else ""
        return f"ar.History({[one.arm for one in some]!r}, {[one.reward for one in some]!r}{with_contexts})"

    def _program(self, context: Context) -> str:
        """Return a program that makes both decisions."""
        update = "update_logged" if hasattr(self._make_base(), "update_logged") else "update"
        calls = [(update if is_logged else "update", call) for *call, is_logged in self._journal]
        lines = ["import artreplay as ar", "", *self._lines[:-1], f"print({self._lines[-1]})", "base = make_base()"]
        lines += [f"base.{name}({', '.join(map(repr, call))})" for name, call in calls]
        lines.append(f"print(max({self._arms!r}, key=lambda arm: base.score(arm, {context!r}, {self._n_told})))")
        return "\n".join(lines)
