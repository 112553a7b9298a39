"""What in a log could mislead whoever starts from it, in sentences that `inspect` and every policy share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from artreplay.inspecting.inspection import Group, Inspection

LEAST_ROWS = 20  # fewer rows of an arm do not show whether its order is random
FAR = 4.0  # a trend of rewards along the log counts as drift from this many standard errors on
UNLIKELY = 1e-4  # a run of lowest rewards at the start gets a warning if its chance is below this
SHORT_RUN = 5  # a shorter run of lowest rewards at the start never gets a warning
MAX_NAMED = 3


def warnings_of(inspection: Inspection) -> list[str]:
    """Return everything that `inspect` warns of."""
    sentences = []
    if inspection.missing:
        lack, them = ("row lacks", "it") if inspection.missing == 1 else ("rows lack", "them")
        sentences.append(f"{inspection.missing:,} {lack} a finite reward or a unit, and a policy refuses {them}")
    if inspection.rows == 0:
        return [*sentences, "the log is empty, so a policy over it starts from nothing"]
    sentences += misleading(inspection)
    single = sum(group.rows == 1 for group in inspection.groups)
    if single and inspection.kind == "arms":
        sentences.append(f"{single:,} arm{'s have' if single > 1 else ' has'} a single row, which says almost nothing")
    return sentences


def misleading(inspection: Inspection) -> list[str]:
    """Return what misleads an algorithm although each row is right, such as rewards that follow the order."""
    what = "arm" if inspection.kind == "arms" else "region"
    in_order = [group for group in inspection.groups if group.is_sorted and abs(group.drift) > FAR]
    rising, falling = (
        [group for group in inspection.groups if group not in in_order and sign * group.drift > FAR] for sign in (1, -1)
    )
    late = [group for group in inspection.groups if abs(group.drift) <= FAR and _opens_low(group, inspection)]
    sentences = []
    if inspection.repeats_at is not None:
        sentences.append(
            f"from row {inspection.repeats_at:,} on the log repeats its first rows, so each row would count twice"
        )
    if in_order:
        sentences.append(
            f"{_named(what, in_order)} rewards are sorted, but the method assumes a random order. Shuffle the log"
        )
    for way, groups in (("rise", rising), ("fall", falling)):
        if groups:
            most = max(groups, key=lambda group: abs(group.drift)).drift
            sentences.append(
                f"{_named(what, groups)} rewards {way} along the log ({most:+.0f} standard errors), but the method "
                "assumes that they do not. Use the recent part, or allow for it with drift: a shuffle only hides it"
            )
    if late:
        first = late[0]
        sentences.append(
            f"{_named(what, late)} first {first.opening:,} rewards are the lowest possible, although the mean is "
            f"{first.mean:.2g}. The index falls and stays low"
        )
    return sentences


def _opens_low(group: Group, inspection: Inspection) -> bool:
    """Return whether an arm begins with more of the lowest rewards than chance explains."""
    if group.opening < SHORT_RUN or inspection.high <= inspection.low:
        return False
    lowest = 1.0 - (group.mean - inspection.low) / (inspection.high - inspection.low)
    return bool(lowest < 1.0 and lowest**group.opening < UNLIKELY)


def _named(what: str, groups: Sequence[Group]) -> str:
    """Name the arms in a few words, before something that they have."""
    names = [str(group.name) for group in groups]
    if len(names) == 1:
        return f"{what} {names[0]}: its"
    more = f" and {len(names) - MAX_NAMED:,} more" if len(names) > MAX_NAMED else ""
    return f"{what}s {', '.join(names[:MAX_NAMED])}{more}: their"
