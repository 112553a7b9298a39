"""The page of the service lives: it shows what was decided since, in a real browser."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from service_kit import COLOURS, colours, serving

from artreplay.studies.decision_columns import DecisionColumns, DecisionRows
from browser import browsing, find_browser
from real_parts import needed


def test_the_page_shows_what_was_decided_since(tmp_path: Path) -> None:
    with serving(colours(tmp_path / "colours.study")) as client:
        page = client.ask("GET", "/studies/colours")
        assert b"No decision has been asked for yet" in page.body
        assert "script-src 'sha256-" in page.headers["content-security-policy"]
        assert client.ask("GET", "/").headers["location"] == "studies/colours"
        for number in range(3):
            client.decide(str(number))
        time.sleep(1.1)
        part = client.ask("GET", "/studies/colours?part=main").body
        assert b"3 decisions: 3 open" in part
        assert b"<!doctype" not in part
        assert b"/v1/studies/{study}/decisions" in client.ask("GET", "/docs").body
        assert client.ask("GET", "/studies/nothing").status == 404


def test_a_page_that_is_not_read_yet_says_so_and_comes_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_read, read = threading.Event(), DecisionColumns.read

    def slowly(columns: DecisionColumns) -> DecisionRows:
        may_read.wait(30.0)
        return read(columns)

    monkeypatch.setattr(DecisionColumns, "read", slowly)
    try:
        with serving(colours(tmp_path / "colours.study")) as client:
            notice = client.ask("GET", "/studies/colours")
            assert b"The service has just started. It has read 0&nbsp;% of this study." in notice.body
            assert notice.headers["refresh"] == "1"
            assert client.decide("meanwhile")["action"] in COLOURS
            may_read.set()
            page = client.ask("GET", "/studies/colours")
            assert b"1 decision: 1 open" in page.body
            assert "refresh" not in page.headers
    finally:
        may_read.set()


@pytest.mark.long
@pytest.mark.parametrize("width", [390, 1440])
def test_a_browser_draws_it_again(width: int, tmp_path: Path) -> None:
    with (
        serving(colours(tmp_path / "colours.study")) as client,
        browsing(needed("Chromium", find_browser())) as page,
    ):
        address = f"http://127.0.0.1:{client.port}"
        page.open(f"{address}/studies/colours", width)
        for number in range(30):
            made = client.decide(str(number))
            client.ask("PUT", f"/v1/studies/colours/decisions/{made['id']}/reward", {"value": number % 2})
        until = time.monotonic() + 30.0
        while page.ask("document.querySelectorAll('canvas').length") != 2 and time.monotonic() < until:
            time.sleep(0.2)
        assert "30 decisions: 30 rewarded" in page.ask("document.body.innerText")
        assert page.complaints == []
        assert [one for one in page.requests if not one.startswith(address)] == []
        assert page.ask("document.documentElement.scrollWidth") <= width
