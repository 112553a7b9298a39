"""Writes the tables and the figure of docs/how-to/logs.md about indexed logs from benchmarks/stores.csv.

python benchmarks/store_tables.py            writes them
python benchmarks/store_tables.py --check    says whether the tables are as the results have them
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Any

from tables_in_pages import filled, table

ROOT = Path(__file__).parent.parent
PAGE, FIGURE = ROOT / "docs/how-to/logs.md", ROOT / "docs/images/stores-growth.png"
POWERS = {6: "10⁶", 7: "10⁷", 8: "10⁸"}
Found = dict[tuple[str, int, int], dict[str, dict[str, str]]]


def results() -> Found:
    """What `stores.py` measured: by means, rows and arms."""
    found: Found = {}
    with open(ROOT / "benchmarks/stores.csv", newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["arms"]:
                found.setdefault((row["means"], int(row["rows"]), int(row["arms"])), {})[row["measure"]] = row
    return found


def rows_and_arms(rows: int, arms: int) -> str:
    """The size of a log as people read it."""
    return f"{POWERS[len(str(rows)) - 1]}, {arms:,}"


def ratio(full: dict[str, str], other: dict[str, str] | None) -> str:
    """How many times sooner something comes than a full start."""
    if other is None:
        return "–"
    value = float(full["seconds"]) / float(other["seconds"])
    return f"{value:.0f}×" if value >= 9.5 else f"{value:.1f}×" if value >= 0.095 else f"{value:.2f}×"


def seconds(one: dict[str, str] | None) -> str:
    """The processor time that something took."""
    if one is None:
        return "–"
    value = float(one["seconds"])
    return f"{value:.0f} s" if value >= 9.5 else f"{value:.2g} s"


def table_of(found: Found, means: str) -> str:
    """Ratios within each line, against the exact full start over the same folder."""
    if means == "PostgreSQL":
        return table_of_postgres(found)
    head = ["rows, arms", "indexing, once", "full start", "replay", "its rows"]
    head += ["`GROUP BY` (DuckDB)", "window function (DuckDB)"]
    lines = []
    for (kind, rows, arms), line in sorted(found.items()):
        if kind == means and "full_start" in line:
            full, replay = line["full_start"], line["replay"]
            part = float(replay["read"]) / float(full["read"])
            share = f"{100 * part:.2g} %" if part < 0.995 else f"{100 * part:.0f} %"
            others = [ratio(full, line.get(name)) for name in ("group_by", "window")]
            first = [rows_and_arms(rows, arms), seconds(line.get("index")), seconds(full)]
            lines.append([*first, ratio(full, replay), share, *others])
    return table(head, lines)


def table_of_postgres(found: Found) -> str:
    """Replay beside what the server adds up itself."""
    lines = [
        [
            rows_and_arms(rows, arms),
            seconds(line["replay"]),
            f"{100 * float(line['replay']['read']) / rows:.2g} %",
            seconds(line["group_by"]),
        ]
        for (kind, rows, arms), line in sorted(found.items())
        if kind == "PostgreSQL"
    ]
    return table(["rows, arms", "replay", "its rows", "`GROUP BY` (PostgreSQL)"], lines)


def draw(found: Found) -> None:
    """Processor time to the first decision by the length of the log."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    kinds = sorted({means for means, _, _ in found if means != "PostgreSQL"}, reverse=True)
    sizes = sorted({arms for _, _, arms in found})
    figure, axes = pyplot.subplots(len(kinds), len(sizes), figsize=(9, 7), sharex=True, sharey=True, squeeze=False)
    styles = {"full_start": ("full start", "o-"), "replay": ("replay", "s-")}
    styles |= {"group_by": ("GROUP BY", "D--"), "window": ("window function", "v:")}
    for row, means in enumerate(kinds):
        for column, arms in enumerate(sizes):
            panel: Any = axes[row][column]
            for measure, (label, style) in styles.items():
                points = sorted(
                    (rows, float(line[measure]["seconds"]))
                    for (kind, rows, k), line in found.items()
                    if kind == means and k == arms and measure in line
                )
                panel.loglog(*zip(*points, strict=True), style, markersize=4, label=label)
            panel.set_title(f"{means}, {arms:,} arms", fontsize=9)
            panel.grid(alpha=0.3)
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="upper center", ncols=len(styles), fontsize=9)
    figure.supxlabel("rows in the log")
    figure.supylabel("processor seconds to the first decision")
    figure.tight_layout(rect=(0.0, 0.0, 1.0, 0.96))
    figure.savefig(FIGURE, dpi=110)


def written(page: str) -> str:
    """The page with its tables as the results have them."""
    found = results()
    return filled(page, lambda name: table_of(found, name.removeprefix("stores, ")))


def main() -> None:
    page = PAGE.read_text(encoding="utf-8")
    if "--check" in sys.argv:
        sys.exit(written(page) != page and "the tables of docs/how-to/logs.md are not those of benchmarks/stores.csv")
    PAGE.write_text(written(page), encoding="utf-8")
    draw(results())


if __name__ == "__main__":
    main()
