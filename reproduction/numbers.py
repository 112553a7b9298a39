"""Every number of the report, next to what the paper prints and what the authors' code gives."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from artreplay.compiling import Floats
from reproduction import comparisons, published
from reproduction.catalogue import (
    BAD_SHARES,
    BATCH_BONUSES,
    FINEST,
    FIXED,
    FULL_SCALE,
    IMBALANCED_CELLS,
    LOGS,
    OURS,
    POLICIES,
    RULES,
    SOLVERS,
)
from reproduction.result_store import Result
from reproduction.results import TELLING, WIDE, Estimate, Results, estimate, share_found
from reproduction.setting import FULL, IGNORANT, REPLAY

# "slip": the paper prints another number than its own code gives, and ours agrees with the code. "cannot tell": nothing
# speaks against it, and a difference that matters might not have been found. "not tested": our results say nothing.
Verdict = Literal["agrees", "differs", "cannot tell", "slip", "not tested"]

NAMES = {REPLAY: "replay", FULL: "full start", IGNORANT: "ignorant"}
SAME = "replications with the actions of full start, %"

_ROUNDED = 0.5  # how far the numbers of the authors' code for allocations may be from what was rounded to them
_ONE_RUN = "the authors' number is taken to be of one run, so its error is the spread of ours"
_BY_CHANCE = "which of equally good choices their solver takes is not known"


@dataclass(frozen=True)
class Number:
    """One number of ours, and what others report for it."""

    experiment: str
    name: str
    ours: Estimate
    paper: float | None = None
    authors: published.Told | None = None
    verdict: Verdict | None = None  # None if nobody else reports the number
    reason: str = ""
    found: float | None = None  # the smallest true difference that would be found four times in five
    settings: tuple[str, ...] = ()  # the keys of the stored results it comes from


def numbers(results: Results) -> list[Number]:
    """Return all numbers that were computed. Those of a small run are compared with nothing."""
    found = [number for made in _NUMBERS for number in made(results)]
    if results.scale.horizon == FULL_SCALE.horizon:
        return found
    return [Number(one.experiment, one.name, one.ours, settings=one.settings) for one in found]


def _ours(experiment: str, name: str, values: Floats, *sources: Result) -> Number:
    """Make a number that nobody else reports, from the results it comes from."""
    return Number(experiment, name, estimate(values), settings=tuple(result.key for result in sources))


def _compared(
    number: Number, authors: published.Told | None, paper: float | None = None, rounding: float = 0.0
) -> Number:
    """Add a verdict to a number, by the authors' code if that reports it, else by the paper."""
    if authors is None and paper is None:
        return number
    mean, error = authors if authors is not None else (paper or 0.0, None)
    found = number.ours.found(error)
    whose = "the authors’ code" if authors else "the paper"
    verdict: Verdict = "agrees"
    reason = ""
    if not number.ours.agrees(mean, error, rounding):
        verdict, reason = "differs", f"more than 3.5 standard errors from {whose}"
    elif authors is not None and paper is not None and abs(paper - mean) > WIDE * (error or 0.0):
        verdict = "slip"
        reason = f"agrees with the authors' code; what the paper prints, {paper:g}, is a slip"
    elif found > TELLING * abs(mean):
        verdict, reason = "cannot tell", f"within 3.5 standard errors of {whose}, and these are large"
    return replace(number, paper=paper, authors=authors, verdict=verdict, reason=reason, found=found)


def _one_run(number: Number, mean: float | None) -> Number:
    """Compare with a number of a single run without noise, which was rounded."""
    if mean is None:
        return number
    spread = 0.0 if math.isnan(number.ours.error) else number.ours.error * math.sqrt(number.ours.replications)
    compared = _compared(number, (mean, spread), rounding=_ROUNDED)
    reasons = {"agrees": _ONE_RUN, "differs": f"{compared.reason}; {_BY_CHANCE}"}
    return replace(compared, reason=reasons.get(str(compared.verdict), f"{compared.reason}; {_ONE_RUN}"))


def _same(
    experiment: str, name: str, pair: tuple[Result, Result] | None, claim: str = "the paper claims all of them"
) -> Iterator[Number]:
    """Return the share of replications in which both play the same. If the paper claims it, it must be all."""
    if pair is not None:
        same = pair[0].at_end("digest") == pair[1].at_end("digest")
        number = replace(_ours(experiment, name, 100.0 * same, *pair), reason=claim)
        verdict: Verdict = "agrees" if same.all() else "differs"
        yield replace(number, verdict=verdict, found=100.0 * share_found(len(same))) if claim else number


# -- finite arms --------------------------------------------------------------------------------------------------


def _over_arms(experiment: str, budget: int, results: Results) -> Iterator[Number]:
    random = results.get(experiment, algorithm="RandomChoice")
    for rows in results.scale.sizes:
        told = published.ARMS.get((budget, rows), {})
        printed = published.ARMS_IN_PAPER.get((budget, rows), {})
        found = comparisons.over_arms(results, experiment, rows)
        regrets = {NAMES[start]: (found.of(start), told.get(start)) for start in POLICIES}
        regrets["random"] = (random, told.get(published.RANDOM))
        for name, (result, authors) in regrets.items():
            if result is not None:
                ours = _ours(experiment, f"regret, {name}, H={rows:,}", result.at_end("regret"), result)
                yield _compared(ours, authors)
        if found.replay is not None:
            first, last = found.replay.at_start("used"), found.replay.at_end("used")
            used = {published.FIRST: first, published.BY_END: last, published.UNUSED: 100.0 * (1.0 - last / rows)}
            for what, values in used.items():
                ours = _ours(experiment, f"{what}, H={rows:,}", values, found.replay)
                yield _compared(ours, told.get(what), printed.get(what))
        yield from _same(experiment, f"{SAME}, H={rows:,}", found.pair())


def _randomised(results: Results) -> Iterator[Number]:
    scale = results.scale
    for name in comparisons.RANDOMISED:
        for log in LOGS:
            for rows in scale.randomised_sizes:
                found = comparisons.randomised(results, name, log, rows)
                for start in POLICIES:
                    result = found.of(start)
                    once = start != IGNORANT or (log == "uniform" and rows == scale.randomised_sizes[-1])
                    if result is not None and once:  # the log does not matter to the one that ignores it
                        told = published.RANDOMISED.get((name, start, rows)) if log == "uniform" else None
                        where = "" if start == IGNORANT else f", H={rows:,}, {log} log"
                        label = f"regret, {name}, {NAMES[start]}{where}"
                        yield _compared(_ours("thompson-ids", label, result.at_end("regret"), result), told)


# -- allocations --------------------------------------------------------------------------------------------------


def _performance(results: Results) -> Iterator[Number]:
    for found in comparisons.allocations(results):
        regret = f"regret, {found.label}"
        if found.cells == FIXED:  # these have no cells: once is enough
            network = f"the authors' network, H={found.small.rows:,}"
            others = {"random": found.random, network: found.small.network}
            for policies in (found.small, found.large):
                others[f"Regressor, H={policies.rows:,}"] = policies.learnt
            for name, result in others.items():
                if result is not None:
                    yield _ours("performance", f"{regret}, {name}", result.at_end("regret"), result)
        for policies in (found.small, found.large):
            for start in POLICIES if policies is found.small else (REPLAY, FULL):
                result = policies.of(start)
                if result is not None:
                    size = "" if start == IGNORANT else f", H={policies.rows:,}"
                    name = f"{regret}, {found.cells}, {NAMES[start]}{size}"
                    yield _ours("performance", name, result.at_end("regret"), result)
            where = f"{SAME}, {found.label}, {found.cells}, H={policies.rows:,}"
            claim = "our rule: all of them" if found.cells == FINEST else "the paper claims all of them"
            yield from _same("performance", where, policies.pair(), claim)
    for one, told in zip(comparisons.rebuilt(results), published.ALLOCATION.values(), strict=True):
        for start in POLICIES:
            result = one.of(start)
            if result is not None:
                name = f"regret, {one.where}, {NAMES[start]}{'' if start == IGNORANT else f', H={one.rows:,}'}"
                yield _one_run(_ours("performance", name, result.at_end("regret"), result), told.get(start))
    for solver in SOLVERS:
        bound = comparisons.binding(results, solver)
        if bound.replay is not None:
            for metric, words in (("regret", "regret"), ("spent", "effort spent of 40")):
                name = f"{words} where the number of places binds, {solver}"
                yield _ours("performance", name, bound.replay.at_end(metric), bound.replay)
        yield from _same("performance", f"{SAME}, places bind, {solver}", bound.pair())


def _surfaces(results: Results) -> Iterator[Number]:
    """Return the numbers of our own rule on the paper's domains, which nobody else reports."""
    for found in comparisons.allocations(results, OURS, "surfaces"):
        for policies in (found.small, found.large):
            for start in POLICIES if policies is found.small else (REPLAY, FULL):
                result = policies.of(start)
                if result is not None:
                    size = "" if start == IGNORANT else f", H={policies.rows:,}"
                    name = f"regret, {found.label}, {found.cells}, {NAMES[start]}{size}"
                    yield _ours("surfaces", name, result.at_end("regret"), result)
            yield from _same("surfaces", f"{SAME}, {found.label}, {found.cells}, H={policies.rows:,}", policies.pair())


def _imbalanced(results: Results) -> Iterator[Number]:
    for cells in IMBALANCED_CELLS:
        for share in BAD_SHARES:
            found = comparisons.imbalanced(results, share, cells)
            where = f"{cells}, {found.where}"
            for start in POLICIES:
                result = found.of(start)
                for what, values in _of_imbalanced(result, found.rows, start).items():
                    if result is not None:
                        yield _ours("imbalanced", f"{what}, {NAMES[start]}, {where}", values, result)
            if found.learnt is not None and cells == FINEST:
                name = f"regret, Regressor, {found.where}"
                yield _ours("imbalanced", name, found.learnt.at_end("regret"), found.learnt)
            claim = "our rule: all of them" if cells == FINEST else "the paper claims all of them"
            yield from _same("imbalanced", f"{SAME}, {where}", found.pair(), claim)
    for share, found in comparisons.rebuilt_imbalanced(results).items():
        for start in POLICIES:
            result = found.of(start)
            for what, values in _of_imbalanced(result, found.rows, start).items():
                if result is not None:
                    told = published.IMBALANCED[what].get(start, {}).get(share)
                    ours = _ours("imbalanced", f"{what}, {NAMES[start]}, {found.where}", values, result)
                    yield _one_run(ours, told)
                    printed = published.REGIONS_IN_PAPER.get(start, {}).get(share) if what == "regions" else None
                    yield from _printed_regions(ours, printed)


def _of_imbalanced(result: Result | None, rows: int, start: str) -> dict[str, Floats]:
    """Return what is counted with an imbalanced log. Regions are the leaves of the trees of all levels."""
    if result is None:
        return {}
    measured = {"regret": result.at_end("regret"), "regions": result.at_end("cells")}
    if start == REPLAY:
        measured["unused %"] = 100.0 * (1.0 - result.at_end("used") / rows)
    return measured


def _printed_regions(ours: Number, printed: float | None) -> Iterator[Number]:
    """Compare regions with those that the paper prints, which are not those of its code."""
    if printed is not None:
        compared = _compared(replace(ours, name=f"{ours.name}, as printed"), None, printed)
        yield replace(compared, reason=f"{compared.reason}; the authors' code gives another number, too")


# -- pictures and theory ------------------------------------------------------------------------------------------


def _pictures(results: Results) -> Iterator[Number]:
    for algorithm, label in (("GridUCB", "fixed"), ("TreeUCB", "adaptive")):
        result = results.get("fixed-vs-adaptive", algorithm=algorithm)
        if result is not None:
            cells = result.cells()
            width = cells[:, 2] - cells[:, 0]
            once = {"regions": len(cells), "width of the finest": width.min(), "width of the coarsest": width.max()}
            for what, value in once.items():
                ours = Estimate(float(value), math.nan, 1)
                yield Number("fixed-vs-adaptive", f"{what}, {label}", ours, settings=(result.key,))


def _theory(results: Results) -> Iterator[Number]:
    scale = results.scale
    for rows in (0, scale.middle):
        result = results.get("theory", kind="pulls", history=rows)
        if result is not None:
            gap, pulls, bound = (result.measured[what][1] for what in ("gap", "pulls", "bound"))
            bad, silent = gap > 0, bound > scale.horizon
            name = f"pulls of a bad arm, the most the lemma allows, H={rows:,}"
            yield _ours("theory", f"pulls of a bad arm, H={rows:,}", _mean_of(pulls, bad & ~silent), result)
            yield _ours("theory", name, _mean_of(bound, bad & ~silent), result)
            share = 100.0 * (bad & silent).sum(axis=1) / bad.sum(axis=1)
            yield _ours("theory", f"bad arms of which the lemma says nothing, %, H={rows:,}", share, result)
    for rows in scale.paddings:
        result = comparisons.padded(results, rows)
        if result is not None:
            yield _ours("theory", f"samples used of a padded log of {rows:,}", result.at_end("used"), result)
    for budget in (1, 3):
        for bonus, options in BATCH_BONUSES.items():
            name = f"replications with the actions of batch full start, %, B={budget}, {bonus} bonus"
            yield from _same("theory", name, comparisons.batched(results, budget, options), claim="")
    for rule in RULES:
        claim = "the paper claims all of them" if rule == "paper" else "our rule: all of them"
        yield from _same("theory", f"{SAME}, allocation rule {rule}", comparisons.ruled(results, rule).pair(), claim)
    for bonus in ("practical", "anytime", "theory"):
        result = results.get("theory", kind="below-mean", bonus=bonus)
        if result is not None:
            samples, shares = result.measured["share"]
            for at, count in enumerate(samples.tolist()):
                name = f"cells with an index below their mean, %, {bonus} bonus, after {count:,.0f} samples"
                yield _ours("theory", name, 100.0 * shares[:, at], result)


def _mean_of(values: Floats, wanted: Any) -> Floats:
    """Return the mean of the selected values in each replication that has any."""
    some = wanted.any(axis=1)
    means: Floats = np.where(wanted, values, 0.0)[some].sum(axis=1) / wanted[some].sum(axis=1)
    return means if len(means) else np.zeros(1)


_NUMBERS: tuple[Callable[[Results], Iterator[Number]], ...] = (
    partial(_over_arms, "karmed", 1),
    partial(_over_arms, "top-arms", 3),
    _randomised,
    _performance,
    _imbalanced,
    _surfaces,
    _pictures,
    _theory,
)
