"""The contexts of a log are the same wherever it lies, and a log whose contexts changed is another log."""

from __future__ import annotations

import datetime
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store_logs import PLACES, Log, opened

import artreplay as ar
from artreplay.errors import InvalidHistory, InvalidParameter

NAMES = ["age", "country", "is new"]
COLUMNS = {"unit": "arm", "reward": "click", "contexts": NAMES}


def random_log(rows: int, seed: int) -> Log:
    rng = np.random.default_rng(seed)
    values = {
        "arm": rng.integers(0, 4, rows).tolist(),
        "click": rng.choice([0.0, 0.5, 1.0], rows).tolist(),
        "age": rng.choice([None, 31, 2.5, -0.0], rows).tolist(),
        "country": rng.choice([None, "NL", "née", "a, b"], rows).tolist(),
        "is new": rng.choice([None, True, False], rows).tolist(),
    }
    types = [pa.int64(), pa.float64(), pa.float64(), pa.string(), pa.bool_()]
    arrays = [pa.array(column, kind) for column, kind in zip(values.values(), types, strict=True)]
    return Log(pa.table(arrays, list(values)), COLUMNS)


def held(contexts: pa.Table | None) -> dict[str, list[object]]:
    assert contexts is not None
    return contexts.to_pydict()


@pytest.mark.parametrize("place", PLACES)
@given(rows=st.integers(0, 40), seed=st.integers(0, 10**6))
@settings(max_examples=5)
def test_contexts_are_the_same_in_memory_and_in_a_folder(place, rows, seed):
    log = random_log(rows, seed)
    with opened(log, place) as store:
        memory = log.history()
        assert store.context_names == memory.context_names == tuple(NAMES)
        assert held(store.contexts) == held(memory.contexts) == log.table.select(NAMES).to_pydict()
        scanned = [row for part in store.scan() for row in part.contexts.to_pylist()]
        assert scanned == log.table.select(NAMES).to_pylist()
        assert store.fingerprint.first_difference(memory.fingerprint) is None
        if place != "adopted":
            assert held(store.first(rows // 2).contexts) == held(memory.first(rows // 2).contexts)


def test_contexts_are_the_same_from_every_kind_of_file(tmp_path):
    log = random_log(50, 1)
    pq.write_table(log.table, tmp_path / "log.parquet")
    rows = log.table.to_pylist()
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, rows)))
    log.table.to_pandas().to_csv(tmp_path / "log.csv", index=False)
    for source in (log.table.to_pandas(), *tmp_path.iterdir()):
        found = ar.open_history(source, **COLUMNS)
        assert held(found.contexts) == held(log.history().contexts)
        assert found.fingerprint.first_difference(log.history().fingerprint) is None


def test_every_way_to_cut_and_to_order_a_log_keeps_its_contexts():
    history = random_log(30, 2).history()
    table = history.contexts.to_pylist()
    assert history.first(7).contexts.to_pylist() == table[:7]
    assert (
        ar.History.from_frame(random_log(30, 2).table, "arm", "click", contexts=NAMES, until=5).contexts.num_rows == 5
    )
    order = np.random.default_rng(0).permutation(30)
    assert history.rows(order).contexts.to_pylist() == [table[row] for row in order]
    shuffled = history.shuffled(3)
    same = {
        (shuffled.unit(row), shuffled.rewards[row], str(shuffled.contexts.slice(row, 1).to_pylist()))
        for row in range(30)
    }
    assert same == {(history.unit(row), history.rewards[row], str([table[row]])) for row in range(30)}


def test_contexts_are_a_part_of_the_fingerprint_and_only_where_there_are_some():
    units, rewards, ages = [0, 1], [1.0, 0.0], {"age": [31, None]}
    plain, known = ar.History(units, rewards).fingerprint, ar.History(units, rewards, contexts=ages).fingerprint
    assert plain.digests.tolist() == [10013931337839372872, 6983524103854567610]
    assert known.first_difference(plain) == (0, 0)
    for other in ({"age": [31, 4]}, {"old": [31, None]}, {"age": ["31", None]}):
        assert ar.History(units, rewards, contexts=other).fingerprint.first_difference(known) is not None
    two = {"a": [1, 2], "b": ["x", "y"]}
    turned = dict(reversed(two.items()))
    prints = [ar.History(units, rewards, contexts=some).fingerprint for some in (two, turned)]
    assert prints[0].first_difference(prints[1]) is None


REFUSED = {
    "dates": (
        [datetime.date(2026, 1, 1)] * 2,
        r"\(column 'a'\) must hold numbers, texts or booleans, got date32.*hour",
    ),
    "kinds": ([1, "one"], r"context \(column 'a'\) must hold values of one kind"),
    "lengths": ([1], r"must have one value for each of 2 rows, got 1"),
    "infinity": ([1, np.inf], r"context \(column 'a'\) in row 1 is infinite, expected a finite number"),
    "large numbers": ([1, 2**60 + 1], r"whole numbers that a float cannot hold .*Make them texts"),
    "lists": ([[1], [2]], r"must hold numbers, texts or booleans, got list"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_is_no_context_is_refused_by_name(why):
    values, sentence = REFUSED[why]
    with pytest.raises(InvalidHistory, match=sentence):
        ar.History([0, 1], [1, 0], contexts={"a": values})


def test_columns_of_contexts_have_names_of_their_own(tmp_path):
    table = pa.table({"unit": [0], "row": [1], "click": [1.0]})
    for contexts, sentence in (
        (["click"], "contexts must be distinct columns other than unit and reward"),
        (["row", "row"], "contexts must be distinct columns other than unit and reward"),
        ("row", "contexts must be a list of column names, got 'row'"),
    ):
        with pytest.raises(InvalidParameter, match=sentence):
            ar.open_history(table, unit="unit", reward="click", contexts=contexts)
    with pytest.raises(InvalidHistory, match="contexts must name one column, got 'age'"):
        ar.open_history(table, unit="unit", reward="click", contexts=["age"])
    with pytest.raises(InvalidParameter, match=r"contexts must have names other than .*, got 'row'"):
        ar.index_history(table, tmp_path / "log", unit="unit", reward="click", contexts=["row"])
    with pytest.raises(InvalidHistory, match="contexts must be columns with names"):
        ar.History([0], [1], contexts={})


def test_a_column_holds_the_same_kind_in_all_that_is_appended(tmp_path):
    day = {"arm": ["red"], "click": [1.0]}
    ar.index_history(pa.table(day | {"age": [None]}), tmp_path / "log", unit="arm", reward="click", contexts=["age"])
    assert ar.append_history(pa.table(day | {"age": [31]}), tmp_path / "log", grown=False) == 1
    with pytest.raises(InvalidHistory, match=r"context \(column 'age'\) in row 0 must hold numbers .* got texts"):
        ar.append_history(pa.table(day | {"age": ["old"]}), tmp_path / "log", grown=False)
    assert held(ar.open_history(tmp_path / "log").contexts) == {"age": [None, 31.0]}
    with pytest.raises(InvalidParameter, match=r"contexts must be \['age'\], as .* was indexed, got \['sex'\]"):
        ar.open_history(tmp_path / "log", contexts=["sex"])


def test_contexts_of_many_rows_are_sorted_outside_memory_as_they_are(tmp_path, monkeypatch):
    monkeypatch.setattr("artreplay.history.parquet.sorter._BATCH_ROWS", 8)
    monkeypatch.setattr("artreplay.history.sources.source.BATCH", 5)
    table = random_log(60, 4).table
    for name, kind in (("age", pa.float64()), ("country", pa.string()), ("is new", pa.bool_())):
        late = pa.concat_arrays([pa.nulls(30, kind), table.column(name).combine_chunks()[30:]])
        table = table.set_column(table.schema.get_field_index(name), name, late)
    pq.write_table(table, tmp_path / "log.parquet", row_group_size=7)
    columns = COLUMNS | {"order": "at"}
    at = np.random.default_rng(0).permutation(60)
    pq.write_table(table.append_column("at", pa.array(at)), tmp_path / "log.parquet", row_group_size=7)
    ar.index_history(tmp_path / "log.parquet", tmp_path / "log", **columns)
    assert held(ar.open_history(tmp_path / "log").contexts) == table.select(NAMES).take(np.argsort(at)).to_pydict()
