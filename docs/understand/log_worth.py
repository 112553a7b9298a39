"""Makes the examples of docs/understand/log-worth.md: drawn logs, what the commands say of them, and their figures.

python docs/understand/log_worth.py
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
PAGE, IMAGES = HERE / "log-worth.md", HERE.parent / "images"
SHOWN = re.compile(r"(```\n\$ artreplay [^\n]*\n)(.*?)(```)", re.DOTALL)


def draw_logs(folder: Path) -> list[Path]:
    """The logs of the page, as files."""
    logs = {folder / "banners.csv": draw_banners(), folder / "clicks.csv": draw_clicks()}
    for path, log in logs.items():
        pa.csv.write_csv(log, path)
    return list(logs)


def draw_banners() -> pa.Table:
    """20,000 impressions of 12 banners with 2 to 9 % clicks, chosen with probabilities that were logged."""
    rng = np.random.default_rng(1)
    rates = np.linspace(0.02, 0.09, 12)
    chances = rng.dirichlet(np.full(12, 3.0))
    banners = rng.choice(12, 20_000, p=chances)
    names = np.array([f"banner-{letter}" for letter in "abcdefghijkl"])
    clicks = (rng.random(20_000) < rates[banners]).astype(int)
    return pa.table({"banner": names[banners], "click": clicks, "chance": chances[banners]})


def draw_clicks() -> pa.Table:
    """6,000 impressions of three arms. The worst was shown mostly at position 1, where people click most."""
    rng = np.random.default_rng(2)
    position, age = rng.integers(1, 4, size=6000), rng.integers(18, 70, size=6000)
    arms = np.where((position == 1) & (rng.random(6000) < 0.8), 0, rng.integers(3, size=6000))
    rates = np.array([0.05, 0.06, 0.08])[arms] + np.array([0.2, 0.06, 0.0])[position - 1]
    return pa.table({"arm": arms, "click": (rng.random(6000) < rates).astype(int), "position": position, "age": age})


def output(command: str) -> str:
    """What a command prints."""
    done = subprocess.run(
        [sys.executable, "-m", "artreplay", *command.split()], cwd=IMAGES, capture_output=True, text=True, check=True
    )
    return done.stdout


def main() -> None:
    """Run every command that the page shows, and put what it prints below it."""
    logs = draw_logs(IMAGES)
    try:
        page = SHOWN.sub(
            lambda found: found[1] + output(found[1].splitlines()[1].removeprefix("$ artreplay ")) + found[3],
            PAGE.read_text(encoding="utf-8"),
        )
    finally:
        for log in logs:
            log.unlink()
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
