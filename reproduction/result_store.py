"""Keeps results on disk in one folder for each setting. Each is written whole or not at all, and checked when read."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from artreplay.compiling import Floats
from artreplay.errors import InvalidFile
from reproduction.setting import Setting

_TABLE, _DOCUMENT = "result.parquet", "setting.json"
_DAY = 86_400.0  # seconds
_COLUMNS = ("metric", "replication", "x", "value")

CELL = ("low x", "low y", "high x", "high y", "level", "count", "index")  # the columns of a cell
SAMPLE = ("x", "y", "level", "reward")  # the columns of a sample

Series = tuple[Floats, Floats]  # where it was measured, and the values with a row for each replication
Measured = Mapping[str, Series]  # by the name of what was measured


@dataclass(frozen=True, eq=False)
class Result:
    """The result of a setting, the processor seconds it took, and the code that computed it."""

    measured: Measured
    seconds: float
    timings: tuple[float, ...] = ()  # seconds of a replication, measured several times, if a figure shows them
    code: str = ""  # a fingerprint of the sources
    key: str = ""  # the key of the setting, once it is stored

    def at_end(self, metric: str) -> Floats:
        """Return the last value of each replication."""
        values: Floats = self.measured[metric][1][:, -1]
        return values

    def at_start(self, metric: str) -> Floats:
        """Return the first value of each replication."""
        values: Floats = self.measured[metric][1][:, 0]
        return values

    def cells(self) -> Floats:
        """Return the cells of a partition, one in each row. `CELL` names the columns."""
        return self._rows("cell", len(CELL))

    def samples(self) -> Floats:
        """Return the samples of the log of a partition, one in each row. `SAMPLE` names the columns."""
        return self._rows("sample", len(SAMPLE))

    def _rows(self, metric: str, columns: int) -> Floats:
        values = self.measured[metric][1] if metric in self.measured else np.zeros((1, 0))
        return values.reshape(-1, columns)


class Store:
    """A folder of results. Each finished setting has a folder in it, named by its key."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root)

    def folder(self, setting: Setting) -> Path:
        """Return the folder of a setting's result, whether it exists or not."""
        return self.root / setting.key

    def state(self, setting: Setting) -> str:
        """Return "finished" or "missing", or what is wrong with a result that cannot be used."""
        if not self.folder(setting).exists():
            return "missing"
        try:
            self.read(setting)
        except InvalidFile as error:
            return str(error)
        return "finished"

    def write(self, setting: Setting, result: Result) -> None:
        """Write the result of a setting under a temporary name, and rename it once it is whole."""
        target = self.folder(setting)
        temporary = self._beside(target)
        try:
            temporary.mkdir(parents=True, exist_ok=True)
            checksum = _write_table(temporary / _TABLE, result.measured)
            document = {
                "setting": json.loads(setting.content()),
                "sha256": checksum,
                "seconds": round(result.seconds, 4),
                "timings": [round(each, 7) for each in result.timings],
                "code": result.code,
            }
            _write_whole(temporary / _DOCUMENT, json.dumps(document, indent=1).encode())
            self._put(temporary, target)
        except OSError as error:
            raise InvalidFile(
                f"the result of {setting.describe()} cannot be written to {self.root}: {error.strerror or error}. "
                "Finished results are kept, and the next run continues from there"
            ) from error
        finally:
            _remove(temporary)

    def _put(self, whole: Path, target: Path) -> None:
        """Give a whole result its name. An older result is removed, and comes back if that fails."""
        old = self._beside(target)
        try:
            os.replace(target, old)
        except FileNotFoundError:
            os.replace(whole, target)
            return
        try:
            os.replace(whole, target)
        except BaseException:
            if not target.exists():
                os.replace(old, target)
            raise
        finally:
            _remove(old)

    def _beside(self, target: Path) -> Path:
        """Return a unique name for something that is not whole yet, or no longer needed."""
        return self.root / f".{target.name}.{uuid.uuid4().hex[:12]}.part"

    def sweep(self) -> None:
        """Remove unfinished files of runs that were killed more than a day ago."""
        for part in self.root.glob(".*.part"):
            with contextlib.suppress(OSError):
                if time.time() - part.stat().st_mtime > _DAY:
                    _remove(part)

    def read(self, setting: Setting) -> Result:
        """Read and check the result of a setting."""
        folder = self.folder(setting)
        try:
            document = json.loads((folder / _DOCUMENT).read_bytes())
            data = (folder / _TABLE).read_bytes()
            if hashlib.sha256(data).hexdigest() != document["sha256"]:
                raise InvalidFile(f"{folder / _TABLE} is damaged: its checksum does not fit")
            if json.dumps(document["setting"], sort_keys=True) != setting.content():
                raise InvalidFile(f"{folder} holds the result of another setting")
            timings = tuple(map(float, document["timings"]))
            return Result(_read_table(data), float(document["seconds"]), timings, str(document["code"]), setting.key)
        except FileNotFoundError as error:
            raise InvalidFile(f"{folder} has no whole result") from error
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InvalidFile(f"{folder} is damaged: {error}") from error


def _remove(path: Path) -> None:
    """Remove a folder or a file, if it can be removed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()


def _write_whole(path: Path, data: bytes) -> None:
    """Write a file and make sure that it reaches the disk."""
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _write_table(path: Path, measured: Measured) -> str:
    """Write what was measured, one row for each value, and return the checksum of the file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
    for metric, (x, values) in measured.items():
        replications, places = values.shape
        columns["metric"].append(np.full(values.size, metric, dtype=object))
        columns["replication"].append(np.repeat(np.arange(replications), places))
        columns["x"].append(np.tile(np.asarray(x, dtype=np.float64), replications))
        columns["value"].append(np.asarray(values, dtype=np.float64).ravel())
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({name: np.concatenate(parts) for name, parts in columns.items()}), sink, compression="zstd")
    data = sink.getvalue().to_pybytes()
    _write_whole(path, data)
    return hashlib.sha256(data).hexdigest()


def _read_table(data: bytes) -> dict[str, Series]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(pa.BufferReader(data)).combine_chunks()
    metrics = table.column("metric").dictionary_encode().combine_chunks()
    replication, x, value = (table.column(name).to_numpy() for name in _COLUMNS[1:])
    numbers = metrics.indices.to_numpy()
    found = {}
    for number, metric in enumerate(metrics.dictionary.to_pylist()):
        rows = numbers == number
        replications = int(replication[rows].max()) + 1
        found[metric] = (x[rows].reshape(replications, -1)[0], value[rows].reshape(replications, -1))
    return found
