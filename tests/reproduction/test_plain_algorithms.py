"""Thompson sampling and UCB1 as the paper has them: how they draw and count, and that replay is not exact for them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import beta, chisquare

import artreplay as ar
from artreplay.compiling import using
from artreplay.streams import POSTERIOR, fold
from artreplay.streams import beta as draw_beta
from artreplay.testing import CheckFailed, check_coupling
from reproduction.algorithms import PlainThompson, PlainUCB1


@pytest.mark.parametrize(
    ("wins", "losses"), [((0, 0, 0), (0, 0, 0)), ((3, 1, 0), (1, 1, 4)), ((30, 20, 25), (20, 30, 25))]
)
def test_an_arm_is_proposed_as_often_as_it_is_the_best(wins, losses):
    base = PlainThompson(3, seed=8)
    for arm in range(3):
        for reward in [1.0] * wins[arm] + [0.0] * losses[arm]:
            base.update(arm, reward)
    counts = np.bincount([base.propose() for _ in range(3000)], minlength=3)
    x = (np.arange(20_000) + 0.5) / 20_000
    posteriors = [beta(1 + w, 1 + loss) for w, loss in zip(wins, losses, strict=True)]
    density = np.array([posterior.pdf(x) for posterior in posteriors])
    below = np.array([posterior.cdf(x) for posterior in posteriors])
    share = np.array([(density[j] * np.delete(below, j, axis=0).prod(axis=0)).mean() for j in range(3)])
    assert chisquare(counts, share / share.sum() * 3000).pvalue > 1e-4


def test_draws_are_keyed_by_arm_and_proposal_number():
    base = PlainThompson(4, seed=6)
    base.update(2, 1.0)
    key = np.uint64(fold(6))
    for number in range(20):
        drawn = [draw_beta(key, POSTERIOR, arm, number, 2.0 if arm == 2 else 1.0, 1.0) for arm in range(4)]
        assert base.propose() == int(np.argmax(drawn))


def test_after_much_data_it_plays_the_best_arm():
    base = PlainThompson(2, seed=1)
    for _ in range(3000):
        base.update(0, 0.0)
        base.update(1, 1.0)
    assert {base.propose() for _ in range(50)} == {1}


def test_the_time_of_ucb1_is_what_it_was_shown():
    """Full Start knows at once how long the log is, replay does not."""
    log = ar.History([0] * 40 + [1] * 2, [1.0] * 40 + [0.0, 1.0])
    full, replay = ar.FullStart(PlainUCB1(2), log), ar.ArtificialReplay(PlainUCB1(2), log)
    full.ask()
    replay.ask()
    for policy in (full, replay):
        index = policy.cells()[1].index
        count, mean = policy.cells()[1].count, policy.cells()[1].mean
        assert index == pytest.approx(mean + math.sqrt(2.0 * math.log(policy.used) / count))
    assert replay.used < full.used == 42


@pytest.mark.parametrize("make", [lambda: PlainThompson(3), lambda: PlainUCB1(3)], ids=["Thompson", "UCB1"])
def test_replay_is_not_exact_for_it(make):
    assert not make().exact
    with pytest.raises(CheckFailed):
        check_coupling(make, cases=60)


@pytest.mark.parametrize("start", ["artificial-replay", "full-start", "ignorant"])
def test_compiled_and_interpreted_are_the_same(start):
    env, sizes = ar.environments.KArmed(3), {"history": 20, "horizon": 10, "replications": 3, "seed": 1}
    found = []
    for mode in ("interpreted", "compiled"):
        with using(mode):
            found.append(ar.simulate(PlainThompson(3, seed=5), env, start=start, **sizes))
    slow, fast = found
    assert slow.actions.tolist() == fast.actions.tolist()
    assert slow.used.tolist() == fast.used.tolist()
