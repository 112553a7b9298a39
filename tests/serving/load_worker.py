"""Clients that decide and reward until the service is gone, and keep what it acknowledged."""

from __future__ import annotations

import threading
import time
from typing import Any

from service_kit import Client

import artreplay as ar


class Load:
    """Some clients, each in a thread of its own."""

    def __init__(self, port: int, clients: int, seed: str) -> None:
        self.decided: dict[str, str] = {}  # the id of each acknowledged decision, by its request
        self.rewarded: dict[str, float] = {}  # each acknowledged reward, by the id of its decision
        self.failures: list[Any] = []
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._work, args=[port, f"{seed} {n}"]) for n in range(clients)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Wait until all clients have noticed that the service is gone."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _work(self, port: int, name: str) -> None:
        client, turn = Client(port), 0
        try:
            while not self._stop.is_set():
                turn += 1
                request = f"{name} {turn}"
                answer = client.ask("POST", "/v1/studies/colours/decisions", {"request_id": request})
                if answer.status == 503:  # it may have happened all the same
                    time.sleep(0.02)
                    continue
                if answer.status != 201:
                    self.failures.append(answer)
                    return
                self.decided[request] = id_ = answer.body["id"]
                value = float(turn % 2)
                answer = client.ask("PUT", f"/v1/studies/colours/decisions/{id_}/reward", {"value": value})
                if answer.status == 204:
                    self.rewarded[id_] = value
                elif answer.status != 503:
                    self.failures.append(answer)
        except Exception:  # the service is gone in the middle of an answer
            pass
        finally:
            client.close()


def assert_acknowledged(load: Load, place: str) -> None:
    """What was acknowledged is there once, and the next decision is that of a fresh fold."""
    assert load.failures == []
    with ar.Study.open(place) as study:
        rows = [row for row in study.rows() if row["decision_id"] is not None]
        by_request = {row["request_id"]: row for row in rows}
        assert len(by_request) == len(rows)
        for request, id_ in load.decided.items():
            assert by_request[request]["decision_id"] == id_
            if id_ in load.rewarded:
                assert by_request[request]["reward"] == load.rewarded[id_]
        state = study._ready()
        ours = state.fold().decide(state.counts["decisions"], None)
        state.forget_fold()
        state.journal.drop_snapshots("policy")
        state.journal.drop_snapshots("state")
        assert state.fold().decide(state.counts["decisions"], None) == ours
