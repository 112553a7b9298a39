"""The page as people see it: in a real browser, on a phone and on a desk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from browser import Page, browsing, find_browser
from real_parts import needed

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("reproduction")]


@pytest.fixture(scope="module")
def browser() -> Iterator[Page]:
    with browsing(needed("a browser (chromium on the path, or CHROMIUM=)", find_browser())) as opened:
        yield opened


@pytest.mark.parametrize("width", [390, 1440])
def test_the_page_is_drawn_and_readable(browser: Page, page: Path, width: int) -> None:
    browser.open(page, width)
    assert browser.complaints == []
    assert {url.split(":")[0] for url in browser.requests} <= {"file", "data"}
    assert sum(url.startswith("file") for url in browser.requests) == 1
    assert browser.ask("document.documentElement.scrollWidth") <= width
    figures = browser.ask("[...document.querySelectorAll('figure svg')].map(s => s.getBoundingClientRect().width)")
    assert len(figures) == len(list((page.parent / "figures").glob("*.png")))
    assert min(figures) >= 300
    letters = "[...document.querySelectorAll('p, li, td, th, figcaption, summary')]"
    assert browser.ask(f"Math.min(...{letters}.map(e => parseFloat(getComputedStyle(e).fontSize)))") >= 13
    drawn = "[...document.querySelectorAll('figure svg text')].filter(t => t.textContent.trim())"
    assert browser.ask(f"Math.min(...{drawn}.map(t => t.getBoundingClientRect().height))") >= 8


def test_the_numbers_unfold(browser: Page, page: Path) -> None:
    browser.open(page, 390)
    height = "document.querySelector('section details').getBoundingClientRect().height"
    folded = browser.ask(height)
    browser.ask("document.querySelector('section summary').click()")
    assert browser.ask(height) > folded + 200
    assert browser.ask("document.documentElement.scrollWidth") <= 390
