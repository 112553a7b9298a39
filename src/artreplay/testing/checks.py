"""Coupling, journal, irrelevant data, values, completion: what makes Artificial Replay act exactly like Full Start."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any, Unpack

import numpy as np

from artreplay.algorithms import Algorithm
from artreplay.compiling import is_component
from artreplay.errors import InvalidParameter
from artreplay.history import History
from artreplay.parameters import Size, checked
from artreplay.replay import (
    NEEDS_ROOM,
    ArtificialReplay,
    Base,
    FullStart,
    Ignorant,
    as_base,
    checked_relation,
    is_certified,
    offers_value,
    rule_of,
    state_difference,
    state_of_base,
)
from artreplay.testing.context_journals import contexts_of, judge_of_contexts
from artreplay.testing.outcome import Summary
from artreplay.testing.playing import Calls, Failure, first_difference, play
from artreplay.testing.random_worlds import World, units_of
from artreplay.testing.searching import DEFAULT_HORIZON, MakeBase, Search, Verdict, search_worlds

ROUNDING = 1e-9  # of sums, by which a value may pass its bounds
_PROBES, _PROBE_ROWS = 2, 24  # how a difference between states is looked for in later proposals

MakePolicy = Callable[[Any, History], Any]  # (base, history) → something with ask, tell, used


def check_coupling(
    make_base: MakeBase,
    units: Any = None,
    *,
    relation: Any = None,
    full_start: MakePolicy | None = None,
    replay: MakePolicy | None = None,
    **search: Unpack[Search],
) -> Summary:
    """Check that Artificial Replay plays exactly what Full Start plays, on the same reward stack.

    A case could have failed if rows of the log stay unread and Full Start plays differently from Ignorant.

    Parameters
    ----------
    make_base
        A function without parameters that makes a fresh base.
    units
        A number of arms, labels, or `Points`. By default the base is asked.
    relation
        As for `ArtificialReplay`.
    full_start, replay
        Functions `(base, history) -> policy` that replace the two policies, so that wrong ones can be tried.
    search
        Which random logs are tried. `cases` is their number (200), `max_history` the rows of most of them (12) and
        `longest` of one in ten, `horizon` the rounds played (12), `rewards` what is drawn from (both ends of the range
        of rewards and the middle; 0, .5 and 1 without a range, with tenths in one log of four), and `seed` makes it the
        same again.

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
        lost = (full.earned - replayed.earned) / world.horizon
        return Verdict(first_difference(full, replayed, relation), telling, lost=lost)

    all_units = units_of(make_base, units)
    return search_worlds("coupling", judge, make_base, all_units, relation, **search)


@checked
def check_journal(
    make_base: MakeBase,
    units: Any = None,
    *,
    relation: Any = None,
    full_start: MakePolicy | None = None,
    replay: MakePolicy | None = None,
    delays: Size = 3,
    contexts: Any = None,
    **search: Unpack[Search],
) -> Summary:
    """Check that every decision is the one of the whole journal, as ordinary use brings it about.

    Rewards come late or never, actions are told that nobody asked for, and the log grows. A case could have failed if
    rows of the log stay unread. An object with contexts, which is shown the whole log, is compared with a fresh one
    that is shown the journal once, and asked once.

    Parameters
    ----------
    make_base
        A function without parameters that makes a fresh base.
    units
        A number of arms, labels, or `Points`. By default the base is asked.
    relation
        As for `ArtificialReplay`.
    full_start, replay
        Functions `(base, history) -> policy` that replace the two policies, so that wrong ones can be tried.
    delays
        How many rounds late a reward may be.
    contexts
        For an object with contexts: a list of contexts to draw from. By default those that its own `contexts` allow.
    search
        Which random logs are tried, as in `check_coupling`.

    >>> import artreplay as ar
    >>> ar.testing.check_journal(lambda: ar.MonUCB(3, horizon=20)).cases
    200
    """
    if knows_contexts(make_base()):
        some = contexts_of(make_base(), contexts)
        arms = units_of(make_base, units)
        in_contexts = judge_of_contexts(make_base, arms, some, delays)
        return search_worlds("journal", in_contexts, make_base, arms, **search)
    make_full = full_start or FullStart
    make_replay = replay or (lambda base, history: ArtificialReplay(base, history, relation))

    def judge(world: World) -> Verdict:
        """Let the same things happen to both policies."""
        full = play(lambda log: make_full(make_base(), log), world, all_units, delays)
        replayed = play(lambda log: make_replay(make_base(), log), world, all_units, delays)
        return Verdict(first_difference(full, replayed, relation), replayed.unread > 0)

    all_units = units_of(make_base, units)
    return search_worlds("journal", judge, make_base, all_units, relation, **search)


def check_irrelevant_data(
    make_base: MakeBase,
    units: Any = None,
    *,
    relation: Any = None,
    **search: Unpack[Search],
) -> Summary:
    """Check that a proposal does not change when rows outside its cells are shown.

    A random part of the log is shown first, then every row of the rest that is unrelated to the proposal. A case
    could have failed if there is a row to show. A base that offers `value`, or reads the whole log first, does not
    need this.

    Parameters
    ----------
    make_base
        A function without parameters that makes a fresh base.
    units
        A number of arms, labels, or `Points`. By default the base is asked.
    relation
        As for `ArtificialReplay`.
    search
        Which random logs are tried, as in `check_coupling`.

    >>> import artreplay as ar
    >>> ar.testing.check_irrelevant_data(lambda: ar.MonUCB(3, horizon=20)).cases
    200
    """
    checked_relation(relation)
    horizon = search.get("horizon", DEFAULT_HORIZON)

    def judge(world: World) -> Verdict:
        """Look for an unrelated sample that changes the proposal."""
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
    return search_worlds("irrelevant data", judge, make_base, all_units, relation, **search)


def check_values(
    make_base: MakeBase,
    units: Any = None,
    **search: Unpack[Search],
) -> Summary:
    """Check that `value` bounds what it will be, as certified reading needs.

    A random part of the log is shown first. The value of an arm with its unread rows at the lowest reward, and at the
    highest, must then be bounds on its value once these rows are shown, whatever they are. A case could have failed if
    an arm has unread rows.

    Parameters
    ----------
    make_base
        A function without parameters that makes a fresh base.
    units
        A number of arms, labels, or `Points`. By default the base is asked.
    search
        Which random logs are tried, as in `check_coupling`.

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
    return search_worlds("values", judge, make_base, all_units, **search)


def check_completion(
    make_base: MakeBase,
    units: Any = None,
    *,
    relation: Any = None,
    **search: Unpack[Search],
) -> Summary:
    """Check that replay, once it is shown the unread rows in order, ends in the very state of Full Start.

    States are compared part by part, bit for bit: `state()` if the base offers it, else its attributes. If states
    differ and no later proposal shows it, the summary has a note. A case could have failed if rows stay unread.

    Parameters
    ----------
    make_base
        A function without parameters that makes a fresh base.
    units
        A number of arms, labels, or `Points`. By default the base is asked.
    relation
        As for `ArtificialReplay`.
    search
        Which random logs are tried, as in `check_coupling`.

    >>> import artreplay as ar
    >>> ar.testing.check_completion(lambda: ar.MonUCB(3, horizon=20)).cases
    200
    """

    def judge(world: World) -> Verdict:
        """Play the world with both policies, and show the replaying one what it left over."""
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
        if is_certified(base.component):
            base.component.rule.note_unread(0)
        differs = state_difference(state_of_base(full.base), state_of_base(replaying.base))
        if differs is None:
            return Verdict(None, len(left) > 0)
        where = f"the states differ in {differs}"
        if not _shows_later(full.drive.base, base, world):
            return Verdict(None, len(left) > 0, f"the states differ in {differs.name}, which no later proposal showed")
        sides = {"full start": full_run.actions, "replay": replay_run.actions}
        return Verdict(Failure(where, sides, full_run.calls.of_states(relation, replay_run)), telling=True)

    all_units = units_of(make_base, units)
    return search_worlds("completion", judge, make_base, all_units, relation, **search)


def knows_contexts(base: object) -> bool:
    """Whether this is an object of the user's own that is asked and told with contexts."""
    return getattr(base, "contextual", False) is True and not isinstance(base, Algorithm)


def _shows_later(one: Base, other: Base, world: World) -> bool:
    """Whether two bases whose states differ come to propose different things when both are shown the same."""
    if is_certified(one.component) or not world.log or is_component(one.thing):
        return True  # values and the arrays of components are the state
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


def relation_of(base: Base, relation: Any) -> Callable[[int, int], bool]:
    """Whether a logged and a proposed unit, as numbers, are related."""

    def same_cell(logged: int, proposed: int) -> bool:
        """Whether two units lie in the same cell now; a proposal may be a box that is a cell itself."""
        cells = base.unit_cells(np.array([logged, proposed])).find
        return bool(cells.find(base.component, logged) == cells.find(base.component, proposed))

    if relation is None:
        return same_cell
    return lambda logged, proposed: bool(relation(base.unit(logged), base.unit(proposed), base.thing))


def proposal_of(base: Base) -> list[int]:
    """The numbers of the units proposed now."""
    proposal, _ = base.proposal_space()
    count = rule_of(base.component).propose_over(None, proposal, 0)
    if count == NEEDS_ROOM:
        base.make_room(1)
        count = rule_of(base.component).propose_over(None, proposal, 0)
    return [int(number) for number in proposal[:count]]
