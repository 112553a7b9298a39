"""Levels to try: usual ones, and the edges of what a level may be."""

from __future__ import annotations

from hypothesis import strategies as st

amounts = st.sampled_from([0.0, -0.0, 0.5, 1.0, 2.0, 5e-324, 1e300]) | st.floats(0, 1e9)
