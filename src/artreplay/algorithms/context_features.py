"""Turns an encoded context into features, which are those of its columns and then cosines of these."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from artreplay.compiling import Floats, Ints, compiled
from artreplay.history import Contexts

NUMBER, NUMBER_OR_MISSING = 0, -1  # kinds of columns; a kind above 0 is a category, and the number of its values


@compiled(scratch=("features", "encoded"))
class ContextFeatures(NamedTuple):
    """The features of the current context. The linear map uses the first `n_linear`, the map with cosines uses all."""

    kind: Ints  # of each column
    frequency: Floats  # of each cosine, for each linear feature except the constant
    shift: Floats  # of each cosine
    amplitude: float
    n_linear: int
    features: Floats
    encoded: Floats  # the segment, then the columns

    def expand(self) -> None:
        """Compute the features of the encoded context."""
        phi = self.features
        phi[0] = 1.0
        at = 1
        for column in range(len(self.kind)):
            value = self.encoded[column + 1]
            kind = self.kind[column]
            if kind > 0:
                for place in range(kind):
                    phi[at + place] = 1.0 if place == int(value) else 0.0
                at += kind
            else:
                is_missing = math.isnan(value)
                phi[at] = 0.0 if is_missing else value
                at += 1
                if kind == NUMBER_OR_MISSING:
                    phi[at] = 1.0 if is_missing else 0.0
                    at += 1
        inner = self.n_linear - 1
        for row in range(len(self.shift)):
            angle = 0.0
            for j in range(inner):
                angle += self.frequency[row * inner + j] * phi[j + 1]
            phi[self.n_linear + row] = self.amplitude * math.cos(angle + self.shift[row])

    def segment(self) -> int:
        """The segment of the current context."""
        return int(self.encoded[0])


def context_features(contexts: Contexts) -> ContextFeatures:
    """Make the features for some `Contexts`."""
    kinds = [NUMBER_OR_MISSING if scale.missing else NUMBER for scale in contexts.numeric.values()]
    kinds += [len(contexts.categories[name]) + 1 for name in contexts.free]
    return ContextFeatures(
        np.array(kinds, np.int64),
        np.ascontiguousarray(contexts.frequencies.ravel()),
        contexts.shifts,
        math.sqrt(8.0 / max(1, contexts.cosines)),
        contexts.n_linear,
        np.zeros(contexts.n_features),
        np.zeros(contexts.width),
    )
