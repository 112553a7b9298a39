"""What `inspect` says of a log in sentences: the first one is what someone must not miss."""

from __future__ import annotations

import math

from artreplay.algorithms import KLUCB, ArmAlgorithm
from artreplay.cli.names import name_of
from artreplay.console.output import number, percent, text_of
from artreplay.engine.log_outlook import Outlook
from artreplay.inspecting import ContextChecks, Estimate, OffPolicy

MAX_NAMED = 6
MAX_ROWS = 1e12  # of a log that anybody could have
UNKNOWN = (
    "The log does not say why an arm was chosen. Where the old policy chose by what also moves the reward (position, "
    "hour, who asks), a mean says where its arm was shown, and not what it earns."
)
CURE = "Name such columns with --context, or the chance of each choice with --propensity."


def verdict(outlook: Outlook, off_policy: OffPolicy | None, checks: ContextChecks | None, is_rows: bool) -> list[str]:
    """Say what the log can decide. What contradicts its plain means comes first."""
    doubts = [*_by_propensities(outlook, off_policy), *_by_contexts(checks)]
    if doubts:
        return [*doubts, *_about_rows(outlook)]
    sentences = [_decided(outlook, off_policy, checks), *_about_rows(outlook)]
    if len(outlook.standings) > 1 and off_policy is None and checks is None:
        sentences.append(f"{UNKNOWN} {CURE if is_rows else 'A table of totals cannot show it.'}")
    return sentences


def _by_propensities(outlook: Outlook, off_policy: OffPolicy | None) -> list[str]:
    """Say where the weighted rows contradict the plain means."""
    if off_policy is None or outlook.leader is None or len(off_policy.arms) < 2:
        return []
    leader, best = off_policy.of(outlook.leader), off_policy.best
    name = text_of(leader.arm)
    both = f"{name} earns {with_interval(leader.earns)} a round"
    is_high = leader.is_misjudged and leader.mean > leader.earns.high
    why = f" The old policy chose {name} where rewards are high." if is_high else ""
    is_beaten = off_policy.is_beaten(leader.arm)
    if best.arm != leader.arm and (is_beaten or best.mean <= leader.mean):  # else few rows alone make it no leader
        both += f" and {text_of(best.arm)} {with_interval(best.earns)}"
        if is_beaten:
            return [
                f"{name} leads by the means of the log, with {number(leader.mean)}, but it is not the best arm: by the "
                f"propensities {both}.{why}"
            ]
        return [
            f"Means and propensities disagree: {name} leads by the means of the log, with {number(leader.mean)}, but "
            f"by the propensities {both}.{why} The log cannot tell which is better."
        ]
    if leader.is_misjudged:
        return [
            f"Means and propensities disagree about how much {name} earns: its mean in the log is "
            f"{number(leader.mean)}, but by the propensities {both}.{why}"
        ]
    return []


def _by_contexts(checks: ContextChecks | None) -> list[str]:
    """Say where the ranking adjusted for the context contradicts the plain one."""
    if checks is None:
        return []
    ranking = checks.confounding
    leader, columns = text_of(ranking.leader), ", ".join(ranking.columns)
    if ranking.is_certain:
        best = f"{text_of(ranking.best)} earns most" if ranking.disagrees else f"other arms earn more than {leader}"
        return [
            f"{leader} earns most in the log because it was shown at {ranking.column} {ranking.value}: adjusted for "
            f"{columns}, {best}."
        ]
    if ranking.disagrees:
        return [
            f"{leader} earns most in the log, but choice and reward both depend on {columns}: adjusted for that "
            f"{text_of(ranking.best)} leads, by no more than chance explains. The log cannot tell which is better."
        ]
    return []


def _decided(outlook: Outlook, off_policy: OffPolicy | None, checks: ContextChecks | None) -> str:
    """Say what the means decide, and how sure that is."""
    arms, worse = len(outlook.standings), sum(one.is_worse for one in outlook.standings)
    leader = text_of(outlook.leader)
    if arms < 2:
        return "The log has only one arm, so there is nothing to decide."
    if worse == 0:
        return f"Rewards of {outlook.successes:,.0f} in all, over {arms:,} arms, cannot tell the arms apart."
    if outlook.undecided:
        names = [text_of(one.arm) for one in outlook.standings if not one.is_worse and one.arm != outlook.leader]
        more = f" and {len(names) - MAX_NAMED:,} more" if len(names) > MAX_NAMED else ""
        race = f"these may be as good: {', '.join(names[:MAX_NAMED])}{more}"
        lower = "has a clearly lower mean" if worse == 1 else "have clearly lower means"
        return f"{worse:,} of {arms:,} arms {lower} than {leader}; {race}."
    if off_policy is not None:
        if off_policy.beats_all(outlook.leader):
            return f"{leader} is the best of {arms:,} arms beyond doubt: by its mean, and by the log's propensities."
        return (
            f"{leader} has the best mean of {arms:,} arms, beyond chance, and leads by the log's propensities too, but "
            "not beyond chance."
        )
    if checks is None:
        return f"{leader} has the best mean of {arms:,} arms, beyond chance."
    columns = ", ".join(checks.confounding.columns)
    also = f"It leads adjusted for {columns} too" if columns else "None of the columns moves choice and reward alike"
    return f"{leader} has the best mean of {arms:,} arms, beyond chance. {also}."


def _about_rows(outlook: Outlook) -> list[str]:
    """Say how many rows would decide more."""
    if not outlook.undecided or not math.isfinite(outlook.rows_for_half):
        return []
    worse = sum(one.is_worse for one in outlook.standings)
    which = "half of the others" if worse == 0 else "half of those that are left"
    apart = f"tell {which} from {text_of(outlook.leader)}"
    if outlook.rows_for_half > MAX_ROWS:
        return [f"Their means are so close together that no log will {apart}."]
    return [f"About {_rounded(outlook.rows_for_half)} rows like these would {apart}."]


def what_is_read(outlook: Outlook, cls: type[ArmAlgorithm]) -> str:
    """Say in a sentence how much replay will read."""
    if math.isnan(outlook.read_share) and cls.offers_value:
        return (
            f"With {name_of(cls)} replay reads until its choice is certain. Nobody can say beforehand how much that is."
        )
    if math.isnan(outlook.read_share):
        return f"Under {name_of(cls)} the whole log is read."
    about = "nearly all" if outlook.read_share > 0.95 else f"about {percent(outlook.read_share)}"
    return f"With {name_of(cls)} replay will probably read {about} of the log in {outlook.rounds:,} rounds."


def warnings_for(outlook: Outlook, base: ArmAlgorithm, rows: int) -> list[str]:
    """Say what is wrong with an algorithm for this log, such as a bonus that is too wide."""
    cls, sentences = type(base), []
    if outlook.bonus_is_too_wide:
        other = "" if cls is KLUCB else f"; {name_of(KLUCB)} has a narrower one"
        sentences.append(
            f"the bonus of {name_of(cls)} is still {number(outlook.bonus)} after {outlook.rounds:,} rounds, wider than "
            f"the {number(outlook.differences)} between the best and the worst arm, so it will play nearly at random"
            f"{other}"
        )
    if (why := base.why_horizon_is_short(rows)) is not None:
        sentences.append(why)
    return sentences


def off_policy_lines(off_policy: OffPolicy) -> list[str]:
    """Compare what the best arm would have earned with what was played."""
    best = off_policy.best
    return [
        f"By the log's propensities, always playing {text_of(best.arm)} would earn {with_interval(best.earns)} a round "
        f"({best.rows:,} rows). What was played earned {with_interval(off_policy.was_earned)}."
    ]


def context_lines(checks: ContextChecks, forecast: str | None) -> list[str]:
    """Say what the context columns are good for, beside the tables."""
    lines: list[str] = []
    ranking = checks.confounding
    if ranking.columns:
        lines.append(f"Choice and reward both depend on {', '.join(ranking.columns)}; the table has adjusted means.")
    if forecast is not None:
        lines.append(forecast)
    return lines


def with_interval(one: Estimate) -> str:
    """Write a number with its interval."""
    return f"{number(one.value)} [{number(one.low)}, {number(one.high)}]"


def _rounded(rows: float) -> str:
    """Round a number of rows to two significant digits."""
    size = 10 ** max(int(math.log10(max(rows, 1.0))) - 1, 0)
    return f"{round(rows / size) * size:,}"
