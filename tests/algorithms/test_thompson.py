"""Thompson sampling: what it counts, and how it draws."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import beta, chisquare

import artreplay as ar
from artreplay.algorithms.thompson import fitted_prior
from artreplay.streams import POSTERIOR, fold, uniform


def test_what_it_is_shown_is_counted():
    base = ar.ThompsonSampling(3, seed=1)
    for arm, reward in [(0, 1.0), (0, 0.0), (1, 0.25), (0, 1.0), (2, 1.0)]:
        base.update(arm, reward)
    base.update_logged(1, 0.5)
    counts, means, _ = base.statistics()
    assert counts.tolist() == [3, 2, 1]
    assert means.tolist() == pytest.approx([2 / 3, 0.375, 1.0])


@pytest.mark.parametrize(
    ("wins", "losses"), [((0, 0, 0), (0, 0, 0)), ((3, 1, 0), (1, 1, 4)), ((30, 20, 25), (20, 30, 25))]
)
def test_an_arm_is_proposed_as_often_as_it_is_the_best(wins, losses):
    base = ar.ThompsonSampling(3, seed=8)
    for arm in range(3):
        for reward in [1.0] * wins[arm] + [0.0] * losses[arm]:
            base.update(arm, reward)
    counts = np.bincount([proposal_in(base, round_) for round_ in range(3000)], minlength=3)
    x = (np.arange(20_000) + 0.5) / 20_000
    posteriors = [beta(1 + w, 1 + loss) for w, loss in zip(wins, losses, strict=True)]
    density = np.array([posterior.pdf(x) for posterior in posteriors])
    below = np.array([posterior.cdf(x) for posterior in posteriors])
    share = np.array([(density[j] * np.delete(below, j, axis=0).prod(axis=0)).mean() for j in range(3)])
    assert chisquare(counts, share / share.sum() * 3000).pvalue > 1e-4


def proposal_in(base, round_):
    """What it proposes in a round, by what it has been shown."""
    base.component.shown[1] = round_  # samples that were played
    return base.propose()


def test_draws_are_quantiles_keyed_by_arm_and_round():
    base = ar.ThompsonSampling(4, seed=6)
    base.update(2, 1.0)
    key = np.uint64(fold(6))
    for round_ in range(20):
        drawn = [beta(2 if arm == 2 else 1, 1).ppf(uniform(key, POSTERIOR, arm, round_)) for arm in range(4)]
        assert proposal_in(base, round_) == int(np.argmax(drawn))
        assert base.propose() == int(np.argmax(drawn))  # the same again in the same round


def test_after_much_data_it_plays_the_best_arm():
    base = ar.ThompsonSampling(2, seed=1)
    for _ in range(3000):
        base.update(0, 0.0)
        base.update(1, 1.0)
    assert {proposal_in(base, round_) for round_ in range(50)} == {1}


def test_it_has_no_index():
    policy = ar.Ignorant(ar.ThompsonSampling(2))
    assert all(math.isnan(cell.index) for cell in policy.cells())


def test_a_prior_counts_as_rewards_that_were_seen():
    base = ar.ThompsonSampling(3, seed=6, prior=(2, 5.5))
    base.update(2, 1.0)
    key = np.uint64(fold(6))
    for round_ in range(20):
        drawn = [beta(3 if arm == 2 else 2, 5.5).ppf(uniform(key, POSTERIOR, arm, round_)) for arm in range(3)]
        assert proposal_in(base, round_) == int(np.argmax(drawn))


@pytest.mark.parametrize("prior", [(0, 1), (1, -2), (1, math.inf), (math.nan, 1), (1,), (1, 2, 3), "uniform", 4, None])
def test_a_prior_that_is_not_positive_is_refused(prior):
    with pytest.raises(ar.errors.InvalidParameter, match=r"prior must be"):
        ar.ThompsonSampling(3, prior=prior)


@pytest.mark.parametrize(("a", "b", "most"), [(1.0, 201.0, 3.0), (2.0, 2.0, 1.0), (30.0, 10.0, 1.0)])
def test_the_prior_of_a_log_is_fitted_by_moments(a, b, most):
    rng = np.random.default_rng(0)
    counts = rng.integers(2_000, 6_000, size=400)
    fitted = fitted_prior(counts, rng.binomial(counts, rng.beta(a, b, size=400)).astype(float))
    assert fitted[0] / sum(fitted) == pytest.approx(a / (a + b), rel=0.1)
    assert math.log(sum(fitted) / (a + b)) == pytest.approx(0.0, abs=0.3)


def test_the_prior_of_a_log_says_no_more_than_the_log_can():
    alike = fitted_prior(np.array([50, 70]), np.array([10.0, 14.0]))
    assert sum(alike) == pytest.approx(60)
    assert fitted_prior(np.array([0, 70, 0]), np.array([0.0, 14.0, 0.0])) == (1.0, 1.0)
    assert fitted_prior(np.array([0, 0]), np.zeros(2)) == (1.0, 1.0)
    assert min(fitted_prior(np.array([50, 70]), np.zeros(2))) > 0.0
    assert min(fitted_prior(np.array([50, 70]), np.array([50.0, 70.0]))) > 0.0
    assert min(fitted_prior(np.array([50, 70]), np.array([0.0, 70.0]))) > 0.0


def test_the_prior_of_a_log_is_fixed_when_the_policy_is_made(tmp_path):
    rng = np.random.default_rng(1)
    arms = rng.integers(4, size=3000)
    log = ar.History(arms, (rng.random(3000) < np.array([0.01, 0.02, 0.05, 0.01])[arms]).astype(float))
    base = ar.ThompsonSampling(4, seed=2, prior="log")
    policy = ar.ArtificialReplay(base, log.rows(range(2000)))
    fitted = policy.base.prior
    assert fitted == fitted_prior(
        np.bincount(arms[:2000], minlength=4), np.bincount(arms[:2000], log.rewards[:2000], minlength=4)
    )
    policy.ask()
    policy.save(tmp_path / "policy")
    again = ar.load(tmp_path / "policy", log)
    policy.extend(log)
    assert policy.base.prior == again.base.prior == fitted
    policy.tell(0, 0.0)
    again.tell(0, 0.0)
    assert [policy.ask(), policy.used] == [again.ask(), again.used]
    assert base.prior == "log"
    assert ar.Ignorant(base).base.component.rule.rule.a == 1.0


def test_a_prior_is_fitted_to_a_log_that_was_laid_out(tmp_path):
    rng = np.random.default_rng(3)
    table = pa.table({"arm": rng.integers(0, 2, 100), "reward": rng.integers(0, 2, 100)})
    ar.index_history(table, tmp_path / "log", unit="arm", reward="reward")
    laid_out, in_memory = (
        ar.FullStart(ar.ThompsonSampling(2, prior="log"), log)
        for log in (ar.open_history(tmp_path / "log"), ar.History.from_frame(table, "arm", "reward"))
    )
    assert laid_out.base.prior == in_memory.base.prior
    assert laid_out.ask() == in_memory.ask()


def test_a_prior_of_the_log_is_simulated_with_a_log_that_is_given():
    env, base, log = (
        ar.environments.KArmed(2),
        ar.ThompsonSampling(2, prior="log"),
        ar.History([0, 1] * 20, [0, 1] * 20),
    )
    with pytest.raises(ar.errors.InvalidParameter, match=r"Pass history= as a History, not as a number"):
        ar.simulate(base, env, history=100, horizon=5, replications=1)
    with ar.compiling.using("interpreted"):
        fitted = ar.ThompsonSampling(2, prior=fitted_prior(np.array([20, 20]), np.array([0.0, 20.0])))
        runs = [ar.simulate(one, env, "full-start", history=log, horizon=20, replications=2) for one in (base, fitted)]
    assert runs[0].actions.tolist() == runs[1].actions.tolist()
