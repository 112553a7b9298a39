"""The class `ContextRegression`, which fits a logistic regression of the context for each arm."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, Self, cast

import numpy as np

from artreplay.algorithms.algorithm import ArmAlgorithm, RewardRange
from artreplay.algorithms.context_features import ContextFeatures, context_features
from artreplay.algorithms.logistic_fits import (
    ALL,
    COSINES,
    ONLINE,
    WEAK,
    LogisticFits,
    Prior,
    fits_bytes,
    logistic,
    logistic_fits,
)
from artreplay.algorithms.open_index import Available
from artreplay.algorithms.tally import Tally
from artreplay.compiling import Floats, Ints, Loop, Slices, Words, can_compile, compiled, state_of, views
from artreplay.errors import InvalidParameter, checked_number
from artreplay.history import Contexts, Label
from artreplay.parameters import REQUIRED, NotNegative, Seed, checked
from artreplay.streams import POSTERIOR, normal

Explore = Literal["ucb", "thompson", "greedy"]
Trust = Literal["auto", "log"]

BY_WIDTH, BY_DRAW = 0, 1  # whether a forecast is raised by alpha standard deviations, or by alpha times a draw of them
DEFAULT_ALPHA: dict[Explore, float] = {"ucb": 1.0, "thompson": 0.5, "greedy": 0.0}
EVIDENCE = 8.0  # variances of a reward, about four nats; online rewards must forecast better by this to replace the log
TOLERANCE = 0.01  # squared error per online reward that the log may cause, which is a bias of 0.1
# Variances of the constant and of all other weights where the rate is known and low: of the pairs that were tried on
# clicks below 1 %, with contexts that hardly matter and with some that do, these had the lowest regret over both.
RATE_VARIANCE = 1.0
RARE_VARIANCE = 0.03
MAX_BYTES = 1 << 30  # bytes of all covariances
MAX_ROWS_INTERPRETED = 2000  # rows of a log that are learnt without compiling


@compiled(scratch=("open", "allowed"))
class RegressedArms(NamedTuple):
    """A regression for each arm and segment, a unit, which is arm · n_segments + segment, for the current context."""

    key: Words
    features: ContextFeatures
    fits: LogisticFits
    open: Ints  # of each cell: decisions whose rewards are not known yet
    allowed: Ints  # of each arm: 1 if it can be chosen now, else 0
    n_arms: int
    n_segments: int
    exploring: int
    alpha: float
    doubts_log: int  # 1 if online rows alone may be trusted instead of the log

    def propose(self, out: Ints, round_: int) -> int:
        """Propose the arm with the highest worth, or the lowest arm among equals."""
        self.features.expand()
        highest = -math.inf
        for arm in range(self.n_arms):
            if self.allowed[arm] == 1:
                unit = arm * self.n_segments + self.features.segment()
                worth = self.worth(unit, round_)
                if worth > highest:
                    highest = worth
                    out[0] = unit
        return 1

    def worth(self, cell: int, round_: int) -> float:
        """What the arm of a cell is worth in the current context and online round."""
        return self.worth_by(cell, self.source(cell), self.raised_by(cell, round_))

    def worth_by(self, cell: int, source: int, raised_by: float) -> float:
        """The forecast of the better map for a source of rows, raised by some deviations, or 1 without rows."""
        group = 2 * cell + source
        if self.fits.counts[group] == 0 and self.open[cell] == 0:
            return 1.0
        map_ = self.fits.best(group)
        logit = self.fits.logit(group, map_, self.features.features)
        if raised_by == 0.0:
            return logistic(logit)
        return logistic(logit + raised_by * self.deviation(cell, source, logit))

    def deviation(self, cell: int, source: int, logit: float) -> float:
        """The standard deviation of a logit. Open decisions of its cell count as rows with this context."""
        group = 2 * cell + source
        spread = max(0.0, self.fits.spread(group, self.fits.best(group), self.features.features))
        if self.open[cell] > 0:
            forecast = logistic(logit)
            spread /= 1.0 + self.open[cell] * (forecast * (1.0 - forecast)) * spread
        return math.sqrt(spread)

    def raised_by(self, cell: int, round_: int) -> float:
        """By how many standard deviations a forecast is raised."""
        if self.exploring == BY_DRAW:
            draw: float = normal(self.key[0], POSTERIOR, cell, round_, 0.0, 1.0, -math.inf, math.inf)
            return self.alpha * draw
        return self.alpha

    def source(self, cell: int) -> int:
        """The rows to trust, which are all of them or only the online ones."""
        if self.doubts_log == 0 or self.fits.trusts_log(cell, TOLERANCE, EVIDENCE):
            return ALL
        return ONLINE

    def update(self, unit: int, reward: float) -> None:
        """Learn from an online reward in the current context."""
        self.features.expand()
        self.fits.learn(unit, ALL, self.features.features, reward, True)
        self.fits.learn(unit, ONLINE, self.features.features, reward, True)

    def update_logged(self, unit: int, reward: float, allowance: float) -> None:
        """Learn from a row of the log, which has the current context."""
        self.features.expand()
        self.fits.learn(unit, ALL, self.features.features, reward, False)

    def set_context(self, encoded: Floats) -> None:
        """Make this the current context."""
        for at in range(len(encoded)):
            self.features.encoded[at] = encoded[at]

    def reseed(self, key: np.uint64) -> None:
        """Draw from another stream from now on."""
        self.key[0] = key


@Loop
def learn_rows(component: Any, encoded: Any, units: Any, rewards: Any, played: int, row: Any, limit: int) -> int:
    """Show a component at most `limit` rows, each with its context, from `row` on. Return 1 at the end, else 0.

    With `played` they are online rewards, else rows of a log.
    """
    last = min(row[0] + limit, len(units))
    for at in range(row[0], last):
        for column in range(encoded.shape[1]):
            component.features.encoded[column] = encoded[at, column]
        if played == 1:
            component.update(units[at], rewards[at])
        else:
            component.update_logged(units[at], rewards[at], 0.0)
    row[0] = last
    return 1 if last == len(units) else 0


class ArmValue(NamedTuple):
    """What an arm is worth in a context, and why.

    Parameters
    ----------
    worth
        The number by which arms are compared.
    forecast
        The expected reward. Before any row it is the middle of the reward range.
    width
        How far one standard deviation raises the forecast.
    model
        The regression that forecasts better so far, "linear" or "cosines".
    source
        The rows it has learnt from, "all" of them or only the "online" ones.
    """

    worth: float
    forecast: float
    width: float
    model: str
    source: str


class ContextRegression(ArmAlgorithm):
    """Forecast the reward of each arm from the context by logistic regression, and play the most promising arm.

    Each arm has two regressions, in each segment if the contexts have segments. One is linear in the columns, and the
    other also has cosines, so that it can bend. The one that has forecast better so far is used. Every row of an arm
    changes its forecast in all contexts, so every policy reads the whole log first.

    Parameters
    ----------
    n_arms
        The number of arms, if they have no labels.
    contexts
        An `ar.Contexts`, or a table of contexts to take one from.
    arms
        The labels of the arms, as they stand in the log.
    explore
        "ucb" raises every forecast by `alpha` standard deviations, "thompson" by `alpha` times a normal draw of them,
        and "greedy" not at all. The arm with the highest result is played.
    trust
        "auto" stops using the log for an arm once online rewards alone clearly forecast better. "log" always uses it.
    alpha
        A number of standard deviations, by default 1 for "ucb" and 0.5 for "thompson".
    rate
        About what a decision earns on average, where that is little: below about two parts in a hundred of
        `reward_range`, as with clicks. Forecasts then begin there, and contexts are believed to matter little until
        rows say otherwise. The rate of a log is `history.rewards.mean()`.
    seed
        The seed of the draws.
    reward_range
        The lowest and the highest reward there can be.

    Examples
    --------
    >>> contexts = Contexts(categories={"country": ["NL", "DE"]})
    >>> base = ContextRegression(arms=["red", "blue"], contexts=contexts)
    >>> for country, arm, reward in [("NL", "red", 1), ("DE", "red", 0), ("NL", "blue", 0), ("DE", "blue", 1)] * 9:
    ...     base.update(arm, reward, {"country": country})
    >>> base.propose({"country": "NL"}), base.propose({"country": "DE"})
    ('red', 'blue')
    """

    summary = "highest upper value of a logistic regression of the context, one per arm"
    exact = True
    reads_whole_log = True
    expensive = True
    contexts: Contexts
    component: RegressedArms

    @checked
    def __init__(
        self,
        n_arms: int | None = None,
        contexts: Any = REQUIRED,
        *,
        arms: Iterable[Label] | None = None,
        explore: Explore = "ucb",
        trust: Trust = "auto",
        alpha: NotNegative | None = None,
        rate: float | None = None,
        seed: Seed = 0,
        reward_range: RewardRange = (0.0, 1.0),
    ) -> None:
        super().__init__(n_arms, arms, reward_range)
        self.hear(contexts)
        self.explore: Explore = explore
        self.trust: Trust = trust
        self.alpha = DEFAULT_ALPHA[explore] if alpha is None else alpha
        self.rate = rate
        self.seed = seed
        frozen, n_cells = self.contexts, self.n_units
        if (size := fits_bytes(frozen.n_linear, frozen.n_features, n_cells)) > MAX_BYTES:
            raise InvalidParameter(
                f"the covariances of a ContextRegression must fit into {MAX_BYTES >> 20} MB, got {size >> 20} MB for "
                f"{n_cells} pairs of arm and segment with {frozen.n_features} features. Use fewer segments, columns or "
                "cosines"
            )
        self.component = RegressedArms(
            np.zeros(1, np.uint64),
            context_features(frozen),
            logistic_fits(frozen.n_linear, frozen.n_features, n_cells, self._prior()),
            np.zeros(n_cells, np.int64),
            np.ones(self.n_arms, np.int64),
            self.n_arms,
            frozen.n_segments,
            BY_DRAW if explore == "thompson" else BY_WIDTH,
            0.0 if explore == "greedy" else self.alpha,
            1 if trust == "auto" else 0,
        )
        self.reseed(seed)

    def _prior(self) -> Prior:
        """Return what is believed before the first row."""
        if self.rate is None:
            return WEAK
        share = float(self.scaled(checked_number("rate", self.rate)))
        if not 0.0 < share < 1.0:
            low, high = self.reward_range
            raise InvalidParameter(f"must lie between {low:g} and {high:g}, got {self.rate!r}", parameter="rate")
        return Prior(math.log(share / (1.0 - share)), RATE_VARIANCE, RARE_VARIANCE)

    def propose(self, context: Mapping[str, Any] | None = None, round_: int = 0) -> Any:
        """Return the arm to play next in a context.

        Parameters
        ----------
        context
            The values of the columns by name.
        round_
            The number of the online round, for the draws of "thompson".
        """
        self.set_context(self._encoded(context))
        out = np.zeros(1, np.int64)
        with np.errstate(over="ignore"):
            self.component.propose(out, round_)
        return self.unit(int(out[0]))

    def update(self, unit: object, reward: float, context: Mapping[str, Any] | None = None) -> None:
        """Learn from an online reward in a context.

        Parameters
        ----------
        unit
            The arm that was played.
        reward
            The reward it gave.
        context
            The values of the columns by name.
        """
        self.component.update(*self._checked_in(context, unit, reward))

    def update_logged(self, unit: object, reward: float, context: Mapping[str, Any] | None = None) -> None:
        """Learn from a row of a log with its context.

        Parameters
        ----------
        unit
            The arm of the row.
        reward
            The reward of the row.
        context
            The values of the columns by name.
        """
        self.component.update_logged(*self._checked_in(context, unit, reward), 0.0)

    def _checked_in(self, context: Mapping[str, Any] | None, unit: Any, reward: float) -> tuple[int, float]:
        arm, value = self._checked_sample(unit, reward)
        encoded = self._encoded(context)
        self.set_context(encoded)
        return self.in_context(arm, encoded), value

    def check_rows(self, rows: int) -> None:
        """Refuse a log that it would take minutes to learn from."""
        if rows > MAX_ROWS_INTERPRETED and not can_compile():
            raise InvalidParameter(
                f"a log must have at most {MAX_ROWS_INTERPRETED:,} rows for a ContextRegression without numba, got "
                f'{rows:,}. Run pip install "artreplay[fast]"'
            )

    def learn_rows(self, units: Ints, rewards: Floats, encoded: Floats, played: bool) -> Iterator[int]:
        """Show rows of a log, or online rewards, by the numbers of their units, scaled rewards and encoded contexts.

        It yields, between slices in which Ctrl-C is not heard, how many of them have been shown.
        """
        slices, row, done = Slices(learn_rows, 0.0), np.zeros(1, np.int64), 0
        encoded = np.ascontiguousarray(encoded)
        while done == 0 and len(units):
            done = slices.run(self.component, encoded, units, rewards, int(played), row)
            yield int(row[0])

    def values(self, context: Mapping[str, Any] | None = None, round_: int = 0) -> dict[Label, ArmValue]:
        """Return what each arm is worth in a context.

        Parameters
        ----------
        context
            The values of the columns by name.
        round_
            The number of the online round, for the draws of "thompson".
        """
        encoded = self._encoded(context)
        self.set_context(encoded)
        self.component.features.expand()
        with np.errstate(over="ignore"):
            return {label: self._value(self.in_context(arm, encoded), round_) for arm, label in enumerate(self.arms)}

    def _value(self, cell: int, round_: int) -> ArmValue:
        component = self.component
        source = component.source(cell)
        group = 2 * cell + source
        map_ = component.fits.best(group)
        logit = component.fits.logit(group, map_, component.features.features)
        forecast = logistic(logit)
        width = logistic(logit + component.deviation(cell, source, logit)) - forecast
        in_rewards = self.unscaled(np.array([component.worth(cell, round_), forecast, forecast + width])).tolist()
        return ArmValue(
            in_rewards[0],
            in_rewards[1],
            in_rewards[2] - in_rewards[1],
            "cosines" if map_ == COSINES else "linear",
            "online" if source == ONLINE else "all",
        )

    def _encoded(self, context: Mapping[str, Any] | None) -> Floats:
        return cast(Floats, self.checked_context(context))

    def is_sound(self) -> bool:
        """Whether what was read from a file can be a state of this algorithm; its arrays have the right shapes."""
        mine, fresh = state_of(self.component), state_of(type(self)(**self.parameters()).component)
        frozen = [name for name in mine if name.startswith("features.") or name == "key"]
        return all(np.array_equal(mine[name], fresh[name]) for name in frozen) and bool(
            (mine["fits.counts"] >= 0).all()
            and (self.component.open == 0).all()
            and (self.component.allowed == 1).all()
        )

    # -- while decisions are open ---------------------------------------------------------------------------------

    follows = True  # what answers for open decisions shares what was learnt

    def with_open(self, units: Iterable[int]) -> Self:
        """What chooses while these units are open: the same regressions, with narrower widths where some are open."""
        answer = copy.copy(self)
        answer.component = self.component._replace(open=np.zeros_like(self.component.open))
        answer.count_open(units)
        return answer

    def count_open(self, units: Iterable[int]) -> None:
        """Count further units as open."""
        for unit in units:
            self.component.open[unit] += 1

    def uncount_open(self, units: Iterable[int]) -> bool:
        """Count these units as open no longer; whether that is possible."""
        for unit in units:
            self.component.open[unit] -= 1
        return True

    def propose_among(self, out: Any, round_: int, available: Available | None) -> int:
        """Write the number of what is proposed for the current context, among the arms that are available."""
        self.component.allowed[:] = 1 if available is None else available
        with np.errstate(over="ignore"):
            proposed: int = views(self.component).propose(out, round_)
        self.component.allowed[:] = 1
        return proposed

    # -- what people see ------------------------------------------------------------------------------------------

    @property
    def draws(self) -> bool:
        """Whether it chooses at random."""
        return self.explore == "thompson"

    @property
    def tally(self) -> Tally:
        """The count and the sum of the samples of each unit."""
        fits = self.component.fits
        return Tally(fits.counts[ALL::2], fits.totals[ALL::2])

    def contradicted(self) -> list[tuple[Any, float, int, float, int]]:
        """The units whose log is no longer trusted: name, and mean and count of what was played and of logged rows."""
        fits, found = self.component.fits, []
        for unit in range(self.n_units):
            if self.component.source(unit) == ONLINE:
                count, played = fits.counts[2 * unit : 2 * unit + 2].tolist()
                total, earned = fits.totals[2 * unit : 2 * unit + 2].tolist()
                means = self.unscaled(np.array([earned / played, (total - earned) / (count - played)])).tolist()
                found.append((self.unit_name(unit), means[0], played, means[1], count - played))
        return found
