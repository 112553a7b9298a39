"""The page about a study: one file that says in sentences what is going on, whatever the arms are called."""

from __future__ import annotations

import random
import re
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import artreplay as ar
from artreplay.algorithms.bounds import likelihood_interval
from artreplay.plots.study_page import content_policy, main_of, page_of
from artreplay.plots.study_view import LIKELIHOOD_95, view_of
from artreplay.studies.decision_columns import DecisionColumns
from browser import browsing, find_browser
from real_parts import needed

NASTY = "<script>alert(1)</script> & $x^2$"
TAGS = {
    *("html", "head", "meta", "title", "style", "body", "main", "script"),
    *("h1", "h2", "p", "div", "span", "b", "section", "ul", "ol", "li", "code", "details", "summary"),
    *("table", "thead", "tbody", "tr", "th", "td", "svg", "rect"),
}


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.found.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def said_on(page: str) -> str:
    """Return the words of a page, in which no label has become markup."""
    tags = Tags()
    tags.feed(page)
    assert set(tags.found) <= TAGS
    assert tags.found.count("script") <= 2
    return re.sub(r"\s+", " ", "".join(tags.texts))


def busy(n_arms: int, decisions: int, *, has_log: bool = True, **given_: Any) -> ar.Study:
    """Live with a study for some days, in which the first arm earns most."""
    random_, now = random.Random(1), [1.79e9]
    arms = [NASTY, *(f"banner {number}" for number in range(1, n_arms))]
    log = ar.History(arms * 10, [float(number % 4 == 0) for number in range(10 * n_arms)]) if has_log else None
    given_ = {"wait": timedelta(hours=6), "clock": lambda: now[0]} | given_
    study = ar.Study.create(":memory:", ar.KLUCB(arms=arms, horizon=100_000), log, **given_)
    for _ in range(decisions // 50):
        for decision in study.decide(count=50):
            chance = 0.3 if decision.action == NASTY else 0.05
            if random_.random() < 0.95:
                study.reward(decision.id, float(random_.random() < chance))
        now[0] += 3600.0
    return study


def test_a_product_manager_reads_what_is_going_on() -> None:
    with busy(3, 3000, holdout=0.2) as study:
        study.retire_arm("banner 2")
        study.decide(count=10)
        view = view_of(study)
        page = page_of(view)
        comparison, stopping = study.comparison(), study.stopping()
    assert comparison is not None
    assert stopping is not None
    said = said_on(page)
    assert view.windows is not None
    assert 40 < len(view.windows.ends) <= 48  # though 50 decisions were made at a time
    assert f"{NASTY} got" in said
    assert re.search(r"The policy earns 2\d\.\d % a decision; control earns 1\d\.\d % \(\+\d+ points, between", said)
    assert f"The chance that {NASTY} is the best is" in said
    assert "of this week's decisions of the policy went to" in said
    assert "banner 2 is retired" in said
    assert comparison.low > 0.0


def test_without_a_hold_out_it_says_that_this_is_after_and_before() -> None:
    with busy(3, 1000) as study:
        said = said_on(page_of(view_of(study)))
    assert "; the log earned 2" in said
    assert "This compares after with before" in said


@pytest.mark.parametrize(
    ("base", "words"),
    [
        (ar.KLUCB(arms=["a", "b"], horizon=100), "No decision has been asked for yet"),
        (ar.TreeUCB(2, horizon=100), "No decision has been asked for yet"),
    ],
)
def test_an_empty_study_says_why_it_is_empty(base: Any, words: str) -> None:
    with ar.Study.create(":memory:", base, wait=None) as study:
        page = page_of(view_of(study))
    assert words in said_on(page)
    assert 'id="numbers"' not in page


def test_a_study_with_open_decisions_only_says_what_it_waits_for() -> None:
    with ar.Study.create(":memory:", ar.KLUCB(arms=["a", "b"], horizon=100), wait=timedelta(days=2)) as study:
        study.decide(count=20)
        view = view_of(study)
        said = said_on(page_of(view))
    assert view.windows is not None
    assert view.windows.shares.tolist() == [[0.5], [0.5]]  # all at one time
    assert "No decision counts yet: rewards are still missing, and 2 days must be over before a decision counts" in said


def test_points_and_lists_have_a_page_too() -> None:
    for base, value in ((ar.TreeUCB(2, horizon=100), 0.5), (ar.TopUCB(4, 2, 100), [1.0, 0.0])):
        with ar.Study.create(":memory:", base, wait=None) as study:
            for _ in range(40):
                study.reward(study.decide().id, value)
            said = said_on(page_of(view_of(study)))
        assert "Single arms cannot be judged here. This needs a hold-out" in said
        assert "The policy earns" in said


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_segments_have_a_table_and_changes_say_what_they_changed() -> None:
    seen = {"country": ["NL", "DE"] * 50}
    log = ar.History(["red", "blue", "blue", "red"] * 25, [1.0, 0.0] * 50, contexts=seen)
    base = ar.KLUCB(arms=["red", "blue"], horizon=100, contexts=ar.Contexts.from_history(log, segments=["country"]))
    with ar.Study.create(":memory:", base, log, wait=None) as study:
        for country in ("NL", "DE") * 10:
            study.reward(study.decide(context={"country": country}).id, 1.0)
        study.change(holdout=0.1)
        said = said_on(page_of(view_of(study)))
    assert "In 0 of 2 segments the chance that one arm is the best is at least 95 %" in said
    assert "Segments segmentbest armchance of being beststopping now loses" in said
    assert "holdout is now 0.1" in said


def test_many_arms_are_cut_off_with_a_sentence() -> None:
    with busy(1000, 600) as study:
        said = said_on(main_of(view_of(study)))
    assert "and 800 more arms" in said
    assert "With more than 200 arms this page does not say" in said


def test_what_seems_to_be_wrong_stands_above_everything() -> None:
    now = [1.79e9]
    base = ar.KLUCB(arms=["a", "b"], horizon=10)
    with ar.Study.create(":memory:", base, wait=None, clock=lambda: now[0]) as study:
        with pytest.warns(UserWarning, match="horizon"):
            study.decide(count=200)
        now[0] += 3 * 86_400.0
        said = said_on(page_of(view_of(study)))
    assert "200 of the last 200 decisions that are older than a day have no reward" in said
    assert "200 decisions have been made, and the study was made for 10" in said


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(1, 200)), min_size=1, max_size=5))
def test_an_interval_lies_in_the_range_and_holds_the_mean(pairs: list[tuple[int, int]]) -> None:
    means = np.array([min(won, n) / n for won, n in pairs])
    low, high = likelihood_interval(means, np.array([n for _, n in pairs]), LIKELIHOOD_95)
    assert (low >= 0.0).all()
    assert (high <= 1.0).all()
    assert (low <= means).all()
    assert (means <= high).all()
    narrow_low, narrow_high = likelihood_interval(means, np.array([100 * n for _, n in pairs]), LIKELIHOOD_95)
    assert (narrow_high - narrow_low <= high - low + 1e-9).all()


def test_columns_read_in_parts_are_those_read_at_once() -> None:
    with busy(3, 0) as study:
        columns = DecisionColumns(study)
        columns.read()
        random_ = random.Random(2)
        for turn in range(40):
            decision = study.decide(deferred=turn % 7 == 0)
            if turn % 3 == 0:
                study.reward(decision.id, random_.random())
            if turn % 5 == 0:
                study.void(decision.id)
            columns.read()
        for part, whole in zip(columns.read(), DecisionColumns(study).read(), strict=True):
            np.testing.assert_array_equal(part, whole)


@pytest.mark.long
@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("n_arms", [0, 3, 80, 5000])
def test_it_fits_and_loads_nothing_in_a_real_browser(n_arms: int, width: int, tmp_path: Path) -> None:
    study = busy(n_arms, 1000, holdout=0.1) if n_arms else ar.Study.create(":memory:", ar.TreeUCB(2, 100), wait=None)
    with study:
        ar.plots.write_study_report(study, tmp_path / "page.html")
    with browsing(needed("Chromium", find_browser())) as page:
        page.open(tmp_path / "page.html", width)
        assert page.complaints == []
        assert [address for address in page.requests if not address.startswith("file:")] == []
        assert page.ask("document.documentElement.scrollWidth") <= width
        assert page.ask("document.querySelectorAll('canvas').length") == (2 if n_arms else 0)
        assert page.ask("typeof alert_happened") == "undefined"


def test_a_browser_runs_nothing_but_what_we_wrote() -> None:
    assert "'unsafe-inline'" not in content_policy()
    assert "default-src 'none'" in content_policy()
