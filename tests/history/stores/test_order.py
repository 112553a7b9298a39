"""A log has the same order in memory and in a store, whatever orders it."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import artreplay as ar
from artreplay.errors import InvalidHistory

pytestmark = pytest.mark.filterwarnings("ignore:.* the same 'at' as a row before")
WHOLE = st.integers(-20, 2000)
TEXTS = {
    "integers": WHOLE.map(str),
    "large integers": st.integers(2**63 - 2, 2**64 + 2).map(str),
    "numbers": st.one_of(WHOLE.map(str), st.floats(-5, 2000, allow_nan=False).map(repr)),
    "padded": st.tuples(st.sampled_from(["", " "]), WHOLE).map(lambda pair: f"{pair[0]}{pair[1]}"),
    "dates": st.dates(datetime.date(2023, 1, 1), datetime.date(2025, 1, 1)).map(str),
}
SIZES = {"integers": int, "large integers": int, "numbers": float, "padded": int, "dates": str}
NANOSECONDS = st.lists(st.integers(-3, 3) | st.integers(0, 10**12), max_size=12)
TYPES: dict[str, Any] = {
    "int64": pa.int64(),
    "duration": pa.duration("ns"),
    "timestamp": pa.timestamp("ns"),
    "timestamp with a zone": pa.timestamp("ns", "Europe/Berlin"),
    "decimal256": pa.decimal256(40, 3),
    "dictionary": pa.dictionary(pa.int32(), pa.int64()),
}


def rewards(history: Any) -> list[float]:
    whole = history if isinstance(history, ar.History) else history.load()
    return whole.rewards.tolist()


@pytest.fixture(scope="module", autouse=True)
def small_batches() -> Any:
    """Batches of few rows, so that what a column holds is known from several."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("artreplay.history.sources.source.BATCH", 3)
        yield patch


@given(kind=st.sampled_from(sorted(TEXTS)), data=st.data())
@settings(max_examples=15)
def test_text_is_ordered_as_what_it_stands_for(kind, data, tmp_path_factory):
    texts = data.draw(st.lists(TEXTS[kind], max_size=12))
    folder = tmp_path_factory.mktemp("log")
    lines = "".join(f"{row % 3},{row},{text}\n" for row, text in enumerate(texts))
    (folder / "log.csv").write_text("arm,click,at\n" + lines)
    expected = sorted(range(len(texts)), key=lambda row: SIZES[kind](texts[row]))
    columns = {"unit": "arm", "reward": "click", "order": "at"}
    assert rewards(ar.open_history(folder / "log.csv", **columns)) == expected
    ar.index_history(folder / "log.csv", folder / "log.arh", **columns)
    assert rewards(ar.open_history(folder / "log.arh")) == expected


@pytest.mark.long
@given(kind=st.sampled_from(sorted(TYPES)), values=NANOSECONDS, until=st.none() | st.integers(0, 13))
@settings(max_examples=15)
def test_any_type_is_ordered_alike_in_memory_and_in_a_store(kind, values, until, tmp_path_factory):
    folder = tmp_path_factory.mktemp("log")
    plain = [Decimal(value).scaleb(-3) for value in values] if "decimal" in kind else values
    order = pa.array(plain, pa.int64()) if kind == "dictionary" else pa.array(plain, TYPES[kind])
    order = order.dictionary_encode() if kind == "dictionary" else order
    rows = np.arange(len(values))
    log = pa.table({"arm": rows % 3, "click": rows.astype(float), "at": order})
    columns = {"unit": "arm", "reward": "click", "order": "at", "until": until}
    expected = sorted(range(len(values)), key=lambda row: values[row])[:until]
    memory = ar.open_history(log, **columns)
    ar.index_history(log, folder / "log.arh", **columns)
    store = ar.open_history(folder / "log.arh")
    assert rewards(memory) == rewards(store) == expected
    assert set(memory.labels) == set(store.labels) == {row % 3 for row in expected}
    assert store.reward_bounds == ((min(expected), max(expected)) if expected else None)


def test_a_type_may_become_wider_within_a_log(tmp_path):
    (tmp_path / "parts").mkdir()
    for number, order in enumerate([[9, 10], [9.5, -1.0]]):
        part = pa.table({"arm": [0, 1], "click": [2.0 * number, 2.0 * number + 1], "at": order})
        pq.write_table(part, tmp_path / "parts" / f"{number}.parquet")
    columns = {"unit": "arm", "reward": "click", "order": "at"}
    assert rewards(ar.open_history(tmp_path / "parts", **columns)) == [3, 0, 2, 1]
    ar.index_history(tmp_path / "parts", tmp_path / "log.arh", **columns)
    assert rewards(ar.open_history(tmp_path / "log.arh")) == [3, 0, 2, 1]


@pytest.mark.parametrize(
    ("order", "sentence"),
    [
        (["1", "2", "3", "4", "5.5", "nan"], "column 'at' in row 5 is missing"),
        (pa.array([[1], [2]]), "column 'at' must be of one type that can be ordered"),
        (pa.array([Decimal(10) ** 39, Decimal(1)], pa.decimal256(45, 0)), "column 'at' must be of one type that can"),
    ],
)
def test_what_has_no_order_is_refused(order, sentence, tmp_path):
    log: Any = pa.table({"arm": [0] * len(order), "click": [1] * len(order), "at": order})
    if isinstance(order, list):
        (tmp_path / "log.csv").write_text("arm,click,at\n" + "".join(f"0,1,{text}\n" for text in order))
        log = tmp_path / "log.csv"
    columns = {"unit": "arm", "reward": "click", "order": "at"}
    with pytest.raises(InvalidHistory, match=sentence):
        ar.open_history(log, **columns)
    with pytest.raises(InvalidHistory, match=sentence):
        ar.index_history(log, tmp_path / "log.arh", **columns)
