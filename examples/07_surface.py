"""A budget of effort divided over a map by surfaces fitted to past records; ends in a picture of what they say."""

import sys

import numpy as np

import artreplay as ar

rng = np.random.default_rng(3)


def chance(points, efforts):
    """The chance to find something: one place is rich, and effort pays. Nobody knows it."""
    return efforts * np.exp(-((points - [0.65, 0.35]) ** 2).sum(axis=1) / 0.08)


# 1,500 past visits, most of them where little is found.
world = ar.environments.Metric(chance, dim=2, levels=(0.5, 1), budget=2, max_units=5, bad_share=0.6)
history = world.draw_history(1_500, seed=3)

# A surface for each level, fitted to the whole log.
base = ar.CellRegression(dim=2, levels=(0.5, 1), budget=2, max_units=5, horizon=200)
policy = ar.ArtificialReplay(base, history)
played = []
for _ in range(60):
    action = policy.ask()
    played += action
    found = chance(np.array([unit.point for unit in action]), np.array([unit.level for unit in action]))
    policy.tell(action, (rng.random(len(action)) < found).astype(float))

print(f"{policy.rounds} rounds; Artificial Replay used {policy.used} of {len(history)} samples")
ar.plots.draw_surface(policy, sys.argv[1] if len(sys.argv) > 1 else "surface.png", played=played[-8:])
