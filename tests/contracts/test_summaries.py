"""Replay by block summaries: the same decisions and the same state, from fewer samples."""

from __future__ import annotations

import os

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store_logs import opened, played, random_log, stands

import artreplay as ar
from artreplay.errors import InvalidHistory, InvalidParameter
from artreplay.history.stores import blocking

THOROUGH = 30 if os.environ.get("ARTREPLAY_THOROUGH") else 1
BASES = {
    "practical": lambda: ar.MonUCB(3, 20, bonus=ar.bonus.practical(0.5)),
    "theory": lambda: ar.MonUCB(4, 2),
    "one arm": lambda: ar.MonUCB(1, 20),
    "Hoeffding": lambda: ar.PsiUCB(2, 1),
}


@pytest.fixture(scope="module", autouse=True)
def small_blocks():
    """Two blocks of two samples, then blocks of four, so that a small log has many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocking, "EARLY", np.array([2, 4]))
        patch.setattr(blocking, "BLOCK", 4)
        yield


@given(
    name=st.sampled_from(sorted(BASES)),
    place=st.sampled_from(["indexed", "appended"]),
    rows=st.integers(0, 200),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=4 * THOROUGH)
def test_summaries_change_nothing_that_can_be_seen(name, place, rows, seed):
    log = random_log(BASES[name](), rows, seed)
    with opened(log, place) as store:
        by_samples = ar.ArtificialReplay(BASES[name](), store)
        by_summaries = ar.ArtificialReplay(BASES[name](), store, replay="summaries")
        assert played(by_summaries, 10, seed) == played(by_samples, 10, seed)
        assert stands(by_summaries) == stands(by_samples)


def drawn(rows: int) -> pa.Table:
    rng = np.random.default_rng(0)
    arms = rng.integers(0, 2, rows)
    return pa.table({"arm": arms, "click": (rng.random(rows) < 0.3 + 0.4 * arms).astype(float)})


def test_few_samples_are_read(tmp_path):
    ar.index_history(drawn(20_000), tmp_path / "log.arh", unit="arm", reward="click")
    policy = ar.ArtificialReplay(ar.MonUCB(2, 1000), ar.open_history(tmp_path / "log.arh"), replay="summaries")
    policy.ask()
    assert policy.used > 9_000
    assert policy.reading.rows < 1_000


def test_a_policy_by_summaries_is_saved_and_continued(tmp_path):
    ar.index_history(drawn(3_000), tmp_path / "log.arh", unit="arm", reward="click")
    store = ar.open_history(tmp_path / "log.arh")
    policy, straight = (ar.ArtificialReplay(ar.MonUCB(2, 50), store, replay=way) for way in ("summaries", "samples"))
    assert played(policy, 3, 1) == played(straight, 3, 1)
    policy.save(tmp_path / "policy.ar")
    again = ar.load(tmp_path / "policy.ar", store)
    assert again.replay == "summaries"
    assert played(again, 3, 2) == played(straight, 3, 2)
    assert stands(again) == stands(straight)


@pytest.mark.parametrize(
    ("base", "options", "error", "sentence"),
    [
        (ar.TopUCB(3, 2, 20), {}, InvalidParameter, 'replay="summaries" is for algorithms that play one arm'),
        (ar.MonUCB(2, 20, reward_range=(0, 2)), {}, InvalidParameter, 'replay="summaries" is for'),
        (ar.PsiUCB(2, 20, psi=ar.psi.bernoulli_kl), {}, InvalidParameter, 'replay="summaries" is for'),
        (ar.MonUCB(2, 20), {"replay": "blocks"}, InvalidParameter, 'replay must be "samples" or "summaries"'),
        (ar.MonUCB(2, 20), {"relation": "trivial"}, InvalidParameter, "leave relation out"),
    ],
)
def test_where_summaries_do_not_serve(tmp_path, base, options, error, sentence):
    ar.index_history(drawn(50), tmp_path / "log.arh", unit="arm", reward="click")
    with pytest.raises(error, match=sentence):
        ar.ArtificialReplay(base, ar.open_history(tmp_path / "log.arh"), **{"replay": "summaries"} | options)


def test_other_logs_have_no_summaries(tmp_path):
    ar.index_history(drawn(50), tmp_path / "log.arh", unit="arm", reward="click")
    with pytest.raises(InvalidHistory, match="needs an indexed store of arms, whole"):
        ar.ArtificialReplay(ar.MonUCB(2, 20), ar.open_history(tmp_path / "log.arh", until=9), replay="summaries")
    with pytest.raises(InvalidHistory, match="got a log in memory"):
        ar.ArtificialReplay(ar.MonUCB(2, 20), ar.History([0], [1]), replay="summaries")
