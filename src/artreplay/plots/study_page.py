"""The page about a study: what is played, what it earns, whether one may stop, and what is wrong, in one HTML file."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from artreplay.plots.study_view import MAX_JUDGED, RECENT, ArmRow, StudyView, Windows, view_of
from artreplay.studies import Decision, Study
from artreplay.studies.judging import Stopping
from artreplay.whole_files import write_whole

MAX_LETTERS = 60  # of a label in a sentence or a legend
_STATES = {"rewarded": "with a reward", "expired": "without one in time", "open": "still waiting",
           "deferred": "not shown yet", "void": "taken back"}  # fmt: skip
MIN_GROUP = 30  # decisions of control that a comparison needs
NONE = "–"
PERCENT = "\u00a0%"  # stays in the line of its number
SMALL_RISK = 0.001  # below this nobody wants to know the number
SURE = 0.95  # with this chance an arm counts as the best of a segment
PROBABLE = 0.5  # with less than this no arm is called the best


def write_study_report(study: Study, path: str | Path) -> None:
    """Write a page about a study, as it is now, into one HTML file that needs no other files.

    Parameters
    ----------
    study
        The study to report on.
    path
        The file to write.

    >>> import artreplay as ar, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     study = ar.Study.create(":memory:", ar.MonUCB(arms=["a", "b"], horizon=10), wait=None)
    ...     write_study_report(study, pathlib.Path(folder) / "report.html")
    ...     study.close()
    """
    page = page_of(view_of(study)).encode()
    write_whole(Path(path), lambda file: file.write(page))


def page_of(view: StudyView, is_live: bool = False) -> str:
    """Return the whole page. A live page asks the service again every few seconds."""
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{_name(view)}</title>'
    live = ' data-live="1"' if is_live else ""
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}<style>{_style()}</style></head>\n<body{live}>\n'
        f"<main>\n{main_of(view, is_live)}\n</main>\n<script>{_script()}</script>\n</body></html>\n"
    )


def main_of(view: StudyView, is_live: bool = False) -> str:
    """Return the part of the page that changes. A live page leads to a list of all decisions."""
    return "\n".join(
        [
            *_heading(view),
            *_wrong(view),
            *_answers(view),
            *_charts(view),
            *_arms(view),
            *_segments(view),
            *_more(view, is_live),
            _numbers(view),
        ]
    )


def content_policy() -> str:
    """Return what a browser may run and load on this page: these scripts and styles, and nothing of others."""
    script, style = (
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (_script(), _style())
    )
    return (
        f"default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


@cache
def _script() -> str:
    return _part("uPlot.iife.min.js") + "\n" + _part("study_page.js")


@cache
def _style() -> str:
    return _part("uPlot.min.css") + "\n" + _part("study_page.css")


def _part(name: str) -> str:
    return (files("artreplay.plots") / "page_parts" / name).read_text(encoding="utf-8")


# -- numbers in words -------------------------------------------------------------------------------------------------


def _share(value: float) -> str:
    if math.isnan(value):
        return NONE
    if 0.0 < value < 0.01:
        return f"less than 1{PERCENT}"
    return f"more than 99{PERCENT}" if 0.99 < value < 1.0 else f"{100 * value:.0f}{PERCENT}"


def _reward(view: StudyView, value: float) -> str:
    if math.isnan(value):
        return NONE
    if not view.is_binary:
        return f"{value:.4g}"
    decimals = 0 if value in (0.0, 1.0) else 1 if value >= 0.1 else 2
    return f"{100 * value:.{decimals}f}{PERCENT}"


def _points(view: StudyView, value: float) -> str:
    """Write a difference of rewards."""
    return f"{100 * value:+.2g}" if view.is_binary else f"{value:+.3g}"


def _time(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"


def _duration(seconds: float) -> str:
    for unit, length in (("days", 86_400.0), ("hours", 3_600.0), ("minutes", 60.0)):
        if seconds >= 2 * length:
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds:.3g} seconds"


def _label(text: object, most: int = MAX_LETTERS) -> str:
    """Write a label of a user, which may hold anything."""
    plain = "".join(letter if letter.isprintable() else "·" for letter in str(text)) or "''"
    return html.escape(plain if len(plain) <= most else plain[: most - 1] + "…")


# -- the parts of the page --------------------------------------------------------------------------------------------


def _name(view: StudyView) -> str:
    """Return the name of the study, without the folder it lies in."""
    return _label(Path(view.name).name if "://" not in view.name else view.name, 200)


def _heading(view: StudyView) -> list[str]:
    facts = view.facts
    states = facts["decisions"]
    made = sum(states.values())
    words = ", ".join(f"{states[state]:,} {_STATES[state]}" for state in _STATES if states.get(state))
    lines = [f"<h1>{_name(view)}</h1>"]
    many = f"{made:,} decision{'s' * (made != 1)}" + (f": {words}" if made else "")
    horizon = "" if facts["horizon"] is None else f" Its horizon is {facts['horizon']:,} decisions."
    lines.append(f'<p class="soft">{html.escape(facts["algorithm"])} has made {many}.{horizon} '
                 f'<span id="when">This is from {_time(view.now)}.</span></p>')  # fmt: skip
    if not made:
        lines.append(
            "<p>No decision has been asked for yet, so there is nothing to show. "
            "<code>study.decide()</code> or <code>POST …/decisions</code> makes the first.</p>"
        )
    elif not view.groups:
        waiting = facts["waiting"]
        came = (
            f"{waiting:,} reward{' has' if waiting == 1 else 's have'} come" if waiting else "rewards are still missing"
        )
        wait = "" if view.wait is None else f", and {_duration(view.wait)} must be over before a decision counts"
        lines.append(f"<p>No decision counts yet: {came}{wait}.</p>")
    return lines


def _wrong(view: StudyView) -> list[str]:
    lines = [*map(html.escape, view.warnings)]
    if view.contradictions:
        units = [one.unit if isinstance(one.unit, tuple) else (one.unit,) for one in view.contradictions[:3]]
        some = ", ".join(" in ".join(map(_label, unit)) for unit in units)
        more = len(view.contradictions) - 3
        lines.append(
            f"Rewards of {some}{f' and {more:,} more arms' if more > 0 else ''} differ from the log by more than "
            "chance explains. The log may be from another time, or about other people"
        )
    return [f'<div class="wrong" role="alert">{"".join(f"<p>{line}.</p>" for line in lines)}</div>'] if lines else []


def _answers(view: StudyView) -> list[str]:
    if not view.groups:
        return []
    cards = [("What is played, and what does it earn?", _earns(view)), ("May I stop?", _may_stop(view)),
             ("What does learning cost?", _costs(view))]  # fmt: skip
    parts = []
    for question, (first, *others) in ((question, lines) for question, lines in cards if lines):
        small = "".join(f'<p class="soft">{line}</p>' for line in others)
        parts.append(f"<section><h2>{question}</h2><p>{first}</p>{small}</section>")
    return ['<div class="answers">', *parts, "</div>"]


def _earns(view: StudyView) -> list[str]:
    by_name = {group.name: group for group in view.groups}
    policy, control = by_name.get("policy"), by_name.get("control")
    last = min(RECENT, sum(view.facts["decisions"].values()))
    leader = max(view.arms, key=lambda arm: arm.share, default=None)
    words = ""
    if leader is not None and leader.share > 0.0:
        words = f"<b>{_label(leader.label)}</b> got {_share(leader.share)} of the last {last:,} decisions. "
    if policy is None:
        return [f"{words}No decision of the policy counts yet."]
    words += f"The policy earns <b>{_reward(view, policy.mean)}</b> a decision"
    many = f"This counts {policy.decisions:,} decisions of the policy"
    if control is not None and view.comparison is not None:
        many += f", and {control.decisions:,} of control"
        if control.decisions < MIN_GROUP:
            return [f"{words}.", f"{many}, which are too few to compare them{_that_count(view)}."]
        low, high = (_points(view, edge) for edge in (view.comparison.low, view.comparison.high))
        unit = " points" if view.is_binary else ""
        difference = f"{_points(view, view.comparison.difference)}{unit}, between {low} and {high}"
        sure = "We are 95 % sure that the true difference lies between these two numbers."
        return [
            f"{words}; control earns {_reward(view, control.mean)} ({difference}).",
            f"{many}{_that_count(view)}. {sure}",
        ]
    if math.isnan(view.log_mean):
        return [f"{words}.", f"{many}{_that_count(view)}. Without a hold-out there is nothing to compare this with."]
    caution = "This compares after with before, and other things may have changed too. A hold-out compares fairly."
    return [f"{words}; the log earned {_reward(view, view.log_mean)}.", f"{many}{_that_count(view)}. {caution}"]


def _that_count(view: StudyView) -> str:
    return ", those with a reward" if view.wait is None else ""


def _may_stop(view: StudyView) -> list[str]:
    if view.is_misled:
        return ["This cannot be said while most rewards are missing."]
    if view.stopping is None:
        if view.n_arms > MAX_JUDGED:
            return [f"With more than {MAX_JUDGED} arms this page does not say how likely each is to be the best."]
        if view.segments:
            sure = sum(one.chance >= SURE for one in view.segments)
            some = f"In {sure:,} of {len(view.segments):,} segments"
            return [
                f"{some} the chance that one arm is the best is at least {_share(SURE)}.",
                "The table of segments says which, and what you would lose by stopping there.",
            ]
        if view.holdout and view.comparison is not None:
            return ["Single arms cannot be judged here. Compare the policy with control."]
        return ["Single arms cannot be judged here. This needs a hold-out, which compares the policy with control."]
    stop = view.stopping
    if stop.chance < PROBABLE:
        return [
            "It is too early to say which arm is best.",
            f"The most likely one is {_label(stop.leader)}, with {_share(stop.chance)}.",
        ]
    lines = [
        f"The chance that <b>{_label(stop.leader)}</b> is the best is {_share(stop.chance)}. If you stop now and play "
        f"only this, you lose {_risk(view, stop)} on average."
    ]
    return lines + ["Rewards are not all 0 or 1, so this is approximate."] * stop.is_approximate


def _risk(view: StudyView, stop: Stopping) -> str:
    loss, unit = (100 * stop.loss, "points a decision") if view.is_binary else (stop.loss, "a decision")
    return f"less than {SMALL_RISK:g} {unit}" if loss < SMALL_RISK else f"{loss:.2g} {unit}"


def _costs(view: StudyView) -> list[str]:
    if view.explored is None or view.is_misled:
        return []
    if view.stopping is not None and view.stopping.chance < PROBABLE:
        return ["It is too early to say, because no arm is probably the best one yet."]
    share, cost = view.explored
    decisions = "this week's decisions of the policy" if view.holdout else "this week's decisions"
    if share == 0.0:
        return [f"None of {decisions} went to an arm that is probably worse."]
    unit = "successes" if view.is_binary else "in reward"
    return [
        f"{_share(share)} of {decisions} went to arms that are probably worse: about {cost:,.0f} {unit}.",
        "An arm is probably worse if its chance of being the best is less than 5 %.",
    ]


def _charts(view: StudyView) -> list[str]:
    if view.windows is None:
        return []
    parts, has_control = ['<div class="charts">'], any(group.name == "control" for group in view.groups)
    if view.windows.names:
        swatches = "".join(f'<li><span class="swatch"></span>{_label(name)}</li>' for name in view.windows.names)
        parts += [f'<div><h2>Share of each arm</h2><ul class="legend">{swatches}</ul><div id="shares"></div></div>']
    rules = [("", "the policy, with a band of 95 %")]
    rules += [(" dashed", "control, averaged over a quarter of the decisions")] * has_control
    rules += [(" dotted", "the log")] * (not math.isnan(view.log_mean))
    if view.groups:
        legend = "".join(f'<li><span class="rule{kind}"></span>{words}</li>' for kind, words in rules)
        parts += [f'<div><h2>Reward of a decision</h2><ul class="legend">{legend}</ul><div id="rewards"></div></div>']
    parts.append("</div>")
    if view.events:
        events = "".join(f"<li>{_time(event.at)}: {_label(event.words)}</li>" for event in view.events)
        parts.append(f'<p class="soft">The numbered lines in the charts:</p><ol class="soft">{events}</ol>')
    return parts


def _arms(view: StudyView) -> list[str]:
    if not view.arms:
        return []
    has_log, has_chance = not math.isnan(view.log_mean), view.stopping is not None
    headings = ["arm", "share now", "decisions", "mean", "between", *["mean in the log", "rows read"] * has_log, "open"]
    headings += ["chance of being best"] * has_chance
    rows = [_arm(view, arm, has_log, has_chance) for arm in view.arms]
    more = view.n_arms - len(view.arms)
    counted = "that have a reward" if view.wait is None else "whose window is over"
    note = (
        f"The mean is that of decisions {counted}. Do not compare these means as if they came from an "
        "experiment: arms that did well early were played more, at other times and to other people."
    )
    return [
        "<h2>Arms</h2>", _table(headings, rows),
        *([f'<p class="soft">and {more:,} more arms, which have been played less.</p>'] if more > 0 else []),
        f'<p class="soft">{note}</p>',
    ]  # fmt: skip


def _arm(view: StudyView, arm: ArmRow, has_log: bool, has_chance: bool) -> list[str]:
    rect = f'<rect width="{60 * arm.share:.1f}" height="11" fill="#555"/>'
    bar = f'<svg width="60" height="11" aria-hidden="true">{rect}</svg>'
    between = NONE if math.isnan(arm.low) else f"{_reward(view, arm.low)} – {_reward(view, arm.high)}"
    cells = [_label(arm.label, 200) + (" (retired)" if arm.state.retired else ""), f"{_share(arm.share)} {bar}"]
    cells += [f"{arm.decided:,}", _reward(view, arm.mean), between]
    if has_log:
        cells += [_reward(view, arm.log_mean), f"{arm.state.used:,} of {arm.state.logged:,}"]
    cells.append(f"{arm.state.open:,}")
    if has_chance:
        cells.append(_share(arm.chance))
    return cells


def _segments(view: StudyView) -> list[str]:
    if not view.segments:
        return []
    rows = [
        [_label(", ".join(map(str, one.segment)), 200), _label(one.leader), _share(one.chance), _risk(view, one)]
        for one in view.segments
    ]
    return ["<h2>Segments</h2>", _table(["segment", "best arm", "chance of being best", "stopping now loses"], rows)]


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table. The cells are HTML already."""
    head = "".join(f"<th>{heading}</th>" for heading in headings)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _more(view: StudyView, is_live: bool) -> list[str]:
    """Write what few people look at, each under a line to click on."""
    parts = []
    if view.windows is not None:
        parts.append(_details("The charts as a table", _chart_table(view, view.windows)))
    if view.delays:
        words = ", ".join(f"{share} within {_duration(seconds)}" for share, seconds in view.delays)
        parts.append(_details("How late rewards come", f"<p>{words[0].upper()}{words[1:]}.</p>"))
    if view.recent:
        older = '<p><a href="?part=decisions">all decisions, page by page</a></p>' * is_live
        parts.append(_details(f"The last {len(view.recent):,} decisions", list_of(view.recent) + older))
    log = view.facts["log"]
    if log is not None and log["rows"]:
        read = f"{log['used']:,} of {log['rows']:,} rows were read ({_share(log['used'] / log['rows'])})"
        parts.append(_details("The log", f"<p>{read}.</p>"))
    settings = [[html.escape(name), _label(json.dumps(value), 300)] for name, value in view.settings.items()]
    parts.append(_details("Settings", _table(["setting", "value"], settings)))
    return parts


def list_of(decisions: Sequence[Decision]) -> str:
    """Return a table of decisions."""
    rows = [
        [html.escape(one.id), _time(one.asked.timestamp()), _label(_action(one.action)), one.group, _STATES[one.state]]
        for one in decisions
    ]
    return _table(["decision", "asked", "action", "group", "state"], rows)


def _details(words: str, inside: str) -> str:
    return f"<details><summary>{words}</summary>{inside}</details>"


def _action(action: Any) -> str:
    return ", ".join(map(str, action)) if isinstance(action, list) else str(action)


def _chart_table(view: StudyView, windows: Windows) -> str:
    headings = ["until", "decisions", *map(_label, windows.names), "policy earns", "control earns"]
    rows = [
        [
            _time(float(windows.ends[at])), f"{windows.numbers[at]:,}",
            *(_share(float(share)) for share in windows.shares[:, at]),
            _reward(view, float(windows.policy[at])), _reward(view, float(windows.control[at])),
        ]
        for at in range(len(windows.ends))
    ]  # fmt: skip
    return _table(headings, rows)


def _numbers(view: StudyView) -> str:
    """Write what the charts are drawn from, so that no label can end the script it stands in."""
    if view.windows is None:
        return ""
    windows = view.windows
    data = {
        "start": float(windows.starts[0]), "times": _plain(windows.ends), "binary": view.is_binary,
        "shares": [_plain(share) for share in windows.shares], "policy": _plain(windows.policy),
        "low": _plain(windows.low), "high": _plain(windows.high), "control": _plain(windows.control),
        "log": None if math.isnan(view.log_mean) else view.log_mean, "events": [{"at": one.at} for one in view.events],
    }  # fmt: skip
    return f'<script id="numbers" type="application/json">{json.dumps(data)}</script>'


def _plain(values: Any) -> list[float | None]:
    return [round(value, 6) if math.isfinite(value) else None for value in values.tolist()]
