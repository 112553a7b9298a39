"""Checks of what makes Artificial Replay act exactly like Full Start: coupling, journal, values and more."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypedDict, Unpack

import numpy as np

from artreplay.compiling import is_component
from artreplay.errors import InvalidParameter
from artreplay.history import History
from artreplay.parameters import Count, Seed, Size, checked
from artreplay.replay import (
    NEEDS_ROOM,
    ArtificialReplay,
    Base,
    FullStart,
    Ignorant,
    Relation,
    as_base,
    checked_relation,
    is_certified,
    offers_value,
    rule_of,
    state_difference,
    state_of_base,
)
from artreplay.testing.outcome import CheckFailed, Summary
from artreplay.testing.playing import Calls, Failure, first_difference, play
from artreplay.testing.random_worlds import Units, UnitsToDraw, World, draw_world, shrink, units_of

ROUNDING = 1e-9  # rounding of sums may push a value this far past its bounds
TENTHS = (0.1, 0.2, 0.7)  # rewards whose sums depend on the order in which they are added
DEFAULT_REWARDS = (0, 0.5, 1)
DEFAULT_HORIZON = 12
_LONG_LOG_PERIOD, _LONG_LOG_FACTOR = 10, 8  # one case in ten has a log that may be eight times as long
_TENTHS_PERIOD = 4  # one case in four has tenths for rewards, if none were asked for
_PROBES, _PROBE_ROWS = 2, 24  # tries, and rows in each, to find a later proposal that shows a difference of states

MakeBase = Callable[[], Any]
MakePolicy = Callable[[Any, History], Any]  # (base, history) → something with ask, tell, used


class Search(TypedDict, total=False):
    """Which random logs a check tries. `check_coupling` explains each option."""

    cases: int
    max_history: int
    horizon: int
    rewards: Sequence[float]
    seed: int
    longest: int | None


class Verdict(NamedTuple):
    """One case: a failure or None, whether the case could have failed, and a note for the summary."""

    failure: Failure | None
    telling: bool
    note: str = ""


def check_coupling(
    make_base: MakeBase,
    units: UnitsToDraw = None,
    *,
    relation: Relation | None = None,
    full_start: MakePolicy | None = None,
    replay: MakePolicy | None = None,
    **search: Unpack[Search],
) -> Summary:
    """Check that Artificial Replay plays exactly what Full Start plays, with the same rewards.

    A case is not vacuous if rows of the log stay unread and Full Start plays differently from Ignorant.

    Parameters
    ----------
    make_base
        A function without parameters that makes a fresh base.
    units
        A number of arms, labels, or `Points`. By default those of the base.
    relation
        The relation for `ArtificialReplay`, if it has one.
    full_start, replay
        Functions `(base, history) -> policy` that replace the two policies, so that wrong ones can be tried.
    search
            Which random logs to try. `cases` is their number (200). `max_history` is the most rows of a log (12), and
            `longest` that of one log in ten. `horizon` is the number of rounds (12). `rewards` are the rewards to draw
            from (0, .5 and 1, and tenths in one log of four). The same `seed` tries the same logs.

    >>> import artreplay as ar
    >>> ar.testing.check_coupling(lambda: ar.MonUCB(3, horizon=20)).cases
    200
    """
    make_full = full_start or FullStart
    make_replay = replay or (lambda base, history: ArtificialReplay(base, history, relation))

    def judge(world: World) -> Verdict:
        """Play the world with all three policies."""
        full = play(lambda log: make_full(make_base(), log), world, all_units)
        replayed = play(lambda log: make_replay(make_base(), log), world, all_units)
        alone = play(lambda _: Ignorant(make_base()), world, all_units)
        telling = replayed.unread > 0 and full.actions != alone.actions
        return Verdict(first_difference(full, replayed, relation), telling)

    all_units = units_of(make_base, units)
    return _search("coupling", judge, make_base, all_units, **search)


@checked
def check_journal(
    make_base: MakeBase,
    units: UnitsToDraw = None,
    *,
    relation: Relation | None = None,
    full_start: MakePolicy | None = None,
    replay: MakePolicy | None = None,
    delays: Size = 3,
    **search: Unpack[Search],
) -> Summary:
    """Check that every decision follows from the whole journal, however rewards and rows arrive.

    Rewards come late or never, some actions are told that nobody asked for, and the log grows. A case is not vacuous if
    rows of the log stay unread.

    Parameters
    ----------
    make_base
        A function without parameters that makes a fresh base.
    units
        A number of arms, labels, or `Points`. By default those of the base.
    relation
        The relation for `ArtificialReplay`, if it has one.
    full_start, replay
        Functions `(base, history) -> policy` that replace the two policies, so that wrong ones can be tried.
    delays
        How many rounds late a reward may be.
    search
        Which random logs to try, as in `check_coupling`.

    >>> import artreplay as ar
    >>> ar.testing.check_journal(lambda: ar.MonUCB(3, horizon=20)).cases
    200
    """
    make_full = full_start or FullStart
    make_replay = replay or (lambda base, history: ArtificialReplay(base, history, relation))

    def judge(world: World) -> Verdict:
        """Let the same things happen to both policies."""
        full = play(lambda log: make_full(make_base(), log), world, all_units, delays)
        replayed = play(lambda log: make_replay(make_base(), log), world, all_units, delays)
        return Verdict(first_difference(full, replayed, relation), replayed.unread > 0)

    all_units = units_of(make_base, units)
    return _search("journal", judge, make_base, all_units, **search)


def check_irrelevant_data(
    make_base: MakeBase,
    units: UnitsToDraw = None,
    *,
    relation: Relation | None = None,
    **search: Unpack[Search],
) -> Summary:
    """Check that a proposal does not change when rows outside its cells are shown.

    A random part of the log is shown first, and then every other row that is unrelated to the proposal. A case is not
    vacuous if there is a row to show. A base that offers `value`, or reads the whole log first, does not need this.

    Parameters
    ----------
    make_base
        A function without parameters that makes a fresh base.
    units
        A number of arms, labels, or `Points`. By default those of the base.
    relation
        The relation for `ArtificialReplay`, if it has one.
    search
        Which random logs to try, as in `check_coupling`.

    >>> import artreplay as ar
    >>> ar.testing.check_irrelevant_data(lambda: ar.MonUCB(3, horizon=20)).cases
    200
    """
    checked_relation(relation)
    horizon = search.get("horizon", DEFAULT_HORIZON)

    def judge(world: World) -> Verdict:
        """Look for an unrelated row that changes the proposal."""
        base = as_base(make_base(), plain=True)
        related = relation_of(base, relation)
        history = world.history()
        numbers = base.numbers_of(history, skip=False).tolist()
        values = base.rewards_of(history).tolist()
        base.make_room(len(numbers) + 1)
        if base.reads_whole_log and relation is None:
            return Verdict(None, telling=False)
        cut = world.horizon * len(numbers) // (2 * horizon)  # a shorter horizon makes this part shorter
        calls = Calls()
        for row in range(cut):
            base.component.update_logged(numbers[row], values[row], 0.0)
            calls.show(world.log[row])
        before = proposal_of(base)
        shown = 0
        for row in range(cut, len(numbers)):
            if any(related(numbers[row], proposed) for proposed in before):
                continue
            base.component.update_logged(numbers[row], values[row], 0.0)
            calls.show(world.log[row])
            shown += 1
            after = proposal_of(base)
            if after != before:
                actions = [[base.unit(unit) for unit in side] for side in (before, after)]
                changed = f"a sample of {base.unit(numbers[row])!r} made it {actions[1]}"
                where = f"after {cut} samples the proposal was {actions[0]}; {changed}"
                sides = {"before": actions[0], "after": actions[1]}
                return Verdict(Failure(where, sides, calls.of_a_base(cut, row)), telling=True)
        return Verdict(None, shown > 0)

    all_units = units_of(make_base, units)
    return _search("irrelevant data", judge, make_base, all_units, **search)


def check_values(
    make_base: MakeBase,
    units: UnitsToDraw = None,
    **search: Unpack[Search],
) -> Summary:
    """Check that `value` gives true bounds, which certified reading needs.

    A random part of the log is shown first. Then `value` says what an arm would be worth if all its unread rows had the
    lowest reward, and if all had the highest. Its value after these rows are shown must lie between the two. A case is
    not vacuous if an arm has unread rows.

    Parameters
    ----------
    make_base
        A function without parameters that makes a fresh base.
    units
        A number of arms, labels, or `Points`. By default those of the base.
    search
        Which random logs to try, as in `check_coupling`.

    >>> import artreplay as ar
    >>> ar.testing.check_values(lambda: ar.UCB1(3)).cases
    200
    """

    horizon, base = search.get("horizon", DEFAULT_HORIZON), make_base()
    if not offers_value(base):
        raise InvalidParameter(f"a base must offer value(unit, round, unread, fill) to be checked, got {base!r}")

    def judge(world: World) -> Verdict:
        """Look for a value outside its bounds."""
        history = world.history()
        base = as_base(make_base())
        rule, (bottom, top) = rule_of(base.component), map(base.scaled, base.reward_range)
        numbers, values = base.numbers_of(history, skip=False), base.rewards_of(history)
        cut = world.horizon * len(numbers) // (2 * horizon)  # a shorter horizon makes this part shorter
        for row in range(cut):
            rule.update_logged(int(numbers[row]), float(values[row]), 0.0)
        waiting = len(numbers) - cut
        for arm in np.unique(numbers[cut:]).tolist():
            rows = cut + np.flatnonzero(numbers[cut:] == arm)
            rule.note_unread(waiting)
            low, high = (rule.value(arm, world.horizon, len(rows), fill) for fill in (bottom, top))
            for row in rows.tolist():
                rule.update_logged(arm, float(values[row]), 0.0)
            waiting -= len(rows)
            rule.note_unread(waiting)
            value = rule.value(arm, world.horizon, 0, bottom)
            if not low - ROUNDING <= value <= high + ROUNDING:
                bounds = f"the value of {base.unit(arm)!r} is {value} after {len(rows)} more rows"
                where = f"{bounds}, and must lie between {low}, with the lowest rewards, and {high}, with the highest"
                return Verdict(Failure(where, {"value": value, "bounds": (low, high)}), telling=True)
        return Verdict(None, cut < len(numbers))

    all_units = units_of(make_base, units)
    return _search("values", judge, make_base, all_units, **search)


def check_completion(
    make_base: MakeBase,
    units: UnitsToDraw = None,
    *,
    relation: Relation | None = None,
    **search: Unpack[Search],
) -> Summary:
    """Check that replay ends in exactly the state of Full Start once its unread rows are shown in order.

    States are compared part by part, bit for bit: `state()` if the base offers it, else its attributes. If states
    differ and no later proposal shows it, the summary has a note. A case is not vacuous if rows stay unread.

    Parameters
    ----------
    make_base
        A function without parameters that makes a fresh base.
    units
        A number of arms, labels, or `Points`. By default those of the base.
    relation
        The relation for `ArtificialReplay`, if it has one.
    search
        Which random logs to try, as in `check_coupling`.

    >>> import artreplay as ar
    >>> ar.testing.check_completion(lambda: ar.MonUCB(3, horizon=20)).cases
    200
    """

    def judge(world: World) -> Verdict:
        """Play the world with both policies, and then show replay the rows it left unread."""
        history = world.history()
        full_run = play(lambda log: FullStart(make_base(), log), world, all_units)
        replay_run = play(lambda log: ArtificialReplay(make_base(), log, relation), world, all_units)
        full, replaying = full_run.policy, replay_run.policy
        left = replaying.unused_rows()
        base = replaying.drive.base
        numbers, values = base.numbers_of(history, skip=False), base.rewards_of(history)
        base.make_room(len(left) + 1)
        for row in left:
            base.component.update_logged(int(numbers[row]), float(values[row]), 0.0)
        differs = state_difference(state_of_base(full.base), state_of_base(replaying.base))
        if differs is None:
            return Verdict(None, len(left) > 0)
        where = f"the states differ in {differs}"
        if not _shows_later(full.drive.base, base, world):
            return Verdict(None, len(left) > 0, f"the states differ in {differs.name}, which no later proposal showed")
        sides = {"full start": full_run.actions, "replay": replay_run.actions}
        return Verdict(Failure(where, sides, full_run.calls.of_policies(relation, left)), telling=True)

    all_units = units_of(make_base, units)
    return _search("completion", judge, make_base, all_units, **search)


def _shows_later(one: Base, other: Base, world: World) -> bool:
    """Return whether two bases with different states later propose different things when both are shown the same."""
    if is_certified(one.component) or not world.log or is_component(one.thing):
        return True  # for values and components, the difference itself is what matters
    rng = random.Random(len(world.log))
    for _ in range(_PROBES):
        mine, theirs = copy.deepcopy(one), copy.deepcopy(other)
        for _ in range(_PROBE_ROWS):
            first, second = ([side.unit(unit) for unit in proposal_of(side)] for side in (mine, theirs))
            if first != second:
                return True
            unit, reward = rng.choice(world.log)
            for side in (mine, theirs):
                side.component.update(side.checked_number(unit), float(side.scaled(reward)))
    return False


@checked
def _search(
    check: str,
    judge: Callable[[World], Verdict],
    make_base: MakeBase,
    units: Units,
    cases: Count = 200,
    max_history: Count = 12,
    horizon: Count = DEFAULT_HORIZON,
    rewards: Sequence[float] = DEFAULT_REWARDS,
    seed: Seed = 0,
    longest: Count | None = None,
) -> Summary:
    """Try random worlds, and simplify the first one that fails as far as possible."""
    if len(rewards) == 0:
        raise InvalidParameter("rewards must have at least one value, got none")
    long = _LONG_LOG_FACTOR * max_history if longest is None else longest
    rng = random.Random(seed)
    mixed = tuple(rewards) == DEFAULT_REWARDS and _takes(make_base(), TENTHS)
    telling, most = 0, 0
    notes: dict[str, int] = {}
    for case in range(cases):
        values = TENTHS if mixed and case % _TENTHS_PERIOD == _TENTHS_PERIOD - 1 else rewards
        rows = long if case % _LONG_LOG_PERIOD == _LONG_LOG_PERIOD - 1 else max_history
        world = draw_world(rng, units, rows, horizon, values)
        verdict = judge(world)
        telling += verdict.telling
        most = max(most, len(world.log))
        if verdict.note:
            notes[verdict.note] = notes.get(verdict.note, 0) + 1
        if verdict.failure is not None:
            world = shrink(world, lambda candidate: judge(candidate).failure, values)
            failure = judge(world).failure or verdict.failure
            raise CheckFailed(check, list(world.log), failure.actions, failure.where, failure.snippet)
    return Summary(check, cases, telling, most, tuple(f"{note} ({count} cases)" for note, count in notes.items()))


def _takes(thing: object, rewards: Sequence[float]) -> bool:
    """Return whether a base takes these rewards."""
    try:
        base = as_base(thing)
        for reward in rewards:
            base.checked_reward(reward)
    except Exception:  # a user's own check may raise anything
        return False
    return True


def relation_of(base: Base, relation: Relation | None) -> Callable[[int, int], bool]:
    """Return a function that says whether a logged and a proposed unit, as numbers, are related."""

    def same_cell(logged: int, proposed: int) -> bool:
        """Return whether two units lie in the same cell now. A proposal may be a box that is itself a cell."""
        cells = base.unit_cells(np.array([logged, proposed])).find
        return bool(cells.find(base.component, logged) == cells.find(base.component, proposed))

    if relation is None:
        return same_cell
    return lambda logged, proposed: bool(relation(base.unit(logged), base.unit(proposed), base.thing))


def proposal_of(base: Base) -> list[int]:
    """Return the numbers of the units that the base proposes now."""
    proposal, _ = base.proposal_space()
    count = rule_of(base.component).propose_over(None, proposal, 0)
    if count == NEEDS_ROOM:
        base.make_room(1)
        count = rule_of(base.component).propose_over(None, proposal, 0)
    return [int(number) for number in proposal[:count]]
