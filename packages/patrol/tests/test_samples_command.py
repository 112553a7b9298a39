"""The samples of a park for algorithms of artreplay, and the example that runs two of them on it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from walks import bay_park

import artreplay as ar
from artreplay.cli import main
from artreplay_patrol.samples import samples_of

PAGE = Path(__file__).parent.parent / "docs" / "patrol-samples.md"


@pytest.fixture
def samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    park = bay_park(tmp_path / "park")
    monkeypatch.chdir(tmp_path)
    assert main(["patrol", "samples", "park"]) == 0
    assert len(pq.read_table("samples.parquet")) == len(samples_of(park.visits)[1])
    return tmp_path / "samples.parquet"


def test_the_file_is_the_history_of_the_park(samples: Path) -> None:
    history, _ = samples_of(bay_park(samples.parent / "again").visits)
    read = ar.open_history(samples, unit=["x", "y"], reward="reward", level="level")
    assert np.array_equal(read.points, history.points)
    assert np.array_equal(read.rewards, history.rewards)
    assert np.array_equal(read.levels, history.levels)
    assert samples.stat().st_mode & 0o077 == 0


def test_the_example_of_the_page_runs_and_stays_inside(samples: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A dozen lines, both algorithms, and only boxes that a plan may choose."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(code.splitlines()) <= 14
    capsys.readouterr()
    found: dict[str, object] = {}
    with ar.compiling.using("interpreted"):
        exec(code, found)
    said = capsys.readouterr().out
    assert "TreeAllocation [" in said
    assert "CellRegression [" in said
    mask = np.array(found["park"]["inside"])  # type: ignore[index]
    for base in (found["tree"], found["surfaces"]):
        for point, level in ar.ArtificialReplay(base, found["history"]).ask():  # type: ignore[arg-type]
            assert mask[tuple((np.array(point) * len(mask)).astype(int))]
            assert level in (1.0, 3.0, 6.0)
