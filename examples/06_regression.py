"""A regression over prices: it reads the whole log, so that any rule is exact; ends in a picture of what it expects."""

import sys

import numpy as np

import artreplay as ar

rng = np.random.default_rng(3)
ROUNDS = 60


def sold(price):
    """The chance that a customer buys, times the price: best at 0.6. The shop does not know it."""
    return price * (1.2 - price) * 2.2


# 150 sales so far, at all prices.
prices = rng.random((150, 1))
history = ar.History(prices, rng.random(150) < sold(prices[:, 0]))

base = ar.PointRegression(dim=1, horizon=ROUNDS, side=16)
replay, full = ar.ArtificialReplay(base, history), ar.FullStart(base, history)
for _ in range(ROUNDS):
    price = replay.ask()
    assert price == full.ask()  # the same price, every time
    reward = float(rng.random() < sold(price[0]))
    replay.tell(price, reward)
    full.tell(price, reward)

print(f"{ROUNDS} prices, each asked alike by both; the last is {price[0]:.2f}")
print(f"Artificial Replay used {replay.used} of {len(history)} samples")
ar.plots.draw_surface(replay, sys.argv[1] if len(sys.argv) > 1 else "prices.png", names=["price"])
