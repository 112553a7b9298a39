"""All files of a plan, or of a map, into one folder."""

from __future__ import annotations

import json
from pathlib import Path

from artreplay.errors import InvalidFile
from artreplay.whole_files import write_whole
from artreplay_patrol.plan import Plan
from artreplay_patrol.view import View
from artreplay_patrol.writers.page import page_bytes
from artreplay_patrol.writers.picture import png_bytes
from artreplay_patrol.writers.tables import csv_bytes, geopackage_bytes, gpx_bytes

PLAN_FILES = ("plan.gpx", "plan.gpkg", "plan.csv", "plan.png", "plan.html", "plan.json")


def write_plan(view: View, folder: Path) -> list[Path]:
    """Write the plan of a view in every format; each file is there as a whole, or not at all."""
    plan = view.plan
    if plan is None or not plan.items:
        raise InvalidFile("there is no plan to write")
    contents = {
        "plan.gpx": gpx_bytes(plan),
        "plan.gpkg": geopackage_bytes(view),
        "plan.csv": csv_bytes(plan),
        "plan.png": png_bytes(view),
        "plan.html": page_bytes(view),
        "plan.json": json.dumps(plan.to_dict(), ensure_ascii=False, indent=1).encode(),
    }
    return _write(folder, contents)


def write_map(view: View, folder: Path) -> list[Path]:
    """Write the map of a park: a picture, a page, and its boxes for a GIS program."""
    contents = {"map.png": png_bytes(view), "map.html": page_bytes(view), "map.gpkg": geopackage_bytes(view)}
    return _write(folder, contents)


def _write(folder: Path, contents: dict[str, bytes]) -> list[Path]:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidFile(f"{folder} cannot be made: {error.strerror or error}") from error
    paths = []
    for name, content in contents.items():
        write_whole(folder / name, lambda file, content=content: file.write(content), private=True)
        paths.append(folder / name)
    return paths


def find_plan_id(plan: Path) -> str:
    """The name of the plan in a folder that `write_plan` wrote; a name of a plan stays what it is."""
    path = plan / "plan.json" if plan.is_dir() else plan
    if not path.exists():
        if plan.suffix or len(plan.parts) > 1:
            raise InvalidFile(f"{plan} holds no plan: there is no plan.json")
        return str(plan)
    try:
        return Plan.from_dict(json.loads(path.read_text(encoding="utf-8"))).plan_id
    except (OSError, ValueError) as error:
        raise InvalidFile(f"{path} is not a plan: {error}") from error
