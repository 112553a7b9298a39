"""Whatever clients send and whenever the service ends, nothing is half done and the next request is answered."""

from __future__ import annotations

import asyncio
import os
import random
import socket
import time
from datetime import timedelta
from pathlib import Path

import pytest
from load_worker import Load, assert_acknowledged
from service_kit import Client, Process, colours, serving

import artreplay as ar
from artreplay.errors import InvalidFile, InvalidParameter, StudyRefused
from artreplay.serving.access import Tokens
from artreplay.serving.service import name_of_study, owners_of, run_service

BASE = "/v1/studies/colours"
TOKENS = "decide decide-0123456789\nread read-0123456789abc\nadmin admin-0123456789ab\n# a comment\n\n"


@pytest.fixture
def place(tmp_path: Path) -> str:
    return colours(tmp_path / "colours.study")


WRONG = [
    ("GET", "/v1/studies/prices", None, 404, "no study 'prices'. It has 'colours'"),
    ("GET", "/nowhere", None, 404, "this service has no such address. /docs lists all"),
    ("DELETE", BASE, None, 405, "does not take requests of this method"),
    ("GET", f"{BASE}/decisions/1-nothing", None, 404, "has made no decision '1-nothing'"),
    ("PUT", f"{BASE}/decisions/1-nothing/reward", {"value": 1}, 404, "has made no decision"),
    ("POST", f"{BASE}/decisions", {"request": "a"}, 422, "request: extra inputs are not permitted, got 'a'"),
    ("POST", f"{BASE}/decisions", {"request_id": ""}, 422, "request_id: string should have at least 1 character"),
    ("POST", f"{BASE}/decisions", {"request_id": "a" * 257}, 422, "at most 256 characters"),
    ("POST", f"{BASE}/decisions", {"request_id": 7}, 422, "request_id: input should be a valid string, got 7"),
    ("POST", f"{BASE}/decisions", {"among": ["pink"]}, 422, "'pink' is not an arm"),
    ("POST", f"{BASE}/decisions", {"among": []}, 422, "among must have at least 1"),
    ("POST", f"{BASE}/decisions", {"count": 1001}, 422, "count: input should be less than or equal to 1000"),
    ("POST", f"{BASE}/decisions", "{", 422, "the body must be JSON: Expecting property name"),
    ("POST", f"{BASE}/decisions", "[" * 60_000, 422, ""),
    ("POST", f"{BASE}/decisions", '{"request_id": "\\ud800"}', 422, "request_id"),
    ("POST", f"{BASE}/decisions", '{"count": ' + "9" * 5000 + "}", 422, ""),
    ("POST", f"{BASE}/observations", {"action": "red", "value": 7}, 422, "expected a number in [0, 1]"),
    ("POST", f"{BASE}/observations", '{"action": "red", "value": NaN}', 422, "value"),
    ("POST", f"{BASE}/observations", {"action": {"a": 1}, "value": 1}, 422, ""),
    (
        "POST",
        f"{BASE}/observations",
        {"action": "red", "value": "1"},
        422,
        "value: input should be a valid number, or input should be a valid list, got '1'",
    ),
    ("POST", f"{BASE}/observations", None, 422, "the body must be a JSON object"),
    ("POST", f"{BASE}/arms", {"label": "red"}, 409, "'red' is already an arm of this study"),
    ("POST", f"{BASE}/arms/retire", {"label": "pink"}, 422, "'pink' is not an arm"),
    ("PATCH", BASE, {"horizon": 0}, 422, "horizon must be at least 1, got 0"),
    ("PATCH", BASE, {"horizon": 10**400}, 422, "horizon: input should be less than or equal to"),
    ("PATCH", BASE, {"wait": 1e300}, 422, "wait: input should be less than or equal to"),
    ("PATCH", BASE, {"wait": 0}, 422, "wait: input should be greater than 0"),
    ("PATCH", BASE, {"colour": 1}, 422, "colour: extra inputs are not permitted"),
    ("POST", f"{BASE}/rewards", [{"id": "1", "value": 1}] * 1001, 413, "at most 1,000 rewards, got 1,001"),
    ("POST", f"{BASE}/void", "x" * 70_000, 413, "at most 65,536 bytes"),
    ("POST", f"{BASE}/rewards", "x" * 1_100_000, 413, "at most 1,048,576 bytes"),
]


@pytest.mark.parametrize(("method", "path", "body", "status", "words"), WRONG, ids=map(str, range(len(WRONG))))
def test_a_wrong_request_gets_a_sentence_and_changes_nothing(
    service: Client, method: str, path: str, body: object, status: int, words: str
) -> None:
    answer = service.ask(method, path, body)
    assert answer.status == status, answer
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.body["status"] == status
    assert words in answer.body["detail"]
    service.close()
    assert service.ask("GET", BASE).body["decisions"] == {}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory):
    with serving(colours(tmp_path_factory.mktemp("studies") / "colours.study")) as client:
        yield client


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "artreplay.example"}, 403),
        ({"Host": "localhost:1"}, 200),
        ({"Host": "[::1]:8080"}, 200),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://["}, 403),
        ({"Host": "["}, 403),
        ({"Origin": "http://localhost:1", "Host": "localhost:1"}, 200),
    ],
)
def test_pages_of_other_sites_are_refused(service: Client, headers: dict[str, str], status: int) -> None:
    assert service.ask("GET", "/v1/studies", headers=headers).status == status


def test_a_form_is_no_json(service: Client) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    assert service.ask("POST", f"{BASE}/decisions", "request_id=a", headers).status == 415


@pytest.mark.parametrize(
    ("method", "path", "body", "allowed"),
    [
        ("GET", "/healthz", None, {"nobody", "decide", "read", "admin"}),
        ("GET", "/metrics", None, {"read", "admin"}),
        ("GET", "/openapi.json", None, {"read", "admin"}),
        ("GET", f"{BASE}/arms", None, {"read", "admin"}),
        ("POST", f"{BASE}/decisions", {}, {"decide", "admin"}),
        ("POST", f"{BASE}/rewards", [], {"decide", "admin"}),
        ("POST", f"{BASE}/observations", {"action": "red", "value": 1}, {"decide", "admin"}),
        ("POST", f"{BASE}/arms/retire", {"label": "red"}, {"admin"}),
        ("PATCH", BASE, {"note": {}}, {"admin"}),
    ],
)
def test_a_token_may_do_what_its_role_says(
    method: str, path: str, body: object, allowed: set[str], tmp_path: Path
) -> None:
    tokens = {"decide": "decide-0123456789", "read": "read-0123456789abc", "admin": "admin-0123456789ab"}
    with serving(colours(tmp_path / "colours.study"), tokens=TOKENS) as client:
        for role, token in [("nobody", None), *tokens.items(), ("wrong", "wrong-0123456789")]:
            client.token = token
            status = client.ask(method, path, body).status
            if role in allowed or path == "/healthz":
                assert status < 300, role
            else:
                assert status == (403 if role in tokens else 401), role
            client.close()


def test_browsers_and_other_clients_may_send_the_token_their_way(place: str) -> None:
    with serving(place, tokens=TOKENS) as client:
        basic = {"Authorization": "Basic cGF1bDpyZWFkLTAxMjM0NTY3ODlhYmM="}  # paul:read-0123456789abc
        assert client.ask("GET", "/v1/studies", headers=basic).status == 200
        key = {"Ocp-Apim-Subscription-Key": "read-0123456789abc"}
        assert client.ask("GET", "/v1/studies", headers=key).status == 200
        refused = client.ask("GET", "/v1/studies")
        assert refused.headers["www-authenticate"].startswith("Basic")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("write 0123456789abcdef", "Line 1 has not"),
        ("read short", "at least 16 letters, and that in line 1"),
        ("read", "Line 1 has not"),
        ("# nothing", "at least one line"),
    ],
)
def test_a_file_of_tokens_is_read_with_care(text: str, words: str) -> None:
    with pytest.raises(InvalidFile) as refused:
        Tokens.parse(text)
    assert words in str(refused.value)
    assert "short" not in str(refused.value).replace("shorter", "")


def test_the_service_refuses_to_start_where_it_cannot_be_safe(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match=r"needs tokens to listen on 0\.0\.0\.0"):
        run_service([str(tmp_path / "a.study")], "0.0.0.0")
    with pytest.raises(InvalidParameter, match="two are called 'a'"):
        owners_of(["a.study", "elsewhere/a.study"])
    with pytest.raises(InvalidParameter, match="in memory cannot be served"):
        name_of_study(":memory:")
    with pytest.raises(InvalidParameter, match="letters, digits"):
        name_of_study("my study.study")


def test_a_body_of_a_gigabyte_is_refused_before_it_comes(service: Client) -> None:
    with socket.create_connection(("127.0.0.1", service.port), 10) as connection:
        head = f"POST {BASE}/decisions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        connection.sendall(f"{head}Content-Length: 1000000000\r\n\r\n".encode() + b"x" * 1000)
        assert connection.recv(100).startswith(b"HTTP/1.1 413")
    with socket.create_connection(("127.0.0.1", service.port), 10) as connection:
        connection.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        sent, chunk = 0, b"10000\r\n" + b"x" * 65536 + b"\r\n"
        try:
            while sent < 1_000_000_000:
                connection.sendall(chunk)
                sent += 65536
        except OSError:
            pass
        assert sent < 30_000_000  # what the system keeps on its way, and no more
    assert service.ask("GET", BASE).status == 200


def test_headers_that_come_slowly_or_have_no_end_are_refused(service: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("artreplay.serving.prompt_clients.HEAD_SECONDS", 0.5)
    with socket.create_connection(("127.0.0.1", service.port), 10) as slow:
        for number in range(50):  # a byte or two at a time, for much longer than is allowed
            try:
                slow.sendall((b"GET " + f"{BASE} HTTP/1.1\r\nX: ".encode() + b"x" * 50)[number : number + 1])
            except OSError:
                break
            time.sleep(0.05)
        answer = slow.recv(1000)
    assert answer.startswith(b"HTTP/1.1 408 Request Timeout")
    assert b"the headers of a request must arrive within 0.5 seconds" in answer
    with socket.create_connection(("127.0.0.1", service.port), 10) as endless:
        sent = 0
        try:
            while sent < 1_000_000_000:
                endless.sendall(b"GET / HTTP/1.1\r\nX: " * (sent == 0) + b"x" * 65_536)
                sent += 65_536
        except OSError:
            pass
    assert sent < 30_000_000
    assert service.ask("GET", BASE).status == 200


def test_slow_and_idle_clients_hold_nobody_up(service: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("artreplay.serving.prompt_clients.BODY_SECONDS", 0.5)
    idle = [socket.create_connection(("127.0.0.1", service.port), 10) for _ in range(100)]
    slow = socket.create_connection(("127.0.0.1", service.port), 10)
    head = f"POST {BASE}/decisions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    slow.sendall(f"{head}Content-Length: 1000\r\n\r\n{{".encode())
    service.close()
    assert service.ask("GET", BASE).status == 200
    assert slow.recv(100).startswith(b"HTTP/1.1 408")
    for connection in [*idle, slow]:
        connection.close()


def test_a_stop_finishes_what_is_acknowledged_and_frees_the_study(place: str) -> None:
    with Process(place) as process:
        process.ready().close()
        load = Load(process.port, 4, "stop")
        time.sleep(0.5)
        assert process.stop() == 0
        load.stop()
    assert load.decided
    assert_acknowledged(load, place)


def test_windows_close_also_if_nobody_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("artreplay.serving.owner.CLOSING_SECONDS", 0.05)
    with serving(colours(tmp_path / "colours.study", wait=timedelta(seconds=0.1))) as client:
        client.decide("once")
        until = time.monotonic() + 10.0
        while client.ask("GET", BASE).body["decisions"] != {"expired": 1}:
            assert time.monotonic() < until
            time.sleep(0.01)
            client.ask("POST", f"{BASE}/arms", {"label": "red"})  # is refused, and must not hold windows up


def test_an_algorithm_of_ones_own_is_served_if_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shop_bandits.py").write_text("import artreplay as ar\ndef make(arms): return ar.UCB1(arms=arms)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    place, algorithm = str(tmp_path / "own.study"), "shop_bandits:make"
    ar.Study.create(place, algorithm, wait=None, arms=["red", "blue"]).close()
    with pytest.raises(StudyRefused, match=r"own cannot be served, .* --algorithm shop_bandits:make does"):
        run_service([place])
    with pytest.raises(StudyRefused, match="was made with the algorithm shop_bandits:make"):
        run_service([place], algorithm="shop_bandits:other")
    (owner,) = owners_of([place], algorithm).values()
    owner.own(1.0)
    assert owner.study is not None
    assert owner.study.decide().action == "red"
    owner.give_up()


def test_an_algorithm_of_ones_own_that_fails_fails_those_who_ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop_wrong.py").write_text(
        "class Wrong:\n"
        "    def propose(self): return 'red'\n"
        "    def update(self, arm, reward): raise RuntimeError('no')\n"
        "def make(arms): return Wrong()\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    place, algorithm = str(tmp_path / "wrong.study"), "shop_wrong:make"
    with ar.Study.create(place, algorithm, wait=None, arms=["red", "blue"]) as study:
        id_ = study.decide().id
    (owner,) = owners_of([place], algorithm).values()
    owner.own(1.0)
    owner.start()

    async def ask() -> str:
        await owner.call(lambda study: study.reward(id_, 1.0))
        with pytest.raises(RuntimeError, match="no"):
            await owner.call(lambda study: study.decide())
        return (await owner.call(lambda study: study.decision(id_))).state

    assert asyncio.run(asyncio.wait_for(ask(), 30.0)) == "rewarded"
    owner.stop()


def test_a_second_service_is_refused_or_waits_and_takes_over(place: str) -> None:
    with Process(place) as first, Process("--wait-for-owner", place) as second:
        client = first.ready()
        decision = client.decide("before")
        other = second.ready(status=503)
        refused = other.ask("GET", BASE)
        assert refused.status == 503
        assert "still owns colours" in refused.body["detail"]
        assert refused.headers["retry-after"] == "1"
        client.close()
        assert first.stop() == 0
        other.close()
        taken = second.ready()
        assert taken.ask("GET", f"{BASE}/decisions/{decision['id']}").body["state"] == "open"
        assert taken.decide("before")["repeated"] is True
        taken.close()
        assert second.stop() == 0


@pytest.mark.parametrize("kills", [1, pytest.param(int(os.environ.get("KILLS") or 30), marks=pytest.mark.long)])
def test_what_64_clients_were_told_survives_a_kill(kills: int, place: str) -> None:
    """`make kill-service` kills 300 times."""
    random_ = random.Random(kills)
    loads: list[Load] = []
    told = 0  # decisions; a kill that comes early on a busy machine may leave none
    for kill in range(kills):
        with Process(place) as process:
            process.ready().close()
            loads.append(Load(process.port, 64, str(kill)))
            time.sleep(random_.uniform(0.02, 0.6) if kill else 0.6)
        loads[-1].stop()
        told += len(loads[-1].decided)
        if kill % 10 == 0 or kill == kills - 1:
            for load in loads:
                assert_acknowledged(load, place)
            loads.clear()
    assert told
    print(f"{kills} kills, {told:,} acknowledged decisions")
