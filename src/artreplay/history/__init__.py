"""What was logged: samples in a fixed order, checked once at the door."""

from artreplay.history.allocation import Allocation
from artreplay.history.fingerprint import Fingerprint
from artreplay.history.history import History
from artreplay.history.labels import Label, encode_labels

__all__ = ["Allocation", "Fingerprint", "History", "Label", "encode_labels"]
