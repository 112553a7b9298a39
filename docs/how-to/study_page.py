"""Makes docs/images/study-page.png: a month of an invented shop as the page about its study, in Chromium.

python docs/how-to/study_page.py
"""

from __future__ import annotations

import random
import shutil
import subprocess
import tempfile
from datetime import timedelta
from pathlib import Path

import artreplay as ar

PICTURE = Path(__file__).parent.parent / "images/study-page.png"
CLICKS = {"spring sale": 0.04, "free shipping": 0.06, "gift card": 0.03, "new shoes": 0.05, "outlet": 0.10}
BEGIN, HOUR, VISITORS, DAYS = 1_788_000_000.0, 3600.0, 24, 30  # visitors in an hour
SIZE = 1100, 1320


def main() -> None:
    """Make the picture."""
    with tempfile.TemporaryDirectory() as folder:
        place, page = Path(folder) / "banners.study", Path(folder) / "page.html"
        live(place, page)
        browser = shutil.which("chromium") or shutil.which("chromium-browser")
        if browser is None:
            raise SystemExit("this needs Chromium")
        size = ",".join(map(str, SIZE))
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=3000"]
        subprocess.run(
            [browser, *options, f"--window-size={size}", f"--screenshot={PICTURE}", page.as_uri()],
            check=True, capture_output=True, env={"TZ": "UTC", "HOME": folder},
        )  # fmt: skip


def live(place: Path, page: Path) -> None:
    """Let visitors come for a month, and write what the page says at its end. One banner is added after two weeks."""
    random_, now = random.Random(1), [BEGIN]
    old = [name for name in CLICKS if name != "outlet"]
    shown = [random_.choice(old) for _ in range(2000)]
    log = ar.History(shown, [float(random_.random() < CLICKS[name]) for name in shown])
    base = ar.KLUCB(arms=old, horizon=20_000)
    wait = timedelta(hours=6)
    with ar.Study.create(place, base, log, wait=wait, holdout=0.1, clock=lambda: now[0]) as study:

        def an_hour(inside: ar.Study) -> None:
            for _ in range(VISITORS):
                decision = inside.decide(subject=f"visitor {random_.randrange(10**6)}")
                if random_.random() < CLICKS[str(decision.action)]:
                    inside.reward(decision.id, 1.0)
                now[0] += HOUR / VISITORS

        for hour in range(24 * DAYS):
            if hour == 24 * 14:
                study.add_arm("outlet")
            study.together(an_hour)
        ar.plots.write_study_report(study, page)


if __name__ == "__main__":
    main()
