"""A setting is one line of one figure, as data. Settings with the same content share a result."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

REPLAY, FULL, BATCH, IGNORANT = "artificial-replay", "full-start", "full-start-batch", "ignorant"  # starts
REBUILT = "published-allocation"  # the kind of settings that the authors' code for allocations plays, rebuilt
FORMAT = 1  # of results; raise it when the meaning of a setting or the storage of results changes


@dataclass(frozen=True)
class Setting:
    """What to compute: a kind of computation, its parameters, the number of replications, and the seed.

    `experiment` says where it is shown, and `needs` which package it requires. Neither is a part of the key, so two
    figures can share a line.
    """

    experiment: str
    kind: str
    parameters: tuple[tuple[str, Any], ...]
    replications: int
    seed: int
    needs: str | None = None

    @cached_property
    def key(self) -> str:
        """The name of its folder of results."""
        return f"{self.kind}-{hashlib.blake2b(self.content().encode(), digest_size=10).hexdigest()}"

    def content(self) -> str:
        """Return everything that determines the result, as canonical JSON."""
        document = {
            "format": FORMAT,
            "kind": self.kind,
            "parameters": dict(self.parameters),
            "replications": self.replications,
            "seed": self.seed,
        }
        return json.dumps(document, sort_keys=True)

    @cached_property
    def _by_name(self) -> dict[str, Any]:
        return dict(self.parameters)

    def __getitem__(self, name: str) -> Any:
        return self._by_name[name]

    def get(self, name: str, default: Any = None) -> Any:
        """Return a parameter, or the default if it has none."""
        return self._by_name.get(name, default)

    def describe(self) -> str:
        """Describe the setting in a few words for messages.

        >>> make_setting("karmed", "simulate", 60, 0, start="full-start", history=10).describe()
        'karmed (history 10, start full-start)'
        """
        shown = [f"{name} {_text(value)}" for name, value in self.parameters if name in _TELLING]
        return f"{self.experiment} ({', '.join(shown)})" if shown else self.experiment


# The parameters in which settings of one experiment differ.
_TELLING = ("adaptive", "algorithm", "bad_share", "cells", "environment", "history", "log", "noise", "options", "start")


def _text(value: Any) -> str:
    return " ".join(_text(part) for part in value) if isinstance(value, tuple) else str(value)


def make_setting(
    experiment: str, kind: str, replications: int, seed: int, needs: str | None = None, **parameters: Any
) -> Setting:
    """Make a setting from parameters by name, leaving out those that are None."""
    kept = tuple(sorted((name, value) for name, value in parameters.items() if value is not None))
    return Setting(experiment, kind, kept, replications, seed, needs)
