"""What arms are worth along one column of the contexts: how a figure of a `ContextRegression` is drawn."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from artreplay.algorithms import ArmValue, ContextRegression
from artreplay.compiling import Floats
from artreplay.errors import InvalidParameter
from artreplay.history import Contexts, History, Label
from artreplay.plots.space import NO_METADATA, checked_kind
from artreplay.replay import Policy
from artreplay.whole_files import write_whole

MAX_ARMS = 8
PLACES = 81  # at which a numeric column is looked at
REACH = 2.0  # widths on either side of the centre of a numeric column
_COLOURS = ("#101010", "#c04a00", "#2b7bba", "#7a9a01", "#8a4fbe", "#b08900", "#5a5a5a", "#d46a9f")
_STYLES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.2)), (0, (7, 2, 1.5, 2)), (0, (3, 1, 1, 1, 1, 1)))


def draw_values(
    policy: Policy,
    column: str,
    context: Mapping[str, Any] | None = None,
    path: str | os.PathLike[str] | None = None,
    *,
    title: str | None = None,
) -> Figure:
    """Draw what a policy forecasts for each arm along one column of the contexts, the other columns held fixed.

    The band above a forecast is one standard deviation: where it is wide, the arm is hardly known. The strip on top has
    the colour of the arm that would be played. Bars at the bottom say where the rows of the log lie.

    Parameters
    ----------
    policy
        A policy over a `ContextRegression`.
    column
        The name of the column.
    context
        Values of other columns. Those that are left out are at their centre, or at their first value.
    path
        Where to write the figure, a png, pdf or svg, if it is to be written.
    title
        The title of the figure.

    >>> import artreplay as ar
    >>> contexts = ar.Contexts({"age": ar.Numeric(18, 82)}, {"country": ["NL", "DE"]})
    >>> policy = ar.Ignorant(ar.ContextRegression(arms=["red", "blue"], contexts=contexts))
    >>> policy.tell("red", 1.0, context={"age": 30, "country": "NL"})
    >>> ar.plots.draw_values(policy, "age").axes[0].get_xlabel()
    'age (country NL)'
    """
    base = policy.base
    if not isinstance(base, ContextRegression):
        raise InvalidParameter(f"draw_values needs a policy over a ContextRegression, got one over {base!r}")
    contexts = base.contexts
    fixed = _fixed(contexts, column, context or {})
    places: list[Any] = _places(contexts, column)
    values = [policy.values({**fixed, column: place}) for place in places]
    figure = Figure(figsize=(9.0, 4.8), layout="constrained")
    axes = figure.subplots()
    arms = _best_arms(values)
    looks = {arm: (_COLOURS[at % len(_COLOURS)], _STYLES[at % len(_STYLES)]) for at, arm in enumerate(arms)}
    is_numeric = column in contexts.numeric
    across = np.array(places) if is_numeric else np.arange(len(places), dtype=np.float64)
    for at, (arm, (colour, style)) in enumerate(looks.items()):
        forecast = np.array([each[arm].forecast for each in values])
        raised = forecast + np.array([each[arm].width for each in values])
        name = f"{arm} (its log is not trusted)" if values[0][arm].source == "online" else str(arm)
        if is_numeric:
            axes.plot(across, forecast, color=colour, linestyle=style, linewidth=1.9, label=name)
            axes.fill_between(across, forecast, raised, color=colour, alpha=0.13, linewidth=0)
        else:
            beside = across + 0.5 * ((at + 1) / (len(arms) + 1) - 0.5)
            axes.errorbar(
                beside, forecast, [0 * forecast, raised - forecast], color=colour, fmt="o", capsize=3, label=name
            )
    _draw_chosen(axes, across, [max(each, key=lambda arm: each[arm].worth) for each in values], looks)
    _draw_logged(axes, policy, contexts, column, across)
    _scale(axes, values, arms)
    if not is_numeric:
        axes.set_xticks(across, [str(place) for place in places])
    held = ", ".join(
        f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}" for name, value in fixed.items()
    )
    axes.set_xlabel(f"{column} ({held})" if held else column)
    axes.set_ylabel("forecast of the reward")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    some = "" if len(arms) == len(values[0]) else f"{len(arms)} arms of {len(values[0])}"
    figure.legend(loc="outside right center", frameon=False, title=some or None)
    axes.set_title(title or f"What each arm is expected to earn along {column}", fontsize=11, loc="left")
    if path is not None:
        kind = checked_kind(Path(path))
        write_whole(Path(path), lambda file: figure.savefig(file, format=kind, dpi=150, metadata=NO_METADATA[kind]))
    return figure


def _fixed(contexts: Contexts, column: str, context: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of all other columns."""
    for name in (column, *context):
        if name not in contexts.columns:
            listed = ", ".join(map(repr, contexts.columns))
            raise InvalidParameter(f"{name!r} is not a column of the contexts, which are {listed}")
    usual = {name: scale.centre for name, scale in contexts.numeric.items()}
    known = usual | {name: values[0] for name, values in contexts.categories.items() if values}
    return {name: context.get(name, known.get(name)) for name in contexts.columns if name != column}


def _places(contexts: Contexts, column: str) -> list[Any]:
    """Return the places at which the column is looked at."""
    if column not in contexts.numeric:
        return list(contexts.categories[column])
    scale = contexts.numeric[column]
    places: list[Any] = np.linspace(-REACH, REACH, PLACES).tolist()
    return [scale.centre + place * scale.width for place in places]


def _best_arms(values: list[dict[Label, ArmValue]]) -> list[Label]:
    """Return the arms to draw in their order: all of them, or those that are worth most somewhere."""
    worth = {arm: max(each[arm].worth for each in values) for arm in values[0]}
    kept = sorted(worth, key=lambda arm: -worth[arm])[:MAX_ARMS]
    return [arm for arm in worth if arm in kept]


def _scale(axes: Axes, values: list[dict[Label, ArmValue]], arms: list[Label]) -> None:
    """Show heights from a little below the lowest forecast to a little above the highest band."""
    forecasts = [each[arm].forecast for each in values for arm in arms]
    raised = [each[arm].forecast + each[arm].width for each in values for arm in arms]
    spread = max(raised) - min(forecasts) or 1.0
    axes.set_ylim(min(forecasts) - 0.25 * spread, max(raised) + 0.15 * spread)


def _draw_chosen(axes: Axes, across: Floats, chosen: list[Label], looks: Mapping[Label, tuple[str, Any]]) -> None:
    """Draw a strip on top, in the colour of the arm that would be played."""
    step = across[1] - across[0] if len(across) > 1 else 1.0
    at_height = axes.get_xaxis_transform()
    for x, arm in zip(across, chosen, strict=True):
        colour = looks[arm][0] if arm in looks else "#ffffff"
        axes.broken_barh([(x - step / 2, step)], (0.96, 0.025), color=colour, lw=0, transform=at_height, zorder=3)
    axes.text(across[0] - step / 2, 0.94, "played", transform=at_height, va="top", fontsize=8, color="#505050")


def _draw_logged(axes: Axes, policy: Policy, contexts: Contexts, column: str, across: Floats) -> None:
    """Draw bars at the bottom: the rows of the log along the column."""
    history = policy.history
    if not isinstance(history, History) or history.contexts is None or len(history) == 0:
        return
    values = history.contexts[column].to_pylist()
    if column in contexts.numeric:
        counts, edges = np.histogram([value for value in values if value is not None], 40, (across[0], across[-1]))
    else:
        counts = np.array([values.count(value) for value in contexts.categories[column]])
        edges = np.append(across - 0.5, across[-1] + 0.5)
    height = 0.15 * counts / max(1, counts.max())
    at_height = axes.get_xaxis_transform()
    axes.bar(edges[:-1], height, np.diff(edges), align="edge", color="#d5d8db", transform=at_height, zorder=0)
    axes.text(edges[0], 0.16, "rows of the log", transform=at_height, fontsize=8, color="#505050")
