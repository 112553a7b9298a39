"""Prints the numbers of continuous.md, which are means over replications with their standard errors: `make numbers`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Literal

import artreplay as ar
from artreplay.engine import mean_and_error
from artreplay.environments import PiecewiseLinear, Quadratic

HORIZON = int(os.environ.get("HORIZON", "1000"))
REPLICATIONS = int(os.environ.get("REPLICATIONS", "40"))
EFFORT: dict[str, Any] = {"levels": (0.5, 1.0), "budget": 2.0, "max_units": 5}
SIZES = (0, 300, 3000)
DOMAINS = (Quadratic, PiecewiseLinear)


def main() -> None:
    """Print one table after another, as Markdown."""
    print_table("What a log is worth", ("domain", "no log", *(f"log of {rows:,}" for rows in SIZES[1:])), worth())
    columns = ("bad share", "rows read", "leaves, replay", "leaves, full start", "regret")
    print_table("A log of 10,000 in bad places", columns, imbalanced())


def print_table(title: str, columns: tuple[str, ...], rows: Iterator[list[str]]) -> None:
    """Print a table as each of its rows is ready."""
    print(f"\n{title}\n", f"| {' | '.join(columns)} |", f"|{' --- |' * len(columns)}", sep="\n", flush=True)
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)


def worth() -> Iterator[list[str]]:
    """Regret of trees and of a grid, by the size of the log."""
    for rule in ("finest", "paper"):
        for noise in ("none", "bernoulli"):
            replications = REPLICATIONS if noise == "none" else 10 * REPLICATIONS
            for domain in DOMAINS:
                regrets = (regret(tree(rule), domain(noise=noise), rows, replications) for rows in SIZES)
                yield [f"{domain.__name__}, {noise}, rule {rule}", *regrets]
    grid = ar.GridAllocation(2, **EFFORT, horizon=HORIZON, cells_per_side=32)
    yield ["Quadratic, none, fixed grid", *(regret(grid, Quadratic(noise="none"), rows) for rows in SIZES)]


def imbalanced() -> Iterator[list[str]]:
    """What replay uses of a log that lies in bad places, and the leaves it ends with."""
    for share in (0.1, 0.5, 0.7, 0.9):
        env = Quadratic(noise="none", bad_share=share)
        replay, full = (
            ar.simulate(tree(), env, start, 10_000, HORIZON, REPLICATIONS)
            for start in ("artificial-replay", "full-start")
        )
        yield [f"{share:.0%}", *map(shown, (replay.used[:, -1], replay.cells, full.cells, full.regret[:, -1]))]


def tree(rule: Literal["finest", "paper"] = "finest") -> ar.TreeAllocation:
    """Adaptive cells with their defaults, or with the paper's rule."""
    return ar.TreeAllocation(2, **EFFORT, horizon=HORIZON, epsilon=1 / 32, rule=rule)


def regret(base: Any, env: Any, rows: int, replications: int = REPLICATIONS) -> str:
    """Regret at the horizon, with the whole log shown first."""
    start = "full-start" if rows else "ignorant"
    runs = ar.simulate(base, env, start, rows, HORIZON, replications, keep="final")
    return shown(runs.regret[:, -1])


def shown(values: Any) -> str:
    """A mean with its standard error."""
    mean, error = mean_and_error(values)
    return f"{mean:,.0f} ± {error:,.1f}" if error < 3 else f"{mean:,.0f} ± {error:,.0f}"


if __name__ == "__main__":
    main()
