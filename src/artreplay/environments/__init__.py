"""Where online rewards come from, and logs: domains, keyed reward stacks, generators of histories."""

from artreplay.environments.arm_environments import ArmEnvironment, KArmed, Linear, TopArms, world_keys
from artreplay.environments.patrol import Patrol
from artreplay.environments.point_environments import Metric, PiecewiseLinear, PointEnvironment, Quadratic

__all__ = [
    "ArmEnvironment",
    "KArmed",
    "Linear",
    "Metric",
    "Patrol",
    "PiecewiseLinear",
    "PointEnvironment",
    "Quadratic",
    "TopArms",
    "world_keys",
]
