"""What point to play next, from a log of points wherever it lies."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest

import artreplay as ar
from artreplay.cli.actions import Points
from artreplay.cli.names import name_of
from command_kit import Refused, Run, samples, write_csv

ROWS = 80
UNITS = ("--unit", "x", "--unit", "y", "--reward", "caught")
OPTIONS = (*UNITS, "--horizon", "50", "--algorithm", "tree-ucb")
KEPT = ("--state", "state.ar")


def points(rows: int = ROWS) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    at = rng.random((ROWS, 2)) * [1.0, 5.0]
    caught = (rng.random(ROWS) < 1.0 - np.abs(at - [0.7, 2.0]).max(axis=1) / 4).astype(float)
    return at[:rows], caught[:rows]


def table(rows: int = ROWS) -> pa.Table:
    at, caught = points(rows)
    return pa.table({"x": at[:, 0], "y": at[:, 1], "caught": caught, "effort": np.ones(rows), "seq": np.arange(rows)})


BOX = ("--box", "0,1", "--box", "0,5")


@pytest.fixture
def log(folder: Path) -> Path:
    pq.write_table(table(), folder / "log.parquet")
    return folder / "log.parquet"


def python_policy(kind: str = "tree-ucb", rows: int = ROWS) -> ar.ArtificialReplay:
    box = [(0, 1), (0, 5)]
    base = ar.TreeUCB(2, 50, box=box) if kind == "tree-ucb" else ar.GridUCB(2, 50, cells_per_side=3, box=box)
    return ar.ArtificialReplay(base, ar.History(*points(rows)))


PLACES = {
    "log.parquet": UNITS,
    "log.csv": UNITS,
    "*.parquet": UNITS,
    "log.arh": (),
    "log.duckdb": (*UNITS, "--table", "log"),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", [("tree-ucb",), ("grid-ucb", "--cells-per-side", "3")])
def test_recommends_what_python_does(run: Run, log: Path, place: str, kind: tuple[str, ...]) -> None:
    if place == "log.csv":
        arrow_csv.write_csv(table(), place)
    elif place == "log.arh":
        assert run("index", log, *UNITS, "-o", place).code == 0
    elif place == "log.duckdb":
        duckdb = pytest.importorskip("duckdb")
        with duckdb.connect(place) as connection:
            connection.execute(f"CREATE TABLE log AS SELECT * FROM '{log}'")
    policy = python_policy(kind[0])
    action = policy.ask()
    options = (*PLACES[place], *BOX, "--horizon", 50, "--algorithm", *kind)
    answer = run("recommend", place, *options, "--json").json
    assert tuple(answer["action"]) == action
    assert answer["algorithm"] == kind[0]
    assert answer["log"] == {"samples": ROWS, "used": policy.used, "skipped": 0}
    known = {(cell.low, cell.high): cell for cell in policy.cells()}
    assert len(answer["cells"]) == len(known)
    for row in answer["cells"]:
        cell = known[tuple(row["low"]), tuple(row["high"])]
        assert (row["samples"], row["index"]) == (cell.count, cell.index)
    indices = [row["index"] for row in answer["cells"]]
    assert indices == sorted(indices, reverse=True)
    out = run("recommend", place, *options).out
    assert out.splitlines()[0] == f"next action: {action[0]},{action[1]}".replace(".0", "")
    assert out.splitlines()[2].split() == ["cell", "samples", "mean", "index"]
    assert f"used {policy.used} of {ROWS} samples" in out
    assert ("; read " in out) == (place == "log.arh")


def test_a_regression_plays_points_of_few_coordinates(run: Run, log: Path) -> None:
    done = run("recommend", log, *UNITS, "--horizon", 50, *BOX)
    assert "by point-regression, which reads the log in one pass" in done.out
    policy = ar.ArtificialReplay(ar.PointRegression(2, 50, box=[(0, 1), (0, 5)]), ar.History(*points()))
    action = policy.ask()
    assert done.out.startswith(f"next action: {action[0]:g},{action[1]:g}\n")
    assert "by tree-ucb; point-regression has a lower regret" in run("recommend", log, *OPTIONS, *BOX).out


@pytest.mark.parametrize(
    ("dim", "rows", "given", "name"),
    [
        (2, 10**6, {}, "point-regression"),
        (2, 10**6 + 1, {}, "tree-ucb"),
        (3, 10, {}, "tree-ucb"),
        (1, 10, {"epsilon": 0.1}, "tree-ucb"),
    ],
)
def test_what_plays_points_depends_on_the_log(dim: int, rows: int, given: dict[str, float], name: str) -> None:
    request = SimpleNamespace(unit=["x"] * dim, parameters=given)
    assert name_of(Points.usual_for(request, SimpleNamespace(history=range(rows)))) == name


def test_one_coordinate_is_a_point_for_an_algorithm_over_points(run: Run, log: Path) -> None:
    options = ("--unit", "x", "--reward", "caught", "--horizon", 50, "--algorithm", "tree-ucb", "--epsilon", 0.25)
    at, caught = points()
    policy = ar.ArtificialReplay(ar.TreeUCB(1, 50, epsilon=0.25), ar.History(at[:, :1], caught))
    assert run("recommend", log, *options, *KEPT, "--json").json["action"] == list(policy.ask())
    assert run("tell", *KEPT, "0.5", 1).out == "round 1: 0.5 gave 1\n"
    assert run("recommend", log, "--unit", "x", *KEPT).code == 0


def test_a_table_of_cells_is_not_counted_from_the_whole_store(run: Run, folder: Path) -> None:
    rng = np.random.default_rng(0)
    rows = 20_000
    at = rng.random((rows, 2))
    good = (np.abs(at - 0.9).max(axis=1) < 0.05).astype(float)
    pq.write_table(pa.table({"x": at[:, 0], "y": at[:, 1], "caught": good}), "log.parquet")
    run("index", "log.parquet", *UNITS, "-o", "log.arh")
    reading = run("recommend", "log.arh", "--horizon", 50, "--epsilon", 0.1, "--json").json["reading"]
    assert 0 < reading["used"] <= reading["rows"] < rows / 2


@pytest.mark.parametrize("kind", ["artificial-replay", "full-start"])
def test_the_same_decisions_as_in_python_over_rounds_and_appended_rows(run: Run, folder: Path, kind: str) -> None:
    pq.write_table(table(60), "log.parquet")
    policy = python_policy(rows=60)
    run("recommend", "log.parquet", *OPTIONS, *BOX, "--policy", kind, *KEPT)
    with ar.Study.open("state.ar", read_only=True) as study:
        assert study.note.items() >= {"unit": ["x", "y"], "reward": "caught"}.items()
    pq.write_table(table(), "log.parquet")
    for round_ in range(4):
        answer = run("recommend", "log.parquet", *KEPT, "--json").json
        if round_ == 1:
            policy.extend(ar.History(*points()))
        action = policy.ask()  # of both policies: replay is exact
        assert (tuple(answer["action"]), answer["rounds"]) == (action, round_)
        assert run("tell", *KEPT, ",".join(map(repr, action)), round_ % 2).code == 0
        policy.tell(action, round_ % 2)
    with ar.Study.open("state.ar", read_only=True) as study:
        assert study.rounds == 4


def test_a_policy_moves_from_a_file_to_a_store_and_back(run: Run, log: Path) -> None:
    run("index", log, *UNITS, "-o", "log.arh")
    once = run("recommend", log, *OPTIONS, *BOX, *KEPT, "--json").json
    again = run("recommend", "log.arh", *KEPT, "--json").json
    assert (again["action"], again["cells"]) == (once["action"], once["cells"])
    assert run("tell", *KEPT, "0.31,0.7", 1).out == "round 1: 0.31,0.7 gave 1\n"
    once, again = (run("recommend", place, *KEPT, "--json").json for place in ("log.arh", log))
    assert (again["action"], again["cells"], again["rounds"]) == (once["action"], once["cells"], 1)


def test_points_outside_the_box_are_skipped_on_request(run: Run, refused: Refused, log: Path) -> None:
    sentence = refused("recommend", log, *OPTIONS)
    assert (
        "expected one in the box [0, 1] × [0, 1] (--box gives another, --unknown skip leaves such rows out)" in sentence
    )
    inside = int((points()[0][:, 1] <= 1).sum())
    done = run("recommend", log, *OPTIONS, "--unknown", "skip")
    assert f"skipped {ROWS - inside} rows whose point is not in the box" in done.out


def test_negative_coordinates(run: Run, folder: Path) -> None:
    pq.write_table(pa.table({"x": [-0.5, -0.1], "y": [2.0, 3.0], "caught": [1, 0]}), "log.parquet")
    assert run("recommend", "log.parquet", *OPTIONS, "--box", "-1,0", "--box", "0,5", *KEPT).code == 0
    assert run("tell", *KEPT, "-0.25,2", 1).out == "round 1: -0.25,2 gave 1\n"


def test_an_empty_log_of_points(run: Run, folder: Path) -> None:
    Path("log.csv").write_text("x,y,caught\n")
    done = run("recommend", "log.csv", *OPTIONS)
    assert done.out.startswith("next action: 0.5,0.5\n")
    assert "the log is empty" in done.out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            (*OPTIONS, "--algorithm", "mon-ucb"),
            "one column of arms, got x, y; points are for tree-ucb and grid-ucb and point-regression",
        ),
        ((*OPTIONS, "--algorithm", "tree-allocation"), "point-regression; --level names a column of effort"),
        ((*OPTIONS, "--level", "effort"), "tree-ucb must not be used here"),
        ((*OPTIONS, *BOX, "--arms", "a"), "plays points, not arms: leave --arms out"),
        ((*OPTIONS, *BOX, "--seed", 1), "leave --seed out"),
        ((*OPTIONS, *BOX, "--budget", 1), "tree-ucb has no budget"),
        ((*OPTIONS, *BOX, "--cells-per-side", 3), "tree-ucb has no cells per side: leave --cells-per-side out"),
        ((*OPTIONS, *BOX, "--epsilon", 7), "epsilon must lie in (0, 1]"),
        ((*OPTIONS, *BOX, "--epsilon", "nan"), "epsilon must lie in (0, 1]"),
        ((*OPTIONS, *BOX, "--algorithm", "grid-ucb", "--cells-per-side", 0), "--cells-per-side must be at least 1"),
        ((*OPTIONS, *BOX, "--algorithm", "grid-ucb", "--epsilon", 0.1), "grid-ucb has no epsilon"),
        ((*OPTIONS, "--box", "0,1"), "once for each of the 2 coordinates, got 1"),
        ((*OPTIONS, "--box", "1,0", "--box", "0,5"), "LOW < HIGH"),
        ((*OPTIONS, "--box", "0,nan", "--box", "0,5"), "LOW < HIGH"),
        ((*OPTIONS, "--box", "0", "--box", "0,5"), "--box must be LOW,HIGH"),
        ((*UNITS, *BOX), "point-regression needs --horizon"),
        (("--unit", "x", "--unit", "x", "--reward", "caught", "--horizon", 9), "different columns"),
        ((*OPTIONS, *BOX, "--order", "shuffle"), "--order-seed and --order shuffle go together"),
        ((*OPTIONS, *BOX, "--unit", "z"), "there must be one column 'z' (--unit)"),
    ],
)
def test_bad_options(refused: Refused, log: Path, options: tuple[object, ...], words: str) -> None:
    assert words in refused("recommend", log, *options)


def test_a_coordinate_that_is_missing(refused: Refused, folder: Path) -> None:
    pq.write_table(pa.table({"x": [0.5, float("nan")], "y": [0.5, 0.5], "caught": [1, 0]}), "log.parquet")
    assert "row 1" in refused("recommend", "log.parquet", *OPTIONS)


def test_options_of_points_are_not_for_arms(refused: Refused, folder: Path) -> None:
    arms = write_csv(folder / "arms.csv", samples(20))
    options = ("--unit", "arm", "--reward", "click", "--horizon", 9)
    for option, value in (("--box", "0,1"), ("--epsilon", 0.1), ("--cells-per-side", 3)):
        assert f"leave {option} out" in refused("recommend", arms, *options, option, value)
    assert "one column of arms" in refused("recommend", arms, *options, "--unit", "seq", "--algorithm", "ucb1")


EFFORTS = ("--level", "effort", "--budget", "3", "--places", "2", "--horizon", "50")


@pytest.fixture
def patrols(folder: Path) -> Path:
    """A log of points with an effort of 1 or 2 each."""
    efforts = pa.array(1.0 + np.arange(ROWS) % 2)
    pq.write_table(table().set_column(3, "effort", efforts), folder / "patrols.parquet")
    return folder / "patrols.parquet"


def allocating_policy(base: type[ar.CellRegression | ar.TreeAllocation], **given: object) -> ar.ArtificialReplay:
    made = base(2, (1.0, 2.0), 3, 2, 50, box=[(0, 1), (0, 5)], **given)
    return ar.ArtificialReplay(made, ar.History(*points(), levels=1.0 + np.arange(ROWS) % 2))


@pytest.mark.parametrize(
    ("base", "options"),
    [
        pytest.param(ar.CellRegression, {}, marks=pytest.mark.long),
        (ar.TreeAllocation, {"epsilon": 0.25}),
    ],
)
def test_a_budget_is_divided_over_places_as_python_does_it(
    run: Run, patrols: Path, base: type[ar.TreeAllocation], options: dict[str, float]
) -> None:
    """From a file and from a store; a tree where its finest boxes are named."""
    run("index", patrols, *UNITS, "--level", "effort", "-o", "patrols.arh")
    policy = allocating_policy(base, **options)
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    expected = [{"point": list(unit.point), "level": unit.level} for unit in policy.ask()]
    answer = run("recommend", patrols, *UNITS, *EFFORTS, *BOX, *words, "--json").json
    assert answer["action"] == expected
    assert answer["log"] == {"samples": ROWS, "used": policy.used, "skipped": 0}
    assert {cell["level"] for cell in answer["cells"]} == {1.0, 2.0}
    stored = run("recommend", "patrols.arh", *EFFORTS[2:], *BOX, *words, "--json").json
    assert stored["action"] == expected


def test_places_are_told_with_their_levels(run: Run, refused: Refused, patrols: Path) -> None:
    policy = allocating_policy(ar.CellRegression)
    for rewards in ((0, 1), (1, 1)):
        action = policy.ask()
        out = run("recommend", patrols, *UNITS, *EFFORTS, *BOX, *KEPT).out
        words = [f"{','.join(map(repr, unit.point))}@{unit.level:g}" for unit in action]
        assert f"next action: {', '.join(words)}" in out
        assert "by cell-regression, which reads the log in one pass and fits a surface to it" in out
        told = [word for pair in zip(words, rewards, strict=False) for word in pair]
        assert run("tell", *told, *KEPT).code == 0
        policy.tell(action, [float(reward) for reward in rewards[: len(action)]])
    sentence = refused("tell", "0.5,0.5", "1", *KEPT)
    assert "'0.5,0.5' must end in @ and one of the levels 1, 2, as in 0.5,0.5@1" in sentence


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--level", "effort", "--horizon", "9", "--places", "2"), "cell-regression needs --budget"),
        (("--level", "effort", "--horizon", "9", "--budget", "2"), "cell-regression needs --places"),
        ((*EFFORTS, "--algorithm", "tree-allocation"), "tree-allocation needs --epsilon"),
        ((*EFFORTS, "--algorithm", "tree-ucb"), "is a log of points with a level of effort, which are for"),
        (("--horizon", "9", "--places", "2"), "point-regression has no places: leave --places out"),
        (("--horizon", "9", "--algorithm", "grid-allocation"), "grid-allocation is not for `recommend`"),
    ],
)
def test_what_a_budget_needs_is_said(refused: Refused, patrols: Path, options: tuple[str, ...], words: str) -> None:
    assert words in refused("recommend", patrols, *UNITS, *BOX, *options)


def test_an_algorithm_for_the_other_kind_of_store(run: Run, refused: Refused, log: Path, folder: Path) -> None:
    run("index", log, *UNITS, "-o", "log.arh")
    run("index", write_csv(folder / "arms.csv", samples(20)), "--unit", "arm", "--reward", "click", "-o", "arms.arh")
    for place, name, other in (("log.arh", "mon-ucb", "points"), ("arms.arh", "tree-ucb", "arms")):
        sentence = refused("recommend", place, "--horizon", 9, "--algorithm", name)
        assert f"{name} must not be used here: {place} is a log of {other}" in sentence


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (("0.3", "1"), "'0.3' is not a point: expected 2 numbers with commas between them, as in 0.5,0.5"),
        (("0.3,1,1", "1"), "expected 2 numbers"),
        (("a,1", "1"), "'a,1' is not a point"),
        (("red", "1"), "'red' is not a point"),
        (("nan,1", "1"), "must lie in the box [0, 1] × [0, 5]"),
        (("0.3,inf", "1"), "must lie in the box"),
        (("0.3,5.5", "1"), "point [0.3, 5.5] must lie in the box"),
        (("0.3,1", "nan"), "reward is nan"),
        (("0.3,1", "7"), "reward is 7.0, expected a number in [0, 1]"),
        (("0.3,1",), "point and reward must come in pairs"),
        (("0.3,1", "1", "0.4,1", "0"), "tree-ucb plays one point in a round, got 2"),
    ],
)
def test_what_cannot_be_told_changes_nothing(
    run: Run, refused: Refused, log: Path, told: tuple[str, ...], words: str
) -> None:
    run("recommend", log, *OPTIONS, *BOX, *KEPT)
    before = Path("state.ar").read_bytes()
    assert words in refused("tell", *KEPT, *told)
    assert Path("state.ar").read_bytes() == before


@pytest.mark.parametrize(
    ("options", "held"),
    [
        (("--box", "0,1", "--box", "0,2"), "box 0 to 1, 0 to 5, got 0 to 1, 0 to 2"),
        (("--epsilon", "0.1"), "epsilon none, got 0.1"),
        (("--algorithm", "grid-ucb"), "algorithm tree-ucb, got grid-ucb"),
        (("--unit", "x"), "coordinates 2, got 1"),
        (("--seed", "1"), "seed none, got 1"),
    ],
)
def test_options_that_contradict_the_state_are_refused(
    run: Run, refused: Refused, log: Path, options: tuple[str, ...], held: str
) -> None:
    run("recommend", log, *OPTIONS, *BOX, *KEPT)
    before = Path("state.ar").read_bytes()
    assert f"state.ar was made with {held}" in refused("recommend", log, *KEPT, *options)
    assert Path("state.ar").read_bytes() == before
    assert run("recommend", log, *KEPT, *OPTIONS, *BOX, "--algorithm", "tree-ucb").code == 0


def test_a_state_and_a_log_of_other_kinds(run: Run, refused: Refused, log: Path, folder: Path) -> None:
    arms = write_csv(folder / "arms.csv", samples(200))
    columns = ("--unit", "arm", "--reward", "click")
    run("recommend", log, *OPTIONS, *BOX, *KEPT)
    run("recommend", arms, *columns, "--horizon", 9, "--state", "arms.ar")
    for laid_out, options in ((log, UNITS), (arms, columns)):
        run("index", laid_out, *options, "-o", laid_out.with_suffix(".arh"))
    assert "arms.arh" in refused("recommend", "arms.arh", *KEPT)
    assert "log.arh" in refused("recommend", "log.arh", "--state", "arms.ar")


def test_an_allocation_in_a_state_file_is_for_python(refused: Refused, log: Path) -> None:
    at, caught = points()
    base = ar.GridAllocation(2, [0, 1], 1, 1, 9, cells_per_side=2, box=[(0, 1), (0, 5)])
    history = ar.History(at, caught, levels=np.ones(ROWS))
    ar.Study.create("state.ar", base, history).close()
    for command in (("recommend", log, *KEPT), ("tell", *KEPT, "0.3,1", 1)):
        assert "use it from Python" in refused(*command)
