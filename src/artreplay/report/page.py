"""One self-contained HTML page of the reproduction: no script, no request, figures inline."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import matplotlib as mpl

from artreplay.experiments.claims import Claim
from artreplay.experiments.numbers import Number
from artreplay.experiments.slips import Slip
from artreplay.report.panels import Panel

_MARKS = {"agrees": "✓", "differs": "≠", "cannot be met": "✗"}

# Of each experiment: its title, and what is set up, in a sentence or two.
TITLES: dict[str, tuple[str, str]] = {
    "karmed": (
        "Ten arms, one in a round",
        "Monotone UCB over ten arms with uniform means, Bernoulli rewards, 1,000 rounds, logs of 10 to 10,000 samples.",
    ),
    "top-arms": (
        "Ten arms, three in a round",
        "As above, but three arms are played in each round and each shows its reward.",
    ),
    "thompson-ids": (
        "Thompson sampling and information-directed sampling",
        "Two algorithms whose choice depends on all data, so that replay need not act like full start. IDS in three "
        "forms: as in the authors' code, the same without its fallback line, and computed exactly.",
    ),
    "performance": (
        "Splitting a budget over places",
        "Five places, a budget of 2, levels 0, ½ and 1; a fixed grid of 32 × 32 cells and trees as fine; logs of 300 "
        "and 3,000 samples spread over space and levels.",
    ),
    "imbalanced": (
        "A log that lies in bad places",
        "10,000 samples on the quadratic domain, of which a growing share lies where the mean is in its lowest fifth.",
    ),
    "discretisation": (
        "How a log divides space",
        "Trees after more and more samples of a patrol log, one for each level of effort.",
    ),
    "fixed-vs-adaptive": (
        "Fixed and adaptive cells",
        "The same rounds on a known surface: a grid has small cells everywhere, a tree where reward is high.",
    ),
    "domains": ("The domains", "Mean rewards at effort 1."),
    "theory": (
        "What the theory says",
        "The lemma on pulls of bad arms, logs padded by a bad arm, the batch form of full start, the two rules for "
        "adaptive cells, and how far the practical bonus can be trusted.",
    ),
}


def svg_of(panel: Panel, salt: str) -> str:
    """A figure as an SVG element, the same for the same figure, with names of its own inside the page."""
    buffer = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": salt, "svg.fonttype": "none", "font.family": "sans-serif"}):
        panel.figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(id="|href="#|url\(#)', rf"\1{salt}-", text)
    return text.replace("<svg ", f'<svg role="img" aria-label="{escape(panel.caption, quote=True)}" ', 1)


def page(
    *,
    version: str,
    setting: str,
    sections: Sequence[tuple[str, Sequence[Panel], Sequence[Claim], Sequence[Number]]],
    slips: Sequence[Slip],
    not_helping: Sequence[str],
    not_winning: Sequence[str],
    skipped: Sequence[str],
    timings: Sequence[tuple[str, str]],
) -> str:
    """The page, from what is to be shown."""
    shown = [section for section in sections if section[1] or section[2] or section[3]]
    parts = [
        "<h1>Artificial Replay, reproduced</h1>",
        f"<p>{escape(setting)} Every number is worked out from stored results; ± is one standard error.</p>",
        _verdicts(
            [claim for section in shown for claim in section[2]], [number for section in shown for number in section[3]]
        ),
        _contents(shown),
        "<h2 id='slips'>Where the paper and the mathematics differ</h2>",
        _table(("The paper", "What holds"), [(escape(slip.printed), escape(slip.instead)) for slip in slips], "words"),
        "<h2 id='not-helping'>Where history does not help</h2>",
        _list(not_helping, "In no setting that was computed: the log lowered regret everywhere."),
        "<h2 id='not-winning'>Where replay does not win</h2>",
        _list(not_winning, "In no setting that was computed had replay a larger regret than full start."),
    ]
    parts += [_section(*section) for section in shown]
    if timings:
        parts += [
            "<h2 id='time'>Time</h2>",
            _table(("what", "processor time"), [(escape(a), escape(b)) for a, b in timings]),
        ]
    if skipped:
        parts += ["<h2 id='skipped'>Not computed</h2>", _list(skipped, "")]
    return _PAGE.format(style=_STYLE, body="\n".join(parts), version=escape(version))


def _verdicts(claims: Sequence[Claim], numbers: Sequence[Number]) -> str:
    told = []
    for what, items in (("claims", claims), ("numbers", [number for number in numbers if number.verdict])):
        counts = {verdict: sum(1 for item in items if item.verdict == verdict) for verdict in _MARKS}
        told.append(
            f"Of {len(items)} {what} "
            + ", ".join(f"{count} {_phrase(v, count)}" for v, count in counts.items() if count)
        )
    return f"<p class='lead'>{'. '.join(told)}.</p>"


def _phrase(verdict: str, count: int) -> str:
    if verdict == "cannot be met":
        return verdict
    return verdict if count == 1 else verdict.removesuffix("s")


def _contents(sections: Iterable[tuple[str, Any, Any, Any]]) -> str:
    links = [f"<a href='#{name}'>{escape(TITLES[name][0])}</a>" for name, *_ in sections]
    first = ["<a href='#slips'>Slips</a>", "<a href='#not-helping'>No help</a>", "<a href='#not-winning'>No win</a>"]
    return f"<nav>{' '.join(first + links)}</nav>"


def _section(name: str, panels: Sequence[Panel], claims: Sequence[Claim], numbers: Sequence[Number]) -> str:
    title, words = TITLES[name]
    figures = "".join(_figure(name, panel) for panel in panels)
    parts = [f"<section><h2 id='{name}'>{escape(title)}</h2><p>{escape(words)}</p>"]
    if claims:
        rows = [(escape(claim.text), _badge(claim.verdict), escape(claim.reason)) for claim in claims]
        parts.append(_table(("The paper's claim", "verdict", "what we find"), rows, "words"))
    parts.append(f"<div class='figures'>{figures}</div>")
    if numbers:
        columns = ("number", "ours", "paper", "authors’ code", "verdict", "")
        parts.append(
            f"<details><summary>{len(numbers)} numbers</summary>{_table(columns, map(_row, numbers))}</details>"
        )
    return "".join(parts) + "</section>"


def _figure(experiment: str, panel: Panel) -> str:
    name = f"{experiment}-{panel.name}"
    caption = f"<figcaption>{escape(panel.caption)}</figcaption>"
    return f"<figure id='{name}'>{svg_of(panel, name)}{caption}</figure>"


def _row(number: Number) -> tuple[str, ...]:
    authors = "" if number.authors is None else _number(*number.authors)
    paper = "" if number.paper is None else f"{number.paper:,.4g}"
    ours = f"{_number(number.ours.mean, number.ours.error)} <small>({number.ours.replications})</small>"
    return escape(number.name), ours, paper, authors, _badge(number.verdict), escape(number.reason)


def _number(mean: float, error: float | None) -> str:
    """A mean and its error, with the digits the error leaves."""
    if error is None or math.isnan(error):
        return f"{mean:,.5g}"
    digits = 0 if error >= 10 or (error == 0 and mean == round(mean)) else 1 if error >= 1 or error == 0 else 2
    return f"{mean:,.{digits}f} ± {error:,.{digits}f}"


def _badge(verdict: str | None) -> str:
    if verdict is None:
        return ""
    return f"<span class='badge {verdict.split()[0]}'>{_MARKS[verdict]} {verdict}</span>"


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]], kind: str = "plain") -> str:
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return (
        f"<div class='scroll'><table class='{kind}'><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _list(items: Sequence[str], otherwise: str) -> str:
    if not items:
        return f"<p>{escape(otherwise)}</p>"
    return "<ul>" + "".join(f"<li>{escape(item)}</li>" for item in items) + "</ul>"


_STYLE = """
:root { color-scheme: light; }
body {
  font: 16px/1.5 system-ui, sans-serif; color: #1b1b1b; background: #fff;
  margin: 0 auto; padding: 1rem; max-width: 1320px;
}
h1 { font-size: 1.7rem; line-height: 1.2; }
h2 { font-size: 1.25rem; margin-top: 2.2rem; }
.lead { font-weight: 600; }
nav { display: flex; flex-wrap: wrap; gap: .4rem .9rem; padding: .6rem 0; border-block: 1px solid #ddd; }
a { color: #10508c; }
.figures {
  display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 340px), 1fr)); gap: 1.2rem; margin: 1rem 0;
}
figure { margin: 0; }
figure svg { width: 100%; height: auto; display: block; }
figcaption { font-size: .85rem; color: #444; }
.scroll { overflow-x: auto; max-width: 100%; }
table { border-collapse: collapse; font-size: .88rem; }
th, td { text-align: left; vertical-align: top; padding: .3rem .7rem .3rem 0; border-bottom: 1px solid #e4e4e4; }
td:first-child { min-width: 11rem; }
td:last-child { min-width: 11rem; }
.badge { white-space: nowrap; font-weight: 600; padding: 0 .4rem; border-radius: .3rem; border: 1px solid; }
.agrees { color: #14603a; background: #e6f4ec; }
.differs { color: #8a3500; background: #fdeee3; }
.cannot { color: #444; background: #eee; }
details { margin: .6rem 0; }
summary { cursor: pointer; color: #10508c; }
@media (max-width: 640px) {
  .words thead { display: none; }
  .words td { display: block; border: 0; padding: .1rem 0; }
  .words tr { display: block; border-bottom: 1px solid #e4e4e4; padding: .5rem 0; }
  .words td:first-child { font-weight: 600; }
}
@media print { nav { display: none; } }
"""

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>Artificial Replay, reproduced</title>
<style>{style}</style>
</head>
<body>
{body}
<footer><p><small>artreplay {version}</small></p></footer>
</body>
</html>
"""
