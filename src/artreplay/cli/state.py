"""A policy between two calls: a study in a state file, made from options or continued."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from artreplay.algorithms import ContextRegression, checked_reward
from artreplay.cli.algorithm_options import drift_of
from artreplay.cli.context_arguments import algorithm_of, contexts_of_log, read_at
from artreplay.cli.labelled_arms import ArmsByText, base_over_arms, settings_of
from artreplay.cli.log_arguments import LogArgument, place_of, read_log, split_labels
from artreplay.cli.names import name_of
from artreplay.compiling import Ints
from artreplay.console.options import Request
from artreplay.errors import InvalidFile, InvalidParameter, errors_in
from artreplay.history import Label
from artreplay.replay import ArtificialReplay, FullStart, Policy
from artreplay.studies import Study


class Recommendation(NamedTuple):
    """What to play, and the policy that chose it."""

    action: Any
    policy: Any
    rounds: int  # rounds told so far


def recommendation_for(request: Request, state: Path | None) -> Recommendation:
    """Return what to play next, from the log alone or from the study in a state file."""
    if state is None:
        policy = _new_policy(request)
        return Recommendation(policy.ask(), policy, 0)
    with _continued(request, state) if state.exists() else _started(request, state) as study:
        waiting = study.open_decisions()
        action = waiting[-1].action if waiting else study.decide().action
        return Recommendation(action, study.policy, study.rounds)


def _new_policy(request: Request) -> Policy:
    base, log, _ = new_base(request)
    make: Any = FullStart if request.policy == FullStart.kind else ArtificialReplay
    with errors_in(file=place_of(request.log)):
        policy: Policy = make(
            base, log.history, unknown=request.unknown or "error", drift=drift_of_request(request, base)
        )
    return policy


class ArmWorth(NamedTuple):
    """What an arm is worth in a context."""

    arm: Label
    in_log: int  # rows of the arm, in the segment if there are any
    forecast: float  # of its reward
    worth: float  # the number by which arms are compared


class Answer(NamedTuple):
    """What to play in a context, and what the arms are worth there, the best first."""

    context: dict[str, Any]
    action: Label
    arms: list[ArmWorth]

    @property
    def played(self) -> ArmWorth:
        """What the arm is worth that is played."""
        return next(arm for arm in self.arms if arm.arm == self.action)


def answers_for(request: Request, text: str) -> tuple[Policy, list[Answer]]:
    """Return what to play in each of the contexts that --at says, from the log alone."""
    policy = _new_policy(request)
    logged: Any = None
    answers = []
    for context in read_at(text, policy.base.contexts).contexts:
        action: Any = policy.ask(context)
        if logged is None:
            logged = policy.log.counts(partial(np.bincount, minlength=policy.base.n_units))
        arms = sorted(_worths(policy, context, logged), key=lambda arm: -arm.worth)
        answers.append(Answer(context, action, arms))
    return policy, answers


def _worths(policy: Policy, context: dict[str, Any], logged: Ints) -> list[ArmWorth]:
    """Return what the arms are worth in a context, in their order; `logged` are the rows of each arm and segment."""
    base = policy.base
    in_segment = slice(int(base.checked_context(context)[0]), None, base.n_segments)
    if isinstance(base, ContextRegression):
        values = policy.values(context)
        forecasts, worths = [one.forecast for one in values.values()], [one.worth for one in values.values()]
    else:
        _, means, indices = base.statistics()
        forecasts, worths = means[in_segment].tolist(), indices[in_segment].tolist()
    columns = (base.arms, logged[in_segment].tolist(), forecasts, worths)
    return [ArmWorth(*row) for row in zip(*columns, strict=True)]


class TellResult(NamedTuple):
    """What was played, its reward, and how many rounds have been told by now."""

    arm: Hashable
    reward: float
    rounds: int


def tell_state(state: Path, label: str, reward: float) -> TellResult:
    """Record the reward of an arm, by its label.

    The latest recommended decision gets the reward if it is of this arm. Otherwise the reward is an observation, and
    the recommended decision is taken out.
    """
    if not state.exists():
        raise InvalidFile(f"{state} does not exist")
    with Study.open(state, read_only=True) as look:
        base = look.base
    arm = ArmsByText(base).arm(label)
    checked_reward(reward, base.reward_range)
    with Study.open(state) as study:
        waiting = study.open_decisions()
        if waiting and waiting[-1].action == arm:
            study.reward(waiting[-1].id, reward)
        else:
            study.together(lambda study: _observe(study, arm, reward))
        return TellResult(arm, reward, study.rounds)


def _observe(study: Study, arm: Hashable, reward: float) -> None:
    study.observe(arm, reward)
    for decision in study.open_decisions():
        study.void(decision.id)


def new_base(request: Request) -> tuple[Any, LogArgument, dict[str, Any]]:
    """Make a base from the options. Return it with the log and what the state file must remember of the log."""
    algorithm = algorithm_of(request)
    log, note = _read(request, {})
    contexts = {"contexts": contexts_of_log(request, log)} if request.contexts else {}
    return base_over_arms(algorithm, request, log, contexts), log, note


def drift_of_request(request: Request, base: Any) -> Any:
    """Return the drift from the options, for the arms of a base, or 0 without one."""
    drift = drift_of(request.drift, {str(label): label for label in getattr(base, "arms", ())})
    return 0.0 if drift is None else drift


def _started(request: Request, state: Path) -> Study:
    base, log, note = new_base(request)
    settings = {
        "unknown": request.unknown or "error",
        "drift": drift_of_request(request, base),
        "policy": request.policy,
    }
    with errors_in(file=place_of(request.log)):
        return Study.create(state, base, log.history, wait=None, note=note, **settings)


def _continued(request: Request, state: Path) -> Study:
    with Study.open(state, read_only=True) as look:
        base, last_note = look.base, look.note
        ArmsByText(base)  # refuses an algorithm that does not play one arm
        _check_agrees(request, state, base, look)
    log, note = _read(request, last_note)
    study = Study.open(state, log.history)
    try:
        with errors_in(file=place_of(request.log)):
            study.change(note=note, **({} if request.unknown is None else {"unknown": request.unknown}))
            study.extend(log.history)
    except BaseException:
        study.close()
        raise
    return study


def _read(request: Request, note: dict[str, Any]) -> tuple[LogArgument, dict[str, Any]]:
    """Open the log with the columns given now, or else with the columns given last time."""
    options = {name: value for name, value in request.columns.items() if value is not None}
    columns = {name: note[name] for name in request.columns if note.get(name) is not None} | options
    place = Path(request.log)
    where = {"log": str(place.absolute())} if place.exists() else {}  # an address may hold a password
    return read_log(request.log, columns), columns | where


def _check_agrees(request: Request, state: Path, base: Any, study: Study) -> None:
    """Refuse options that differ from the state file, because a policy cannot change them."""
    in_file = {**settings_of(base), "algorithm": name_of(type(base)), "policy": study.policy_kind, "drift": study.drift}
    in_command = {
        "algorithm": request.algorithm,
        "policy": request.policy,
        **request.parameters,
        "drift": None if request.drift is None else drift_of_request(request, base),
        "arms": None if request.arms is None else split_labels(*request.arms),
    }
    for option, value in in_command.items():
        if value is not None and value != in_file.get(option):
            was = "none" if in_file.get(option) is None else _shown(in_file[option])
            raise InvalidParameter(
                f"{state} was made with {option.replace('_', ' ')} {was}, got {_shown(value)}. "
                "Leave the option out, or name another state file"
            )


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, dict):
        return ",".join(f"{name}={_shown(number)}" for name, number in value.items())
    if not isinstance(value, (list, tuple)):
        return str(value)
    some = ", ".join(map(_shown, value[:8]))
    return some if len(value) <= 8 else f"{some} and {len(value) - 8} more"
