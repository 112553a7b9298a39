"""How much of a log was read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Reading:
    """Samples shown to the base; rows, sums and bytes that were read for them; requests to a file or a database.

    A sum stands for many rows: it is a row of `Totals`, or the end of a block of rows.
    """

    used: int = 0
    rows: int = 0
    bytes: int = 0
    requests: int = 0
    sums: int = 0

    def count(self, rows: int, size: int, requests: int = 1) -> None:
        """One more look at the log."""
        self.rows += rows
        self.bytes += size
        self.requests += requests
