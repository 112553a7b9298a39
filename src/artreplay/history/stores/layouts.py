"""The two layouts of an indexed store, as they are written: arm by arm, or epoch by epoch and box by box."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from artreplay.compiling import Floats, Ints, resized
from artreplay.history.history import History
from artreplay.history.stores.checked_columns import chunk_checksums
from artreplay.history.stores.indexed_arms import IndexedArms
from artreplay.history.stores.indexed_points import CODE_BITS, Cut, IndexedPoints, Raster, raster_of
from artreplay.history.stores.intake import Sorter, Survey, coordinates_of
from artreplay.history.stores.manifest import Written, encode_label_list, written_array, written_file
from artreplay.history.stores.places import Place

GROUP = 1 << 16  # rows of a row group of Parquet: what is decoded at least
SAMPLES = "samples.parquet"


class ArmLayout:
    """Arm by arm, inside an arm by row; as raw columns or as Parquet.

    Arms lie in the order of their labels, because that is mostly the order in which algorithms first want them.
    """

    kind = "arms"
    sorted_by = ("code", "row")

    def __init__(self, survey: Survey, parquet: bool, store: IndexedArms | None = None, number: int = 0) -> None:
        """The rows come behind the first generations of a store, if there is one."""
        self.survey = survey
        self._parquet = parquet
        self._known = 0 if store is None else store.known_labels(number)
        nothing = np.zeros(0, np.int64), np.zeros(0)
        self._counts, self._totals = nothing if store is None else store.totals_before(number)
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

    def keyed(self, part: History, first: int, since: int, until: int) -> Any:
        """Samples from row `first` on with the place of their label; the rows [since, until) are written together."""
        return self._batch(self.survey.numbering.codes(part), np.arange(first, first + len(part)), part.rewards)

    def _batch(self, codes: Ints, rows: Ints, rewards: Floats) -> Any:
        import pyarrow as pa

        place = self._places()[1]
        if len(codes) and codes.max() >= len(place):  # a label that came after the look, whose rows will be refused
            place = np.concatenate([place, np.arange(len(place), int(codes.max()) + 1)])
        return pa.record_batch({"code": place[codes] if len(codes) else codes, "row": rows, "reward": rewards})

    def merged(self, store: Any, number: int, sorter: Sorter) -> Iterator[Any]:
        """The samples of a generation of a store and of those behind it, as they are to be written together."""
        return sorter.sorted((self._batch(*some) for some in store.samples(number)), self.sorted_by)

    def write(
        self, folder: Path, batches: Iterable[Any], row_bytes: int, advance: Callable[[int], None], since: int
    ) -> dict[str, Any]:
        """The columns, how many samples each label has, their sums, and the labels that are new."""
        labels = list(self.survey.numbering.labels)
        order, place = self._places()
        counts = np.zeros(len(order), np.int64)
        sums = _RunningSums(resized(self._counts, len(order))[order], resized(self._totals, len(order))[order])
        with ExitStack() as stack:
            kind = _ParquetColumns if self._parquet else _RawColumns
            columns = kind(folder, ("reward.f8", "row"), stack)
            for batch in batches:
                codes, rewards = np.asarray(batch.column("code")), np.asarray(batch.column("reward"))
                counts += np.bincount(codes, minlength=len(order))
                sums.add(codes, rewards)
                columns.write(rewards.astype("<f8"), np.asarray(batch.column("row")).astype(f"<u{row_bytes}"))
                advance(int(counts.sum()))
            files = columns.finish()
        files["sums.f8"] = written_array(folder / "sums.f8", sums.finish().astype("<f8"), column=True)
        files["counts.i8"] = written_array(folder / "counts.i8", counts[place].astype("<i8"))
        files["order.u4"] = written_array(folder / "order.u4", order.astype("<u4"))
        files["labels.json"] = written_array(folder / "labels.json", encode_label_list(labels[self._known :]))
        return {"files": files} | ({"parquet": [SAMPLES]} if self._parquet else {})

    def described(self) -> dict[str, Any]:
        """What the manifest says of the layout: nothing but what each generation says."""
        return {}


class _RunningSums:
    """The sums that `kept_ends` says of rewards that come sorted by arm, and inside an arm in order."""

    def __init__(self, counts: Ints, totals: Floats) -> None:
        """The arms had so many rewards with these sums before."""
        self._counts = counts.copy()
        self._totals = totals.copy()
        self._arm = -1
        self._found: list[Floats] = []

    def add(self, codes: Ints, rewards: Floats) -> None:
        """The next rewards, and the numbers of their arms."""
        present, starts = np.unique(codes, return_index=True)
        for code, values in zip(present.tolist(), np.split(rewards, starts[1:]), strict=False):
            if code != self._arm:
                self._end()
                self._arm = code
            before = int(self._counts[code])
            running = np.cumsum(np.concatenate([self._totals[code : code + 1], values]))
            now = before + len(values)
            powers = 1 << np.arange(before.bit_length(), now.bit_length(), dtype=np.int64)
            self._found.append(running[powers - before])
            self._counts[code], self._totals[code] = now, running[-1]

    def _end(self) -> None:
        """The arm at hand has no more rewards."""
        count = int(self._counts[self._arm]) if self._arm >= 0 else 1
        if count & (count - 1):
            self._found.append(self._totals[self._arm : self._arm + 1].copy())

    def finish(self) -> Floats:
        """All sums, arm by arm."""
        self._end()
        return np.concatenate([np.empty(0), *self._found])


class PointLayout:
    """Epoch by epoch, inside an epoch by level and Z-order code."""

    kind = "points"
    sorted_by = ("epoch", "key", "row")

    cut: ClassVar[Cut] = Cut()  # of new stores

    def __init__(self, survey: Survey, raster: Raster, cut: Cut | None = None) -> None:
        self.survey = survey
        self._raster = raster
        self._cut = self.cut if cut is None else cut

    def keyed(self, part: History, first: int, since: int, until: int) -> Any:
        """Samples with their epoch, and their level and code in one number."""
        import pyarrow as pa

        points = np.empty((0, len(self._raster.low))) if part.points is None else part.points
        rows = np.arange(first, first + len(part))
        starts = np.array([start for start, _ in self._cut.epochs(since, until - since)])
        keys = (self.survey.level_numbers(part) << CODE_BITS) | self._raster.codes(points)
        columns = {"epoch": np.searchsorted(starts, rows, side="right"), "key": keys, "row": rows}
        return pa.record_batch(columns | {"reward": part.rewards} | coordinates_of(points))

    def merged(self, store: Any, number: int, sorter: Sorter) -> Iterator[Any]:
        """The samples of several generations, cut into epochs anew."""
        since: int = store.manifest["generations"][number]["first"]

        def keyed() -> Iterator[Any]:
            """The log from there on."""
            first = since
            for part in store.stream(since):
                yield self.keyed(part, first, since, len(store))
                first += len(part)

        return sorter.sorted(keyed(), self.sorted_by)

    def write(
        self, folder: Path, batches: Iterable[Any], row_bytes: int, advance: Callable[[int], None], since: int
    ) -> dict[str, Any]:
        """The columns, and the key of the first sample of each block of each epoch."""
        axes = range(len(self._raster.low))
        names = ("point.f8", "reward.f8", "row", *(() if self.survey.levels is None else ("level.u2",)))
        epochs = self._cut.epochs(since, self.survey.rows - since)
        blocks = [np.arange(start, stop, self._cut.block) - since for start, stop in epochs]
        begins = np.concatenate([np.empty(0, np.int64), *blocks])  # places of the first samples of blocks
        firsts: list[Any] = []
        done = 0
        with ExitStack() as stack:
            columns = _RawColumns(folder, names, stack)
            for batch in batches:
                keys = np.asarray(batch.column("key"))
                points = np.column_stack([np.asarray(batch.column(f"x{axis}")) for axis in axes]).astype("<f8")
                rewards = np.asarray(batch.column("reward")).astype("<f8")
                rows = np.asarray(batch.column("row")).astype(f"<u{row_bytes}")
                columns.write(points, rewards, rows, (keys >> CODE_BITS).astype("<u2"))
                some = slice(*np.searchsorted(begins, [done, done + len(keys)]))
                firsts.append(keys[begins[some] - done])
                done += len(keys)
                advance(done)
            files = columns.finish()
        directory = np.concatenate([np.empty(0, np.int64), *firsts]).astype("<i8")
        files["keys.i8"] = written_array(folder / "keys.i8", directory)
        return {"files": files}

    def described(self) -> dict[str, Any]:
        """The space that is divided, the box the points lie in, and the levels."""
        least, most = self.survey.box or (np.zeros(0), np.zeros(0))
        space = {"low": self._raster.low, "high": self._raster.high, "least": least, "most": most}
        levels = None if self.survey.levels is None else list(self.survey.levels)
        return {
            "space": {name: side.tolist() for name, side in space.items()},
            "cut": list(self._cut),
            "levels": levels,
        }


Layout = ArmLayout | PointLayout


class _RawColumns:
    """The column files of a generation, written side by side."""

    def __init__(self, folder: Path, names: Iterable[str], stack: ExitStack) -> None:
        self._files = {name: Written(folder / name) for name in names}
        for file in self._files.values():
            stack.callback(file.close)

    def write(self, *columns: np.ndarray[Any, Any]) -> None:
        """Append to each column; those that have no file come last."""
        for file, array in zip(self._files.values(), columns, strict=False):
            file.write(array)

    def finish(self) -> dict[str, Any]:
        """Force all to disk; what the manifest says of them."""
        return {name: file.finish() for name, file in self._files.items()}


class _ParquetColumns:
    """The same columns in a Parquet file."""

    def __init__(self, folder: Path, names: Iterable[str], stack: ExitStack) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._folder = folder
        self._schema = pa.schema([("reward", pa.float64()), ("row", pa.int64())])
        self._writer = pq.ParquetWriter(folder / SAMPLES, self._schema, write_page_checksum=True)
        stack.callback(self._writer.close)

    def write(self, *columns: np.ndarray[Any, Any]) -> None:
        """Append to each column."""
        import pyarrow as pa

        arrays = [columns[0], columns[1].astype(np.int64)]
        self._writer.write_table(pa.table(arrays, schema=self._schema), row_group_size=GROUP)

    def finish(self) -> dict[str, Any]:
        """Force the file to disk, with the checksums of its parts in another."""
        self._writer.close()
        entry, found = chunk_checksums(Place(self._folder).open(SAMPLES))
        checksums = written_array(self._folder / "chunks.u4", np.array(found, "<u4"))
        return {SAMPLES: written_file(self._folder / SAMPLES) | entry, "chunks.u4": checksums}


def layout_of(survey: Survey, parquet: bool) -> Layout:
    """The layout for a log that was looked at."""
    return ArmLayout(survey, parquet) if survey.box is None else PointLayout(survey, raster_of(*survey.box))


def layout_behind(store: IndexedArms | IndexedPoints, number: int) -> Layout:
    """The layout for rows that come behind the first generations of a store."""
    manifest = store.manifest
    if isinstance(store, IndexedArms):
        survey = Survey(store.labels, rewards=store.reward_bounds)
        return ArmLayout(survey, "parquet" in manifest["generations"][-1], store, number)
    survey = Survey((), store.level_values, store.reward_bounds, store.bounds)
    return PointLayout(survey, store.raster, Cut(*manifest["cut"]))
