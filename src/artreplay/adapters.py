"""Algorithms of other libraries as bases: each becomes an object with what a policy calls, `propose` and `update`.

Nothing of such a library is imported before an adapter is made. `ar.FullStart` is right for every one of them. Under
`ar.ArtificialReplay` those that are not `exact` act differently from reading the whole log, which a warning says once.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from artreplay.algorithms.context_features import context_features
from artreplay.compiling import Floats
from artreplay.errors import InvalidAction, InvalidParameter
from artreplay.history import Contexts
from artreplay.optional_packages import needed
from artreplay.parameters import Seed, Share, checked
from artreplay.replay import reseed_generators
from artreplay.streams import CHOICE, fold, uniform

__all__ = ["mabwiser", "pyxab", "river", "sklearn"]

GROWTH = 1.1  # an arm's model is fitted again once it has this many times the rows: a tenth more
_CLASSES = (0.0, 1.0)  # what a classifier that learns row by row must know before it meets the first


@checked
def river(policy: Any, arms: Any, seed: Seed = 0) -> Any:
    """Make a base of a policy of river, such as `bandit.UCB` or `bandit.ThompsonSampling`.

    Parameters
    ----------
    policy
        The policy. Those that need a context are refused, and Exp3, which learns only from arms that it drew itself.
    arms
        How many arms there are, or their names.
    seed
        What its generators start from, in place of their own seeds.

    >>> import artreplay as ar
    >>> class Last:  # in the place of a policy of river
    ...     def pull(self, arms): return arms[-1]
    ...     def update(self, arm, reward): pass
    >>> ar.FullStart(ar.adapters.river(Last(), ["red", "blue"]), ar.History(["red"], [1])).ask()
    'blue'
    """
    _check_offers("river", policy, "pull", "update")
    name = type(policy).__name__
    if any(kind.__name__ == "ContextualPolicy" for kind in type(policy).__mro__):
        raise InvalidParameter(f"must be a policy without contexts, got {name}", parameter="policy")
    if name == "Exp3":
        raise InvalidParameter("must learn from any arm, and Exp3 does from those it drew itself", parameter="policy")
    return River(policy, _checked_arms(arms), seed)


@checked
def mabwiser(mab: Any, seed: Seed = 0) -> Any:
    """Make a base of a `MAB` of MABWiser. What lies between two decisions, also a whole log, it learns in one go.

    Parameters
    ----------
    mab
        The bandit, with any learning policy that needs no contexts. Arms without rows are MABWiser's to judge: most of
        its policies take their reward for 0.
    seed
        What its generators start from, in place of their own seeds.

    >>> import artreplay as ar
    >>> class Last:  # in the place of a MAB of MABWiser
    ...     arms = ["red", "blue"]
    ...     def fit(self, decisions, rewards): pass
    ...     def partial_fit(self, decisions, rewards): pass
    ...     def predict(self): return self.arms[-1]
    >>> ar.FullStart(ar.adapters.mabwiser(Last()), ar.History(["red"], [1])).ask()
    'blue'
    """
    _check_offers("MABWiser", mab, "fit", "partial_fit", "predict", "arms")
    if getattr(mab, "is_contextual", False):
        raise InvalidParameter("must have policies that need no contexts", parameter="mab")
    return MABWiser(mab, _checked_arms(mab.arms), seed)


@checked
def pyxab(algorithm: Any, seed: Seed = 0) -> Any:
    """Make a base over points of an algorithm of PyXAB that walks down a tree: `T_HOO`, `HCT` or `VHCT`.

    PyXAB learns only from the points that an algorithm chose itself. Here its walk is led to the point of a row, so
    that it learns from any. It reads the whole log first, whatever the policy.

    PyXAB draws the axes of its splits from what `numpy.random` shares. Here they come from `seed`, the first one too.

    Parameters
    ----------
    algorithm
        The algorithm, over a domain [(low, high), …].
    seed
        What the draws start from.
    """
    tree = getattr(algorithm, "partition", None)
    if not callable(getattr(algorithm, "optTraverse", None)) or not callable(getattr(tree, "get_root", None)):
        raise InvalidParameter(
            "must be one of PyXAB that walks down a tree to choose, T_HOO, HCT or VHCT: the others learn only from "
            f"points that they chose themselves. Got {type(algorithm).__name__}",
            parameter="algorithm",
        )
    return PyXAB(algorithm, seed)


@checked
def sklearn(model: Any, arms: Any, contexts: Any, explore: Share = 0.05, seed: Seed = 0) -> Any:
    """Make a base with contexts of a classifier or regressor of scikit-learn: one copy for each arm.

    A model with `partial_fit` learns row by row. Any other is fitted again once the rows of its arm have grown by a
    tenth. The arm of the highest forecast is played, and an arm without rows before all others. It reads the whole log
    first, whatever the policy.

    Parameters
    ----------
    model
        The model; each arm gets a clone. A classifier forecasts the mean of its classes, which are 0 and 1 if it has
        `partial_fit`.
    arms
        How many arms there are, or their names.
    contexts
        The `Contexts` that turn a context into numbers. Categories become columns of 0 and 1, without segments.
    explore
        The share of rounds in which the arm is drawn at random.
    seed
        The seed of these draws, and of the models.
    """
    if not isinstance(contexts, Contexts) or contexts.segments:
        raise InvalidParameter(f"must be ar.Contexts without segments, got {contexts!r}", parameter="contexts")
    _check_offers("scikit-learn", model, "fit", "predict")
    return SklearnScores(model, _checked_arms(arms), contexts, explore, seed)


def _check_offers(library: str, thing: Any, *names: str) -> None:
    missing = [name for name in names if not hasattr(thing, name)]
    if missing or isinstance(thing, type):
        raise InvalidParameter(f"{thing!r} is none of {library}: it must have {', '.join(missing or names)}")


def _checked_arms(arms: Any) -> list[Hashable]:
    """Return the names of arms, without the types of numpy."""
    if isinstance(arms, (int, np.integer)) and not isinstance(arms, bool):
        arms = range(int(arms))
    labels = [arm.item() if isinstance(arm, np.generic) else arm for arm in arms]
    if not labels or len(set(labels)) < len(labels):
        raise InvalidParameter(f"must be a number of at least 1, or different names, got {arms!r}", parameter="arms")
    return labels


class Adapter:
    """What the adapters share: a seed, and a record of all calls, from which a saved algorithm is made again."""

    exact = False
    reads_whole_log = False

    def __init__(self, algorithm: Any, seed: int) -> None:
        self.algorithm = algorithm
        self.seed = seed
        self._calls: list[tuple[Any, ...]] = []  # what was shown; an empty one is a proposal, which may draw
        self.reseed(seed)

    def propose(self) -> Any:
        """Return what the algorithm would play now."""
        self._calls.append(())
        return self._pull()

    def update(self, unit: Any, reward: float) -> None:
        """Let the algorithm learn from a row."""
        self._calls.append((_plain(unit), reward))
        self._learn(unit, reward)

    def reseed(self, key: int) -> None:
        """Let all generators of the algorithm draw from the streams of a key."""
        self._key = key
        reseed_generators(self.algorithm, key)

    def state(self) -> dict[str, Any]:
        """Return the seed and all calls. An algorithm that is made like this one and called like it knows the same."""
        return {"key": self._key, "calls": [list(call) for call in self._calls]}

    def restore(self, state: dict[str, Any]) -> None:
        """Repeat the calls of a saved one."""
        self.reseed(state["key"])
        for call in state["calls"]:
            if call:
                self.update(*call)
            else:
                self.propose()

    def _pull(self) -> Any:
        raise NotImplementedError

    def _learn(self, unit: Any, reward: float) -> None:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__} adapter of {type(self.algorithm).__name__}>"


class ArmAdapter(Adapter):
    """An algorithm over arms with names."""

    def __init__(self, algorithm: Any, arms: list[Hashable], seed: int) -> None:
        self.arms = arms
        super().__init__(algorithm, seed)

    def check_unit(self, arm: Hashable) -> None:
        """Refuse what is not an arm."""
        if arm not in self.arms:
            raise InvalidAction(f"{arm!r} is not an arm of {self!r}")


class River(ArmAdapter):
    """A policy of river."""

    def _pull(self) -> Any:
        return self.algorithm.pull(self.arms)

    def _learn(self, unit: Any, reward: float) -> None:
        self.algorithm.update(unit, reward)


class MABWiser(ArmAdapter):
    """A bandit of MABWiser. Rows wait until the next proposal: it takes many in one call as quickly as one."""

    def __init__(self, algorithm: Any, arms: list[Hashable], seed: int) -> None:
        self._rows: list[tuple[Any, float]] = []
        self._is_fitted = bool(getattr(algorithm, "_is_initial_fit", False))
        super().__init__(algorithm, arms, seed)

    def check_reward(self, reward: float) -> None:
        """Refuse what MABWiser would refuse later."""
        learning: Any = getattr(self.algorithm, "learning_policy", None)
        if type(learning).__name__ == "ThompsonSampling" and learning.binarizer is None and reward not in _CLASSES:
            raise InvalidAction(
                f"Thompson sampling of MABWiser needs rewards of 0 and 1, or a binarizer, got {reward:g}"
            )

    def _pull(self) -> Any:
        if self._rows or not self._is_fitted:
            rows, self._rows = self._rows, []
            learn = self.algorithm.partial_fit if self._is_fitted else self.algorithm.fit
            learn([arm for arm, _ in rows], [reward for _, reward in rows])
            self._is_fitted = True
        return self.algorithm.predict()

    def _learn(self, unit: Any, reward: float) -> None:
        self._rows.append((unit, reward))


class PyXAB(Adapter):
    """An algorithm of PyXAB that walks down a tree of boxes by their `b_value` and learns where that walk ended."""

    exact = True
    reads_whole_log = True

    def __init__(self, algorithm: Any, seed: int) -> None:
        self._rounds = 0
        self._draws: Any = None  # the state of numpy.random while PyXAB is called
        self.box = [tuple(map(float, edges)) for edges in algorithm.partition.get_root().get_domain()]
        self.dim = len(self.box)
        super().__init__(algorithm, seed)

    def check_unit(self, point: Any) -> None:
        """Refuse what is not a point of the domain."""
        inside = len(point) == self.dim and all(
            low <= x <= high for x, (low, high) in zip(point, self.box, strict=True)
        )
        if not inside:
            raise InvalidAction(f"{point!r} does not lie in the domain {self.box}")

    def reseed(self, key: int) -> None:
        """Draw from the stream of a key from now on; the split of the whole domain is drawn anew."""
        self._key = key
        self._draws = np.random.RandomState(fold(key) % (1 << 32)).get_state()
        tree = self.algorithm.partition
        if self._rounds == 0 and tree.get_depth() == 1:
            tree.depth, tree.node_list = 0, [[tree.get_root()]]
            with self._own_draws():
                self.algorithm.expand(tree.get_root())

    @contextmanager
    def _own_draws(self) -> Iterator[None]:
        """Let PyXAB draw from a state of its own, where it draws from what everything shares."""
        before = np.random.get_state()  # noqa: NPY002
        np.random.set_state(self._draws)  # noqa: NPY002
        try:
            yield
        finally:
            self._draws = np.random.get_state()  # noqa: NPY002
            np.random.set_state(before)  # noqa: NPY002

    def _pull(self) -> tuple[float, ...]:
        return tuple(map(float, self.algorithm.pull(self._rounds + 1)))

    def _learn(self, unit: Any, reward: float) -> None:
        before: list[tuple[Any, float]] = []
        node = self.algorithm.partition.get_root()
        while children := node.get_children():  # the algorithm's own walk goes where b_value is highest
            before += [(child, child.b_value) for child in children]
            node = next(child for child in children if _contains(child.get_domain(), unit))
            for child in children:
                child.b_value = math.inf if child is node else -math.inf
        self._rounds += 1
        self.algorithm.pull(self._rounds)
        for child, value in before:
            child.b_value = value
        with self._own_draws():
            self.algorithm.receive_reward(self._rounds, reward)


def _contains(domain: Sequence[Sequence[float]], point: Any) -> bool:
    return all(low <= x <= high for x, (low, high) in zip(point, domain, strict=True))


class SklearnScores:
    """One model of scikit-learn for each arm, over the numbers that a context becomes."""

    contextual = True
    exact = True
    reads_whole_log = True

    def __init__(self, model: Any, arms: list[Hashable], contexts: Contexts, explore: float, seed: int) -> None:
        self.arms, self.contexts, self.explore, self.seed = arms, contexts, explore, seed
        self._model = model
        self._numbers = {arm: number for number, arm in enumerate(arms)}
        self._maps = context_features(contexts)._replace(shift=np.zeros(0))  # without cosines
        self.reseed(seed)

    def reseed(self, key: int) -> None:
        """Start anew, with draws and models of another seed."""
        self._key = key
        self._fits = [_ArmModel(self._model_of(number)) for number in range(len(self.arms))]

    def score(self, arm: Any, context: Mapping[str, Any], round: int) -> float:
        """Return the forecast of an arm's reward, infinite without rows, or a draw in a round that explores."""
        number = self._numbers[arm]
        with np.errstate(over="ignore"):
            key = np.uint64(self._key % (1 << 64))
            if uniform(key, CHOICE, 0, round) < self.explore:
                return float(uniform(key, CHOICE, number + 1, round))
        return self._fits[number].forecast(self._features(context))

    def update(self, arm: Any, reward: float, context: Mapping[str, Any]) -> None:
        """Let the model of an arm learn from a row."""
        self._fits[self._numbers[arm]].learn(self._features(context), float(reward))

    def check_unit(self, arm: Hashable) -> None:
        """Refuse what is not an arm."""
        if arm not in self._numbers:
            raise InvalidAction(f"{arm!r} is not an arm of {self!r}")

    def state(self) -> dict[str, Any]:
        """Return the seed, and the rows of each arm."""
        return {"key": self._key, "rows": [[np.array(fit.rows), np.array(fit.rewards)] for fit in self._fits]}

    def restore(self, state: dict[str, Any]) -> None:
        """Let the models learn from the rows of a saved one."""
        self.reseed(state["key"])
        for fit, (rows, rewards) in zip(self._fits, state["rows"], strict=True):
            for row, reward in zip(rows, rewards.tolist(), strict=True):
                fit.learn(row, reward)

    def _features(self, context: Mapping[str, Any]) -> Floats:
        maps = self._maps
        maps.encoded[:] = self.contexts.encode_one(context, complete=False)
        maps.expand()
        return maps.features[1 : maps.n_linear].copy()

    def _model_of(self, number: int) -> Any:
        model = needed("sklearn", "ar.adapters.sklearn", "ml").clone(self._model)
        seed = fold(self._key, number) % (1 << 32)
        names = [name for name in model.get_params() if name.rpartition("__")[2] == "random_state"]
        return model.set_params(**dict.fromkeys(names, seed))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} adapter of {type(self._model).__name__}>"


class _ArmModel:
    """The model of one arm and its rows. What it forecasts depends on them alone, and not on when it is asked."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.rows: list[Floats] = []
        self.rewards: list[float] = []
        self._by_row = hasattr(model, "partial_fit")
        self._is_classifier = hasattr(model, "predict_proba") or hasattr(model, "decision_function")
        self._next_rows = 1  # the rows with which it is fitted next
        self._fit_rows = self._ready_rows = 0  # ... was fitted last, and should have been

    def __deepcopy__(self, memo: Any) -> _ArmModel:
        """Return a copy that learns on its own. Rows never change, nor do models that are fitted in one go."""
        copied = copy.copy(self)
        copied.rows, copied.rewards = self.rows.copy(), self.rewards.copy()
        copied.model = copy.deepcopy(self.model, memo) if self._by_row else self.model
        return copied

    def learn(self, row: Floats, reward: float) -> None:
        """Take in a row."""
        self.rows.append(row)
        self.rewards.append(reward)
        if self._by_row:
            classes = {"classes": _CLASSES} if self._is_classifier and len(self.rows) == 1 else {}
            self.model.partial_fit(row[None, :], [reward], **classes)
        elif len(self.rows) == self._next_rows:
            self._ready_rows = self._next_rows
            self._next_rows = max(self._ready_rows + 1, math.ceil(self._ready_rows * GROWTH))

    def forecast(self, row: Floats) -> float:
        """Return the reward that the model expects."""
        if not self.rows:
            return math.inf
        if not self._by_row and self._fit_rows < self._ready_rows:
            self._fit_rows = self._ready_rows
            if not self._is_constant():
                self.model = needed("sklearn", "ar.adapters.sklearn", "ml").clone(self.model)
                self.model.fit(np.array(self.rows[: self._fit_rows]), np.array(self.rewards[: self._fit_rows]))
        if not self._by_row and self._is_constant():
            return self.rewards[0]
        if hasattr(self.model, "predict_proba"):
            return float(self.model.predict_proba(row[None, :])[0] @ self.model.classes_)
        return float(self.model.predict(row[None, :])[0])

    def _is_constant(self) -> bool:
        """Return whether a classifier would refuse the rows, because all rewards are the same."""
        return self._is_classifier and len(set(self.rewards[: self._fit_rows])) == 1


def _plain(unit: Any) -> Any:
    """Return a unit as a file can hold it."""
    return unit.tolist() if isinstance(unit, np.ndarray) else unit
