"""What the tests of the commands share."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple


class Done(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Done]
Refused = Callable[..., str]

ARMS = ("red", "grün", "[bold] blue")
COLUMNS = ("--unit", "arm", "--reward", "click")
OPTIONS = (*COLUMNS, "--horizon", "100")


def samples(rows: int, arms: Sequence[object] = ARMS) -> list[tuple[object, int]]:
    """A log in which the arms differ, and are not played in turn."""
    places = [(row + row // 4) % len(arms) for row in range(rows)]
    return [(arms[place], int(row * 7 % 10 < 3 + 2 * place)) for row, place in enumerate(places)]


def write_csv(path: Path, rows: Sequence[tuple[object, object]], delimiter: str = ",") -> Path:
    lines = [("arm", "click"), *rows]
    path.write_text("".join(f"{arm}{delimiter}{click}\n" for arm, click in lines), encoding="utf-8")
    return path
