"""A web shop with simulated visitors, for one minute: `python examples/shop/visitors.py` starts all of it.

It makes a study over a log of last month, serves it, lets visitors come in eight threads, and prints where to look.
Visitors click late or never, lose connections and ask again, and one banner is added after half of the time. A tenth
of them see a banner of a fixed choice, so that the page can say what the study is worth.

    pip install "artreplay[serve]"
    python examples/shop/visitors.py              one minute, then the service stops
    SECONDS=10 python examples/shop/visitors.py   a shorter look
"""

from __future__ import annotations

import heapq
import os
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
import webbrowser
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import artreplay as ar
from artreplay.errors import StudyRefused, StudyUnavailable

SECONDS = float(os.environ.get("SECONDS") or 60)
THREADS = 8
WAIT = timedelta(seconds=5)  # a visitor who has not clicked by then will not; in a real shop, hours or days
DEFAULT = "spring sale"  # what is shown where the service does not answer in time
CLICKS = {"spring sale": 0.04, "free shipping": 0.06, "gift card": 0.03, "new shoes": 0.05, "outlet": 0.10}


def last_month(rows: int = 5_000) -> ar.History:
    """Make the log that the shop has: banners that were shown in turn, and whether they were clicked."""
    random_ = random.Random(1)
    names = [name for name in CLICKS if name != "outlet"]  # nobody has tried it yet
    shown = [random_.choice(names) for _ in range(rows)]
    return ar.History(shown, [float(random_.random() < CLICKS[name]) for name in shown])


def serve(place: Path) -> tuple[subprocess.Popen[bytes], str]:
    """Start the service, and return it with its address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, "-m", "artreplay", "serve", str(place), "--port", str(port)])
    address = f"http://127.0.0.1:{port}"
    with ar.Study.connect(f"{address}/v1/studies/{place.stem}", timeout=30.0) as study:
        study.facts()  # is repeated until the service is there
    return process, address


def visitors(url: str, number: int, until: float, counts: list[int]) -> None:
    """Let visitors come one after another, and tell their clicks when they happen."""
    random_ = random.Random(number)
    clicks: list[tuple[float, str]] = []
    missed: list[tuple[str, float]] = []  # visitors who came while the service did not answer
    with ar.Study.connect(url, timeout=1.0) as study:
        while (now := time.time()) < until:
            visit = f"visitor {number}.{counts[0]}"
            counts[0] += 1
            try:
                while clicks and clicks[0][0] <= now:
                    with suppress(StudyRefused):  # the click came after the wait, and the decision has counted as 0
                        study.reward(clicks[0][1], 1.0)
                    heapq.heappop(clicks)
                    counts[1] += 1
                while missed:
                    study.observe(DEFAULT, missed[0][1], missed[0][0])
                    missed.pop(0)
                decision = study.decide(visit, subject=visit, info={"page": "home"})
                if random_.random() < 0.05:  # the visitor reloads the page, and must see the same banner
                    assert study.decide(visit).action == decision.action
                if random_.random() < CLICKS[str(decision.action)]:
                    heapq.heappush(clicks, (now + random_.expovariate(1.0), decision.id))
            except StudyUnavailable:  # show the default now, and tell what came of it later
                missed.append((visit, float(random_.random() < CLICKS[DEFAULT])))
            time.sleep(random_.expovariate(25.0))


def main() -> None:
    """Run the shop."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "banners.study"
        banners = [name for name in CLICKS if name != "outlet"]
        base = ar.KLUCB(arms=banners, horizon=100_000)
        control = dict.fromkeys(banners, 1.0)  # what the shop did before: all banners in turn
        ar.Study.create(place, base, last_month(), wait=WAIT, holdout=0.1, control=control).close()
        process, address = serve(place)
        url = f"{address}/v1/studies/banners"
        print(f"Look at {address}/studies/banners")
        if sys.stdout.isatty():
            webbrowser.open(f"{address}/studies/banners")
        try:
            counts = [[0, 0] for _ in range(THREADS)]
            until = time.time() + SECONDS
            threads = [
                threading.Thread(target=visitors, args=[url, number, until, counts[number]])
                for number in range(THREADS)
            ]
            for thread in threads:
                thread.start()
            time.sleep(SECONDS / 2)
            with ar.Study.connect(url) as study:
                study.add_arm("outlet")
            print("A new banner is added: outlet")
            for thread in threads:
                thread.join()
            time.sleep(0.5)
            with ar.Study.connect(url) as study:
                for arm in study.arms():
                    print(f"{arm.label:15} {arm.online:5,} decisions, mean {arm.mean:.3f}")
            made, clicked = (sum(column) for column in zip(*counts, strict=True))
            print(f"{made:,} visitors, {clicked:,} clicks")
        finally:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    main()
