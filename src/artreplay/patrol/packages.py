"""The packages of the extra `geo`."""

from __future__ import annotations

from typing import Any

from artreplay.optional_packages import needed


def package(name: str, extra: str = "geo") -> Any:
    """A package that reading or drawing maps needs."""
    return needed(name, "this", extra)
