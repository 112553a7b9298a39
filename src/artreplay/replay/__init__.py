"""How rows of a log reach an algorithm: one step, the ledger of unread rows, and the three policies."""

from artreplay.replay import drift
from artreplay.replay.bases import Base, ComponentBase, ObjectBase, as_base, offers_value
from artreplay.replay.certified import certify, complaint, is_certified, rule_of
from artreplay.replay.drift import Drift
from artreplay.replay.drive import Drive
from artreplay.replay.ledger import Ledger, empty_ledger, enlarged, filled_ledger
from artreplay.replay.log import AnyHistory, BaseLog, Part, Unknown, checked_unknown, takes_totals
from artreplay.replay.log_warnings import warn_about_contexts, warn_of_short_horizon
from artreplay.replay.object_states import (
    attributes_of,
    reseed_generators,
    shared_generators,
    state_difference,
    state_of_base,
)
from artreplay.replay.policy import Policy
from artreplay.replay.reader import ledger_without_rows
from artreplay.replay.related import Relation, checked_relation
from artreplay.replay.saving import decode, encode, load, policy_as_bytes, policy_from_bytes
from artreplay.replay.standing import Cell, Contradiction, used_counts
from artreplay.replay.step import (
    AGAIN,
    BAD_PROPOSAL,
    BAD_VALUE,
    CERTAIN,
    DONE,
    NEEDS_ROOM,
    PENDING,
    PLACES,
    ROUND,
    USED,
    Learner,
    propose,
    settle,
    show,
)
from artreplay.replay.three_policies import ArtificialReplay, FullStart, Ignorant

__all__ = [
    "AGAIN",
    "BAD_PROPOSAL",
    "BAD_VALUE",
    "CERTAIN",
    "DONE",
    "NEEDS_ROOM",
    "PENDING",
    "PLACES",
    "ROUND",
    "USED",
    "AnyHistory",
    "ArtificialReplay",
    "Base",
    "BaseLog",
    "Cell",
    "ComponentBase",
    "Contradiction",
    "Drift",
    "Drive",
    "FullStart",
    "Ignorant",
    "Learner",
    "Ledger",
    "ObjectBase",
    "Part",
    "Policy",
    "Relation",
    "Unknown",
    "as_base",
    "attributes_of",
    "certify",
    "checked_relation",
    "checked_unknown",
    "complaint",
    "decode",
    "drift",
    "empty_ledger",
    "encode",
    "enlarged",
    "filled_ledger",
    "is_certified",
    "ledger_without_rows",
    "load",
    "offers_value",
    "policy_as_bytes",
    "policy_from_bytes",
    "propose",
    "reseed_generators",
    "rule_of",
    "settle",
    "shared_generators",
    "show",
    "state_difference",
    "state_of_base",
    "takes_totals",
    "used_counts",
    "warn_about_contexts",
    "warn_of_short_horizon",
]
