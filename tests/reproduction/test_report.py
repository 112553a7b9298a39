"""The report of the tiny reproduction: one page, its figures, and every number as JSON."""

from __future__ import annotations

import json
import shutil
from html.parser import HTMLParser
from pathlib import Path

import jsonschema
import pytest

from artreplay.errors import InvalidFile
from reproduction import report
from reproduction.catalogue import SMOKE, experiments
from reproduction.claims import claims
from reproduction.numbers import numbers
from reproduction.report import write_report
from reproduction.result_store import Store
from reproduction.results import Results

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("reproduction")]  # all of it takes most of a minute

DRAWN = ["karmed", "top-arms", "thompson-ids", "performance", "imbalanced", "surfaces", "discretisation"]
DRAWN += ["fixed-vs-adaptive", "domains", "theory"]
EMPTY = {"meta", "link", "br"}


class Reader(HTMLParser):
    """Follows the elements of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.figures = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.note(tag, attrs)
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.note(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def note(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.figures += tag == "svg"
        if given.get("id"):
            self.ids.append(str(given["id"]))
        self.links += [str(given[name]) for name in ("href", "src", "xlink:href") if given.get(name)]


@pytest.fixture(scope="module")
def read(page: Path) -> Reader:
    reader = Reader()
    reader.feed(page.read_text(encoding="utf-8"))
    return reader


def test_the_page_is_whole_and_has_every_figure(page: Path, read: Reader) -> None:
    assert read.open == []
    files = {path.stem for path in (page.parent / "figures").glob("*.png")}
    assert read.figures == len(files) == len(list((page.parent / "figures").glob("*.pdf"))) >= 35
    assert files <= set(read.ids)
    assert {stem for name in DRAWN for stem in files if stem.startswith(name)} == files
    assert all(any(stem.startswith(name) for stem in files) for name in DRAWN)


def test_nothing_on_the_page_is_elsewhere(page: Path, read: Reader) -> None:
    assert all(link.startswith(("#", "data:")) for link in read.links)
    assert {link[1:] for link in read.links if link.startswith("#")} <= set(read.ids)
    assert "<script" not in page.read_text(encoding="utf-8")


def test_no_name_is_given_twice(read: Reader) -> None:
    assert len(read.ids) == len(set(read.ids))


def test_a_tiny_run_says_that_it_is_one(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert "A tiny run" in text
    assert "Artificial Replay: A Meta-Algorithm for Harnessing Historical Data in Bandits" in text
    assert all(author in text for author in ("Banerjee", "Sinclair", "Tambe", "Xu", "Yu"))
    assert "artreplay 1.2.3" in text
    assert "Not computed" not in text


def test_what_comes_from_the_synthetic_park_says_so(page: Path) -> None:
    """Every figure and number of the third domain; nothing is called by the name of the paper's."""
    files = {path.stem for path in (page.parent / "figures").glob("*.png")}
    assert not any("patrol" in name for name in files)
    assert {"domains-synthetic-park", "performance-synthetic-park-fixed-none"} <= files
    document = json.loads((page.parent / "summary.json").read_text(encoding="utf-8"))
    assert not any("patrol" in number["name"] for number in document["numbers"])
    text = page.read_text(encoding="utf-8")
    parts = [part for part in text.split("<figure ")[1:] if part.startswith("id='discretisation-")]
    assert parts
    assert all("Synthetic park" in part and "synthetic park" in part for part in parts)


def test_the_summary_has_every_number_and_claim(page: Path, results: Results) -> None:
    document = json.loads((page.parent / "summary.json").read_text(encoding="utf-8"))
    fields = {"experiment", "name", "mean", "standard_error", "replications", "paper", "authors_code"}
    assert all(fields <= set(number) for number in document["numbers"])
    assert [number["name"] for number in document["numbers"]] == [number.name for number in numbers(results)]
    assert len({(number["experiment"], number["name"]) for number in document["numbers"]}) == len(document["numbers"])
    assert [claim["text"] for claim in document["claims"]] == [claim.text for claim in claims(results)]
    assert document["scale"]["horizon"] == SMOKE.horizon
    assert all(
        results.store.root.joinpath(key).is_dir() for number in document["numbers"] for key in number["settings"]
    )
    jsonschema.validate(document, json.loads((page.parent / document["$schema"]).read_bytes()))


def test_replay_equals_full_start_wherever_it_is_claimed(results: Results) -> None:
    shares = [number for number in numbers(results) if "actions of full start" in number.name]
    assert len(shares) > 25
    wrong = [number.name for number in shares if number.ours.mean < 100.0 and "paper" not in number.name]
    assert wrong == []


def test_the_same_results_give_the_same_summary_and_figures(page: Path, results: Results, tmp_path: Path) -> None:
    few = [experiment for experiment in results.experiments if experiment.name in ("karmed", "domains")]
    for name in ("one", "two"):
        write_report(Results(SMOKE, few, results.store), tmp_path / name, version="1")
    for path in sorted((tmp_path / "one").rglob("*.*")):
        assert path.read_bytes() == (tmp_path / "two" / path.relative_to(tmp_path / "one")).read_bytes(), path


def test_what_was_not_computed_is_told_with_what_it_needs(results: Results, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(report, "missing", lambda setting: setting.needs)  # as on a machine without scikit-learn
    few = experiments(SMOKE, ["fixed-vs-adaptive", "domains"])
    store = Store(tmp_path / "results")
    quadratic = next(one for one in few[1].settings if one["environment"] == "quadratic")
    store.write(quadratic, results.store.read(quadratic))
    text = write_report(Results(SMOKE, few, store), tmp_path / "report", version="1").read_text(encoding="utf-8")
    assert "Fixed and adaptive cells: not computed yet (3 settings)" in text
    assert "The domains: needs scikit-learn (1 setting)" in text
    assert text.index("Not computed") < text.index("<nav>")  # at the top of the page


def test_a_part_of_the_catalogue_is_reported_as_such(results: Results, tmp_path: Path) -> None:
    made = write_report(Results(SMOKE, experiments(SMOKE, ["domains"]), results.store), tmp_path, version="1")
    text = made.read_text(encoding="utf-8")
    assert "The domains" in text
    assert "Ten arms, one in a round</h2>" not in text


def test_without_results_there_is_no_report(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match=r"30 rounds, 2 or 3 replications, seed 0.*run `make reproduce` first"):
        write_report(Results(SMOKE, experiments(SMOKE), Store(tmp_path)), tmp_path / "report", version="1")
    assert not (tmp_path / "report").exists()


def test_figures_of_a_former_report_go_and_other_files_stay(results: Results, tmp_path: Path) -> None:
    figures = tmp_path / "figures"
    figures.mkdir()
    for name in ("domains-old.png", "domains-old.pdf", "mine.png"):
        (figures / name).write_bytes(b"")
    write_report(Results(SMOKE, experiments(SMOKE, ["domains"]), results.store), tmp_path, version="1")
    names = {path.name for path in figures.iterdir()}
    assert "mine.png" in names
    assert "domains-quadratic.png" in names
    assert not any("old" in name for name in names)


def test_several_processes_draw_the_same(results: Results, page: Path, tmp_path: Path) -> None:
    few = Results(SMOKE, experiments(SMOKE, ["domains", "fixed-vs-adaptive"]), results.store)
    for jobs in (1, 2):
        write_report(few, tmp_path / str(jobs), version="1", jobs=jobs)
    assert (tmp_path / "1/index.html").read_bytes() == (tmp_path / "2/index.html").read_bytes()


def test_a_damaged_result_is_told_on_the_page(results: Results, tmp_path: Path) -> None:

    few = experiments(SMOKE, ["domains"])
    for setting in few[0].settings:
        if results.store.folder(setting).exists():
            shutil.copytree(results.store.folder(setting), tmp_path / "results" / setting.key)
    victim = next((tmp_path / "results").glob("*/result.parquet"))
    victim.write_bytes(victim.read_bytes()[:-1])
    made = write_report(Results(SMOKE, few, Store(tmp_path / "results")), tmp_path / "report", version="1")
    assert "the result is damaged, run `make reproduce` again" in made.read_text(encoding="utf-8")


def test_a_place_that_cannot_be_written_to(results: Results, tmp_path: Path) -> None:
    (tmp_path / "report").write_text("in the way")
    few = Results(SMOKE, experiments(SMOKE, ["domains"]), results.store)
    with pytest.raises(InvalidFile, match="the report cannot be written to"):
        write_report(few, tmp_path / "report", version="1")
