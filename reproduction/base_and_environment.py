"""The base algorithm and the environment of a setting, made from its parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

import artreplay as ar
from artreplay.compiling import Floats
from artreplay.environments import ArmEnvironment, KArmed, Metric, PiecewiseLinear, PointEnvironment, Quadratic, TopArms
from reproduction import algorithms
from reproduction.setting import Setting

DELTA = 0.1  # the error probability of the practical bonus

_ALLOCATION = ("levels", "budget", "max_units")
_HORIZON = ("MonUCB", "TopUCB", "PsiUCB", "GridUCB", "TreeUCB", "GridAllocation", "TreeAllocation", "CellRegression")
_ARMS = ("MonUCB", "TopUCB", "PsiUCB", "PlainThompson", "IDS", "PublishedIDS", "RandomChoice")


def base_of(setting: Setting) -> Any:
    """Make the base algorithm of a setting."""
    name = setting["algorithm"]
    options = dict(setting.get("options", ()))
    if "bonus" in options:
        options["bonus"] = bonus_of(options["bonus"], setting["horizon"], setting["history"])
    if name in _HORIZON:
        options["horizon"] = setting["horizon"] + setting.get("extra_horizon", 0)
    if name in _ARMS:
        options["n_arms"] = setting["arms"]
        if name in ("TopUCB", "RandomChoice"):
            options["budget"] = setting["budget"]
        return _algorithm(name)(**options)
    options["dim"] = 2
    if name.startswith("Tree"):
        options["epsilon"] = 1.0 / setting["finest"]
    elif name == "CellRegression":
        options["side"] = setting["finest"]
    else:
        options["cells_per_side"] = setting["finest"]
    if setting.get("levels") is not None:
        options |= {part: setting[part] for part in _ALLOCATION}
    return _algorithm(name)(**options)


def _algorithm(name: str) -> Any:
    """Return the algorithm of this name, from the reproduction or from the package."""
    return getattr(algorithms if name in algorithms.__all__ else ar, name)


def bonus_of(name: str, horizon: int, history: int) -> Any:
    """Return a bonus by its name in settings."""
    if name == "anytime":
        return ar.bonus.anytime(DELTA, history=history)
    return {"theory": ar.bonus.theory, "practical": ar.bonus.practical(DELTA)}[name]


def environment_of(setting: Setting) -> ArmEnvironment | PointEnvironment:
    """Make the environment of a setting."""
    name = setting["environment"]
    if name == "arms":
        options = {"log": setting.get("log", "uniform"), "means": setting.get("means")}
        if setting["budget"] == 1:
            return KArmed(setting["arms"], **options)
        return TopArms(setting["arms"], setting["budget"], **options)
    options = {part: setting.get(part) for part in (*_ALLOCATION, "finest", "bad_share")}
    options["noise"] = setting.get("noise", "bernoulli")
    if name == "patrol":
        from reproduction.domains.patrol_domain import synthetic_domain  # it imports pyarrow, which takes a while

        return synthetic_domain(setting.seed, setting["waypoints"], **options)
    if name in _SURFACES:
        return Metric(_SURFACES[name], 2, **options)
    return {"quadratic": Quadratic, "piecewise linear": PiecewiseLinear}[name](**options)


def detection(points: Floats, levels: Floats) -> Floats:
    """Return a reward that rises with effort, ever more slowly, and is best in the middle."""
    means: Floats = (1.0 - np.exp(-0.144 * levels)) * (1.0 - ((points - 0.5) ** 2).sum(axis=1))
    return means


def hills(points: Floats) -> Floats:
    """Return a high hill and a low one on a plain."""
    high = 0.75 * np.exp(-30.0 * ((points - (0.7, 0.65)) ** 2).sum(axis=1))
    low = 0.45 * np.exp(-20.0 * ((points - (0.25, 0.3)) ** 2).sum(axis=1))
    means: Floats = 0.15 + high + low
    return means


_SURFACES: dict[str, Any] = {"detection": detection, "hills": hills}
