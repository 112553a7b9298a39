"""Writes the tables of the docs about decisions and studies from docs/results.

python benchmarks/decision_tables.py            writes them
python benchmarks/decision_tables.py --check    says whether they are as the results have them
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Callable
from pathlib import Path

from tables_in_pages import filled, table

DOCS = Path(__file__).parent.parent / "docs"
PAGES = (
    "start/install.md",
    "start/which-algorithm.md",
    "understand/trusting-a-log.md",
    "how-to/studies.md",
    "how-to/serving.md",
    "understand/log-worth.md",
)
Row = dict[str, str]


def results() -> list[Row]:
    """What `decisions.py`, `studies.py`, `intervals.py` and `sizes.py` measured."""
    found: list[Row] = []
    for name in ("decisions.csv", "studies.csv", "serve.csv", "intervals.csv", "sizes.csv"):
        with (DOCS / "results" / name).open(newline="", encoding="utf-8") as file:
            found += csv.DictReader(file)
    return found


def number(text: str) -> str:
    """A number as people read it."""
    value = float(text)
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def measured(row: Row | None) -> str:
    """A mean with its standard error."""
    return "–" if row is None else f"{number(row['regret'])} ± {number(row['error'])}"


def by_size(rows: list[Row]) -> str:
    """Regret by the length of the log, and the share of the longest log that is read."""
    sizes = sorted({int(row["rows"]) for row in rows})
    found = {(row["algorithm"], int(row["rows"])): row for row in rows}
    lines = []
    for name in dict.fromkeys(row["algorithm"] for row in rows):
        longest = found[name, sizes[-1]]
        share = float(longest["read"]) / sizes[-1]
        lines.append([name, *(measured(found.get((name, size))) for size in sizes), f"{share:.0%}", longest["worlds"]])
    logs = ["no log" if size == 0 else f"{size:,} rows" for size in sizes]
    return table(["algorithm", *logs, "read of the longest", "worlds"], lines)


def in_one(rows: list[Row]) -> str:
    """Regret of each algorithm, and the rows it read."""
    lines = [[row["algorithm"], measured(row), number(row["read"]), row["worlds"]] for row in rows]
    return table(["", "regret", "rows read", "worlds"], lines)


def wrong_logs(rows: list[Row]) -> str:
    """Regret by what is wrong with the log, and by the drift that is allowed for."""
    kinds = list(dict.fromkeys(row["setting"] for row in rows))
    columns = list(dict.fromkeys((row["algorithm"], row["drift"]) for row in rows))
    found = {(row["setting"], row["algorithm"], row["drift"]): row for row in rows}
    lines = []
    for name, drift in columns:
        of = name if drift == "0" else f"{name}, drift={drift}"
        lines.append([of, *(measured(found.get((kind, name, drift))) for kind in kinds)])
    return table(["", *kinds], lines)


def by_attack(rows: list[Row]) -> str:
    """Regret by the attack, one attack in each line."""
    attacks = list(dict.fromkeys(row["setting"] for row in rows))
    columns = list(dict.fromkeys((row["algorithm"], row["drift"]) for row in rows))
    found = {(row["setting"], row["algorithm"], row["drift"]): row for row in rows}
    heads = [name if drift == "0" else f"{name}, drift={drift}" for name, drift in columns]
    return table(["", *heads], [[at, *(measured(found.get((at, *column))) for column in columns)] for at in attacks])


def reading_of_wrong_logs(rows: list[Row]) -> str:
    """What share of the log is read, by what is wrong with it."""
    kinds = list(dict.fromkeys(row["setting"] for row in rows))
    found = {(row["setting"], row["algorithm"]): row for row in rows if row["drift"] == "0" and row["rows"] != "0"}
    names = dict.fromkeys(name for _, name in found)
    shares = {at: f"{float(row['read']) / float(row['rows']):.0%}" for at, row in found.items()}
    return table(["", *kinds], [[name, *(shares[kind, name] for kind in kinds)] for name in names])


def alarm_shares(rows: list[Row]) -> str:
    """In how many worlds a contradiction is found."""
    lines = [[row["setting"], f"{float(row['regret']):.0%}", row["worlds"]] for row in rows]
    return table(["the log", "a contradiction is found", "worlds"], lines)


def rates(rows: list[Row]) -> str:
    """Decisions a second, and as many times what Optuna does."""
    found = {(row["setting"], row["name"]): float(row["value"]) for row in rows}
    settings = list(dict.fromkeys(row["setting"] for row in rows))
    lines = []
    for name in dict.fromkeys(row["name"] for row in rows):
        ratios = [f"{found[setting, name]:,.1f}" for setting in settings[1:]] if name.startswith("study") else []
        lines.append([name, f"{found['a second', name]:,.0f}", *(ratios or [""] * len(settings[1:]))])
    return table(["", "a second", *(f"× {setting}" for setting in settings[1:])], lines)


def starts(rows: list[Row]) -> str:
    """What a start takes."""
    lines = [
        [row["name"], f"{float(row['value']):,.2f}" if float(row["value"]) < 10 else number(row["value"])]
        for row in rows
    ]
    return table([f"{int(rows[0]['setting'].split()[0]):,} decisions", ""], lines)


def coverage(rows: list[Row]) -> str:
    """How often an interval holds, and how wide it is."""
    found = {(row["setting"], row["method"]): row for row in rows}
    lines = []
    for setting in dict.fromkeys(row["setting"] for row in rows):
        cells = [f"{100 * float(found[setting, name]['held']):.1f} %" for name in ("inspect", "normal")]
        widths = [f"{float(found[setting, name]['width']):.3f}" for name in ("inspect", "normal")]
        lines.append([setting, cells[0], widths[0], cells[1], widths[1]])
    heads = ["the arm has", "`inspect` holds", "its width", "the normal interval holds", "its width"]
    return table(heads, lines)


def services(rows: list[Row]) -> str:
    """How much services do at full speed, and how long an answer takes at half of it."""
    found = {(row["what"], row["rate"]): row for row in rows}
    by_hand = next(float(row["pairs"]) for row in rows if row["what"].startswith("twenty") and row["rate"] == "full")
    lines = []
    for name in dict.fromkeys(row["what"] for row in rows):
        full, half = found[name, "full"], found[name, "half"]
        ratio = float(full["pairs"]) / by_hand
        lines.append([name, number(full["pairs"]), f"{ratio:.1f}", number(half["p50"]), number(half["p99"])])
    heads = ["", "decisions with rewards a second", "× the twenty lines", "ms, half of the answers", "ms, 99 in 100"]
    return table(heads, lines)


def in_flight(rows: list[Row]) -> str:
    """Regret with decisions in flight, and how many times that without any."""
    settings = list(dict.fromkeys(row["setting"] for row in rows))
    found = {(row["setting"], row["name"]): row for row in rows}
    lines = []
    for name in dict.fromkeys(row["name"] for row in rows if not row["name"].startswith("0 in flight, not")):
        cells = []
        for setting in settings:
            row = found[setting, name]
            ratio = "" if name.startswith("0 ") else f" ({float(row['ratio']):.2f} ± {float(row['ratio_error']):.2f})"
            cells.append(f"{number(row['value'])} ± {number(row['error'])}{ratio}")
        words = name.replace("0 in flight, counted", "none in flight") if name.startswith("0 ") else name
        lines.append([re.sub(r"\d+", lambda found: f"{int(found[0]):,}", words), *cells])
    heads = [re.sub(r"K=(\d+) T=(\d+)", lambda m: f"{m[1]} arms, {int(m[2]):,} decisions", name) for name in settings]
    return table(["", *heads], lines)


def sizes(rows: list[Row]) -> str:
    """Megabytes of an environment with these extras, and milliseconds until they are imported."""
    lines = []
    for row in rows:
        name = f"artreplay[{row['extras']}]" if row["extras"] else "artreplay"
        bare = int(row["megabytes"]) - int(row["bytecode"])
        lines.append([f"`{name}`", row["megabytes"], str(bare), row["largest"], row["import_ms"], row["use_ms"]])
    heads = ["", "MB", "MB without bytecode", "the largest packages, MB", "ms to import", "ms to first use"]
    return table(heads, lines)


TABLES: dict[str, tuple[str, Callable[[list[Row]], str]]] = {
    "arms": ("arms", by_size),
    "many": ("many", by_size),
    "clicks": ("clicks", by_size),
    "length": ("length", in_one),
    "peers": ("peers", by_size),
    "stale": ("stale", wrong_logs),
    "reading": ("stale", reading_of_wrong_logs),
    "alarms": ("alarms", alarm_shares),
    "poisoned": ("poisoned", by_attack),
    "speed": ("speed", rates),
    "start": ("start", starts),
    "flight": ("flight", in_flight),
    "serve": ("serve", services),
    "coverage": ("coverage", coverage),
    "sizes": ("sizes", sizes),
}


def written(page: str, rows: list[Row]) -> str:
    """A page with its tables as the results have them."""

    def made(name: str) -> str:
        part, make = TABLES[name]
        return make([row for row in rows if row["part"] == part])

    return filled(page, made)


def main() -> None:
    rows = results()
    for name in PAGES:
        file = DOCS / name
        before = file.read_text(encoding="utf-8")
        after = written(before, rows)
        if "--check" in sys.argv[1:] and before != after:
            raise SystemExit(f"the tables of docs/{name} are not those of docs/results: run {Path(__file__).name}")
        file.write_text(after, encoding="utf-8")


if __name__ == "__main__":
    main()
