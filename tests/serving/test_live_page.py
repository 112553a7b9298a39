"""The page of the service lives: it shows what was decided since, in a real browser."""

from __future__ import annotations

import re
import threading
import time
from datetime import timedelta
from pathlib import Path

import pytest
from service_kit import COLOURS, colours, serving

import artreplay as ar
from artreplay.plots.study_page import main_of
from artreplay.plots.study_view import view_of
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
        assert b"3 decisions: 3 still waiting" in part
        assert b"<!doctype" not in part
        assert b"/v1/studies/{study}/decisions" in client.ask("GET", "/docs").body
        assert client.ask("GET", "/studies/nothing").status == 404


def test_all_decisions_are_listed_page_by_page(tmp_path: Path) -> None:
    with serving(colours(tmp_path / "colours.study")) as client:
        assert b"There are no decisions here." in client.ask("GET", "/studies/colours?part=decisions").body
        client.ask("POST", "/v1/studies/colours/decisions", {"request_id": "many", "count": 230})
        client.ask("POST", "/v1/studies/colours/decisions", {"request_id": "later", "deferred": True})
        assert b'href="?part=decisions"' in client.ask("GET", "/studies/colours").body
        address, numbers = "/studies/colours?part=decisions", []
        while address:
            part = client.ask("GET", address).body.decode()
            numbers += [int(number) for number in re.findall(r"<tr><td>(\d+)-", part)]
            older = re.search(r'href="([^"]*)">older', part)
            address = f"/studies/colours{older[1].replace('&amp;', '&')}" if older else ""
        assert numbers == list(range(231, 0, -1))
        last = client.ask("GET", "/studies/colours?part=decisions&before=101").body
        assert b"Decisions 1 to 100 of 231" in last
        assert b"before=201" in last
        assert b"There are no decisions here." in client.ask("GET", "/studies/colours?part=decisions&before=-5").body


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
            assert b"1 decision: 1 still waiting" in page.body
            assert "refresh" not in page.headers
    finally:
        may_read.set()


def shown(study: ar.Study) -> str:
    return re.sub("<[^>]*>", "", main_of(view_of(study)))


def test_rewards_that_wait_for_their_window_are_said_to_have_come() -> None:
    with ar.Study.create(":memory:", ar.KLUCB(arms=["a", "b"], horizon=100), wait=timedelta(days=2)) as study:
        for decision in study.decide(count=9)[:3]:
            study.reward(decision.id, 1.0)
        assert "No decision counts yet: 3 rewards have come, and 2 days must be over" in shown(study)


def test_rewards_that_stop_coming_are_noticed() -> None:
    now = [1.79e9]
    base = ar.KLUCB(arms=["a", "b"], horizon=10_000)
    with ar.Study.create(":memory:", base, wait=timedelta(days=2), clock=lambda: now[0]) as study:
        study.reward(study.decide().id, 1.0)
        now[0] += 3.1 * 3600.0
        study.decide(count=100)
        assert "100 decisions were made in the last three hours, and no reward has come since." in shown(study)
        study.change(wait=timedelta(hours=8))
        assert "wait is now 28800.0 seconds" in shown(study)


def test_nothing_is_concluded_where_only_successes_are_told() -> None:
    now = [1.79e9]
    base = ar.KLUCB(arms=["a", "b"], horizon=10_000)
    with ar.Study.create(":memory:", base, wait=None, clock=lambda: now[0]) as study:
        for decision in study.decide(count=300)[:40]:
            study.reward(decision.id, 1.0)
        assert "is the best" in shown(study)
        now[0] += 2 * 86_400.0
        page = shown(study)
    assert "This counts 40 decisions of the policy, those with a reward." in page
    assert "The mean is that of decisions that have a reward." in page
    assert "This cannot be said while most rewards are missing." in page
    assert "is the best" not in page


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
        assert "30 decisions: 30 with a reward" in page.ask("document.body.innerText")
        assert page.complaints == []
        assert [one for one in page.requests if not one.startswith(address)] == []
        assert page.ask("document.documentElement.scrollWidth") <= width
