"""Writes the report of the reproduction: the page, the figures beside it, and every number as JSON."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from artreplay.engine.progress import Progress
from artreplay.errors import InvalidFile
from artreplay.experiments.catalogue import FULL_SCALE
from artreplay.experiments.claims import Claim, claims
from artreplay.experiments.numbers import Number, numbers
from artreplay.experiments.results import Results
from artreplay.experiments.slips import (
    slips,
    where_history_does_not_help,
    where_replay_does_not_win,
    where_replay_is_not_faster,
)
from artreplay.report.page import TITLES, page
from artreplay.report.panels import Panel
from artreplay.report.paper import panels

_DIGITS = 10  # of the numbers in summary.json


def write_report(results: Results, folder: str | os.PathLike[str], version: str) -> Path:
    """Write `index.html`, `summary.json`, `timings.json` and the folder `figures`; the path of the page."""
    target = Path(folder)
    names = [experiment.name for experiment in results.experiments]
    if not any(results.has(name) for name in names):
        raise InvalidFile("there are no results to report on: run `artreplay reproduce` first")
    all_claims, all_numbers = claims(results), numbers(results)
    figures: dict[str, list[Panel]] = {}
    with Progress("drawing", len(names)) as progress:
        try:
            (target / "figures").mkdir(parents=True, exist_ok=True)
            for done, name in enumerate(names):
                figures[name] = panels(results, name) if results.has(name) else []
                _write_figures(target / "figures", name, figures[name])
                progress.update(done + 1)
            _write_text(target / "summary.json", _json(summary(results, all_claims, all_numbers)))
            _write_text(target / "timings.json", _json(timings(results)))
            text = page(
                version=version,
                setting=_setting(results),
                sections=[(name, figures[name], *_of(name, all_claims, all_numbers)) for name in names],
                slips=slips(results),
                not_helping=where_history_does_not_help(results),
                not_winning=where_replay_does_not_win(results) + where_replay_is_not_faster(results),
                skipped=_skipped(results),
                timings=[(what, f"{seconds:,.1f} s") for what, seconds in timings(results)["by experiment"].items()],
            )
            _write_text(target / "index.html", text)
        except OSError as error:
            raise InvalidFile(f"the report cannot be written to {target}: {error.strerror or error}") from error
    return target / "index.html"


def summary(results: Results, all_claims: Sequence[Claim], all_numbers: Sequence[Number]) -> dict[str, Any]:
    """Every number and claim; the same bytes for the same seed, so that times are not among them."""
    return {
        "scale": asdict(results.scale),
        "numbers": [
            {
                "experiment": number.experiment,
                "name": number.name,
                "mean": _plain(number.ours.mean),
                "standard_error": _plain(number.ours.error),
                "replications": number.ours.replications,
                "paper": number.paper,
                "authors_code": None if number.authors is None else number.authors[0],
                "authors_code_standard_error": None if number.authors is None else number.authors[1],
                "verdict": number.verdict,
                "reason": number.reason,
            }
            for number in all_numbers
        ],
        "claims": [asdict(claim) for claim in all_claims],
        "history_does_not_help": where_history_does_not_help(results),
        "replay_does_not_win": where_replay_does_not_win(results),
        "not_computed": _skipped(results),
    }


def timings(results: Results) -> dict[str, dict[str, float]]:
    """Processor seconds of what was computed: by experiment, and of each setting."""
    by_experiment: dict[str, float] = {}
    by_setting: dict[str, float] = {}
    for setting in results.settings():
        result = results.of(setting)
        if result is not None:
            name = f"{setting.experiment}{', Regressor' if setting.get('algorithm') == 'Regressor' else ''}"
            by_experiment[name] = by_experiment.get(name, 0.0) + result.seconds
            by_setting[setting.key] = result.seconds
    return {"by experiment": by_experiment, "by setting": by_setting}


def _of(name: str, all_claims: Sequence[Claim], all_numbers: Sequence[Number]) -> tuple[list[Claim], list[Number]]:
    return [c for c in all_claims if c.experiment == name], [n for n in all_numbers if n.experiment == name]


def _skipped(results: Results) -> list[str]:
    """What is not there, and what it needs."""
    found: dict[str, int] = {}
    for setting in results.missing():
        why = f"needs {setting.needs}" if setting.needs else "not computed yet"
        if setting.key in results.damaged:
            why = "the result is damaged, run `artreplay reproduce` again"
        words = f"{TITLES[setting.experiment][0]}: {why}"
        found[words] = found.get(words, 0) + 1
    return [f"{words} ({count} setting{'s' if count > 1 else ''})" for words, count in found.items()]


def _setting(results: Results) -> str:
    scale = results.scale
    counts = sorted({setting.replications for setting in results.settings() if setting.kind == "simulate"})
    small = (
        "" if scale.horizon == FULL_SCALE.horizon else "A tiny run, to try the machinery: its numbers mean nothing. "
    )
    return small + (
        f"{scale.horizon:,} rounds; seed {scale.seed}; {' or '.join(map(str, counts))} replications "
        "(the number behind each mean is in brackets)."
    )


def _write_figures(folder: Path, experiment: str, made: Sequence[Panel]) -> None:
    for panel in made:
        path = folder / f"{experiment}-{panel.name}"
        panel.figure.savefig(path.with_name(f"{path.name}.png"), dpi=150)
        panel.figure.set_layout_engine("none")  # what the first drawing found is good for the others
        panel.figure.savefig(path.with_name(f"{path.name}.pdf"), metadata={"CreationDate": None})


def _write_text(path: Path, text: str) -> None:
    """Write a file under another name first, so that nobody reads half of it."""
    temporary = path.with_name(f".{path.name}.part")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)


def _json(document: Any) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _plain(value: float) -> float | None:
    return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
