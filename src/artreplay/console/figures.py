"""Figures that commands write. A figure that cannot be written is refused before anything is computed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from artreplay.errors import InvalidFile, InvalidParameter
from artreplay.optional_packages import is_installed, missing_package
from artreplay.whole_files import write_whole

_FORMATS = ("png", "pdf", "svg")


def checked_figure(out: Path) -> str:
    """Return the format of a figure, or refuse a file that could not be written."""
    kind = out.suffix.removeprefix(".").lower()
    if kind not in _FORMATS:
        raise InvalidParameter(f"--out must end in .png, .pdf or .svg, got {str(out)!r}")
    if not is_installed("matplotlib"):
        raise missing_package("matplotlib", "a figure", "plots")
    if not out.parent.is_dir():
        raise InvalidFile(f"cannot be written: there is no folder {out.parent}", file=out)
    if out.is_dir() or not os.access(out.parent, os.W_OK):
        raise InvalidFile("cannot be written", file=out)
    return kind


def write_figure(figure: Any, out: Path, kind: str) -> None:
    """Write a figure to a file, whole or not at all."""
    write_whole(out, lambda file: figure.savefig(file, format=kind, dpi=150))
