"""A real PostgreSQL for the tests, from pgserver."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Iterator

import pytest


def running_server() -> Iterator[str]:
    """The address of a server that runs as long as it is wanted; without one the tests fail, unless ALLOW_MISSING=1."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pgserver
    except ImportError:
        sentence = (
            "the tests over PostgreSQL need pgserver: pip install pgserver, or leave them out with ALLOW_MISSING=1"
        )
        if os.environ.get("ALLOW_MISSING") != "1":
            pytest.fail(sentence)
        pytest.skip(sentence)
    with tempfile.TemporaryDirectory(prefix="pg") as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server = pgserver.get_server(folder, cleanup_mode="stop")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()
