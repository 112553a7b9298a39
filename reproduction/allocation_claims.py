"""What the paper claims about splitting a budget over places, and whether results support it.

The rule of the paper, the code of its authors and our own rule are judged each by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reproduction import comparisons
from reproduction.catalogue import (
    BAD_SHARES,
    CELLS,
    FINEST,
    FIXED,
    IMBALANCED_CELLS,
    LEAVES,
    OURS,
    PATROL,
    SOLVERS,
    SYNTHETIC,
)
from reproduction.comparisons import Policies
from reproduction.judging import MATTERS, Claim, equal, everywhere, judged, margin_of
from reproduction.results import SURE, Estimate, Results, difference, estimate, shown

_STANDS_IN = f"a {SYNTHETIC} in place of the private records of the paper"
_MINE = "(Ours, not the paper's.) "


def performance_claims(results: Results) -> Iterator[Claim]:
    """Claims about the domains of the paper, with the paper's cells and ours."""
    found = list(comparisons.allocations(results))
    names = dict.fromkeys(_STANDS_IN if one.domain == PATROL else one.domain for one in found)
    for cells in CELLS:
        both = [policies for one in found if one.cells == cells for policies in (one.small, one.large)]
        text = f"Artificial Replay performs as Full Start does: {cells} ({', '.join(names)})."
        yield from equal("performance", _mine(cells) + text, both)
    text = "Artificial Replay performs as Full Start does: the authors' code, rebuilt."
    yield from _alike("performance", text, comparisons.rebuilt(results))
    for cells in CELLS:
        yield from _helped(results, cells, [one for one in found if one.cells == cells])
    rebuilt = {
        one.where.partition(", ")[2]: _helps(one) for one in comparisons.rebuilt(results) if one.ignorant and one.full
    }
    text = "Both reduce regret considerably against the algorithm that ignores the log: the authors' code, rebuilt."
    yield from everywhere("performance", text, rebuilt, "by a twentieth or more in")
    yield from _networks(found)
    yield from _greedy(results)


def _mine(cells: str) -> str:
    return _MINE if cells == FINEST else ""


def _helps(one: Policies) -> Estimate:
    """Return by how much a log reduces regret beyond a twentieth."""
    if one.ignorant is None or one.full is None:
        raise LookupError(f"{one.where} was not computed")
    return margin_of(one.ignorant, one.full, 1.0 - MATTERS)


def _helped(results: Results, cells: str, found: list[comparisons.Allocated]) -> Iterator[Claim]:
    """Judge whether a log of the size in the paper reduces regret. A larger one is a remark."""
    small, large = (
        {one.where.removeprefix(f"{cells}, "): _helps(one) for one in policies if one.ignorant and one.full}
        for policies in ([one.small for one in found], [one.large for one in found])
    )
    remark = f". With {results.scale.large_log:,} rows in {_surely(large.values())} of {len(large)}" if large else ""
    text = f"Both reduce regret considerably against the algorithm that ignores the log: {cells}."
    yield from everywhere("performance", _mine(cells) + text, small, "by a twentieth or more in", remark)


def _alike(experiment: str, text: str, found: Iterable[Policies]) -> Iterator[Claim]:
    """Judge whether replay has the regret of Full Start in the authors' code, up to what would not matter."""
    margins, gaps = {}, []
    for one in found:
        pair = one.pair()
        if pair is not None and one.ignorant is not None:
            replay, full = pair
            allowed = MATTERS * float(one.ignorant.at_end("regret").mean())
            margins[f"{one.where}, more"] = margin_of(full, replay, allowed=allowed)
            margins[f"{one.where}, less"] = margin_of(replay, full, allowed=allowed)
            gaps.append(f"{shown(difference(replay, full))} ({one.where.partition(', ')[2]})")
    if margins:
        reason = f"replay's regret minus that of Full Start is {', '.join(gaps)}; a twentieth of the regret without "
        reason += "a log would not matter"
        yield judged(experiment, text, margins, reason)


def _networks(found: list[comparisons.Allocated]) -> Iterator[Claim]:
    """Judge the network of the paper's authors with the paper's log and rule. Fixed cells and ours are remarks."""
    margins = {
        cells: {
            one.label: margin_of(one.small.network, one.small.full)
            for one in found
            if one.cells == cells and one.small.network and one.small.full
        }
        for cells in (LEAVES, FIXED)
    }
    ours = [
        margin_of(policies.learnt, policies.full)
        for one in found
        if one.cells == LEAVES
        for policies in (one.small, one.large)
        if policies.learnt and policies.full
    ]
    remark = f". Beside fixed cells, in {_surely(margins[FIXED].values())} of {len(margins[FIXED])}"
    if ours:
        remark += f". Our network, which is trained longer, is worse in {_surely(ours)} of {len(ours)}, with both logs"
    text = "The neural network that is trained on the log does poorly."
    words = f"with {found[0].small.rows:,} rows its regret is larger than Full Start's" if found else ""
    words += " with the paper's rule for adaptive cells in"
    yield from everywhere("performance", text, margins[LEAVES], words, remark)


def _surely(margins: Iterable[Estimate]) -> int:
    return sum(one.mean > SURE * one.error for one in margins)


def _greedy(results: Results) -> Iterator[Claim]:
    exact, greedy = (comparisons.binding(results, solver).replay for solver in SOLVERS)
    if exact and greedy:
        text = "Where reward is concave in effort, choosing greedily is as good as the best choice."
        told = []
        for name, one in (("greedy", greedy), ("the exact choice", exact)):
            spent, lost = (shown(estimate(one.at_end(metric))) for metric in ("spent", "regret"))
            told.append(f"{name} spends {spent} a round and loses {lost}")
        where = "where the number of places binds (5 places, effort 40, levels 2, 4, 8)"
        margin = margin_of(exact, greedy, 1.0 + MATTERS)
        yield judged("performance", text, {"": margin}, f"{where}, {', '.join(told)}")


def surfaces_claims(results: Results) -> Iterator[Claim]:
    """Claims about our own rule on the domains of the paper."""
    found = list(comparisons.allocations(results, OURS, "surfaces"))
    both = [policies for one in found for policies in (one.small, one.large)]
    text = "(Ours, not the paper's.) With surfaces fitted to the log, replay plays as Full Start does."
    yield from equal("surfaces", text, both)


def imbalanced_claims(results: Results) -> Iterator[Claim]:
    """Claims about logs that lie in bad places."""
    for cells in IMBALANCED_CELLS:
        found = [comparisons.imbalanced(results, share, cells) for share in BAD_SHARES]
        text = f"With more of the log in bad places, replay still has the regret of Full Start: {cells}."
        yield from equal("imbalanced", _mine(cells) + text, found)
        yield from _less_used(results, f": {cells}.", _mine(cells), found)
    rebuilt = list(comparisons.rebuilt_imbalanced(results).values())
    text = "With more of the log in bad places, replay still has the regret of Full Start: the authors' code, rebuilt."
    yield from _alike("imbalanced", text, rebuilt)
    yield from _less_used(results, ": the authors' code, rebuilt.", "", rebuilt)


def _less_used(results: Results, of_what: str, whose: str, found: list[Policies]) -> Iterator[Claim]:
    """Judge what replay saves: rows, and regions."""
    used = [one.replay.at_end("used") for one in found if one.replay is not None]
    if len(used) == len(BAD_SHARES):
        told = ", ".join(f"{each.mean():,.0f}" for each in used)
        steps = zip(BAD_SHARES, used, used[1:], strict=False)
        margins = {f"from {share:g} on": estimate(more - less) for share, more, less in steps}
        words = f"used of {results.scale.imbalanced_log:,}: {told}"
        yield judged("imbalanced", f"{whose}The worse the log, the less of it is used{of_what}", margins, words, "rows")
    pairs = {one.where.rpartition(", ")[2]: pair for one in found if (pair := one.pair()) is not None}
    if pairs:
        told = ", ".join(
            f"{mine.at_end('cells').mean():,.0f} against {full.at_end('cells').mean():,.0f} at {where}"
            for where, (mine, full) in pairs.items()
        )
        text = f"{whose}Replay divides space into fewer regions than Full Start{of_what}"
        margins = {where: difference(full, mine, "cells") for where, (mine, full) in pairs.items()}
        yield judged("imbalanced", text, margins, f"leaves of the trees of all levels: {told}", "leaves")
