"""The best setting of an oven, from a log that was mostly made elsewhere; ends in a picture."""

import sys

import numpy as np

import artreplay as ar
from artreplay.plots import draw_space

rng = np.random.default_rng(1)
OVEN = ((150.0, 250.0), (10.0, 60.0))  # °C, minutes
ROUNDS = 500


def liked(temperature, minutes):
    """The chance that a customer likes a loaf: best at 212 °C and 38 minutes. The bakery does not know it."""
    return 0.05 + 0.9 * np.exp(-(((temperature - 212) / 25) ** 2) - ((minutes - 38) / 11) ** 2)


# 2,000 loaves so far: the baker was careful, and most of them came out of the oven pale.
habit = rng.normal((172, 20), (9, 4), size=(1_600, 2)).clip((150, 10), (250, 60))
tried = rng.uniform((150, 10), (250, 60), size=(400, 2))
settings = rng.permutation(np.concatenate([habit, tried]))
history = ar.History(settings, rng.random(2_000) < liked(*settings.T))

# The algorithm divides the space into boxes, ever smaller ones where it looks more closely.
base = ar.TreeUCB(dim=2, horizon=ROUNDS, box=OVEN, bonus=ar.bonus.anytime(history=len(history)))
replay = ar.ArtificialReplay(base, history)  # looks into the log when it would otherwise bake
full = ar.FullStart(base, history)  # reads the whole log first

baked = []
for _ in range(ROUNDS):
    setting = replay.ask()
    assert setting == full.ask()  # the same loaf, every time
    reward = float(rng.random() < liked(*setting))
    replay.tell(setting, reward)
    full.tell(setting, reward)
    baked.append(setting)

print(f"{ROUNDS} loaves, each baked alike by both; the last at {setting[0]:.0f} °C for {setting[1]:.0f} minutes")
for policy in (replay, full):
    print(f"{type(policy).__name__:17} used {policy.used:5,} of 2,000 samples, {len(policy.cells()):3} cells")

file = sys.argv[1] if len(sys.argv) > 1 else "metric-bandit.png"
draw_space(
    [replay, full],
    file,
    played=baked,
    title=f"The same {ROUNDS} actions, with {replay.unused / len(history):.0%} of the log never read",
    names=("oven temperature (°C)", "baking time (minutes)"),
    note="Replay reads about a cell only while it looks like the best one: the rest of the log changes nothing.",
)
print(f"the picture is in {file}")
