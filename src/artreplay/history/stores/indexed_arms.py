"""An indexed store of arms: the samples of each arm lie together, in order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from artreplay.compiling import Floats, Ints
from artreplay.history.history import History
from artreplay.history.labels import Label
from artreplay.history.stores.columns import FileColumn
from artreplay.history.stores.generations import Indexed
from artreplay.history.stores.manifest import decode_label_list, read_array
from artreplay.history.stores.merging import merged_parts
from artreplay.history.stores.reading import Reading
from artreplay.history.stores.running_sums import how_many_kept, kept_ends
from artreplay.history.stores.store import ArmStore, Fetched, Sums


class _Generation(NamedTuple):
    """The rows that were added at one time."""

    starts: Ints  # of each label: where its samples begin in the columns; one more entry for the end
    sums_at: Ints  # of each label: where its sums begin
    sums: FileColumn
    rewards: FileColumn
    rows: FileColumn


class IndexedArms(Indexed, ArmStore):
    """A folder that `artreplay index` made of a log of arms."""

    def __init__(self, folder: Path, until: int | None = None) -> None:
        super().__init__(folder)
        self._labels(self.manifest["generations"][-1])
        # Of each label, how many samples came with the generations before.
        self._before = np.zeros((len(self.manifest["generations"]) + 1, len(self.labels)), np.int64)
        self._generations: list[_Generation] = []
        for number, generation in enumerate(self.manifest["generations"]):
            counts = read_array(self.folder, generation, "counts.i8", "<i8")
            self._before[number + 1] = self._before[number]
            self._before[number + 1, : len(counts)] += counts
            self._generations.append(self._opened(generation, *self._before[number : number + 2]))
        self.opening_bytes = sum(generation.starts.nbytes for generation in self._generations)
        self._counts: Ints = self._before[-1]
        if until is not None and until < self._rows:
            self._cut(until)

    def _labels(self, generation: dict[str, Any]) -> None:
        self.labels: list[Label] = decode_label_list(read_array(self.folder, generation, "labels.json", "u1"))

    def _opened(self, generation: dict[str, Any], before: Ints, now: Ints) -> _Generation:
        folder = self.folder / generation["name"]
        width = generation["row_bytes"]
        return _Generation(
            np.concatenate([[0], np.cumsum(now - before)]),
            np.concatenate([[0], np.cumsum(how_many_kept(before, now))]),
            FileColumn(folder / "sums.f8", "<f8"),
            FileColumn(folder / "reward.f8", "<f8"),
            FileColumn(folder / "row", f"<u{width}"),
        )

    def _cut(self, until: int) -> None:
        """Only the first rows belong to the log: of each label, those below `until`, and no label without any."""
        self._rows = until
        counts = np.array([self._first_at(code, until) for code in range(len(self.labels))], np.int64)
        present = np.flatnonzero(counts)
        self._counts = counts[present]
        self._before = self._before[:, present]
        self._generations = [
            opened._replace(starts=opened.starts[present], sums_at=opened.sums_at[present])
            for opened in self._generations
        ]
        self.labels = [self.labels[code] for code in present.tolist()]

    def _first_at(self, code: int, row: int) -> int:
        """How many samples of a label lie before a row."""
        low, high = 0, int(self._before[-1][code])
        while low < high:
            middle = (low + high) // 2
            if int(self._column("rows", code, middle, middle + 1, Reading())[0]) < row:
                low = middle + 1
            else:
                high = middle
        return low

    def __len__(self) -> int:
        return self._rows

    def counts(self) -> Ints:
        """How many samples each label has."""
        return self._counts

    def count_before(self, code: int, row: int) -> int:
        """How many samples of a label lie in the first so many rows; at the end of a generation that is known."""
        for number, generation in enumerate(self.manifest["generations"]):
            if row == generation["first"] + generation["rows"]:
                return min(int(self._before[number + 1][code]), int(self._counts[code]))
        return min(self._first_at(code, row), int(self._counts[code]))

    def sums(self, code: int, ends: Ints) -> Sums:
        """The sums of the first so many rewards of a label: those that are kept are read, all at once."""
        kept: list[Ints] = [np.zeros(1, np.int64)]
        totals: list[Floats] = [np.zeros(1)]
        for number, generation in enumerate(self._generations):
            mine = kept_ends(int(self._before[number][code]), int(self._before[number + 1][code]))
            if len(mine):
                at = int(generation.sums_at[code])
                kept.append(mine)
                totals.append(generation.sums.read(at, at + len(mine), self.reading))
                self.reading.sums += len(mine)
        return self._completed(code, np.concatenate(kept), np.concatenate(totals), ends)

    def read(self, code: int, after: int, n: int, with_rows: bool) -> Fetched:
        """The next `n` samples of a label behind its first `after` ones."""
        stop = max(min(after + n, int(self._counts[code])), after)
        rewards = self._column("rewards", code, after, stop, self.reading)
        rows = self._column("rows", code, after, stop, self.reading) if with_rows else np.empty(0, np.int64)
        return Fetched(rows.astype(np.int64), rewards, stop >= self._counts[code])

    def _column(self, column: str, code: int, start: int, stop: int, reading: Reading) -> Any:
        """A range of the samples of one label, over all generations."""
        found = []
        for number, generation in enumerate(self._generations):
            before, behind = int(self._before[number][code]), int(self._before[number + 1][code])
            first, last = max(start, before), min(stop, behind)
            if first < last:
                shift = int(generation.starts[code]) - before
                file: FileColumn = getattr(generation, column)
                found.append(file.read(first + shift, last + shift, reading, rows=column == "rewards"))
        if len(found) == 1:
            return found[0]
        empty: Floats | Ints = np.empty(0) if column == "rewards" else np.empty(0, np.int64)
        return np.concatenate(found) if found else empty

    def stream(self, since: int = 0) -> Iterator[History]:
        """The log in order: the arms merged by their rows."""
        starts = [self._first_at(code, since) for code in range(len(self.labels))] if since else None
        return merged_parts(self, since, starts)
