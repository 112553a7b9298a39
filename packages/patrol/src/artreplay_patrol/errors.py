"""The errors of this package: each is an `ArtReplayError`, so that commands say it in one sentence."""

from __future__ import annotations

from artreplay.errors import ArtReplayError


class InvalidRecords(ArtReplayError, ValueError):
    """Patrol records that cannot be used as they are; the sentence says what to change."""
