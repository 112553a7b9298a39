"""Makes the examples of docs/log-worth.md: a drawn log, what the commands say of it, and their figures.

python docs/log_worth.py
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

HERE = Path(__file__).parent
PAGE = HERE / "log-worth.md"
SHOWN = re.compile(r"(```\n\$ artreplay [^\n]*\n)(.*?)(```)", re.DOTALL)


def draw_log(path: Path) -> None:
    """20,000 impressions of 12 banners with 2 to 9 % clicks, chosen with probabilities that were logged."""
    rng = np.random.default_rng(1)
    rates = np.linspace(0.02, 0.09, 12)
    chances = rng.dirichlet(np.full(12, 3.0))
    banners = rng.choice(12, 20_000, p=chances)
    names = np.array([f"banner-{letter}" for letter in "abcdefghijkl"])
    clicks = (rng.random(20_000) < rates[banners]).astype(int)
    table = pa.table({"banner": names[banners], "click": clicks, "chance": chances[banners]})
    pa.csv.write_csv(table, path)


def output(command: str) -> str:
    """What a command prints."""
    done = subprocess.run(
        [sys.executable, "-m", "artreplay", *command.split()], cwd=HERE, capture_output=True, text=True, check=True
    )
    return done.stdout


def main() -> None:
    """Run every command that the page shows, and put what it prints below it."""
    log = HERE / "banners.csv"
    draw_log(log)
    try:
        page = SHOWN.sub(
            lambda found: found[1] + output(found[1].splitlines()[1].removeprefix("$ artreplay ")) + found[3],
            PAGE.read_text(encoding="utf-8"),
        )
    finally:
        log.unlink()
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
