"""The pages of the site: every link leads somewhere, every page is in the navigation, and the tutorials run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TOP = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
PAGES = [*TOP, *sorted((ROOT / "docs").glob("**/*.md")), *sorted((ROOT / "packages").glob("*/README.md"))]
PAGES += sorted((ROOT / "packages").glob("*/docs/*.md"))
FENCED = re.compile(r"^(`{3,}|:{3,}).*?^\1", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)|\bsrc=\"([^\"]+)\"")
TOCTREE = re.compile(r"```{toctree}\n(.*?)```", re.DOTALL)
CELL = re.compile(r"^```{code-cell}[^\n]*\n((?::[^\n]*\n)*)(.*?)^```", re.MULTILINE | re.DOTALL)
TUTORIALS = [page for page in PAGES if "file_format: mystnb" in page.read_text(encoding="utf-8")]


def links(page: Path) -> list[str]:
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    return [link for found in LINK.findall(text) for link in found if link and "://" not in link]


def anchors(page: Path) -> set[str]:
    """What a heading can be linked by: its words in lower case, with dashes between them, as GitHub has it."""
    headings = re.findall(r"^#+ (.*)$", FENCED.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    plain = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading) for heading in headings]
    slugs = [re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in plain]
    seen: Counter[str] = Counter()
    found = set()
    for slug in slugs:
        found.add(slug if not seen[slug] else f"{slug}-{seen[slug]}")
        seen[slug] += 1
    return found


def test_every_link_leads_to_a_file_and_a_heading_that_exist() -> None:
    broken = []
    for page in PAGES:
        for link in links(page):
            path, _, heading = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            if not target.exists() or (heading and target.suffix == ".md" and heading not in anchors(target)):
                broken.append(f"{page.relative_to(ROOT)}: {link}")
    assert broken == []


def test_every_page_is_in_the_navigation_once() -> None:
    named: Counter[Path] = Counter()
    for page in PAGES:
        for lines in TOCTREE.findall(page.read_text(encoding="utf-8")):
            entries = [line for line in lines.splitlines() if line and not line.startswith(":")]
            names = [re.sub(r"^.*<(.*)>$", r"\1", entry) for entry in entries]
            named.update((page.parent / f"{name}.md").resolve() for name in names)
    assert named == Counter(page for page in PAGES if page != ROOT / "docs/index.md")


def test_there_are_tutorials() -> None:
    assert len(TUTORIALS) >= 6


@pytest.mark.long
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_the_cells_of_a_tutorial_run(page: Path, tmp_path: Path) -> None:
    """`make docs` runs them too, and shows what they give."""
    script = tmp_path / f"{page.stem}.py"
    cells = [body for _, body in CELL.findall(page.read_text(encoding="utf-8"))]
    commands = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    script.write_text("\n".join(["import subprocess", *map(_in_plain_python, cells)]), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", script],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=os.environ | {"MPLBACKEND": "agg", "PATH": commands},
    )
    assert done.returncode == 0, done.stderr


def _in_plain_python(cell: str) -> str:
    """Run what a cell gives to the shell, after an exclamation mark, as the shell would."""
    return f"subprocess.run({cell[1:]!r}, shell=True, check=True)" if cell.startswith("!") else cell
