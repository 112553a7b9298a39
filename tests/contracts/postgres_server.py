"""A real PostgreSQL for the tests, from pgserver."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator

from real_parts import needed_package


def running_server() -> Iterator[str]:
    """The address of a server that runs as long as it is wanted; without one the tests fail, unless ALLOW_MISSING=1."""
    needed_package("pgserver")
    with tempfile.TemporaryDirectory(prefix="pg") as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pgserver

        server = pgserver.get_server(folder, cleanup_mode="stop")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()
