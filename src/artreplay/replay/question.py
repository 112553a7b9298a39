"""What `ask` is asked: for which context, and among which arms. A decision is the answer to one question."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from artreplay.algorithms import ArmAlgorithm, Available
from artreplay.compiling import views
from artreplay.errors import InvalidAction, InvalidParameter
from artreplay.replay.bases import Base
from artreplay.replay.certified import is_certified
from artreplay.replay.own_models import ModelBase


class Question(NamedTuple):
    """The question that was asked last since the last `tell`."""

    context: Any = None  # as the base sees it; None if it hears of none, or was not asked
    among: tuple[int, ...] | None = None  # the numbers of the arms there are to choose from; None for all
    alone: bool = True  # whether no other context was asked since the last `tell`

    def same(self, other: Question) -> bool:
        """Whether this asks the same."""
        return self.among == other.among and same_context(self.context, other.context)

    def after(self, before: Question) -> Question:
        """This question, asked after another one."""
        alone = before.alone and (before.context is None or same_context(self.context, before.context))
        return self._replace(alone=alone)


NOTHING_ASKED = Question()


def same_context(one: Any, other: Any) -> bool:
    """Whether two contexts are the same to a base; a missing number is nan in encoded ones."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.tobytes() == other.tobytes()
    return type(one) is type(other) and bool(one == other)


def asked_for(base: Base, context: Any, among: Iterable[Any] | None) -> Question:
    """A question in the numbers of a base; what cannot be asked is refused."""
    return Question(base.checked_context(context), None if among is None else _checked_arms(base, among))


def _checked_arms(base: Base, among: Iterable[Any]) -> tuple[int, ...]:
    if isinstance(among, (str, bytes)) or not isinstance(among, Iterable):
        raise InvalidParameter(f"must be a list of arms, got {among!r}", parameter="among")
    if not isinstance(base, (ArmAlgorithm, ModelBase)):
        raise InvalidParameter(f"is for algorithms over arms, got {base.thing!r}", parameter="among")
    numbers = tuple(sorted({base.checked_number(arm) for arm in among}))
    if len(numbers) < base.width:
        raise InvalidParameter(f"must list at least {base.width} arms, got {len(numbers)}", parameter="among")
    return numbers


def told_context(base: Base, question: Question, arms: list[int], proposed: Any, context: Any) -> Any:
    """The context that was played in: the given one, else that of the pending proposal, if these are its arms."""
    if context is not None or not base.contextual:
        return base.checked_context(context)
    pending = question.context
    if not question.alone:
        why = "more than one context was asked since the last tell"
    elif pending is None or list(proposed) != [base.in_context(arm, pending) for arm in arms]:
        why = "this is not the action that was asked for last"
    else:
        return pending
    raise InvalidAction(f"{why}: say which context the reward belongs to, tell(action, reward, context={{...}})")


class SomeArms:
    """Proposes some of the arms in place of a base, which is shown what the step shows."""

    def __init__(self, base: Any, among: tuple[int, ...]) -> None:
        self._base = base
        self._available: Available = np.zeros(base.n_arms, np.bool_)
        self._available[list(among)] = True
        self.renew()

    def renew(self) -> None:
        """The arrays of the base have grown."""
        own = self._base.component
        self._component: Any = views(own) if isinstance(own, tuple) else own

    def __getattr__(self, name: str) -> Any:
        return getattr(self._component, name)

    def propose_over(self, ledger: Any, out: Any, round_: int) -> int:
        """Write the numbers of the proposed units; how many there are."""
        own = self._base.component
        if not is_certified(own):
            proposed: int = self._base.propose_among(out, round_, self._available)
            return proposed
        own.allowed[:] = self._available
        own.forget()
        proposed = self._component.propose_over(ledger, out, round_)
        own.allowed[:] = 1
        own.forget()
        return proposed


def checked_samples(base: Base, action: object, reward: Any) -> list[tuple[int, float]]:
    """Check an action that is a list. Return its units with the reward of each."""
    if isinstance(action, tuple) and hasattr(action, "level"):
        raise InvalidAction(f"the action must be a list of units, got {action!r} alone. Put it in a list")
    if not isinstance(action, (list, tuple, np.ndarray)) or len(action) == 0:
        raise InvalidAction(f"the action must be a list of units, got {action!r}")
    if not hasattr(reward, "__len__") or isinstance(reward, (str, bytes)) or len(reward) != len(action):
        raise InvalidAction(f"there must be one reward per unit, got {len(action)} units and rewards {reward!r}")
    numbers = [base.checked_number(unit) for unit in action]
    return list(zip(numbers, [base.checked_reward(value) for value in reward], strict=True))
