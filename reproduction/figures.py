"""Draws the panels of every experiment from stored results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from artreplay.plots import FULL_START, Look
from artreplay.plots import IGNORANT as IGNORES
from artreplay.plots import RANDOM as RANDOMLY
from artreplay.plots import REPLAY as REPLAYS
from reproduction import comparisons
from reproduction.catalogue import (
    BAD_SHARES,
    BATCH_BONUSES,
    DOMAINS,
    FINEST,
    FIXED,
    LEAVES,
    LOGS,
    OURS,
    PATROL,
    POLICIES,
    RULES,
    SYNTHETIC,
)
from reproduction.comparisons import Policies
from reproduction.panels import Bar, Line, Panel, bars, cloud, curves, partition, surface
from reproduction.result_store import Result
from reproduction.results import Results, curve, estimate
from reproduction.setting import FULL, IGNORANT, REPLAY

_LOOKS = {REPLAY: REPLAYS, FULL: FULL_START, IGNORANT: IGNORES}
_SECOND = {
    REPLAY: Look("artificial replay", "#e3b5e8", "-", 6.0),
    FULL: Look("full start", "#6a1b78", FULL_START.style, 1.7),
}
# Dashes say which policy it is, and colours which size the log has.
_NETWORK = (0, (8, 1.5))
_REGRESSORS = (Look("our network", "#3a7d34", _NETWORK, 1.6), Look("our network", "#8fbf3f", _NETWORK, 1.6))
_PUBLISHED = Look("the authors' network", "#1f4a1b", (0, (3, 1, 1, 1, 1, 1)), 1.6)
_OPTIMUM = Look("optimum", "#000000", "-", 0.8)
_BATCHES = {1: Look("B = 1", "#7cc0f2", "-", 1.0), 3: Look("B = 3", "#c04a00", "-", 1.0)}
_BONUSES = {
    "practical": Look("practical", "#c04a00", "-", 2.0),
    "anytime": Look("anytime", "#2b7bba", (0, (2, 1)), 2.0),
    "theory": Look("theory", "#101010", (0, (12, 2)), 2.0),
}
_CHOICES = {
    "exact": Look("exact choice", "#2b7bba", "-", 2.0),
    "greedy": Look("greedy choice", "#8a3500", (0, (2, 1)), 2.0),
}
# By the kind of cells: a part of the name of a figure, and of its title. Solved exactly, the paper's rule looks alike.
_DRAWN_CELLS = {
    FIXED: ("fixed", "Fixed cells"),
    LEAVES: ("adaptive paper", "Paper's rule"),
    FINEST: ("adaptive", "Our rule"),
}
_ROUNDS, _REGRET = "online rounds played", "reward lost so far (regret)"
_BAD = "share of the log in bad places"
_DIFFER = "% of replications that differ"


def panels(results: Results, experiment: str) -> list[Panel]:
    """Return the panels of an experiment for which there are results."""
    return list(_PANELS[experiment](results))


def _capital(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}"


def _named(look: Look, words: str) -> Look:
    return look._replace(name=f"{look.name}{words}")


def _line(look: Look, result: Result | None, metric: str = "regret") -> Iterator[Line]:
    if result is not None:
        yield Line(look, *curve(result, metric))


# -- finite arms --------------------------------------------------------------------------------------------------


def _over_arms(experiment: str, budget: int, results: Results) -> Iterator[Panel]:
    """Draw regret and unused share by the size of the log, and then curves over rounds."""
    scale = results.scale
    found = [comparisons.over_arms(results, experiment, rows) for rows in scale.sizes]
    random = results.get(experiment, algorithm="RandomChoice")
    groups, x = [f"{rows:,}" for rows in scale.sizes], "samples in the log"
    by_size = [
        line
        for look, each in (
            *((_LOOKS[start], [one.of(start) for one in found]) for start in POLICIES),
            (RANDOMLY, [random] * len(found)),
        )
        for line in _by_size(look, scale.sizes, each)
    ]
    caption = f"Regret after {scale.horizon:,} rounds, ten arms, {budget} in a round (logarithmic scales)."
    figure = curves("(a) Regret by the size of the log", x, "regret", by_size, log="xy")
    yield Panel("regret", caption, figure)
    unused = _unused_bars([(one.replay, one.rows) for one in found])
    caption = "The share of the log that was never shown to the algorithm; full start leaves none."
    yield Panel("unused", caption, bars("(b) Share of the log never used", x, "% unused", groups, unused))
    letter = "c"
    if budget > 1:
        little = comparisons.over_arms(results, experiment, scale.little)
        lines = [line for start in POLICIES for line in _line(_LOOKS[start], little.of(start))]
        lines += _line(RANDOMLY, random)
        title = f"(c) Regret over time, {scale.little:,} samples"
        figure = curves(title, _ROUNDS, _REGRET, lines, may_leave=[RANDOMLY])
        yield Panel("regret-over-time", f"Regret with {scale.little:,} samples.", figure)
        letter = "d"
    middle = comparisons.over_arms(results, experiment, scale.middle)
    lines = [line for start in POLICIES for line in _line(_LOOKS[start], middle.of(start), "used")]
    title = f"({letter}) Samples used over time, {scale.middle:,} samples"
    yield Panel("used-over-time", "Samples shown before each round.", curves(title, _ROUNDS, "samples used", lines))


def _by_size(look: Look, sizes: Sequence[int], found: Sequence[Result | None]) -> Iterator[Line]:
    """Return the regret at the end by the size of the log, for the sizes that were computed."""
    known = [(rows, *estimate(one.at_end("regret"))[:2]) for rows, one in zip(sizes, found, strict=True) if one]
    if known:
        x, mean, error = np.array(known, np.float64).T
        yield Line(look, x, mean, np.nan_to_num(error))


def _bar(look: Look, found: Sequence[Result | None], metric: str = "regret") -> Bar:
    estimates = [(np.nan, np.nan) if one is None else estimate(one.at_end(metric))[:2] for one in found]
    return Bar(look, [mean for mean, _ in estimates], [error for _, error in estimates])


def _unused_bars(found: Sequence[tuple[Result | None, int]]) -> list[Bar]:
    """Return the share that replay leaves unread of logs of these sizes. The ignorant policy leaves everything."""
    shares = [
        (np.nan, np.nan) if one is None else estimate(100.0 * (1.0 - one.at_end("used") / rows))[:2]
        for one, rows in found
    ]
    replay = Bar(REPLAYS, [mean for mean, _ in shares], [error for _, error in shares])
    return [replay, Bar(IGNORES, [100.0] * len(found), [0.0] * len(found))]


def _two_sizes(small: Policies, large: Policies) -> Iterator[Line]:
    """Return lines for ignorant, and for replay and Full Start with a small and a large log."""
    yield from _line(IGNORES, small.ignorant)
    for found, looks in ((small, _LOOKS), (large, _SECOND)):
        for start in (REPLAY, FULL):
            yield from _line(_named(looks[start], f", H={found.rows:,}"), found.of(start))


def _randomised(results: Results) -> Iterator[Panel]:
    for name in comparisons.RANDOMISED:
        for log in LOGS:
            small, large = (comparisons.randomised(results, name, log, rows) for rows in results.scale.randomised_sizes)
            lines = list(_two_sizes(small, large))
            slug = f"{name} {log}".lower().replace(" ", "-")
            caption = f"{name}; arms are logged {'equally often' if log == 'uniform' else 'in random shares'}."
            if lines:
                yield Panel(slug, caption, curves(f"{name}, {log} log", _ROUNDS, _REGRET, lines))


# -- allocations --------------------------------------------------------------------------------------------------


def _surfaces(results: Results) -> Iterator[Panel]:
    for found in comparisons.allocations(results, OURS, "surfaces"):
        yield _allocated(found, f"Ours, surfaces: {found.label}", f"{found.domain} ours {found.noise}")


def _allocated(found: comparisons.Allocated, title: str, slug: str) -> Panel:
    """Draw the policies over one domain, and whatever else plays there."""
    lines = list(_two_sizes(found.small, found.large))
    for policies, look in zip((found.small, found.large), _REGRESSORS, strict=True):
        lines += _line(_named(look, f", H={policies.rows:,}"), policies.learnt)
    lines += _line(_named(_PUBLISHED, f", H={found.small.rows:,}"), found.small.network)
    lines += _line(RANDOMLY, found.random)
    nothing = np.zeros(len(lines[0].x))
    lines.append(Line(_OPTIMUM, lines[0].x, nothing, nothing))
    leaving = [line.look for line in lines if line.look.name.startswith(("random", "our", "the authors'"))]
    figure = curves(title, _ROUNDS, _REGRET, lines, may_leave=leaving)
    caption = f"{_capital(found.label)}, {found.cells}; the optimum is the zero line."
    return Panel(slug.replace(" ", "-"), caption, figure)


def _performance(results: Results) -> Iterator[Panel]:
    for found in comparisons.allocations(results):
        if found.cells in _DRAWN_CELLS:
            rule, whose = _DRAWN_CELLS[found.cells]
            slug = f"{comparisons.in_words(found.domain)} {rule} {found.noise}"
            yield _allocated(found, f"{whose}: {found.label}", slug)
    lines: list[Line] = []
    for one in comparisons.rebuilt(results):
        lines = [line for start in POLICIES for line in _line(_LOOKS[start], one.of(start))]
        if lines:
            slug = one.where.replace("the authors' code rebuilt, ", "rebuilt ").replace(",", "").replace(" ", "-")
            caption = f"{_capital(one.where)}, {one.rows:,} rows, with level 0 as a thing to choose. No noise."
            title = _capital(one.where.replace("the authors' code rebuilt", "authors' code"))
            yield Panel(slug, caption, curves(title, _ROUNDS, _REGRET, lines))
    lines = []
    for solver, look in _CHOICES.items():
        lines += _line(look, comparisons.binding(results, solver).replay)
    if lines:
        figure = curves("Where the number of places binds", _ROUNDS, _REGRET, lines)
        caption = "Five places, effort 40, levels 2, 4, 8: greedy takes five cheap places and leaves the rest."
        yield Panel("binding", caption, figure)


def _imbalanced(results: Results) -> Iterator[Panel]:
    for cells, whose, slug in ((LEAVES, "the paper's rule", "-paper"), (FINEST, "our rule", "")):
        found = [comparisons.imbalanced(results, share, cells) for share in BAD_SHARES]
        yield from _imbalanced_bars(results, found, whose, slug)
    rebuilt = list(comparisons.rebuilt_imbalanced(results).values())
    yield from _imbalanced_bars(results, rebuilt, "the authors' code, rebuilt", "-rebuilt")
    rows = [_time(_LOOKS[start], [one.of(start) for one in found]) for start in POLICIES]
    if not np.isfinite([bar.mean for bar in rows]).any():
        return  # a tiny run takes no times
    caption = (
        "Our rule, measured where the results were computed: compiled, with the log in memory, without drawing it."
    )
    groups = [f"{share:g}" for share in BAD_SHARES]
    yield Panel("time", caption, bars("Processor time of a replication", _BAD, "milliseconds", groups, rows))


def _imbalanced_bars(results: Results, found: Sequence[Policies], whose: str, slug: str) -> Iterator[Panel]:
    """Draw regret, the unused share and regions by the share of the log in bad places."""
    if not any(one.pair() for one in found):
        return
    groups = [f"{share:g}" for share in BAD_SHARES]
    rows = [_bar(_LOOKS[start], [one.of(start) for one in found]) for start in POLICIES]
    learnt = [one.learnt for one in found]
    if any(learnt):
        rows.append(_bar(_REGRESSORS[0], learnt))
    caption = f"Regret at the end; quadratic domain, adaptive cells, {whose}."
    yield Panel(f"regret{slug}", caption, bars(f"(a) Regret, {whose}", _BAD, "regret", groups, rows))
    unused = _unused_bars([(one.replay, one.rows) for one in found])
    caption = f"Of {results.scale.imbalanced_log:,} samples, {whose}."
    yield Panel(f"unused{slug}", caption, bars(f"(b) Share never used, {whose}", _BAD, "% unused", groups, unused))
    rows = [_bar(_LOOKS[start], [one.of(start) for one in found], "cells") for start in POLICIES]
    caption = f"Leaves of the trees of all levels at the end, {whose}."
    yield Panel(f"regions{slug}", caption, bars(f"(c) Regions, {whose}", _BAD, "regions", groups, rows))


def _time(look: Look, found: Sequence[Result | None]) -> Bar:
    each = [
        (np.nan, np.nan) if one is None or not one.timings else estimate(1000.0 * np.array(one.timings))[:2]
        for one in found
    ]
    return Bar(look, [mean for mean, _ in each], [error for _, error in each])


# -- pictures -----------------------------------------------------------------------------------------------------


def _discretisation(results: Results) -> Iterator[Panel]:
    for logged in results.scale.logged:
        result = results.get("discretisation", history=logged)
        if result is not None:
            cells, samples = result.cells(), result.samples()
            for level in np.unique(cells[:, 4]).tolist():
                words = f"{SYNTHETIC}, {logged:,} samples, effort {level:g}"
                at_level = cells[cells[:, 4] == level], samples[samples[:, 2] == level]
                yield Panel(f"{logged}-{level:g}", f"Cells: {words}.", partition(_capital(words), *at_level))


def _fixed_and_adaptive(results: Results) -> Iterator[Panel]:
    known = results.get("fixed-vs-adaptive", kind="surface")
    if known is None:
        return
    means = known.measured["mean"][1][0]
    yield Panel("surface", "The mean rewards, which the algorithms do not know.", surface("Mean reward", means))
    for algorithm, name in (("GridUCB", "Fixed"), ("TreeUCB", "Adaptive")):
        result = results.get("fixed-vs-adaptive", algorithm=algorithm)
        if result is not None:
            cells = result.cells()
            figure = surface(f"{name}: {len(cells)} cells", means, cells)
            caption = f"{name} cells after {results.scale.looked_at:,} rounds of {algorithm}."
            yield Panel(name.lower(), caption, figure)


def _domains(results: Results) -> Iterator[Panel]:
    for domain in DOMAINS:
        result = results.get("domains", environment=domain)
        if result is not None:
            name = comparisons.in_words(domain)
            figure = surface(f"{_capital(name)}, effort 1", result.measured["mean"][1][0])
            about = f"A {name}, not the park of the paper" if domain == PATROL else f"The {name} domain"
            yield Panel(name.replace(" ", "-"), f"{about}, at effort 1.", figure)


# -- theory -------------------------------------------------------------------------------------------------------


def _theory(results: Results) -> Iterator[Panel]:
    scale = results.scale
    for rows in (0, scale.middle):
        result = results.get("theory", kind="pulls", history=rows)
        if result is not None:
            gap, pulls, bound = (result.measured[what][1] for what in ("gap", "pulls", "bound"))
            bad = gap > 0
            title = f"Pulls of bad arms, {rows:,} samples" if rows else "Pulls of bad arms, no log"
            figure = cloud(title, "pulls the lemma allows", "online pulls", bound[bad], pulls[bad], 1.0 + scale.horizon)
            caption = f"One dot for each bad arm of every replication; above {scale.horizon:,} the lemma says nothing."
            yield Panel(f"pulls-{rows}", caption, figure)
    yield from _padding(results)
    yield from _shares(results)
    lines = []
    for bonus, look in _BONUSES.items():
        result = results.get("theory", kind="below-mean", bonus=bonus)
        if result is not None:
            x, mean, error = curve(result, "share")
            lines.append(Line(look, x, 100.0 * mean, 100.0 * error))
    if lines:
        figure = curves("Cells whose index lies below their mean", "samples of the cell", "% of cells", lines, log="x")
        caption = "An index that has fallen below the true mean never recovers: a cell that is held down for good."
        yield Panel("below-mean", caption, figure)


def _padding(results: Results) -> Iterator[Panel]:
    found = {rows: comparisons.padded(results, rows) for rows in results.scale.paddings}
    estimates = {rows: estimate(result.at_end("used")) for rows, result in found.items() if result is not None}
    if estimates:
        x = np.array(list(estimates), dtype=np.float64)
        mean, error = (np.array([each[place] for each in estimates.values()]) for place in (0, 1))
        lines = [Line(REPLAYS, x, mean, error), Line(FULL_START, x, x, np.zeros(len(x)))]
        figure = curves("A bad arm pads the log", "samples in the log", "samples used by the end", lines, log="xy")
        yield Panel("padding", "All but about 900 samples are of one bad arm.", figure)


def _shares(results: Results) -> Iterator[Panel]:
    rows = []
    for budget, look in _BATCHES.items():
        pairs = [comparisons.batched(results, budget, bonus) for bonus in BATCH_BONUSES.values()]
        rows.append(_differing(look, pairs))
    figure = bars("Replay is not batch full start", "bonus", _DIFFER, list(BATCH_BONUSES), rows)
    caption = (
        "Loading all counts and means at once is another algorithm than showing samples in order. "
        "Bonuses: √(2 log T/n), √(log(1/δ)/(2n)), √(log((T+H)/δ)/(2n))."
    )
    yield Panel("batch", caption, figure)
    row = _differing(
        REPLAYS._replace(name="replay differs from full start"), [comparisons.ruled(results, r).pair() for r in RULES]
    )
    figure = bars("Replay and full start on adaptive cells", "rule of the budgeted choice", _DIFFER, list(RULES), [row])
    caption = (
        "Three places, piecewise linear domain: the paper's rule, and the choice over the boxes of the finest grid."
    )
    yield Panel("rules", caption, figure)


def _differing(look: Look, pairs: Sequence[tuple[Result, Result] | None]) -> Bar:
    shares = [(np.nan, np.nan) if pair is None else _share(*pair) for pair in pairs]
    return Bar(look, [mean for mean, _ in shares], [error for _, error in shares])


def _share(one: Result, other: Result) -> tuple[float, float]:
    differ = one.at_end("digest") != other.at_end("digest")
    return estimate(100.0 * differ)[:2]


_PANELS: dict[str, Callable[[Results], Iterator[Panel]]] = {
    "karmed": partial(_over_arms, "karmed", 1),
    "top-arms": partial(_over_arms, "top-arms", 3),
    "thompson-ids": _randomised,
    "performance": _performance,
    "imbalanced": _imbalanced,
    "surfaces": _surfaces,
    "discretisation": _discretisation,
    "fixed-vs-adaptive": _fixed_and_adaptive,
    "domains": _domains,
    "theory": _theory,
}
