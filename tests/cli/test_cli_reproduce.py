"""`artreplay reproduce` and `artreplay report`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Refused, Run

SMALL = ("--smoke", "--only", "karmed", "--only", "domains")


def test_a_small_part_of_everything(run: Run, folder: Path) -> None:
    done = run("reproduce", *SMALL, "--jobs", 1)
    assert done.code == 0
    assert "karmed" in done.out
    assert "13 settings computed" in done.out
    assert "the report is in report-smoke/index.html" in done.out
    assert (folder / "report-smoke/index.html").exists()
    first = (folder / "report-smoke/summary.json").read_bytes()
    again = run("reproduce", *SMALL, "--report", "other")
    assert "0 settings computed" in again.out
    assert (folder / "other/summary.json").read_bytes() == first


def test_the_summary_does_not_depend_on_the_number_of_processes(run: Run, folder: Path) -> None:
    for jobs in (1, 2):
        where = ("--results", f"results-{jobs}", "--report", f"report-{jobs}")
        assert run("reproduce", *SMALL, "--jobs", jobs, *where).code == 0
    one, two = ((folder / f"report-{jobs}/summary.json").read_bytes() for jobs in (1, 2))
    assert one == two


def test_another_seed_gives_another_summary(run: Run, folder: Path) -> None:
    found = []
    for seed in (0, 1):
        run("reproduce", "--smoke", "--only", "karmed", "--seed", seed, "--jobs", 1, "--report", f"report-{seed}")
        document = json.loads((folder / f"report-{seed}/summary.json").read_text(encoding="utf-8"))
        found.append([number["mean"] for number in document["numbers"]])
    assert found[0] != found[1]


def test_replications_can_be_chosen(run: Run, folder: Path) -> None:
    run("reproduce", "--smoke", "--only", "karmed", "--replications", 4, "--jobs", 1)
    document = json.loads((folder / "report-smoke/summary.json").read_text(encoding="utf-8"))
    assert {number["replications"] for number in document["numbers"]} == {4}
    assert not (folder / "report").exists()


def test_the_report_alone_computes_nothing(run: Run, refused: Refused, folder: Path) -> None:
    assert refused("report", *SMALL).startswith(
        "there are no results in results for this (30 rounds, 2 or 3 replications"
    )
    run("reproduce", *SMALL, "--jobs", 1)
    before = {path: path.stat().st_mtime_ns for path in (folder / "results").rglob("*")}
    assert run("report", *SMALL, "--out", "again").out == "the report is in again/index.html\n"
    assert {path: path.stat().st_mtime_ns for path in (folder / "results").rglob("*")} == before


def test_the_list_says_what_is_finished(run: Run, folder: Path) -> None:
    before = run("reproduce", *SMALL, "--list").out
    assert "karmed" in before
    assert not (folder / "results").exists()
    run("reproduce", *SMALL, "--jobs", 1)
    assert before != run("reproduce", *SMALL, "--list").out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--only", "figure"), "an experiment must be one of karmed, "),
        (("--jobs", "0"), "jobs must be at least 1, got 0"),
        (("--address", "here"), "an address is for the backends dask and ray"),
        (("--replications", "0"), "replications must be at least 1, got 0"),
        (("--seed", "-1"), "seed must be"),
        (("--results", "taken"), "nothing can be written to taken: File exists"),
    ],
)
def test_refusals(refused: Refused, folder: Path, arguments: tuple[str, ...], sentence: str) -> None:
    (folder / "taken").write_text("")
    assert refused("reproduce", "--smoke", *arguments).startswith(sentence)
    assert not (folder / "report-smoke").exists()
