"""Writes one self-contained HTML page of the reproduction, without scripts or requests, and with figures inline."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

import matplotlib as mpl

from reproduction.caveats import Slip
from reproduction.judging import Claim
from reproduction.numbers import Number
from reproduction.panels import Panel
from reproduction.published import AUTHORS, PREPRINT, TITLE
from reproduction.results import shown

_MARKS = {"agrees": "✓", "differs": "≠", "cannot tell": "?", "slip": "✎", "not tested": "–"}
_MEANING = {
    "agrees": "nothing speaks against it, and a difference that matters would have been found",
    "differs": "the difference is larger than chance explains",
    "cannot tell": "nothing speaks against it, and a difference of half of the number might have been missed; for a "
    "claim: what it says is within chance of its opposite",
    "slip": "ours agrees with the authors’ code, and the paper prints something else",
    "not tested": "our results say nothing about it",
}

_WOULD_BE_FOUND = "would be found"
_THEIR_CODE = (
    "Its sort of arms must be stable. With another sort one arm in a round reads 171.67 rows of 1,000 before its first "
    "online action, not 177.85, which is the number compared here.",
    "Over arms its regret counts the rewards that were drawn. The numbers here count their means, as ours do. With "
    "drawn rewards the errors of the smallest regrets would be several times as large.",
    "Adaptive replay stops in the middle: the class that loads the log ends in sys.exit, after it has drawn it. So "
    "does the piecewise linear domain. Without these lines both run.",
    "Its allocations need a commercial solver, and are an exact choice over merged leaves with level 0 as one of the "
    "things to choose, which costs nothing and is tried first. The rebuilt code has dynamic programming instead, with "
    "ties to less effort and then to the first box.",
    "Its regions are all nodes of the trees. Here they are counted as leaves, as ours are.",
    "Its network is trained for 5 epochs at a rate of .001, and again after 256 samples, where the paper says 128.",
)

# For each experiment its title, and a sentence or two on what is set up.
TITLES: dict[str, tuple[str, str]] = {
    "karmed": (
        "Ten arms, one in a round",
        "Monotone UCB over ten arms with uniform means and Bernoulli rewards, with logs of growing size.",
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
        "Five places, a budget of 2, levels 0, ½ and 1; a small and a large log, spread over space and levels. A third "
        "of the rows are at level 0, which only the authors' code uses. Fixed cells are a grid. Adaptive cells are "
        "trees as fine, with three rules: the paper's, which chooses among leaves; the same solved exactly; and ours, "
        "which chooses among the finest boxes. The authors' code was also rebuilt, with all that it does otherwise, "
        "and it is to this that their numbers are compared. The synthetic park stands in for the patrol records of the "
        "paper, which are private.",
    ),
    "imbalanced": (
        "A log that lies in bad places",
        "A large log on the quadratic domain, of which a growing share lies where the mean is in its lowest fifth. "
        "Levels ½ and 1: rows at level 0 would only flatter replay, which never reads them.",
    ),
    "surfaces": (
        "Ours, not the paper's: surfaces fitted to its domains",
        "The domains, budget and logs of above under CellRegression, a rule that fits surfaces to what was seen. "
        "The paper has nothing like it. Its algorithms, the network and chance are in the figures above.",
    ),
    "discretisation": (
        "How a log divides space",
        "Trees after more and more samples of the patrol log of a synthetic park, one for each level of effort. The "
        "log was made uneven, so that it does not test what the paper says about its own records.",
    ),
    "fixed-vs-adaptive": (
        "Fixed and adaptive cells",
        "The same rounds on a known surface: a grid has small cells everywhere, a tree where reward is high.",
    ),
    "domains": (
        "The domains",
        "Mean rewards at effort 1. The third is a network fitted to the records of a synthetic park.",
    ),
    "theory": (
        "What the theory says",
        "The lemma on pulls of bad arms, logs padded by a bad arm, the batch form of full start, the two rules for "
        "adaptive cells, and how far the practical bonus can be trusted.",
    ),
}


def svg_of(panel: Panel, salt: str) -> str:
    """Turn a figure into an SVG element. The same figure gives the same text, with ids that are unique on the page."""
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


class Drawn(NamedTuple):
    """A figure for the page."""

    name: str
    caption: str
    svg: str


def page(
    *,
    version: str,
    setting: str,
    sections: Sequence[tuple[str, Sequence[Drawn], Sequence[Claim], Sequence[Number]]],
    slips: Sequence[Slip],
    not_helping: Sequence[str] | None,
    not_winning: Mapping[str, Sequence[str] | None],
    code: str,
    skipped: Sequence[str],
    timings: Sequence[tuple[str, str]],
) -> str:
    """Return the page with all of this on it."""
    present = [section for section in sections if section[1] or section[2] or section[3]]
    parts = [
        "<h1>Artificial Replay, reproduced</h1>",
        f"<p>The paper is <cite>{escape(TITLE)}</cite> by {escape(_listed(AUTHORS))} "
        f"({PREPRINT}); this page is not theirs.</p>",
        f"<p>{escape(setting)} Every number is worked out from stored results; ± is one standard error. <em>Would be "
        "found</em> is the smallest true difference that this many replications find four times in five.</p>",
        *_not_computed(skipped),
        _verdicts(
            [claim for section in present for claim in section[2]],
            [number for section in present for number in section[3]],
        ),
        _contents(present),
        f"<h2 id='code'>What the authors’ code does and needs</h2>{_list(_THEIR_CODE)}",
        "<h2 id='slips'>Where the paper and the mathematics differ</h2>",
        _table(("The paper", "What holds"), [(escape(slip.printed), escape(slip.instead)) for slip in slips], "words"),
        "<h2 id='not-helping'>Where history does not help</h2>",
        "<p>Full start is not better than ignoring the log, beyond two standard errors of the difference:</p>",
        _list(not_helping, "Nowhere in what was compared.", "Nothing was compared."),
        "<h2 id='not-winning'>Where replay does not win</h2>",
        "<p>Something else has a smaller regret than replay, or takes less time, beyond two standard errors.</p>",
        *(_folded(what, settings) for what, settings in not_winning.items()),
    ]
    parts += [_section(*section) for section in present]
    if timings:
        parts += [
            "<h2 id='time'>Time</h2>",
            _table(("what", "processor time"), [(escape(a), escape(b)) for a, b in timings]),
        ]
    return _PAGE.format(style=_STYLE, body="\n".join(parts), version=escape(version), code=escape(code))


def _not_computed(skipped: Sequence[str]) -> list[str]:
    """Say first of all what is missing on the page."""
    if not skipped:
        return []
    return ["<div class='missing' id='skipped'><strong>Not computed</strong>", _list(skipped), "</div>"]


def _verdicts(claims: Sequence[Claim], numbers: Sequence[Number]) -> str:
    """Count how many claims, and how many numbers that others report, agree."""
    reported = [number for number in numbers if number.verdict is not None]
    both: list[list[str | None]] = [[one.verdict for one in claims], [one.verdict for one in reported]]
    rows = [
        (_badge(verdict), *(str(verdicts.count(verdict)) for verdicts in both), escape(_MEANING[verdict]))
        for verdict in _MARKS
        if any(verdict in verdicts for verdicts in both)
    ]
    rows.append(("all", *(str(len(verdicts)) for verdicts in both), ""))
    return _table(("verdict", "claims", "numbers", "what it means"), rows, "verdicts") if any(both) else ""


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _contents(sections: Iterable[tuple[str, Any, Any, Any]]) -> str:
    links = [f"<a href='#{name}'>{escape(TITLES[name][0])}</a>" for name, *_ in sections]
    first = [
        "<a href='#code'>Their code</a>",
        "<a href='#slips'>Slips</a>",
        "<a href='#not-helping'>No help</a>",
        "<a href='#not-winning'>No win</a>",
    ]
    return f"<nav>{' '.join(first + links)}</nav>"


def _section(name: str, drawn: Sequence[Drawn], claims: Sequence[Claim], numbers: Sequence[Number]) -> str:
    title, words = TITLES[name]
    figures = "".join(map(_figure, drawn))
    parts = [f"<section><h2 id='{name}'>{escape(title)}</h2><p>{escape(words)}</p>"]
    if claims:
        rows = [
            (escape(one.text), _badge(one.verdict), escape(one.reason), f"<small>{escape(one.found)}</small>")
            for one in claims
        ]
        parts.append(_table(("The paper's claim", "verdict", "what we find", _WOULD_BE_FOUND), rows, "words"))
    parts.append(f"<div class='figures'>{figures}</div>")
    if numbers:
        columns = ("number", "ours", "paper", "authors’ code", "verdict", _WOULD_BE_FOUND, "")
        parts.append(
            f"<details><summary>{len(numbers)} numbers</summary>{_table(columns, map(_row, numbers))}</details>"
        )
    return "".join(parts) + "</section>"


def _figure(drawn: Drawn) -> str:
    return f"<figure id='{drawn.name}'>{drawn.svg}<figcaption>{escape(drawn.caption)}</figcaption></figure>"


def _row(number: Number) -> tuple[str, ...]:
    authors = "" if number.authors is None else _as_reported(*number.authors)
    paper = "" if number.paper is None else f"{number.paper:,g}"
    found = "" if not number.found else f"{number.found:.2g}"
    ours = f"{shown(number.ours)} <small>({number.ours.replications})</small>"
    return escape(number.name), ours, paper, authors, _badge(number.verdict), found, escape(number.reason)


def _as_reported(mean: float, error: float | None) -> str:
    return f"{mean:,g}" if error is None else f"{mean:,g} ± {error:,g}"


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


def _list(items: Sequence[str] | None, none: str = "", unknown: str = "") -> str:
    """Return a list, or other words if it is empty or not known."""
    if not items:
        return f"<p>{escape(unknown if items is None else none)}</p>"
    return "<ul>" + "".join(f"<li>{escape(item)}</li>" for item in items) + "</ul>"


def _folded(what: str, settings: Sequence[str] | None) -> str:
    """Return a list of settings that unfolds, under what they have in common."""
    if not settings:
        return f"<p>{escape(what)}: {'nothing was compared' if settings is None else 'in no setting'}.</p>"
    summary = f"{escape(what)}: in {len(settings)} setting{'' if len(settings) == 1 else 's'}"
    return f"<details><summary>{summary}</summary>{_list(settings)}</details>"


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
.missing { border: 2px solid #8a3500; padding: .2rem 1rem; margin: 1rem 0; }
.verdicts td { min-width: 3rem; }
.scroll { overflow-x: auto; max-width: 100%; }
table { border-collapse: collapse; font-size: .88rem; }
th, td { text-align: left; vertical-align: top; padding: .3rem .7rem .3rem 0; border-bottom: 1px solid #e4e4e4; }
td:first-child { min-width: 11rem; }
td:last-child { min-width: 11rem; }
.badge { white-space: nowrap; font-weight: 600; padding: 0 .4rem; border-radius: .3rem; border: 1px solid; }
.agrees { color: #14603a; background: #e6f4ec; }
.differs { color: #8a3500; background: #fdeee3; }
.slip { color: #5b3a8c; background: #f1eafa; }
.cannot, .not { color: #444; background: #eee; }
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
<footer><p><small>artreplay {version}, code {code}</small></p></footer>
</body>
</html>
"""
