"""What each planner finds in a year, in both simulators, park by park: a run that is cut short goes on where it was.

    make bench-patrol PARKS=40 SEED=900001

adds a row to a table for every kind of park and every seed that it lacks, and prints the means with the paired
differences from our planner. The rows of the pages are in docs/results/patrol-planners.csv.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from other_worlds import KINDS, invent, rate_now, year_elsewhere
from patrol_tables import HELD, NAMES, UNDER_REPLAY, means, read
from rivals import PLANNERS
from worlds import CONDITIONS, Ground
from years import held_by_ranges, year_of

BUDGET, PLACES, WAYPOINTS = 20.0, 5, 20_000


def rows(seed: int, kinds: Sequence[str]) -> Iterator[dict[str, float | int | str]]:
    """A year with every planner in the park of a seed, in each kind of park."""
    ground = Ground.invent(seed, WAYPOINTS) if set(kinds) & set(CONDITIONS) else None
    for kind in kinds:
        found: dict[str, float | int | str] = {"kind": kind, "seed": seed}
        if kind in KINDS:
            world = invent(kind, seed)
            held = held_by_ranges(world.visits, world.mask, world.first, rate_now(world))
            for name in (*NAMES, *UNDER_REPLAY):
                world = invent(kind, seed)
                found[name] = year_elsewhere(world, PLANNERS[name](world, BUDGET, PLACES))
        elif ground is not None:
            park = ground.world(kind)
            held = held_by_ranges(park.visits, park.mask, park.first, park.quiet().now(park.weekly(0)))
            for name in NAMES:
                found[name] = int(year_of(park, PLANNERS[name](park, BUDGET, PLACES)).finds.sum())
        yield found | {name: round(share, 3) for name, share in zip(HELD, held, strict=True)}


def main() -> None:
    """Play what the file lacks, and print the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("file", type=Path)
    options.add_argument("--parks", type=int, default=40)
    options.add_argument("--seed", type=int, default=900_001)
    options.add_argument("--kinds", nargs="*", default=[*CONDITIONS, *KINDS])
    asked = options.parse_args()
    header = ("kind", "seed", *NAMES, *UNDER_REPLAY, *HELD)
    if not asked.file.exists():
        asked.file.write_text(",".join(f'"{name}"' for name in header) + "\n")
    played = read(asked.file)
    if played and tuple(played[0]) != header:
        raise SystemExit(f"{asked.file} must have the columns {', '.join(header)}: take another file")
    there = {(row["kind"], int(row["seed"])) for row in played}
    for seed in range(asked.seed, asked.seed + asked.parks):
        lacking = [kind for kind in asked.kinds if (kind, seed) not in there]
        for row in rows(seed, lacking) if lacking else ():
            with open(asked.file, "a", newline="") as file:
                csv.DictWriter(file, header, lineterminator="\n").writerow(row)
    for kind, by_planner in means(read(asked.file)).items():
        for name, of in by_planner.items():
            print(f"{kind:13s} {name:34s} {of.finds:6.1f}   ours {of.more:+5.1f} ± {of.error:.1f}")


if __name__ == "__main__":
    main()
