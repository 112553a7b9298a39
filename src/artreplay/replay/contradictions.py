"""Where online rewards contradict the log: the online mean of an arm lies too far from the mean of its logged rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from artreplay.algorithms import ArmAlgorithm, PsiUCB
from artreplay.algorithms.drift_indices import DOUBT, DriftIndex
from artreplay.algorithms.psi import SubGaussian
from artreplay.history import Label


@dataclass(frozen=True, slots=True)
class Contradiction:
    """An arm whose online rewards contradicted its log, with both means and counts as they were when it was noticed."""

    unit: Label
    online_mean: float
    online_count: int
    logged_mean: float
    logged_count: int

    def __str__(self) -> str:
        return (
            f"{self.unit!r} earned {self.online_mean:.3g} on average in {self.online_count} rounds, but "
            f"{self.logged_mean:.3g} in the {self.logged_count} rows of the log that were read"
        )


class Watch:
    """Keeps the online rewards of each arm apart, and looks after each of them whether it contradicts the log.

    Chance alone explains a difference of √(log(1/δ)/2n) for each of the two means, but for one in a thousand (δ).
    """

    def __init__(self, base: ArmAlgorithm) -> None:
        self._base = base
        self._counts, self._totals = [0] * base.n_arms, [0.0] * base.n_arms
        self._found: dict[int, Contradiction] = {}
        self._before: tuple[list[int], list[float]] = (base.tally.counts.tolist(), base.tally.totals.tolist())
        psi = base.psi if isinstance(base, PsiUCB) else None
        self._spread = 2.0 * psi.sigma if isinstance(psi, SubGaussian) else 1.0

    def told(self, arm: int, value: float) -> None:
        """Look at an arm after an online reward, as the base sees it."""
        self._counts[arm] += 1
        self._totals[arm] += value
        if arm in self._found:
            return
        tally = self._base.tally
        played = self._counts[arm]
        shown, sum_shown = self._before[0][arm], self._before[1][arm]  # before there was a log
        logged = int(tally.counts[arm]) - played - shown
        if logged <= 0:
            return
        online_mean = self._totals[arm] / played
        logged_mean = (float(tally.totals[arm]) - sum_shown - self._totals[arm]) / logged
        chance = self._spread * (math.sqrt(DOUBT / played) + math.sqrt(DOUBT / logged))
        if abs(online_mean - logged_mean) > chance + self._allowance(arm, logged):
            means: Any = (self._base.unscaled(mean) for mean in (online_mean, logged_mean))
            online_mean, logged_mean = means
            self._found[arm] = Contradiction(self._base.arms[arm], online_mean, played, logged_mean, logged)

    def _allowance(self, arm: int, logged: int) -> float:
        """How far the means may lie apart, by the allowances of the logged rows."""
        index = getattr(self._base.component, "index", None)
        return float(index.allowances[arm]) / logged if isinstance(index, DriftIndex) else 0.0

    def found(self) -> list[Contradiction]:
        """The arms that contradicted their log, in the order in which it was noticed."""
        return list(self._found.values())

    def kept(self) -> dict[str, Any]:
        """What a file must have of it."""
        found = {
            str(arm): [one.online_mean, one.online_count, one.logged_mean, one.logged_count]
            for arm, one in self._found.items()
        }
        before = self._before if any(self._before[0]) else None
        return {"counts": self._counts, "totals": self._totals, "found": found, "before": before}

    def restore(self, kept: dict[str, Any]) -> None:
        """Take back what was kept."""
        n_arms = len(self._counts)
        counts, totals = [int(count) for count in kept["counts"]], [float(total) for total in kept["totals"]]
        if len(counts) != n_arms or len(totals) != n_arms:
            raise ValueError("the online rewards in the file are not those of its arms")
        self._counts, self._totals = counts, totals
        before = kept.get("before") or ([0] * n_arms, [0.0] * n_arms)
        if not len(before[0]) == len(before[1]) == n_arms:
            raise ValueError("what the base was shown before, in the file, is not that of its arms")
        self._before = ([int(count) for count in before[0]], [float(total) for total in before[1]])
        arms = self._base.arms
        self._found = {int(arm): Contradiction(arms[int(arm)], *values) for arm, values in kept["found"].items()}


def watch_of(base: Any) -> Watch | None:
    """What watches a base: over arms, where it is known how far rewards can spread by chance."""
    if not isinstance(base, ArmAlgorithm):
        return None
    known = base.reward_range[1] < math.inf or (isinstance(base, PsiUCB) and isinstance(base.psi, SubGaussian))
    return Watch(base) if known else None
