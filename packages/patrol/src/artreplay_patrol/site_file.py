"""From the lines of a site file to the parameters of a site."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from artreplay.errors import InvalidParameter
from artreplay_patrol.posts import posts_from, teams_from


def site_parameters(document: Mapping[str, Any], folder: Path, known: Sequence[str]) -> dict[str, Any]:
    """The parameters of a site from the content of its file."""
    given = dict(document)
    effort = given.pop("effort", {})
    if not isinstance(effort, dict) or not set(effort) <= {"unit", "levels"}:
        raise InvalidParameter(f"effort must have the lines unit and levels, got {effort!r}")
    if "unit" in effort:
        given["unit"] = effort["unit"]
    if "levels" in effort:
        given["levels"] = effort["levels"]
    if "period_days" in given:
        given["period"] = given.pop("period_days")
    if given.get("boundary") is not None:
        given["boundary"] = folder / str(given["boundary"])
    if "observations" in given:
        given["observations"] = _observations(given["observations"])
    if "columns" in given:
        if not isinstance(given["columns"], dict):
            raise InvalidParameter(f"columns must say, for example, 'lon: Longitude', got {given['columns']!r}")
        given["columns"] = tuple(
            (str(name), str(column))
            for name, columns in given["columns"].items()
            for column in (columns if isinstance(columns, list) else [columns])
        )
    if "files" in given:
        if not isinstance(given["files"], dict):
            raise InvalidParameter(f"files must say, for example, '*.csv: sightings', got {given['files']!r}")
        given["files"] = tuple((str(name), str(kind)) for name, kind in given["files"].items())
    if "posts" in given:
        given["posts_file"] = folder / given["posts"] if isinstance(given["posts"], str) else None
        given["posts"] = posts_from(given["posts"], folder)
    if "teams" in given:
        given["teams"] = teams_from(given["teams"])
    if "layers" in given:
        if not isinstance(given["layers"], dict):
            raise InvalidParameter(f"layers must say, for example, 'Rivers: rivers.gpkg', got {given['layers']!r}")
        given["layers"] = tuple((str(name), folder / str(file)) for name, file in given["layers"].items())
    for name in given:
        if name not in known[:-2] and (name != "posts_file" or name in document):
            lines = [*known[:2], "effort", "period_days", *known[5:-2]]
            raise InvalidParameter(f"there must be no line {name!r}; the lines are {', '.join(lines)}")
    return {"name": folder.resolve().name, "levels_are_open": "levels" not in effort} | given


def _observations(given: Any) -> tuple[tuple[str, bool], ...] | None:
    """any, a list of categories that count, or categories with yes and no."""
    if given is None or given == "any":
        return None
    if isinstance(given, list) and all(isinstance(name, str) for name in given):
        return tuple((name, True) for name in given)
    if isinstance(given, dict) and all(isinstance(value, bool) for value in given.values()):
        return tuple((str(name), value) for name, value in given.items())
    raise InvalidParameter(
        f"observations must be any, a list of categories, or categories with yes or no, got {given!r}"
    )
