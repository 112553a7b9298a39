"""The settings of a study, as its database keeps them, and the base algorithm made from them."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from artreplay.algorithms import ALGORITHMS, Algorithm, ArmAlgorithm, ContextRegression, IndexArmAlgorithm, LinUCB
from artreplay.algorithms.indices import MeanIndex
from artreplay.algorithms.segments import TopInSegment
from artreplay.algorithms.selectors import Top, top
from artreplay.cells import feature_components
from artreplay.errors import CannotSave, InvalidFile, InvalidParameter, StudyRefused, StudyUnavailable
from artreplay.history import Contexts, History, Label
from artreplay.history.labels import plain_label
from artreplay.replay import ArtificialReplay, Base, FullStart, Unknown, as_base, checked_unknown, decode, encode
from artreplay.studies.study_journal import Journal
from artreplay.studies.terms import Terms, checked_json, control_of

PolicyKind = Literal["artificial-replay", "full-start"]
MAX_BYTES = 64 << 20  # of what an algorithm knows, because every snapshot of a study holds it
AnyDrift = float | Mapping[Label, float]
Factory = Callable[..., Any]  # makes an algorithm of the user's own


@dataclass(frozen=True, slots=True)
class Arm:
    """An arm of a study: its label, its features if the algorithm needs them, and whether it is retired."""

    label: Label
    features: list[float] | None = None
    retired: bool = False


@dataclass(frozen=True)
class Settings:
    """Everything that a study is made with, except the arms, which come and go. All but `terms` is for the policy."""

    algorithm: str  # the name of an algorithm of this package, or the place of a factory, as in "my_shop.bandits:make"
    parameters: dict[str, Any]  # of the base, or of the factory, as JSON with types
    made_with: int  # how many arms the index counts with
    unknown: Unknown
    policy: PolicyKind  # how the log is shown: by replay, or the whole log first
    terms: Terms
    drift: Any = 0.0  # the drift, as JSON
    has_allowances: bool = False  # whether allowances are a column of the log
    log_rows: Any = None  # rows and rounds that the algorithm adds to the horizon, of each segment, if it counts any
    decided: int = 0  # how many decisions there were when the horizon was set
    factory: Factory | None = field(default=None, compare=False)  # never in the database

    def as_json(self) -> str:
        """Return the settings as JSON, as the database keeps them."""
        document = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "factory"}
        return json.dumps(document | {"terms": dataclasses.asdict(self.terms)})

    @classmethod
    def from_json(cls, text: str, factory: Factory | None = None) -> Settings:
        """Read settings from JSON."""
        try:
            document = json.loads(text)
            return cls(**document | {"terms": Terms(**document["terms"]), "factory": factory})
        except (TypeError, ValueError, KeyError) as error:
            raise InvalidFile(f"the settings of the study are damaged: {error}") from error

    @property
    def is_own(self) -> bool:
        """Whether the algorithm is the user's own, which is never imported unasked."""
        return ":" in self.algorithm

    @property
    def horizon(self) -> int | None:
        """How many decisions were to come when the horizon was set, if the base has one."""
        return self.parameters.get("horizon")

    def with_horizon(self, horizon: int, n_arms: int, rows: Any, decided: int) -> Settings:
        """Return the same settings with another horizon. The index counts with the current arms, rows and rounds."""
        if self.horizon is None:
            raise StudyRefused(f"{self.algorithm} has no horizon to set")
        parameters = self.parameters | {"horizon": horizon}
        return dataclasses.replace(self, parameters=parameters, made_with=n_arms, log_rows=rows, decided=decided)


def settings_of(
    base: Algorithm | str,
    arms: Sequence[Label] | None,
    arguments: Mapping[str, Any] | None,
    *,
    unknown: str,
    policy: PolicyKind | None,
    drift: AnyDrift,
    has_allowances: bool,
    **terms: Any,
) -> tuple[Settings, list[Arm]]:
    """Check what a study is made with. Return its settings and its arms."""
    factory: Factory | None = None
    if isinstance(base, str):
        name, factory = base, imported(base)
        parameters = checked_json("arguments", dict(arguments or {}))
        its_arms = [Arm(plain_label(label)) for label in arms or ()]
    else:
        if not isinstance(base, Algorithm) or type(base) not in ALGORITHMS:
            raise InvalidParameter(
                "a study must be over an algorithm of this package, or the place of a function that makes one, as in "
                f'"my_shop.bandits:make", because every start makes it again, got {base!r}'
            )
        if arms is not None or arguments is not None:
            raise InvalidParameter("arms and arguments must be left out, because the algorithm already has its own")
        name, its_arms = type(base).__name__, []
        made_with = base.parameters()
        if isinstance(base, ArmAlgorithm):
            features = made_with.get("features")
            rows = [None] * base.n_arms if features is None else np.asarray(features).tolist()
            its_arms = [Arm(label, row) for label, row in zip(base.arms, rows, strict=True)]
        parameters = {
            name: _encoded(value) for name, value in made_with.items() if name not in ("arms", "n_arms", "features")
        }
    for arm in its_arms:
        _encoded(arm.label)
    as_json = drift_as_json(drift)
    settings = Settings(
        name, parameters, len(its_arms), checked_unknown(unknown), "full-start", Terms(), as_json, has_allowances,
        factory=factory,
    )  # fmt: skip
    made = as_base(new_base(settings, its_arms))
    check_memory(made)
    _check_model(made, its_arms)
    new_terms = settings.terms.with_changes(terms, made.reward_range, [arm.label for arm in its_arms])
    check_hold_out(new_terms, made, its_arms)
    return dataclasses.replace(settings, policy=_checked_policy(made, policy), terms=new_terms), its_arms


def check_hold_out(terms: Terms, base: Base, arms: Sequence[Arm]) -> None:
    """Refuse a hold-out where control could not play as it should."""
    if terms.holdout and not arms:
        raise InvalidParameter("is for studies of arms, because control draws among them", parameter="holdout")
    if base.proposes_list and terms.control != "uniform":
        raise InvalidParameter(
            f'must be "uniform" where a decision is a list of arms, got {control_of(terms)!r}', parameter="control"
        )


def _check_model(base: Base, arms: Sequence[Arm]) -> None:
    """Refuse a model of contexts whose columns or arms the study would not know."""
    if not base.contextual or isinstance(base, Algorithm):
        return
    if not arms:
        raise InvalidParameter("must be given, because a model of contexts scores them", parameter="arms")
    if base.contexts is None:
        raise InvalidParameter(
            f"a model of contexts must say its columns in a study. Give {type(base.thing).__name__} an attribute "
            "contexts, an ar.Contexts"
        )


def check_memory(base: object) -> None:
    """Refuse regressions that are too large for the snapshots of a study."""
    if isinstance(base, ContextRegression) and (size := base.component.fits.covariance.nbytes) > MAX_BYTES:
        raise InvalidParameter(
            f"the covariances of a ContextRegression must fit into {MAX_BYTES >> 20} MB in a study, got "
            f"{-(-size >> 20):,} MB. Use fewer arms, segments, columns or cosines"
        )


def imported(place: str) -> Factory:
    """Import the function that makes an algorithm of the user's own."""
    module, _, name = place.partition(":")
    try:
        factory = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidParameter(
            f'must be the place of a function, as in "my_shop.bandits:make", got {place!r}: {error}',
            parameter="algorithm",
        ) from None
    if not callable(factory):
        raise InvalidParameter(f"must be the place of a function, got {place!r}", parameter="algorithm")
    made: Factory = factory
    return made


def algorithm_in(journal: Journal) -> str:
    """Return the name of the algorithm of a study, or the place of the function that makes it."""
    for entry in journal.read(kinds=("settings",)):
        return Settings.from_json(entry.body or "").algorithm
    raise journal.damage("its journal has no settings")


def _encoded(value: object) -> Any:
    try:
        return encode(value)
    except CannotSave as error:
        raise CannotSave(f"a study needs an algorithm that a database can keep: {error}") from None


def first_policy(settings: Settings, base: object) -> ArtificialReplay | FullStart:
    """Make the policy of a study before it was shown or told anything. It has no log yet."""
    make: type[ArtificialReplay | FullStart] = (
        ArtificialReplay if settings.policy == ArtificialReplay.kind else FullStart
    )
    contexts = getattr(base, "contexts", None)
    columns: Any = {name: [] for name in contexts.columns} if isinstance(contexts, Contexts) else None
    nothing = History([], [], allowance=[] if settings.has_allowances else None, contexts=columns)
    return make(base, nothing, drift=drift_from_json(settings.drift), unknown=settings.unknown)


def drift_as_json(drift: Any) -> Any:
    """Turn drift into JSON: a number, or numbers by arm. A policy refuses anything else."""
    if isinstance(drift, Mapping):
        return {"arms": [[encode(plain_label(label)), encode(value)] for label, value in drift.items()]}
    return encode(drift) if np.ndim(drift) == 0 else list(drift)


def drift_from_json(entry: Any) -> AnyDrift:
    """Turn JSON from `kept_drift` back into what a policy takes."""
    return {decode(label): decode(value) for label, value in entry["arms"]} if isinstance(entry, dict) else entry


def _checked_policy(base: Base, policy: PolicyKind | None) -> PolicyKind:
    """Check how the log is to be shown. What replay shows must not depend on when a decision is asked for."""
    is_ours = isinstance(base, Algorithm)
    if policy is None:
        return "artificial-replay" if base.exact and is_ours else "full-start"
    if policy not in get_args(PolicyKind):
        raise InvalidParameter(f'policy must be "artificial-replay" or "full-start", got {policy!r}')
    if policy == ArtificialReplay.kind and not (base.exact and is_ours):
        raise InvalidParameter(
            f"policy must be full-start for {type(base.thing).__name__}, because under replay a restart would change "
            "its decisions"
        )
    return policy


def new_base(settings: Settings, arms: Sequence[Arm]) -> Any:
    """Make a fresh base over these arms. Its index counts with as many arms as the settings say."""
    if settings.is_own:
        base = _made_by_factory(settings, arms)
        if not isinstance(base, Algorithm):
            base = _with_numbers(as_base(base), arms)
    else:
        algorithm = {cls.__name__: cls for cls in ALGORITHMS}.get(settings.algorithm)
        if algorithm is None:
            raise InvalidFile(
                f"the study has an algorithm {settings.algorithm!r} that this version of artreplay does not have"
            )
        base = algorithm(**_parameters(algorithm, settings, arms))
        if len(arms) > settings.made_with and _is_mean_index(base):
            as_first: Any = algorithm(**_parameters(algorithm, settings, arms[: settings.made_with]))
            index = base.component.index._replace(bound=as_first.component.index.bound)
            base.component, base.choices = base.component._replace(index=index), as_first.choices
    if settings.log_rows is not None:
        base.count_log(settings.log_rows)
    return base


def _made_by_factory(settings: Settings, arms: Sequence[Arm]) -> Any:
    if settings.factory is None:
        raise StudyUnavailable(
            f"the algorithm of this study is {settings.algorithm}, which is only imported if you name it"
        ).advising(
            f'Study.open(place, algorithm="{settings.algorithm}") does', f"--algorithm {settings.algorithm} does"
        )
    labels = {"arms": [arm.label for arm in arms]} if arms else {}
    return settings.factory(**labels, **settings.parameters)


def _with_numbers(base: Base, arms: Sequence[Arm]) -> Base:
    """Give each arm the number that the study has for it, because an object's units get theirs as they are seen."""
    labels = [arm.label for arm in arms]
    if [base.checked_number(label) for label in labels] != list(range(len(labels))):
        raise InvalidParameter(
            f"{type(base.thing).__name__} must have its arms in the order in which it is given them, {labels!r}"
        )
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
