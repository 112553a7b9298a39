"""Clients of Azure Personalizer move by changing one address. Its own SDKs are asked in the long tests."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from service_kit import Client, colours, serving

import artreplay as ar
from real_parts import needed

RANK = "/personalizer/v1.0/rank"
ACTIONS = [{"id": name, "features": [{"colour": name}]} for name in ("red", "blue", "green")]
TOKEN = "decide-0123456789"


@pytest.fixture
def place(tmp_path: Path) -> str:
    ar.Study.create(
        tmp_path / "colours.study", ar.KLUCB(arms=["red", "blue", "green"], horizon=1000), wait=None
    ).close()
    return str(tmp_path / "colours.study")


def rank(client: Client, path: str = RANK, **body: Any) -> Any:
    return client.ask("POST", path, {"actions": ACTIONS} | body)


@pytest.mark.parametrize("path", [RANK, f"/v1/studies/colours{RANK}"])
def test_a_rank_is_a_decision_and_a_reward_belongs_to_its_event(place: str, path: str) -> None:
    with serving(place) as client:
        answer = rank(client, path, eventId="event 1", contextFeatures=[{"device": {"kind": "phone"}}])
        assert answer.status == 201
        chosen = answer.body["rewardActionId"]
        assert answer.body["eventId"] == "event 1"
        assert answer.body["ranking"][0] == {"id": chosen, "probability": 1.0}
        assert {one["id"] for one in answer.body["ranking"]} == {"red", "blue", "green"}
        assert rank(client, path, eventId="event 1").body == answer.body
        events = path.replace("rank", "events/event%201")
        assert client.ask("POST", f"{events}/reward", {"value": 1}).status == 204
        assert client.ask("GET", "/v1/studies/colours").body["decisions"] == {"rewarded": 1}
        told = client.ask("GET", "/metrics").body.decode()
        assert 'artreplay_ignored_features_total{study="colours"} 7.0' in told


def test_excluded_actions_stay_where_they_were_sent(place: str) -> None:
    with serving(place) as client:
        answer = rank(client, excludedActions=["red"]).body
        assert answer["ranking"][0] == {"id": "red", "probability": 0.0}
        assert answer["ranking"][1]["id"] == answer["rewardActionId"] != "red"
        assert rank(client, excludedActions=["red", "blue", "green"]).status == 422


def test_probabilities_sum_to_one_and_are_those_of_the_decision(tmp_path: Path) -> None:
    base = ar.KLUCB(arms=["red", "blue", "green"], horizon=1000)
    control = {"red": 1.0, "green": 3.0}
    ar.Study.create(tmp_path / "held.study", base, wait=None, holdout=0.4, control=control).close()
    with serving(str(tmp_path / "held.study")) as client:
        for number in range(40):
            answer = rank(client, eventId=str(number), excludedActions=["green"] if number % 3 == 0 else []).body
            shares = {one["id"]: one["probability"] for one in answer["ranking"]}
            assert sum(shares.values()) == pytest.approx(1.0)
            (made,) = client.ask("GET", f"/v1/studies/held/decisions?after={number}").body["decisions"]
            assert shares[answer["rewardActionId"]] == pytest.approx(made["propensity"])


def test_a_deferred_rank_waits_to_be_activated(place: str) -> None:
    with serving(place) as client:
        rank(client, eventId="later", deferActivation=True)
        assert client.ask("GET", "/v1/studies/colours").body["decisions"] == {"deferred": 1}
        assert client.ask("POST", "/personalizer/v1.0/events/later/activate").status == 204
        assert client.ask("GET", "/v1/studies/colours").body["decisions"] == {"open": 1}


def test_a_new_action_becomes_an_arm(place: str) -> None:
    with serving(place) as client:
        assert rank(client, actions=[*ACTIONS, {"id": "black"}]).status == 201
        assert labels_of(client)[-1] == "black"


def labels_of(client: Client) -> list[str]:
    return [arm["label"] for arm in client.ask("GET", "/v1/studies/colours/arms").body["arms"]]


def test_a_rank_that_is_refused_adds_nothing(place: str) -> None:
    with serving(place) as client:
        rank(client, eventId="one")
        assert rank(client, actions=[{"id": "black"}, {"id": "a\0"}]).status == 422
        assert "eventId must be" in rank(client, actions=[{"id": "black"}], eventId="a\0").body["error"]["message"]
        assert rank(client, actions=[{"id": "black"}], eventId="one").status == 409
        assert rank(client, actions=[{"id": str(number)} for number in range(998)]).status == 409
        assert labels_of(client) == ["red", "blue", "green"]


def test_a_repeated_event_has_the_same_probabilities_although_an_arm_is_retired(tmp_path: Path) -> None:
    with serving(colours(tmp_path / "colours.study", holdout=0.5)) as client:
        client.ask("POST", "/v1/studies/colours/arms/retire", {"label": "red"})
        for number in range(10):
            first = rank(client, eventId=str(number)).body
            assert rank(client, eventId=str(number)).body == first
            assert client.ask("POST", f"/personalizer/v1.0/events/{number}/reward", {"value": 1.0}).status == 204
            assert rank(client, eventId=str(number)).body == first


def test_a_rank_with_a_wrong_context_adds_no_arm(tmp_path: Path) -> None:
    log = ar.History(["red", "blue"] * 100, [1, 0] * 100, contexts={"hour": [1.5, 1.5, 2.5, 2.5] * 50})
    base = ar.ContextRegression(arms=["red", "blue"], contexts=ar.Contexts.from_history(log))
    ar.Study.create(tmp_path / "hours.study", base, log, wait=None).close()
    with serving(str(tmp_path / "hours.study")) as client:
        sent = {"actions": [{"id": "red"}, {"id": "new"}], "contextFeatures": [{"hour": "seventeen"}]}
        assert client.ask("POST", "/personalizer/v1.0/rank", sent).status == 422
        labels = [arm["label"] for arm in client.ask("GET", "/v1/studies/hours/arms").body["arms"]]
        assert labels == ["red", "blue"]


def test_a_retired_arm_counts_as_excluded_and_a_repeated_event_is_as_it_was(place: str) -> None:
    with serving(place) as client:
        before = rank(client, eventId="before").body
        assert before["rewardActionId"] == "red"
        client.ask("POST", "/v1/studies/colours/arms/retire", {"label": "red"})
        answer = rank(client).body
        assert answer["ranking"][0] == {"id": "red", "probability": 0.0}
        assert answer["rewardActionId"] == "blue"
        assert rank(client, eventId="before").body == before
        assert rank(client, actions=[{"id": "red"}]).status == 422


def test_errors_have_the_shape_that_its_clients_read(place: str, tmp_path: Path) -> None:
    with serving(place, tokens=f"decide {TOKEN}") as client:
        refused = rank(client)
        assert refused.status == 401
        assert refused.body["error"]["code"] == "Unauthorized"
        client.token = TOKEN
        unknown = client.ask("POST", "/personalizer/v1.0/events/nothing/reward", {"value": 1})
        assert unknown.status == 404
        assert "nothing" in unknown.body["error"]["message"]
        rank(client, eventId="one")
        outside = client.ask("POST", "/personalizer/v1.0/events/one/reward", {"value": 7})
        assert outside.status == 422
        assert "expected a number in [0, 1]" in outside.body["error"]["message"]
        assert rank(client, actions=[]).body["error"]["code"]
        assert rank(client, actions=[*ACTIONS, ACTIONS[0]]).status == 422
    ar.Study.create(tmp_path / "draws.study", ar.ThompsonSampling(arms=["red"]), wait=None).close()
    with serving(str(tmp_path / "draws.study")) as client:
        assert "ThompsonSampling draws at random" in rank(client).body["error"]["message"]


_PYTHON = """
import json, sys
from azure.cognitiveservices.personalizer import PersonalizerClient
from azure.cognitiveservices.personalizer.models import RankableAction, RankRequest
from msrest.exceptions import HttpOperationError
from msrest.authentication import CognitiveServicesCredentials
client = PersonalizerClient(sys.argv[1], CognitiveServicesCredentials(sys.argv[2]))
actions = [RankableAction(id=name, features=[{"colour": name}]) for name in ("red", "blue", "green")]
asked = {"context_features": [{"device": "phone"}], "event_id": "first", "excluded_actions": ["red"]}
first = client.rank(rank_request=RankRequest(actions=actions, **asked))
client.events.reward(event_id="first", value=1.0)
client.rank(rank_request=RankRequest(actions=actions, event_id="second", defer_activation=True))
client.events.activate("second")
try:
    client.events.reward(event_id="nothing", value=1.0)
    error = None
except HttpOperationError as raised:
    error = json.loads(raised.response.text)["error"]["message"]
ranking = [[one.id, one.probability] for one in first.ranking]
print(json.dumps([first.event_id, first.reward_action_id, ranking, error]))
"""
_NODE = """
const { PersonalizerClient } = require("@azure/cognitiveservices-personalizer");
const { CognitiveServicesCredentials } = require("@azure/ms-rest-azure-js");
(async () => {
  const [url, key] = process.argv.slice(2);
  const client = new PersonalizerClient(new CognitiveServicesCredentials(key), url);
  const actions = ["red", "blue", "green"].map((id) => ({ id, features: [{ colour: id }] }));
  const first = await client.rank({ actions, contextFeatures: [{ device: "phone" }], eventId: "first",
    excludedActions: ["red"] });
  await client.events.reward("first", { value: 1.0 });
  await client.rank({ actions, eventId: "second", deferActivation: true });
  await client.events.activate("second");
  let error = null;
  try { await client.events.reward("nothing", { value: 1.0 }); } catch (raised) { error = raised.message; }
  const ranking = first.ranking.map((one) => [one.id, one.probability]);
  console.log(JSON.stringify([first.eventId, first.rewardActionId, ranking, error]));
})();
"""


def _python_sdk(folder: Path) -> tuple[list[str], dict[str, str]]:
    """Install the SDK for Python."""
    names = ["azure-cognitiveservices-personalizer", "msrest"]
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder / "sdk"), *names]
    subprocess.run(command, check=True, capture_output=True)
    (folder / "ask.py").write_text(_PYTHON)
    command = [sys.executable, "-W", "ignore", str(folder / "ask.py")]
    return command, os.environ | {"PYTHONPATH": str(folder / "sdk")}


def _node_sdk(folder: Path) -> tuple[list[str], dict[str, str]]:
    """Install the SDK for JavaScript."""
    node, npm = needed("Node", shutil.which("node")), needed("npm", shutil.which("npm"))
    names = ["@azure/cognitiveservices-personalizer@2", "@azure/ms-rest-azure-js@2"]
    subprocess.run([npm, "install", "--silent", *names], check=True, capture_output=True, cwd=folder)
    (folder / "ask.js").write_text(_NODE)
    return [node, str(folder / "ask.js")], dict(os.environ)


@pytest.mark.long
@pytest.mark.parametrize(("sdk", "paths"), [(_python_sdk, ["", "/v1/studies/colours"]), (_node_sdk, [""])])
def test_its_own_sdks_are_answered(sdk: Any, paths: list[str], place: str, tmp_path: Path) -> None:
    """The SDK for JavaScript keeps only the host of its address, so it can ask where one study is served."""
    command, environment = sdk(tmp_path)
    with serving(place, tokens=f"decide {TOKEN}\nread read-0123456789abc") as client:
        for path in paths:
            url = f"http://127.0.0.1:{client.port}{path}"
            done = subprocess.run([*command, url, TOKEN], capture_output=True, text=True, env=environment, check=False)
            assert done.returncode == 0, done.stderr
            event, chosen, ranking, error = json.loads(done.stdout)
            assert (event, ranking[0]) == ("first", ["red", 0.0])
            assert [chosen, 1.0] in ranking
            assert "nothing" in error
        client.token = "read-0123456789abc"
        assert client.ask("GET", "/v1/studies/colours").body["decisions"] == {"open": 1, "rewarded": 1}
