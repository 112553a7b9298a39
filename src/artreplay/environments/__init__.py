"""Environments, which draw the mean rewards, the logs and the online rewards of a simulation."""

from artreplay.environments.arm_environments import ArmEnvironment, KArmed, Linear, TopArms, world_keys
from artreplay.environments.own_environment import OwnEnvironment, is_own_environment
from artreplay.environments.point_environments import Metric, PiecewiseLinear, PointEnvironment, Quadratic

__all__ = [
    "ArmEnvironment",
    "KArmed",
    "Linear",
    "Metric",
    "OwnEnvironment",
    "PiecewiseLinear",
    "PointEnvironment",
    "Quadratic",
    "TopArms",
    "is_own_environment",
    "world_keys",
]
