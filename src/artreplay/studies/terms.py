"""What a study does besides learning: how long it waits, what counts as a reward, and who is held out."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal, get_args

from artreplay.algorithms import RewardRange, checked_reward
from artreplay.errors import InvalidParameter
from artreplay.history import Label
from artreplay.history.labels import plain_label
from artreplay.parameters import REQUIRED, checked_seed
from artreplay.replay import decode, encode
from artreplay.studies.names_and_labels import shown

OnTimeout = Literal["default", "discard"]
Close = Literal["arrival", "window"]
Rewards = Literal["first", "last", "sum"]
Control = Literal["uniform"] | Label | Mapping[Label, float]

Value = float | list[float]  # the reward of one unit, or of each unit of a list

LONGEST_WAIT = timedelta(days=36_525)


@dataclass(frozen=True)
class Terms:
    """The settings that the policy does not depend on. They can change for decisions to come."""

    wait: float | None = None  # seconds until a decision is due
    on_timeout: OnTimeout = "default"
    default: float = 0.0
    close: Close = "window"  # when the policy learns from a reward; a decision without a due time has no window
    rewards: Rewards = "first"  # what several rewards of one decision make
    holdout: float = 0.0  # the share of decisions that control makes
    control: Any = "uniform"  # or each label with its share, as JSON
    seed: int = 0  # of the hold-out
    note: dict[str, Any] = field(default_factory=dict)  # the user's own

    def with_changes(self, changes: Mapping[str, Any], reward_range: RewardRange, labels: Sequence[Label]) -> Terms:
        """Check some settings as users give them, and return the terms with them."""
        fields = {name: _CHECKS[name](value) if name in _CHECKS else value for name, value in changes.items()}
        if "control" in fields:
            fields["control"] = _checked_control(fields["control"], labels)
        if fields.get("close", "") is None:
            del fields["close"]
        new = dataclasses.replace(self, **fields)
        if new.on_timeout == "default":
            new = dataclasses.replace(new, default=checked_reward(new.default, reward_range))
        if new.wait is None and changes.get("close") == "window":
            raise InvalidParameter('close="window" needs wait=, after which the window of a decision closes')
        if new.rewards != "first" and (new.wait is None or new.close == "arrival"):
            raise InvalidParameter(
                f'rewards="{new.rewards}" needs wait= and close="window", because the parts of a reward are put '
                "together when the window of their decision closes"
            )
        return new

    def whole(self, parts: Mapping[str | None, Value], reward_range: RewardRange) -> tuple[Value, bool]:
        """Put the parts of a reward together. Return the reward, and whether a sum had to be clipped to the range."""
        values = list(parts.values())
        if self.rewards != "sum":
            return values[-1], False
        lists = [value if isinstance(value, list) else [value] for value in values]
        sums = [math.fsum(units) for units in zip(*lists, strict=True)]  # the same for every order of the parts
        low, high = reward_range
        clipped = [min(max(total, low), high) for total in sums]
        return (clipped if isinstance(values[0], list) else clipped[0]), clipped != sums


def _checked_wait(wait: Any) -> float | None:
    if wait is REQUIRED:
        raise InvalidParameter(
            "must be said: how long a reward may take, as in wait=timedelta(days=2). wait=None is for studies in which "
            "every decision is rewarded, however late",
            parameter="wait",
        )
    if wait is None:
        return None
    if not (isinstance(wait, timedelta) and wait > timedelta(0)):
        raise InvalidParameter(
            f"must be a timedelta above 0, or None to wait for ever, got {shown(wait)}", parameter="wait"
        )
    if wait > LONGEST_WAIT:
        raise InvalidParameter(
            f"must be at most a hundred years, or None to wait for ever, got {wait}", parameter="wait"
        )
    return wait.total_seconds()


def _checked_holdout(holdout: Any) -> float:
    is_number = isinstance(holdout, (int, float)) and not isinstance(holdout, bool)
    if not (is_number and 0.0 <= holdout < 1.0):
        raise InvalidParameter(f"must be a number from 0 to below 1, got {shown(holdout)}", parameter="holdout")
    return float(holdout)


def _checked_control(control: Any, labels: Sequence[Label]) -> Any:
    """Check what control plays: "uniform", a label, or a share for each label. Return it as JSON."""
    if isinstance(control, str) and control == "uniform" and control not in labels:
        return "uniform"
    if isinstance(control, list) and all(
        isinstance(one, Mapping) and set(one) == {"label", "share"} for one in control
    ):
        control = {decode(one["label"]): one["share"] for one in control}  # as `settings` shows it
    if isinstance(control, Mapping):
        shares = {plain_label(label): share for label, share in control.items()}
    else:
        try:
            shares = {plain_label(control): 1.0}
        except TypeError:
            shares = {}
    unknown = [label for label in shares if label not in labels]
    if unknown or not shares:
        raise InvalidParameter(
            f'must be "uniform", an arm of the study, or a share for each of some arms, got {shown(control)}',
            parameter="control",
        )
    numbers = [isinstance(share, (int, float)) and 0.0 <= share < math.inf for share in shares.values()]
    if not all(numbers) or not 0.0 < sum(shares.values()) < math.inf:
        raise InvalidParameter(
            f"must have shares of at least 0 with a finite sum above 0, got {shown(control)}", parameter="control"
        )
    return [[encode(label), float(share)] for label, share in shares.items()]


def control_of(terms: Terms) -> Literal["uniform"] | dict[Label, float]:
    """Return what control plays, as users give it."""
    return "uniform" if terms.control == "uniform" else {decode(label): share for label, share in terms.control}


def checked_json(name: str, value: Any, most: int | None = None) -> dict[str, Any]:
    """Check a user's own JSON object, which takes at most `most` bytes."""
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
        size = len(text.encode())
        copy = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidParameter(f"must be a dict that JSON can hold: {error}", parameter=name) from None
    if not isinstance(copy, dict):
        raise InvalidParameter(f"must be a dict that JSON can hold, got a {type(value).__name__}", parameter=name)
    if most is not None and size > most:
        raise InvalidParameter(f"must be at most {most:,} bytes as JSON, got {size:,}", parameter=name)
    return copy


def _choice(name: str, choices: Any) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if value not in get_args(choices):
            words = " or ".join(f'"{choice}"' for choice in get_args(choices))
            raise InvalidParameter(f"must be {words}, got {shown(value)}", parameter=name)
        return value

    return check


_CHECKS: dict[str, Callable[[Any], Any]] = {
    "wait": _checked_wait,
    "holdout": _checked_holdout,
    "on_timeout": _choice("on_timeout", OnTimeout),
    "close": lambda value: None if value is None else _choice("close", Close)(value),
    "rewards": _choice("rewards", Rewards),
    "seed": checked_seed,
    "note": lambda value: checked_json("note", value),
}
