"""A setting: one line of one figure, as data; settings of equal content share a result."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

REPLAY, FULL, BATCH, IGNORANT = "artificial-replay", "full-start", "full-start-batch", "ignorant"  # starts
FORMAT = 1  # of results; a change in what a setting means, or in how results are stored, makes it larger


@dataclass(frozen=True)
class Setting:
    """What is computed: a kind of computation, its parameters, how many replications, and the seed.

    `experiment` says where it is shown and `needs` what must be there to compute it; they are no part of the key, so
    that two figures share a line they have in common.
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
        """Everything that determines the result, as canonical JSON."""
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
        """A parameter, or the default where it has none."""
        return self._by_name.get(name, default)

    def describe(self) -> str:
        """A few words for messages.

        >>> make_setting("karmed", "simulate", 60, 0, start="full-start", history=10).describe()
        'karmed (history 10, start full-start)'
        """
        shown = [f"{name} {_text(value)}" for name, value in self.parameters if name in _TELLING]
        return f"{self.experiment} ({', '.join(shown)})" if shown else self.experiment


# The parameters that tell the settings of one experiment apart.
_TELLING = ("algorithm", "bad_share", "cells", "environment", "history", "log", "noise", "options", "start")


def _text(value: Any) -> str:
    return " ".join(_text(part) for part in value) if isinstance(value, tuple) else str(value)


def make_setting(
    experiment: str, kind: str, replications: int, seed: int, needs: str | None = None, **parameters: Any
) -> Setting:
    """A setting with its parameters given by name; those that are None are left out."""
    kept = tuple(sorted((name, value) for name, value in parameters.items() if value is not None))
    return Setting(experiment, kind, kept, replications, seed, needs)
