"""The checks a user runs on an algorithm of their own.

Each searches random histories with many ties, and either returns a `Summary` or raises `CheckFailed` with a
counterexample that has been made as small as it could be.
"""

from artreplay.testing.checks import (
    check_completion,
    check_coupling,
    check_irrelevant_data,
    check_journal,
    check_values,
)
from artreplay.testing.outcome import CheckFailed, Summary
from artreplay.testing.random_worlds import Points

__all__ = [
    "CheckFailed",
    "Points",
    "Summary",
    "check_completion",
    "check_coupling",
    "check_irrelevant_data",
    "check_journal",
    "check_values",
]
