"""What others report: numbers printed in the paper, and numbers that the authors' code gives when it is run again.

The two differ in places. The authors' numbers for finite arms are means and standard errors over 60 seeds, with K=10,
T=1,000, Bernoulli rewards, arms logged uniformly and log(1 + T) in the bonus. The error of an unused share is that of
the used share. Those for allocations are taken to be of one run each: their counts of nodes are all those of whole
trees, 3 + 4k for three of them.
"""

from __future__ import annotations

from reproduction.setting import FULL, IGNORANT, REPLAY

TITLE = "Artificial Replay: A Meta-Algorithm for Harnessing Historical Data in Bandits"
PREPRINT = "arXiv:2210.00025"
AUTHORS = ("Siddhartha Banerjee", "Sean R. Sinclair", "Milind Tambe", "Lily Xu", "Christina Lee Yu")

Told = tuple[float, float | None]  # a mean and its standard error, or None if it is not reported

RANDOM, FIRST, BY_END, UNUSED = "random", "used before the first online action", "used by T", "unused %"

# (arms in a round, rows of the log) → what was measured → the authors' code
# fmt: off
ARMS: dict[tuple[int, int], dict[str, Told]] = {
    (1, 100): {
        RANDOM: (421, 11), IGNORANT: (112, 9), FULL: (92, 8), REPLAY: (91, 8),
        FIRST: (10.3, 0.4), BY_END: (58, 4), UNUSED: (42, 4),
    },
    (1, 1000): {
        RANDOM: (419, 11), IGNORANT: (108, 8), FULL: (29, 4), REPLAY: (30, 4),
        FIRST: (178, 12), BY_END: (396, 27), UNUSED: (60, 2.7),
    },
    (1, 10_000): {
        RANDOM: (422, 11), IGNORANT: (110, 9), FULL: (2.9, 1.0), REPLAY: (3.5, 1.4),
        FIRST: (1551, 70), BY_END: (1798, 92), UNUSED: (82, 0.92),
    },
    (3, 100): {
        RANDOM: (963, 24), IGNORANT: (144, 4), FULL: (117, 4), REPLAY: (117, 4),
        FIRST: (29.5, 0.6), BY_END: (98, 1), UNUSED: (2, 1),
    },
    (3, 1000): {
        RANDOM: (965, 24), IGNORANT: (145, 4), FULL: (28, 2), REPLAY: (28, 2),
        FIRST: (471, 14), BY_END: (741, 13), UNUSED: (26, 1.3),
    },
    (3, 10_000): {
        RANDOM: (962, 24), IGNORANT: (142, 4), FULL: (0.7, 0.3), REPLAY: (0.8, 0.3),
        FIRST: (3872, 62), BY_END: (4189, 92), UNUSED: (58, 0.92),
    },
}
# fmt: on

# The same keys → the number printed in the paper.
ARMS_IN_PAPER: dict[tuple[int, int], dict[str, float]] = {
    (1, 1000): {FIRST: 117, BY_END: 396},
    (1, 10_000): {UNUSED: 58.2},
    (3, 1000): {FIRST: 471, BY_END: 740},
}

# Regret with a uniform log: (algorithm, policy, rows of the log). Without the fallback, 30 seeds.
RANDOMISED: dict[tuple[str, str, int], Told] = {
    ("Thompson", IGNORANT, 1000): (26.7, 1.7),
    ("Thompson", FULL, 100): (13.0, 1.5),
    ("Thompson", REPLAY, 100): (10.3, 1.4),
    ("Thompson", FULL, 1000): (2.8, 0.5),
    ("Thompson", REPLAY, 1000): (3.4, 1.1),
    ("IDS published", IGNORANT, 1000): (20, 3),
    ("IDS published", FULL, 1000): (142, 22),
    ("IDS published", REPLAY, 1000): (8.6, 1.9),
    ("IDS without fallback", FULL, 1000): (3.7, 1.9),
    ("IDS without fallback", REPLAY, 1000): (10.3, 2.6),
}

# Regret without noise, 300 rows (600 for piecewise linear, drawn twice by a slip): (cells, domain) → policy.
ALLOCATION: dict[tuple[str, str], dict[str, float]] = {
    ("fixed", "piecewise linear"): {IGNORANT: 1377, FULL: 1292, REPLAY: 1292},
    ("fixed", "quadratic"): {IGNORANT: 992, FULL: 956, REPLAY: 956},
    ("adaptive", "piecewise linear"): {IGNORANT: 158, FULL: 112, REPLAY: 117},
    ("adaptive", "quadratic"): {IGNORANT: 177, FULL: 163, REPLAY: 165},
}


def _leaves(nodes: dict[float, float]) -> dict[float, float]:
    """Count the leaves of three trees, one for each level, of which the authors count all nodes.

    A node that divides has four children.
    """
    return {share: (3.0 * count + 3.0) / 4.0 for share, count in nodes.items()}


# An imbalanced log of 10,000 rows: what → policy → by the share of bad places.
IMBALANCED: dict[str, dict[str, dict[float, float]]] = {
    "regret": {
        FULL: {0.1: 67, 0.5: 70, 0.7: 76, 0.9: 91},
        REPLAY: {0.1: 74, 0.5: 76, 0.7: 87, 0.9: 104},
        IGNORANT: {0.1: 178, 0.5: 178, 0.7: 178, 0.9: 178},
    },
    "unused %": {REPLAY: {0.1: 46, 0.5: 54, 0.7: 70, 0.9: 84}},
    "regions": {
        FULL: _leaves({0.1: 799, 0.5: 763, 0.7: 583, 0.9: 583}),
        REPLAY: _leaves({0.1: 535, 0.5: 519, 0.7: 243, 0.9: 243}),
    },
}
REGIONS_IN_PAPER = {REPLAY: _leaves({0.1: 446, 0.9: 356}), FULL: _leaves({0.1: 688, 0.9: 614})}
