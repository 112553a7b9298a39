"""Policies to interrupt, and what they do when nobody does."""

from __future__ import annotations

from own_components import diary, fewest
from policy_kit import BASES, LeastSeen, log, reward_of, seen

import artreplay as ar

ROUNDS = 3


def many_arms():
    """A state too large to be copied at every step: a signal is held back instead."""
    return ar.MonUCB(3000, 20, bonus=ar.bonus.practical(0.5))


def related(logged, proposed, base):
    return logged == proposed


def nearly_full():
    """A tabulated bonus that runs out of entries soon."""
    base = BASES["MonUCB, tabulated"]()
    for _ in range(61):
        base.update(0, 0.5)
    return base


SCENES = {
    "MonUCB": (BASES["MonUCB"], ar.ArtificialReplay, log(size=9)),
    "TopUCB": (BASES["TopUCB"], ar.ArtificialReplay, log(size=9)),
    "LinUCB": (BASES["LinUCB"], ar.ArtificialReplay, log(size=5)),
    "MonUCB, full start": (BASES["MonUCB"], ar.FullStart, log(size=9)),
    "MonUCB, growing table": (nearly_full, ar.FullStart, ar.History([0] * 4, [0.5] * 4)),
    "MonUCB, totals": (BASES["MonUCB"], ar.FullStart, ar.Totals.of(log(size=9))),
    "many arms": (many_arms, ar.ArtificialReplay, log(size=9)),
    "plain": (LeastSeen, ar.ArtificialReplay, log(size=9)),
    "component": (fewest, ar.ArtificialReplay, log(size=9)),
    "component that grows": (diary, ar.ArtificialReplay, log(size=9)),
    "relation": (BASES["TopUCB"], lambda b, h: ar.ArtificialReplay(b, h, relation=related), log(size=9)),
}
RANDOMISED = {
    "Thompson": (BASES["Thompson"], ar.ArtificialReplay, log(size=5)),
    "RandomChoice": (BASES["RandomChoice of 2"], ar.ArtificialReplay, log(size=5)),
}
ALL = SCENES | RANDOMISED


def make(scene):
    base, start, history = ALL[scene]
    return start(base(), history)


def told(action, round_):
    return [reward_of(unit, round_) for unit in action] if isinstance(action, list) else reward_of(action, round_)


def calls_of(policy, actions, first=0):
    """The calls of a run, from the first-th on: ask and tell by turns; what is asked is written down by round."""
    for number in range(first, 2 * ROUNDS):
        round_ = number // 2
        if number % 2 == 0:
            yield lambda round_=round_: actions.__setitem__(round_, policy.ask())
        else:
            yield lambda round_=round_: policy.tell(actions[round_], told(actions[round_], round_))


def uninterrupted(scene):
    policy, actions = make(scene), {}
    for call in calls_of(policy, actions):
        call()
    return actions, seen(policy)
