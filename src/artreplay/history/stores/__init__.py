"""Logs larger than memory: laid out so that a policy reads the part it needs, and nothing else."""

from artreplay.history.stores.building import append_history, compact_history, index_history
from artreplay.history.stores.opening import check_store, open_store
from artreplay.history.stores.store import ArmStore, Fetched, PointStore, Reading, Region, Store

__all__ = [
    "ArmStore",
    "Fetched",
    "PointStore",
    "Reading",
    "Region",
    "Store",
    "append_history",
    "check_store",
    "compact_history",
    "index_history",
    "open_store",
]
