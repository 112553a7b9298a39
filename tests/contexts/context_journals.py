"""Random journals with contexts: rows, late and foreign rewards, some of the arms, a log that grows, files, copies.

The oracle knows nothing of policies. It is a base that is shown every entry of the journal with its context, in order,
as far as it goes when a decision is made, and is asked once.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import artreplay as ar
from artreplay.algorithms.valued import ValuedAlgorithm
from artreplay.replay import PENDING
from contexts.context_kit import random_context, random_contexts

ARMS = 3
EVENTS = ("ask and tell",) * 9 + ("ask",) * 3 + ("foreign",) * 3 + ("late",) * 4 + ("grow",) * 4 + ("file", "copy")
COLUMNS = ("age", "country", "device")


class Entry(NamedTuple):
    arm: int
    reward: float
    context: dict[str, Any]
    played: bool


class Difference(AssertionError):
    """A decision that is not that of the whole journal."""


def random_rows(g: random.Random, rows: int) -> list[Entry]:
    return [
        Entry(g.randrange(ARMS), g.choice([0.0, 0.0, 1.0, 1.0, 0.5]), random_context(g), False) for _ in range(rows)
    ]


def log_of(rows: list[Entry]) -> ar.History:
    """Rows as a log; one without rows still has its columns."""
    table = {name: [row.context[name] for row in rows] for name in COLUMNS}
    return ar.History([row.arm for row in rows], [row.reward for row in rows], contexts=table)


class Fold:
    """A base of the package that is shown the journal."""

    def __init__(self, make: Callable[[], Any], journal: list[Entry]) -> None:
        self.base = make()
        if self.base.counts_log:
            segments = [int(self.base.checked_context(entry.context)[0]) for entry in journal]
            self.base.count_log([segments.count(segment) for segment in range(self.base.n_segments)])
        self.shown = 0

    def show(self, entry: Entry) -> None:
        context = self.base.checked_context(entry.context)
        self.base.set_context(context)
        unit = self.base.in_context(entry.arm, context)
        if entry.played:
            self.base.component.update(unit, entry.reward)
        else:
            self.base.component.update_logged(unit, entry.reward, 0.0)

    def key(self, context: dict[str, Any]) -> Any:
        """What makes a context the same as another one."""
        return self.base.checked_context(context).tobytes()

    def decide(self, journal: list[Entry], context: dict[str, Any], round_: int, among: list[int] | None) -> Any:
        for entry in journal[self.shown :]:
            self.show(entry)
        self.shown = len(journal)
        base = self.base
        base.set_context(base.checked_context(context))
        arms = range(ARMS) if among is None else among
        if isinstance(base, ValuedAlgorithm):
            first = int(base.valued.segment[0])
            worth = {arm: base.valued.value(arm * base.n_segments + first, round_, 0, 0.0) for arm in arms}
            return max(worth, key=lambda arm: (worth[arm], -arm))
        out = np.zeros(base.width, np.int64)
        available = None if among is None else np.isin(np.arange(ARMS), among)
        units = [base.unit(number) for number in out[: base.propose_among(out, round_, available)].tolist()]
        return units if base.proposes_list else units[0]


class FreshFold(Fold):
    """The same, and for each decision another base."""

    def __init__(self, make: Callable[[], Any], journal: list[Entry]) -> None:
        super().__init__(make, journal)
        self._made = make, list(journal)

    def decide(self, journal: list[Entry], context: dict[str, Any], round_: int, among: list[int] | None) -> Any:
        return Fold(*self._made).decide(journal, context, round_, among)


class Counts:
    """A model of the user's own, whose scores depend on the order of all that it was shown."""

    contextual = True
    n_arms = ARMS

    def __init__(self) -> None:
        self.weights: dict[str, float] = {}
        self.rows = 0

    def score(self, arm: int, context: dict[str, Any], round: int) -> float:
        known = [self.weights.get(f"{arm} {name} {value}", 1.0) for name, value in sorted(context.items())]
        return sum(known) / len(known) + ((round * 7 + arm) % 5) / 50

    def update(self, arm: int, reward: float, context: dict[str, Any]) -> None:
        self.rows += 1
        for name, value in context.items():
            key = f"{arm} {name} {value}"
            self.weights[key] = self.weights.get(key, 1.0) + (reward - self.score(arm, context, 0)) / (1 + self.rows)

    def state(self) -> Any:
        return {"weights": sorted(self.weights.items()), "rows": self.rows}

    def restore(self, state: Any) -> None:
        self.weights, self.rows = dict(state["weights"]), state["rows"]


class ModelFold(Fold):
    """A model of the user's own that is shown the journal."""

    def __init__(self, make: Callable[[], Any], journal: list[Entry]) -> None:
        self.base, self.shown = make(), 0

    def key(self, context: dict[str, Any]) -> Any:
        return repr(context)

    def show(self, entry: Entry) -> None:
        self.base.update(entry.arm, entry.reward, entry.context)

    def decide(self, journal: list[Entry], context: dict[str, Any], round_: int, among: list[int] | None) -> Any:
        for entry in journal[self.shown :]:
            self.show(entry)
        self.shown = len(journal)
        scores = [self.base.score(arm, context, round_) for arm in range(ARMS)]
        return max(range(ARMS) if among is None else among, key=lambda arm: (scores[arm], -arm))


def table_of(rows: list[Entry]) -> pa.Table:
    """Rows as a frame."""
    columns = {name: [row.context[name] for row in rows] for name in COLUMNS}
    return pa.table({"arm": [row.arm for row in rows], "reward": [row.reward for row in rows]} | columns)


class Logs:
    """Random logs, in memory or laid out in folders."""

    def __init__(self, folder: Path, stores: int, segments: tuple[str, ...] = (), rows: int = 14) -> None:
        g = random.Random(7)
        self.stored = [random_rows(g, rows) for _ in range(stores)]
        self._paths = [folder / f"log {number}" for number in range(stores)]
        self._opened: dict[tuple[int, int], Any] = {}
        for path, stored in zip(self._paths, self.stored, strict=True):
            self.add(stored, path, segments)

    def add(self, rows: list[Entry], path: Path, segments: Sequence[str]) -> Any:
        """Lay rows out in a folder."""
        names = {"unit": "arm", "reward": "reward", "contexts": list(COLUMNS), "segments": segments}
        ar.index_history(table_of(rows), path, **names)  # type: ignore[arg-type]
        return ar.open_history(path)

    def open(self, number: int, rows: int) -> Any:
        if (number, rows) not in self._opened:
            self._opened[number, rows] = ar.open_history(self._paths[number]).first(rows)
        return self._opened[number, rows]


def through_a_file(policy: Any, path: Path, log: Any, base: Any) -> Any:
    """The policy, saved and loaded."""
    policy.save(path)
    return ar.load(path, log, base=base)


def play(
    make: Callable[[], Any],
    g: random.Random,
    folder: Path,
    fold: type[Fold] = Fold,
    logs: Logs | None = None,
    policy_type: Callable[[Any, Any], Any] = ar.ArtificialReplay,
    load: Callable[[Any, Path, Any, Any], Any] = through_a_file,
    rounds_of: Callable[[int, int], int] = lambda told, asked: told,
    events: int = 11,
) -> Any:
    """One journal; an error if a decision is not that of the oracle. The policy as it is at the end."""
    whole = random_rows(g, 14)
    number = g.randrange(len(logs.stored)) if logs is not None else 0
    whole = whole if logs is None else logs.stored[number]

    def opened(rows: int) -> Any:
        return log_of(whole[:rows]) if logs is None else logs.open(number, rows)

    rows = g.choice([0, 4, 9])
    journal = list(whole[:rows])
    policy, oracle = policy_type(make(), opened(rows)), fold(make, journal)
    late: list[tuple[Any, dict[str, Any]]] = []
    told = asked = 0
    answers: list[Any] = []  # the last question, and its answer, until something is told
    keys: set[Any] = set()  # the contexts that were asked for since something was told

    def tell(action: Any, context: dict[str, Any], given: bool) -> None:
        several = isinstance(action, list)
        rewards = [g.choice([0.0, 1.0]) for _ in (action if several else [action])]
        policy.tell(action, rewards if several else rewards[0], **({"context": context} if given else {}))
        for arm, reward in zip(action if several else [action], rewards, strict=True):
            journal.append(Entry(arm, reward, context, True))
        keys.clear()
        answers.clear()

    for _ in range(events):
        event = g.choice(EVENTS)
        if event.startswith("ask"):
            among = sorted(g.sample(range(ARMS), 2)) if g.random() < 0.2 else None
            contexts = [random_context(g) for _ in range(1 if g.random() < 0.8 else 2)]
            for context in contexts:  # each in place of the one before
                action = policy.ask(context, among=among)
                asked += 1
                if policy.ask(context, among=among) != action:
                    raise Difference("the pending decision has changed")
                question = oracle.key(context), among
                if not answers or answers[0] != question:  # else it is as it was made, whatever came since
                    answers[:] = question, oracle.decide(journal, context, rounds_of(told, asked), among)
                keys.add(question[0])
            expected = answers[1]
            if action != expected:
                raise Difference(f"replay plays {action!r}, the whole journal says {expected!r}")
            if event == "ask":
                late.append((action, contexts[-1]))
            else:
                tell(action, contexts[-1], given=len(keys) > 1 or g.random() < 0.5)
                told += 1
        elif event == "foreign":
            arms = [g.randrange(ARMS)]
            tell(arms if policy.drive.base.proposes_list else arms[0], random_context(g), given=True)
            told += 1
        elif event == "late" and late:
            tell(*late.pop(g.randrange(len(late))), given=True)
            told += 1
        elif event == "grow" and rows < len(whole):
            more = g.randint(rows + 1, len(whole))
            journal += whole[rows:more]
            rows = more
            policy.extend(opened(rows))
        elif event == "copy":
            policy = copy.deepcopy(policy) if g.random() < 0.5 else copy.copy(policy)
        elif event == "file":
            before = policy.drive.position[PENDING], str(policy._question)
            base = make() if not isinstance(policy.base, ar.algorithms.Algorithm) else None
            policy = load(policy, folder / "policy", opened(rows), base)
            assert (policy.drive.position[PENDING], str(policy._question)) == before
    return policy


def regression(seed: int) -> Callable[[], Any]:
    """A regression with options of its own."""
    g = random.Random(seed)
    contexts = random_contexts(g, cosines=3)
    explore, trust = g.choice(["ucb", "thompson", "greedy"]), g.choice(["auto", "log"])
    return lambda: ar.ContextRegression(ARMS, contexts, explore=explore, trust=trust, seed=seed)  # type: ignore[arg-type]


def differing(journals: int, folder: Path, make: Callable[[int], Callable[[], Any]], **options: Any) -> int:
    """In how many journals a decision is not that of the whole journal."""
    found = 0
    for seed in range(journals):
        try:
            play(make(seed), random.Random(f"control {seed}"), folder, **options)
        except Difference:
            found += 1
    return found
