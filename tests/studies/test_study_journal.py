"""The journal of a study: what is in its entries, what a reader takes from it, and that damage is noticed."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from study_kit import COLOURS, LOG, Clock, colours, timed

import artreplay as ar
from artreplay.errors import ArtReplayError, InvalidFile
from artreplay.studies import study_state
from artreplay.studies.study_journal import Entry, Journal, checksum


def whole(study: ar.Study) -> str:
    """Everything that a study knows."""
    return repr([study.open_decisions(), study.arms(), study.cells(), study.facts(), study.rounds])


def some_life(study: ar.Study, rng: random.Random, turns: int = 12) -> None:
    """Decisions, rewards, observations, and decisions that are taken out again."""
    for _ in range(turns):
        made = study.decide(count=rng.randint(1, 3))
        for decision in made:
            match rng.randrange(4):
                case 0:
                    study.reward(decision.id, rng.choice([0.0, 1.0]))
                case 1:
                    study.reward(decision.id, 1.0)
                    study.void(decision.id)
                case 2:
                    study.void(decision.id)
        study.observe(rng.choice(COLOURS), rng.choice([0.0, 0.25]))


def test_numbers_of_single_arms_are_columns_and_lists_are_json():
    with colours() as study:
        decision = study.decide()
        study.reward(decision.id, 1.0)
        made, told = study._journal.read(kinds=("decision", "reward"))
        number = COLOURS.index(decision.action)
        assert (made.decision, made.id, made.unit, made.body) == (1, decision.id, number, None)
        assert (told.decision, told.unit, told.reward, told.body) == (1, number, 1.0, None)
    with ar.Study.create(":memory:", ar.TopUCB(arms=["a", "b", "c"], budget=2, horizon=9), wait=None) as study:
        study.reward(study.decide().id, [1.0, 0.0])
        (told,) = study._journal.read(kinds=("reward",))
        assert (told.unit, told.reward, told.body) == (None, None, '{"action": ["a", "b"], "rewards": [1.0, 0.0]}')


@pytest.mark.parametrize("field", Entry._fields[:-1])
def test_a_checksum_is_of_every_column(field):
    entry = Entry(1, "reward", 2.0, 3, "4", "5", 6, 0.5, 0.25, 8.0, "9", b"10")
    others: dict[type, Any] = {int: 99, str: "99", float: 99.0, bytes: b"99"}
    assert checksum(entry._replace(**{field: others[type(getattr(entry, field))]})) != checksum(entry)
    if field not in ("seq", "kind", "written"):
        assert checksum(entry._replace(**{field: None})) != checksum(entry)


CHANGES = {
    "a reward": "UPDATE entry SET reward = 0.5 WHERE kind = 'reward'",
    "an arm": "UPDATE entry SET unit = 1 - unit WHERE kind = 'reward'",
    "a number that is a text": "UPDATE entry SET written = 'x' WHERE kind = 'reward'",
    "the settings": """UPDATE entry SET body = replace(body, '"horizon": 1000', '"horizon": 1001') WHERE seq = 1""",
    "a row of the log": "UPDATE entry SET data = zeroblob(10) WHERE kind = 'rows'",
}


@pytest.mark.parametrize("change", CHANGES)
def test_an_entry_that_was_changed_is_noticed(change, tmp_path):
    with colours(tmp_path / "s") as study:
        study.reward(study.decide().id, 1.0)
        study._journal.run(CHANGES[change])
        study._journal.run("DELETE FROM snapshot")
        study._journal.commit()
        study._state = None  # closing would leave a snapshot
    with (
        pytest.raises(InvalidFile, match=r"s is damaged: entry \d of its journal has changed"),
        ar.Study.open(tmp_path / "s") as study,
    ):
        study.decide()


@pytest.mark.parametrize("flips", [25, pytest.param(300, marks=pytest.mark.long)])
def test_a_flipped_bit_is_an_error_or_changes_nothing(flips, tmp_path):
    place, rng = tmp_path / "s", random.Random(flips)
    with colours(place, clock=Clock()) as study:
        some_life(study, rng)
        expected, listed = whole(study), study.decisions()
    good = place.read_bytes()
    noticed = 0
    for _ in range(flips):
        bad = bytearray(good)
        bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
        for kept in tmp_path.iterdir():
            kept.unlink()
        place.write_bytes(bad)
        try:
            with ar.Study.open(place, clock=Clock(), read_only=True) as study:
                assert whole(study) == expected
                if study.decisions() != listed:  # lists are found by an index, which only a check compares
                    with pytest.raises(ArtReplayError, match=r"is damaged|is malformed"):
                        study.check()
        except ArtReplayError:
            noticed += 1
    assert 0 < noticed < flips


def void_last(study: ar.Study) -> None:
    study.void(study.decisions()[-1].id)


LATER: list[Callable[[ar.Study], object]] = [
    lambda study: study.reward(study.decide().id, 1.0),
    void_last,
    lambda study: study.add_arm("green"),
    lambda study: study.decide(count=2),
    lambda study: study.retire_arm("red"),
    lambda study: study.set_horizon(50),
    lambda study: study.extend(ar.History(["red", "blue", "blue", "green", "blue"], [0.0, 1.0, 0.0, 1.0, 1.0])),
    lambda study: study.change(note={"of": "mine"}),
]


def test_who_only_looks_sees_what_the_owner_has_done_since(tmp_path):
    with colours(tmp_path / "s") as study, ar.Study.open(tmp_path / "s", read_only=True) as look:
        for change in LATER:
            before = look._state
            change(study)
            assert whole(look) == whole(study)
            assert look._state is before
        assert (look.note, look.base.horizon) == ({"of": "mine"}, 50)


@pytest.mark.parametrize("kinds", [(), ("state",), ("policy",), ("state", "policy")])
def test_snapshots_only_save_time(kinds, tmp_path, monkeypatch):
    monkeypatch.setattr(study_state, "ENTRIES_BETWEEN_SNAPSHOTS", 7)
    monkeypatch.setattr(study_state, "MANY_OPEN", 2)
    rng = random.Random(str(kinds))
    with colours(tmp_path / "s") as study:
        some_life(study, rng, 8)
        expected = whole(study)
        kept = dict(study._journal.query("SELECT kind, COUNT(*) FROM snapshot GROUP BY kind"))
        assert kept["state"] == 2
        for kind in kinds:
            study._journal.drop_snapshots(kind)
        study._journal.commit()
        study._state = None
    with ar.Study.open(tmp_path / "s") as study:
        assert whole(study) == expected
        assert [decision.action for decision in study.decide(count=3)]


def test_a_snapshot_is_written_when_the_calls_that_made_it_due_are_durable(tmp_path, monkeypatch):
    monkeypatch.setattr(study_state, "ENTRIES_BETWEEN_SNAPSHOTS", 3)
    keep_snapshot, durable = Journal.keep_snapshot, []

    def keep(journal, kind, seq, saved):
        durable.append(journal.in_transaction is (kind == "state"))  # the policy comes first, and opens a transaction
        if len(durable) > 2:
            raise OSError("the disk is full")
        keep_snapshot(journal, kind, seq, saved)

    monkeypatch.setattr(Journal, "keep_snapshot", keep)
    with colours(tmp_path / "s") as study:
        made = [study.decide() for _ in range(12)]  # a snapshot that fails is no failure of a call
        assert [one.id for one in study.decisions()] == [one.id for one in made]
    assert len(durable) > 2
    assert all(durable)


def test_windows_and_late_rewards_are_entries(tmp_path):
    clock = Clock()
    with timed(clock, place=tmp_path / "s", close="window") as study:
        study.reward(study.decide().id, 1.0)
    with ar.Study.open(tmp_path / "s", clock=clock) as study:
        assert sum(arm.online for arm in study.arms()) == 0
        clock.now += 3600
        study.decide()
        assert sum(arm.online for arm in study.arms()) == 1
        kinds = [entry.kind for entry in study._journal.read()]
        assert kinds == ["settings", "arms", "rows", "log", "decision", "part", "reward", "decision"]


def test_a_study_in_memory_outlives_a_failure_of_several_things_together():
    def fails(study: ar.Study) -> None:
        study.decide(count=2)
        raise KeyboardInterrupt

    with colours() as study:
        first = study.decide()
        with pytest.raises(KeyboardInterrupt):
            study.together(fails)
        assert study.decisions() == [first]
        assert study.decide().number == 2


def test_rows_of_a_log_are_kept_in_parts(tmp_path, monkeypatch):
    monkeypatch.setattr("artreplay.studies.study_log.ROWS_IN_ENTRY", 3)
    with colours(tmp_path / "s") as study:
        study.extend(
            ar.History([*(LOG.unit(row) for row in range(4)), *["blue"] * 4], [0.0, 1.0, 0.0, 1.0, *[1.0] * 4])
        )
        assert [entry.seq for entry in study._journal.read(kinds=("rows",))] == [3, 4, 6, 7]
        logged = [arm.logged for arm in study.arms()]
    with ar.Study.open(Path(tmp_path / "s")) as study:
        assert [arm.logged for arm in study.arms()] == logged == [1, 6]
