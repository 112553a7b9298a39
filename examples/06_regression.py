"""What a regression thinks may rise and fall, and replay is still exact; ends in a picture of why."""

import sys

import matplotlib.pyplot as plt
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

# Four cells of four prices each. Open, a cell is worth its cap; closed, what a surface fitted to its samples says.
base = ar.PointRegression(dim=1, horizon=ROUNDS, side=16, cells=4)
replay, full = ar.ArtificialReplay(base, history), ar.FullStart(base, history)

values = []
for _ in range(ROUNDS):
    price = replay.ask()
    assert price == full.ask()  # the same price, every time
    values.append([max(cell.index for cell in replay.cells()[first : first + 4]) for first in range(0, 16, 4)])
    reward = float(rng.random() < sold(price[0]))
    replay.tell(price, reward)
    full.tell(price, reward)

print(f"{ROUNDS} prices, each asked alike by both; the last is {price[0]:.2f}")
print(f"Artificial Replay used {replay.used} of {len(history)} samples")

figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
used = [sum(cell.used for cell in replay.cells()[first : first + 4]) for first in range(0, 16, 4)]
for number, line in enumerate(np.array(values).T):
    logged = sum(cell.logged for cell in replay.cells()[4 * number : 4 * number + 4])
    kind = "read to the end: closed" if used[number] == logged else f"{used[number]} of {logged} rows read: open"
    axes.plot(line, ("-", "--", "-.", ":")[number], label=f"prices from {number / 4:g}: {kind}")
axes.set_xlabel("round")
axes.set_ylabel("worth of the best box of a cell")
axes.set_title(
    "An open cell is worth a cap that only falls;\na closed one what is thought of it, which may rise", fontsize=10
)
axes.legend(fontsize=8)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "while-open.png", dpi=130)
