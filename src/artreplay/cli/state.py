"""A policy between two calls: made from options, or continued from a state file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from artreplay.cli.actions import Actions, Arms, Points, actions_of, algorithm_named, box_of
from artreplay.cli.log_arguments import Log, place_of, read_log, split_labels
from artreplay.cli.names import name_of
from artreplay.console.options import Request
from artreplay.errors import InvalidHistory, InvalidParameter, errors_in
from artreplay.history.stores import PointStore
from artreplay.replay import ArtificialReplay, FullStart, load
from artreplay.replay.policy import Policy
from artreplay.replay.saving import read_note, save


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


def reopen(policy: Any, note: dict[str, Any], log: str | None, told: str) -> None:
    """Give a policy its log again, because rows of the log come before what is told."""
    place = note.get("log") if log is None else log
    if place is None or (log is None and not Path(place).exists()):
        raise InvalidHistory(
            f"{told} is not what was recommended last, so that rows of the log come before it: "
            "say with --log where the log is now"
        )
    _extend(policy, place, read_log(place, {name: value for name, value in note.items() if name != "log"}))


def _started(request: Request) -> tuple[Any, dict[str, Any]]:
    algorithm = None if request.algorithm is None else algorithm_named(request.algorithm)
    several = request.unit is not None and len(request.unit) > 1
    of_points = several if algorithm is None else algorithm in Points.algorithms
    log, note = _read(request, {}, Points if of_points else Arms)
    kind: type[Actions] = Points if _is_of_points(log, note) else Arms
    algorithm = algorithm or kind.algorithms[0]
    if algorithm not in kind.algorithms:
        names = ", ".join(map(name_of, kind.algorithms))
        raise InvalidParameter(
            f"{name_of(algorithm)} must not be used here: {place_of(request.log)} is a log of {kind.plural}, "
            f"which are for {names}"
        )
    base = kind.made(algorithm, request, log)
    make: Any = FullStart if request.policy == FullStart.kind else ArtificialReplay
    with errors_in(file=place_of(request.log)):
        return make(base, log.history, unknown="skip" if request.unknown == "skip" else "error"), note


def _continued(request: Request, state: Path) -> tuple[Any, dict[str, Any]]:
    policy, note = recalled(state)
    if not isinstance(policy, (FullStart, ArtificialReplay)):
        raise InvalidParameter(f"{state} holds a policy without a log ({policy.kind}): ask it from Python")
    actions = actions_of(policy.base)
    _check_agrees(request, state, policy, actions)
    log, note = _read(request, note, type(actions))
    if request.unknown is not None:
        policy.unknown = "skip" if request.unknown == "skip" else "error"
    _extend(policy, request.log, log)
    return policy, note


def _extend(policy: Any, path: str, log: Log) -> None:
    """Continue with a log as it is now; an error says where it lies."""
    with errors_in(file=place_of(path)):
        policy.extend(log.history)


def _read(request: Request, note: dict[str, Any], kind: type[Actions]) -> tuple[Log, dict[str, Any]]:
    """The log, by the columns given now or, failing that, last time."""
    unit = None if request.unit is None else kind.columns(request.unit)
    given = {name: value for name, value in {"unit": unit, **request.columns}.items() if value is not None}
    columns = {name: note[name] for name in ("unit", *request.columns) if note.get(name) is not None} | given
    place = Path(request.log)
    where = {"log": str(place.absolute())} if place.exists() else {}  # an address may hold a password
    return read_log(request.log, columns), columns | where


def _is_of_points(log: Log, columns: dict[str, Any]) -> bool:
    return isinstance(log.history, PointStore) or isinstance(columns.get("unit"), list)


def _note(path: Path) -> dict[str, Any]:
    note = read_note(path)
    return note if isinstance(note, dict) else {}


def _check_agrees(request: Request, state: Path, policy: Policy, actions: Actions) -> None:
    """Refuse options that differ from the state file, because a policy cannot become another one."""
    held = {**actions.settings(), "algorithm": name_of(type(policy.base)), "policy": policy.kind}
    given = {
        "algorithm": request.algorithm,
        "policy": request.policy,
        **request.parameters,
        "arms": None if request.arms is None else split_labels(request.arms),
        "box": None if request.box is None else box_of(request.box),
        "coordinates": len(request.unit) if request.unit and "coordinates" in held else None,
    }
    for option, value in given.items():
        if value is not None and value != held.get(option):
            was = "none" if held.get(option) is None else _shown(held[option])
            raise InvalidParameter(
                f"{state} was made with {option.replace('_', ' ')} {was}, got {_shown(value)}: "
                "leave the option out, or name another state file"
            )


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    if not isinstance(value, (list, tuple)):
        return str(value)
    some = ", ".join(" to ".join(map(_shown, item)) if isinstance(item, tuple) else _shown(item) for item in value[:8])
    return some if len(value) <= 8 else f"{some} and {len(value) - 8} more"
