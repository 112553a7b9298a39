"""An algorithm of your own, its check, and the counterexample when it is wrong."""

import math

import artreplay as ar


class GreedyWithDoubt:
    """Plays the arm with the best mean plus a doubt that shrinks; `monotone` keeps the index from rising."""

    def __init__(self, n_arms: int, monotone: bool) -> None:
        self.n_arms = n_arms
        self.monotone = monotone
        self.count = [0] * n_arms
        self.total = [0.0] * n_arms
        self.index = [1.0] * n_arms

    def propose(self) -> int:
        return max(range(self.n_arms), key=lambda arm: (self.index[arm], -arm))

    def update(self, arm: int, reward: float) -> None:
        self.count[arm] += 1
        self.total[arm] += reward
        value = self.total[arm] / self.count[arm] + 0.4 / math.sqrt(self.count[arm])
        self.index[arm] = min(self.index[arm], value) if self.monotone else value


print(ar.testing.check_coupling(lambda: GreedyWithDoubt(3, monotone=True)))
try:
    ar.testing.check_coupling(lambda: GreedyWithDoubt(3, monotone=False))
except ar.testing.CheckFailed as found:
    print("\nwithout the running minimum:\n")
    print(found)
