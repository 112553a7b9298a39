"""The map as people see it: in a real browser, on a phone and on a desk."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest
from test_plan import SITE, planned
from walks import bay_site, walks

from artreplay_patrol.plan import Wish, make_plan
from artreplay_patrol.posts import Post
from artreplay_patrol.samples import all_box_rows
from artreplay_patrol.view import view_of
from artreplay_patrol.writers import write_map, write_plan
from browser import Page, browsing, find_browser
from real_parts import needed

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("patrol map")]


@pytest.fixture(scope="module")
def browser() -> Iterator[Page]:
    with browsing(needed("a browser (chromium on the path, or CHROMIUM=)", find_browser())) as opened:
        yield opened


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    rows = all_box_rows(walks(SITE), SITE)
    plan, forecast = planned()
    write_plan(view_of(SITE, rows, forecast, plan, plan.notes), folder)
    write_map(view_of(SITE, rows, forecast, notes=plan.notes), folder)
    site = bay_site(posts=(Post("North gate", *SITE.area.to_lonlat([0.45, 0.8])[0].tolist()),))
    walked, _ = make_plan(site, rows, Wish(12, 3), date(2016, 6, 6))
    write_plan(view_of(site, rows, forecast, walked, walked.notes), folder / "walk")
    return {"plan": folder / "plan.html", "map": folder / "map.html", "walk": folder / "walk" / "plan.html"}


def hover(browser: Page, element: str) -> None:
    """Move the mouse to the middle of an element."""
    browser.ask(f"document.querySelector({element!r}).scrollIntoView({{block: 'center'}})")
    box = browser.ask(
        f"(r => [r.x + r.width / 2, r.y + r.height / 2])(document.querySelector({element!r}).getBoundingClientRect())"
    )
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=box[0], y=box[1])


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("name", ["plan", "map", "walk"])
def test_the_map_is_drawn_and_nothing_leaves_the_page(browser, pages, name, width):
    browser.open(pages[name], width)
    assert browser.complaints == []
    assert [url.split(":")[0] for url in browser.requests if not url.startswith("data:")] == ["file"]
    assert browser.ask("document.documentElement.scrollWidth") <= width
    assert browser.ask("document.querySelectorAll('.cells rect').length") >= 10
    assert browser.ask("document.querySelector('svg').getBoundingClientRect().width") >= 340
    drawn = "[...document.querySelectorAll('.cells rect')].map(r => r.getAttribute('fill'))"
    assert len(set(browser.ask(drawn))) > 2
    letters = "[...document.querySelectorAll('p, li, small, label, .bar span, .place text, .rule text, .known text')]"
    sizes = browser.ask(f"{letters}.filter(e => e.textContent.trim()).map(e => e.getBoundingClientRect().height)")
    assert min(sizes) >= 10


@pytest.mark.parametrize("width", [390, 1440])
def test_every_place_of_the_plan_lies_inside_the_drawing(browser, pages, width):
    browser.open(pages["plan"], width)
    inside = """(() => { const frame = document.querySelector('svg').getBoundingClientRect();
      return [...document.querySelectorAll('.place')].map(p => p.getBoundingClientRect()).filter(
        r => r.left >= frame.left && r.right <= frame.right && r.top >= frame.top && r.bottom <= frame.bottom
      ).length })()"""
    assert browser.ask(inside) == len(planned()[0].items)


def test_hovering_says_the_numbers_of_a_cell_and_the_reason_of_a_place(browser, pages):
    browser.open(pages["plan"], 1440)
    assert browser.ask("document.querySelector('.says').hidden") is True
    hover(browser, ".place .mark")
    assert browser.ask("document.querySelector('.says').hidden") is False
    assert planned()[0].items[0].why in browser.ask("document.querySelector('.says').textContent")
    assert browser.ask("document.querySelectorAll('.plan li.on').length") == 1
    browser.ask("document.querySelectorAll('.place, .samples').forEach(e => e.remove())")
    hover(browser, "svg")
    assert "finds per km" in browser.ask("document.querySelector('.says').textContent")
    assert browser.complaints == []


def test_colours_and_samples_can_be_changed(browser, pages):
    browser.open(pages["plan"], 1440)
    names = browser.ask("[...document.querySelectorAll('#shade option')].map(o => o.textContent)")
    assert names == ["forecast", "doubt", "effort"]
    fills = "[...document.querySelectorAll('.cells rect')].map(r => r.getAttribute('fill')).join()"
    seen = set()
    for number in range(len(names)):
        choose = (
            f"(s => {{ s.value = {number}; s.dispatchEvent(new Event('change')) }})(document.querySelector('#shade'))"
        )
        browser.ask(choose)
        seen.add(browser.ask(fills))
        assert browser.ask("document.querySelector('#meaning').textContent")
    assert len(seen) == 3
    shown = "getComputedStyle(document.querySelector('path.samples')).display"
    assert browser.ask(shown) == "none"
    browser.ask("document.querySelector('#dots').click()")
    assert browser.ask(shown) != "none"
    assert browser.complaints == []


def test_posts_and_routes_can_be_hidden_and_hide_no_place(browser, pages):
    browser.open(pages["walk"], 390)
    assert browser.ask("document.querySelectorAll('.known .way').length") == 1
    hover(browser, ".place .mark")
    assert browser.ask("document.querySelector('.says').hidden") is False
    browser.ask("document.querySelector('#known').click()")
    assert browser.ask("getComputedStyle(document.querySelector('.known')).display") == "none"
    assert browser.complaints == []


def test_without_a_mouse_the_list_lights_up_the_map(browser, pages):
    browser.open(pages["plan"], 390)
    browser.ask("document.querySelector('.plan li').focus()")
    assert browser.ask("document.querySelector('.place.on').dataset.item") == "1"


@pytest.mark.parametrize("width", [390, 1440])
def test_unknown_boxes_are_hatched_and_the_page_says_how_far_to_trust_it(browser, pages, width):
    browser.open(pages["plan"], width)
    hatched = "[...document.querySelectorAll('.cells rect')].filter(r => r.getAttribute('fill') === 'url(#unknown)')"
    assert browser.ask(f"{hatched}.length") > 0
    assert browser.ask(f"{hatched}.every(r => r.dataset.text.includes('Unknown'))")
    assert browser.ask("getComputedStyle(document.querySelector('#hatched')).display") != "none"
    assert browser.ask("document.querySelectorAll('.notes li').length") == len(planned()[0].notes)
    assert "beside it" in browser.ask("document.querySelector('.plan li em').textContent")
    effort = "(s => { s.value = 2; s.dispatchEvent(new Event('change')) })(document.querySelector('#shade'))"
    browser.ask(effort)
    assert browser.ask(f"{hatched}.length") == 0
    assert browser.ask("getComputedStyle(document.querySelector('#hatched')).display") == "none"
