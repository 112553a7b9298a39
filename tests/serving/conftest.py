from __future__ import annotations

import pytest

from artreplay.studies.study_databases import SQLiteJournal


@pytest.fixture(autouse=True)
def _nothing_is_forced_to_disk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.node.get_closest_marker("long") is None:
        monkeypatch.setattr(SQLiteJournal, "synchronous", "OFF")
