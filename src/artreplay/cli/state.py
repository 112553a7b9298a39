"""A policy between two calls: made from options, or continued from a state file."""

from __future__ import annotations

import inspect
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from artreplay.cli.logs import Log, in_the_file, place_of, read_log, split_labels
from artreplay.cli.names import class_of, make_base, name_of, takes
from artreplay.errors import InvalidAction, InvalidHistory, InvalidParameter
from artreplay.replay import ArtificialReplay, FullStart, load
from artreplay.replay.policy import Policy
from artreplay.replay.saving import read_note, save


@dataclass(frozen=True)
class Request:
    """What the options say about a policy; None where they say nothing."""

    log: str
    columns: dict[str, Any]  # what open_history is told
    algorithm: str | None
    horizon: int | None
    budget: int | None
    seed: int | None
    reward_range: tuple[float, float] | None
    arms: str | None
    unknown: str | None
    policy: str | None
    summaries: bool


def prepared(request: Request, state: Path | None) -> tuple[Any, dict[str, Any]]:
    """The policy to ask, over its log, and the note to save it with."""
    if state is None or not state.exists():
        return _started(request)
    return _continued(request, state)


def keep(policy: Policy, path: Path, note: dict[str, Any]) -> None:
    """Write a policy to its state file."""
    save(policy, path, note=note)


def recalled(path: Path) -> tuple[Any, dict[str, Any]]:
    """The policy in a state file, without its log, and its note."""
    return load(path), _note(path)


def arms_by_text(policy: Policy, texts: Sequence[str]) -> list[Hashable]:
    """The arms of a policy that are written like this."""
    by_text: dict[str, list[Hashable]] = {}
    for arm in policy.base.arms:
        by_text.setdefault(str(arm), []).append(arm)
    found = []
    for text in texts:
        same = by_text.get(text, [])
        if not same:
            raise InvalidAction(f"{text!r} is not an arm; the arms are {policy.base.describe_arms()}")
        if len(same) > 1:
            raise InvalidAction(f"{text!r} could be any of the arms {', '.join(map(repr, same))}")
        found.append(same[0])
    return found


def _started(request: Request) -> tuple[Any, dict[str, Any]]:
    cls = class_of(request.algorithm or "mon-ucb")
    if not takes(cls, "n_arms"):
        what = next(iter(inspect.signature(cls).parameters))
        raise InvalidParameter(f"{name_of(cls)} needs {what}, not arms alone: use {cls.__name__} from Python")
    log, note = _read(request, {})
    arms = log.labels() if request.arms is None else log.parse(split_labels(request.arms))
    if not arms:
        raise InvalidParameter(f"{place_of(request.log)} has no rows to take the arms from: give --arms")
    base = make_base(
        cls,
        {
            "horizon": request.horizon,
            "budget": request.budget,
            "seed": request.seed,
            "reward_range": request.reward_range,
        },
        arms=arms,
    )
    full = request.policy == FullStart.kind
    if full and request.summaries:
        raise InvalidParameter("--summaries is for artificial-replay, not for full-start")
    make: Any = FullStart if full else partial(ArtificialReplay, replay="summaries" if request.summaries else "samples")
    try:
        policy = make(base, log.history, unknown="skip" if request.unknown == "skip" else "error")
    except InvalidHistory as error:
        raise InvalidHistory(in_the_file(request.log, error)) from error
    return policy, note


def _continued(request: Request, state: Path) -> tuple[Any, dict[str, Any]]:
    policy, note = recalled(state)
    if not isinstance(policy, (FullStart, ArtificialReplay)):
        raise InvalidParameter(f"{state} holds a policy without a log ({policy.kind}): ask it from Python")
    _check_agrees(request, state, policy)
    log, note = _read(request, note)
    if request.unknown is not None:
        policy.unknown = "skip" if request.unknown == "skip" else "error"
    try:
        policy.extend(log.history)
    except InvalidHistory as error:
        raise InvalidHistory(in_the_file(request.log, error)) from error
    policy.ask()
    return policy, note


def _read(request: Request, note: dict[str, Any]) -> tuple[Log, dict[str, Any]]:
    """The log, by the columns given now or, failing that, last time."""
    given = {name: value for name, value in request.columns.items() if value is not None}
    columns = {name: note[name] for name in request.columns if note.get(name) is not None} | given
    return read_log(request.log, columns), columns


def _note(path: Path) -> dict[str, Any]:
    note = read_note(path)
    return note if isinstance(note, dict) else {}


def _check_agrees(request: Request, state: Path, policy: Policy) -> None:
    """Options given again must say what the state file says: a policy cannot become another one on the way."""
    base = policy.base
    held = {
        **base.parameters(),
        "algorithm": name_of(type(base)),
        "policy": policy.kind,
        "arms": [str(arm) for arm in base.arms],
    }
    given = {
        "algorithm": request.algorithm,
        "policy": request.policy,
        "horizon": request.horizon,
        "budget": request.budget,
        "seed": request.seed,
        "reward_range": request.reward_range,
        "arms": None if request.arms is None else split_labels(request.arms),
    }
    for option, value in given.items():
        if value is not None and value != held.get(option):
            was = _shown(held[option]) if option in held else "none"
            raise InvalidParameter(
                f"{state} was made with {option.replace('_', ' ')} {was}, got {_shown(value)}: "
                "leave the option out, or name another state file"
            )


def _shown(value: Any) -> str:
    if not isinstance(value, (list, tuple)):
        return str(value)
    some = ", ".join(f"{item:g}" if isinstance(item, float) else str(item) for item in value[:8])
    return some if len(value) <= 8 else f"{some} and {len(value) - 8} more"
