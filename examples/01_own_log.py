"""A log of banner clicks in a CSV file, and the next banner to show."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.csv

import artreplay as ar

CLICKS = """banner,click
summer,0
summer,1
winter,0
summer,1
spring,0
winter,0
summer,0
spring,1
"""

with TemporaryDirectory() as folder:
    file = Path(folder) / "clicks.csv"
    file.write_text(CLICKS)
    log = pyarrow.csv.read_csv(file)

history = ar.History.from_frame(log, unit="banner", reward="click")
base = ar.KLUCB(arms=["spring", "summer", "autumn", "winter"], horizon=1_000)
policy = ar.ArtificialReplay(base, history)

for click in (0.0, 1.0, 0.0):
    banner = policy.ask()
    print(f"show {banner}, {policy.used} of {len(history)} samples read so far")
    policy.tell(banner, click)

print("\nbanner   shown   mean   index")
for cell in policy.cells():
    print(f"{cell.unit:8} {cell.count:5} {cell.mean:6.2f} {cell.index:7.2f}")
