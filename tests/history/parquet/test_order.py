"""A log has the same order in memory and laid out, whatever orders it."""

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

pytestmark = pytest.mark.filterwarnings("ignore:.* the same 'at' as an earlier row")
WHOLE = st.integers(-20, 2000)
TEXTS = {
    "integers": WHOLE.map(str),
    "numbers": st.floats(-5, 2000, allow_nan=False).map(repr),
    "padded": st.tuples(st.sampled_from(["", " "]), WHOLE).map(lambda pair: f"{pair[0]}{pair[1]}"),
    "dates": st.dates(datetime.date(2023, 1, 1), datetime.date(2025, 1, 1)).map(str),
}
SIZES = {"integers": int, "numbers": float, "padded": int, "dates": str}
NANOSECONDS = st.lists(st.integers(-3, 3) | st.integers(0, 10**12), max_size=12)
TYPES: dict[str, Any] = {
    "int64": pa.int64(),
    "duration": pa.duration("ns"),
    "timestamp": pa.timestamp("ns"),
    "timestamp with a zone": pa.timestamp("ns", "Europe/Berlin"),
    "decimal256": pa.decimal256(40, 0),
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
        patch.setattr("artreplay.history.parquet.sorter._BATCH_ROWS", 3)
        yield patch


@given(kind=st.sampled_from(sorted(TEXTS)), data=st.data())
@settings(max_examples=settings().max_examples // 4)
def test_text_is_ordered_as_what_it_stands_for(kind, data, tmp_path_factory):
    texts = data.draw(st.lists(TEXTS[kind], max_size=12))
    folder = tmp_path_factory.mktemp("log")
    lines = "".join(f"{row % 3},{row},{text}\n" for row, text in enumerate(texts))
    (folder / "log.csv").write_text("arm,click,at\n" + lines)
    expected = sorted(range(len(texts)), key=lambda row: SIZES[kind](texts[row]))
    columns = {"unit": "arm", "reward": "click", "order": "at"}
    assert rewards(ar.open_history(folder / "log.csv", **columns)) == expected
    ar.index_history(folder / "log.csv", folder / "log", **columns)
    assert rewards(ar.open_history(folder / "log")) == expected


@pytest.mark.long
@given(kind=st.sampled_from(sorted(TYPES)), values=NANOSECONDS, until=st.none() | st.integers(0, 13))
@settings(max_examples=15)
def test_any_type_is_ordered_alike_in_memory_and_laid_out(kind, values, until, tmp_path_factory):
    folder = tmp_path_factory.mktemp("log")
    plain = [Decimal(value) for value in values] if "decimal" in kind else values
    order = pa.array(plain, pa.int64()) if kind == "dictionary" else pa.array(plain, TYPES[kind])
    order = order.dictionary_encode() if kind == "dictionary" else order
    rows = np.arange(len(values))
    log = pa.table({"arm": rows % 3, "click": rows.astype(float), "at": order})
    columns = {"unit": "arm", "reward": "click", "order": "at", "until": until}
    expected = sorted(range(len(values)), key=lambda row: values[row])[:until]
    memory = ar.open_history(log, **columns)
    ar.index_history(log, folder / "log", **columns)
    store = ar.open_history(folder / "log")
    assert rewards(memory) == rewards(store) == expected
    assert set(memory.labels) == set(store.labels) == {row % 3 for row in expected}
    assert store.reward_bounds == ((min(expected), max(expected)) if expected else None)


@pytest.mark.parametrize(
    ("order", "sentence"),
    [
        (["1.0", "2.0", "3.0", "4.0", "5.5", "nan"], "column 'at' in row 5 is missing"),
        (pa.array([[1], [2]]), "column 'at' must be of one type in the whole log, .* got list"),
        (
            pa.array([Decimal(10) ** 39, Decimal(1)], pa.decimal256(45, 0)),
            "column 'at' must be of one type",
        ),
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
        ar.index_history(log, tmp_path / "log", **columns)


def times(column: list[str], folder: Any) -> list[float]:
    """The rows of a log in the order of these texts: in memory, laid out, from CSV and from a frame."""
    lines = "".join(f'{row % 3},{row},"{text}"\n' for row, text in enumerate(column))
    (folder / "log.csv").write_text("arm,click,at\n" + lines)
    columns = {"unit": "arm", "reward": "click", "order": "at"}
    found = rewards(ar.open_history(folder / "log.csv", **columns))
    frame = pa.table({"arm": [row % 3 for row in range(len(column))], "click": range(len(column)), "at": column})
    ar.index_history(frame, folder / "log", **columns)
    assert rewards(ar.open_history(frame, **columns)) == rewards(ar.open_history(folder / "log")) == found
    return found


@pytest.mark.parametrize(
    ("column", "order"),
    [
        (["2024-01-01T10:00:00+02:00", "2024-01-01T09:30:00Z", "2024-01-01T08:15:00+0000"], [0, 2, 1]),
        (["2024-02-01", "2024-01-31 23:59", "2024-01-31T23:59:30.5"], [1, 2, 0]),
        (["9999-01-01", "2024-01-01"], [1, 0]),
        (["2024-01-01 00:00:00.000000002", "2024-01-01 00:00:00.000000001"], [1, 0]),
        (["10", "9", "1e1"], [1, 0, 2]),
    ],
    ids=str,
)
def test_times_are_compared_as_moments(column, order, tmp_path):
    assert times(column, tmp_path) == order


@pytest.mark.parametrize(
    ("column", "row"),
    [
        (["1/2/2024", "1/10/2023"], 0),
        (["9:00", "10:00"], 0),
        (["2024-01-01", "yesterday"], 1),
        (["2024-01-01T10:00:00Z", "2024-01-01T10:00:00"], 1),
        (["2024-01-01", "17"], 1),
        (["b", "a"], 0),
    ],
    ids=str,
)
def test_what_letters_would_order_wrongly_is_refused(column, row, tmp_path):
    sentence = rf"column 'at' in row {row} is '{column[row]}', expected a number, or a time such as 2024-02-01"
    with pytest.raises(InvalidHistory, match=sentence):
        times(column, tmp_path)


def test_whole_numbers_that_fractions_would_round_are_refused(tmp_path):
    whole = ["9007199254740993", "9007199254740992"]
    assert times(whole, tmp_path) == [1, 0]
    with pytest.raises(InvalidHistory, match=r"column 'at' in row 0 is a whole number of at least 2\*\*53"):
        times([*whole, "0.5"], tmp_path)


def test_times_of_several_files_may_be_as_fine_as_they_are(tmp_path):
    (tmp_path / "parts").mkdir()
    for number, unit in enumerate(("s", "us")):
        at = pa.array([1 - number, 3 - number], pa.int64()).cast(pa.timestamp("s", "Europe/Berlin"))
        table = pa.table(
            {"arm": [0, 1], "click": [2.0 * number, 2.0 * number + 1], "at": at.cast(pa.timestamp(unit, "UTC"))}
        )
        pq.write_table(table, tmp_path / "parts" / f"{number}.parquet")
    assert rewards(ar.open_history(tmp_path / "parts", "arm", "click", order="at")) == [2, 0, 3, 1]


@pytest.mark.filterwarnings("error")
def test_ties_are_told(tmp_path):
    log = pa.table({"arm": [0, 1, 2, 0], "click": [0.0, 1.0, 2.0, 3.0], "at": [5, 1, 5, 5]})
    columns = {"unit": "arm", "reward": "click", "order": "at"}
    sentence = "2 rows have the same 'at' as an earlier row. Such rows keep the order of the Table"
    with pytest.warns(UserWarning, match=sentence):
        assert rewards(ar.open_history(log, **columns)) == [1, 0, 2, 3]
    with pytest.warns(UserWarning, match=sentence):
        ar.index_history(log, tmp_path / "log", **columns)
    assert rewards(ar.open_history(tmp_path / "log")) == [1, 0, 2, 3]
