"""`Site`: what a park's own site file says about its records and its plans."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from artreplay.algorithms.point_algorithms import checked_levels
from artreplay.compiling import Floats
from artreplay.errors import InvalidFile, InvalidParameter, checked_count, checked_number
from artreplay.whole_files import write_whole
from artreplay_patrol.area import Area, Bools, checked_input_crs, read_boundary
from artreplay_patrol.dates import checked_date_format
from artreplay_patrol.map_layers import MapLayer, read_layer
from artreplay_patrol.packages import package
from artreplay_patrol.posts import Post, Team, check_posts, checked_teams
from artreplay_patrol.site_file import site_parameters

Unit = Literal["km", "hours"]
Way = Literal["walked", "driven"]
COLUMNS = (
    "patrol",
    "device",
    "leg",
    "date",
    "time",
    "lon",
    "lat",
    "geometry",
    "category",
    "waypoint",
)  # a site can name
FILE_KINDS = ("tracks", "sightings", "waypoints")
SITE_FILE, BOUNDARY_FILE = "site.yaml", "boundary.geojson"
# What a park can change: nothing that was read depends on these lines. (Of effort, its unit is fixed.)
CHANGEABLE = (
    *("name", "effort", "period_days", "observations", "date_format", "columns", "input_crs", "files"),
    *("posts", "reach_km", "near_km", "teams", "way", "pace_kmh", "layers"),
)
_MAX_POWER = 9  # 512 boxes along each side take minutes for a plan
_QUANTILES = (0.5, 0.8, 0.95)  # of the effort of a visit
_ROUND = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
_BETWEEN = " / "  # the parts of a category, from the general to the particular
_BESIDE = " + "  # several categories of one row


@dataclass(frozen=True)
class Site:
    """How a park's records are to be read and its plans to be made.

    `levels` are the efforts a plan can ask for, in `unit`; a sample counts as one of the level that is nearest to its
    effort.

    >>> site = Site("Our park", levels=(2, 4, 8))
    >>> site.level_of([0.5, 3.0, 99.0]).tolist()
    [2.0, 4.0, 8.0]
    """

    name: str
    boundary: Path | None = None  # a vector file; None if it comes with the records
    unit: Unit = "km"
    levels: tuple[float, ...] = (1.0, 2.0, 4.0)
    period: int = 7  # days a plan is for
    observations: tuple[tuple[str, bool], ...] | None = None  # which categories count; None if all do
    max_gap_km: float = 5.0
    max_speed_kmh: float = 10.0
    date_format: str | None = None
    time_zone: str | None = None  # of times that bring an offset with them
    box_km: float = 1.0  # about the width of a box; the square around the park has a power of two of them on each side
    columns: tuple[tuple[str, str], ...] = ()  # what a plain CSV calls patrol, date, time, lon, lat, category, waypoint
    input_crs: str | None = None  # of x and y in tables, and of files that do not say what theirs is
    files: tuple[tuple[str, str], ...] = ()  # patterns of file names, and what these are: tracks, sightings, waypoints
    posts: tuple[Post, ...] = ()  # where patrols start
    reach_km: float = math.inf  # from a post, as the crow flies, up to which a plan sends anybody
    near_km: float = math.inf  # between any two places of one patrol, at most
    teams: tuple[Team, ...] = ()  # each with a budget of its own
    way: Way = "walked"  # from posts to places, which the budget then pays, or driven
    pace_kmh: float = 3.0  # of people who walk to a place, where effort is counted in hours
    layers: tuple[tuple[str, Path], ...] = ()  # GIS files of what people know a place by: roads, rivers, villages
    posts_file: Path | None = None  # that posts were read from
    levels_are_open: bool = False  # whether the site file leaves the levels to what the records propose

    def __post_init__(self) -> None:
        change = _checked(self)
        for name, value in change.items():
            object.__setattr__(self, name, value)

    @classmethod
    def load(cls, path: Path | str) -> Site:
        """Read a site file (YAML); the boundary is looked for beside it."""
        path = Path(path)
        if path.is_dir():
            path = path / SITE_FILE
        yaml = package("yaml")
        try:
            document = yaml.safe_load(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise InvalidFile(f"the site file {path} does not exist") from None
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidFile(f"the site file {path} cannot be read: {error}") from error
        except yaml.YAMLError as error:
            raise InvalidFile(f"the site file {path} is not YAML: {_where(error)}") from None
        if not isinstance(document, dict):
            raise InvalidFile(f"the site file {path} must hold lines such as 'name: Our park', got {document!r}")
        try:
            return cls(**site_parameters(document, path.parent, [field.name for field in fields(cls)]))
        except InvalidParameter as error:
            raise InvalidFile(f"the site file {path}: {error}") from error

    def save(self, folder: Path) -> None:
        """Write the site file and the boundary into a folder, so that it needs nothing from elsewhere."""
        shapely = package("shapely")
        shape = json.loads(shapely.to_geojson(self.area.boundary))
        document = json.dumps(
            {"type": "FeatureCollection", "features": [{"type": "Feature", "properties": {}, "geometry": shape}]}
        )
        write_whole(folder / BOUNDARY_FILE, lambda file: file.write(document.encode()), private=True)
        self.save_layers(folder)
        write_whole(folder / SITE_FILE, lambda file: file.write(self.to_yaml()), private=True)

    def save_layers(self, folder: Path) -> None:
        """Write the layers of the map into a folder, under names that say what is in them."""
        for layer in self.map_layers:
            write_whole(folder / layer.file, lambda file, layer=layer: file.write(layer.content), private=True)

    @cached_property
    def map_layers(self) -> tuple[MapLayer, ...]:
        """What people know a place by."""
        return tuple(read_layer(name, path) for name, path in self.layers)

    def to_yaml(self) -> bytes:
        """The content of a site file whose boundary lies beside it."""
        text: str = package("yaml").safe_dump(self.document(), sort_keys=False, allow_unicode=True)
        return text.encode()

    @cached_property
    def area(self) -> Area:
        """The park in the unit square."""
        if self.boundary is None:
            raise InvalidParameter(
                "a boundary must be given: add a line such as 'boundary: park.gpkg' to the site file "
                "(any GeoPackage, GeoJSON or shapefile)"
            )
        area = Area.around(read_boundary(self.boundary))
        check_posts(self.posts, area)
        return area

    @cached_property
    def finest(self) -> int:
        """Boxes along each side of the square: a power of two, such that a box is about as wide as `box_km`."""
        power = round(math.log2(self.area.side_km / self.box_km))
        if power > _MAX_POWER:
            least = self.area.side_km / 2.0**_MAX_POWER
            raise InvalidParameter(f"box_km must be at least {least:.2g} in a park of this size, got {self.box_km:g}")
        return int(2 ** max(power, 1))

    def place_of(self, box: int) -> tuple[float, float]:
        """Longitude and latitude of the place that a plan names in a box (x · finest + y)."""
        x, y = divmod(box, self.finest)
        return self.area.place_in((x / self.finest, y / self.finest), ((x + 1) / self.finest, (y + 1) / self.finest))

    def size_sentence(self) -> str:
        """How large the park and its boxes are."""
        width = self.area.side_km / self.finest
        return f"The park has {self.area.km2:,.0f} km², in boxes of {width:.2g} × {width:.2g} km."

    def with_area(self, area: Area) -> Site:
        """This site with an area that came from elsewhere, such as a package of records."""
        new = replace(self)
        new.__dict__["area"] = area
        check_posts(self.posts, area)
        return new

    def with_levels(self, levels: Sequence[float]) -> Site:
        """This site with levels of effort that its file left open."""
        return replace(self, levels=tuple(levels), levels_are_open=False).with_area(self.area)

    def level_of(self, efforts: Any) -> Floats:
        """The level each effort counts as: the nearest one."""
        place = np.searchsorted(midway_thresholds(self.levels), np.asarray(efforts, np.float64), side="right") - 1
        found: Floats = np.array(self.levels)[np.maximum(place, 0)]
        return found

    def counts(self, categories: list[str | None]) -> Bools:
        """Which of these categories are an observation of the kind the plans are about."""
        known: dict[str | None, bool] = {None: False}
        for category in set(categories) - {None}:
            known[category] = self.verdict(str(category)) is True
        return np.array([known[category] for category in categories], np.bool_)

    def verdict(self, category: str) -> bool | None:
        """Whether a category counts; None if the site file does not name it.

        A category may have parts, from the general to the particular: the most particular one that is named decides.
        Of several categories beside each other one that counts is enough.

        >>> site = Site("Our park", observations=(("Wildlife", True), ("Wildlife / Insects", False)))
        >>> [site.verdict(text) for text in ("wildlife / Lion", "Wildlife / Insects", "Weather")]
        [True, False, None]
        >>> site.verdict("Wildlife / Lion + Wildlife / Insects")
        True
        """
        if self.observations is None:
            return True
        if self.names(category):
            return self._named[_folded(category)]
        verdicts = [_verdict(one, self._named) for one in category.split(_BESIDE)]
        known = [one for one in verdicts if one is not None]
        return any(known) if known else None

    def unnamed(self, category: str) -> list[str]:
        """What the site file does not name of a category, or of several beside each other."""
        if self.names(category):
            return []
        return [one for one in category.split(_BESIDE) if self.verdict(one) is None]

    def names(self, category: str) -> bool:
        """Whether the site file has a line for just this category."""
        return _folded(category) in self._named

    @cached_property
    def _named(self) -> dict[str, bool]:
        return {_folded(name): counts for name, counts in self.observations or ()}

    def own_names(self, meaning: str) -> tuple[str, ...]:
        """What the site's own files call a column: one of these names, if the site file says any."""
        return tuple(name for known, name in self.columns if known == meaning)

    def kind_of_file(self, name: str) -> str | None:
        """What the site file says that a file is; None if it says nothing."""
        return next((kind for pattern, kind in self.files if fnmatch(name.casefold(), pattern.casefold())), None)

    def document(self) -> dict[str, Any]:
        """What a site file says, beside its boundary."""
        document: dict[str, Any] = {"name": self.name, "boundary": BOUNDARY_FILE}
        document["effort"] = {"unit": self.unit, "levels": list(self.levels)}
        document["period_days"] = self.period
        document["observations"] = "any" if self.observations is None else dict(self.observations)
        document |= {name: getattr(self, name) for name in ("max_gap_km", "max_speed_kmh", "box_km", "way", "pace_kmh")}
        optional = {name: getattr(self, name) for name in ("date_format", "time_zone", "input_crs")}
        names = {meaning: self.own_names(meaning) for meaning, _ in self.columns}
        columns = {meaning: own[0] if len(own) == 1 else list(own) for meaning, own in names.items()}
        optional |= {"columns": columns or None, "files": dict(self.files) or None}
        optional |= {name: value for name in ("reach_km", "near_km") if math.isfinite(value := getattr(self, name))}
        optional["posts"] = [post._asdict() for post in self.posts] or None
        optional["teams"] = [team._asdict() for team in self.teams] or None
        optional["layers"] = {layer.name: layer.file for layer in self.map_layers} or None
        return document | {name: value for name, value in optional.items() if value is not None}


def _where(error: Any) -> str:
    """What is wrong with YAML and in which line, without the line itself: it may say where a post is."""
    mark = getattr(error, "problem_mark", None)
    at = "" if mark is None else f" in line {mark.line + 1}"
    return f"{getattr(error, 'problem', None) or 'it cannot be read'}{at}"


def midway_thresholds(levels: Sequence[float]) -> tuple[float, ...]:
    """The efforts from which each level counts, if the nearest level is to count.

    >>> midway_thresholds((2.0, 4.0, 8.0))
    (0.0, 3.0, 6.0)
    """
    return (0.0, *((low + high) / 2.0 for low, high in itertools.pairwise(levels)))


def proposed_levels(efforts: Any) -> tuple[float, ...]:
    """Levels of effort that fit the visits there were: the half, 8 of 10 and 19 of 20 quantiles in round numbers.

    >>> proposed_levels([0.4, 0.9, 1.1, 1.2, 2.2, 3.7])
    (1.0, 2.0, 3.0)
    >>> proposed_levels([])
    (1.0, 2.0, 4.0)
    """
    known = np.asarray(efforts, np.float64)
    known = known[known > 0.0]
    if not len(known):
        return Site.levels
    levels = {_round_number(quantile) for quantile in np.quantile(known, _QUANTILES).tolist()}
    return tuple(sorted(levels))


def _round_number(value: float) -> float:
    """The nearest of 1, 1.5, 2, 3, 4, 5, 6 and 8, times a power of ten."""
    power = math.floor(math.log10(value))
    return min((round(digit * 10.0**power, 9) for digit in _ROUND), key=lambda number: abs(math.log(number / value)))


def join_category(parts: list[str]) -> str | None:
    """One category from its parts, from the general to the particular; None if all are empty."""
    kept = [part.strip() for part in parts if part and part.strip()]
    return _BETWEEN.join(kept) or None


def join_beside(categories: Sequence[str | None]) -> str | None:
    """Several categories of one row as one text, each of them once; None if there is none."""
    return _BESIDE.join(dict.fromkeys(category for category in categories if category)) or None


def _verdict(category: str, named: Mapping[str, bool]) -> bool | None:
    """What is said of the most particular part of one category that is named."""
    parts = [_folded(part) for part in category.split(_BETWEEN.strip())]
    for last in range(len(parts), 0, -1):
        for name in (_BETWEEN.join(parts[:last]), parts[last - 1]):
            if name in named:
                return named[name]
    return None


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


# -- checks -------------------------------------------------------------------------------------------------------


def _checked(site: Site) -> dict[str, Any]:
    """The parameters of a site in their final form, or what is wrong with them."""
    if not isinstance(site.name, str) or not site.name.strip():
        raise InvalidParameter(f"name must be a text, got {site.name!r}")
    if site.unit not in get_args(Unit):
        raise InvalidParameter(f"the unit of effort must be km or hours, got {site.unit!r}")
    levels = checked_levels(site.levels)
    if site.way not in get_args(Way):
        raise InvalidParameter(f"way must be walked or driven, got {site.way!r}")
    for name, _ in site.columns:
        if name not in COLUMNS:
            raise InvalidParameter(f"columns can name {', '.join(COLUMNS)}, got {name!r}")
    change = {
        "levels": levels,
        "period": checked_count("period_days", site.period),
        "max_gap_km": _positive("max_gap_km", site.max_gap_km),
        "max_speed_kmh": _positive("max_speed_kmh", site.max_speed_kmh),
        "box_km": _positive("box_km", site.box_km),
        "pace_kmh": _positive("pace_kmh", site.pace_kmh),
    }
    for pattern, kind in site.files:
        if kind not in FILE_KINDS:
            raise InvalidParameter(f"files can be {', '.join(FILE_KINDS)}, got {kind!r} for {pattern!r}")
    if site.input_crs is not None:
        change["input_crs"] = checked_input_crs(site.input_crs)
    if site.date_format is not None:
        change["date_format"] = checked_date_format(site.date_format)
    if site.time_zone is not None:
        change["time_zone"] = _checked_zone(site.time_zone)
    if site.boundary is not None:
        change["boundary"] = Path(site.boundary)
    for name in ("reach_km", "near_km"):
        if getattr(site, name) != math.inf:
            change[name] = _positive(name, getattr(site, name))
    if math.isfinite(site.reach_km) and not site.posts:
        raise InvalidParameter("reach_km needs posts to be counted from: add posts to the site file")
    change["teams"] = checked_teams(site.teams, site.posts)
    return change


def _positive(name: str, value: Any) -> float:
    number = checked_number(name, value)
    if not number > 0.0:
        raise InvalidParameter(f"{name} must be above 0, got {value!r}")
    return number


def _checked_zone(name: Any) -> str:
    from zoneinfo import ZoneInfo

    try:
        ZoneInfo(str(name))
    except (KeyError, ValueError, OSError):
        raise InvalidParameter(f"time_zone must be a name such as Africa/Kampala, got {name!r}") from None
    return str(name)
