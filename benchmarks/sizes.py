"""How much space artreplay takes with its extras, and how long it takes to import: docs/results/sizes.csv.

Each line is a new environment, made by this Python and filled by pip, which needs an index or a cache of packages.
Bytes are those of all files in the environment, with pip itself and the bytecode that pip makes.
"""

from __future__ import annotations

import csv
import json
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs/results/sizes.csv"
EXTRAS = ("", "serve", "fast,plots,serve")
IMPORTS = 15  # processes that import, of which the median counts
FIELDS = ("part", "extras", "python", "megabytes", "bytecode", "largest", "import_ms", "use_ms")

TIMED = """
import json, time
began = time.perf_counter()
import artreplay as ar
imported = time.perf_counter()
ar.ArtificialReplay, ar.Study
print(json.dumps([imported - began, time.perf_counter() - imported]))
"""


def main() -> None:
    lines = [dict(zip(FIELDS, line, strict=True)) for line in map(measured, EXTRAS)]
    with RESULTS.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)


def measured(extras: str) -> tuple[str, str, str, str, str, str, str, str]:
    """Fill an environment, and say what it takes."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        python = Path(folder) / "bin/python"
        what = f"{ROOT}[{extras}]" if extras else str(ROOT)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "-c", ROOT / "constraints.txt", what], check=True)
        files = [(path, path.stat().st_size) for path in Path(folder).rglob("*") if is_own_file(path)]
        times = [json.loads(subprocess.check_output([python, "-c", TIMED], cwd=folder)) for _ in range(IMPORTS)]
    whole, bytecode = (sum(size for path, size in files if wanted(path)) / 1e6 for wanted in (bool, is_bytecode))
    imported, used = (sorted(column)[IMPORTS // 2] * 1e3 for column in zip(*times, strict=True))
    largest = ", ".join(f"{name} {size / 1e6:.0f}" for name, size in packages_of(files))
    print(f"[{extras}] {whole:.0f} MB, import artreplay {imported:.0f} ms", flush=True)
    version = platform.python_version()
    return "sizes", extras, version, f"{whole:.0f}", f"{bytecode:.0f}", largest, f"{imported:.0f}", f"{used:.0f}"


def is_own_file(path: Path) -> bool:
    """Whether a path is a file of the environment. Its Python is a link to one outside."""
    return path.is_file() and not path.is_symlink()


def is_bytecode(path: Path) -> bool:
    """Whether Python made a file, to load a module sooner."""
    return path.suffix == ".pyc"


def packages_of(files: list[tuple[Path, int]]) -> Iterator[tuple[str, int]]:
    """The four largest packages of an environment, with their libraries."""
    sums: dict[str, int] = {}
    for path, size in files:
        if "site-packages" in path.parts:
            name = path.parts[path.parts.index("site-packages") + 1]
            name = name.split(".")[0].split("-")[0].lstrip("_").lower()
            sums[name] = sums.get(name, 0) + size
    yield from sorted(sums.items(), key=lambda one: -one[1])[:4]


if __name__ == "__main__":
    main()
