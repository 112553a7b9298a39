"""The hold-out: which decisions control makes, what it plays, and how likely each action was.

Draws are functions of the seed of the study and of the number of the decision, or of the subject. So they are the same
after a restart, and a visitor stays in one group.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from artreplay.algorithms import Available
from artreplay.compiling import Floats
from artreplay.streams import fold
from artreplay.studies.settings import Arm
from artreplay.studies.terms import Terms, control_of

Group = Literal["policy", "control"]

_GROUP, _SUBJECT, _ARM = 1, 2, 3  # what a draw is for


class Played(NamedTuple):
    """What is played in place of what the policy says, if anything, and how likely control was to play it."""

    group: Group
    numbers: list[int]  # of the arms that are played
    share: float | None  # of control for the arm that is played; None for a list


def group_of(terms: Terms, number: int, subject: str | None) -> Group:
    """Draw the group of a decision, by its subject if it has one."""
    if subject is None:
        draw = _uniform(terms.seed, _GROUP, number)
    else:
        digest = hashlib.blake2b(subject.encode(), digest_size=8).digest()
        draw = _uniform(terms.seed, _SUBJECT, int.from_bytes(digest))
    return "control" if draw < terms.holdout else "policy"


def played_of(
    terms: Terms, arms: Sequence[Arm], available: Available | None, proposed: list[int], is_list: bool, number: int,
    subject: str | None,
) -> Played:  # fmt: skip
    """Return what is played where the policy proposes these arms."""
    group = group_of(terms, number, subject)
    if is_list:
        return Played(
            group, _some(terms, arms, available, len(proposed), number) if group == "control" else proposed, None
        )
    shares = control_shares(terms, arms, available)
    if group == "control":
        draw = _uniform(terms.seed, _ARM, number)
        proposed = [min(int(np.searchsorted(np.cumsum(shares), draw, side="right")), int(np.flatnonzero(shares)[-1]))]
    return Played(group, proposed, float(shares[proposed[0]]))


def control_shares(terms: Terms, arms: Sequence[Arm], available: Available | None) -> Floats:
    """Return the share of each arm in control, among those available. It is uniform if control knows none of them."""
    allowed = np.ones(len(arms)) if available is None else available.astype(np.float64)
    control = control_of(terms)
    if control != "uniform":
        known = np.array([control.get(arm.label, 0.0) for arm in arms]) * allowed
        if known.sum() > 0.0:
            allowed = known
    shares: Floats = allowed / allowed.sum()
    return shares


def _some(terms: Terms, arms: Sequence[Arm], available: Available | None, width: int, number: int) -> list[int]:
    """Draw some arms without replacement, all with the same chance."""
    allowed = range(len(arms)) if available is None else np.flatnonzero(available).tolist()
    return sorted(allowed, key=lambda arm: _uniform(terms.seed, _ARM, number, arm))[:width]


def _uniform(*parts: int) -> float:
    """Draw a number in (0, 1) that depends on these numbers only."""
    return ((fold(*parts) >> 12) + 0.5) * 2.0**-52
