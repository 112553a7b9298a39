"""Where online rewards come from, and logs: domains, keyed reward stacks, generators of histories."""

from artreplay.environments.arms import ArmEnvironment, KArmed, Linear, TopArms

__all__ = ["ArmEnvironment", "KArmed", "Linear", "TopArms"]
