"""The site as `make docs` builds it: every page fits on a phone and a screen, complains of nothing, and asks nobody."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from browser import Page, browsing, find_browser
from real_parts import needed

pytestmark = pytest.mark.long
ROOT = Path(__file__).parent.parent
SPHINX = ROOT / ".venv-docs/bin/sphinx-build"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    builder = needed("what `make .venv-docs/.ready` installs", SPHINX.exists() and SPHINX)
    place = tmp_path_factory.mktemp("site")
    command = [builder, "--quiet", "--fail-on-warning", "--doctree-dir", place / "trees"]
    path = os.pathsep.join((str(SPHINX.parent), os.environ["PATH"]))  # the cells of a tutorial call artreplay
    done = subprocess.run(
        [*command, "-c", ROOT / "docs", ROOT, place / "site"],
        capture_output=True,
        text=True,
        env=os.environ | {"PATH": path},
    )
    assert done.returncode == 0, done.stderr
    return place / "site"


@pytest.fixture(scope="module")
def browser() -> Iterator[Page]:
    with browsing(needed("a browser (chromium on the path, or CHROMIUM=)", find_browser())) as opened:
        yield opened


@pytest.mark.parametrize("width", [390, 1440])
def test_every_page_fits_complains_of_nothing_and_asks_nobody(browser: Page, site: Path, width: int) -> None:
    pages = [page for page in sorted(site.rglob("*.html")) if page != site / "index.html"]  # which only leads on
    assert len(pages) > 40
    wrong = {}
    for page in pages:
        browser.open(page, width)
        wide = browser.ask("document.documentElement.scrollWidth") > width
        asked = [address for address in browser.requests if not address.startswith(("file:", "data:"))]
        if wide or asked or browser.complaints:
            wrong[str(page.relative_to(site))] = ("too wide" if wide else "", asked, list(browser.complaints))
    assert wrong == {}


def test_the_search_finds_a_page(browser: Page, site: Path) -> None:
    browser.open(f"{(site / 'search.html').as_uri()}?q=certified", 1440)
    for _ in range(100):
        if browser.ask("document.querySelectorAll('#search-results li').length") > 2:
            break
        browser.ask("new Promise(done => setTimeout(done, 50))")
    assert "Concepts" in browser.ask("document.querySelector('#search-results').innerText")
    assert browser.complaints == []
