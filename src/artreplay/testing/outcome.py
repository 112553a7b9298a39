"""What a check says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from artreplay.errors import ArtReplayError


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
