"""The service does what a study does, for whoever asks over HTTP."""

from __future__ import annotations

import io
import random
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from service_kit import COLOURS, Client, colours, serving

import artreplay as ar
from artreplay.errors import InvalidParameter


@pytest.fixture
def place(tmp_path: Path) -> str:
    return colours(tmp_path / "colours.study")


def test_a_repeated_request_gets_its_first_decision_again(place: str) -> None:
    with serving(place) as client:
        first = client.ask("POST", "/v1/studies/colours/decisions", {"request_id": "visitor 1"})
        again = client.ask("POST", "/v1/studies/colours/decisions", {"request_id": "visitor 1"})
    assert (first.status, again.status) == (201, 200)
    assert first.body["repeated"] is False
    assert again.body == first.body | {"repeated": True}


ODD_DECISIONS: list[str | bytes] = [
    "{}", '{"count": 2}', '{"count": 2.0}', '{"count": true}', '{"among": ["red"]}', '{"among": [1]}', "[]", "null",
    '{"request_id": "a", "request_id": "b"}', r'{"request_id": "\u0000"}', r'{"request_id": "\ud83d\ude00 \u00e9"}',
    r'{"request_id": "\ud83d"}', '{"info": {"a": NaN}}', '{"info": {"a": 1e999}}', '{"info": {"a": 1, "a": [[[2]]]}}',
    '{"context": {"a": 1}}', '{"deferred": 1}', '{"value": 1}', '{"subject": ""}', " {} ", "{}x", "nul", "",
    b"\xef\xbb\xbf{}",
]  # fmt: skip
ODD_REWARDS = ["1", "1.0", "-0", "true", '"1"', "null", "[1]", "7", "NaN", "1e999", "1e-999", "9" * 400]


def test_what_goes_past_the_framework_is_answered_as_by_the_framework(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = []
    for name in ("direct", "framework"):
        if name == "framework":
            monkeypatch.setattr("artreplay.serving.direct_paths._DIRECT", {})
        (tmp_path / name).mkdir()
        with serving(colours(tmp_path / name / "colours.study")) as client:
            found: list[object] = []
            for body in ODD_DECISIONS:
                answer = client.ask("POST", "/v1/studies/colours/decisions", body)
                made = answer.body.get("decisions", [answer.body])
                shown = [
                    {key: one.get(key) for key in ("number", "action", "info", "request_id", "detail")} for one in made
                ]
                found.append((answer.status, shown))
            for number, value in enumerate(ODD_REWARDS):
                decision = client.decide(str(number))
                path = f"/v1/studies/colours/decisions/{decision['id']}/reward"
                answer = client.ask("PUT", path, f'{{"value": {value}}}')
                found.append((answer.status, answer.body and answer.body["detail"]))
            found.append(client.ask("POST", "/v1/studies/nothing/decisions", {}).status)
            found.append(client.ask("PUT", "/v1/studies/colours/decisions/1%2Fa/reward", {"value": 1}).status)
            found.append([one for one in client.ask("GET", "/metrics").body.decode().splitlines() if "_count{" in one])
            answers.append(found)
    assert answers[0] == answers[1]


def test_decisions_are_those_that_the_study_makes(tmp_path: Path) -> None:
    """The same calls in the same order, once over HTTP and once in Python, make the same decisions."""
    random_ = random.Random(4)
    served, direct = colours(tmp_path / "colours.study"), colours(tmp_path / "direct.study")
    with serving(served) as client, ar.Study.open(direct) as study:
        open_: list[tuple[str, str]] = []
        for _ in range(60):
            kind = random_.choice(["decide", "decide", "several", "reward", "void", "observe"])
            base = "/v1/studies/colours"
            if kind == "decide":
                among = random_.choice([None, ["red", "blue"]])
                there, here = client.ask("POST", f"{base}/decisions", {"among": among}).body, study.decide(among=among)
                assert (there["action"], there["number"]) == (here.action, here.number)
                open_.append((there["id"], here.id))
            elif kind == "several":
                many = client.ask("POST", f"{base}/decisions", {"count": 3}).body["decisions"]
                ours = study.decide(count=3)
                assert [one["action"] for one in many] == [one.action for one in ours]
                open_ += [(one["id"], mine.id) for one, mine in zip(many, ours, strict=True)]
            elif kind == "observe":
                arm, value = random_.choice(COLOURS), float(random_.random() < 0.5)
                assert client.ask("POST", f"{base}/observations", {"action": arm, "value": value}).status == 204
                study.observe(arm, value)
            elif open_:
                there_id, here_id = open_.pop(random_.randrange(len(open_)))
                if kind == "void":
                    assert client.ask("POST", f"{base}/decisions/{there_id}/void").status == 204
                    study.void(here_id)
                else:
                    body = {"value": float(random_.random() < 0.5)}
                    assert client.ask("PUT", f"{base}/decisions/{there_id}/reward", body).status == 204
                    study.reward(here_id, body["value"])
        arms = client.ask("GET", f"{base}/arms").body["arms"]
        assert [(arm["label"], arm["online"], arm["open"], arm["mean"]) for arm in arms] == [
            (arm.label, arm.online, arm.open, arm.mean) for arm in study.arms()
        ]
        facts = client.ask("GET", base).body
        assert {name: facts[name] for name in study.facts()} == study.facts()


def test_rewards_in_one_request_have_a_result_each(place: str) -> None:
    with serving(place) as client:
        ids = [client.decide(str(number))["id"] for number in range(3)]
        rewards = [{"id": id_, "value": 1} for id_ in ids]
        wrong = [{"id": "9-nothing", "value": 1}, {"id": ids[0], "value": 0}, {"id": ids[1], "value": 7}]
        answer = client.ask("POST", "/v1/studies/colours/rewards", rewards + wrong)
        assert answer.status == 200
        assert [one["status"] for one in answer.body] == [204, 204, 204, 404, 409, 422]
        assert answer.body[3]["detail"] == "this study has made no decision '9-nothing'"
        assert client.ask("GET", "/v1/studies/colours").body["decisions"] == {"rewarded": 3}


def test_arms_come_and_go_and_settings_change(place: str) -> None:
    with serving(place) as client:
        base = "/v1/studies/colours"
        assert client.ask("POST", f"{base}/arms", {"label": "black"}).status == 204
        assert client.ask("POST", f"{base}/arms/retire", {"label": "red"}).status == 204
        labels = {arm["label"]: arm["retired"] for arm in client.ask("GET", f"{base}/arms").body["arms"]}
        assert labels == {"red": True, "blue": False, "green": False, "black": False}
        assert client.ask("PATCH", base, {"horizon": 5000, "note": {"owner": "pricing"}}).status == 204
        facts = client.ask("GET", base).body
        assert (facts["horizon"], facts["settings"]["note"]) == (5000, {"owner": "pricing"})


def test_the_export_is_that_of_the_study(place: str) -> None:
    with serving(place) as client:
        decision = client.decide("one")
        client.ask("PUT", f"/v1/studies/colours/decisions/{decision['id']}/reward", {"value": 1})
        table = pq.read_table(io.BytesIO(client.ask("GET", "/v1/studies/colours/export").body))
        found = client.ask("GET", f"/v1/studies/colours/decisions/{decision['id']}").body
    assert table["decision_id"].to_pylist() == [decision["id"]]
    assert table["reward"].to_pylist() == [1.0]
    assert (found["id"], found["state"]) == (decision["id"], "rewarded")


@pytest.mark.parametrize("labels", [[10, 20], [True, False], ["1", "2"], [0.5, 1.5]])
def test_labels_keep_their_type(labels: list[object], tmp_path: Path) -> None:
    place = tmp_path / "typed.study"
    ar.Study.create(place, ar.KLUCB(arms=labels, horizon=1000), wait=None).close()
    with serving(str(place)) as client:
        made = client.ask("POST", "/v1/studies/typed/decisions", {"among": [labels[1]]}).body
        assert made["action"] == labels[1]
        assert type(made["action"]) is type(labels[1])
        other = {"action": str(labels[0]) if not isinstance(labels[0], str) else 1, "value": 1}
        assert client.ask("POST", "/v1/studies/typed/observations", other).status == 422


def test_points_and_lists_are_decided_too(tmp_path: Path) -> None:
    ar.Study.create(tmp_path / "points.study", ar.TreeUCB(2, horizon=100), wait=None).close()
    ar.Study.create(tmp_path / "lists.study", ar.TopUCB(4, 2, 100), wait=None).close()
    with serving(str(tmp_path / "points.study"), str(tmp_path / "lists.study")) as client:
        assert [one["name"] for one in client.ask("GET", "/v1/studies").body["studies"]] == ["points", "lists"]
        point = client.decide("a", "points")
        assert len(point["action"]["point"]) == 2
        assert client.ask("PUT", f"/v1/studies/points/decisions/{point['id']}/reward", {"value": 0.5}).status == 204
        observed = {"action": point["action"], "value": 0.25}
        assert client.ask("POST", "/v1/studies/points/observations", observed).status == 204
        both = client.decide("a", "lists")
        assert len(both["action"]) == 2
        wrong = client.ask("PUT", f"/v1/studies/lists/decisions/{both['id']}/reward", {"value": 1})
        assert wrong.status == 422
        assert "one reward per unit" in wrong.body["detail"]
        right = client.ask("PUT", f"/v1/studies/lists/decisions/{both['id']}/reward", {"value": [1, 0]})
        assert right.status == 204


def test_what_prometheus_is_told_is_what_happened(place: str) -> None:
    with serving(place) as client:
        for number in range(5):
            client.decide(str(number))
        client.ask("GET", "/v1/studies/nothing")
        lines = client.ask("GET", "/metrics").body.decode().splitlines()
    told = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert float(told['artreplay_decisions{state="open",study="colours"}']) == 5
    decided = 'artreplay_request_seconds_count{method="POST",route="/v1/studies/{study}/decisions",status="201"}'
    assert float(told[decided]) == 5
    assert float(told['artreplay_request_seconds_count{method="GET",route="/v1/studies/{study}",status="404"}']) == 1


def test_the_service_describes_every_address(place: str) -> None:
    with serving(place) as client:
        schema = client.ask("GET", "/openapi.json").body
    operations = [(path, method) for path, methods in schema["paths"].items() for method in methods]
    assert ("/v1/studies/{study}/decisions", "post") in operations
    assert len(operations) >= 14
    for path, method in operations:
        assert schema["paths"][path][method]["description"], path
    assert schema["security"] == [{"token": []}]


def test_what_one_request_does_wrong_is_its_own_error(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that nobody foresaw undoes a commit of several requests, and all others are done again.

    A request id that no database can hold is refused, and keeps nobody from having theirs looked up.
    """
    import asyncio
    import threading

    from artreplay.serving.owner import Owner

    owner = Owner("colours", place)
    owner.own(1.0)
    hold = threading.Event()

    def fail(study: ar.Study) -> None:
        study.decide("of the failing request")
        raise ZeroDivisionError

    async def ask() -> list[object]:
        owner.start()
        held = asyncio.ensure_future(owner.call(lambda study: hold.wait(10)))
        await asyncio.sleep(0.05)
        works = {
            "a": lambda study: study.decide("a"),
            "of the failing request": fail,
            "\ud800\0": lambda study: study.decide("\ud800\0"),
            "b": lambda study: study.decide("b"),
        }
        waiting = [asyncio.ensure_future(owner.call(work, request)) for request, work in works.items()]
        await asyncio.sleep(0.05)
        hold.set()
        await held
        return await asyncio.gather(*waiting, return_exceptions=True)

    first, failed, refused, second = asyncio.run(ask())
    owner.stop()
    assert isinstance(failed, ZeroDivisionError)
    assert isinstance(refused, InvalidParameter)
    assert first.number == 1  # type: ignore[attr-defined]
    assert second.number == 2  # type: ignore[attr-defined]
    with ar.Study.open(place) as study:
        assert [one.number for one in study.decisions()] == [1, 2]


def test_a_closed_client_does_no_harm(place: str) -> None:
    with serving(place) as client:
        for number in range(5):
            other = Client(client.port)
            other._connection.request("POST", "/v1/studies/colours/decisions", f'{{"request_id": "{number}"}}',
                                      {"Content-Type": "application/json"})  # fmt: skip
            other.close()
        assert client.decide("last")["number"] >= 1
