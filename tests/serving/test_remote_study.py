"""A study of a service is used as a study of this process is, also where answers are lost."""

from __future__ import annotations

import math
import random
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from service_kit import COLOURS, colours, serving

import artreplay as ar
from artreplay.errors import InvalidAction, InvalidParameter, StudyRefused, StudyUnavailable, UnknownDecision


def message(end: socket.socket) -> bytes:
    """Read one request or answer, with its body."""
    got = b""
    while b"\r\n\r\n" not in got:
        if not (more := end.recv(1 << 16)):
            return b""
        got += more
    head = got.partition(b"\r\n\r\n")[0]
    lengths = [int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
    while len(got) < len(head) + 4 + sum(lengths):
        got += end.recv(1 << 16)
    return got


@contextmanager
def losing(port: int, seed: int) -> Iterator[int]:
    """A way to the service that loses half of all requests, before they arrive or their answers, but never 7 in a row.

    A client that waits for 20 seconds asks ten times, so that otherwise one of a thousand requests would fail.
    """
    random_ = random.Random(seed)
    lost_in_a_row = 0
    listener = socket.create_server(("127.0.0.1", 0))

    def forward(client: socket.socket) -> None:
        nonlocal lost_in_a_row
        with client, suppress(OSError), socket.create_connection(("127.0.0.1", port)) as service:
            while request := message(client):
                fate = random_.random() if lost_in_a_row < 6 else 1.0
                lost_in_a_row = lost_in_a_row + 1 if fate < 0.5 else 0
                if fate < 0.25:
                    return
                service.sendall(request)
                answer = message(service)
                if fate < 0.5:
                    return
                client.sendall(answer)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=forward, args=[listener.accept()[0]], daemon=True).start()

    thread = threading.Thread(target=accept)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def life(study: Any, seed: int) -> list[Any]:
    """Live with a study, here or elsewhere, and return what it decided."""
    random_ = random.Random(seed)
    made, open_ = [], []
    for turn in range(50):
        kind = random_.choice(["decide", "decide", "several", "reward", "void", "observe", "defer"])
        if kind == "decide":
            among, info = random_.choice([None, ["red", "blue"]]), {"page": turn}
            subject = random_.choice([None, "paul", "ada"])
            open_.append(study.decide(f"visitor {turn}", among=among, subject=subject, info=info))
            one = open_[-1]
            made.append((one.number, one.action, one.state, one.group, one.propensity, one.policy_action))
            made.append((one.subject, one.info, one.request_id))
        elif kind == "defer":
            study.decide(f"deferred {turn}", deferred=True)
            study.activate(request_id=f"deferred {turn}")
            study.reward(request_id=f"deferred {turn}", value=1.0)
        elif kind == "several":
            open_ += study.decide(count=2)
            made += [(one.number, one.action) for one in open_[-2:]]
        elif kind == "observe":
            study.observe(random_.choice(COLOURS), float(random_.random() < 0.5))
        elif open_:
            decision = open_.pop(random_.randrange(len(open_)))
            study.reward(decision.id, float(random_.random() < 0.5)) if kind == "reward" else study.void(decision.id)
            made.append(study.decision(decision.id).state)
    study.void(request_id=study.decide("erased", subject="ada").request_id, erase=True)
    made.append([(one.number, one.state, one.subject) for one in study.decisions(after=3, limit=40)])
    made.append([one.number for one in study.decisions(state="open")])
    made.append([(arm.label, arm.online, arm.open, arm.mean, arm.retired) for arm in study.arms()])
    return made


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 20))])
def test_a_study_elsewhere_decides_as_one_here_although_half_of_all_requests_are_lost(
    seed: int, tmp_path: Path
) -> None:
    with ar.Study.open(colours(tmp_path / "here.study", holdout=0.3)) as study:
        here = life(study, seed)
    with (
        serving(colours(tmp_path / "colours.study", holdout=0.3)) as client,
        losing(client.port, seed) as port,
        ar.Study.connect(f"http://127.0.0.1:{port}/v1/studies/colours", timeout=20.0) as remote,
    ):
        assert life(remote, seed) == here


def test_parts_of_a_reward_and_settings_are_those_of_a_study(tmp_path: Path) -> None:
    given: Any = {"wait": timedelta(days=1), "rewards": "sum", "holdout": 0.1}
    with serving(colours(tmp_path / "colours.study", **given)) as client:
        study: ar.studies.Decisions = ar.Study.connect(f"http://127.0.0.1:{client.port}/v1/studies/colours")
        decision = study.decide("visitor 1")
        study.reward(decision.id, 0.25, "click")
        study.reward(request_id="visitor 1", value=0.5, key="order")
        with pytest.raises(StudyRefused, match="key must name each part"):
            study.reward(decision.id, 0.5)
        study.change(wait=timedelta(hours=1), holdout=0.2, control={"red": 1.0, "blue": 3.0})
        later = study.decide("visitor 2")
        assert later.due is not None
        assert later.due - later.asked == timedelta(hours=1)
        shown = client.ask("GET", "/v1/studies/colours").body["settings"]["control"]
        assert shown == [{"label": "red", "share": 1.0}, {"label": "blue", "share": 3.0}]
        assert client.ask("PATCH", "/v1/studies/colours", {"control": shown}).status == 204
        with pytest.raises(InvalidParameter, match="control"):
            study.change(control={"pink": 1.0})
        study.close()


def test_contexts_go_through_the_service(tmp_path: Path) -> None:
    seen = {"country": ["NL", "NL", "DE", "DE"] * 30, "age": [30, 40, 50] * 40}
    log = ar.History(["red", "blue"] * 60, [1, 0, 0, 1] * 30, contexts=seen)
    base = ar.ContextRegression(arms=["red", "blue"], contexts=ar.Contexts.from_history(log))
    for name in ("here", "there"):
        ar.Study.create(tmp_path / f"{name}.study", base, log, wait=None).close()
    asked = [{"country": "DE", "age": 60}, {"country": "NL", "browser": "x"}, {"country": None, "age": float("nan")}]
    with (
        serving(str(tmp_path / "there.study")) as client,
        ar.Study.open(tmp_path / "here.study") as study,
        ar.Study.connect(f"http://127.0.0.1:{client.port}/v1/studies/there", timeout=20.0) as remote,
    ):
        made = [
            [(one.action, one.context) for one in which.decide(contexts=asked)]
            + [which.decide(context=asked[0]).action]
            for which in (study, remote)
        ]
        remote.observe("blue", 0.0, context=asked[0])
        assert remote.facts()["contexts"]["absent"] == study.facts()["contexts"]["absent"]
    assert made[0] == made[1]


def test_errors_are_those_of_a_study(tmp_path: Path) -> None:
    with serving(colours(tmp_path / "colours.study")) as client:
        study = ar.Study.connect(f"http://127.0.0.1:{client.port}/v1/studies/colours")
        decision = study.decide()
        study.reward(decision.id, 1.0)
        with pytest.raises(StudyRefused, match=r"already has the reward 1\.0, and that is final"):
            study.reward(decision.id, 0.0)
        with pytest.raises(UnknownDecision, match="no decision 'nothing'"):
            study.decision("nothing")
        with pytest.raises(InvalidAction, match="'pink' is not an arm"):
            study.observe("pink", 1.0)
        with pytest.raises(InvalidParameter) as wrong:
            study.change(horizon=0)
        assert wrong.value.parameter == "horizon"
        assert str(wrong.value) == "horizon must be at least 1, got 0"
        for reward in ("1", None, [object()], math.nan, 10**400):
            with pytest.raises(InvalidAction, match="expected a finite number"):
                study.reward(decision.id, reward)  # type: ignore[arg-type]
        for call in (
            lambda: study.decide(count=0),
            lambda: study.decide(info={"x": object()}),
        ):
            with pytest.raises(InvalidParameter):
                call()
        for id_ in ("", "\ud800", "9" * 5000):
            for look in (study.decision, study.activate, study.void):
                with pytest.raises(UnknownDecision, match="has made no decision"):
                    look(id_)
        study.add_arm("black")
        study.retire_arm("red")
        assert [(arm.label, arm.retired) for arm in study.arms()] == [
            *(("red", True), ("blue", False), ("green", False), ("black", False)),
        ]
        assert math.isnan(study.arms()[-1].mean)
        study.export(tmp_path / "decisions.parquet")
        assert pq.read_table(tmp_path / "decisions.parquet")["reward"].to_pylist() == [1.0]
        study.close()


def test_closing_a_study_closes_the_connections_of_all_threads(tmp_path: Path) -> None:
    with serving(colours(tmp_path / "colours.study")) as client:
        study = ar.Study.connect(f"http://127.0.0.1:{client.port}/v1/studies/colours", timeout=20.0)
        threads = [threading.Thread(target=study.decide) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        sockets = [connection.sock for connection in study._idle]
        assert sockets
        study.close()
        assert [socket_.fileno() for socket_ in sockets] == [-1] * len(sockets)
        assert study.decide().number == 5
        study.close()


def test_a_service_that_is_away_is_said_to_be_within_the_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        study = ar.Study.connect(f"http://127.0.0.1:{silent.getsockname()[1]}/v1/studies/colours", timeout=0.2)
        with pytest.raises(StudyUnavailable, match=r"did not answer within 0\.2 seconds"):
            study.decide()
        study.close()
    with pytest.raises(StudyUnavailable, match="refused"):
        study.decide()
    study.close()


def test_a_token_that_the_service_does_not_know_is_said(tmp_path: Path) -> None:
    with serving(colours(tmp_path / "colours.study"), tokens="decide decide-0123456789") as client:
        url = f"http://127.0.0.1:{client.port}/v1/studies/colours"
        with ar.Study.connect(url, token="decide-0123456789") as study:
            assert study.decide().number == 1
            with pytest.raises(StudyRefused, match="needs a token with the role admin, got one for decide"):
                study.add_arm("black")
        with ar.Study.connect(url, token="wrong") as study, pytest.raises(StudyRefused, match="does not know"):
            study.decide()


@pytest.mark.parametrize(
    "url",
    [
        "banners.study",
        "http://localhost/banners",
        "ftp://h/v1/studies/a",
        "http:///v1/studies/a",
        "http://h:port/v1/studies/a",
    ],
)
def test_an_address_must_be_that_of_a_study(url: str) -> None:
    with pytest.raises(InvalidParameter, match="url must be the address of a study"):
        ar.Study.connect(url)
    with pytest.raises(InvalidParameter, match="must not have a password"):
        ar.Study.connect("http://paul:secret@localhost/v1/studies/a")
    with pytest.raises(InvalidParameter, match="token must be one line") as refused:
        ar.Study.connect("http://localhost/v1/studies/a", token="decide-0123456789\n")
    assert "0123456789" not in str(refused.value)
