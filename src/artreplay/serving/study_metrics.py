"""What Prometheus is told: how many decisions and rewards there are, and how long requests take."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from artreplay.serving.owner import Owner
from artreplay.serving.personalizer import PersonalizerPaths

_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)


class ServiceMetrics:
    """Counts of the service and of its studies."""

    content_type = CONTENT_TYPE_LATEST

    def __init__(self, owners: Mapping[str, Owner], aliases: Mapping[str, PersonalizerPaths]) -> None:
        self._owners, self._aliases = owners, aliases
        self._registry = CollectorRegistry()
        self._registry.register(self)
        self._seconds = Histogram(
            "artreplay_request_seconds", "Seconds until a request was answered.", ("route", "method", "status"),
            buckets=_SECONDS, registry=self._registry,
        )  # fmt: skip
        self._observers: dict[tuple[str, str, int], Any] = {}

    def text(self) -> bytes:
        """Return all counts in the format of Prometheus."""
        return generate_latest(self._registry)

    def describe(self) -> list[Metric]:
        """Describe nothing, so that registering does not collect."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Collect what the studies count."""
        decisions = GaugeMetricFamily("artreplay_decisions", "Decisions by state.", labels=("study", "state"))
        others = {
            name: CounterMetricFamily(f"artreplay_{name}", words, labels=("study",))
            for name, words in (
                ("observations", "Rewards of actions that nobody asked for."),
                ("late_rewards", "Rewards that came too late and were refused."),
                ("commits", "Commits of this process."),
                ("calls", "Calls of this process, many of which share a commit."),
                ("ignored_features", "Features that clients of Personalizer sent, and that are not learnt from."),
            )
        }
        owned = GaugeMetricFamily("artreplay_owned", "1 if this process owns the study.", labels=("study",))
        for name, owner in self._owners.items():
            owned.add_metric([name], owner.study is not None)
            if owner.study is None:
                continue
            counts = owner.study.counts()
            for state in ("open", "deferred", "rewarded", "expired", "void"):
                decisions.add_metric([name, state], counts[state])
            for kind, count in (
                ("observations", counts["observations"]), ("late_rewards", counts["late"]),
                ("commits", owner.batches), ("calls", owner.calls),
                ("ignored_features", self._aliases[name].ignored_features),
            ):  # fmt: skip
                others[kind].add_metric([name], count)
        yield from (decisions, owned, *others.values())

    def counting(self, app: ASGIApp) -> ASGIApp:
        """Return the application with its requests counted and timed."""

        async def counted(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            start, status = time.perf_counter(), 500

            async def sending(message: Message) -> None:
                nonlocal status
                if message["type"] == "http.response.start":
                    status = message["status"]
                await send(message)

            try:
                await app(scope, receive, sending)
            finally:
                route = getattr(scope.get("route"), "path", "")  # empty where a request was refused before that
                key = (route, scope["method"] if route else "", status)
                if (observer := self._observers.get(key)) is None:
                    observer = self._observers[key] = self._seconds.labels(*map(str, key))
                observer.observe(time.perf_counter() - start)

        return counted
