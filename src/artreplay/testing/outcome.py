"""The result of a check: a summary, or a counterexample and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from artreplay.algorithms import Algorithm
from artreplay.errors import ArtReplayError

FULL_START = "use ar.FullStart(base, history): it is right for any algorithm, because it reads the whole log first"
READS_ALL = "say `reads_whole_log = True` in the class: Artificial Replay then does what Full Start does, everywhere"
BY_VALUES = (
    "if it plays the arm that is worth most: offer `value(arm, round, unread, fill)`, what an arm is worth with "
    "`unread` more rows of the reward `fill`, and replay becomes exact, whatever the value does over time"
)
NEVER_RISING = (
    "if it plays the highest index: let no index rise, `self.index[arm] = min(self.index[arm], new)`, and let it "
    "depend on the rows of its own arm alone"
)
FALLING_VALUE = (
    "let no value fall when a reward rises: add `unread * fill` to the sum of the rewards of the log, and `unread` to "
    "their number, and keep the sum of online rewards apart"
)
OWN_ROWS = (
    "let what is known of an arm depend on the rows of that arm alone, in their order, and not on the rows of others, "
    "on counts over all arms, or on how often it was asked"
)
WIDE_RELATION = "let the relation hold for every logged unit whose row could change the proposal"


PURE_SCORE = (
    "let `score` change nothing, and depend on nothing but the rows that were shown, in their order, the context and "
    "the round: draw from a generator that is made anew from the round, and keep nothing computed for another context"
)
_LEAST = 0.0005  # less than this would be written as 0.000


def advice_for(check: str, base: Any, relation: Any) -> tuple[str, ...]:
    """Return what to do when a check fails."""
    if getattr(base, "contextual", False) is True:
        return (PURE_SCORE,)
    if isinstance(base, Algorithm) or getattr(base, "exact", None) is False:
        return (FULL_START,)
    if relation is not None:
        return (FULL_START, WIDE_RELATION)
    if hasattr(base, "value"):
        return (FULL_START, READS_ALL, FALLING_VALUE)
    return (FULL_START, READS_ALL, BY_VALUES, OWN_ROWS if check in ("irrelevant data", "completion") else NEVER_RISING)


@dataclass(frozen=True)
class Odds:
    """How often a check that failed does so, and what replay loses by it."""

    cases: int  # random worlds that were tried
    failures: int  # ... in which it failed
    losses: tuple[float, ...] | None  # in each of these, reward in a round that replay earned less than full start

    def __str__(self) -> str:
        often = f"in {self.failures} of {self.cases} random worlds"
        if self.losses is None:
            return often
        size, mean = sum(map(abs, self.losses)) / self.failures, sum(self.losses) / self.cases
        there = f"the regret of replay in a round differed there by {size:.3f} on average"
        if abs(mean) < _LEAST:
            return f"{often}; {there}, and over all {self.cases} by nothing"
        return f"{often}; {there}, and over all {self.cases} was {abs(mean):.3f} {'higher' if mean > 0 else 'lower'}"


@dataclass(frozen=True)
class Summary:
    """A check that passed: how many cases were tried, and how many of them could have failed.

    >>> import artreplay as ar
    >>> print(ar.testing.check_values(lambda: ar.UCB1(3), cases=50).check)
    values
    """

    check: str
    cases: int
    telling: int  # cases that could have failed
    longest: int = 0  # rows of the longest log that was tried
    notes: tuple[str, ...] = ()  # worth knowing, but not a failure

    @property
    def share(self) -> float:
        """The share of cases that could have failed, because there was something to find."""
        return self.telling / self.cases

    def __str__(self) -> str:
        hidden = f"a fault that needs more than {self.longest} logged rows could hide"
        sentence = f"{self.check}: holds in {self.cases} cases, {self.share:.0%} of them could have failed; {hidden}"
        return "\n".join([sentence, *(f"  note: {note}" for note in self.notes)])


class CheckFailed(ArtReplayError, AssertionError):
    """A counterexample.

    `history` is the log as (unit, reward) pairs, `actions` what each side did, and `where` the first difference.
    `snippet` is a program that shows it, once `make_base` is defined as in the check. `odds` says how often the check
    failed, and `advice` what to do.
    """

    def __init__(
        self,
        check: str,
        history: list[tuple[Any, float]],
        actions: dict[str, Any],
        where: str,
        snippet: str = "",
        odds: Odds | None = None,
        advice: tuple[str, ...] = (),
    ) -> None:
        self.snippet = snippet
        self.check = check
        self.history = history
        self.actions = actions
        self.where = where
        self.odds = odds
        self.advice = advice
        super().__init__("\n".join([self.counterexample(), *self.cures()]))

    def counterexample(self, program: str = "") -> str:
        """Return the log, what each side did, and a program that shows it and begins with the lines of `program`."""
        lines = [f"{self.check} fails: {self.where}", "  log:"]
        lines += [f"    {unit!r}  reward {reward:g}" for unit, reward in self.history] or ["    (empty)"]
        lines += [f"  {side}: {done}" for side, done in self.actions.items()]
        if self.odds is not None:
            lines.append(f"  how often: {self.odds}")
        if self.snippet:
            lines += ["  to see it:", *(f"    {line}".rstrip() for line in (program + self.snippet).splitlines())]
        return "\n".join(lines)

    def cures(self) -> list[str]:
        """Return lines that say what to do."""
        return ["  what to do:", *(f"    - {cure}" for cure in self.advice)] if self.advice else []
