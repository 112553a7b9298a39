"""These tests are about when loops are compiled, so each starts in the mode of a user."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from artreplay.compiling import using


@pytest.fixture(autouse=True)
def _as_users_run() -> Iterator[None]:
    with using("auto"):
        yield
