"""Where the blocks of an arm end."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from artreplay.history.stores.blocking import BLOCK, EARLY, block_end, block_ends, blocks_begun, whole_blocks

ENDS = np.concatenate([EARLY, np.arange(EARLY[-1] + BLOCK, 100_000, BLOCK)])
SAMPLES = st.one_of(
    st.integers(0, 60_000), st.sampled_from(ENDS[:70].tolist()), st.sampled_from((ENDS[:70] - 1).tolist())
)


@given(SAMPLES, SAMPLES)
def test_blocks_are_counted_as_they_end(first, last):
    assert whole_blocks(np.array([first])) == (first >= ENDS).sum()
    assert block_end(first) == ENDS[first < ENDS][0]
    if last > first:
        assert blocks_begun(np.array([last])) == (last > ENDS).sum() + 1
        inner = ENDS[(first < ENDS) & (last > ENDS)].tolist()
        assert block_ends(first, last).tolist() == [*inner, last]


def test_blocks_are_an_eighth_of_what_came_before_them_until_they_are_long_enough():
    sizes = np.diff(ENDS, prepend=0)
    assert (sizes >= 16).all()
    assert (sizes[8:] <= (ENDS - sizes)[8:] / 8).all()
    assert sizes.max() == sizes[-1] == BLOCK
