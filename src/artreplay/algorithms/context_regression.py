"""The class `ContextRegression`, which fits a logistic regression of the context for each arm."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from artreplay.algorithms.algorithm import ArmAlgorithm, RewardRange
from artreplay.algorithms.context_features import ContextFeatures, context_features
from artreplay.algorithms.logistic_fits import (
    ALL,
    COSINES,
    ONLINE,
    LogisticFits,
    fits_bytes,
    logistic,
    logistic_fits,
)
from artreplay.algorithms.tally import Tally
from artreplay.compiling import Floats, Ints, Loop, Words, compiled, current_mode
from artreplay.errors import InvalidParameter
from artreplay.history import Contexts, Label, contexts_of
from artreplay.parameters import REQUIRED, NotNegative, Seed, checked
from artreplay.streams import POSTERIOR, normal

Explore = Literal["ucb", "thompson", "greedy"]
Trust = Literal["auto", "log"]

BY_WIDTH, BY_DRAW = 0, 1  # whether a forecast is raised by alpha standard deviations, or by alpha times a draw of them
DEFAULT_ALPHA: dict[Explore, float] = {"ucb": 1.0, "thompson": 0.5, "greedy": 0.0}
EVIDENCE = 8.0  # variances of a reward, about four nats; online rewards must forecast better by this to replace the log
TOLERANCE = 0.01  # squared error per online reward that the log may cause, which is a bias of 0.1
MAX_BYTES = 1 << 30  # bytes of all covariances
MAX_ROWS_INTERPRETED = 2000  # rows of a log that are learnt without compiling


@compiled(scratch=("open", "allowed"))
class RegressedArms(NamedTuple):
    """A regression for each arm and segment. The current context must be set before anything else is called."""

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
        highest = -math.inf
        for arm in range(self.n_arms):
            if self.allowed[arm] == 1:
                worth = self.worth(arm, round_)
                if worth > highest:
                    highest = worth
                    out[0] = arm
        return 1

    def worth(self, arm: int, round_: int) -> float:
        """What an arm is worth in the current context and online round."""
        cell = self.cell(arm)
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

    def cell(self, arm: int) -> int:
        """The cell of an arm in the segment of the current context."""
        return arm * self.n_segments + self.features.segment()

    def update(self, unit: int, reward: float) -> None:
        """Learn from an online reward in the current context."""
        self.fits.learn(self.cell(unit), ALL, self.features.features, reward, True)
        self.fits.learn(self.cell(unit), ONLINE, self.features.features, reward, True)

    def update_logged(self, unit: int, reward: float, allowance: float) -> None:
        """Learn from a row of the log, which has the current context."""
        self.fits.learn(self.cell(unit), ALL, self.features.features, reward, False)

    def set_context(self, encoded: Floats) -> None:
        """Make this the current context."""
        for at in range(len(encoded)):
            self.features.encoded[at] = encoded[at]
        self.features.expand()

    def reseed(self, key: np.uint64) -> None:
        """Draw from another stream from now on."""
        self.key[0] = key


@Loop
def learn_rows(component: Any, encoded: Any, units: Any, rewards: Any, first: int, last: int) -> int:
    """Show a component the rows [first, last) of a log, each with its context."""
    for row in range(first, last):
        for at in range(encoded.shape[1]):
            component.features.encoded[at] = encoded[row, at]
        component.features.expand()
        component.update_logged(units[row], rewards[row], 0.0)
    return last


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
    contextual: ClassVar[bool] = True
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
        seed: Seed = 0,
        reward_range: RewardRange = (0.0, 1.0),
    ) -> None:
        super().__init__(n_arms, arms, reward_range)
        self.contexts: Contexts = contexts_of(contexts)
        self.explore: Explore = explore
        self.trust: Trust = trust
        self.alpha = DEFAULT_ALPHA[explore] if alpha is None else alpha
        self.seed = seed
        frozen = self.contexts
        n_cells = self.n_arms * frozen.n_segments
        if (size := fits_bytes(frozen.n_linear, frozen.n_features, n_cells)) > MAX_BYTES:
            raise InvalidParameter(
                f"the covariances of a ContextRegression must fit into {MAX_BYTES >> 20} MB, got {size >> 20} MB for "
                f"{n_cells} pairs of arm and segment with {frozen.n_features} features. Use fewer segments, columns or "
                "cosines"
            )
        self.component = RegressedArms(
            np.zeros(1, np.uint64),
            context_features(frozen),
            logistic_fits(frozen.n_linear, frozen.n_features, n_cells),
            np.zeros(n_cells, np.int64),
            np.ones(self.n_arms, np.int64),
            self.n_arms,
            frozen.n_segments,
            BY_DRAW if explore == "thompson" else BY_WIDTH,
            0.0 if explore == "greedy" else self.alpha,
            1 if trust == "auto" else 0,
        )
        self.reseed(seed)

    def set_context(self, encoded: Floats) -> None:
        """Set the current context for the next proposal or sample.

        Parameters
        ----------
        encoded
            The context, as `Contexts.encode_one` returns it.
        """
        self.component.set_context(encoded)

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
        sample = self._checked_sample(unit, reward)
        self.set_context(self._encoded(context))
        self.component.update(*sample)

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
        sample = self._checked_sample(unit, reward)
        self.set_context(self._encoded(context))
        self.component.update_logged(*sample, 0.0)

    def learn_log(self, units: Ints, rewards: Floats, encoded: Floats) -> None:
        """Learn from rows of a log.

        Parameters
        ----------
        units
            The number of the arm of each row.
        rewards
            The rewards, scaled to [0, 1].
        encoded
            The contexts, as `Contexts.encode` returns them.
        """
        if len(units) > MAX_ROWS_INTERPRETED and not _compiles():
            raise InvalidParameter(
                f"a log must have at most {MAX_ROWS_INTERPRETED:,} rows for a ContextRegression without numba, got "
                f"{len(units):,}. Run pip install numba"
            )
        few = len(units) <= MAX_ROWS_INTERPRETED and not learn_rows.is_at_hand(self.component)
        loop = learn_rows.interpreted if few and current_mode() != "compiled" else learn_rows
        loop(self.component, np.ascontiguousarray(encoded), units, rewards, 0, len(units))

    def values(self, context: Mapping[str, Any] | None = None, round_: int = 0) -> dict[Label, ArmValue]:
        """Return what each arm is worth in a context.

        Parameters
        ----------
        context
            The values of the columns by name.
        round_
            The number of the online round, for the draws of "thompson".
        """
        self.set_context(self._encoded(context))
        with np.errstate(over="ignore"):
            return {label: self._value(arm, round_) for arm, label in enumerate(self.arms)}

    def _value(self, arm: int, round_: int) -> ArmValue:
        component = self.component
        cell = component.cell(arm)
        source = component.source(cell)
        group = 2 * cell + source
        map_ = component.fits.best(group)
        logit = component.fits.logit(group, map_, component.features.features)
        forecast = logistic(logit)
        width = logistic(logit + component.deviation(cell, source, logit)) - forecast
        in_rewards = self.unscaled(np.array([component.worth(arm, round_), forecast, forecast + width])).tolist()
        return ArmValue(
            in_rewards[0],
            in_rewards[1],
            in_rewards[2] - in_rewards[1],
            "cosines" if map_ == COSINES else "linear",
            "online" if source == ONLINE else "all",
        )

    def _encoded(self, context: Mapping[str, Any] | None) -> Floats:
        if context is None:
            raise InvalidParameter("a ContextRegression needs a context, got None. Give context={...}")
        return self.contexts.encode_one(context)

    @property
    def tally(self) -> Tally:
        """The count and the sum of the samples of each arm."""
        fits, shape = self.component.fits, (self.n_arms, self.contexts.n_segments, 2)
        counts = fits.counts.reshape(shape)[:, :, ALL].sum(axis=1)
        return Tally(counts, fits.totals.reshape(shape)[:, :, ALL].sum(axis=1))


def _compiles() -> bool:
    return importlib.util.find_spec("numba") is not None and current_mode() != "interpreted"
