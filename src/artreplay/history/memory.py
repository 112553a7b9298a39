"""Refuses logs that do not fit into the memory of this machine."""

from __future__ import annotations

import os
from pathlib import Path

from artreplay.errors import InvalidHistory

SHARE = 0.5  # of the memory of the machine, for a log; the rest is for the policy and for other programs


def check_fits(name: str, rows: int, bytes_per_row: int) -> None:
    """Refuse a log that would take more than half of the memory of this machine.

    >>> check_fits("clicks.csv", 10, 64)
    """
    need, memory = rows * bytes_per_row, memory_of_machine()
    if memory is not None and need > SHARE * memory:
        raise InvalidHistory(
            f"a log must take at most half of the {memory / 1e9:.1f} GB of memory here, and the {rows:,} or more rows "
            f"of {name} take about {need / 1e9:.1f} GB. Run `artreplay index`, so that a log of arms is read in parts"
        )


def memory_of_machine() -> int | None:
    """The bytes of memory of this machine or container, or None if the system does not tell."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None
    try:
        return min(memory, int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii")))
    except (OSError, ValueError):  # there is no container, or it has no limit
        return memory
