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
from artreplay.history.stores.store import ArmStore, Fetched


class _Generation(NamedTuple):
    """The rows that were added at one time."""

    starts: Ints  # of each label: where its samples begin in the columns; one more entry for the end
    rewards: FileColumn
    rows: FileColumn


class IndexedArms(Indexed, ArmStore):
    """A folder that `artreplay index` made of a log of arms."""

    def __init__(self, folder: Path, until: int | None = None) -> None:
        super().__init__(folder)
        self._labels(self.manifest["generations"][-1])
        self._generations = [self._opened(generation) for generation in self.manifest["generations"]]
        self.opening_bytes = sum(generation.starts.nbytes for generation in self._generations)
        # Of each label, how many samples came with the generations before.
        self._before = np.zeros((len(self._generations) + 1, len(self.labels)), np.int64)
        for number, generation in enumerate(self._generations):
            self._before[number + 1] = self._before[number] + np.diff(generation.starts)
        self._counts: Ints = self._before[-1]
        if until is not None and until < self._rows:
            self._cut(until)

    def _labels(self, generation: dict[str, Any]) -> None:
        self.labels: list[Label] = decode_label_list(read_array(self.folder, generation, "labels.json", "u1"))

    def _opened(self, generation: dict[str, Any]) -> _Generation:
        counts = read_array(self.folder, generation, "counts.i8", "<i8")
        starts = np.zeros(len(self.labels) + 1, np.int64)
        np.cumsum(counts, out=starts[1 : len(counts) + 1])
        starts[len(counts) + 1 :] = starts[len(counts)]
        folder = self.folder / generation["name"]
        width = generation["row_bytes"]
        return _Generation(starts, FileColumn(folder / "reward.f8", "<f8"), FileColumn(folder / "row", f"<u{width}"))

    def _cut(self, until: int) -> None:
        """Only the first rows belong to the log: of each label, those below `until`, and no label without any."""
        self._rows = until
        counts = np.array([self._first_at(code, until) for code in range(len(self.labels))], np.int64)
        present = np.flatnonzero(counts)
        self._counts = counts[present]
        self._before = self._before[:, present]
        self._generations = [opened._replace(starts=opened.starts[present]) for opened in self._generations]
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
