"""Trying random worlds until a check fails, and making the first one that does as simple as it can be."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypedDict

from artreplay.errors import ArtReplayError, InvalidParameter
from artreplay.parameters import Count, Seed, checked
from artreplay.testing.outcome import CheckFailed, Odds, Summary, advice_for
from artreplay.testing.playing import Failure, call_that_raised
from artreplay.testing.random_worlds import (
    DEFAULT_REWARDS,
    TENTHS,
    Units,
    World,
    draw_world,
    rewards_of,
    shrink,
    takes,
)

DEFAULT_HORIZON = 12
_LONG_LOG_PERIOD, _LONG_LOG_FACTOR = 10, 8  # one case in ten has a log that may be eight times as long
_WORLDS_COUNTED = 60  # that say how often a check fails, once it has failed
_TENTHS_PERIOD = 4  # one case in four has tenths for rewards, if none were asked for

MakeBase = Callable[[], Any]


class Search(TypedDict, total=False):
    """Which random logs a check tries; `check_coupling` says what each option means."""

    cases: int
    max_history: int
    horizon: int
    rewards: Sequence[float] | None
    seed: int
    longest: int | None


class Verdict(NamedTuple):
    """One case: a failure or None, whether there was something to find, and a note for the summary."""

    failure: Failure | None
    telling: bool
    note: str = ""
    lost: float = 0.0  # reward in a round that replay earned less than full start


@checked
def search_worlds(
    check: str,
    judge: Callable[[World], Verdict],
    make_base: MakeBase,
    units: Units,
    relation: Any = None,
    *,
    cases: Count = 200,
    max_history: Count = 12,
    horizon: Count = DEFAULT_HORIZON,
    rewards: Any = None,
    seed: Seed = 0,
    longest: Count | None = None,
) -> Summary:
    """Try random worlds; of the first that fails a simple form is shown, with how often others fail."""
    if rewards is not None and len(rewards) == 0:
        raise InvalidParameter("rewards must have at least one value, got none")
    alphabet: Sequence[float] = rewards_of(make_base) if rewards is None else rewards
    long = _LONG_LOG_FACTOR * max_history if longest is None else longest
    rng = random.Random(seed)
    mixed = tuple(alphabet) == DEFAULT_REWARDS and takes(make_base(), TENTHS)
    telling, most = 0, 0
    notes: dict[str, int] = {}
    failures: list[Verdict] = []
    first: tuple[World, Sequence[float]] | None = None
    n_tried = 0
    for case in range(cases):
        values = TENTHS if mixed and case % _TENTHS_PERIOD == _TENTHS_PERIOD - 1 else alphabet
        rows = long if case % _LONG_LOG_PERIOD == _LONG_LOG_PERIOD - 1 else max_history
        world = draw_world(rng, units, rows, horizon, values)
        verdict = _judged(judge, world)
        n_tried += 1
        telling += verdict.telling
        most = max(most, len(world.log))
        if verdict.note:
            notes[verdict.note] = notes.get(verdict.note, 0) + 1
        if verdict.failure is not None:
            failures.append(verdict)
            first = first or (world, values)
        if first is not None and n_tried >= _WORLDS_COUNTED:
            break
    if first is None:
        return Summary(check, cases, telling, most, tuple(f"{note} ({count} cases)" for note, count in notes.items()))
    small = shrink(first[0], lambda candidate: _judged(judge, candidate).failure, first[1])
    failure = _judged(judge, small).failure or failures[0].failure
    assert failure is not None
    losses = tuple(verdict.lost for verdict in failures) if check == "coupling" else None
    advice = advice_for(check, make_base(), relation)
    odds = Odds(n_tried, len(failures), losses)
    raise CheckFailed(check, list(small.log), failure.actions, failure.where, failure.snippet, odds, advice)


def _judged(judge: Callable[[World], Verdict], world: World) -> Verdict:
    """Return what a world shows. An error inside the user's algorithm gets a note with the call that raised it."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".* is not exact")  # whether it is, is being checked
            return judge(world)
    except ArtReplayError:
        raise
    except Exception as error:
        if (call := call_that_raised(error)) is not None:
            error.add_note(f"It was raised inside your algorithm, in {call}.")
        raise
