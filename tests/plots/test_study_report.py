"""The report of a study: one file, whatever the arms are called and however many there are."""

from __future__ import annotations

from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path

import pytest

import artreplay as ar
from artreplay.plots.study_report import draw_view, study_page, view_of

NASTY = "<script>alert(1)</script> & $x^2$\n<b>"


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.found.add(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def busy(arms: list[str], decisions: int = 60) -> ar.Study:
    """A study with decisions in every state, and a log that one arm contradicts."""
    now = [1e9]
    log = ar.History(arms * 30, [1.0] * len(arms) * 30)
    base = ar.MonUCB(arms=arms, horizon=1000, bonus=ar.bonus.practical(0.5))
    study = ar.Study.create(":memory:", base, log, wait=timedelta(hours=1), clock=lambda: now[0])
    made = study.decide(count=decisions)
    for decision in made[: decisions // 2]:
        study.reward(decision.id, 0.0)
    study.void(made[-1].id)
    now[0] += 3600
    study.decide()
    study.observe(arms[0], 0.5)
    return study


@pytest.mark.parametrize(
    "n_arms", [3, pytest.param(80, marks=pytest.mark.long), pytest.param(5000, marks=pytest.mark.long)]
)
def test_the_page_says_what_is_going_on(n_arms: int, tmp_path: Path) -> None:
    with busy([NASTY, *(f"item {number}" for number in range(1, n_arms))]) as study:
        ar.plots.write_study_report(study, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    tags = Tags()
    tags.feed(page)
    known = "html head meta title style body h1 h2 p img div table tr th td ul li code"
    assert tags.found <= set(known.split())
    said = " ".join(tags.texts)
    assert "61 decisions: 29 expired, 1 open, 30 rewarded, 1 void. Its horizon is 1,000 decisions." in said
    assert f"Of the {30 * n_arms:,} samples of the log" in said
    assert "1 observations are of actions that nobody asked for" in said
    assert NASTY in tags.texts
    assert ("more arms, which" in said) == (n_arms > 200)
    if n_arms == 3:
        assert "Rewards that contradict the log" in said


@pytest.mark.parametrize("base", [ar.TreeUCB(1, horizon=10), ar.TopUCB(3, 2, 10)])
def test_there_may_be_nothing_to_show_yet(base: ar.MonUCB) -> None:
    with ar.Study.create(":memory:", base, wait=None) as study:
        assert "There is no log." in study_page(view_of(study))
        study.reward(study.decide().id, [1.0, 0.0] if base.proposes_list else 1.0)
        assert len(draw_view(view_of(study)).axes) == 4


def test_totals_have_a_rate_of_their_own() -> None:
    with ar.Study.create(
        ":memory:", ar.KLUCB(2, horizon=500), ar.Totals([0, 1], [100, 300], [10, 50]), wait=None
    ) as study:
        study.reward(study.decide().id, 1.0)
        page = study_page(view_of(study))
    assert "that of the log is 0.15" in page
    assert "Its horizon is 500 decisions." in page


@pytest.mark.parametrize("reward", [0.0, 1.0])
@pytest.mark.parametrize("totals", [False, True])
def test_bands_stay_in_the_range_and_exist_where_all_rewards_are_the_same(reward: float, totals: bool) -> None:
    log = ar.History(["a", "b"] * 30, [reward] * 60)
    base = ar.MonUCB(arms=["a", "b"], horizon=1000)
    with ar.Study.create(":memory:", base, ar.Totals.of(log) if totals else log, wait=None) as study:
        for decision in study.decide(count=40):
            study.reward(decision.id, reward)
        view = view_of(study)
    assert view.log_mean is not None
    assert 0.0 <= view.log_mean.low < view.log_mean.high <= 1.0
    bands = [path for item in draw_view(view).axes[0].collections for path in item.get_paths()]
    assert bands
    for band in bands:
        heights = band.vertices[:, 1]
        assert 0.0 <= heights.min() < heights.max() <= 1.0
