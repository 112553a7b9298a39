"""Which adapter a base has: a named algorithm, a marked component and a plain Python object have one each."""

from __future__ import annotations

from typing import Any

from artreplay.algorithms import ArmAlgorithm, PointAlgorithm
from artreplay.compiling import is_component
from artreplay.errors import InvalidParameter
from artreplay.replay.adapter import Adapter
from artreplay.replay.component_adapter import ComponentAdapter
from artreplay.replay.named_adapters import ArmAdapter, PointAdapter
from artreplay.replay.plain_adapter import PlainAdapter


def adapt(base: Any) -> Adapter:
    """The adapter for a base, over a copy of it."""
    if isinstance(base, ArmAlgorithm):
        return ArmAdapter(base)
    if isinstance(base, PointAlgorithm):
        return PointAdapter(base)
    if isinstance(base, Adapter):
        raise InvalidParameter("a policy is made from a base algorithm, got an adapter")
    for method in ("propose", "update"):
        if not callable(getattr(base, method, None)) or isinstance(base, type):
            raise InvalidParameter(f"a base algorithm must have propose() and update(unit, reward), got {base!r}")
    return ComponentAdapter(base) if is_component(base) else PlainAdapter(base)
