"""The result of a check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from artreplay.errors import ArtReplayError


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
        """The share of cases that could have failed, which are not vacuous."""
        return self.telling / self.cases

    def __str__(self) -> str:
        hidden = f"a fault that needs more than {self.longest} logged rows could hide"
        sentence = f"{self.check}: holds in {self.cases} cases, {self.share:.0%} of them not vacuous; {hidden}"
        return "\n".join([sentence, *(f"  note: {note}" for note in self.notes)])


class CheckFailed(ArtReplayError, AssertionError):
    """A counterexample.

    `history` is the log as (unit, reward) pairs, `actions` what each side did, and `where` the first difference.
    `snippet` is a program that shows it, once `make_base` is defined as in the check.
    """

    def __init__(
        self, check: str, history: list[tuple[Any, float]], actions: dict[str, Any], where: str, snippet: str = ""
    ) -> None:
        self.snippet = snippet
        self.check = check
        self.history = history
        self.actions = actions
        self.where = where
        super().__init__(self._text())

    def _text(self) -> str:
        lines = [f"{self.check} fails: {self.where}", "  log:"]
        lines += [f"    {unit!r}  reward {reward:g}" for unit, reward in self.history] or ["    (empty)"]
        lines += [f"  {side}: {actions}" for side, actions in self.actions.items()]
        if self.snippet:
            lines += ["  to see it:", *(f"    {line}".rstrip() for line in self.snippet.splitlines())]
        return "\n".join(lines)
