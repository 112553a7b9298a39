"""Every number of the report, beside what the paper prints and what the authors' code gives."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from artreplay.compiling import Floats
from reproduction import comparisons, published
from reproduction.catalogue import (
    BAD_SHARES,
    BATCH_BONUSES,
    FULL,
    FULL_SCALE,
    IGNORANT,
    LOGS,
    POLICIES,
    REPLAY,
    RULES,
    SOLVERS,
)
from reproduction.result_store import Result
from reproduction.results import WIDE, Estimate, Results, estimate

Verdict = Literal["agrees", "differs", "cannot be met"]

NAMES = {REPLAY: "replay", FULL: "full start", IGNORANT: "ignorant"}
SAME = "replications with the actions of full start, %"

# Why numbers of the authors' code cannot be met.
_FIXED = "the authors' fixed runs spend most rounds on level 0, an item with index 1 that costs nothing"
_ADAPTIVE = (
    "the authors' adaptive code loses the monotone index, looks samples up in a second tree, and solves exactly where "
    "the proof needs greedy"
)
_IMBALANCED = f"{_ADAPTIVE}; its frame of bad places repeats one side"
_DOUBLED = "its log has 600 rows, doubled by a slip"


@dataclass(frozen=True)
class Number:
    """One number of ours and what others report for it."""

    experiment: str
    name: str
    ours: Estimate
    paper: float | None = None
    authors: published.Told | None = None
    verdict: Verdict | None = None  # None where nobody reports the number
    reason: str = ""


def numbers(results: Results) -> list[Number]:
    """All numbers of what has been computed; those of a small run are compared with nothing."""
    found = [number for made in _NUMBERS for number in made(results)]
    if results.scale.horizon == FULL_SCALE.horizon:
        return found
    return [Number(one.experiment, one.name, one.ours) for one in found]


def _compared(
    experiment: str, name: str, values: Floats, authors: published.Told | None, paper: float | None = None
) -> Number:
    """A number with its verdict: by the authors' code if that has it, else by the paper."""
    ours = estimate(values)
    if authors is None and paper is None:
        return Number(experiment, name, ours)
    agrees = ours.agrees(*authors) if authors is not None else ours.agrees(paper or 0.0, None)
    reason = "" if agrees else f"more than 3.5 standard errors from {'the authors’ code' if authors else 'the paper'}"
    if agrees and authors is not None and paper is not None and abs(paper - authors[0]) > WIDE * (authors[1] or 0.0):
        reason = f"agrees with the authors' code; what the paper prints, {paper:g}, is a slip"
    return Number(experiment, name, ours, paper, authors, "agrees" if agrees else "differs", reason)


def _unmet(
    experiment: str, name: str, values: Floats, reason: str, authors: float | None, paper: float | None = None
) -> Number:
    """A number that others have under rules of theirs."""
    ours = estimate(values)
    if paper is None and authors is None:
        return Number(experiment, name, ours)
    told = None if authors is None else (authors, None)
    return Number(experiment, name, ours, paper, told, "cannot be met", reason)


def _same(
    experiment: str, name: str, pair: tuple[Result, Result] | None, claim: str = "the paper claims all of them"
) -> Iterator[Number]:
    """The share of replications in which both play the same; where that is claimed, it must be all."""
    if pair is not None:
        same = pair[0].at_end("digest") == pair[1].at_end("digest")
        verdict: Verdict = "agrees" if same.all() else "differs"
        yield Number(experiment, name, estimate(100.0 * same), verdict=verdict if claim else None, reason=claim)


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
                yield _compared(experiment, f"regret, {name}, H={rows:,}", result.at_end("regret"), authors)
        if found.replay is not None:
            first, last = found.replay.at_start("used"), found.replay.at_end("used")
            used = {published.FIRST: first, published.BY_END: last, published.UNUSED: 100.0 * (1.0 - last / rows)}
            for what, values in used.items():
                yield _compared(experiment, f"{what}, H={rows:,}", values, told.get(what), printed.get(what))
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
                        yield _compared("thompson-ids", label, result.at_end("regret"), told)


# -- allocations --------------------------------------------------------------------------------------------------


def _performance(results: Results) -> Iterator[Number]:
    for found in comparisons.allocations(results):
        told = published.ALLOCATION.get((found.cells, found.domain), {}) if found.noise == "none" else {}
        regret = f"regret, {found.label}"
        if found.cells == "fixed":  # these have no cells: once is enough
            others = {"random": found.random}
            for policies, learnt in zip((found.small, found.large), found.learnt, strict=True):
                others[f"Regressor, H={policies.rows:,}"] = learnt
            for name, result in others.items():
                if result is not None:
                    yield Number("performance", f"{regret}, {name}", estimate(result.at_end("regret")))
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
                    yield _unmet("performance", name, result.at_end("regret"), reason, authors)
            where = f"{SAME}, {found.label}, {found.cells}, H={policies.rows:,}"
            yield from _same("performance", where, policies.pair())
    for solver in SOLVERS:
        bound = comparisons.binding(results, solver)
        if bound.replay is not None:
            for metric, words in (("regret", "regret"), ("spent", "effort spent of 40")):
                name = f"{words} where the number of places binds, {solver}"
                yield Number("performance", name, estimate(bound.replay.at_end(metric)))
        yield from _same("performance", f"{SAME}, places bind, {solver}", bound.pair())


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
                yield _unmet("imbalanced", name, values, _IMBALANCED, told, printed)
        learnt = results.get("imbalanced", algorithm="Regressor", bad_share=share)
        if learnt is not None:
            yield Number("imbalanced", f"regret, Regressor, {found.where}", estimate(learnt.at_end("regret")))
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
                yield Number("fixed-vs-adaptive", f"{what}, {label}", Estimate(float(value), math.nan, 1))


def _theory(results: Results) -> Iterator[Number]:
    scale = results.scale
    for rows in (0, scale.middle):
        result = results.get("theory", kind="pulls", history=rows)
        if result is not None:
            gap, pulls, bound = (result.measured[what][1] for what in ("gap", "pulls", "bound"))
            bad, silent = gap > 0, bound > scale.horizon
            name = f"pulls of a bad arm, the most the lemma allows, H={rows:,}"
            yield Number("theory", f"pulls of a bad arm, H={rows:,}", estimate(_mean_of(pulls, bad & ~silent)))
            yield Number("theory", name, estimate(_mean_of(bound, bad & ~silent)))
            share = 100.0 * (bad & silent).sum(axis=1) / bad.sum(axis=1)
            yield Number("theory", f"bad arms of which the lemma says nothing, %, H={rows:,}", estimate(share))
    for rows in scale.paddings:
        result = comparisons.padded(results, rows)
        if result is not None:
            yield Number("theory", f"samples used of a padded log of {rows:,}", estimate(result.at_end("used")))
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
                yield Number("theory", name, estimate(100.0 * shares[:, at]))


def _mean_of(values: Floats, wanted: Any) -> Floats:
    """The mean of what is wanted, in each replication that has any."""
    some = wanted.any(axis=1)
    means: Floats = np.where(wanted, values, 0.0)[some].sum(axis=1) / wanted[some].sum(axis=1)
    return means if len(means) else np.zeros(1)


_NUMBERS: tuple[Callable[[Results], Iterator[Number]], ...] = (
    partial(_over_arms, "karmed", 1),
    partial(_over_arms, "top-arms", 3),
    _randomised,
    _performance,
    _imbalanced,
    _pictures,
    _theory,
)
