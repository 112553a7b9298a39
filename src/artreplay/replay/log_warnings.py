"""What a user is warned of when a policy is made: a horizon that is too short, contexts that are odd."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np

from artreplay.algorithms import Algorithm, ArmAlgorithm
from artreplay.errors import callers_level
from artreplay.inspecting import warn_of_leaks
from artreplay.replay.bases import Base
from artreplay.replay.log import BaseLog

FEW_ROWS = 20  # of an arm in a segment
ODD_SHARE = 0.05  # of the values of a column: beyond the scale, or not among those of a category


def warn_of_short_horizon(base: Algorithm, rows: int) -> None:
    """Warn of a horizon that is too short for the arms or for the rows of the log, and say what that does."""
    why = base.why_horizon_is_short(rows)
    if why is not None:
        warnings.warn(why, stacklevel=callers_level())


def warn_of_other_decisions(base: Base) -> None:
    """Warn that a base which says that it is not exact may decide otherwise than after reading the whole log."""
    warnings.warn(
        f"{base.thing!r} is not exact: Artificial Replay may act differently from reading the whole log, for better "
        "or worse. ar.FullStart(base, history) is right for any algorithm",
        stacklevel=callers_level(),
    )


def warn_about_contexts(base: Base, log: BaseLog) -> None:
    """Say what is odd about the contexts of a log for a base."""
    for sentence in odd_about_contexts(base, log):
        warnings.warn(sentence, stacklevel=callers_level())
    if base.contexts is not None:
        warn_of_leaks(log.history, base.contexts.columns)


def odd_about_contexts(base: Base, log: BaseLog) -> Iterator[str]:
    """What a user should know, in sentences."""
    name = type(base.thing).__name__
    if not base.contextual:
        if names := ", ".join(log.history.context_names):
            yield f"the log has contexts ({names}), and {name} does not use them. ar.ContextRegression does"
        return
    if isinstance(base, ArmAlgorithm) and base.n_segments > 1 and (log.whole is not None or log.is_by_segment):
        counts = np.reshape(log.rows_to_count(), -1)
        segments = int((counts > 0).sum())
        cells = base.n_arms * segments
        if 0 < counts.sum() < FEW_ROWS * cells:
            yield (
                f"the log has {counts.sum() / cells:.1f} rows for each of {base.n_arms:,} arms in the {segments:,} "
                f"segments that occur, and should have at least {FEW_ROWS}. Use fewer segment columns"
            )
    for column, odd in log.oddities.items():
        if odd > ODD_SHARE * len(log.history):
            yield (
                f"{odd / len(log.history):.0%} of the values of {column!r} in the log lie beyond its scale or are "
                "none of its values. Take Contexts from this log, with Contexts.from_history"
            )
