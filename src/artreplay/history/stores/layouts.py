"""The two layouts of an indexed store: arm by arm, or epoch by epoch and box by box."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from artreplay.compiling import Floats, Ints, resized
from artreplay.history.history import History
from artreplay.history.sources import Columns
from artreplay.history.stores.checked_columns import chunk_checksums
from artreplay.history.stores.covering import CODE_BITS, Raster, raster_of
from artreplay.history.stores.indexed_arms import IndexedArms
from artreplay.history.stores.indexed_points import Cut, IndexedPoints
from artreplay.history.stores.manifest import Written, encode_label_list, written_array, written_file
from artreplay.history.stores.places import Place
from artreplay.history.stores.running_sums import RunningSums
from artreplay.history.stores.sorting import Sorter
from artreplay.history.stores.surveying import Survey

GROUP = 1 << 16  # rows of a row group of Parquet: what is decoded at least
_AT_ONCE = 1 << 18  # rows of generations that are put together
SAMPLES = "samples.parquet"


class Layout:
    """How samples are sorted and written."""

    kind: str
    sorted_by: tuple[str, ...]

    def __init__(self, survey: Survey) -> None:
        self.survey = survey

    def schema(self) -> Any:
        """Of the batches that are sorted."""
        raise NotImplementedError

    def keyed(self, part: History, first: int, since: int, until: int) -> Iterator[Any]:
        """Samples from row `first` on, with what they are sorted by; the rows [since, until) are written together."""
        raise NotImplementedError

    def merged(self, store: Any, number: int, sorter: Sorter) -> Iterator[Any]:
        """The samples of a generation of a store and of those behind it, as they are to be written together."""
        raise NotImplementedError

    def write(
        self, folder: Path, batches: Iterable[Any], row_bytes: int, advance: Callable[[int], None], since: int
    ) -> dict[str, Any]:
        """Write sorted samples; what the manifest says of them."""
        raise NotImplementedError

    def described(self) -> dict[str, Any]:
        """What the manifest says of the layout."""
        raise NotImplementedError


class ArmLayout(Layout):
    """Arm by arm, inside an arm by row; as raw columns or as Parquet.

    Arms lie in the order of their labels, because that is mostly the order in which algorithms first want them.
    """

    kind = "arms"
    sorted_by = ("code", "row")

    def __init__(
        self,
        survey: Survey,
        parquet: bool = False,
        known: int = 0,
        counts: Ints | None = None,
        sums: Floats | None = None,
    ) -> None:
        """The first labels are `known` from rows that come before: so many of each, and the sums of their rewards."""
        super().__init__(survey)
        self._parquet = parquet
        self._known = known
        self._counts: Ints = np.zeros(0, np.int64) if counts is None else counts
        self._sums: Floats = np.zeros(0) if sums is None else sums
        self._order: Ints | None = None

    def _places(self) -> tuple[Ints, Ints]:
        """The labels in the order in which they lie, and the place of each."""
        if self._order is None:
            labels = list(self.survey.numbering.labels)
            try:
                self._order = np.array(sorted(range(len(labels)), key=labels.__getitem__), np.int64)  # type: ignore[arg-type]
            except TypeError:  # labels of several types
                self._order = np.arange(len(labels))
        return self._order, np.argsort(self._order)

    def schema(self) -> Any:
        """The number of the label, the row, the reward."""
        import pyarrow as pa

        return pa.schema([("code", pa.int64()), ("row", pa.int64()), ("reward", pa.float64())])

    def keyed(self, part: History, first: int, since: int, until: int) -> Iterator[Any]:
        """Samples with the number of their label."""
        import pyarrow as pa

        rows, place = np.arange(first, first + len(part)), self._places()[1]
        codes = self.survey.numbering.codes(part)
        if len(codes) and codes.max() >= len(place):  # a label that came after the look, whose rows will be refused
            place = np.concatenate([place, np.arange(len(place), int(codes.max()) + 1)])
        yield pa.record_batch([place[codes] if len(codes) else codes, rows, part.rewards], schema=self.schema())

    def merged(self, store: Any, number: int, sorter: Sorter) -> Iterator[Any]:
        """The samples of each arm, generation after generation: they are in order already."""
        import pyarrow as pa

        order, place = self._places()
        for codes, rows, rewards in store.batches(number, order, _AT_ONCE):
            sorter.check()
            yield pa.record_batch([place[codes], rows, rewards], schema=self.schema())

    def write(
        self, folder: Path, batches: Iterable[Any], row_bytes: int, advance: Callable[[int], None], since: int
    ) -> dict[str, Any]:
        """The columns, how many samples each label has, their sums, and the labels that are new."""
        labels = list(self.survey.numbering.labels)
        encoded = encode_label_list(labels[self._known :])
        order, place = self._places()
        counts = np.zeros(len(order), np.int64)
        sums = RunningSums(resized(self._counts, len(order))[order], resized(self._sums, len(order))[order])
        with _ParquetColumns(folder) if self._parquet else _Columns(folder, ("reward.f8", "row")) as columns:
            for batch in batches:
                codes = np.asarray(batch.column("code"))
                counts += np.bincount(codes, minlength=len(order))
                rewards = np.asarray(batch.column("reward"))
                sums.add(codes, rewards)
                columns.write("reward.f8", rewards.astype("<f8"))
                columns.write("row", np.asarray(batch.column("row")).astype(f"<u{row_bytes}"))
                advance(columns.rows(len(codes)))
            files = columns.finish()
        files["sums.f8"] = written_array(folder / "sums.f8", sums.finish().astype("<f8"), column=True)
        files["counts.i8"] = written_array(folder / "counts.i8", counts[place].astype("<i8"))
        files["order.u4"] = written_array(folder / "order.u4", order.astype("<u4"))
        files["labels.json"] = written_array(folder / "labels.json", encoded)
        return {"files": files} | ({"parquet": [SAMPLES]} if self._parquet else {})

    def described(self) -> dict[str, Any]:
        """Nothing but what each generation says."""
        return {}


class PointLayout(Layout):
    """Epoch by epoch, inside an epoch by level and Z-order code."""

    kind = "points"
    sorted_by = ("epoch", "key", "row")

    cut: ClassVar[Cut] = Cut()  # of new stores

    def __init__(self, survey: Survey, raster: Raster, cut: Cut | None = None) -> None:
        super().__init__(survey)
        self.raster = raster
        self._cut = self.cut if cut is None else cut
        self.axes = range(len(raster.low))

    def schema(self) -> Any:
        """The epoch and the key, the row, the reward, and the coordinates."""
        import pyarrow as pa

        names = [("epoch", pa.int64()), ("key", pa.int64()), ("row", pa.int64()), ("reward", pa.float64())]
        return pa.schema([*names, *((f"x{axis}", pa.float64()) for axis in self.axes)])

    def keyed(self, part: History, first: int, since: int, until: int) -> Iterator[Any]:
        """Samples with their epoch, and their level and code in one number."""
        import pyarrow as pa

        points = np.empty((0, len(self.axes))) if part.points is None else part.points
        rows = np.arange(first, first + len(part))
        starts = np.array([start for start, _ in self._cut.epochs(since, until - since)])
        keys = (self.survey.level_numbers(part) << CODE_BITS) | self.raster.codes(points)
        columns = [np.searchsorted(starts, rows, side="right"), keys, rows, part.rewards]
        yield pa.record_batch([*columns, *(points[:, axis].copy() for axis in self.axes)], schema=self.schema())

    def merged(self, store: Any, number: int, sorter: Sorter) -> Iterator[Any]:
        """The samples of several generations, cut into epochs anew."""
        since: int = store.manifest["generations"][number]["first"]

        def keyed() -> Iterator[Any]:
            """The log from there on."""
            first = since
            for part in store.stream(since):
                yield from self.keyed(part, first, since, len(store))
                first += len(part)

        return sorter.sorted(keyed(), self.schema(), self.sorted_by)

    def write(
        self, folder: Path, batches: Iterable[Any], row_bytes: int, advance: Callable[[int], None], since: int
    ) -> dict[str, Any]:
        """The columns, and the key of the first sample of each block of each epoch."""
        names = ("point.f8", "reward.f8", "row", *(("level.u2",) if self.survey.has_levels else ()))
        firsts: list[Any] = []
        sizes = iter(stop - start for start, stop in self._cut.epochs(since, self.survey.rows - since))
        left = 0  # samples of the epoch at hand that are still to come
        at = 0  # the place of the next sample in its epoch
        with _Columns(folder, names) as columns:
            for batch in batches:
                keys = np.asarray(batch.column("key"))
                columns.write("point.f8", np.column_stack([np.asarray(batch.column(f"x{axis}")) for axis in self.axes]))
                columns.write("reward.f8", np.asarray(batch.column("reward")).astype("<f8"))
                columns.write("row", np.asarray(batch.column("row")).astype(f"<u{row_bytes}"))
                if self.survey.has_levels:
                    columns.write("level.u2", (keys >> CODE_BITS).astype("<u2"))
                done = 0
                while done < len(keys):
                    if left == 0:
                        left, at = next(sizes), 0
                    some = min(left, len(keys) - done)
                    firsts.append(keys[done : done + some][-at % self._cut.block :: self._cut.block])
                    done, left, at = done + some, left - some, at + some
                advance(columns.rows(len(keys)))
            files = columns.finish()
        directory = np.concatenate([np.empty(0, np.int64), *firsts]).astype("<i8")
        files["keys.i8"] = written_array(folder / "keys.i8", directory)
        return {"files": files}

    def described(self) -> dict[str, Any]:
        """The space that is divided, the box the points lie in, and the levels."""
        survey = self.survey
        least, most = (np.zeros(0) if side is None else side for side in (survey.least, survey.most))
        space = {"low": self.raster.low, "high": self.raster.high, "least": least, "most": most}
        return {
            "space": {name: side.tolist() for name, side in space.items()},
            "cut": list(self._cut),
            "levels": list(survey.levels) if survey.has_levels else None,
        }


class _Columns:
    """The column files of a generation, written side by side."""

    def __init__(self, folder: Path, names: Iterable[str]) -> None:
        self._files = {name: Written(folder / name) for name in names}
        self._rows = 0

    def __enter__(self) -> _Columns:
        return self

    def __exit__(self, *error: object) -> None:
        for file in self._files.values():
            file.close()

    def write(self, name: str, array: Any) -> None:
        """Append to one column."""
        self._files[name].write(array)

    def rows(self, more: int) -> int:
        """Count rows; how many there are now."""
        self._rows += more
        return self._rows

    def finish(self) -> dict[str, Any]:
        """Force all to disk; what the manifest says of them."""
        return {name: file.finish() for name, file in self._files.items()}


class _ParquetColumns(_Columns):
    """The same columns in a Parquet file."""

    def __init__(self, folder: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        super().__init__(folder, ())
        self._folder = folder
        self._schema = pa.schema([("row", pa.int64()), ("reward", pa.float64())])
        self._writer = pq.ParquetWriter(folder / SAMPLES, self._schema, write_page_checksum=True)
        self._waiting: dict[str, Any] = {}

    def __exit__(self, *error: object) -> None:
        self._writer.close()

    def write(self, name: str, array: Any) -> None:
        """Append to one column; the row is the last one."""
        import pyarrow as pa

        self._waiting[name] = array
        if name == "row":
            columns = [array.astype(np.int64), self._waiting["reward.f8"]]
            self._writer.write_table(pa.table(columns, schema=self._schema), row_group_size=GROUP)

    def finish(self) -> dict[str, Any]:
        """Force the file to disk, with the checksums of its parts in another."""
        self._writer.close()
        entry, found = chunk_checksums(Place(self._folder).open(SAMPLES))
        checksums = written_array(self._folder / "chunks.u4", np.array(found, "<u4"))
        return {SAMPLES: written_file(self._folder / SAMPLES) | entry, "chunks.u4": checksums}


def layout_of(columns: Columns, survey: Survey, parquet: bool) -> Layout:
    """The layout for a log that was looked at."""
    if not columns.are_points or survey.least is None or survey.most is None:
        return ArmLayout(survey, parquet)
    return PointLayout(survey, raster_of(survey.least, survey.most))


def layout_behind(store: IndexedArms | IndexedPoints, number: int) -> Layout:
    """The layout for rows that come behind the first generations of a store."""
    manifest = store.manifest
    if isinstance(store, IndexedArms):
        survey = Survey(store.labels)
        survey.rewards = store.reward_bounds
        parquet = "parquet" in manifest["generations"][-1]
        return ArmLayout(survey, parquet, store.known_labels(number), *store.totals_before(number))
    space = {name: np.array(side) for name, side in manifest["space"].items()}
    survey = Survey(levels=manifest["levels"] or ())
    survey.rewards, survey.has_levels = store.reward_bounds, manifest["levels"] is not None
    survey.least, survey.most = space["least"], space["most"]
    return PointLayout(survey, Raster(space["low"], space["high"]), Cut(*manifest["cut"]))
