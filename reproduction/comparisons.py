"""The results that are compared: the policies of one setting, side by side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from reproduction.catalogue import (
    BAD_SHARES,
    CELLS,
    DOMAINS,
    FINEST,
    IDS_FORMS,
    IMBALANCED_CELLS,
    LOGS,
    MERGED,
    NOISES,
    PATROL,
    REBUILT_DOMAINS,
    RULES,
    SYNTHETIC,
    padded_weights,
)
from reproduction.result_store import Result
from reproduction.results import Results
from reproduction.setting import BATCH, FULL, IGNORANT, REBUILT, REPLAY

RANDOMISED: dict[str, dict[str, Any]] = {"Thompson": {"algorithm": "PlainThompson"}} | {
    f"IDS {variant}": algorithm for variant, algorithm in IDS_FORMS.items()
}


class Policies(NamedTuple):
    """Results of the same worlds under different policies, None for what was not computed."""

    where: str  # in words
    rows: int  # how many rows the log has
    replay: Result | None
    full: Result | None
    ignorant: Result | None = None
    learnt: Result | None = None  # the Regressor, which learns from the whole log
    network: Result | None = None  # the network of the paper's authors, trained on the whole log

    def pair(self) -> tuple[Result, Result] | None:
        """Return replay and Full Start, if both were computed."""
        return None if self.replay is None or self.full is None else (self.replay, self.full)

    def of(self, start: str) -> Result | None:
        """Return the result of a policy by its name in settings."""
        return {REPLAY: self.replay, FULL: self.full, IGNORANT: self.ignorant}[start]


def over_arms(results: Results, experiment: str, rows: int) -> Policies:
    """Return monotone UCB over arms with a log of this size."""
    algorithm = {"karmed": "MonUCB", "top-arms": "TopUCB"}[experiment]
    return _policies(results, experiment, f"H={rows:,}", rows, {"algorithm": algorithm}, {})


def randomised(results: Results, name: str, log: str, rows: int) -> Policies:
    """Return Thompson sampling, or IDS in one of its forms."""
    where = f"{name}, {log} log, H={rows:,}"
    return _policies(results, "thompson-ids", where, rows, RANDOMISED[name], {"log": log})


class Allocated(NamedTuple):
    """A domain with one kind of cells, and the policies with logs of two sizes."""

    domain: str
    noise: str
    cells: str  # the kind of cells, as in `CELLS`
    small: Policies
    large: Policies
    random: Result | None

    @property
    def label(self) -> str:
        """Describe the domain and its noise in words."""
        return world_in_words(self.domain, self.noise)


def in_words(domain: str) -> str:
    """Return the name of a domain for people to read."""
    return SYNTHETIC if domain == PATROL else domain


def world_in_words(domain: str, noise: str) -> str:
    """Return a domain and its noise for people to read."""
    return f"{in_words(domain)}, {'noise-free' if noise == 'none' else 'Bernoulli'}"


def allocations(
    results: Results, kinds: dict[str, dict[str, Any]] = CELLS, name: str = "performance"
) -> Iterator[Allocated]:
    """Find all computed settings of an experiment with allocations, except the one in which places bind."""
    sizes = (results.scale.small_log, results.scale.large_log)
    for domain in DOMAINS:
        for noise in NOISES:
            world = {"environment": domain, "noise": noise}
            random = results.get("performance", algorithm="RandomAllocation", **world)
            learnt = {rows: results.get("performance", algorithm="Regressor", history=rows, **world) for rows in sizes}
            network = results.get("performance", algorithm="published_network", **world)
            for cells, algorithm in kinds.items():
                match = {**algorithm, **world}
                label = f"{cells}, {world_in_words(domain, noise)}"
                small, large = (
                    _policies(results, name, f"{label}, H={rows:,}", rows, match, {})._replace(learnt=each)
                    for rows, each in learnt.items()
                )
                small = small._replace(network=network)
                if small.ignorant is not None or small.full is not None:
                    yield Allocated(domain, noise, cells, small, large, random)


def everything(results: Results) -> Iterator[Policies]:
    """Find all comparisons of replay, Full Start and, where it was played, ignorant.

    The paper's rule solved exactly is left out, because it plays almost as it does greedily.
    """
    scale = results.scale
    for experiment in ("karmed", "top-arms"):
        for rows in scale.sizes:
            found = over_arms(results, experiment, rows)
            yield found._replace(where=f"{'one arm' if experiment == 'karmed' else 'three arms'}, {found.where}")
    for name in RANDOMISED:
        for log in LOGS:
            for rows in scale.randomised_sizes:
                yield randomised(results, name, log, rows)
    for one in allocations(results):
        if one.cells != MERGED:
            yield from (one.small, one.large)
    for cells in IMBALANCED_CELLS:
        for share in BAD_SHARES:
            found = imbalanced(results, share, cells)
            yield found._replace(where=f"imbalanced log, {cells}, {found.where}")
    yield from rebuilt(results)
    yield from rebuilt_imbalanced(results).values()
    for rule in RULES:
        yield ruled(results, rule)


def binding(results: Results, solver: str) -> Policies:
    """Return the setting in which the number of places limits the choice."""
    match = {"environment": "detection", "options": (("solver", solver),)}
    return _policies(results, "performance", f"{solver} choice", results.scale.small_log, match, {})


def rebuilt(results: Results) -> Iterator[Policies]:
    """Find the runs of the authors' code, rebuilt, with the log of the paper."""
    for adaptive in (False, True):
        for domain, times in REBUILT_DOMAINS.items():
            rows = times * results.scale.small_log
            where = f"the authors' code rebuilt, {'adaptive' if adaptive else 'fixed'} cells, {domain}"
            match = {"kind": REBUILT, "adaptive": adaptive, "environment": domain}
            yield _policies(results, "performance", where, rows, match, {})


def rebuilt_imbalanced(results: Results) -> dict[float, Policies]:
    """Return the runs of the authors' code, rebuilt, by the share of the log in bad places."""
    rows = results.scale.imbalanced_log
    return {
        share: _policies(
            results,
            "imbalanced",
            f"the authors' code rebuilt, bad share {share:g}",
            rows,
            {"kind": REBUILT},
            {"bad_share": share},
        )
        for share in BAD_SHARES
    }


def imbalanced(results: Results, share: float, cells: str = FINEST) -> Policies:
    """Return the setting with a log of which this share lies in bad places."""
    rows = results.scale.imbalanced_log
    found = _policies(results, "imbalanced", f"bad share {share:g}", rows, CELLS[cells], {"bad_share": share})
    return found._replace(learnt=results.get("imbalanced", algorithm="Regressor", bad_share=share))


def ruled(results: Results, rule: str) -> Policies:
    """Return adaptive cells with a rule for the budgeted choice."""
    match = {"options": (("rule", rule), ("solver", "greedy"))}
    return _policies(results, "theory", f"allocation rule {rule}", results.scale.small_log, match, {})


def batched(results: Results, budget: int, bonus: dict[str, Any]) -> tuple[Result, Result] | None:
    """Return replay, and Full Start that loads the log in one step."""
    match = {"kind": "simulate", "budget": budget, "history": results.scale.middle, "log": None, "options": None}
    replay, batch = (results.get("theory", start=start, **match | bonus) for start in (REPLAY, BATCH))
    return None if replay is None or batch is None else (replay, batch)


def padded(results: Results, rows: int) -> Result | None:
    """Return replay on a log that one bad arm pads."""
    return results.get("theory", log=padded_weights(rows))


def _policies(
    results: Results, experiment: str, where: str, rows: int, match: dict[str, Any], log: dict[str, Any]
) -> Policies:
    """Return the policies of a setting. The ignorant one has no log, so parameters of the log do not apply to it."""
    replay, full = (results.get(experiment, start=start, history=rows, **match, **log) for start in (REPLAY, FULL))
    ignorant = results.get(experiment, start=IGNORANT, history=0, **match, **dict.fromkeys(log))
    return Policies(where, rows, replay, full, ignorant)
