"""`python -m reproduction run` and `report`."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
from pathlib import Path

import jsonschema
import pytest

from command_kit import Refused, Run
from reproduction.commands import main
from reproduction.computing import code_fingerprint

pytestmark = pytest.mark.xdist_group("a small reproduction")
SMALL = ("--smoke", "--only", "karmed")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which a small part has been reproduced, by one process, and what was said is in `out.txt`."""
    folder = tmp_path_factory.mktemp("small")
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as said:
        patch.chdir(folder)
        assert main(["run", *SMALL, "--jobs", "1"]) == 0
    (folder / "out.txt").write_text(said.getvalue(), encoding="utf-8")
    return folder


@pytest.fixture
def reproduced(small: Path, folder: Path) -> Path:
    """A copy of it in the folder of a test."""
    shutil.copytree(small, folder, dirs_exist_ok=True)
    return folder


def check_summary(report: Path, results: Path) -> None:
    """It is as its schema says, and every number names folders of results that are there."""
    document = json.loads((report / "summary.json").read_bytes())
    schema = json.loads((report / document["$schema"]).read_bytes())
    jsonschema.validate(document, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document | {"numbers": [document["numbers"][0] | {"settings": []}]}, schema)
    assert document["code"] == code_fingerprint()
    for number in document["numbers"]:
        assert all((results / key / "setting.json").exists() for key in number["settings"])


def test_a_small_part_of_everything(run: Run, reproduced: Path) -> None:
    out = (reproduced / "out.txt").read_text(encoding="utf-8")
    assert "karmed" in out
    assert "10 settings computed" in out
    assert "the report is in report-smoke/index.html" in out
    assert (reproduced / "report-smoke/index.html").exists()
    first = (reproduced / "report-smoke/summary.json").read_bytes()
    check_summary(reproduced / "report-smoke", reproduced / "results")
    again = run("run", *SMALL, "--jobs", 1, "--report", "other").out
    assert "\n0 settings computed" in again
    assert (reproduced / "other/summary.json").read_bytes() == first


@pytest.mark.long
def test_the_summary_does_not_depend_on_the_number_of_processes(run: Run, reproduced: Path) -> None:
    assert run("run", *SMALL, "--jobs", 2, "--results", "others", "--report", "report-2").code == 0
    one, two = ((reproduced / name / "summary.json").read_bytes() for name in ("report-smoke", "report-2"))
    assert one == two


@pytest.mark.long
def test_another_seed_gives_another_summary(run: Run, reproduced: Path) -> None:
    assert run("run", *SMALL, "--seed", 1, "--jobs", 1, "--report", "other").code == 0
    found = [
        [number["mean"] for number in json.loads((reproduced / name / "summary.json").read_bytes())["numbers"]]
        for name in ("report-smoke", "other")
    ]
    assert len(found[0]) == len(found[1])
    assert found[0] != found[1]


@pytest.mark.long
def test_replications_can_be_chosen(run: Run, folder: Path) -> None:
    run("run", "--smoke", "--only", "karmed", "--replications", 4, "--jobs", 1)
    document = json.loads((folder / "report-smoke/summary.json").read_text(encoding="utf-8"))
    assert {number["replications"] for number in document["numbers"]} == {4}
    assert not (folder / "report").exists()


def test_the_report_alone_computes_nothing(run: Run, reproduced: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (reproduced / "results").rglob("*")}
    assert run("report", *SMALL, "--out", "again").out == "the report is in again/index.html\n"
    assert {path: path.stat().st_mtime_ns for path in (reproduced / "results").rglob("*")} == before


def test_there_is_no_report_without_results(refused: Refused) -> None:
    assert refused("report", *SMALL).startswith(
        "there are no results in results for this (30 rounds, 2 or 3 replications"
    )


def test_the_list_says_what_is_finished(run: Run, reproduced: Path) -> None:
    finished = run("run", *SMALL, "--list").out
    assert "karmed" in finished
    assert finished != run("run", *SMALL, "--results", "none", "--list").out
    assert not (reproduced / "none").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--only", "figure"), "an experiment must be one of karmed, "),
        (("--jobs", "0"), "--jobs must be at least 1, got 0"),
        (("--address", "here"), "an address is for the backends dask and ray"),
        (("--replications", "0"), "--replications must be at least 1, got 0"),
        (("--seed", "-1"), "--seed must be"),
        (("--results", "taken"), "nothing can be written to taken: File exists"),
    ],
)
def test_refusals(refused: Refused, folder: Path, arguments: tuple[str, ...], sentence: str) -> None:
    (folder / "taken").write_text("")
    assert refused("run", "--smoke", *arguments).startswith(sentence)
    assert not (folder / "report-smoke").exists()
