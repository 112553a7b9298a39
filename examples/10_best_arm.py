"""How many rounds Track-and-Stop takes to find the best arm, from a log that holds mostly one arm.

Artificial Replay reads a row only when the algorithm asks for its arm, and Track-and-Stop does not ask for an arm of
which it has more than its share. So some of what the log knows stays unread, and must be made up for online. Agrawal et
al. (2023, "Optimal best-arm identification in bandits with access to offline data") say how few rounds are needed.

    python examples/10_best_arm.py [WORLDS]
"""

import math
import sys

import artreplay as ar

DELTA = 0.1  # how likely a recommended arm may be wrong
HALVINGS = 20  # of an interval in which a root lies
STARTS = ("ignorant", "artificial-replay", "full-start")


def kl(p, q):
    """The Kullback-Leibler divergence of two Bernoulli distributions, whose means are kept off 0 and 1."""
    p, q = (min(max(mean, 1e-9), 1.0 - 1e-9) for mean in (p, q))
    return p * math.log(p / q) + (1.0 - p) * math.log((1.0 - p) / (1.0 - q))


def evidence(best, best_share, other, share):
    """How much samples in these shares say against the two means being in the wrong order; and their common mean."""
    common = (best_share * best + share * other) / (best_share + share)
    return best_share * kl(best, common) + share * kl(other, common), common


def root(rises, low, high):
    """Where a function that rises becomes 0."""
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if rises(middle) > 0.0 else (middle, high)
    return 0.5 * (low + high)


def best_shares(means):
    """The shares of samples that tell the best arm apart soonest (Garivier and Kaufmann 2016, Theorem 5)."""
    best = max(range(len(means)), key=means.__getitem__)
    others = [arm for arm in range(len(means)) if arm != best]
    if any(means[arm] >= means[best] for arm in others):  # equals cannot be told apart
        return [1.0 / len(means)] * len(means)

    def ratio(arm, level):
        """The samples of an arm for each one of the best arm, so that the evidence against it is `level`."""
        x = root(lambda x: evidence(means[best], 1.0, means[arm], x / (1.0 - x))[0] - level, 0.0, 1.0 - 1e-9)
        return x / (1.0 - x)

    def balance(level):
        total = -1.0
        for arm in others:
            common = evidence(means[best], 1.0, means[arm], ratio(arm, level))[1]
            total += kl(means[best], common) / max(kl(means[arm], common), 1e-300)
        return total

    level = root(balance, 0.0, min(kl(means[best], means[arm]) for arm in others))
    shares = [1.0 if arm == best else ratio(arm, level) for arm in range(len(means))]
    return [share / sum(shares) for share in shares]


class TrackAndStop:
    """Keep to the best shares for the means seen so far (D-tracking), and stop when the evidence is enough."""

    def __init__(self, n_arms):
        self.counts, self.sums = [0] * n_arms, [0.0] * n_arms

    def propose(self):
        fewest, total = min(self.counts), sum(self.counts)
        if fewest < max(1.0, math.sqrt(total) - len(self.counts) / 2):
            return self.counts.index(fewest)
        shares = best_shares(self.means())
        owed = [total * share - count for share, count in zip(shares, self.counts, strict=True)]
        return owed.index(max(owed))

    def update(self, arm, reward):
        self.counts[arm] += 1
        self.sums[arm] += reward

    def means(self):
        return [total / count for total, count in zip(self.sums, self.counts, strict=True)]

    def recommend(self):
        """The best arm if every other is behind it with enough evidence, else None."""
        if min(self.counts) == 0:
            return None
        means, counts = self.means(), self.counts
        best = means.index(max(means))
        enough = math.log((1.0 + math.log(sum(counts))) / DELTA)
        others = (arm for arm in range(len(means)) if arm != best)
        return (
            best
            if all(evidence(means[best], counts[best], means[arm], counts[arm])[0] > enough for arm in others)
            else None
        )


def with_error(values):
    return f"{values.mean():.0f} ± {values.std(ddof=1) / math.sqrt(len(values)):.0f}"


def main(worlds):
    print(f"means over {worlds} worlds, ± one standard error; logs of 200 rows; delta = {DELTA}")
    print("means of arms  shares in log  start                rounds  more than full start  rows read  wrong")
    for means, log in (([0.6, 0.4], [0.9, 0.1]), ([0.6, 0.4], [0.5, 0.5]), ([0.6, 0.4, 0.3], [0.8, 0.1, 0.1])):
        env = ar.environments.KArmed(len(means), means=means, log=log)
        runs = {
            start: ar.simulate(
                TrackAndStop(len(means)), env, start, history=200, horizon=5_000, replications=worlds, seed=1,
                stop=lambda policy: policy.base.recommend(),
            )
            for start in STARTS
        }  # fmt: skip
        for start, one in runs.items():
            more = with_error(one.stopped - runs["full-start"].stopped) if start != "full-start" else ""
            setting = f"{'/'.join(map(str, means)):14} {'/'.join(map(str, log)):14} {start:18}"
            read, wrong = one.used[:, -1].mean(), (one.recommended != 0).mean()
            print(f"{setting} {with_error(one.stopped):>8} {more:>21} {read:10.0f} {wrong:6.0%}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
