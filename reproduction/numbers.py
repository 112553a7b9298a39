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
    FULL_SCALE,
    LOGS,
    OURS,
    POLICIES,
    RULES,
    SOLVERS,
)
from reproduction.result_store import Result
from reproduction.results import WIDE, Estimate, Results, estimate
from reproduction.setting import FULL, IGNORANT, REPLAY

# "slip": the paper prints another number than its own code gives, and ours agrees with the code. "cannot be met": the
# other number comes from different rules. "not tested": our results say nothing about it.
Verdict = Literal["agrees", "differs", "slip", "cannot be met", "not tested"]

NAMES = {REPLAY: "replay", FULL: "full start", IGNORANT: "ignorant"}
SAME = "replications with the actions of full start, %"

# Reasons why numbers of the authors' code cannot be met.
_FIXED = "the authors' fixed runs spend most rounds on level 0, an item with index 1 that costs nothing"
_ADAPTIVE = (
    "the authors' adaptive code loses the monotone index, looks samples up in a second tree, and solves exactly where "
    "the proof needs greedy"
)
_IMBALANCED = f"{_ADAPTIVE}; its frame of bad places repeats one side"
_DOUBLED = "its log has 600 rows, doubled by a slip"


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


def _compared(number: Number, authors: published.Told | None, paper: float | None = None) -> Number:
    """Add a verdict to a number, by the authors' code if that reports it, else by the paper."""
    if authors is None and paper is None:
        return number
    agrees = number.ours.agrees(*authors) if authors is not None else number.ours.agrees(paper or 0.0, None)
    verdict: Verdict = "agrees" if agrees else "differs"
    reason = "" if agrees else f"more than 3.5 standard errors from {'the authors’ code' if authors else 'the paper'}"
    if agrees and authors is not None and paper is not None and abs(paper - authors[0]) > WIDE * (authors[1] or 0.0):
        verdict = "slip"
        reason = f"agrees with the authors' code; what the paper prints, {paper:g}, is a slip"
    return replace(number, paper=paper, authors=authors, verdict=verdict, reason=reason)


def _unmet(number: Number, reason: str, authors: float | None, paper: float | None = None) -> Number:
    """Mark a number that others report under different rules."""
    if paper is None and authors is None:
        return number
    told = None if authors is None else (authors, None)
    return replace(number, paper=paper, authors=told, verdict="cannot be met", reason=reason)


def _same(
    experiment: str, name: str, pair: tuple[Result, Result] | None, claim: str = "the paper claims all of them"
) -> Iterator[Number]:
    """Return the share of replications in which both play the same. If the paper claims it, it must be all."""
    if pair is not None:
        same = pair[0].at_end("digest") == pair[1].at_end("digest")
        verdict: Verdict = "agrees" if same.all() else "differs"
        yield replace(_ours(experiment, name, 100.0 * same, *pair), verdict=verdict if claim else None, reason=claim)


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
        told = published.ALLOCATION.get((found.cells, found.domain), {}) if found.noise == "none" else {}
        regret = f"regret, {found.label}"
        if found.cells == "fixed":  # these have no cells: once is enough
            others = {"random": found.random}
            for policies in (found.small, found.large):
                others[f"Regressor, H={policies.rows:,}"] = policies.learnt
            for name, result in others.items():
                if result is not None:
                    yield _ours("performance", f"{regret}, {name}", result.at_end("regret"), result)
        for policies in (found.small, found.large):
            small = policies is found.small
            for start in POLICIES if small else (REPLAY, FULL):
                result = policies.of(start)
                if result is not None:
                    size = "" if start == IGNORANT else f", H={policies.rows:,}"
                    name = f"{regret}, {found.cells}, {NAMES[start]}{size}"
                    authors = told.get(start) if small else None
                    reason = _FIXED if found.cells == "fixed" else _ADAPTIVE
                    if found.domain == "piecewise linear" and start != IGNORANT:
                        reason = f"{reason}; {_DOUBLED}"
                    yield _unmet(_ours("performance", name, result.at_end("regret"), result), reason, authors)
            where = f"{SAME}, {found.label}, {found.cells}, H={policies.rows:,}"
            yield from _same("performance", where, policies.pair())
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
    for share in BAD_SHARES:
        found = comparisons.imbalanced(results, share)
        for start in POLICIES:
            result = found.of(start)
            if result is None:
                continue
            measured = {"regret": result.at_end("regret"), "regions": result.at_end("cells")}
            if start == REPLAY:
                measured["unused %"] = 100.0 * (1.0 - result.at_end("used") / found.rows)
            for what, values in measured.items():
                told = published.IMBALANCED[what].get(start, {}).get(share)
                printed = published.REGIONS_IN_PAPER.get(start, {}).get(share) if what == "regions" else None
                name = f"{what}, {NAMES[start]}, {found.where}"
                yield _unmet(_ours("imbalanced", name, values, result), _IMBALANCED, told, printed)
        if found.learnt is not None:
            name = f"regret, Regressor, {found.where}"
            yield _ours("imbalanced", name, found.learnt.at_end("regret"), found.learnt)
        yield from _same("imbalanced", f"{SAME}, {found.where}", found.pair())


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
