"""The package SMART makes for PAWS: a folder, or that folder zipped."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from artreplay.errors import InvalidFile
from artreplay_patrol.area import Area, read_boundary
from artreplay_patrol.packages import package
from artreplay_patrol.readers.delimited_records import read_delimited
from artreplay_patrol.readers.record_columns import Kind, Raw
from artreplay_patrol.site import Site

DATA, CONFIG, CRS, BOUNDARY = "SMARTdata.csv", "config.json", "input_crs.wkt", "ca_boundary.zip"


@dataclass(frozen=True)
class SmartPackage:
    """Where its parts are; everything but the data may be missing."""

    folder: Path

    @classmethod
    def at(cls, folder: Path) -> SmartPackage | None:
        """The package in a folder, which may have one folder of its own around it; None if there is none."""
        for place in (folder, *sorted(child for child in folder.iterdir() if child.is_dir())):
            if (place / DATA).is_file():
                return cls(place)
        return None

    def prepared(self, site: Site) -> Site:
        """The site with what the package knows and the site file does not say."""
        config = self._config()
        zone = config.get("time_zone")
        if site.time_zone is None and isinstance(zone, str) and zone:
            site = replace(site, time_zone=zone)
        boundary = self.folder / BOUNDARY
        if site.boundary is None and "area" not in site.__dict__ and boundary.exists():
            site = site.with_area(Area.around(read_boundary(boundary, self._crs())))
        return site

    def read(self, site: Site) -> Raw:
        """Its rows, in longitude and latitude: an empty class says that nothing was seen there."""
        crs = self._crs()
        pyproj = package("pyproj")
        try:
            is_metric = crs is not None and not pyproj.CRS.from_user_input(crs).is_geographic
        except pyproj.exceptions.CRSError as error:
            raise InvalidFile(f"{CRS} is not a projection: {error}") from error
        site = replace(site, input_crs=crs) if is_metric else site
        return replace(read_delimited(self.folder / DATA, site, is_in_degrees=not is_metric), kind=Kind.WAYPOINTS)

    def _crs(self) -> str | None:
        path = self.folder / CRS
        text = path.read_text(encoding="utf-8", errors="replace").strip() if path.exists() else ""
        return text or None

    def _config(self) -> dict[str, Any]:
        path = self.folder / CONFIG
        if not path.exists():
            return {}
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InvalidFile(f"{CONFIG} of the package cannot be read: {error}") from error
        return found if isinstance(found, dict) else {}
