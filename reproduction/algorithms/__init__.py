"""What the paper plays and the package does not offer: algorithms of the reproduction's own."""

from reproduction.algorithms.published_ids import PublishedIDS
from reproduction.algorithms.regressor import Regressor

__all__ = ["PublishedIDS", "Regressor"]
