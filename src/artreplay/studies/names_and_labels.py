"""What callers name things by: ids, requests, subjects, keys and labels. They are checked before they reach others."""

from __future__ import annotations

import unicodedata
from typing import Any

from artreplay.errors import InvalidParameter
from artreplay.history import Label
from artreplay.history.labels import plain_label

MAX_NAME = 256  # characters
MAX_SHOWN = 80  # characters of a wrong value in a sentence
MAX_WHOLE = 1 << 63  # a label that is a number must fit a column of a database
_UNFIT = ("Cc", "Cs")  # control characters and halves of characters, which databases and logs cannot hold


def checked_name(what: str, name: object) -> str:
    """Check an id that a caller gives: a text of at most 256 characters that any database can hold."""
    if not isinstance(name, str):
        raise InvalidParameter(f"must be a text, got {shown(name)}", parameter=what)
    if not name:
        raise InvalidParameter("must have at least one character, got ''", parameter=what)
    if len(name) > MAX_NAME:
        raise InvalidParameter(f"must have at most {MAX_NAME} characters, got {len(name):,}", parameter=what)
    if any(unicodedata.category(letter) in _UNFIT for letter in name):
        raise InvalidParameter(f"must be a text without control characters, got {shown(name)}", parameter=what)
    return name


def checked_label(label: Any) -> Label:
    """Check a label that a caller gives to find an arm. It keeps its type."""
    label = plain_label(label)
    if isinstance(label, int) and not -MAX_WHOLE <= label < MAX_WHOLE:
        raise InvalidParameter("a label that is a number must fit 64 bits")
    if isinstance(label, str) and len(label) > MAX_NAME * MAX_NAME:
        raise InvalidParameter(f"a label must have at most {MAX_NAME * MAX_NAME:,} characters, got {len(label):,}")
    found: Label = label
    return found


def checked_new_label(label: Any) -> Label:
    """Check the label of a new arm."""
    checked = checked_label(label)
    if isinstance(checked, str):
        checked_name("the label of an arm", checked)
    return checked


def shown(value: object) -> str:
    """Show a value that a caller gave, in a few characters whatever it is."""
    try:
        text = repr(value)
    except Exception:  # such as a number of more digits than Python writes
        return f"something of the type {type(value).__name__}"
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}… ({len(text):,} characters)"
