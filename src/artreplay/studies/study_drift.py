"""How stale the log of a study may be: as its settings keep it, and as its policy is told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from artreplay.compiling import Floats, Ints
from artreplay.errors import InvalidParameter
from artreplay.history.labels import plain_label
from artreplay.replay import Age, Drift, decode, encode

_GIVEN, _AGES = "one for each row", "by age"


def kept_drift(drift: Any) -> Any:
    """What settings keep of it, as JSON; the allowances of single rows are kept beside the rows."""
    if isinstance(drift, Mapping):
        return {"arms": [[encode(plain_label(label)), encode(value)] for label, value in drift.items()]}
    if isinstance(drift, Age) or np.ndim(drift) == 1:
        return {"rows": _AGES if isinstance(drift, Age) else _GIVEN}
    return encode(drift)


def drift_again(kept: Any) -> Any:
    """What was kept, for a policy that has no rows yet."""
    if is_by_row(kept):
        return rows_again(kept, np.empty(0))
    return {decode(label): decode(value) for label, value in kept["arms"]} if isinstance(kept, dict) else kept


def is_by_row(kept: Any) -> bool:
    """Whether each row has an allowance of its own."""
    return isinstance(kept, dict) and "rows" in kept


def rows_again(kept: Any, allowances: Floats) -> Any:
    """The allowances of rows as they were given first."""
    return Age(1.0, now=0.0, column=-allowances) if kept["rows"] == _AGES else allowances


def of_rows(drift: Any, rows: Ints, length: int) -> Any:
    """A drift for some rows of a log of this length."""
    if not isinstance(drift, Age) and np.ndim(drift) != 1:
        return drift
    given = drift.allowances() if isinstance(drift, Age) else np.asarray(drift)
    if len(given) != length:
        raise InvalidParameter(f"drift must have one number for each row, got {len(given)} for {length} rows")
    return Age(1.0, now=0.0, column=-given[rows]) if isinstance(drift, Age) else given[rows]


def drift_of(policy: Any) -> Any:
    """The drift of a policy that has one number for all rows, or one for each arm."""
    drift: Drift = policy._drift
    said, allowances = drift.kept()
    if len(allowances) == 1 or not said["is_there"]:
        return float(allowances[0])
    return dict(zip(policy.base.arms, allowances.tolist(), strict=False))
