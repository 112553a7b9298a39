"""A setting is its content; a result is written whole or not at all, and checked when it is read."""

from __future__ import annotations

import dataclasses
import errno
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from artreplay.errors import InvalidFile
from reproduction.result_store import Result, Store
from reproduction.setting import make_setting

SETTING = make_setting("karmed", "simulate", 3, 0, start="full-start", history=10)
RESULT = Result({"regret": (np.array([1.0, 5.0]), np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.5]]))}, 1.5)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "results")


class TestKeys:
    def test_the_key_is_a_name_for_a_folder_that_does_not_change_between_runs(self) -> None:
        assert SETTING.key == make_setting("karmed", "simulate", 3, 0, history=10, start="full-start").key

    @pytest.mark.parametrize("change", [{"replications": 4}, {"seed": 1}, {"kind": "pulls"}, {"parameters": ()}])
    def test_whatever_changes_the_result_changes_the_key(self, change: dict[str, object]) -> None:
        assert dataclasses.replace(SETTING, **change).key != SETTING.key

    @pytest.mark.parametrize("change", [{"experiment": "theory"}, {"needs": "patrol"}])
    def test_where_it_is_shown_does_not(self, change: dict[str, object]) -> None:
        assert dataclasses.replace(SETTING, **change).key == SETTING.key

    def test_what_is_none_is_not_there(self) -> None:
        assert make_setting("a", "simulate", 1, 0, log=None) == make_setting("a", "simulate", 1, 0)

    def test_a_setting_cannot_be_changed(self) -> None:
        with pytest.raises(dataclasses.FrozenInstanceError):
            SETTING.seed = 1  # type: ignore[misc]


class TestStore:
    @given(values=st.lists(st.lists(st.floats(allow_nan=False), min_size=2, max_size=2), min_size=1, max_size=5))
    def test_what_is_written_is_read(self, tmp_path_factory: pytest.TempPathFactory, values: list[list[float]]) -> None:
        store = Store(tmp_path_factory.mktemp("results"))
        both = {"regret": (np.array([1.0, 2.0]), np.array(values)), "used": (np.array([7.0]), np.array(values)[:, :1])}
        store.write(SETTING, Result(both, 2.0))
        found = store.read(SETTING)
        assert set(found.measured) == {"regret", "used"}
        for metric, (x, expected) in both.items():
            np.testing.assert_array_equal(found.measured[metric][0], x)
            np.testing.assert_array_equal(found.measured[metric][1], expected)
        assert found.seconds == 2.0

    def test_first_and_last_values(self) -> None:
        np.testing.assert_array_equal(RESULT.at_start("regret"), [1, 3, 5])
        np.testing.assert_array_equal(RESULT.at_end("regret"), [2, 4, 6.5])

    def test_a_result_is_one_table_in_long_form(self, store: Store) -> None:
        import pyarrow.parquet as pq

        store.write(SETTING, RESULT)
        table = pq.read_table(store.folder(SETTING) / "result.parquet")
        assert table.column_names == ["metric", "replication", "x", "value"]
        assert table.num_rows == 6

    def test_the_states(self, store: Store) -> None:
        assert store.state(SETTING) == "missing"
        store.write(SETTING, RESULT)
        assert store.state(SETTING) == "finished"

    @pytest.mark.parametrize(
        ("file", "damage", "sentence"),
        [
            ("result.parquet", lambda data: data[:-7], "its checksum does not fit"),
            ("result.parquet", lambda data: data[:40] + b"x" + data[41:], "its checksum does not fit"),
            ("result.parquet", None, "has no whole result"),
            ("setting.json", lambda data: data[: len(data) // 2], "is damaged"),
            ("setting.json", lambda data: b"[]", "is damaged"),
            ("setting.json", None, "has no whole result"),
            ("setting.json", lambda data: data.replace(b'"history": 10', b'"history": 11'), "of another setting"),
        ],
    )
    def test_a_damaged_result_is_not_used(self, store: Store, file, damage, sentence) -> None:
        store.write(SETTING, RESULT)
        path = store.folder(SETTING) / file
        if damage is None:
            path.unlink()
        else:
            path.write_bytes(damage(path.read_bytes()))
        assert sentence in store.state(SETTING)
        with pytest.raises(InvalidFile, match=sentence):
            store.read(SETTING)

    def test_it_can_be_written_again(self, store: Store) -> None:
        store.write(SETTING, RESULT)
        store.write(SETTING, Result(RESULT.measured, 9.0))
        assert store.read(SETTING).seconds == 9.0
        assert [path.name for path in store.root.iterdir()] == [SETTING.key]

    def test_a_full_disk_leaves_what_was_there_and_no_half_result(self, store: Store, monkeypatch) -> None:
        store.write(SETTING, RESULT)
        other = dataclasses.replace(SETTING, seed=5)

        def full(descriptor: int) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, "fsync", full)
        for setting in (SETTING, other):
            with pytest.raises(InvalidFile, match=r"No space left on device\. Finished results are kept"):
                store.write(setting, Result(RESULT.measured, 9.0))
        monkeypatch.undo()
        assert store.read(SETTING).seconds == 1.5
        assert store.state(other) == "missing"
        assert [path.name for path in store.root.iterdir()] == [SETTING.key]

    def test_a_file_in_the_place_of_a_result_is_replaced(self, store: Store) -> None:
        store.root.mkdir()
        store.folder(SETTING).write_text("in the way")
        assert "is damaged" in store.state(SETTING)
        store.write(SETTING, RESULT)
        assert store.state(SETTING) == "finished"

    def test_a_result_that_cannot_be_put_in_place_leaves_the_one_before(self, store: Store, monkeypatch) -> None:
        store.write(SETTING, RESULT)
        replace = os.replace

        def fails(source, target) -> None:
            if Path(source).joinpath("setting.json").exists() and not str(source).endswith(SETTING.key):
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            replace(source, target)

        calls = iter([replace, fails, replace])
        monkeypatch.setattr(os, "replace", lambda source, target: next(calls)(source, target))
        with pytest.raises(InvalidFile, match="Input/output error"):
            store.write(SETTING, Result(RESULT.measured, 9.0))
        monkeypatch.undo()
        assert store.read(SETTING).seconds == 1.5
        assert [path.name for path in store.root.iterdir()] == [SETTING.key]

    def test_what_killed_runs_left_is_removed_a_day_later(self, store: Store) -> None:
        old, new = store.root / ".a.part", store.root / ".b.part"
        for folder in (old, new):
            folder.mkdir(parents=True)
        os.utime(old, (0, 0))
        store.sweep()
        assert not old.exists()
        assert new.exists()

    def test_a_folder_that_is_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "results").write_text("not a folder")
        with pytest.raises(InvalidFile, match="cannot be written"):
            Store(tmp_path / "results").write(SETTING, RESULT)
