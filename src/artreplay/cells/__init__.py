"""Which units share a stream of samples: a cell is served its samples in order, and has a state of its own."""

from artreplay.cells.arms import Arms, ArmSet
from artreplay.cells.components import FeatureComponents, feature_components

__all__ = ["ArmSet", "Arms", "FeatureComponents", "feature_components"]
