"""The checks that users run on their own algorithms.

Each check searches random histories with many ties. It returns a `Summary`, or raises `CheckFailed` with a
counterexample that is as small as possible.
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
