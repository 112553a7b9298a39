"""Real parts that long tests need, a browser, a cluster: where one is missing they fail, unless ALLOW_MISSING=1."""

from __future__ import annotations

import importlib.util
import os
from typing import Any

import pytest


def needed(part: str, found: Any) -> Any:
    """What was found; in one line, what is missing."""
    if not found:
        if os.environ.get("ALLOW_MISSING"):
            pytest.skip(f"{part} is missing")
        pytest.fail(f"{part} is missing: install it, or set ALLOW_MISSING=1", pytrace=False)
    return found


def needed_package(name: str) -> None:
    """A package that must be installed."""
    needed(f"the package {name}", importlib.util.find_spec(name))
