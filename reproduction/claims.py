"""What the paper claims, in our words, and whether results support it. Verdicts are computed, not written by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from artreplay.compiling import Floats
from reproduction import comparisons, published
from reproduction.base_and_environment import hills
from reproduction.catalogue import BAD_SHARES, FULL_SCALE, OURS, PATROL, SOLVERS, SYNTHETIC
from reproduction.comparisons import Policies
from reproduction.numbers import Verdict
from reproduction.result_store import Result
from reproduction.results import Results, difference, estimate, larger, reduced, same_actions, shown

_EXPLODED = 3.0  # a regret this many times that of replay counts as exploded
_STANDS_IN = f"a {SYNTHETIC} in place of the private records of the paper"


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, and whether results support it."""

    experiment: str
    text: str
    verdict: Verdict
    reason: str
    at_any_scale: bool = False  # whether a small run can judge it as well


def claims(results: Results) -> list[Claim]:
    """Return all claims that results can judge. Of a small run, only those that hold at any scale."""
    found = [claim for made in _CLAIMS for claim in made(results)]
    return [claim for claim in found if claim.at_any_scale or results.scale.horizon == FULL_SCALE.horizon]


def _claim(experiment: str, text: str, holds: bool, reason: str) -> Claim:
    return Claim(experiment, text, "agrees" if holds else "differs", reason)


def _equal(experiment: str, text: str, compared: Iterable[Policies]) -> Iterator[Claim]:
    """Claim that replay plays exactly what Full Start plays, in all of these settings."""
    shares = {one.where: same_actions(*pair) for one in compared if (pair := one.pair()) is not None}
    if shares:
        broken = [f"{where}: in {share:.0%} of the replications only" for where, share in shares.items() if share < 1.0]
        times = "" if len(shares) == 1 else f", in all {len(shares)} comparisons"
        reason = "; ".join(broken) or f"the same action in every round of every replication{times}"
        yield replace(_claim(experiment, text, not broken, reason), at_any_scale=True)


# -- finite arms --------------------------------------------------------------------------------------------------


def _over_arms(experiment: str, results: Results) -> Iterator[Claim]:
    found = [comparisons.over_arms(results, experiment, rows) for rows in results.scale.sizes]
    yield from _equal(experiment, "Artificial Replay has the regret of Full Start at every size of log.", found)
    used = {one.rows: float(one.replay.at_end("used").mean()) / one.rows for one in found if one.replay is not None}
    if used:
        text = "It does so with less than half of the log."
        told = ", ".join(f"{share:.0%} at H={rows:,}" for rows, share in used.items())
        yield _claim(experiment, text, all(share < 0.5 for share in used.values()), f"the share used is {told}")
    largest = results.scale.sizes[-1]
    if experiment == "karmed" and largest in used:
        yield _unused_claim(1.0 - used[largest], largest)


def _unused_claim(left: float, rows: int) -> Claim:
    """Judge the unused share. For one arm in a round, the paper prints what its code gives for three."""
    printed = published.ARMS_IN_PAPER[1, 10_000][published.UNUSED]
    of_three = published.ARMS[3, 10_000][published.UNUSED][0]
    found_instead = f"{left:.0%} of {rows:,} stay unused; {of_three:g} % is what three arms in a round leave"
    text = f"Of 10,000 logged samples, {printed:g} % are irrelevant."
    claim = _claim("karmed", text, abs(100.0 * left - printed) < 2.0, found_instead)
    is_slip = claim.verdict == "differs" and abs(of_three - printed) < 1.0
    return replace(claim, verdict="slip") if is_slip else claim


def _randomised(results: Results) -> Iterator[Claim]:
    rows = results.scale.randomised_sizes[-1]
    thompson, published, plain = (
        comparisons.randomised(results, name, "uniform", rows).pair()
        for name in ("Thompson", "IDS published", "IDS without fallback")
    )
    if thompson is not None:
        gap = difference(*thompson)
        text = (
            "With Thompson sampling, which has no independence of irrelevant data, replay does as well as Full Start."
        )
        sign = "larger" if gap.mean > 0.0 else "smaller"
        size = shown(gap._replace(mean=abs(gap.mean)))
        reason = f"at H={rows:,} replay's regret is {sign} by {size}; the actions are not the same ones"
        yield _claim("thompson-ids", text, gap.mean < 0.0 or gap.agrees(0.0, None), reason)
    for pair, text, words in (
        (
            published,
            "With information-directed sampling and 1,000 samples, Full Start's regret explodes and replay's does not.",
            "with the rule of the authors' code",
        ),
        (
            plain,
            "The explosion comes from a posterior that is too sure of a bad arm.",
            "without one line of the authors' code, which plays the arm of least gain as soon as any gain is below "
            "1e-6: the explosion comes from that line",
        ),
    ):
        if pair is not None:
            replay, full = (estimate(result.at_end("regret")) for result in pair)
            reason = f"Full Start has {shown(full)} and replay {shown(replay)} {words}"
            yield _claim("thompson-ids", text, full.mean > _EXPLODED * replay.mean, reason)


# -- allocations --------------------------------------------------------------------------------------------------


def _performance(results: Results) -> Iterator[Claim]:
    found = list(comparisons.allocations(results))
    both = [policies for one in found for policies in (one.small, one.large)]
    names = dict.fromkeys(_STANDS_IN if one.domain == PATROL else one.domain for one in found)
    text = f"Artificial Replay performs as Full Start does, on fixed and adaptive cells ({', '.join(names)})."
    yield from _equal("performance", text, both)
    helped = {one.where: reduced(one.ignorant, one.full) for one in both if one.ignorant and one.full}
    text = "Both reduce regret considerably against the algorithm that ignores the log."
    yield from _everywhere(text, helped, "by a twentieth or more, beyond two standard errors, in")
    poor = {
        policies.where: larger(policies.learnt, policies.full) for policies in both if policies.learnt and policies.full
    }
    text = "The neural network that is trained on the log does poorly."
    yield from _everywhere(text, poor, "its regret is larger than Full Start's in")
    exact, greedy = (comparisons.binding(results, solver).replay for solver in SOLVERS)
    if exact and greedy:
        text = "Where reward is concave in effort, choosing greedily is as good as the best choice."
        told = []
        for name, one in (("greedy", greedy), ("the exact choice", exact)):
            spent, lost = (shown(estimate(one.at_end(metric))) for metric in ("spent", "regret"))
            told.append(f"{name} spends {spent} a round and loses {lost}")
        where = "where the number of places binds (5 places, effort 40, levels 2, 4, 8)"
        yield _claim("performance", text, not larger(greedy, exact), f"{where}, {', '.join(told)}")


def _everywhere(text: str, holds: dict[str, bool], words: str) -> Iterator[Claim]:
    """Make a claim about many settings."""
    if holds:
        against = [where for where, true in holds.items() if not true]
        reason = f"{words} {len(holds) - len(against)} of {len(holds)} settings"
        reason += f"; not in: {'; '.join(against)}" if against else ""
        yield _claim("performance", text, not against, reason)


def _surfaces(results: Results) -> Iterator[Claim]:
    found = list(comparisons.allocations(results, OURS, "surfaces"))
    both = [policies for one in found for policies in (one.small, one.large)]
    text = "(Ours, not the paper's.) With surfaces fitted to the log, replay plays as Full Start does."
    yield from _equal("surfaces", text, both)


def _imbalanced(results: Results) -> Iterator[Claim]:
    found = [comparisons.imbalanced(results, share) for share in BAD_SHARES]
    yield from _equal(
        "imbalanced", "With more of the log in bad places, replay still has the regret of Full Start.", found
    )
    used = [float(one.replay.at_end("used").mean()) for one in found if one.replay is not None]
    if len(used) == len(BAD_SHARES):
        told = ", ".join(f"{count:,.0f}" for count in used)
        text = "The worse the log, the less of it is used."
        words = f"used of {results.scale.imbalanced_log:,}: {told}"
        yield _claim("imbalanced", text, used == sorted(used, reverse=True), words)
    regions = {
        one.where: [float(result.at_end("cells").mean()) for result in pair]
        for one in found
        if (pair := one.pair()) is not None
    }
    if regions:
        told = ", ".join(f"{mine:,.0f} against {full:,.0f} at {where}" for where, (mine, full) in regions.items())
        text = "Replay divides space into fewer regions than Full Start."
        yield _claim("imbalanced", text, all(mine < full for mine, full in regions.values()), told)


# -- pictures -----------------------------------------------------------------------------------------------------


def _fixed_and_adaptive(results: Results) -> Iterator[Claim]:
    grid, tree = (results.get("fixed-vs-adaptive", algorithm=algorithm) for algorithm in ("GridUCB", "TreeUCB"))
    if grid is not None and tree is not None:
        cells = tree.cells()
        width = cells[:, 2] - cells[:, 0]
        reward = hills((cells[:, :2] + cells[:, 2:4]) / 2.0)
        fine, coarse = (float(reward[width == extreme].mean()) for extreme in (width.min(), width.max()))
        text = "Adaptive cells are small where reward is high and large elsewhere, and fewer."
        reason = (
            f"{len(cells)} cells against {len(grid.cells())} of the grid; mean reward {fine:.2f} in the smallest, "
            f"{coarse:.2f} in the largest"
        )
        yield _claim("fixed-vs-adaptive", text, fine > coarse and len(cells) < len(grid.cells()), reason)


def _domains(results: Results) -> Iterator[Claim]:
    linear, quadratic = (results.get("domains", environment=domain) for domain in ("piecewise linear", "quadratic"))
    if linear is not None:
        means, across, up = _over_square(linear)
        best = means.argmax()
        at_corner = bool(across[best] == across.max() and up[best] == up.max())
        reason = f"it is best at ({across[best]:.2f}, {up[best]:.2f}), the last box of the grid shown"
        yield _claim("domains", "The piecewise linear reward is best at (1, 1).", at_corner, reason)
    if quadratic is not None:
        means, across, up = _over_square(quadratic)
        best = means.argmax()
        printed = 1.0 - (across - 0.5) ** 2 + (up - 0.5) ** 2
        reason = (
            f"as printed it is {printed.max():.2f} at an edge and {printed[best]:.2f} at the centre; with a minus "
            f"before both squares, as used here, it is best at ({across[best]:.2f}, {up[best]:.2f})"
        )
        text = "The quadratic reward, as printed, is best at the centre."
        yield _claim("domains", text, bool(printed.argmax() == best), reason)


def _over_square(result: Result) -> tuple[Floats, Floats, Floats]:
    """Return the means of a surface, and the coordinates of each."""
    means = result.measured["mean"][1][0]
    side = round(len(means) ** 0.5)
    axis = (np.arange(side) + 0.5) / side
    across, up = np.meshgrid(axis, axis)
    return means, across.ravel(), up.ravel()


def _discretisation(results: Results) -> Iterator[Claim]:
    found = [(logged, results.get("discretisation", history=logged)) for logged in results.scale.logged]
    shares = {logged: half_of_samples(result) for logged, result in found if result is not None}
    if shares:
        told = ", ".join(f"{share:.0%} after {logged:,}" for logged, share in shares.items())
        text = "A patrol log covers its area unevenly: cells are fine where samples are many and coarse elsewhere."
        reason = (
            f"the paper's records are private, and ours are of a {SYNTHETIC} that was made to be walked unevenly, "
            f"which says nothing about them; in it, half of the samples lie in this share of the area: {told}"
        )
        yield Claim("discretisation", text, "not tested", reason)


def half_of_samples(result: Result) -> float:
    """Return the smallest share of the area, over all levels, whose cells hold half of the samples of a log."""
    cells, samples = result.cells(), result.samples()
    low, high, level = cells[:, None, :2], cells[:, None, 2:4], cells[:, None, 4]
    inside = ((samples[:, :2] >= low) & (samples[:, :2] < high)).all(axis=2) & (samples[:, 2] == level)
    held = inside.sum(axis=1)
    area = (cells[:, 2] - cells[:, 0]) * (cells[:, 3] - cells[:, 1])
    order = np.argsort(-held / area, kind="stable")
    needed = int(np.searchsorted(np.cumsum(held[order]), held.sum() / 2.0)) + 1
    return float(area[order][:needed].sum() / area.sum())


# -- theory -------------------------------------------------------------------------------------------------------


def _theory(results: Results) -> Iterator[Claim]:
    scale = results.scale
    for rows in (0, scale.middle):
        result = results.get("theory", kind="pulls", history=rows)
        if result is not None:
            gap, pulls, bound = (result.measured[what][1] for what in ("gap", "pulls", "bound"))
            bad, spoken = gap > 0, (gap > 0) & (bound <= scale.horizon)
            within = (pulls <= bound)[spoken]
            reason = (
                f"of {int(bad.sum()):,} bad arms the lemma speaks of {len(within):,} (for the others it allows more "
                f"than there are rounds); {int(within.sum()):,} of these are within it, one by one"
            )
            text = f"Of a bad arm, the expected online pulls are at most those of the lemma (a log of {rows:,})."
            yield _claim("theory", text, bool(pulls[spoken].sum() <= bound[spoken].sum()), reason)
    padded = {rows: comparisons.padded(results, rows) for rows in scale.paddings}
    used = {rows: estimate(result.at_end("used")) for rows, result in padded.items() if result is not None}
    if len(used) == len(padded):
        told = ", ".join(f"{shown(value)} of {rows:,}" for rows, value in used.items())
        first, last = used[scale.paddings[0]], used[scale.paddings[-1]]
        text = "However much a bad arm pads the log, replay reads no more of it."
        yield _claim("theory", text, last.mean < 1.5 * first.mean + 100.0, f"used: {told}")
    text = "On adaptive cells with a budget, replay plays as Full Start does (the paper's rule)."
    yield from _equal("theory", text, [comparisons.ruled(results, "paper")])
    text = "(Ours, not the paper's.) The same with the choice over the boxes of the finest grid, the default here."
    yield from _equal("theory", text, [comparisons.ruled(results, "finest")])


_CLAIMS: tuple[Callable[[Results], Iterator[Claim]], ...] = (
    partial(_over_arms, "karmed"),
    partial(_over_arms, "top-arms"),
    _randomised,
    _performance,
    _imbalanced,
    _surfaces,
    _discretisation,
    _fixed_and_adaptive,
    _domains,
    _theory,
)
