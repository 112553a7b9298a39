"""How claims are judged: by how far means are from a limit, and by which difference would be found."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from artreplay.compiling import Floats
from reproduction.comparisons import Policies
from reproduction.numbers import Verdict
from reproduction.result_store import Result
from reproduction.results import FOUND, SURE, Estimate, estimate, paired, same_actions, share_found

MATTERS = 0.05  # of the regret without a log: less than this is no considerable reduction, and no loss that matters


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, and whether results support it."""

    experiment: str
    text: str
    verdict: Verdict
    reason: str
    found: str = ""  # which true difference would be found four times in five; nothing if no chance is involved
    at_any_scale: bool = False  # whether a small run can judge it as well


def judged_by(experiment: str, text: str, holds: bool, reason: str) -> Claim:
    """Make a claim that holds or not, where no chance is involved."""
    return Claim(experiment, text, "agrees" if holds else "differs", reason)


def judged(experiment: str, text: str, margins: dict[str, Estimate], reason: str, unit: str = "in regret") -> Claim:
    """Judge a claim that some means are all above 0. It takes three standard errors to say so, or to deny it."""
    errors = [0.0 if math.isnan(one.error) else one.error for one in margins.values()]
    limits = [SURE * error for error in errors]
    over = [one.mean > limit for one, limit in zip(margins.values(), limits, strict=True)]
    under = [one.mean < -limit or one.mean <= limit == 0.0 for one, limit in zip(margins.values(), limits, strict=True)]
    verdict: Verdict = "differs" if any(under) else "agrees" if all(over) else "cannot tell"
    return Claim(experiment, text, verdict, reason, _found([(SURE + FOUND) * error for error in errors], unit))


def _found(sizes: list[float], unit: str) -> str:
    """Say which true differences would be found four times in five."""
    least, most = min(sizes), max(sizes)
    if most == 0.0:
        return ""
    return f"{most:.2g} {unit}" if f"{least:.2g}" == f"{most:.2g}" else f"{least:.2g} to {most:.2g} {unit}"


def margin_of(one: Result, other: Result, factor: float = 1.0, allowed: Floats | float = 0.0) -> Estimate:
    """Return how far the regret of the first, times a factor, is above that of the second, with an allowance."""
    first, second = paired(one, other)
    return estimate(factor * first - second + (allowed if isinstance(allowed, float) else allowed[: len(first)]))


def everywhere(
    experiment: str, text: str, margins: dict[str, Estimate], words: str, remark: str = ""
) -> Iterator[Claim]:
    """Make a claim about many settings."""
    if margins:
        claim = judged(experiment, text, margins, "")
        bound = {where: SURE * (0.0 if math.isnan(one.error) else one.error) for where, one in margins.items()}
        told = [where for where, one in margins.items() if one.mean > bound[where]]
        against = [where for where, one in margins.items() if one.mean <= -bound[where]]
        unsure = [where for where in margins if where not in told and where not in against]
        reason = f"{words} {len(told)} of {len(margins)} settings"
        reason += f"; not in: {'; '.join(against)}" if against else ""
        reason += f"; cannot tell in: {'; '.join(unsure)}" if unsure else ""
        yield replace(claim, reason=f"{reason}{remark}")


def equal(experiment: str, text: str, compared: Iterable[Policies]) -> Iterator[Claim]:
    """Claim that replay plays exactly what Full Start plays, in all of these settings."""
    pairs = {one.where: pair for one in compared if (pair := one.pair()) is not None}
    shares = {where: same_actions(*pair) for where, pair in pairs.items()}
    if shares:
        broken = [f"{where}: in {share:.0%} of the replications only" for where, share in shares.items() if share < 1.0]
        times = "" if len(shares) == 1 else f", in all {len(shares)} comparisons"
        reason = "; ".join(broken) or f"the same action in every round of every replication{times}"
        found = _found([100.0 * share_found(len(one.at_end("digest"))) for one, _ in pairs.values()], "% that differ")
        yield replace(judged_by(experiment, text, not broken, reason), found=found, at_any_scale=True)
