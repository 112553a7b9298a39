"""Whether finds move with the time of year, by the records' own word; and what a visit of another season is worth."""

from __future__ import annotations

import numpy as np

from artreplay.compiling import Floats, Ints
from artreplay_patrol.rings import HeldOut, rates_of, summed

SHARPNESS = (1, 2, 4)  # of a season, if there is one: the larger, the less a visit three months away is worth
TURN = 42  # days: nobody knows better than this when a season begins
_YEAR = 365.2425  # days
_MONTHS = 12
_LEAST_YEARS = 2.0  # of records, below which nobody can tell a season from a change
_FEWEST = 100  # finds, below which nothing is said of seasons
_CLEARLY = 5.0  # the gain in log-likelihood from which there is a season


def season_worth(days: Ints, day: int, sharpness: int) -> Floats:
    """What visits on some days are worth for a forecast of another day: 1 at its time of year, 0 half a year away.

    >>> season_worth(np.array([0, 91, 183, 365]), 0, sharpness=2).round(2).tolist()
    [1.0, 0.25, 0.0, 1.0]
    >>> season_worth(np.array([0, 183]), 0, sharpness=0).tolist()
    [1.0, 1.0]
    """
    if not sharpness:
        return np.ones(len(days))
    worth: Floats = (0.5 + 0.5 * np.cos(2.0 * np.pi / _YEAR * (days - day))) ** sharpness
    return worth


def quarter_of(days: Ints) -> Ints:
    """The quarter of the year of each day, from 0 to 3."""
    quarter: Ints = (days % _YEAR / _YEAR * 4.0).astype(np.int64)
    return quarter


def middle_of(quarter: int) -> int:
    """A day in the middle of a quarter of the year."""
    return round((quarter + 0.5) * _YEAR / 4.0)


def fitted_season(box: Ints, day: Ints, finds: Floats, effort: Floats, strengths: tuple[float, ...], side: int) -> int:
    """How sharp the seasons of a park are; 0 if it has none, or if its records are too few to tell.

    Every month of every year is forecast from the other years: from all of their visits, and from those of the same
    time of year above all. There are seasons if the second forecasts clearly better, and better in every year: a park
    that changed once for good has none.
    """
    if finds.sum() < _FEWEST or day[-1] + 1 - day[0] < _LEAST_YEARS * _YEAR:
        return 0
    year = ((day[-1] - day) / _YEAR).astype(np.int64)
    month = (day % _YEAR / _YEAR * _MONTHS).astype(np.int64)
    scores = {sharpness: np.zeros(int(year.max()) + 1) for sharpness in (0, *SHARPNESS)}  # by year
    for number in range(int(year.max()) + 1):
        others = np.flatnonzero(year != number)
        for part in range(_MONTHS):
            now = np.flatnonzero((year == number) & (month == part))
            held_out = HeldOut(summed(box[now], finds[now], side), summed(box[now], effort[now], side))
            for sharpness in scores:
                worth = season_worth(day[others], round((part + 0.5) * _YEAR / _MONTHS), sharpness)
                known, walked = (summed(box[others], values[others] * worth, side) for values in (finds, effort))
                rates = rates_of(known, walked, strengths)
                scores[sharpness][number] += held_out.score(rates.finds, rates.effort)
    gains = {sharpness: scores[sharpness] - scores[0] for sharpness in SHARPNESS}
    best = max(SHARPNESS, key=lambda sharpness: float(gains[sharpness].sum()))
    return best if gains[best].sum() > _CLEARLY and (gains[best] > 0.0).all() else 0
