"""What the paper claims, in our words, and whether results support it. Verdicts are computed, not written by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from artreplay.compiling import Floats
from reproduction import comparisons, published
from reproduction.allocation_claims import imbalanced_claims, performance_claims, surfaces_claims
from reproduction.base_and_environment import hills
from reproduction.catalogue import FULL_SCALE, SYNTHETIC
from reproduction.judging import MATTERS, Claim, equal, judged, judged_by, margin_of
from reproduction.result_store import Result
from reproduction.results import Results, difference, estimate, paired, shown

_EXPLODED = 3.0  # a regret this many times that of replay counts as exploded


def claims(results: Results) -> list[Claim]:
    """Return all claims that results can judge. Of a small run, only those that hold at any scale."""
    found = [claim for made in _CLAIMS for claim in made(results)]
    return [claim for claim in found if claim.at_any_scale or results.scale.horizon == FULL_SCALE.horizon]


# -- finite arms --------------------------------------------------------------------------------------------------


def _over_arms(experiment: str, results: Results) -> Iterator[Claim]:
    found = [comparisons.over_arms(results, experiment, rows) for rows in results.scale.sizes]
    yield from equal(experiment, "Artificial Replay has the regret of Full Start at every size of log.", found)
    shares = {one.rows: one.replay.at_end("used") / one.rows for one in found if one.replay is not None}
    if shares:
        text = "It does so with less than half of the log."
        told = ", ".join(f"{share.mean():.0%} at H={rows:,}" for rows, share in shares.items())
        margins = {f"H={rows:,}": estimate(50.0 - 100.0 * share) for rows, share in shares.items()}
        yield judged(experiment, text, margins, f"the share used is {told}", "percentage points")
    largest = results.scale.sizes[-1]
    if experiment == "karmed" and largest in shares:
        yield _unused_claim(1.0 - float(shares[largest].mean()), largest)


def _unused_claim(left: float, rows: int) -> Claim:
    """Judge the unused share. For one arm in a round, the paper prints what its code gives for three."""
    printed = published.ARMS_IN_PAPER[1, 10_000][published.UNUSED]
    of_three = published.ARMS[3, 10_000][published.UNUSED][0]
    found_instead = f"{left:.0%} of {rows:,} stay unused; {of_three:g} % is what three arms in a round leave"
    text = f"Of 10,000 logged samples, {printed:g} % are irrelevant."
    claim = judged_by("karmed", text, abs(100.0 * left - printed) < 2.0, found_instead)
    is_slip = claim.verdict == "differs" and abs(of_three - printed) < 1.0
    return replace(claim, verdict="slip") if is_slip else claim


def _randomised(results: Results) -> Iterator[Claim]:
    rows = results.scale.randomised_sizes[-1]
    thompson, published, plain = (
        comparisons.randomised(results, name, "uniform", rows)
        for name in ("Thompson", "IDS published", "IDS without fallback")
    )
    pair = thompson.pair()
    if pair is not None and thompson.ignorant is not None:
        replay, full = pair
        gap = difference(replay, full)
        text = (
            "With Thompson sampling, which has no independence of irrelevant data, replay does as well as Full Start."
        )
        allowed = MATTERS * float(thompson.ignorant.at_end("regret").mean())
        reason = (
            f"at H={rows:,} replay's regret minus that of Full Start is {shown(gap)}, of which {allowed:.1f}, a "
            "twentieth of the regret without a log, would not matter; the actions are not the same ones"
        )
        margin = margin_of(full, replay, allowed=allowed)
        yield judged("thompson-ids", text, {"": margin}, reason)
    for one, text, words in (
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
        pair = one.pair()
        if pair is not None:
            replay, full = pair
            told = [shown(estimate(each)) for each in paired(full, replay)]
            reason = f"Full Start has {told[0]} and replay {told[1]} {words}"
            yield judged("thompson-ids", text, {"": margin_of(full, replay, 1.0 / _EXPLODED)}, reason)


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
        yield judged_by("fixed-vs-adaptive", text, fine > coarse and len(cells) < len(grid.cells()), reason)


def _domains(results: Results) -> Iterator[Claim]:
    linear, quadratic = (results.get("domains", environment=domain) for domain in ("piecewise linear", "quadratic"))
    if linear is not None:
        means, across, up = _over_square(linear)
        best = means.argmax()
        at_corner = bool(across[best] == across.max() and up[best] == up.max())
        reason = f"it is best at ({across[best]:.2f}, {up[best]:.2f}), the last box of the grid shown"
        yield judged_by("domains", "The piecewise linear reward is best at (1, 1).", at_corner, reason)
    if quadratic is not None:
        means, across, up = _over_square(quadratic)
        best = means.argmax()
        printed = 1.0 - (across - 0.5) ** 2 + (up - 0.5) ** 2
        reason = (
            f"as printed it is {printed.max():.2f} at an edge and {printed[best]:.2f} at the centre; with a minus "
            f"before both squares, as used here, it is best at ({across[best]:.2f}, {up[best]:.2f})"
        )
        text = "The quadratic reward, as printed, is best at the centre."
        yield judged_by("domains", text, bool(printed.argmax() == best), reason)


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
            left = estimate(np.where(spoken, bound - pulls, 0.0).sum(axis=1))
            yield judged("theory", text, {"": left}, reason, "pulls, over all arms")
    padded = {rows: comparisons.padded(results, rows) for rows in scale.paddings}
    used = {rows: estimate(result.at_end("used")) for rows, result in padded.items() if result is not None}
    if len(used) == len(padded):
        told = ", ".join(f"{shown(value)} of {rows:,}" for rows, value in used.items())
        first, last = (padded[scale.paddings[end]] for end in (0, -1))
        text = "However much a bad arm pads the log, replay reads no more of it."
        if first is not None and last is not None:
            reason = f"used: {told}; half as much again, and 100 rows, would still be no more"
            margin = estimate(1.5 * first.at_end("used") + 100.0 - last.at_end("used"))
            yield judged("theory", text, {"": margin}, reason, "rows")
    text = "On adaptive cells with a budget, replay plays as Full Start does (the paper's rule)."
    yield from equal("theory", text, [comparisons.ruled(results, "paper")])
    text = "(Ours, not the paper's.) The same with the choice over the boxes of the finest grid, the default here."
    yield from equal("theory", text, [comparisons.ruled(results, "finest")])


_CLAIMS: tuple[Callable[[Results], Iterator[Claim]], ...] = (
    partial(_over_arms, "karmed"),
    partial(_over_arms, "top-arms"),
    _randomised,
    performance_claims,
    imbalanced_claims,
    surfaces_claims,
    _discretisation,
    _fixed_and_adaptive,
    _domains,
    _theory,
)
