"""The benchmark of decisions in flight decides as a study does."""

from __future__ import annotations

from collections import deque

import in_flight
import pytest

import artreplay as ar

HORIZON = 250


@pytest.mark.parametrize(("arms", "flying"), [(10, 0), (10, 3), (8, 100)])
def test_the_loop_decides_as_a_study(arms, flying):
    means, uniform = in_flight.world(1, arms), in_flight.draws(1, HORIZON)
    waiting: deque[ar.Decision] = deque()
    made = []
    with ar.compiling.using("interpreted"):
        with ar.Study.create(":memory:", ar.KLUCB(arms, horizon=HORIZON), wait=None) as study:
            for _ in range(HORIZON):
                waiting.append(study.decide())
                made.append(waiting[-1].action)
                if len(waiting) > flying:
                    told = waiting.popleft()
                    study.reward(told.id, float(uniform[told.number - 1] < means[told.action]))
        assert in_flight.played(1, arms, HORIZON, flying, counted=True).tolist() == made
