"""Every figure of the paper's evaluation as data: the settings it consists of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from artreplay.errors import InvalidParameter, checked_count
from reproduction.setting import BATCH, FULL, IGNORANT, REBUILT, REPLAY, Setting, make_setting

POLICIES = (REPLAY, FULL, IGNORANT)
LOGS = ("uniform", "random")
ARMS = 10
BAD_SHARES = (0.1, 0.5, 0.7, 0.9)
SCIKIT = "scikit-learn"  # a package that a setting may need


@dataclass(frozen=True)
class Scale:
    """How large the experiments are."""

    horizon: int = 1000
    compared: int = 400  # replications of settings that are compared with the authors' code
    others: int = 60  # replications of all other settings, as in the paper, unless more are cheap
    few: int = 30  # replications of what takes long, where so many tell enough
    sizes: tuple[int, ...] = (10, 100, 1000, 10_000)  # sizes of logs over arms
    randomised_arms: int = 10  # arms for Thompson sampling and for IDS, which is slow
    randomised_horizon: int = 1000
    randomised_sizes: tuple[int, int] = (100, 1000)
    small_log: int = 300  # rows of a small log of allocations
    large_log: int = 3000
    imbalanced_log: int = 10_000
    surfaces: tuple[str, ...] = ("piecewise linear", "quadratic")  # the paper's domains on which our own rule plays
    surface_horizon: int = 1000
    logged: tuple[int, ...] = (500, 1500, 6000, 10_000)  # a partition is drawn after these numbers of waypoints
    waypoints: int = 180_677  # of the synthetic park
    finest: int = 32
    paddings: tuple[int, ...] = (1000, 10_000, 100_000, 1_000_000, 10_000_000)
    streams: tuple[int, ...] = (10, 100, 1000, 10_000)  # an index is looked at after these numbers of samples
    looked_at: int = 2000  # rounds before a partition is drawn
    shown: int = 64  # boxes per side in the picture of a surface
    timed: bool = True
    seed: int = 0

    @property
    def middle(self) -> int:
        """The size of the log in figures of use over time: 1,000 in the paper."""
        return self.sizes[2]

    @property
    def little(self) -> int:
        """The size of the log in figures of regret over time: 100 in the paper."""
        return self.sizes[1]


FULL_SCALE = Scale()
SMOKE = Scale(
    horizon=30,
    compared=3,
    others=2,
    few=2,
    sizes=(2, 5, 20, 40),
    randomised_arms=2,
    randomised_horizon=2,
    randomised_sizes=(1, 2),
    small_log=20,
    large_log=60,
    imbalanced_log=100,
    surfaces=("quadratic",),
    surface_horizon=3,
    logged=(20, 200),
    waypoints=2000,
    finest=8,
    paddings=(100, 1000),
    streams=(10, 100),
    looked_at=60,
    shown=16,
    timed=False,
)


@dataclass(frozen=True)
class Experiment:
    """One figure: its name on the command line, and its settings."""

    name: str
    settings: tuple[Setting, ...]


def scale_of(smoke: bool, replications: int | None, seed: int) -> Scale:
    """Return the scale for these options."""
    scale = replace(SMOKE if smoke else FULL_SCALE, seed=checked_count("seed", seed, least=0))
    if replications is not None:
        scale = replace(
            scale, compared=checked_count("replications", replications), others=replications, few=replications
        )
    return scale


def experiments(scale: Scale, only: Sequence[str] = ()) -> list[Experiment]:
    """Return the whole catalogue, or the experiments of these names."""
    for name in only:
        if name not in _CATALOGUE:
            raise InvalidParameter(f"an experiment must be one of {', '.join(_CATALOGUE)}, got {name!r}")
    return [
        Experiment(name, tuple(dict.fromkeys(settings(scale))))
        for name, settings in _CATALOGUE.items()
        if not only or name in only
    ]


# -- finite arms --------------------------------------------------------------------------------------------------


def _arms(experiment: str, scale: Scale, replications: int, start: str, history: int, **other: Any) -> Setting:
    """Make a simulation over ten arms. The ignorant policy gets no log, so that figures can share it."""
    used = 0 if start == IGNORANT else history
    given: dict[str, Any] = {"environment": "arms", "arms": ARMS, "horizon": scale.horizon, "budget": 1}
    given |= {"start": start, "history": used} | other
    return make_setting(experiment, given.pop("kind", "simulate"), replications, scale.seed, **given)


def _top(experiment: str, budget: int, scale: Scale) -> Iterator[Setting]:
    """Monotone UCB over arms, `budget` of them in a round, with log(1 + T) in its bonus as in the authors' code."""
    made = partial(_arms, experiment, scale, scale.compared, budget=budget)
    algorithm = {"algorithm": "MonUCB" if budget == 1 else "TopUCB", "extra_horizon": 1}
    for history in scale.sizes:
        for start in POLICIES:
            yield made(start=start, history=history, **algorithm)
    yield made(start=IGNORANT, history=0, algorithm="RandomChoice")


# By their names in figures.
IDS_FORMS: dict[str, dict[str, Any]] = {
    "published": {"algorithm": "PublishedIDS", "options": None},
    "without fallback": {"algorithm": "PublishedIDS", "options": (("fallback", False),)},
    "exact": {"algorithm": "IDS"},
}


def _thompson_and_ids(scale: Scale) -> Iterator[Setting]:
    made = partial(_arms, "thompson-ids", scale, arms=scale.randomised_arms, horizon=scale.randomised_horizon)
    for start in POLICIES:
        for log in LOGS if start != IGNORANT else (None,):
            for history in scale.randomised_sizes:
                where: dict[str, Any] = {"start": start, "history": history, "log": log}
                yield made(scale.compared, algorithm="PlainThompson", **where)
                for variant, algorithm in IDS_FORMS.items():
                    told = variant != "exact" and log == "uniform" and history == scale.randomised_sizes[-1]
                    told |= variant == "published" and start == IGNORANT
                    replications = scale.compared if told else scale.others
                    yield made(replications, **algorithm, **where)


# -- allocations --------------------------------------------------------------------------------------------------

PATROL = "patrol"  # a network that is fitted to the records of a synthetic park
DOMAINS = ("piecewise linear", "quadratic", PATROL)
SYNTHETIC = "synthetic park"  # how figures name PATROL, so that nobody takes it for the paper's records
NOISES = ("bernoulli", "none")
SOLVERS = ("exact", "greedy")
RULES = ("paper", "finest")
# The kinds of cells, by their names on the page. The default rule for trees is ours.
FIXED, FINEST = "fixed cells", "adaptive cells, finest boxes (ours)"
LEAVES, MERGED = "adaptive cells, the paper's rule", "adaptive cells, the paper's rule solved exactly"
CELLS: dict[str, dict[str, Any]] = {
    FIXED: {"algorithm": "GridAllocation"},
    LEAVES: {"algorithm": "TreeAllocation", "options": (("rule", "paper"),)},
    MERGED: {"algorithm": "TreeAllocation", "options": (("rule", "paper"), ("solver", "exact"))},
    FINEST: {"algorithm": "TreeAllocation", "options": None},
}
OURS: dict[str, dict[str, Any]] = {"surfaces (ours, not the paper's)": {"algorithm": "CellRegression"}}
IMBALANCED_CELLS = (LEAVES, FINEST)  # with a log that lies in bad places
NETWORKS = ("Regressor", "published_network")  # ours, and the one of the paper's authors
REBUILT_DOMAINS = {"piecewise linear": 2, "quadratic": 1}  # with the number of times that code draws its log
_TRAINED = (*NETWORKS, "CellRegression")  # what takes long
_EFFORT = {"levels": (0.0, 0.5, 1.0), "budget": 2.0, "max_units": 5}
_BINDING = {"levels": (2.0, 4.0, 8.0), "budget": 40.0, "max_units": 5}


def _allocation(experiment: str, scale: Scale, algorithm: str, start: str, history: int, **other: Any) -> Setting:
    """Make a simulation that splits a budget over places."""
    needs = SCIKIT if other["environment"] == PATROL or algorithm in NETWORKS else None
    is_slow = other["environment"] == PATROL or algorithm in _TRAINED or experiment == "imbalanced"  # its log is long
    given: dict[str, Any] = {
        **_EFFORT,
        "algorithm": algorithm,
        "start": start,
        "history": 0 if start == IGNORANT else history,
        "horizon": scale.horizon,
        "finest": scale.finest,
    } | other
    replications = scale.others if is_slow else scale.compared
    if algorithm == "published_network":
        replications = scale.few
    return make_setting(experiment, "simulate", replications, scale.seed, needs, **given)


def _rebuilt(experiment: str, scale: Scale, start: str, history: int, **other: Any) -> Setting:
    """Make a run of the authors' code, rebuilt. It has places at all levels, also at 0, and no noise."""
    given: dict[str, Any] = {
        **_EFFORT,
        "noise": "none",
        "start": start,
        "history": 0 if start == IGNORANT else history,
        "horizon": scale.horizon,
        "finest": scale.finest,
    } | other
    return make_setting(experiment, REBUILT, scale.few, scale.seed, **given)


def _world(domain: str, scale: Scale) -> dict[str, Any]:
    """Return the parameters that name the domain."""
    return {"environment": domain, "waypoints": scale.waypoints if domain == PATROL else None}


def _performance(scale: Scale) -> Iterator[Setting]:
    made = partial(_allocation, "performance", scale)
    for domain in DOMAINS:
        for noise in NOISES:
            world: dict[str, Any] = {**_world(domain, scale), "noise": noise}
            yield made("RandomAllocation", IGNORANT, 0, **world)
            for history in (scale.small_log, scale.large_log):
                for cells in CELLS.values():
                    for start in POLICIES:
                        yield made(start=start, history=history, **cells, **world)
                yield made("Regressor", FULL, history, **world)
            yield made("published_network", FULL, scale.small_log, **world)
    for domain, times in REBUILT_DOMAINS.items():
        for adaptive in (False, True):
            for start in POLICIES:
                rows = times * scale.small_log
                yield _rebuilt("performance", scale, start, rows, environment=domain, adaptive=adaptive)
    for solver in SOLVERS:
        for start in (REPLAY, FULL):
            world = {**_BINDING, "environment": "detection", "noise": "none", "finest": min(scale.finest, 8)}
            yield made("TreeAllocation", start, scale.small_log, options=(("solver", solver),), **world)


def _imbalanced(scale: Scale) -> Iterator[Setting]:
    world: dict[str, Any] = {"environment": "quadratic", "noise": "none"}
    world["levels"] = (0.5, 1.0)  # at level 0 no sample can be used

    def made(algorithm: str, start: str, **other: Any) -> Setting:
        """Make a simulation with the imbalanced log."""
        return _allocation("imbalanced", scale, algorithm, start, scale.imbalanced_log, **world, **other)

    timed = True if scale.timed else None
    for share in BAD_SHARES:
        for start in POLICIES:
            bad = None if start == IGNORANT else share
            for cells in IMBALANCED_CELLS:
                yield made(start=start, bad_share=bad, timed=timed if cells == FINEST else None, **CELLS[cells])
            frame: dict[str, Any] = {"environment": "quadratic", "adaptive": True, "bad_share": bad}
            yield _rebuilt("imbalanced", scale, start, scale.imbalanced_log, **frame)
        yield made("Regressor", FULL, bad_share=share)


def _surfaces(scale: Scale) -> Iterator[Setting]:
    """Play our own rule on the paper's domains. This is not in the paper."""
    for domain in scale.surfaces:
        for noise in NOISES:
            world: dict[str, Any] = {**_world(domain, scale), "noise": noise, "horizon": scale.surface_horizon}
            for history in (scale.small_log, scale.large_log):
                for start in POLICIES:
                    yield _allocation("surfaces", scale, "CellRegression", start, history, **world)


# -- pictures -----------------------------------------------------------------------------------------------------


def _discretisation(scale: Scale) -> Iterator[Setting]:
    for history in scale.logged:
        yield make_setting(
            "discretisation",
            "partition",
            1,
            scale.seed,
            SCIKIT,
            algorithm="TreeAllocation",
            history=history,
            horizon=scale.horizon,
            rounds=0,
            finest=scale.finest,
            **_EFFORT,
            **_world(PATROL, scale),
        )


def _fixed_and_adaptive(scale: Scale) -> Iterator[Setting]:
    made = partial(make_setting, "fixed-vs-adaptive", replications=1, seed=scale.seed, environment="hills")
    yield made("surface", finest=scale.finest, shown=scale.shown)
    for algorithm, finest in (("GridUCB", max(scale.finest // 4, 4)), ("TreeUCB", scale.finest)):
        yield made("partition", algorithm=algorithm, history=0, horizon=scale.looked_at, finest=finest)


def _domains(scale: Scale) -> Iterator[Setting]:
    for domain in DOMAINS:
        needs = SCIKIT if domain == PATROL else None
        fixed = {**_world(domain, scale), "finest": scale.finest, "shown": scale.shown, "level": 1.0}
        yield make_setting("domains", "surface", 1, scale.seed, needs, **_EFFORT, **fixed)


# -- theory -------------------------------------------------------------------------------------------------------

BATCH_BONUSES: dict[str, dict[str, Any]] = {
    "theory": {},
    "practical": {"options": (("bonus", "practical"),)},
    "anytime": {"options": (("bonus", "anytime"),)},
}
# Few places and coarse cells: here the paper's rule for adaptive cells goes wrong often.
_TIGHT: dict[str, Any] = {
    "environment": "piecewise linear",
    "noise": "bernoulli",
    "levels": (0.5, 1.0),
    "budget": 2.5,
    "max_units": 3,
    "finest": 8,
}
_PADDED_MEANS = (0.1, *(0.3 + 0.5 * place / 8 for place in range(9)))  # the first arm pads the log
_GOOD_ROWS = 900


def padded_weights(rows: int) -> tuple[float, ...]:
    """Return the shares of the arms in a log in which one bad arm has all but about 900 rows."""
    good = min(_GOOD_ROWS, rows) / (ARMS - 1) / rows
    return (1.0 - good * (ARMS - 1), *[good] * (ARMS - 1))


def _theory(scale: Scale) -> Iterator[Setting]:
    arms = partial(_arms, "theory", scale)
    for history in (0, scale.middle):
        yield arms(scale.compared, REPLAY, history, kind="pulls", algorithm="PsiUCB")
    for rows in scale.paddings:
        padded = {"means": _PADDED_MEANS, "log": padded_weights(rows), "extra_horizon": 1}
        yield arms(scale.others, REPLAY, rows, algorithm="MonUCB", **padded)
    for budget, algorithm in ((1, "MonUCB"), (3, "TopUCB")):
        for bonus in BATCH_BONUSES.values():
            for start in (REPLAY, BATCH):
                yield arms(scale.compared, start, scale.middle, algorithm=algorithm, budget=budget, **bonus)
    for rule in RULES:
        for start in (REPLAY, FULL):
            options = (("rule", rule), ("solver", "greedy"))
            yield _allocation("theory", scale, "TreeAllocation", start, scale.small_log, options=options, **_TIGHT)
    for bonus_name in ("practical", "anytime", "theory"):
        fixed: dict[str, Any] = {"bonus": bonus_name, "samples": scale.streams, "horizon": scale.horizon}
        yield make_setting("theory", "below-mean", scale.others, scale.seed, **fixed)


_CATALOGUE: dict[str, Callable[[Scale], Iterator[Setting]]] = {
    "karmed": partial(_top, "karmed", 1),
    "top-arms": partial(_top, "top-arms", 3),
    "thompson-ids": _thompson_and_ids,
    "performance": _performance,
    "imbalanced": _imbalanced,
    "surfaces": _surfaces,
    "discretisation": _discretisation,
    "fixed-vs-adaptive": _fixed_and_adaptive,
    "domains": _domains,
    "theory": _theory,
}
