"""The settings of a study, as its database keeps them, and the base algorithm made from them."""

from __future__ import annotations

import dataclasses
import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, get_args

import numpy as np

from artreplay.algorithms import (
    ALGORITHMS,
    Algorithm,
    ArmAlgorithm,
    ContextRegression,
    IndexArmAlgorithm,
    LinUCB,
    checked_reward,
)
from artreplay.algorithms.indices import MeanIndex
from artreplay.algorithms.segments import TopInSegment
from artreplay.algorithms.selectors import Top, top
from artreplay.cells import feature_components
from artreplay.errors import CannotSave, InvalidFile, InvalidParameter, StudyRefused
from artreplay.history import History, Label
from artreplay.history.labels import plain_label
from artreplay.replay import ArtificialReplay, FullStart, Unknown, checked_unknown, decode, encode

OnTimeout = Literal["default", "discard"]
Close = Literal["arrival", "window"]
PolicyKind = Literal["artificial-replay", "full-start"]
AnyDrift = float | Mapping[Label, float]


@dataclass(frozen=True, slots=True)
class Arm:
    """An arm of a study: its label, its features if the algorithm needs them, and whether it is retired."""

    label: Label
    features: list[float] | None = None
    retired: bool = False


@dataclass(frozen=True)
class Settings:
    """Everything that a study is made with, except the arms, which come and go."""

    algorithm: str
    parameters: dict[str, Any]  # of the base, as JSON with types
    made_with: int  # how many arms the index counts with
    wait: float | None  # seconds until a decision is due
    on_timeout: OnTimeout
    default: float
    unknown: Unknown
    close: Close  # when the policy learns from a reward
    policy: PolicyKind  # how the log is shown: by replay, or the whole log first
    note: dict[str, Any]  # the user's own
    drift: Any = 0.0  # the drift, as JSON
    has_allowances: bool = False  # whether allowances are a column of the log
    # Rows of the log that the algorithm adds to the horizon, if it counts any: of all, or of each segment.
    log_rows: int | list[int] | None = None

    def as_json(self) -> str:
        """Return the settings as JSON, as the database keeps them."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Settings:
        """Read settings from JSON."""
        try:
            return cls(**json.loads(text))
        except (TypeError, ValueError) as error:
            raise InvalidFile(f"the settings of the study are damaged: {error}") from error

    @property
    def horizon(self) -> int | None:
        """The horizon of the base, if it has one."""
        return self.parameters.get("horizon")

    def with_horizon(self, horizon: int, n_arms: int, rows: int | list[int]) -> Settings:
        """Return the same settings with another horizon. The index counts with the current arms and rows of the log."""
        if self.horizon is None:
            raise StudyRefused(f"{self.algorithm} has no horizon to set")
        parameters = self.parameters | {"horizon": horizon}
        return dataclasses.replace(self, parameters=parameters, made_with=n_arms, log_rows=rows)


LONGEST_WAIT = timedelta(days=36_525)
MAX_BYTES = 64 << 20  # of what an algorithm knows, because every snapshot of a study holds it


def checked_note(note: dict[str, Any]) -> dict[str, Any]:
    """Check a user's note, which is kept as JSON."""
    try:
        copy = json.loads(json.dumps(note, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InvalidParameter(f"note must be a dict that JSON can hold: {error}") from None
    if not isinstance(copy, dict):
        raise InvalidParameter(f"note must be a dict that JSON can hold, got {note!r}")
    return copy


def settings_of(
    base: Algorithm,
    wait: timedelta | None,
    on_timeout: OnTimeout,
    default: float,
    close: Close,
    unknown: str,
    policy: PolicyKind | None,
    note: dict[str, Any] | None,
    drift: AnyDrift,
    has_allowances: bool,
) -> tuple[Settings, list[Arm], Algorithm]:
    """Return the settings of a study over this base, its arms, and a fresh base."""
    if not isinstance(base, Algorithm) or type(base) not in ALGORITHMS:
        raise InvalidParameter(
            "a study must be over an algorithm of this package, because every start makes it again from its settings, "
            f"got {base!r}"
        )
    check_memory(base)
    if on_timeout not in get_args(OnTimeout):
        raise InvalidParameter(f'on_timeout must be "default" or "discard", got {on_timeout!r}')
    if wait is not None and not (isinstance(wait, timedelta) and wait > timedelta(0)):
        raise InvalidParameter(f"wait must be a timedelta above 0, or None to wait for ever, got {wait!r}")
    if wait is not None and wait > LONGEST_WAIT:
        raise InvalidParameter(f"wait must be at most a hundred years, or None to wait for ever, got {wait}")
    if close not in get_args(Close):
        raise InvalidParameter(f'close must be "arrival" or "window", got {close!r}')
    if close == "window" and wait is None:
        raise InvalidParameter('close="window" needs wait=, after which the window of a decision closes')
    if on_timeout == "default":
        default = checked_reward(default, base.reward_range)
    parameters = base.parameters()
    arms: list[Arm] = []
    if isinstance(base, ArmAlgorithm):
        features = parameters.get("features")
        rows = [None] * base.n_arms if features is None else np.asarray(features).tolist()
        arms = [Arm(label, row) for label, row in zip(base.arms, rows, strict=True)]
    try:
        as_json = {
            name: encode(value) for name, value in parameters.items() if name not in ("arms", "n_arms", "features")
        }
        [encode(arm.label) for arm in arms]
    except CannotSave as error:
        raise CannotSave(f"a study needs an algorithm that a database can keep: {error}") from None
    settings = Settings(
        type(base).__name__,
        as_json,
        len(arms),
        None if wait is None else wait.total_seconds(),
        on_timeout,
        float(default) if on_timeout == "default" else 0.0,
        checked_unknown(unknown),
        close,
        _checked_policy(base, policy),
        checked_note(note or {}),
        drift_as_json(drift),
        has_allowances,
    )
    return settings, arms, new_base(settings, arms)


def check_memory(base: Algorithm) -> None:
    """Refuse regressions that are too large for the snapshots of a study."""
    if isinstance(base, ContextRegression) and (size := base.component.fits.covariance.nbytes) > MAX_BYTES:
        raise InvalidParameter(
            f"the covariances of a ContextRegression must fit into {MAX_BYTES >> 20} MB in a study, got "
            f"{-(-size >> 20):,} MB. Use fewer arms, segments, columns or cosines"
        )


def first_policy(settings: Settings, base: Algorithm) -> ArtificialReplay | FullStart:
    """Make the policy of a study before it was shown or told anything. It has no log yet."""
    make: type[ArtificialReplay | FullStart] = (
        ArtificialReplay if settings.policy == ArtificialReplay.kind else FullStart
    )
    nothing = History([], [], allowance=[] if settings.has_allowances else None)
    return make(base, nothing, drift=drift_from_json(settings.drift), unknown=settings.unknown)


def drift_as_json(drift: Any) -> Any:
    """Turn drift into JSON: a number, or numbers by arm. A policy refuses anything else."""
    if isinstance(drift, Mapping):
        return {"arms": [[encode(plain_label(label)), encode(value)] for label, value in drift.items()]}
    return encode(drift) if np.ndim(drift) == 0 else list(drift)


def drift_from_json(entry: Any) -> AnyDrift:
    """Turn JSON from `kept_drift` back into what a policy takes."""
    return {decode(label): decode(value) for label, value in entry["arms"]} if isinstance(entry, dict) else entry


def _checked_policy(base: Algorithm, policy: PolicyKind | None) -> PolicyKind:
    """Check how the log is to be shown. What replay shows must not depend on when a decision is asked for."""
    if policy is None:
        return "artificial-replay" if base.exact else "full-start"
    if policy not in get_args(PolicyKind):
        raise InvalidParameter(f'policy must be "artificial-replay" or "full-start", got {policy!r}')
    if policy == ArtificialReplay.kind and not base.exact:
        raise InvalidParameter(
            f"policy must be full-start for {type(base).__name__}, because under replay a restart would change its "
            "decisions"
        )
    return policy


def new_base(settings: Settings, arms: Sequence[Arm]) -> Algorithm:
    """Make a fresh base over these arms. Its index counts with as many arms as the settings say."""
    algorithm = {cls.__name__: cls for cls in ALGORITHMS}.get(settings.algorithm)
    if algorithm is None:
        raise InvalidFile(
            f"the study has an algorithm {settings.algorithm!r} that this version of artreplay does not have"
        )
    base: Algorithm = algorithm(**_parameters(algorithm, settings, arms))
    if len(arms) > settings.made_with and _is_mean_index(base):
        as_first: Any = algorithm(**_parameters(algorithm, settings, arms[: settings.made_with]))
        index = base.component.index._replace(bound=as_first.component.index.bound)
        base.component, base.choices = base.component._replace(index=index), as_first.choices
    if settings.log_rows is not None:
        base.count_log(settings.log_rows)
    return base


def _parameters(algorithm: type[Algorithm], settings: Settings, arms: Sequence[Arm]) -> dict[str, Any]:
    parameters = {name: decode(value) for name, value in settings.parameters.items()}
    if arms:
        parameters["arms"] = [arm.label for arm in arms]
    if "features" in inspect.signature(algorithm).parameters:
        parameters["features"] = [arm.features for arm in arms]
    return parameters


def _is_mean_index(base: Algorithm) -> bool:
    return isinstance(base, IndexArmAlgorithm) and isinstance(base.component.index, MeanIndex)


def checked_features(base: Algorithm, features: Sequence[float] | None) -> list[float] | None:
    """Check the features of a new arm, which must not join arms that were learnt separately."""
    if not isinstance(base, LinUCB):
        if features is not None:
            raise InvalidParameter(f"features must be left out, because {type(base).__name__} has none")
        return None
    width = base.features.shape[1]
    try:
        row = np.array(features, np.float64)
    except (TypeError, ValueError):
        row = np.empty(0)
    if row.shape != (width,) or not np.isfinite(row).all():
        raise InvalidParameter(f"features must be {width} finite numbers, got {features!r}")
    joined = np.unique(feature_components(base.features).cell[base.features @ row != 0.0])
    if len(joined) > 1:
        raise StudyRefused(
            f"features of a new arm must not join arms that were learnt separately, and these join {len(joined)} "
            "groups. Make a new study"
        )
    return [float(value) for value in row]


def with_state_of(base: Any, before: Any) -> bool:
    """Copy what the base before knows into a base with new arms. Return whether that works without folding again."""
    if not (_is_mean_index(base) and _is_mean_index(before)):
        return False
    index, theirs = base.component.index, before.component.index
    n_before = len(theirs.tally.counts)
    index.tally.counts[:n_before] = theirs.tally.counts
    index.tally.totals[:n_before] = theirs.tally.totals
    index.value[:n_before] = theirs.value[:n_before]
    selector = base.component.selector
    if isinstance(selector, Top):
        selector = top(index.value, base.budget)
    elif not isinstance(selector, TopInSegment):  # which looks at all values for every choice
        selector = base.best_selector(index.value)
    base.component = base.component._replace(selector=selector)
    return True
