"""The two layouts of an indexed store, as they are written: arm by arm, or epoch by epoch and box by box."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from artreplay.compiling import Floats, Ints, resized
from artreplay.history.stores.checked_columns import chunk_checksums
from artreplay.history.stores.indexed_arms import IndexedArms
from artreplay.history.stores.indexed_points import CODE_BITS, Cut, IndexedPoints, raster_of
from artreplay.history.stores.intake import Survey, points_in
from artreplay.history.stores.manifest import encode_label_list, finished
from artreplay.history.stores.places import Place

GROUP = 1 << 16  # rows of a row group of Parquet: what is decoded at least
SAMPLES = "samples.parquet"


class _Layout:
    """How the rows [first, end) of a log are laid out that are written together."""

    def __init__(self, survey: Survey, first: int, end: int) -> None:
        self.survey = survey
        self.first, self.end = first, end
        self.row_bytes = 4 if end <= 1 << 32 else 8

    def described(self) -> dict[str, Any]:
        """What the manifest says of the layout."""
        return {}

    def _rows(self, batch: Any) -> np.ndarray[Any, Any]:
        return np.asarray(batch.column("row")).astype(f"<u{self.row_bytes}")


class ArmLayout(_Layout):
    """Arm by arm, inside an arm by row; as raw columns or as Parquet.

    Arms lie in the order of their labels, because that is mostly the order in which algorithms first want them.
    """

    kind = "arms"
    sorted_by = ("code", "row")

    def __init__(
        self, survey: Survey, first: int, end: int, parquet: bool, store: IndexedArms | None = None, number: int = 0
    ) -> None:
        """The rows come behind the first generations of a store, if there is one."""
        super().__init__(survey, first, end)
        self._parquet = parquet
        self._known = 0 if store is None else store.label_ends[number]
        nothing = np.zeros(0, np.int64), np.zeros(0)
        self._counts, self._totals = nothing if store is None else store.totals_before(number)
        self._labels = list(survey.numbering.labels)
        try:
            order = sorted(range(len(self._labels)), key=self._labels.__getitem__)  # type: ignore[arg-type]
        except TypeError:  # labels of several types
            order = list(range(len(self._labels)))
        self._order = np.array(order, np.int64)  # the labels in the order in which they lie
        self._places = np.argsort(self._order)  # the place of each

    def keyed(self, batch: Any) -> Any:
        """Samples with the place of their label."""
        import pyarrow as pa

        places = self._places[np.asarray(batch.column("code"))]
        return pa.record_batch({"code": places, "row": batch.column("row"), "reward": batch.column("reward")})

    def write(self, folder: Path, batches: Iterable[Any], advance: Callable[[int], None]) -> dict[str, Any]:
        """The columns, how many samples each label has, their sums, and the labels that are new."""
        order = self._order
        counts = np.zeros(len(order), np.int64)
        sums = _RunningSums(resized(self._counts, len(order))[order], resized(self._totals, len(order))[order])
        with ExitStack() as stack:
            kind = _ParquetColumns if self._parquet else _RawColumns
            columns = kind(folder, ("reward.f8", "row"), stack)
            for batch in batches:
                codes, rewards = np.asarray(batch.column("code")), np.asarray(batch.column("reward"))
                counts += np.bincount(codes, minlength=len(order))
                sums.add(codes, rewards)
                columns.write(rewards.astype("<f8"), self._rows(batch))
                advance(int(counts.sum()))
            files = columns.finish()
        files["sums.f8"] = written(folder / "sums.f8", sums.finish().astype("<f8"), column=True)
        files["counts.i8"] = written(folder / "counts.i8", counts[self._places].astype("<i8"))
        files["order.u4"] = written(folder / "order.u4", order.astype("<u4"))
        files["labels.json"] = written(folder / "labels.json", encode_label_list(self._labels[self._known :]))
        return {"files": files} | ({"parquet": [SAMPLES]} if self._parquet else {})


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


class PointLayout(_Layout):
    """Epoch by epoch, inside an epoch by level and Z-order code."""

    kind = "points"
    sorted_by = ("epoch", "key", "row")

    cut: ClassVar[Cut] = Cut()  # of new stores

    def __init__(self, survey: Survey, first: int, end: int, store: IndexedPoints | None = None) -> None:
        """The space of a store to which the rows are added stays as it is."""
        super().__init__(survey, first, end)
        self._box = survey.box or (np.zeros(0), np.zeros(0))
        self._raster = raster_of(*self._box) if store is None else store.raster
        self._cut = self.cut if store is None else store.cut
        self._epochs = self._cut.epochs(first, end - first)
        self._starts = np.array([start for start, _ in self._epochs])

    def keyed(self, batch: Any) -> Any:
        """Samples with their epoch, and their level and code in one number."""
        keys = self._raster.codes(points_in(batch))
        if self.survey.levels is not None:
            keys |= self.survey.level_numbers(np.asarray(batch.column("level"))) << CODE_BITS
            batch = batch.drop_columns(["level"])
        epochs = np.searchsorted(self._starts, np.asarray(batch.column("row")), side="right")
        return batch.append_column("epoch", epochs).append_column("key", keys)

    def write(self, folder: Path, batches: Iterable[Any], advance: Callable[[int], None]) -> dict[str, Any]:
        """The columns, and the key of the first sample of each block of each epoch."""
        names = ("point.f8", "reward.f8", "row", *(() if self.survey.levels is None else ("level.u2",)))
        blocks = [np.arange(start, stop, self._cut.block) - self.first for start, stop in self._epochs]
        begins = np.concatenate([np.empty(0, np.int64), *blocks])  # places of the first samples of blocks
        firsts: list[Any] = []
        done = 0
        with ExitStack() as stack:
            columns = _RawColumns(folder, names, stack)
            for batch in batches:
                keys = np.asarray(batch.column("key"))
                rewards = np.asarray(batch.column("reward")).astype("<f8")
                levels = (keys >> CODE_BITS).astype("<u2")
                columns.write(points_in(batch).astype("<f8"), rewards, self._rows(batch), levels)
                some = slice(*np.searchsorted(begins, [done, done + len(keys)]))
                firsts.append(keys[begins[some] - done])
                done += len(keys)
                advance(done)
            files = columns.finish()
        directory = np.concatenate([np.empty(0, np.int64), *firsts]).astype("<i8")
        files["keys.i8"] = written(folder / "keys.i8", directory)
        return {"files": files}

    def described(self) -> dict[str, Any]:
        """The space that is divided, the box the points lie in, and the levels."""
        space = self._raster._asdict() | {"least": self._box[0], "most": self._box[1]}
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
        self._files = {name: stack.enter_context((folder / name).open("w+b")) for name in names}

    def write(self, *columns: np.ndarray[Any, Any]) -> None:
        """Append to each column; those that have no file come last."""
        for file, array in zip(self._files.values(), columns, strict=False):
            file.write(array.tobytes())

    def finish(self) -> dict[str, Any]:
        """Force all to disk; what the manifest says of them."""
        return {name: finished(file, column=True) for name, file in self._files.items()}


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
        checksums = written(self._folder / "chunks.u4", np.array(found, "<u4"))
        with (self._folder / SAMPLES).open("rb+") as file:
            return {SAMPLES: finished(file) | entry, "chunks.u4": checksums}


def written(path: Path, data: Any, column: bool = False) -> dict[str, Any]:
    """Write a whole file of numbers or bytes; what the manifest says of it."""
    with path.open("w+b") as file:
        file.write(data)
        return finished(file, column)


def survey_of(store: IndexedArms | IndexedPoints) -> Survey:
    """What is known of a log that was laid out."""
    if isinstance(store, IndexedArms):
        return Survey(store.labels, rewards=store.reward_bounds)
    return Survey((), store.level_values, store.reward_bounds, store.bounds)


def layout_behind(store: IndexedArms | IndexedPoints, number: int, survey: Survey, first: int, end: int) -> Layout:
    """The layout for rows that come behind the first generations of a store."""
    if isinstance(store, IndexedPoints):
        return PointLayout(survey, first, end, store)
    return ArmLayout(survey, first, end, "parquet" in store.manifest["generations"][-1], store, number)
