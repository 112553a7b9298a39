"""How history reaches an algorithm: the ledger of unused samples, the one step, and the three policies."""

from artreplay.replay import drift
from artreplay.replay.cell import Cell
from artreplay.replay.contradictions import Contradiction
from artreplay.replay.policies import ArtificialReplay, FullStart, Ignorant
from artreplay.replay.policy import Policy
from artreplay.replay.saving import load

__all__ = ["ArtificialReplay", "Cell", "Contradiction", "FullStart", "Ignorant", "Policy", "drift", "load"]
