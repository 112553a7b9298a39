"""Where the tests of saving put a policy; and no calls in which an interrupt would be lost."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _collecting_calls_nothing() -> Iterator[None]:
    """An interrupt that comes in a call of the garbage collector is lost, and hypothesis has it make one."""
    calls, gc.callbacks[:] = gc.callbacks[:], []
    yield
    gc.callbacks[:] = calls


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "policy.ar"
