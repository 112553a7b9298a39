"""Errors in the paper, and where the method does not help: what a reader should know before the figures."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reproduction import comparisons
from reproduction.catalogue import BAD_SHARES, FULL_SCALE
from reproduction.result_store import Result
from reproduction.results import Results, difference, estimate, larger, paired, same_actions, shown, slower


class Slip(NamedTuple):
    """A statement in the paper that is wrong, and what holds instead."""

    printed: str
    instead: str


def slips(results: Results) -> list[Slip]:
    """Return the slips, with our numbers where there are meaningful ones."""
    if results.scale.horizon != FULL_SCALE.horizon:
        results = Results(results.scale, [], results.store)
    return [
        Slip("117 samples are used before the first online action (B=1, H=1,000).", _first(results)),
        Slip("58.2 % of 10,000 samples are irrelevant (B=1).", _unused(results)),
        Slip("Replay uses less than half of the log, for B=1 and B=3.", _half(results)),
        Slip(
            "The quadratic reward is β(1 − (p₁ − ½)² + (p₂ − ½)²), best at the centre.",
            "With the plus it is best at an edge; the centre needs a minus before both squares.",
        ),
        Slip("ψ* is the supremum of λε − ψ(ε).", "It is the supremum over λ of λε − ψ(λ)."),
        Slip(
            "The bonus of ψ-UCB has log(TK); elsewhere log T and log(2TK). ψ(λ) = λ²/8 gives Algorithm 1.",
            "Three different terms for one; with λ²/8 the bonus is √(log(TK)/n), not Algorithm 1's √(2 log T/n).",
        ),
        Slip(
            "A region splits when its bonus is below its diameter (main text); when n ≥ 4^depth (appendix).",
            "Two rules. The second is the default here, the first is an option.",
        ),
        Slip(
            "Historical data are a set; their order does not matter.",
            "It does: the index is a running minimum. Full Start that loads counts and means at once is another "
            f"algorithm{_batch(results)}.",
        ),
        Slip(
            "Adaptive cells with a budget have independence of irrelevant data (a theorem).",
            "They do not: a sample at one level can split a region and free a child at another"
            f"{_paper_rule(results)}. With the choice over the boxes of the finest grid they do.",
        ),
        Slip(
            "On a grid, samples within distance γ are related.",
            "Then replay and Full Start differ; related is what lies in the same half-open box.",
        ),
        Slip(
            "The greedy choice is optimal when the reward is submodular, as in patrols.",
            f"Not where the number of places binds, even with rewards that are concave in effort{_greedy(results)}.",
        ),
        Slip(
            "IDS maximises return over variance, and explodes because its posterior is too sure.",
            "It minimises squared regret over information; the explosion comes from one fallback line"
            f"{_fallback(results)}.",
        ),
        Slip(
            "The gain in regret is the regret of the samples that replay used.",
            "Path by path this holds where one unit is played in a round, not where several are.",
        ),
    ]


def where_history_does_not_help(results: Results) -> list[str] | None:
    """Return the settings in which Full Start is not better than ignoring the log, beyond two standard errors.

    Return None if nothing was compared.
    """
    compared = [(one, one.full, one.ignorant) for one in comparisons.everything(results)]
    both = [(one.where, full, ignorant) for one, full, ignorant in compared if full and ignorant]
    if not both:
        return None
    return [
        f"{where}: regret {_regrets(full, ignorant, 'with the log', 'without')}"
        for where, full, ignorant in both
        if not larger(ignorant, full)
    ]


def where_the_regressor_wins(results: Results) -> list[str] | None:
    """Return the settings in which a network trained on the log beats replay by more than two standard errors.

    Those with the largest difference come first. Return None if nothing was compared.
    """
    compared = [(one.where, one.learnt, one.replay) for one in comparisons.everything(results)]
    both = [(where, learnt, replay) for where, learnt, replay in compared if learnt and replay]
    if not both:
        return None
    won = [(where, learnt, replay) for where, learnt, replay in both if larger(replay, learnt)]
    won.sort(key=lambda one: one[1].at_end("regret").mean() / one[2].at_end("regret").mean())
    return [
        f"{where}: regret {_regrets(learnt, replay, 'by training on the log', 'with replay')}"
        for where, learnt, replay in won
    ]


def where_replay_does_not_win(results: Results) -> list[str] | None:
    """Return the settings in which replay has more regret than Full Start, beyond two standard errors.

    Return None if nothing was compared.
    """
    pairs = [(one.where, pair) for one in comparisons.everything(results) if (pair := one.pair()) is not None]
    if not pairs:
        return None
    return [
        f"{where}: regret {_regrets(replay, full, 'with replay', 'with Full Start')}"
        for where, (replay, full) in pairs
        if larger(replay, full)
    ]


def where_replay_is_slower(results: Results) -> list[str]:
    """Return the imbalanced logs on which replay takes more processor time per replication than Full Start."""
    found = []
    for share in BAD_SHARES:
        one = comparisons.imbalanced(results, share)
        pair = one.pair()
        if pair is not None and slower(*pair):
            replay, full = (shown(estimate(1000.0 * np.array(result.timings))) for result in pair)
            found.append(
                f"a log of {one.rows:,} in memory, {one.where}: {replay} ms a replication with replay, "
                f"{full} ms with Full Start"
            )
    return found


def _regrets(one: Result, other: Result, first: str, second: str) -> str:
    """Tell both regrets and their difference, over the replications that both have."""
    mine, theirs = (shown(estimate(each)) for each in paired(one, other))
    return f"{mine} {first}, {theirs} {second}: a change of {shown(difference(one, other))}"


def _regret(result: Result) -> str:
    return shown(estimate(result.at_end("regret")))


def _share_used(results: Results, experiment: str, rows: int) -> float | None:
    replay = comparisons.over_arms(results, experiment, rows).replay
    return None if replay is None else float(replay.at_end("used").mean()) / rows


def _first(results: Results) -> str:
    replay = comparisons.over_arms(results, "karmed", results.scale.middle).replay
    ours = f" We find {shown(estimate(replay.at_start('used')))}." if replay is not None else ""
    return f"A slip for 177: the authors' code gives 177.85.{ours}"


def _unused(results: Results) -> str:
    one, three = (_share_used(results, name, results.scale.sizes[-1]) for name in ("karmed", "top-arms"))
    ours = "" if one is None or three is None else f" We find {1 - one:.0%} for B=1 and {1 - three:.0%} for B=3."
    return f"That is the figure for B=3.{ours}"


def _half(results: Results) -> str:
    told = []
    for experiment, budget in (("karmed", 1), ("top-arms", 3)):
        shares = {rows: _share_used(results, experiment, rows) for rows in results.scale.sizes}
        much = [f"{share:.0%} at H={rows:,}" for rows, share in shares.items() if share is not None and share >= 0.5]
        told += [f"B={budget} uses {', '.join(much)}"] if much else []
    return f"Not with a small log, and for B=3 not with 1,000 samples either{': ' + '; '.join(told) if told else ''}."


def _batch(results: Results) -> str:
    pairs = {budget: comparisons.batched(results, budget, {}) for budget in (1, 3)}
    told = [
        f"{1.0 - same_actions(*pair):.0%} of the replications at B={budget}"
        for budget, pair in pairs.items()
        if pair is not None
    ]
    return f" and plays otherwise in {' and '.join(told)}" if told else ""


def _paper_rule(results: Results) -> str:
    pair = comparisons.ruled(results, "paper").pair()
    return (
        ""
        if pair is None
        else f", and replay plays otherwise in {1.0 - same_actions(*pair):.0%} of replications with three places"
    )


def _greedy(results: Results) -> str:
    greedy = comparisons.binding(results, "greedy").replay
    return "" if greedy is None else f": it spends {greedy.at_end('spent').mean():.0f} of 40"


def _fallback(results: Results) -> str:
    rows = results.scale.randomised_sizes[-1]
    with_it, without = (
        comparisons.randomised(results, name, "uniform", rows).full
        for name in ("IDS published", "IDS without fallback")
    )
    return f": {_regret(with_it)} with it, {_regret(without)} without" if with_it and without else ""
