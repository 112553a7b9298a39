"""Tables in the pages of the docs. Each stands between `<!-- table: NAME -->` and `<!-- end of table -->`."""

from __future__ import annotations

import re
from collections.abc import Callable


def table(head: list[str], lines: list[list[str]]) -> str:
    """A table in Markdown."""
    rule = ["---"] * len(head)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, rule, *lines])


def filled(page: str, made: Callable[[str], str]) -> str:
    """The page with each table as it is made from its name."""
    pattern = r"(<!-- table: ([\w, ]+) -->\n)(?:(?!<!-- ).)*(<!-- end of table -->)"
    return re.sub(pattern, lambda found: f"{found[1]}{made(found[2])}\n{found[3]}", page, flags=re.DOTALL)
