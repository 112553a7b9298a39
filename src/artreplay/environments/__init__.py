"""Environments, which draw the mean rewards, the logs and the online rewards of a simulation."""

from artreplay.environments import logs
from artreplay.environments.arm_environments import ArmEnvironment, KArmed, Linear, TopArms, world_keys
from artreplay.environments.context_environments import (
    CategoryContexts,
    Classification,
    ContextEnvironment,
    Drawn,
    LinearContexts,
    SmoothContexts,
    from_classification,
)
from artreplay.environments.own_environment import OwnEnvironment, is_own_environment
from artreplay.environments.point_environments import Metric, PiecewiseLinear, PointEnvironment, Quadratic

__all__ = [
    "ArmEnvironment",
    "CategoryContexts",
    "Classification",
    "ContextEnvironment",
    "Drawn",
    "KArmed",
    "Linear",
    "LinearContexts",
    "Metric",
    "OwnEnvironment",
    "PiecewiseLinear",
    "PointEnvironment",
    "Quadratic",
    "SmoothContexts",
    "TopArms",
    "from_classification",
    "is_own_environment",
    "logs",
    "world_keys",
]
