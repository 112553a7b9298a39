"""Contexts of decisions: how the journal keeps them, and how many of them are encoded together."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from artreplay.algorithms import Algorithm
from artreplay.errors import InvalidFile, InvalidParameter
from artreplay.history import Contexts
from artreplay.history.column_values import as_frame
from artreplay.history.labels import is_missing, plain_label
from artreplay.replay import Base
from artreplay.studies.names_and_labels import shown
from artreplay.studies.study_journal import Entry

Values = dict[str, Any]  # of a context, by the names of its columns, as JSON can hold them

LARGEST_INTEGER = 1 << 53  # beyond it, a float would be another number
MAX_COLUMNS, MAX_LETTERS = 1_000, 16_384  # of one context
MAX_UNKNOWN = 20  # unknown columns that are counted by name


class KnownContext(NamedTuple):
    """A context that was checked: what the journal keeps of it, and what the algorithm sees."""

    values: Values  # of the columns that the algorithm has
    absent: list[str]  # other columns that it has
    unknown: list[str]  # columns that came and that it does not have
    encoded: Any  # numbers, or for a model of the user's own the complete context

    def details(self) -> Values:
        """Return what the entry of a decision says of its context. The values of unknown columns are dropped."""
        odd = {"absent": self.absent, "unknown": self.unknown}
        return {"context": self.values} | {name: columns for name, columns in odd.items() if columns}


def known_context(base: Base, context: Any) -> KnownContext | None:
    """Check a context for an algorithm. Return None if the algorithm hears of none, and none came."""
    contexts = base.contexts
    if contexts is None or context is None:
        base.checked_context(context)  # which refuses it
        return None
    if not isinstance(context, Mapping) or not all(isinstance(name, str) for name in context):
        raise InvalidParameter(
            f"must be a mapping of column names to values, got {shown(context)}", parameter="context"
        )
    values = {name: _plain(name, context[name]) for name in contexts.columns if name in context}
    encoded: Any = contexts.encode_one(values, complete=False)  # which refuses values of another type
    if not isinstance(base, Algorithm):
        encoded = completed(contexts, values)
    absent = [name for name in contexts.columns if name not in values]
    return KnownContext(values, absent, sorted(context.keys() - values.keys())[:MAX_UNKNOWN], encoded)


def _plain(name: str, value: Any) -> Any:
    """Return a value as JSON holds it, so that it is the same when it is read from the journal."""
    value = None if is_missing(value) else plain_label(value)
    problem = None
    if not isinstance(value, (str, bool, int, float, type(None))):
        problem = f"must have a text, a boolean or a number as {name!r}, got {shown(value)}"
    elif isinstance(value, float) and not math.isfinite(value):
        problem = f"must have a finite number as {name!r}, got {value!r}"
    elif isinstance(value, int) and abs(value) > LARGEST_INTEGER:
        problem = f"must have a number of at most 2**53 as {name!r}, or its digits as a text"
    if problem is not None:
        raise InvalidParameter(problem, parameter="context")
    return value


def check_size(context: Any) -> None:
    """Refuse a context that is too large, before it waits with the calls of others."""
    if isinstance(context, Mapping):
        texts = [text for pair in context.items() for text in pair if isinstance(text, (str, bytes))]
        if len(context) > MAX_COLUMNS or sum(map(len, texts)) > MAX_LETTERS:
            raise InvalidParameter(
                f"must have at most {MAX_COLUMNS:,} columns and {MAX_LETTERS:,} characters", parameter="context"
            )


def list_of_contexts(contexts: Any) -> list[Any]:
    """Return the contexts of several decisions, from a list of them or from a frame with a row for each."""
    if isinstance(contexts, (list, tuple)):
        several = list(contexts)
    elif hasattr(contexts, "columns"):
        several = as_frame(contexts).rows(named=True)
    else:
        raise InvalidParameter(f"must be a list of contexts, or a frame, got {contexts!r}", parameter="contexts")
    if not several:
        raise InvalidParameter("must have at least one context, got none", parameter="contexts")
    return several


# -- contexts in the journal ---------------------------------------------------------------------------------------


def context_of(entry: Entry) -> Values | None:
    """Return the context that an entry has, or None."""
    if entry.body is None or '"context"' not in entry.body:
        return None
    context: Values | None = json.loads(entry.body).get("context")
    return context


def context_details(entry: Entry) -> Values:
    """Return what an outcome repeats of the context of its decision, so that it is learnt without looking that up."""
    context = context_of(entry)
    return {} if context is None else {"context": context}


def contexts_of_bodies(bodies: Sequence[str]) -> list[Values]:
    """Return the contexts in the bodies of several entries, which all have one."""
    try:
        return [body["context"] for body in json.loads(f"[{','.join(bodies)}]")]
    except KeyError:
        raise InvalidFile("is damaged: a reward in the journal of the study has no context") from None


def completed(contexts: Contexts, values: Values) -> Values:
    """Return a context with all columns and no others. What is absent is missing."""
    return {name: values.get(name) for name in contexts.columns}


def encoded_together(base: Base, contexts: Contexts, several: Sequence[Values]) -> Any:
    """Return many contexts as the base sees them, exactly as each would be alone."""
    if isinstance(base, Algorithm):
        return contexts.encode({name: [values.get(name) for values in several] for name in contexts.columns})
    encoded = np.empty(len(several), np.object_)
    encoded[:] = [completed(contexts, values) for values in several]
    return encoded
