"""From waypoints to samples: one per waypoint, as in the paper, or one per patrol, day and box, for plans."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from artreplay.compiling import Floats, Ints
from artreplay.history import History
from artreplay.whole_files import write_whole
from artreplay_patrol.area import Bools
from artreplay_patrol.site import Site
from artreplay_patrol.tracks import Segments, Walk, half_sums, pieces_of, segments, walk
from artreplay_patrol.waypoints import DRAWN

LEAST_INSIDE = 0.5  # of a box that a plan may choose
BOX_ROWS = pa.schema(
    [
        pa.field("patrol", pa.string(), nullable=False),
        pa.field("day", pa.date32(), nullable=False),
        pa.field("box_x", pa.int64(), nullable=False),
        pa.field("box_y", pa.int64(), nullable=False),
        pa.field("x", pa.float64(), nullable=False),
        pa.field("y", pa.float64(), nullable=False),
        pa.field("effort", pa.float64(), nullable=False),
        pa.field("level", pa.float64()),
        pa.field("observed", pa.bool_(), nullable=False),
        pa.field("waypoints", pa.int64(), nullable=False),
    ]
)


class Walked(NamedTuple):
    """Distinct waypoints in the order in which they were walked, with the effort each stands for."""

    row: Ints  # the row of the table where the waypoint first appears
    points: Floats  # in the unit square
    effort: Floats  # in the unit of the site: half of the ways on both sides
    observed: Bools
    known: Bools  # whether the effort is known: without times nobody knows the hours
    segments: Segments  # of the whole walk, with the waypoints outside the boundary
    ways: Ints  # of each way that was walked: the number of the waypoint it begins at; it ends at the next one
    way_effort: Floats  # nan where it is not known


def walked_waypoints(table: Any, site: Site) -> Walked:
    """Effort and label of each waypoint: half of the way to both its neighbours, and whether a sight counts."""
    km = np.nan_to_num(site.area.to_km(table["lon"], table["lat"]), posinf=1e9, neginf=-1e9)
    done = walk(tracks_of(table["patrol"], table["leg"]), days(table), times(table), ranks(table["waypoint"]), km)
    row = done.order[done.first]
    inside = np.asarray(table["inside"])[row]
    drawn = np.asarray(pc.starts_with(table["leg"], DRAWN))[row]
    found = segments(done, inside, drawn, site.max_gap_km, site.max_speed_kmh)
    values = found.km if site.unit == "km" else found.hours
    observed = np.zeros(len(row), np.bool_)
    np.logical_or.at(observed, done.waypoint, site.counts(table["category"].to_pylist())[done.order])
    points = np.clip(site.area.km_to_unit(done.km[inside]), 0.0, 1.0)
    effort = half_sums(values, found.joined) if len(row) else np.empty(0)
    known = np.full(len(row), True) if site.unit == "km" else _hours_known(done, times(table)[row])
    at = np.flatnonzero(found.joined)
    ways = (np.cumsum(inside) - 1)[at]
    return Walked(row[inside], points, effort[inside], observed[inside], known[inside], found, ways, values[at])


def _hours_known(done: Walk, time: Any) -> Bools:
    """Whether times say how long each waypoint took: its track has several, or it is all there is of the track."""
    only: Bools = np.bincount(done.track, minlength=1)[done.track] == 1
    known: Bools = ~np.isnan(done.seconds) | (only & ~np.isnat(time))
    return known


def waypoint_samples(table: Any, site: Site) -> History:
    """One sample per waypoint: its place, the level of its effort, and 1 if something that counts was seen there.

    A waypoint with too little effort for any level is left out, and so is one whose effort nobody knows.
    """
    found = walked_waypoints(table, site)
    levels = site.level_of(found.effort)
    kept = ~np.isnan(levels) & found.known
    return History(found.points[kept], found.observed[kept].astype(np.float64), levels=levels[kept])


def box_samples(table: Any, site: Site) -> tuple[History, Any]:
    """One sample per patrol, day and finest box: the summed effort and whether anything that counts was seen.

    Beside the history comes a table with a row for each of its samples. They are in the order in which patrols and
    days first appear in the records, so that records appended later append samples. A box without a sample was not
    visited: that is no data, not a zero.
    """
    return samples_of(all_box_rows(table, site))


def samples_of(rows: Any) -> tuple[History, Any]:
    """The samples among the rows that `all_box_rows` gives: those with enough effort for a level."""
    kept = rows.filter(rows["level"].is_valid())
    points = np.stack([np.asarray(kept["x"]), np.asarray(kept["y"])], axis=1)
    return History(points, np.asarray(kept["observed"]).astype(np.float64), levels=np.asarray(kept["level"])), kept


def all_box_rows(table: Any, site: Site, found: Walked | None = None) -> Any:
    """Like the table of `box_samples`, with a row also where the effort is too little for any level, or not known.

    The effort of a way goes to the boxes that it crosses, however far its ends are from each other. `found` is what
    `walked_waypoints` gave, if that is at hand.
    """
    found = walked_waypoints(table, site) if found is None else found
    pieces = pieces_of(found.points[found.ways], found.points[found.ways + 1], site.finest)
    box = box_of(pieces.middle, site.finest)
    in_park = site.area.mask(site.finest)[box[:, 0], box[:, 1]]  # a straight way may leave a park that has a bay
    way = pieces.way[in_park]
    none = np.zeros(len(found.row))
    start = np.concatenate([np.arange(len(found.row)), found.ways[way]])  # every waypoint, and then every piece
    places = np.concatenate([found.points, pieces.middle[in_park]])
    efforts = np.concatenate([none, found.way_effort[way] * pieces.share[in_park]])
    is_waypoint = np.arange(len(start)) < len(found.row)
    observed, known = found.observed[start] & is_waypoint, np.where(is_waypoint, found.known[start], efforts == efforts)
    box = box_of(places, site.finest)
    rows_of = found.row[start]
    patrol, day = codes(table["patrol"])[rows_of], days(table)[rows_of].astype(np.int64)
    keys = np.stack([patrol, day, box[:, 0] * site.finest + box[:, 1]], axis=1)
    _, first, number = np.unique(_packed(keys), return_index=True, return_inverse=True)
    count = len(first)
    effort = np.bincount(number, np.nan_to_num(efforts), count)
    middle = [np.bincount(number, places[:, axis], count) / np.bincount(number, minlength=count) for axis in (0, 1)]
    appeared = np.full(count, len(table))
    np.minimum.at(appeared, number, rows_of)
    order = np.lexsort((first, appeared))
    rows = rows_of[first[order]]
    at = box[first[order]]
    low, high = at / site.finest, np.nextafter((at + 1) / site.finest, 0.0)
    centres = np.clip(np.stack(middle, axis=1)[order], low, np.where(at + 1 == site.finest, 1.0, high))
    is_known = np.bincount(number, known, count) > 0
    levels = np.where(is_known[order], site.level_of(effort[order]), np.nan)
    columns = {
        "patrol": table["patrol"].take(rows).combine_chunks(),
        "day": table["day"].take(rows).combine_chunks(),
        "box_x": at[:, 0],
        "box_y": at[:, 1],
        "x": centres[:, 0],
        "y": centres[:, 1],
        "effort": effort[order],
        "level": pa.array(levels, mask=np.isnan(levels)),
        "observed": (np.bincount(number, observed, count) > 0)[order],
        "waypoints": np.bincount(number, is_waypoint, count).astype(np.int64)[order],
    }
    return pa.table(columns, schema=BOX_ROWS)


def write_samples(rows: Any, site: Site, path: Path) -> int:
    """Write the samples among the rows that `all_box_rows` gives as Parquet, and return how many there are.

    What an algorithm must know of the park stands in the metadata of the file under "park", as JSON: the levels, the
    boxes along each side, and for each box whether a plan may choose it.
    """
    kept = samples_of(rows)[1]
    table = kept.append_column("reward", kept["observed"].cast(pa.float64()))
    inside = site.area.mask(site.finest, least=LEAST_INSIDE)
    about = {"levels": site.levels, "unit": site.unit, "side": site.finest, "inside": inside.tolist()}
    names = ["x", "y", "level", "reward", "effort", "patrol", "day", "box_x", "box_y"]
    table = table.select(names).replace_schema_metadata({"park": json.dumps(about)})
    write_whole(path, lambda file: pq.write_table(table, file, compression="zstd"), private=True)
    return len(table)


def in_order(rows: Any) -> Any:
    """Rows of `all_box_rows` in an order that only depends on which there are: by day, then by patrol, then by box."""
    return rows.sort_by([(name, "ascending") for name in ("day", "patrol", "box_x", "box_y")])


def box_of(points: Floats, side: int) -> Ints:
    """The box of a grid each point of the unit square lies in, as (x, y)."""
    boxes: Ints = np.clip(np.floor(points * side).astype(np.int64), 0, side - 1)
    return boxes


def codes(column: Any) -> Ints:
    """A column of texts as numbers, in the order of first appearance."""
    encoded = (column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column).dictionary_encode()
    return np.asarray(encoded.indices.cast(pa.int64()))


def tracks_of(patrol: Any, leg: Any) -> Ints:
    """The patrol and leg of each row as one number."""
    return _packed(np.stack([codes(patrol), codes(leg)], axis=1))


def ranks(column: Any) -> Ints:
    """A column of texts as numbers in their own order, the short ones first: 9 comes before 10."""
    encoded = (column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column).dictionary_encode()
    texts = encoded.dictionary
    order = pc.sort_indices(
        pa.table({"length": pc.utf8_length(texts), "text": texts}), [("length", "ascending"), ("text", "ascending")]
    )
    place = np.empty(len(texts), np.int64)
    place[np.asarray(order)] = np.arange(len(texts))
    ranked: Ints = place[np.asarray(encoded.indices)]
    return ranked


def days(table: Any) -> Any:
    """The days as NumPy has them."""
    return np.asarray(table["day"]).astype("datetime64[D]")


def times(table: Any) -> Any:
    """The times as NumPy has them, NaT where there is none."""
    return np.asarray(table["time"]).astype("datetime64[us]")


def _packed(keys: Ints) -> Ints:
    """Rows of integers as single integers that are equal when the rows are."""
    packed = np.zeros(len(keys), np.int64)
    for column in keys.T:
        _, number = np.unique(column, return_inverse=True)
        packed = packed * (int(number.max(initial=0)) + 1) + number
    return packed
