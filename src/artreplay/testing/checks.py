"""Checks of what makes Artificial Replay act exactly like Full Start: coupling, journal, values and more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack

import numpy as np

from artreplay.algorithms import Algorithm
from artreplay.errors import InvalidParameter
from artreplay.history import History
from artreplay.parameters import Size, checked
from artreplay.replay import (
    ArtificialReplay,
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
from artreplay.testing.context_journals import contexts_of, judge_of_contexts
from artreplay.testing.outcome import Summary
from artreplay.testing.playing import Calls, Failure, first_difference, play
from artreplay.testing.proposals import proposal_of, relation_of, shows_later
from artreplay.testing.random_worlds import UnitsToDraw, World, units_of
from artreplay.testing.searching import DEFAULT_HORIZON, MakeBase, Search, Verdict, search_worlds

ROUNDING = 1e-9  # rounding of sums may push a value this far past its bounds

MakePolicy = Callable[[Any, History], Any]  # (base, history) → something with ask, tell, used


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

    A case could have failed if rows of the log stay unread and Full Start plays differently from Ignorant.

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
        from: by default both ends of the algorithm's range and the middle, and without a range 0, .5 and 1, with tenths
        in one log of four. The same `seed` tries the same logs.

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
    units: UnitsToDraw = None,
    *,
    relation: Relation | None = None,
    full_start: MakePolicy | None = None,
    replay: MakePolicy | None = None,
    delays: Size = 3,
    contexts: Any = None,
    **search: Unpack[Search],
) -> Summary:
    """Check that every decision follows from the whole journal, however rewards and rows arrive.

    Rewards come late or never, some actions are told that nobody asked for, and the log grows. A case could have failed
    if rows of the log stay unread. An object with contexts, which is shown the whole log, is compared with a fresh one
    that is shown the journal once, and asked once.

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
    contexts
        For an object with contexts: a list of contexts to draw from. By default those that its own `contexts` allow.
    search
        Which random logs to try, as in `check_coupling`.

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
    units: UnitsToDraw = None,
    *,
    relation: Relation | None = None,
    **search: Unpack[Search],
) -> Summary:
    """Check that a proposal does not change when rows outside its cells are shown.

    A random part of the log is shown first, and then every other row that is unrelated to the proposal. A case could
    have failed if there is a row to show. A base that offers `value`, or reads the whole log first, does not need this.

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
    return search_worlds("irrelevant data", judge, make_base, all_units, relation, **search)


def check_values(
    make_base: MakeBase,
    units: UnitsToDraw = None,
    **search: Unpack[Search],
) -> Summary:
    """Check that `value` gives true bounds, which certified reading needs.

    A random part of the log is shown first. Then `value` says what an arm would be worth if all its unread rows had the
    lowest reward, and if all had the highest. Its value after these rows are shown must lie between the two. A case
    could have failed if an arm has unread rows.

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
    return search_worlds("values", judge, make_base, all_units, **search)


def check_completion(
    make_base: MakeBase,
    units: UnitsToDraw = None,
    *,
    relation: Relation | None = None,
    **search: Unpack[Search],
) -> Summary:
    """Check that replay ends in exactly the state of Full Start once its unread rows are shown in order.

    States are compared part by part, bit for bit: `state()` if the base offers it, else its attributes. If states
    differ and no later proposal shows it, the summary has a note. A case could have failed if rows stay unread.

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
        if is_certified(base.component):
            base.component.rule.note_unread(0)
        differs = state_difference(state_of_base(full.base), state_of_base(replaying.base))
        if differs is None:
            return Verdict(None, len(left) > 0)
        where = f"the states differ in {differs}"
        if not shows_later(full.drive.base, base, world):
            return Verdict(None, len(left) > 0, f"the states differ in {differs.name}, which no later proposal showed")
        sides = {"full start": full_run.actions, "replay": replay_run.actions}
        return Verdict(Failure(where, sides, full_run.calls.of_states(relation, replay_run)), telling=True)

    all_units = units_of(make_base, units)
    return search_worlds("completion", judge, make_base, all_units, relation, **search)


def knows_contexts(base: object) -> bool:
    """Return whether this is a user's own object that is asked and told with contexts."""
    return getattr(base, "contextual", False) is True and not isinstance(base, Algorithm)
