"""kill −9 at any moment: what was acknowledged is there once, and the next decision is that of a fresh fold."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from study_kit import Clock, colours, timed

import artreplay as ar

WORKER = Path(__file__).parent / "killed_worker.py"


def killed(place: str, threads: int, seed: str, seconds: float) -> list[list[str]]:
    """What a process said before it was killed, so long after its first acknowledgement."""
    process = subprocess.Popen(
        [sys.executable, str(WORKER), place, str(threads), seed], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    said = [process.stdout.readline()]
    time.sleep(seconds)
    process.kill()
    said += process.stdout.readlines()
    wrong = process.stderr.read().decode()
    process.wait()
    process.stdout.close()
    process.stderr.close()
    assert not wrong, wrong
    return [line.decode().split() for line in said if line.endswith(b"\n")]


def acknowledged(said: Iterator[list[str]] | list[list[str]], study: ar.Study) -> None:
    """Everything that was said is so: decisions are there, once, with the reward that was taken."""
    states: dict[str, str] = {}
    for words in said:
        states[words[1]] = {"decided": "open", "deferred": "deferred", "rewarded": "rewarded", "void": "void"}[words[0]]
        if words[0] == "rewarded":
            states[words[1]] += f" {words[2]}"
    entries = study._journal.query(
        "SELECT d.id, e.reward FROM entry e JOIN entry d ON d.decision = e.decision"
        " WHERE e.kind = 'reward' AND d.kind = 'decision'"
    )
    rewards = dict(entries)
    assert len(rewards) == len(entries), "a reward is there twice"
    found = {decision.id: decision.state for decision in study.decisions()}
    for id_, state in states.items():
        word, _, value = state.partition(" ")
        assert id_ in found, f"{id_} was acknowledged as {state} and is not there"
        # What was in progress when the process died may be there as well: a reward, or that it was taken out.
        is_further = word in ("open", "deferred") or (word == "rewarded" and found[id_] == "void")
        assert found[id_] == word or is_further, (id_, state)
        if value:
            assert rewards[id_] == float(value)
    assert study.check() > 0
    assert {decision.group for decision in study.decisions()} <= {"policy", "control"}
    numbers = [decision.number for decision in study.decisions()]
    assert numbers == list(range(1, len(numbers) + 1))


def check_decides_like_a_fresh_fold(place: Path, folder: Path) -> None:
    """A copy of the files elsewhere, without its snapshots, decides the same."""
    copy = folder / "copy"
    for end in ("", "-wal", "-shm"):
        if Path(f"{place}{end}").exists():
            shutil.copy(f"{place}{end}", f"{copy}{end}")
    with ar.Study.open(copy) as fresh:
        fresh._journal.run("DELETE FROM snapshot")
        fresh._journal.commit()
    with ar.Study.open(copy) as fresh, ar.Study.open(place) as study:
        asked: dict[str, Any] = {"count": 3}
        if study.base.contextual:
            asked = {"contexts": [{"country": "NL", "age": 20}, {"country": "DE"}, {"age": 40}]}
        assert [one.action for one in fresh.decide(**asked)] == [one.action for one in study.decide(**asked)]
    for end in ("", "-wal", "-shm", ".lock"):
        Path(f"{copy}{end}").unlink(missing_ok=True)


CONTEXTS = ar.Contexts({"age": ar.Numeric(0, 50)}, {"country": ["NL", "DE"]}, segments=["country"], cosines=3)
IN_CONTEXTS = {
    "segments": lambda: ar.KLUCB(arms=["red", "blue"], horizon=1_000_000, contexts=CONTEXTS),
    "regression": lambda: ar.ContextRegression(arms=["red", "blue"], contexts=CONTEXTS),
}


@pytest.mark.parametrize("kills", [1, pytest.param(310, marks=pytest.mark.long)])
def test_nothing_acknowledged_is_lost_or_doubled(kills, tmp_path):
    colours(tmp_path / "s", horizon=1_000_000, holdout=0.2).close()
    check_after_kills(kills, tmp_path)


@pytest.mark.parametrize("kills", [1, pytest.param(100, marks=pytest.mark.long)])
@pytest.mark.parametrize("kind", IN_CONTEXTS)
def test_the_same_holds_in_contexts_which_decisions_keep(kind, kills, tmp_path):
    ar.Study.create(tmp_path / "s", IN_CONTEXTS[kind](), wait=None).close()
    check_after_kills(kills, tmp_path)
    with ar.Study.open(tmp_path / "s") as study:
        of_worker = [one.context or {} for one in study.decisions() if one.context and len(one.context) == 2]
        assert {context["country"] for context in of_worker} <= {"NL", "DE"}
        assert len(of_worker) >= kills


def check_after_kills(kills: int, tmp_path: Path) -> None:
    rng, place, said = random.Random(kills), tmp_path / "s", []
    with ar.compiling.using("interpreted"):
        for kill in range(kills):
            said += killed(str(place), 1 + kill % 4, str(kill), rng.random() * 0.2)
            if kill < 5 or kill % 10 == 0 or kill == kills - 1:
                check_decides_like_a_fresh_fold(place, tmp_path)
                with ar.Study.open(place) as study:
                    acknowledged(said, study)
    assert len(said) >= kills
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s", "s.lock"]


def test_parts_of_a_sum_survive_a_kill_once(tmp_path):
    place, code = tmp_path / "s", (
        "import os, sys, artreplay as ar\n"
        "study = ar.Study.open(sys.argv[1])\n"
        "decision = study.decide('visit')\n"
        "for turn in range(10):\n"
        "    study.reward(decision.id, 0.0625, f'part {turn}')\n"
        "    os.write(1, b'told\\n')\n"
        "os.kill(os.getpid(), 9)\n"
    )  # fmt: skip
    clock = Clock(time.time())
    timed(clock, place=place, rewards="sum").close()
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", code, str(place)], stdout=subprocess.PIPE)
        assert done.stdout.count(b"told") == 10
    clock.now += 7200
    with ar.Study.open(place, clock=clock) as study:
        study.decide()
        assert [row["reward"] for row in study.rows()] == [0.625, None]


def test_two_processes_lose_and_double_nothing(tmp_path):
    place, each = tmp_path / "s", 2
    colours(place).close()
    code = (
        "import sys, artreplay as ar\n"
        "for turn in range(int(sys.argv[2])):\n"
        "    with ar.Study.open(sys.argv[1], timeout=60) as study:\n"
        "        study.reward(study.decide().id, 1.0)\n"
    )
    processes = [subprocess.Popen([sys.executable, "-c", code, str(place), str(each)]) for _ in range(2)]
    assert [process.wait() for process in processes] == [0, 0]
    with ar.Study.open(place) as study:
        assert [one.state for one in study.decisions()] == ["rewarded"] * 2 * each
        assert sum(arm.online for arm in study.arms()) == 2 * each
