"""The report of a study: one HTML file with a figure, for people who want to see how it is doing."""

from __future__ import annotations

import base64
import html
import io
import math
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from artreplay.compiling import Floats, Ints
from artreplay.history import History, Totals
from artreplay.inspecting import Estimate, mean_of, mean_of_counts
from artreplay.plots.log_figures import MAX_LETTERS
from artreplay.replay import Contradiction
from artreplay.studies import ArmState, Study
from artreplay.whole_files import write_whole

MAX_WINDOWS = 24  # the decisions are divided into at most this many parts of equal size
MAX_COLOURED = 8  # arms with their own colour
MAX_MEANS_DRAWN = 14  # arms whose means are drawn
MAX_TABLE_ROWS = 200
_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#444444")
_OTHERS, _LOG, _ONLINE = "#c8c8c8", "#707070", "#0072b2"


class View(NamedTuple):
    """What the report shows of a study."""

    facts: dict[str, Any]
    place: str
    number: Ints  # of each unit of a decision: the number of the decision
    action: list[str]
    state: list[str]
    reward: Floats  # of each unit; nan if there is none
    log_mean: Estimate | None  # None without a log, or if its rewards have no mean
    reward_range: tuple[float, float]
    arms: list[ArmState]
    log_means: dict[Any, float]
    online_means: dict[str, float]  # mean online rewards, by the action as text
    contradictions: list[Contradiction]


def view_of(study: Study) -> View:
    """Collect what the report shows of a study: its decisions in order, its arms, and what the log says of them."""
    rows = [row for row in study.rows() if row["number"] is not None]
    reward = np.array([math.nan if row["reward"] is None else row["reward"] for row in rows], np.float64)
    arms = study.arms() if hasattr(study.base, "arms") else []
    log = study.policy.history
    mean, means = None, {}
    reward_range = study.base.reward_range
    if isinstance(log, History) and len(log):
        mean = _mean(log.rewards, reward_range)
    if arms and log is not None and len(log):
        totals = Totals.of(log)
        means = dict(zip(totals.labels, (totals.sums / np.maximum(totals.counts, 1)).tolist(), strict=True))
        if mean is None and math.isfinite(reward_range[1] - reward_range[0]):
            low, width, played = reward_range[0], reward_range[1] - reward_range[0], int(totals.counts.sum())
            found = mean_of_counts(played, (float(totals.sums.sum()) - low * played) / width)
            mean = Estimate(*(low + width * value for value in (found.value, found.low, found.high)))
    online: dict[str, list[float]] = {}
    for row in rows:
        if row["state"] == "rewarded":
            online.setdefault(row["action"], []).append(row["reward"])
    return View(
        study.facts(),
        study.place,
        np.array([row["number"] for row in rows], np.int64),
        [row["action"] for row in rows],
        [row["state"] for row in rows],
        reward,
        mean,
        reward_range,
        arms,
        means,
        {action: sum(values) / len(values) for action, values in online.items()},
        study.contradictions(),
    )


def _mean(rewards: Floats, reward_range: tuple[float, float]) -> Estimate:
    """A mean with its band of 95 %, inside the range that rewards have; by standard errors where they have none."""
    if math.isfinite(reward_range[1] - reward_range[0]):
        return mean_of(rewards, reward_range)
    mean, half = float(rewards.mean()), 1.96 * float(rewards.std()) / math.sqrt(len(rewards))
    return Estimate(mean, mean - half, mean + half)


# -- the figure ---------------------------------------------------------------------------------------------------


def study_figure(study: Study) -> Figure:
    """Draw the rewards of a study and its log, the share and the mean of each arm, and open decisions.

    Parameters
    ----------
    study
        The study to look at.

    >>> import artreplay as ar
    >>> study = ar.Study.create(":memory:", ar.MonUCB(arms=["a", "b"], horizon=10), wait=None)
    >>> len(study_figure(study).axes)
    4
    """
    return draw_view(view_of(study))


def draw_view(view: View) -> Figure:
    """Draw the figure of a view."""
    with matplotlib.rc_context({"text.parse_math": False}):  # a label may contain a $
        figure = Figure(figsize=(12, 8.4), layout="constrained")
        panels = figure.subplot_mosaic([["rate", "share"], ["open", "means"]])
        _draw_rate(panels["rate"], view)
        _draw_shares(panels["share"], view)
        _draw_open(panels["open"], view)
        _draw_means(panels["means"], view)
        for panel in panels.values():
            panel.spines[["top", "right"]].set_visible(False)
        figure.canvas.draw()  # the text must be set while these rules hold
    return figure


def _windows(view: View) -> list[Ints]:
    """Divide the decisions into windows, in order. There are none without decisions."""
    parts = min(MAX_WINDOWS, len(view.number))
    return np.array_split(np.arange(len(view.number)), parts) if parts else []


def _title(panel: Axes, words: str) -> None:
    panel.set_title(words, loc="left", fontweight="bold", pad=22)


def _legend_above(panel: Axes) -> None:
    panel.legend(loc="lower left", bbox_to_anchor=(-0.02, 0.99), ncol=2, frameon=False, fontsize=9, borderpad=0)


def _nothing(panel: Axes, words: str) -> None:
    panel.set_axis_off()
    panel.text(0.5, 0.5, words, ha="center", va="center", transform=panel.transAxes, color="#505050")


def _draw_rate(panel: Axes, view: View) -> None:
    _title(panel, "Reward of a decision")
    middle, means = [], []
    for window in _windows(view):
        values = view.reward[window]
        values = values[~np.isnan(values)]
        if len(values):
            middle.append(float(view.number[window].mean()))
            means.append(_mean(values, view.reward_range))
    if not middle:
        return _nothing(panel, "no decision has a reward yet")
    low, high = [one.low for one in means], [one.high for one in means]
    panel.fill_between(middle, low, high, color=_ONLINE, alpha=0.2, linewidth=0)
    panel.plot(
        middle, [one.value for one in means], color=_ONLINE, marker="o", markersize=3, label="decisions of this study"
    )
    if view.log_mean is not None:
        panel.axhline(view.log_mean.value, color=_LOG, linestyle=(0, (4, 3)), label="the log")
        panel.axhspan(view.log_mean.low, view.log_mean.high, color=_LOG, alpha=0.2, linewidth=0)
    panel.set_xlabel("decision")
    panel.set_ylabel("mean reward, with a band of 95 %")
    _legend_above(panel)
    return None


def _draw_shares(panel: Axes, view: View) -> None:
    if not view.arms:
        return _nothing(panel, "points have no shares")
    _title(panel, "Share of each arm")
    if not len(view.number):
        return _nothing(panel, "no decisions yet")
    actions = [action for action, _ in Counter(view.action).most_common(MAX_COLOURED)]
    windows = _windows(view)
    shares = np.zeros((len(actions) + 1, len(windows)))
    for place, window in enumerate(windows):
        counts = Counter(view.action[at] for at in window)
        shares[:-1, place] = [counts[action] / len(window) for action in actions]
    shares[-1] = np.maximum(1.0 - shares[:-1].sum(axis=0), 0.0)
    rest = len(set(view.action)) - len(actions)
    labels = [_short(action) for action in actions] + ([f"{rest:,} others"] if rest else [])
    edges = [float(view.number[window[0]]) for window in windows] + [float(view.number[-1]) + 1]
    panel.stackplot(
        np.repeat(edges, 2)[1:-1],
        np.repeat(shares[: len(labels)], 2, axis=1),
        labels=labels,
        colors=[*_COLOURS[: len(actions)], _OTHERS],
    )
    panel.set_ylim(0, 1)
    panel.set_xlim(edges[0], edges[-1])
    panel.set_xlabel("decision")
    panel.set_ylabel("share of decisions")
    panel.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=9, reverse=True)
    return None


def _draw_open(panel: Axes, view: View) -> None:
    _title(panel, "What became of decisions")
    windows = _windows(view)
    if not windows:
        return _nothing(panel, "no decisions yet")
    state = np.array(view.state)
    looks = {"rewarded": "#009e73", "expired": "#d55e00", "open": "#e6e6e6", "void": "#444444"}
    middle = [float(view.number[window].mean()) for window in windows]
    width = 0.85 * (view.number[-1] / len(windows))
    bottom = np.zeros(len(windows))
    for name, colour in looks.items():
        share = np.array([(state[window] == name).mean() for window in windows])
        if share.any():
            count = view.facts["decisions"].get(name, 0)
            panel.bar(
                middle, share, width, bottom, color=colour, label=f"{name}: {count:,}", edgecolor="#888888", lw=0.3
            )
            bottom += share
    panel.set_ylim(0, 1)
    panel.set_xlabel("decision")
    panel.set_ylabel("share of decisions")
    panel.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=9)
    return None


def _draw_means(panel: Axes, view: View) -> None:
    rewarded = [arm for arm in view.arms if str(arm.label) in view.online_means]
    played = sorted(rewarded, key=lambda arm: -arm.online)[:MAX_MEANS_DRAWN]
    if not played:
        return _nothing(panel, "no arm has a reward yet" if view.arms else "points have no table of arms")
    title = "Means of the arms" if len(played) == len(rewarded) else f"Means of the {len(played)} arms played most"
    _title(panel, title)
    odd = {contradiction.unit for contradiction in view.contradictions}
    for place, arm in enumerate(reversed(played)):
        panel.plot([view.online_means[str(arm.label)]], [place], "o", color=_ONLINE)
        if arm.logged:
            panel.plot([view.log_means[arm.label]], [place], "o", markerfacecolor="none", color=_LOG)
        if arm.label in odd:
            panel.text(
                1.01, place, "differs from the log", transform=panel.get_yaxis_transform(), va="center", fontsize=8
            )
    panel.set_yticks(range(len(played)), [_short(str(arm.label)) for arm in reversed(played)], fontsize=9)
    panel.plot([], [], "o", color=_ONLINE, label="rewards of this study")
    panel.plot([], [], "o", markerfacecolor="none", color=_LOG, label="the log")
    panel.set_xlabel("mean reward")
    panel.grid(axis="x", color="#e6e6e6")
    _legend_above(panel)
    return None


def _short(text: str) -> str:
    plain = "".join(letter if letter.isprintable() else "·" for letter in text) or "''"
    return plain if len(plain) <= MAX_LETTERS else plain[: MAX_LETTERS - 1] + "…"


# -- the page -----------------------------------------------------------------------------------------------------

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; color: #1a1a1a; }
h1 { font-size: 1.6rem; overflow-wrap: anywhere; } h2 { font-size: 1.2rem; margin-top: 2rem; }
img { width: 100%; height: auto; } .table { overflow-x: auto; }
table { border-collapse: collapse; } th { white-space: nowrap; }
th, td { padding: .2rem .8rem .2rem 0; text-align: right; }
th:first-child, td:first-child { text-align: left; overflow-wrap: anywhere; min-width: 8rem; max-width: 28rem; }
tr { border-bottom: 1px solid #e0e0e0; } .warning { border-left: .3rem solid #d55e00; padding-left: .8rem; }
"""


def write_study_report(study: Study, path: str | Path) -> None:
    """Write the report of a study as one HTML file that needs no other files.

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
    page = study_page(view_of(study)).encode()
    write_whole(Path(path), lambda file: file.write(page))


def study_page(view: View) -> str:
    """Return the report as HTML."""
    image = io.BytesIO()
    draw_view(view).savefig(image, format="png", dpi=110)
    picture = base64.b64encode(image.getvalue()).decode()
    name = html.escape(view.place)
    parts = [
        f"<h1>{name}</h1>",
        *(f"<p>{html.escape(sentence)}</p>" for sentence in _sentences(view)),
        *_warnings(view),
        f'<img alt="Reward, shares, outcomes and means of {name}; the numbers are in the text and the table" '
        f'src="data:image/png;base64,{picture}">',
        *_table(view),
    ]
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{name}</title>'
    return f'<!doctype html>\n<html lang="en"><head>{head}<style>{_STYLE}</style></head>\n<body>\n' + "\n".join(
        [*parts, "</body></html>", ""]
    )


def _sentences(view: View) -> list[str]:
    facts, rewards = view.facts, view.reward[~np.isnan(view.reward)]
    states = facts["decisions"]
    outcomes = ", ".join(f"{count:,} {state}" for state, count in states.items()) or "none so far"
    lines = [f"{facts['algorithm']} has made {sum(states.values()):,} decisions: {outcomes}."]
    if facts["horizon"] is not None:
        lines[0] += f" Its horizon is {facts['horizon']:,} decisions."
    if len(rewards):
        against = "" if view.log_mean is None else f", and that of the log is {view.log_mean.value:.4g}"
        lines.append(f"The mean reward of a decision is {rewards.mean():.4g}{against}.")
    log = facts["log"]
    if log["rows"]:
        share = log["used"] / log["rows"]
        lines.append(f"Of the {log['rows']:,} samples of the log {log['used']:,} were used ({share:.1%}).")
        if facts["drift"] != 0.0 or facts["allowances"]:
            lines.append("The log may be stale, so its rows have an allowance for drift.")
    else:
        lines.append("There is no log.")
    if facts["late"]:
        lines.append(f"{facts['late']:,} rewards came after their decision had expired, and were refused.")
    if facts["observations"]:
        lines.append(f"{facts['observations']:,} observations are of actions that nobody asked for.")
    return lines


def _warnings(view: View) -> list[str]:
    if not view.contradictions:
        return []
    some = "".join(f"<li>{html.escape(str(one))}</li>" for one in view.contradictions[:MAX_MEANS_DRAWN])
    more = len(view.contradictions) - MAX_MEANS_DRAWN
    rest = f"<p>and {more:,} more arms</p>" if more > 0 else ""
    return [
        '<div class="warning"><h2>Rewards that contradict the log</h2><p>They differ by more than chance explains. '
        f"The log may be from another time, or about other people.</p><ul>{some}</ul>{rest}</div>"
    ]


def _table(view: View) -> list[str]:
    if not view.arms:
        return []
    shown = sorted(view.arms, key=lambda arm: (arm.retired, -arm.online, -arm.logged))[:MAX_TABLE_ROWS]
    headings = ("arm", "in the log", "used", "online", "open", "mean", "index")
    rows = [
        "".join(f"<td>{html.escape(text)}</td>" for text in (
            str(arm.label), f"{arm.logged:,}", f"{arm.used:,}", f"{arm.online:,}", f"{arm.open:,}",
            "–" if math.isnan(arm.mean) else f"{arm.mean:.4f}",
            "retired" if arm.retired else "–" if math.isnan(arm.index) else f"{arm.index:.4f}",
        ))
        for arm in shown
    ]  # fmt: skip
    more = len(view.arms) - len(shown)
    note = f"<p>and {more:,} more arms, which <code>artreplay study arms --all</code> lists</p>" if more else ""
    header = "".join(f"<th>{heading}</th>" for heading in headings)
    body = "\n".join(f"<tr>{row}</tr>" for row in rows)
    return [f'<h2>Arms</h2><div class="table"><table><tr>{header}</tr>\n{body}</table></div>{note}']
