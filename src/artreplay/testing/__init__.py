"""The checks a user runs on an algorithm of their own.

Each searches random histories with many ties, and either returns a `Summary` or raises `CheckFailed` with a
counterexample that has been made as small as it could be.
"""

from artreplay.testing.checks import (
    CheckFailed,
    Summary,
    check_completion,
    check_coupling,
    check_irrelevant_data,
)
from artreplay.testing.random_worlds import Points

__all__ = ["CheckFailed", "Points", "Summary", "check_completion", "check_coupling", "check_irrelevant_data"]
