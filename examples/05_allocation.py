"""Two days of patrols split over places of a park, from a log made mostly around the station; ends in a picture."""

import sys

import numpy as np

import artreplay as ar
from artreplay.plots import draw_space

rng = np.random.default_rng(5)
PARK = ((0.0, 16.0), (0.0, 16.0))  # km
DAYS = (0.5, 1.0)  # how long a place can be patrolled
ROUNDS = 400


def found(places, days):
    """The chance that a patrol finds a snare: half a day is worth most at the ridge, a whole one at the waterhole."""
    ridge, waterhole = (1 - ((places - spot) ** 2).sum(axis=-1) / 36 for spot in ((7, 9), (11, 9)))
    return 0.05 + np.where(days == 1, 0.9 * waterhole, 0.45 * ridge).clip(0)


# 2,000 patrols so far, most of them around the station in the south-west, where little is found.
station = abs(rng.normal(0, 2, size=(1_600, 2)))
elsewhere = rng.uniform(0, 16, size=(400, 2))
places = rng.permutation(np.concatenate([station, elsewhere]))
days = rng.choice(DAYS, 2_000)
history = ar.History(places, rng.random(2_000) < found(places, days), levels=days)

# In each round two days are split over at most five places: half a day or a whole one each.
base = ar.TreeAllocation(dim=2, levels=DAYS, budget=2, max_units=5, horizon=ROUNDS, epsilon=1 / 8, box=PARK)
replay = ar.ArtificialReplay(base, history)  # looks into the log when it would otherwise patrol
full = ar.FullStart(base, history)  # reads the whole log first

for _ in range(ROUNDS):
    patrols = replay.ask()
    assert patrols == full.ask()  # the same patrols, every time
    rewards = [float(rng.random() < found(np.array(place), time)) for place, time in patrols]
    replay.tell(patrols, rewards)
    full.tell(patrols, rewards)

print(f"{ROUNDS} rounds, the same patrols by both; the last were")
for place, time in patrols:
    print(f"  {time:3} days at {place[0]:4} km east, {place[1]:4} km north")
for policy in (replay, full):
    print(f"{type(policy).__name__:17} used {policy.used:5,} of 2,000 samples, {len(policy.cells()):3} cells")

file = sys.argv[1] if len(sys.argv) > 1 else "allocation.png"
draw_space(
    [replay, full],
    file,
    played=patrols,
    played_name="patrols of the last round (larger: the whole day)",
    title=f"The same patrols in {ROUNDS} rounds, with {replay.unused / len(history):.0%} of the log never read",
    names=("km east", "km north"),
    note="The level is how many days a patrol takes. Replay reads about a cell only while a patrol there looks best.",
)
print(f"the picture is in {file}")
