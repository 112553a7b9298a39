"""Logs, whose rows have a fixed order and are checked once, when they are read."""

from artreplay.history.contexts import Contexts, Numeric, contexts_of
from artreplay.history.fingerprint import Fingerprint
from artreplay.history.history import Allocation, HasFingerprint, History
from artreplay.history.labels import Action, Label, Unit, encode_labels
from artreplay.history.open_log import open_history
from artreplay.history.parquet import append_history, compact_history, index_history
from artreplay.history.stored_log import StoredLog
from artreplay.history.totals import Totals

__all__ = [
    "Action",
    "Allocation",
    "Contexts",
    "Fingerprint",
    "HasFingerprint",
    "History",
    "Label",
    "Numeric",
    "StoredLog",
    "Totals",
    "Unit",
    "append_history",
    "compact_history",
    "contexts_of",
    "encode_labels",
    "index_history",
    "open_history",
]
