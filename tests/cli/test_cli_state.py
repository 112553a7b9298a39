"""A policy in a file between calls: recommend, tell, recommend."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import artreplay as ar
from command_kit import ARMS, COLUMNS, OPTIONS, Refused, Run, samples, write_csv

KEPT = ("--state", "state.ar")


def note_of(path: str) -> dict[str, object]:
    with ar.Study.open(path, read_only=True) as study:
        return study.note


def reward_of(arm: object, round_: int) -> int:
    return (round_ * 3 + len(str(arm))) % 4 // 2


@pytest.mark.long
@pytest.mark.parametrize("labels", [ARMS, (1, 2, 10), ("7", "x", "07")])
@pytest.mark.parametrize("kind", ["artificial-replay", "full-start"])
def test_the_same_decisions_as_in_python(run: Run, folder: Path, labels: tuple[object, ...], kind: str) -> None:
    rows = samples(120, labels)
    log = write_csv(folder / "log.csv", rows)
    assert run("recommend", log, *OPTIONS, "--policy", kind, *KEPT).code == 0
    with ar.Study.open("state.ar", read_only=True) as study:
        base = type(study.base)(**study.base.parameters())
    arms = list(base.arms)
    typed = {str(arm): arm for arm in arms}
    history = ar.History([typed[str(arm)] for arm, _ in rows], [reward for _, reward in rows])
    make = ar.FullStart if kind == "full-start" else ar.ArtificialReplay
    policy = make(base, history)
    for round_ in range(15):
        answer = run("recommend", log, *KEPT, "--json").json
        action = policy.ask()
        assert (answer["action"], answer["rounds"], answer["log"]["used"]) == (action, round_, policy.used)
        reward = reward_of(action, round_)
        told = run("tell", *KEPT, action, reward)
        assert told.out == f"round {round_ + 1}: {action} gave {reward}\n"
        policy.tell(action, reward)


def test_the_same_call_twice_gives_the_same_action(run: Run, log: Path) -> None:
    for algorithm in ("thompson", "random"):
        first, again = (
            run("recommend", log, *COLUMNS, "--algorithm", algorithm, "--state", algorithm) for _ in range(2)
        )
        assert first.code == again.code == 0
        assert first.out == again.out


def test_options_in_the_state_file_need_not_be_repeated(run: Run, log: Path) -> None:
    once = run("recommend", log, *OPTIONS, "--until", 50, *KEPT, "--json").json
    assert run("recommend", log, *KEPT, "--json").json == once
    assert run("recommend", log, *OPTIONS, "--algorithm", "kl-ucb", "--arms", "[bold] blue,grün,red", *KEPT).code == 0
    noted = {"unit": "arm", "reward": "click", "until": 50, "log": str(log.absolute())}
    assert note_of("state.ar") == noted
    run("tell", *KEPT, "red", 1)
    assert note_of("state.ar") == noted
    assert run("recommend", log, *KEPT, "--until", 60, "--json").json["log"]["samples"] == 60


@pytest.mark.parametrize(
    ("option", "value", "held"),
    [
        ("--algorithm", "ucb1", "kl-ucb"),
        ("--horizon", "99", "100"),
        ("--arms", "red,grün", "[bold] blue, grün, red"),
        ("--seed", "1", "none"),
        ("--policy", "full-start", "artificial-replay"),
    ],
)
def test_options_that_contradict_the_state_are_refused(
    run: Run, refused: Refused, log: Path, option: str, value: str, held: str
) -> None:
    run("recommend", log, *OPTIONS, *KEPT)
    before = Path("state.ar").read_bytes()
    sentence = refused("recommend", log, option, value, *KEPT)
    assert f"state.ar was made with {option.removeprefix('--')} {held}, got " in sentence
    assert Path("state.ar").read_bytes() == before


def test_another_reward_range_is_refused(run: Run, refused: Refused, log: Path) -> None:
    run("recommend", log, *OPTIONS, *KEPT)
    sentence = refused("recommend", log, "--reward-range", "0", "2", *KEPT)
    assert "made with reward range 0, 1, got 0, 2" in sentence


@pytest.mark.parametrize("kind", ["artificial-replay", "full-start"])
def test_appended_rows_join(run: Run, folder: Path, kind: str) -> None:
    rows = samples(90)
    log = write_csv(folder / "log.csv", rows[:60])
    action = run("recommend", log, *OPTIONS, "--policy", kind, *KEPT, "--json").json["action"]
    write_csv(log, rows)
    assert run("recommend", log, *KEPT, "--json").json["action"] == action
    assert run("tell", *KEPT, action, 0).code == 0
    answer = run("recommend", log, *KEPT, "--json").json
    assert answer["log"]["samples"] == 90
    if kind == "full-start":
        assert answer["log"]["used"] == 90


def test_a_text_label_appended_to_numbers(run: Run, refused: Refused, folder: Path) -> None:
    rows: list[tuple[object, int]] = [(1, 1), (2, 0), (10, 1)]
    log = write_csv(folder / "log.csv", rows)
    run("recommend", log, *OPTIONS, *KEPT)
    write_csv(log, [*rows, ("new", 1)])
    assert "label 'new' in row 3 is not an arm" in refused("recommend", log, *KEPT)
    answer = run("recommend", log, *KEPT, "--unknown", "skip", "--json").json
    assert answer["log"] == {"samples": 3, "used": answer["log"]["used"], "skipped": 1}


def test_a_log_that_changed_is_refused(run: Run, refused: Refused, folder: Path) -> None:
    rows = samples(50)
    log = write_csv(folder / "log.csv", rows)
    run("recommend", log, *OPTIONS, *KEPT)
    rows[17] = (rows[17][0], 1 - rows[17][1])
    write_csv(log, rows)
    sentence = refused("recommend", log, *KEPT)
    assert "log.csv" in sentence
    assert "row 17 has changed" in sentence
    write_csv(log, samples(49))
    assert "the log has 49 rows and had 50" in refused("recommend", log, *KEPT)


def test_tell_does_not_need_the_log(run: Run, log: Path) -> None:
    action = run("recommend", log, *OPTIONS, *KEPT, "--json").json["action"]
    content = log.read_bytes()
    log.unlink()
    assert run("tell", *KEPT, action, "0.5").out == f"round 1: {action} gave 0.5\n"
    log.write_bytes(content)
    answer = run("recommend", log, *KEPT)
    assert "1 online round told so far" in answer.out


def test_what_was_not_recommended_is_told_behind_the_rows_of_the_log(run: Run, log: Path) -> None:
    action = run("recommend", log, *OPTIONS, *KEPT, "--json").json["action"]
    other = next(arm for arm in ARMS if arm != action)
    python = ar.ArtificialReplay(
        ar.MonUCB(arms=sorted(ARMS), horizon=100), ar.open_history(log, unit="arm", reward="click")
    )
    python.ask()
    moved = log.rename(log.with_name("moved.csv"))
    assert run("tell", *KEPT, other, 1).out == f"round 1: {other} gave 1\n"
    python.tell(other, 1)
    assert run("recommend", moved, *KEPT, "--json").json["action"] == python.ask()


@pytest.mark.long
def test_tells_at_the_same_time_lose_nothing(run: Run, log: Path) -> None:
    run("recommend", log, *OPTIONS, *KEPT)
    command = [sys.executable, "-m", "artreplay", "tell", *KEPT, "red", "1"]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    said = [process.communicate()[0] for process in processes]
    assert sorted(said) == [f"round {round_}: red gave 1\n" for round_ in range(1, 5)]


def test_tell_takes_negative_rewards(run: Run, log: Path) -> None:
    run("recommend", log, *OPTIONS, "--reward-range", "-1", "1", *KEPT)
    assert run("tell", *KEPT, "red", "-1").out == "round 1: red gave -1\n"
    assert run("tell", "red", "-.5", *KEPT).out == "round 2: red gave -0.5\n"


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (("pink", 1), "'pink' is not an arm; the arms are '[bold] blue', 'grün', 'red'"),
        (("red", "much"), "reward is 'much', expected a number"),
        (("red", "nan"), "reward is nan"),
        (("red", 2), "reward is 2.0, expected a number in [0, 1]"),
    ],
)
def test_tell_refuses(run: Run, refused: Refused, log: Path, outcome: tuple[object, ...], words: str) -> None:
    run("recommend", log, *OPTIONS, *KEPT)
    before = Path("state.ar").read_bytes()
    assert words in refused("tell", *KEPT, *outcome)
    assert Path("state.ar").read_bytes() == before


def test_labels_that_read_the_same(refused: Refused, folder: Path) -> None:
    ar.Study.create("state.ar", ar.MonUCB(arms=[1, "1"], horizon=10), wait=None).close()
    assert "could be any of the arms 1, '1'" in refused("tell", *KEPT, 1, 1)


def test_a_policy_file_is_no_state_file(refused: Refused, log: Path) -> None:
    ar.Ignorant(ar.MonUCB(2, 10)).save("state.ar")
    assert "state.ar cannot be read: file is not a database" in refused("recommend", log, *KEPT)


@pytest.mark.parametrize("size", [0, 10, 300])
def test_a_truncated_state_file(run: Run, refused: Refused, log: Path, size: int) -> None:
    run("recommend", log, *OPTIONS, *KEPT)
    state = Path("state.ar")
    state.write_bytes(state.read_bytes()[:size])
    what = "state.ar cannot be read: " if size else "state.ar is not a study"
    assert what in refused("recommend", log, *KEPT)
    assert what in refused("tell", *KEPT, "red", 1)


def test_no_state_file(refused: Refused) -> None:
    assert refused("tell", *KEPT, "red", 1) == "state.ar does not exist"


def test_a_folder_that_cannot_be_written(refused: Refused, log: Path, folder: Path) -> None:
    closed = folder / "closed"
    closed.mkdir()
    closed.chmod(0o500)
    if os.access(closed, os.W_OK):  # nothing is closed to root but what is no real folder
        closed = Path("/proc/self")
        if not closed.exists():
            pytest.skip("no folder is closed to this user")
    sentence = refused("recommend", log, *OPTIONS, "--state", closed / "state.ar")
    assert "cannot be written" in sentence
    assert "no/state.ar cannot be written" in refused("recommend", log, *OPTIONS, "--state", "no/state.ar")
