"""The results that are compared: the policies of one setting, side by side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from reproduction.catalogue import (
    BAD_SHARES,
    CELLS,
    DOMAINS,
    IDS_FORMS,
    LOGS,
    NOISES,
    PATROL,
    RULES,
    SYNTHETIC,
    padded_weights,
)
from reproduction.result_store import Result
from reproduction.results import Results
from reproduction.setting import BATCH, FULL, IGNORANT, REPLAY

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
    cells: str
    small: Policies
    large: Policies
    random: Result | None

    @property
    def label(self) -> str:
        """Describe the domain and its noise in words."""
        return f"{in_words(self.domain)}, {'noise-free' if self.noise == 'none' else 'Bernoulli'}"


def in_words(domain: str) -> str:
    """Return the name of a domain for people to read."""
    return SYNTHETIC if domain == PATROL else domain


def allocations(results: Results, kinds: dict[str, str] = CELLS, name: str = "performance") -> Iterator[Allocated]:
    """Find all computed settings of an experiment with allocations, except the one in which places bind."""
    sizes = (results.scale.small_log, results.scale.large_log)
    for domain in DOMAINS:
        for noise in NOISES:
            world = {"environment": domain, "noise": noise}
            random = results.get("performance", algorithm="RandomAllocation", **world)
            learnt = {rows: results.get("performance", algorithm="Regressor", history=rows, **world) for rows in sizes}
            for cells, algorithm in kinds.items():
                match = {"algorithm": algorithm, **world}
                label = f"{cells} cells, {in_words(domain)}, {'noise-free' if noise == 'none' else 'Bernoulli'}"
                small, large = (
                    _policies(results, name, f"{label}, H={rows:,}", rows, match, {})._replace(learnt=each)
                    for rows, each in learnt.items()
                )
                if small.ignorant is not None or small.full is not None:
                    yield Allocated(domain, noise, cells, small, large, random)


def everything(results: Results) -> Iterator[Policies]:
    """Find all comparisons of replay, Full Start and, where it was played, ignorant."""
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
        yield from (one.small, one.large)
    for share in BAD_SHARES:
        found = imbalanced(results, share)
        yield found._replace(where=f"imbalanced log, {found.where}")
    for rule in RULES:
        yield ruled(results, rule)


def binding(results: Results, solver: str) -> Policies:
    """Return the setting in which the number of places limits the choice."""
    match = {"environment": "detection", "options": (("solver", solver),)}
    return _policies(results, "performance", f"{solver} choice", results.scale.small_log, match, {})


def imbalanced(results: Results, share: float) -> Policies:
    """Return the setting with a log of which this share lies in bad places."""
    rows = results.scale.imbalanced_log
    where = f"bad share {share:g}"
    found = _policies(results, "imbalanced", where, rows, {"algorithm": "TreeAllocation"}, {"bad_share": share})
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
