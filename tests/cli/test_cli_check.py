"""The checks, on algorithms of someone's own."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from command_kit import Refused, Run

OWN = """
import artreplay as ar
import beside

def good():
    return ar.MonUCB(3, horizon=20)

def labelled():
    return ar.MonUCB(arms=["a", 7], horizon=20)

class Greedy:  # the last sample of any arm may change what it proposes
    def __init__(self):
        self.totals = {}

    def propose(self):
        return max(range(3), key=lambda arm: self.totals.get(arm, 1.0))

    def update(self, unit, reward):
        self.totals[unit] = reward

def tree():
    return ar.TreeUCB(2, horizon=20)

def paper():
    return ar.TreeAllocation(1, (0.5, 1), 1.5, 2, 20, epsilon=0.5, rule="paper", bonus=lambda n: 0.3 / n**0.5)

class Inner:
    Good = staticmethod(good)

def broken():
    return beside.fail()

class Fails(Greedy):
    def propose(self):
        raise LookupError("no idea")

number = 3
"""


@pytest.fixture
def own(folder: Path) -> Path:
    place = folder / "inner"
    place.mkdir()
    (place / "beside.py").write_text("def fail():\n    return 1 / 0\n")
    path = place / "own_algorithms.py"
    path.write_text(OWN)
    return path


def test_a_good_algorithm(run: Run, own: Path) -> None:
    done = run("check", "inner/own_algorithms.py:good", "--arms", 3, "--cases", 20)
    assert done.code == 0
    found, words = (part.splitlines() for part in done.out.split("\n\n"))
    names = ["coupling", "journal", "irrelevant data", "completion"]
    assert [line.split("  ")[0] for line in found[1:]] == names
    assert all("holds" in line and "20" in line and "%" in line for line in found[1:])
    assert [line.partition(":")[0] for line in words] == [*names, "could have failed"]


def test_a_bad_algorithm(run: Run, own: Path) -> None:
    done = run("check", f"{own}:Greedy", "--arms", 3, "--cases", 60)
    assert done.code == 1
    assert done.err == ""
    assert "coupling         fails" in done.out
    counterexample = done.out.partition("coupling fails: ")[2]
    assert "  log:\n" in counterexample
    assert "  full start: [" in counterexample
    assert "  replay: [" in counterexample
    assert " random worlds; the regret of replay in a round differed there by " in counterexample
    cures = done.out.partition("What to do, whichever fits:\n")[2].splitlines()
    assert cures[0].startswith("  - use ar.FullStart(base, history): it is right for any algorithm")
    assert any("offer `value(arm, round, unread, fill)`" in cure for cure in cures)
    assert any("let no index rise" in cure for cure in cures)
    assert len(cures) == len(set(cures))


@pytest.mark.parametrize(
    "target", [pytest.param("inner/own_algorithms.py:Greedy", marks=pytest.mark.long), "own_greedy:Outer.Greedy"]
)
def test_the_programs_that_are_printed_run_as_they_stand(run: Run, own: Path, folder: Path, target: str) -> None:
    (folder / "own_greedy.py").write_text(OWN.replace("import beside\n", "") + "\nclass Outer:\n    Greedy = Greedy\n")
    out = run("check", target, "--arms", 3, "--cases", 60).out
    programs = [textwrap.dedent(re.split(r"\n\n(?=\S)", part)[0]) for part in out.split("  to see it:\n")[1:]]
    assert len(programs) == 4
    for program in programs[-1:]:  # a fresh Python takes long to start
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=folder, check=True)
        first, second = done.stdout.splitlines()
        assert first != second


def test_labels_and_attributes(run: Run, own: Path) -> None:
    assert run("check", f"{own}:labelled", "--arms", "a,7", "--cases", 20).code == 0
    assert run("check", f"{own}:labelled", "--cases", 20).code == 0
    assert run("check", f"{own}:Inner.Good", "--cases", 20).code == 0


def test_a_module_that_can_be_imported_from_here(run: Run, folder: Path) -> None:
    (folder / "module_for_check.py").write_text("import artreplay as ar\n\ndef make():\n    return ar.MonUCB(2, 9)\n")
    assert run("check", "module_for_check:make", "--cases", 20).code == 0


def test_that_a_log_is_read_whole_is_said(run: Run, own: Path) -> None:
    with own.open("a") as file:
        file.write("\nclass Patient(Greedy):\n    reads_whole_log = True\n    n_arms = 3\n")
    assert "It reads the whole log first" in run("check", f"{own}:Patient", "--cases", 10).out


def test_nothing_to_find_is_said(run: Run, own: Path) -> None:
    out = run("check", f"{own}:good", "--cases", 1, "--max-history", 1, "--horizon", 1).out
    assert "holds, but nothing was tested" in out


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("inner/own_algorithms.py", "MODULE:FACTORY"),
        (":good", "MODULE:FACTORY"),
        ("nothing_like_it:make", "nothing_like_it cannot be imported: ModuleNotFoundError: No module named"),
        ("inner/nothing.py:make", "inner/nothing.py does not exist"),
        ("inner/own_algorithms.py:worse", "inner/own_algorithms.py has no 'worse'"),
        ("inner/own_algorithms.py:number", "must be a function or a class"),
        ("inner/own_algorithms.py:Greedy", "--arms or --dim must be given"),
        ("inner/own_algorithms.py:broken", "ZeroDivisionError: division by zero ("),
        ("inner/own_algorithms.py:broken", "beside.py, line 2)"),
    ],
)
def test_what_cannot_be_checked(refused: Refused, own: Path, target: str, words: str) -> None:
    assert words in refused("check", target)


def test_an_algorithm_that_fails(refused: Refused, own: Path) -> None:
    sentence = refused("check", "inner/own_algorithms.py:Fails", "--arms", 3)
    assert "your algorithm raised an error in Fails.propose(): LookupError: no idea (" in sentence
    assert "own_algorithms.py, line" in sentence
    assert "cases must be at least 1, got 0" in refused("check", "inner/own_algorithms.py:good", "--cases", 0)


@pytest.mark.parametrize(
    ("content", "words"),
    [("def f(:\n", "SyntaxError"), ("import sys\nsys.exit(3)\n", "SystemExit: 3"), ("import no_such\n", "no_such")],
)
def test_files_that_cannot_be_imported(refused: Refused, folder: Path, content: str, words: str) -> None:
    (folder / "wrong.py").write_text(content)
    sentence = refused("check", "wrong.py:make")
    assert "wrong.py cannot be imported: " in sentence
    assert words in sentence


def test_algorithms_over_points_are_asked_for_their_space(run: Run, own: Path) -> None:
    assert run("check", "inner/own_algorithms.py:tree", "--cases", 10).code == 0
    assert run("check", "inner/own_algorithms.py:tree", "--dim", 2, "--cases", 10).code == 0
    done = run("check", "inner/own_algorithms.py:paper", "--dim", 1, "--levels", "0.5,1", "--cases", 200)
    assert done.code == 1
    assert "coupling fails: round" in done.out


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--arms", 3, "--dim", 2), "give --arms or --dim, not both"),
        (("--levels", "1"), "Give --dim too"),
        (("--dim", 1, "--levels", "low"), "--levels must be numbers separated by commas, got 'low'"),
        (("--dim", 3), "points must have 2 coordinates, got a log with 3"),
        (("--arms", 3), "TreeUCB needs a log of points, got one of arms"),
    ],
)
def test_a_space_that_does_not_fit_is_refused(
    run: Run, own: Path, options: tuple[str | int, ...], sentence: str
) -> None:
    done = run("check", "inner/own_algorithms.py:tree", *options)
    assert done.code == 2
    assert sentence in done.err


MODELS = """
class Model:
    contextual = True
    arms = ("red", "blue")

    def __init__(self):
        self.rows = []

    def score(self, arm, context, round):
        return sum(reward for known, reward, age in self.rows if (known, age) == (arm, context["age"]))

    def update(self, arm, reward, context):
        self.rows.append((arm, reward, context["age"]))

class Wrong(Model):
    def score(self, arm, context, round):
        self.rows.append(("red", -1.0, 20))
        return super().score(arm, context, round)

PEOPLE = [{"age": 20}, {"age": 60}]
"""


def test_a_model_with_contexts(run: Run, refused: Refused, folder: Path) -> None:
    (folder / "models.py").write_text(MODELS)
    good = run("check", "models.py:Model", "--contexts", "models.py:PEOPLE", "--cases", 10)
    assert good.code == 0
    assert "It reads the whole log first" not in good.out
    assert "journal: in every context the policy plays what a fresh algorithm plays" in good.out
    wrong = run("check", "models.py:Wrong", "--contexts", "models.py:PEOPLE")
    assert wrong.code == 1
    assert "let `score` change nothing" in wrong.out
    assert "contexts must be a list of contexts" in refused("check", "models.py:Model")
