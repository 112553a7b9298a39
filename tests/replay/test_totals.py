"""Totals in place of a log: one count and one sum per arm, from Python, files and databases."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from pyarrow.csv import write_csv
from pyarrow.parquet import write_table

import artreplay as ar
from artreplay.compiling import state_of
from artreplay.errors import ChangedHistory, InvalidHistory, InvalidParameter
from artreplay.replay.reader import Reading

ARMS = ["red", "green", "blue"]
TABLE = pa.table({"item": ARMS, "shown": [1000, 500, 0], "clicked": [31, 22, 0]})
BASES = {
    "KLUCB": lambda: ar.KLUCB(4, horizon=200),
    "MonUCB": lambda: ar.MonUCB(4, 30, bonus=ar.bonus.practical(0.5)),
    "MonUCB, callable": lambda: ar.MonUCB(4, 30, bonus=lambda n: 0.4 / n**0.5),
    "MonUCB, scaled": lambda: ar.MonUCB(4, 30, bonus=ar.bonus.practical(0.5), reward_range=(-1, 2)),
    "TopUCB": lambda: ar.TopUCB(4, 2, 30, bonus=ar.bonus.practical(0.5)),
    "UCB1": lambda: ar.UCB1(4),
    "Thompson": lambda: ar.ThompsonSampling(4, seed=3),
    "IDS": lambda: ar.IDS(4),
    "RandomChoice": lambda: ar.RandomChoice(4, seed=1),
}


def random_log(rng: random.Random, rewards: tuple[float, ...] = (0.0, 0.1, 0.7, 1.0)) -> ar.History:
    rows = rng.randint(0, 60)
    return ar.History([rng.randrange(4) for _ in range(rows)], [rng.choice(rewards) for _ in range(rows)])


def told(action: Any, rng: random.Random) -> Any:
    return [rng.choice((0.0, 1.0)) for _ in action] if isinstance(action, list) else rng.choice((0.0, 1.0))


def loaded(base: Any, log: ar.History) -> ar.Ignorant:
    """A policy over a base that took each arm's samples in at once, by hand."""
    arms = np.array([log.unit(row) for row in range(len(log))], np.int64)
    counts, sums = np.bincount(arms, minlength=4), np.zeros(4)
    np.add.at(sums, arms, log.rewards)  # in the order of the log
    base.make_room(int(counts.max(initial=0)))
    for arm, total in enumerate(base.scaled_sums(sums, counts).tolist()):
        if counts[arm] > 0:
            base.component.load(arm, int(counts[arm]), total)
    return ar.Ignorant(base)


@pytest.mark.parametrize("name", BASES)
def test_totals_are_full_start_in_one_batch_whatever_the_base(name, tmp_path):
    """Also when the policy goes through a file, at any moment."""
    rng = random.Random(name)
    again = {"base": BASES[name]()} if "callable" in name else {}
    with ar.compiling.using("interpreted"):
        for _ in range(6):
            log = random_log(rng)
            totals = ar.Totals.of(log)
            policy, batch = ar.ArtificialReplay(BASES[name](), totals), loaded(BASES[name](), log)
            assert len(totals) == len(log) == policy.unused
            for _ in range(8):
                action = batch.ask()
                if rng.random() < 0.2:
                    policy.save(tmp_path / "policy")
                    policy = ar.load(tmp_path / "policy", totals, **again)
                assert policy.ask() == action
                reward = told(action, rng)
                policy.tell(action, reward)
                batch.tell(action, reward)
            assert policy.used + policy.unused == len(log)
            assert policy.used == sum(cell.used for cell in policy.cells()) == sum(policy.used_by_cell().values())


def test_rows_that_are_appended_are_loaded_before_the_next_decision():
    rng = random.Random(2)
    with ar.compiling.using("interpreted"):
        for _ in range(40):
            arms = [rng.randrange(3) for _ in range(8)]
            counts = [rng.randint(0, 5) for _ in arms]
            sums = [rng.randint(0, count) for count in counts]
            make = lambda: ar.KLUCB(3, horizon=100)  # noqa: E731
            rows = rng.randint(0, 8)
            first = ar.Totals(arms, counts, sums, until=rows)
            replay, full = (policy(make(), first) for policy in (ar.ArtificialReplay, ar.FullStart))
            for _ in range(10):
                action = full.ask()
                assert replay.ask() == action
                for policy in (replay, full):
                    policy.tell(action, 1.0)
                if rng.random() < 0.3 and rows < 8:
                    rows = rng.randint(rows, 8)
                    for policy in (replay, full):
                        policy.extend(ar.Totals(arms, counts, sums, until=rows))
            unread = set(replay.unused_rows())
            assert sum(counts[row] for row in unread) == replay.unused
            assert all(row < rows for row in unread)


@pytest.mark.long
def test_the_two_speeds_agree():
    totals = ar.Totals([0, 1, 2, 3], [1000, 10, 300, 5], [10, 2, 100.5, 0])
    runs = []
    for mode in ("interpreted", "compiled"):
        with ar.compiling.using(mode):
            policy = ar.ArtificialReplay(BASES["MonUCB, callable"](), totals)
            runs.append(([(policy.ask(), policy.tell(policy.ask(), 0.0)) for _ in range(6)], policy.used))
            state = state_of(policy.base.component)
            runs[-1] += ({name: array.tolist() for name, array in state.items()},)
    assert runs[0] == runs[1]


@pytest.mark.parametrize("start", ["artificial-replay", "full-start", "ignorant"])
@pytest.mark.parametrize("name", ["KLUCB", "UCB1", "Thompson"])
def test_simulations_take_totals(name, start):
    totals = ar.Totals([0, 1, 2, 3], [30, 10, 20, 0], [20, 2, 5, 0])
    env = ar.environments.KArmed(4, means=[0.6, 0.2, 0.3, 0.1])
    with ar.compiling.using("interpreted"):
        runs = ar.simulate(BASES[name](), env, start, totals, horizon=10, replications=2)
        full = ar.simulate(BASES[name](), env, "full-start", totals, horizon=10, replications=2)
    if start != "ignorant":
        assert runs.actions.tolist() == full.actions.tolist()
        assert full.used[:, 0].tolist() == [60, 60]


def test_totals_count_what_was_read_in_their_own_unit():
    policy = ar.FullStart(ar.KLUCB(arms=ARMS, horizon=5000), ar.Totals.from_frame(TABLE, "item", "shown", "clicked"))
    policy.ask()
    assert policy.reading == Reading(used=1500, rows=3)
    assert repr(policy.history) == "<Totals of 1500 samples on 3 arms>"


def test_totals_come_from_files_and_queries(tmp_path):
    columns = {"unit": "item", "count": "shown", "sum": "clicked"}
    write_csv(TABLE, tmp_path / "totals.csv")
    write_table(TABLE, tmp_path / "totals.parquet")
    with duckdb.connect(str(tmp_path / "log.duckdb")) as connection:
        connection.execute("CREATE TABLE log AS SELECT 'red' AS item, 1.0 AS click UNION ALL SELECT 'blue', 0.5")
    for source in (TABLE, TABLE.to_pandas(), tmp_path / "totals.csv", tmp_path / "totals.parquet"):
        totals = ar.open_history(source, **columns)
        assert (totals.labels, totals.counts.tolist(), totals.sums.tolist()) == (ARMS, [1000, 500, 0], [31, 22, 0])
    query = "SELECT item, count(*) AS shown, sum(click) AS clicked FROM log GROUP BY item ORDER BY item"
    totals = ar.open_history(tmp_path / "log.duckdb", table=query, **columns)
    assert (totals.labels, totals.sums.tolist()) == (["blue", "red"], [0.5, 1.0])


def totals(**other: Any) -> ar.Totals:
    return ar.Totals(**{"arms": ["red", "blue"], "counts": [10, 5], "sums": [3, 1]} | other)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: totals(counts=[10, 2.5]), "count in row 1 is 2.5, expected a whole number of at least 0"),
        (lambda: totals(counts=[-1, 5]), "count in row 0 is -1, expected a whole number of at least 0"),
        (lambda: totals(counts=[10, float("nan")]), "count in row 1 is nan, expected a whole number"),
        (lambda: totals(counts=[10, 1e300]), "count in row 1 is 1e\\+300, expected a whole number"),
        (lambda: totals(sums=[float("inf"), 1]), "sum in row 0 is inf, expected a finite number"),
        (lambda: totals(counts=[0, 5]), "sum in row 0 is 3, expected 0, because the count is 0"),
        (lambda: totals(sums=[3]), "arms, counts and sums must be equally long, got 2, 2 and 1"),
        (lambda: totals(arms=[[0.5], [0.2]]), "totals must be of arms, got points"),
        (lambda: ar.ArtificialReplay(ar.KLUCB(arms=["red", "blue"], horizon=99), totals(sums=[3, 6])),
         r"sum in row 1 is 6, expected a sum of 5 rewards, each a number in \[0, 1\]"),
        (lambda: ar.FullStart(ar.KLUCB(arms=["red"], horizon=99), totals()), "label 'blue' in row 1 is not an arm"),
        (lambda: ar.ArtificialReplay(ar.LinUCB([[1, 0], [0, 1]], 9, arms=["red", "blue"]), totals()),
         "totals are for algorithms over arms that keep one count and one sum"),
        (lambda: ar.ArtificialReplay(ar.TreeUCB(1, 9), totals()), "totals are for algorithms over arms"),
        (lambda: ar.open_history(TABLE, "item", count="shown"), "sum must name a column of totals, got None"),
        (lambda: ar.open_history(TABLE, "item", "clicked", count="shown", sum="clicked"), "left out for a table"),
        (lambda: ar.open_history(TABLE, "item", count="shown", sum="shown"), "must be different columns"),
        (lambda: ar.open_history(TABLE, "item", count="shown", sum="clicks"), "sum must name one column, got 'clicks'"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused_in_a_sentence(make, sentence):
    with pytest.raises((InvalidHistory, InvalidParameter), match=sentence):
        make()


def test_totals_that_changed_are_refused_and_nothing_changes():
    policy = ar.ArtificialReplay(ar.KLUCB(arms=["red", "blue"], horizon=99), totals())
    action = policy.ask()
    with pytest.raises(ChangedHistory, match="row 1 has changed"):
        policy.extend(totals(counts=[10, 6]))
    assert policy.ask() == action
    policy.extend(totals(arms=["red", "blue", "blue"], counts=[10, 5, 4], sums=[3, 1, 0]))
    assert policy.used + policy.unused == 19


def test_labels_that_are_no_arms_are_skipped_with_their_samples():
    policy = ar.FullStart(ar.KLUCB(arms=["red"], horizon=99), totals(), unknown="skip")
    policy.ask()
    assert (policy.used, policy.unused, policy.skipped) == (10, 0, 5)


def test_the_totals_of_a_log_that_was_laid_out_are_those_in_memory(tmp_path: Path):
    log = pa.table({"arm": [0, 1, 0, 1, 1], "click": [0.1, 0.2, 0.3, 0.0, 1.0]})
    ar.index_history(log, tmp_path / "log", unit="arm", reward="click")
    store = ar.open_history(tmp_path / "log")
    here, there = (ar.Totals.of(one) for one in (ar.open_history(log, "arm", "click"), store))
    assert (here.labels, here.counts.tolist(), here.sums.tolist()) == (
        there.labels,
        there.counts.tolist(),
        there.sums.tolist(),
    )


@pytest.mark.parametrize("start", [ar.FullStart, ar.ArtificialReplay])
@pytest.mark.parametrize("first", ["ask", "tell"])
def test_all_totals_are_loaded_at_the_first_call_and_new_ones_at_the_next(start, first):
    policy = start(ar.KLUCB(arms=["red", "blue"], horizon=99), totals())
    assert (policy.used, policy.unused, policy.unused_rows()) == (0, 15, [0, 1])
    if first == "ask":
        policy.ask()
    policy.tell("red", 1.0)
    assert (policy.used, policy.unused, policy.unused_rows()) == (15, 0, [])
    policy.extend(totals(arms=["red", "blue", "red"], counts=[10, 5, 4], sums=[3, 1, 2]))
    assert (policy.used, policy.unused, policy.unused_rows()) == (15, 4, [2])
    policy.ask()
    assert (policy.used, policy.unused, policy.unused_rows()) == (19, 0, [])
    assert [(cell.count, cell.used) for cell in policy.cells()] == [(15, 14), (5, 5)]


@pytest.mark.parametrize("start", [ar.FullStart, ar.ArtificialReplay])
def test_a_log_of_totals_goes_on_with_totals_alone(start, tmp_path):
    rows = ar.History(["red", "blue"], [1.0, 0.0])
    for log, other, kinds in ((totals(), rows, ("totals", "rows")), (rows, totals(), ("rows", "totals"))):
        policy = start(ar.KLUCB(arms=["red", "blue"], horizon=99), log)
        sentence = "a log of {} can only go on with {}, got one of {}".format(kinds[0], *kinds)
        with pytest.raises(InvalidHistory, match=sentence):
            policy.extend(other)
        policy.save(tmp_path / "policy")
        with pytest.raises(InvalidHistory, match=sentence):
            ar.load(tmp_path / "policy", other)
        assert policy.ask() == ar.load(tmp_path / "policy", log).ask()
