"""Runs keep their rewards and settings, survive a file unchanged, and go on with runs of later replications."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from simulated import CASES, same

import artreplay as ar
from artreplay.engine.runs_file import PER_REPLICATION
from artreplay.errors import InvalidFile, InvalidParameter

SPACE = ar.environments.Quadratic(finest=4)


class Coins:
    """A world of the user's own, with rewards of −2 and 3."""

    n_arms = 3
    reward_range = (-2.0, 3.0)

    def __init__(self, *chances: float) -> None:
        self.chances = chances

    def __repr__(self) -> str:
        return f"Coins{self.chances}"

    def mean(self, arm: int, round: int) -> float:
        return 5.0 * self.chances[arm] - 2.0

    def reward(self, arm: int, round: int, u: float) -> float:
        return 3.0 if u < self.chances[arm] else -2.0


class Turns:
    """Plays the arms in turn."""

    def __init__(self, count: int = 3) -> None:
        self.seen, self.count = 0, count

    def propose(self) -> int:
        return self.seen % self.count

    def update(self, arm: int, reward: float) -> None:
        self.seen += 1


KINDS: dict[str, tuple[Any, Any]] = {
    "arms": (CASES["MonUCB"][0](), CASES["MonUCB"][1]),
    "several arms": (CASES["TopUCB"][0](), CASES["TopUCB"][1]),
    "draws": (CASES["Thompson"][0](), CASES["Thompson"][1]),
    "an own object": (Turns(), ar.environments.KArmed(3)),
    "an own world": (ar.MonUCB(3, 20, reward_range=(-2, 3)), Coins(0.2, 0.5, 0.8)),
    "contexts": (ar.Greedy(3), ar.environments.LinearContexts(3, 2)),
    "points": (ar.TreeUCB(1, 20), ar.environments.Metric(lambda points: points[:, 0], dim=1)),
    "allocations": (ar.GridAllocation(2, (0.5, 1), 2, 5, 20, cells_per_side=4), SPACE),
}


def run(kind: str, **more: Any) -> ar.Runs:
    base, env = KINDS[kind]
    with ar.compiling.using("interpreted"):
        return ar.simulate(base, env, **({"history": 20, "horizon": 12, "replications": 5, "seed": 3} | more))


def equal(one: ar.Runs, other: ar.Runs) -> None:
    """Fail unless everything but the time is equal, with the same types."""
    for field in dataclasses.fields(ar.Runs):
        mine, theirs = getattr(one, field.name), getattr(other, field.name)
        if field.name in ("seconds", "lattice"):
            assert (mine is None) == (theirs is None)
        elif isinstance(mine, np.ndarray):
            assert mine.dtype == theirs.dtype, field.name
            np.testing.assert_array_equal(mine, theirs, err_msg=field.name)
        else:
            assert mine == theirs, field.name


@pytest.mark.parametrize("kind", KINDS)
def test_later_replications_go_on_where_others_ended(kind) -> None:
    whole = run(kind)
    parts = [run(kind, replications=2), run(kind, replications=3, first_replication=2)]
    assert same(
        parts[1],
        dataclasses.replace(whole, **{name: getattr(whole, name)[2:] for name in ("regret", "used", "actions")}),
    )
    equal(ar.Runs.join(*reversed(parts)), whole)
    assert parts[1].to_frame()["replication"].to_pylist() == sorted([2, 3, 4] * 12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("keep", ["all", "final", [0, 7]], ids=str)
def test_a_file_brings_everything_back(kind, keep, tmp_path) -> None:
    runs = run(kind, keep=keep, first_replication=4)
    runs.save(tmp_path / "runs.parquet")
    again = ar.Runs.load(tmp_path / "runs.parquet")
    equal(again, runs)
    assert again.seconds == runs.seconds
    if runs.lattice is not None and keep == "all":
        np.testing.assert_array_equal(again.points(), runs.points())
    assert pq.read_table(tmp_path / "runs.parquet")["replication"].to_pylist() == [4, 5, 6, 7, 8]


def test_rewards_are_those_of_the_world() -> None:
    """The n-th pull of an arm gives its n-th reward, on the scale of the world whatever the range of the base."""
    runs = run("arms")
    wide = ar.simulate(
        ar.MonUCB(4, 20, reward_range=(-0.1, 1.3)), CASES["MonUCB"][1], history=20, horizon=12, replications=5, seed=3
    )
    assert set(np.unique(wide.rewards)) == {0.0, 1.0} == set(np.unique(runs.rewards))
    pulls: dict[tuple[int, int, int], float] = {}
    for each in (runs, wide):
        for world in range(5):
            count = [0] * 4
            for arm, reward in zip(each.actions[world].tolist(), each.rewards[world].tolist(), strict=True):
                assert pulls.setdefault((world, arm, count[arm]), reward) == reward
                count[arm] += 1
    assert set(np.unique(run("an own world").rewards)) == {-2.0, 3.0}


@pytest.mark.parametrize("kind", KINDS)
def test_there_is_a_reward_for_each_unit_that_is_played(kind) -> None:
    runs = run(kind)
    assert runs.rewards.shape == runs.actions.shape
    assert (np.isnan(runs.rewards) == (runs.actions < 0)).all()
    assert run(kind, keep="final").rewards is None
    assert (run(kind, keep=[3]).rewards[:, 0] == runs.rewards[:, 3])[~np.isnan(runs.rewards[:, 3])].all()


def test_rewards_of_late_worlds_and_of_components_are_the_same_as_those_of_others() -> None:
    loop = run("arms")
    env = CASES["MonUCB"][1]
    assert (loop.to_frame()["reward"].to_numpy() == loop.rewards.ravel()).all()

    class Follow(Turns):
        def propose(self) -> int:
            return int(loop.actions[0][self.seen])

    asked = ar.simulate(Follow(), env, "ignorant", horizon=12, replications=1, seed=3)
    assert (asked.rewards == loop.rewards[:1]).all()


def test_settings_say_what_was_simulated() -> None:
    settings = run("an own world", start="full-start").settings
    assert settings["base"].startswith("MonUCB(n_arms=3, horizon=20, bonus=")
    assert settings["env"].startswith("Coins Coins(0.2, 0.5, 0.8) ")
    assert (settings["start"], settings["history"], settings["seed"]) == ("full-start", "20", 3)
    assert settings["artreplay"] == ar.__version__
    assert settings["numpy"] == np.__version__


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"seed": 4}, "joined runs must have the same seed, got 3 and 4"),
        ({"history": 21}, "joined runs must have the same history, got 20 and 21"),
        ({"start": "ignorant"}, "joined runs must have the same start, got artificial-replay and ignorant"),
        ({"base": ar.MonUCB(4, 20, bonus=ar.bonus.practical(0.4))}, "joined runs must have the same base, got MonUCB"),
        (
            {"env": ar.environments.KArmed(4, means=[0.1, 0.2, 0.3, 0.4])},
            "joined runs must have the same env, got KArmed",
        ),
        ({"horizon": 11}, "joined runs must have the same horizon, got 12 and 11"),
        ({"keep": [1, 2]}, "joined runs must have kept the same rounds, got 12 of 12 and 2 of 12"),
        ({"first_replication": 6}, "the replications of joined runs must be adjacent, got 0..4 and 6..10"),
        ({"first_replication": 4}, "the replications of joined runs must be adjacent, got 0..4 and 4..8"),
    ],
)
def test_runs_that_do_not_go_on_are_not_joined(change, sentence) -> None:
    base, env = KINDS["arms"]
    settings = {"base": base, "env": env, "history": 20, "horizon": 12, "replications": 5, "seed": 3}
    with ar.compiling.using("interpreted"):
        other = ar.simulate(**(settings | {"first_replication": 5} | change))
    with pytest.raises(InvalidParameter, match=re.escape(sentence)):
        ar.Runs.join(run("arms"), other)


class Box(NamedTuple):
    """Part of an algorithm of the user's own."""

    values: Any


def test_things_made_in_another_way_are_described_in_another_way() -> None:
    from artreplay.engine.descriptions import description_of

    def bonus_of(scale: float) -> Any:
        return lambda n: scale / n

    def other(n: float) -> float:
        return 1.0 / n + 1.0

    env = ar.environments.KArmed
    pairs = [
        (bonus_of(1.0), bonus_of(2.0)),
        (bonus_of(1.0), other),
        (ar.MonUCB(3, 9, bonus=bonus_of(1.0)), ar.MonUCB(3, 9, bonus=other)),
        (env(3, means=[0.1, 0.2, 0.3]), env(3, means=[0.1, 0.2, 0.4])),
        (env(3), env(3, log="random")),
        (ar.environments.Linear(40, 4), ar.environments.Linear(40, 4, seed=1)),
        (ar.History([0, 1], [0, 1]), ar.History([0, 1], [1, 1])),
        (ar.Totals([0], [3], [1]), ar.Totals([0], [3], [2])),
        (Turns(2), Turns(3)),
        (Turns(3), Box(3)),
        (Box(np.zeros(99)), Box(np.ones(99))),
        (Box(np.random.default_rng(0)), Box(np.random.default_rng(1))),
        (Box({"a", "b"}), Box({"a", "c"})),
        (Box({"a": 1}), Box({"a": 2})),
        (Box(list(range(99))), Box(list(range(98)))),
        (Turns, Coins),
    ]
    for one, another in pairs:
        assert description_of(one) != description_of(another)
        assert description_of(one) == description_of(one)
    assert description_of(bonus_of(1.0)) == description_of(bonus_of(1.0))
    ring: list[Any] = []
    ring.append(ring)
    assert "..." in description_of(ring)


def test_comparisons_of_loaded_runs_are_checked_too(tmp_path) -> None:
    for name, start in (("replay", "artificial-replay"), ("no log", "ignorant")):
        run("arms", start=start).save(tmp_path / name)
    loaded = {name: ar.Runs.load(tmp_path / name) for name in ("replay", "no log")}
    assert "regret" in str(ar.Comparison(loaded, "no log"))
    for change in ({"seed": 4}, {"first_replication": 5}):
        with pytest.raises(InvalidParameter, match=f"{next(iter(change))} must be the same for all policies, got"):
            ar.Comparison({**loaded, "other": run("arms", **change)}, "no log")
    with ar.compiling.using("interpreted"):
        other = ar.simulate(ar.UCB1(4), ar.environments.KArmed(4, log="random"), "ignorant", 0, 12, 5, seed=3)
    with pytest.raises(InvalidParameter, match='env must be the same for all policies, got "KArmed'):
        ar.Comparison({**loaded, "other": other}, "no log")


def changed(path: Any, change: Any) -> None:
    """Write the file again with other metadata."""
    table = pq.read_table(path)
    document = json.loads(table.schema.metadata[b"artreplay runs"])
    change(document)
    pq.write_table(table.replace_schema_metadata({b"artreplay runs": json.dumps(document).encode()}), path)


def test_files_that_are_not_whole_are_refused(tmp_path) -> None:
    path = tmp_path / "runs.parquet"
    runs = run("arms")
    for change, sentence in (
        (lambda document: document.update(format=99), "has version 99 of the file of runs, and this artreplay reads 1"),
        (lambda document: document.pop("format"), "is not a file that Runs.save wrote"),
        (lambda document: document["shapes"].update(regret=[11]), "is not a whole file of runs: ValueError"),
        (lambda document: document["shapes"].update(other=[1]), "is not a whole file of runs: KeyError"),
        (lambda document: document["shapes"].pop("used"), "is not a whole file of runs: "),
        (lambda document: document.pop("rounds"), "is not a whole file of runs: "),
        (lambda document: document.pop("horizon"), "is not a whole file of runs: "),
        (lambda document: document.update(surprise=1), "is not a whole file of runs: "),
    ):
        runs.save(path)
        changed(path, change)
        with pytest.raises(InvalidFile, match=re.escape(f"{path} {sentence}")):
            ar.Runs.load(path)
    pq.write_table(pa.table({"regret": [1.0]}), path)
    with pytest.raises(InvalidFile, match="is not a file that"):
        ar.Runs.load(path)
    path.write_bytes(b"PAR1 and nothing else")
    with pytest.raises(InvalidFile, match="is not a Parquet file"):
        ar.Runs.load(path)
    with pytest.raises(InvalidFile, match="cannot be read"):
        ar.Runs.load(tmp_path / "missing")


def test_damage_to_a_file_is_noticed(tmp_path) -> None:
    path, runs = tmp_path / "runs.parquet", run("arms")
    runs.save(path)
    whole = path.read_bytes()
    for at in range(4, len(whole), 16):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x80]) + whole[at + 1 :])
        try:
            again = ar.Runs.load(path)
        except InvalidFile:
            continue
        for name in PER_REPLICATION:
            np.testing.assert_array_equal(getattr(again, name), getattr(runs, name))


def test_a_list_of_runs_is_not_joined() -> None:
    parts: Any = [run("arms"), run("arms", first_replication=5)]
    with pytest.raises(InvalidParameter, match=r"join needs runs one by one, as in .*\(first, second\), got list$"):
        ar.Runs.join(parts)


def test_what_has_a_row_for_each_replication_is_listed() -> None:
    runs = run("allocations")
    arrays = {each.name for each in dataclasses.fields(runs) if isinstance(getattr(runs, each.name), np.ndarray)}
    assert arrays | {"used_by_arm", "stopped", "recommended", "simple_regret"} == set(PER_REPLICATION)
