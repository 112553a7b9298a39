"""What algorithms, simulations and studies do, as numbers that must be the same with and without numba.

Run as a script, it plays them without numba and matplotlib, as if neither were installed, and prints what came out.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

LOG = [(arm % 3, float((arm * 7 % 11) > 4 + arm % 3)) for arm in range(60)]


def outcomes() -> dict[str, list[str]]:
    """Play, and return every number as text that tells all bits apart."""
    played = {name: numbers for play in (_policies, _simulations, _studies) for name, numbers in play().items()}
    return {name: [float(number).hex() for number in numbers] for name, numbers in played.items()}


def _policies() -> dict[str, list[float]]:
    import artreplay as ar

    contexts = ar.Contexts({"x": ar.Numeric(0, 1)})
    rows = {"x": [row % 10 / 10 for row in range(len(LOG))]}
    log = ar.History(*map(list, zip(*LOG, strict=True)), contexts=rows)
    found: dict[str, list[float]] = {}
    for base in (ar.KLUCB(3, 200), ar.ThompsonSampling(3), ar.ContextRegression(3, contexts)):
        at: dict[str, Any] = {"context": {"x": 0.4}} if isinstance(base, ar.ContextRegression) else {}
        history = log if at else ar.History(*map(list, zip(*LOG, strict=True)))
        policy = ar.ArtificialReplay(base, history)
        numbers = found[type(base).__name__] = []
        for round_ in range(30):
            arm = policy.ask(**at)
            policy.tell(arm, float(round_ % 4 == arm), **at)
            numbers += [arm, policy.used]
    return found


def _simulations() -> dict[str, list[float]]:
    import artreplay as ar

    worlds: dict[str, tuple[Any, Any]] = {
        "arms": (ar.KLUCB(3, 40), ar.environments.KArmed(3)),
        "posteriors": (ar.ThompsonSampling(3), ar.environments.KArmed(3, rewards="beta")),
        "points": (ar.TreeUCB(1, 40), ar.environments.Metric(lambda points: 1 - abs(points[:, 0] - 0.3))),
        "several": (ar.TopUCB(4, 2, 40), ar.environments.TopArms(4, 2)),
    }
    found: dict[str, list[float]] = {}
    for name, (base, env) in worlds.items():
        runs = ar.simulate(base, env, history=30, horizon=40, replications=2)
        found[name] = [*runs.regret.ravel(), *runs.used.ravel(), *np.ravel(runs.actions)]
    return found


def _studies() -> dict[str, list[float]]:
    import artreplay as ar

    found: dict[str, list[float]] = {}
    for base in (ar.KLUCB(3, 200), ar.IDS(3)):
        study = ar.Study.create(":memory:", base, ar.History(*map(list, zip(*LOG, strict=True))), wait=None)
        open_, numbers = [], found.setdefault(f"study of {type(base).__name__}", [])
        for round_ in range(20):
            open_.append(study.decide())
            numbers.append(float(str(open_[-1].action)))
            if round_ % 3 == 2:
                study.reward(open_.pop(0).id, round_ % 2)
    return found


if __name__ == "__main__":
    sys.modules |= {"numba": None, "llvmlite": None, "matplotlib": None}  # type: ignore[dict-item]
    from artreplay.compiling import loops

    loops.PATIENCE = 0.0  # seconds: every slice that is counted would have been compiled
    print(json.dumps(outcomes()))
