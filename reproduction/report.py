"""Writes the report of the reproduction: the page, its figures, and every number as JSON."""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from artreplay.engine import Progress
from artreplay.errors import InvalidFile
from reproduction.catalogue import FULL_SCALE, NETWORKS
from reproduction.caveats import (
    slips,
    where_history_does_not_help,
    where_replay_does_not_win,
    where_replay_is_slower,
    where_the_regressor_wins,
)
from reproduction.claims import claims
from reproduction.computing import code_fingerprint
from reproduction.figures import panels
from reproduction.judging import Claim
from reproduction.numbers import Number, numbers
from reproduction.page import TITLES, Drawn, page, svg_of
from reproduction.published import AUTHORS, TITLE
from reproduction.results import Results
from reproduction.runner import missing

SCHEMA = Path(__file__).with_name("summary.schema.json")  # the schema of summary.json; a copy is written next to it
FORMAT = 3  # of summary.json
_DIGITS = 10  # digits of its numbers
_PACKAGES = ("numba", "numpy", "pyarrow", "scikit-learn")  # packages that results depend on


def write_report(results: Results, folder: str | os.PathLike[str], version: str, jobs: int = 1) -> Path:
    """Write `index.html`, `summary.json`, `timings.json` and the folder `figures`. Return the path of the page."""
    target = Path(folder)
    names = [experiment.name for experiment in results.experiments]
    if not any(results.has(name) for name in names):
        raise InvalidFile(
            f"there are no results in {results.store.root} for this ({_scale_in_words(results)}): "
            "run `make reproduce` first"
        )
    all_claims, all_numbers = claims(results), numbers(results)
    try:
        drawn = _draw(results, target / "figures", jobs)
        _write_text(target / "summary.json", _json(summary(results, all_claims, all_numbers, version)))
        _write_text(target / SCHEMA.name, SCHEMA.read_text(encoding="utf-8"))
        _write_text(target / "timings.json", _json(timings(results)))
        text = page(
            version=version,
            setting=_setting(results),
            sections=[(name, drawn[name], *_of(name, all_claims, all_numbers)) for name in names],
            slips=slips(results),
            not_helping=where_history_does_not_help(results),
            not_winning={
                "Full start has less regret": where_replay_does_not_win(results),
                "Our own neural network, trained on the whole log (the Regressor), has less regret": (
                    where_the_regressor_wins(results)
                ),
                "Full start takes less processor time": where_replay_is_slower(results),
            },
            code=code_fingerprint(),
            skipped=_skipped(results),
            timings=[(what, f"{seconds:,.1f} s") for what, seconds in timings(results)["by experiment"].items()],
        )
        _write_text(target / "index.html", text)
    except OSError as error:
        raise InvalidFile(f"the report cannot be written to {target}: {error.strerror or error}") from error
    return target / "index.html"


def summary(
    results: Results, all_claims: Sequence[Claim], all_numbers: Sequence[Number], version: str
) -> dict[str, Any]:
    """Collect every number and claim. The same seed gives the same bytes, so times are not among them."""
    return {
        "$schema": SCHEMA.name,
        "format": FORMAT,
        "paper": {"title": TITLE, "authors": list(AUTHORS)},
        "versions": _versions(version),
        "code": code_fingerprint(),
        "results_of_other_code": results.of_other_code,
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
                "found": None if number.found is None else _plain(number.found),
                "settings": list(number.settings),
            }
            for number in all_numbers
        ],
        "claims": [
            {name: value for name, value in asdict(claim).items() if name != "at_any_scale"} for claim in all_claims
        ],
        "history_does_not_help": where_history_does_not_help(results),
        "regressor_wins": where_the_regressor_wins(results),
        "replay_does_not_win": where_replay_does_not_win(results),
        "not_computed": _skipped(results),
    }


def _versions(version: str) -> dict[str, str | None]:
    """Return the versions of what this was made with, None for what is not installed."""
    found: dict[str, str | None] = {"artreplay": version, "python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    return found


def timings(results: Results) -> dict[str, dict[str, float]]:
    """Return the processor seconds of everything computed, by experiment and by setting."""
    by_experiment: dict[str, float] = {}
    by_setting: dict[str, float] = {}
    for setting in results.settings():
        result = results.of(setting)
        if result is not None:
            name = f"{setting.experiment}{', networks' if setting.get('algorithm') in NETWORKS else ''}"
            by_experiment[name] = by_experiment.get(name, 0.0) + result.seconds
            by_setting[setting.key] = result.seconds
    return {"by experiment": by_experiment, "by setting": by_setting}


def _of(name: str, all_claims: Sequence[Claim], all_numbers: Sequence[Number]) -> tuple[list[Claim], list[Number]]:
    return [c for c in all_claims if c.experiment == name], [n for n in all_numbers if n.experiment == name]


# -- figures ------------------------------------------------------------------------------------------------------


def _draw(results: Results, folder: Path, jobs: int) -> dict[str, list[Drawn]]:
    """Draw all panels, in several processes if that is faster. Remove figures of an older report that are not in it."""
    folder.mkdir(parents=True, exist_ok=True)
    before = {path for name in TITLES for kind in ("png", "pdf") for path in folder.glob(f"{name}-*.{kind}")}
    parts = [results.only(experiment.name) for experiment in results.experiments]
    drawn: dict[str, list[Drawn]] = {}
    with Progress("drawing", len(parts), lines=True) as progress:
        for name, made in _drawn_parts(parts, folder, jobs):
            drawn[name] = made
            progress.update(len(drawn))
    now = {folder / f"{one.name}.{kind}" for made in drawn.values() for one in made for kind in ("png", "pdf")}
    for path in before - now:
        path.unlink()
    return drawn


def _drawn_parts(parts: Sequence[Results], folder: Path, jobs: int) -> Any:
    """Draw the figures of one experiment after another."""
    if jobs == 1 or len(parts) == 1:
        return map(_draw_part, parts, [folder] * len(parts))
    from joblib import Parallel, delayed

    longest_first = sorted(parts, key=lambda part: -len(part.settings()))
    parallel = Parallel(n_jobs=min(jobs, len(parts)), return_as="generator_unordered", batch_size=1)
    return parallel(delayed(_draw_part)(part, folder.absolute()) for part in longest_first)


def _draw_part(results: Results, folder: Path) -> tuple[str, list[Drawn]]:
    """Write the figures of one experiment as PNG and PDF, and return them as SVG for the page."""
    (experiment,) = results.experiments
    drawn = []
    for panel in panels(results, experiment.name) if results.has(experiment.name) else []:
        name = f"{experiment.name}-{panel.name}"
        panel.figure.savefig(folder / f"{name}.png", dpi=150)
        panel.figure.set_layout_engine("none")  # the layout of the first drawing serves for the others
        panel.figure.savefig(folder / f"{name}.pdf", metadata={"CreationDate": None})
        drawn.append(Drawn(name, panel.caption, svg_of(panel, name)))
    return experiment.name, drawn


# -- words --------------------------------------------------------------------------------------------------------


def _skipped(results: Results) -> list[str]:
    """List what is missing, and what it needs."""
    found: dict[str, int] = {}
    for setting in results.missing():
        lacking = missing(setting)
        why = "not computed yet" if lacking is None else f"needs {lacking}"
        if setting.key in results.damaged:
            why = "the result is damaged, run `make reproduce` again"
        words = f"{TITLES[setting.experiment][0]}: {why}"
        found[words] = found.get(words, 0) + 1
    return [f"{words} ({count} setting{'s' if count > 1 else ''})" for words, count in found.items()]


def _setting(results: Results) -> str:
    words = f"{_scale_in_words(results)} (the number of replications of each mean is in brackets)."
    if results.scale.horizon != FULL_SCALE.horizon:
        words = f"A tiny run, to try the machinery: its numbers mean nothing. {words}"
    if results.of_other_code:
        words += f" {results.of_other_code} of the results were computed by other code than this version's."
    return words


def _scale_in_words(results: Results) -> str:
    scale = results.scale
    counts = sorted({scale.few, scale.others, scale.compared})
    return f"{scale.horizon:,} rounds, {' or '.join(map(str, counts))} replications, seed {scale.seed}"


def _write_text(path: Path, text: str) -> None:
    """Write a file under a temporary name first, so that nobody reads half of it."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _json(document: Any) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _plain(value: float) -> float | None:
    return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
