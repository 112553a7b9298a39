"""An indexed store of arms: the samples of each arm lie together, in order, as raw columns or as Parquet.

A store as Parquet can be written by any engine that can sort: see `clustered.py`. Of each arm the sums of its first
1, 2, 4, 8, … rewards are kept, and that of all rewards it had each time rows were added. Whoever needs the sum of
another number of them adds the few rows behind the last sum before.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import numpy as np

from artreplay.compiling import Floats, Ints
from artreplay.errors import InvalidFile
from artreplay.history.history import History
from artreplay.history.labels import Label
from artreplay.history.stores.checked_columns import Column, FileColumn, GroupColumn, RowGroups, numbers_in
from artreplay.history.stores.indexed_store import Indexed
from artreplay.history.stores.manifest import decode_label_list, read_small
from artreplay.history.stores.merging import merged_parts
from artreplay.history.stores.places import Place
from artreplay.history.stores.store import ArmStore, Fetched, Reading, Sums

_AT_ONCE = 1 << 18  # rows of generations that are put together
_GAP = 1 << 9  # rows between two arms that are read along rather than asked for apart ...
_GAP_FROM_AFAR = 1 << 13  # ... where a request takes longer
_PART_AT_FIRST, _MOST_AT_FIRST = 16, 8192  # of Parquet, what part of an arm is read at first, and the most rows of it


class _Generation(NamedTuple):
    """The rows that were added at one time."""

    starts: Ints  # of each label: where its samples begin in the columns
    sums_at: Ints  # of each label: where its sums begin
    sums: FileColumn | None
    rewards: Column
    rows: Column


class IndexedArms(Indexed, ArmStore):
    """A log of arms that was laid out by arm."""

    reads_ahead = True

    def __init__(self, place: Place, manifest: dict[str, Any], until: int | None = None) -> None:
        super().__init__(place, manifest)
        directories = [self._directory(generation) for generation in manifest["generations"]]
        self.labels: list[Label] = [label for labels, _ in directories for label in labels]
        # How many labels there were before the first generation, the second one, and so on.
        self.label_ends = np.cumsum([0] + [len(labels) for labels, _ in directories]).tolist()
        # Of each label, how many samples came with the generations before.
        self._before = np.zeros((len(directories) + 1, len(self.labels)), np.int64)
        self._generations: list[_Generation] = []
        for number, (generation, (_, counts)) in enumerate(zip(manifest["generations"], directories, strict=True)):
            self._before[number + 1] = self._before[number]
            self._before[number + 1, : len(counts)] += counts
            self._generations.append(self._opened(generation, *self._before[number : number + 2]))
        self._counts: Ints = self._before[-1]
        self._is_whole = until is None or until >= self._rows
        if until is not None and not self._is_whole:
            self._cut(until)
        if "parquet" in manifest["generations"][0]:  # whose row groups are decoded as a whole, again and again
            part = self._rows // max(_PART_AT_FIRST * len(self.labels), 1)
            self.first_prefetch = max(self.first_prefetch, min(part, _MOST_AT_FIRST))

    def _directory(self, generation: dict[str, Any]) -> tuple[list[Label], Ints]:
        """The labels that are new, and how many samples each label has."""
        if "directory.parquet" not in generation["files"]:
            labels = decode_label_list(self._small(generation, "labels.json", "u1").tobytes())
            return labels, self._small(generation, "counts.i8", "<i8")
        import pyarrow as pa
        import pyarrow.parquet as pq

        data = read_small(self.place, generation, "directory.parquet")
        try:
            with pq.ParquetFile(pa.BufferReader(data)) as opened:
                table = opened.read(use_threads=False)
            return table.column("arm").to_pylist(), numbers_in(table.column("count"), np.int64)
        except (pa.ArrowException, OSError, KeyError) as error:
            raise InvalidFile(f"cannot be read as Parquet: {error}", file=f"{self.name}/directory.parquet") from None

    def _opened(self, generation: dict[str, Any], before: Ints, now: Ints) -> _Generation:
        order = self._small(generation, "order.u4", "<u4") if "order.u4" in generation["files"] else None
        starts, sums_at = _begins(now - before, order), _begins(how_many_kept(before, now), order)
        sums = FileColumn(self._open(generation, "sums.f8"), "<f8") if "sums.f8" in generation["files"] else None
        rewards: Column
        rows: Column
        if "row" in generation["files"]:
            rewards = FileColumn(self._open(generation, "reward.f8"), "<f8")
            rows = FileColumn(self._open(generation, "row"), f"<u{generation['row_bytes']}")
        else:
            names = generation["parquet"]
            checks = self._small(generation, "chunks.u4", "<u4") if "chunks.u4" in generation["files"] else None
            entries = [generation["files"][name] for name in names]
            groups = RowGroups([self._open(generation, name) for name in names], entries, checks)
            rewards, rows = GroupColumn(groups, "reward"), GroupColumn(groups, "row")
        if not len(rewards) == (now - before).sum() == generation["rows"]:
            raise InvalidFile(f"must have {generation['rows']:,} rows, its files have {len(rewards):,}", file=self.name)
        return _Generation(starts, sums_at, sums, rewards, rows)

    def counted(self) -> Self:
        """The same store, with counters and row groups of its own."""
        same = super().counted()
        same._generations = [
            opened._replace(rewards=opened.rewards.counted(), rows=opened.rows.counted())
            for opened in self._generations
        ]
        return same

    def _cut(self, until: int) -> None:
        """Only the first rows belong to the log: of each label, those below `until`, and no label without any."""
        self._rows = until
        counts = np.array([self.count_before(code, until) for code in range(len(self.labels))], np.int64)
        present = np.flatnonzero(counts)
        self._counts = counts[present]
        self._before = self._before[:, present]
        self._generations = [
            opened._replace(starts=opened.starts[present], sums_at=opened.sums_at[present])
            for opened in self._generations
        ]
        self.labels = [self.labels[code] for code in present.tolist()]

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
        places = range(int(self._counts[code]))
        return bisect_left(places, row, key=lambda at: self._column("rows", code, at, at + 1, Reading())[0])

    def sums(self, code: int, ends: Ints) -> Sums:
        """The sums of the first so many rewards of a label: those that are kept are read, all at once."""
        kept: list[Ints] = [np.zeros(1, np.int64)]
        totals: list[Floats] = [np.zeros(1)]
        for number, generation in enumerate(self._generations):
            mine = kept_ends(int(self._before[number][code]), int(self._before[number + 1][code]))
            if len(mine) and generation.sums is not None:
                at = int(generation.sums_at[code])
                kept.append(mine)
                totals.append(generation.sums.read(at, at + len(mine), self.reading))
                self.reading.sums += len(mine)
        return self._completed(code, np.concatenate(kept), np.concatenate(totals), ends)

    def totals(self) -> Floats:
        """The sum of all rewards of each label, from the sums that are kept."""
        return self.totals_before(len(self._generations))[1] if self._is_whole else super().totals()

    def totals_before(self, number: int) -> tuple[Ints, Floats]:
        """How many samples each label has in the first generations, and their sum."""
        some = self._generations[:number]
        if any(generation.sums is None for generation in some):  # another engine has written them
            counts = self._before[number]
            added = [self._added(code, 0, 0.0, np.array([n])).totals[0] for code, n in enumerate(counts.tolist())]
            return counts, np.array(added, np.float64)
        totals = np.zeros(len(self.labels))
        for at, generation in enumerate(some):
            if generation.sums is not None:
                kept = generation.sums.read(0, len(generation.sums), self.reading)
                present = np.flatnonzero(self._before[at + 1] > self._before[at])
                several = how_many_kept(self._before[at], self._before[at + 1])
                totals[present] = kept[(generation.sums_at + several)[present] - 1]
                self.reading.sums += len(kept)
        return self._before[number], totals

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
                file: Column = getattr(generation, column)
                found.append(file.read(first + shift, last + shift, reading, rows=column == "rewards"))
        if len(found) == 1:
            return found[0]
        empty: Floats | Ints = np.empty(0) if column == "rewards" else np.empty(0, np.int64)
        return np.concatenate(found) if found else empty

    def read_many(self, codes: Ints, after: Ints, n: Ints) -> tuple[Ints, Floats, Ints]:
        """The next samples of several labels; those that lie close together are read at once.

        A label that would have only a few samples left is read to its end: nobody has to come back for them, and the
        next label mostly begins right behind them.
        """
        counts = self._counts[codes]
        stop = np.minimum(after + n, counts)
        stop = np.where(counts - stop <= 2 * self.first_prefetch, counts, stop)
        found: list[Floats] = []
        owners: list[Ints] = []
        for number, generation in enumerate(self._generations):
            before, behind = self._before[number][codes], self._before[number + 1][codes]
            first, last = np.maximum(after, before), np.minimum(stop, behind)
            owner = np.flatnonzero(first < last)
            shift = generation.starts[codes[owner]] - before[owner]
            found.append(self._ranges(generation.rewards, first[owner] + shift, last[owner] + shift))
            owners.append(np.repeat(owner, (last - first)[owner]))
        rewards = (
            found[0] if len(found) == 1 else np.concatenate(found)[np.argsort(np.concatenate(owners), kind="stable")]
        )
        return stop - after, rewards, (stop < counts).astype(np.int64)

    def _ranges(self, column: Column, first: Ints, last: Ints, rows: bool = True) -> Floats:
        """Ranges of a column, one behind the other; those that lie close together are read at once."""
        gap = _GAP_FROM_AFAR if self.place.folder is None else _GAP
        order = np.argsort(first, kind="stable")
        shifts, found, size = np.zeros_like(first), [np.empty(0)], 0
        for some in np.split(order, np.flatnonzero(first[order][1:] - last[order][:-1] > gap) + 1):
            if len(some):
                low, high = int(first[some[0]]), int(last[some[-1]])
                found.append(column.read(low, high, self.reading, rows=rows))
                shifts[some] = size - low
                size += high - low
        read = found[-1] if len(found) < 3 else np.concatenate(found)
        sizes = last - first
        total = int(sizes.sum())
        if total == size and (np.diff(order) > 0).all():
            return read
        return read[np.repeat(first + shifts - np.cumsum(sizes) + sizes, sizes) + np.arange(total)]

    def samples(self, number: int) -> Iterator[Any]:
        """The samples of a generation and of all behind it as they lie there, in record batches."""
        import pyarrow as pa

        for at in range(number, len(self._generations)):
            generation = self._generations[at]
            counts = self._before[at + 1] - self._before[at]
            codes = np.flatnonzero(counts)
            codes = codes[np.argsort(generation.starts[codes])]
            ends = np.cumsum(counts[codes])
            for start in range(0, int(counts.sum()), _AT_ONCE):
                stop = min(start + _AT_ONCE, int(counts.sum()))
                rewards = generation.rewards.read(start, stop, self.reading, rows=True)
                rows = generation.rows.read(start, stop, self.reading).astype(np.int64)
                owners = codes[np.searchsorted(ends, np.arange(start, stop), side="right")]
                yield pa.record_batch({"row": rows, "reward": rewards, "code": owners})

    def stream(self, since: int = 0) -> Iterator[History]:
        """The log in order: the arms merged by their rows."""
        starts = [self.count_before(code, since) for code in range(len(self.labels))] if since else None
        return merged_parts(self, since, starts)


def _begins(sizes: Ints, order: Ints | None) -> Ints:
    """Where the parts of labels begin that lie one behind the other, in an order."""
    if order is None:
        begins: Ints = np.cumsum(sizes) - sizes
        return begins
    begins = np.empty_like(sizes)
    begins[len(order) :] = 0  # labels that came later have nothing here
    begins[order] = np.cumsum(sizes[order]) - sizes[order]
    return begins


def kept_ends(before: int, now: int) -> Ints:
    """After how many rewards of an arm there is a sum, if it had some before and has more now.

    >>> kept_ends(0, 5).tolist(), kept_ends(5, 8).tolist(), kept_ends(5, 5).tolist()
    ([1, 2, 4, 5], [8], [])
    """
    powers = 1 << np.arange(before.bit_length(), now.bit_length(), dtype=np.int64)
    return powers if now == before or now & (now - 1) == 0 else np.append(powers, now)


def how_many_kept(before: Ints, now: Ints) -> Ints:
    """How many sums `kept_ends` has, of each arm."""
    powers = np.frexp(now)[1] - np.frexp(before)[1]  # the numbers of their bits
    ends_in_power = (now & (now - 1)) == 0
    return np.where(now > before, powers + ~ends_in_power, 0).astype(np.int64)
