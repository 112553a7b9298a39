"""A sweep: what is finished is not computed again, what is broken is, and nothing depends on where it was computed."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest
from sweeps import QUICK, stored, sweep, tiny

from artreplay.errors import InvalidFile, InvalidParameter
from reproduction import runner
from reproduction.catalogue import SCIKIT
from reproduction.result_store import Store
from reproduction.runner import WorkerLost
from reproduction.setting import Setting, make_setting


@pytest.fixture
def settings() -> list[Setting]:
    return tiny(*QUICK)


def test_what_is_finished_is_never_computed_again(tmp_path: Path, settings: list[Setting], monkeypatch) -> None:
    first = sweep(tmp_path, settings)
    before = stored(tmp_path)
    monkeypatch.setattr(runner, "compute", lambda *_, **__: pytest.fail("computed again"))
    again = sweep(tmp_path, settings)
    assert {one.key for one in first.computed} == {one.key for one in again.found} == set(before)
    assert not again.computed
    assert stored(tmp_path) == before


def test_force_computes_everything_again(tmp_path: Path, settings: list[Setting]) -> None:
    first = sweep(tmp_path, settings)
    before = stored(tmp_path)
    assert len(sweep(tmp_path, settings, force=True).computed) == len(first.computed)
    assert stored(tmp_path) == before


def test_an_interrupted_run_goes_on(tmp_path: Path, settings: list[Setting], monkeypatch) -> None:
    compute, count = runner.compute, iter(range(1000))

    def stops(*arguments, **options):
        if next(count) == 3:
            raise KeyboardInterrupt
        return compute(*arguments, **options)

    monkeypatch.setattr(runner, "compute", stops)
    with pytest.raises(KeyboardInterrupt):
        sweep(tmp_path, settings)
    assert len(stored(tmp_path)) == 3
    done = sweep(tmp_path, settings)
    assert len(done.found) == 3
    assert done.computed


def test_a_disk_that_fills_loses_only_the_setting_at_hand(tmp_path: Path, settings: list[Setting], monkeypatch) -> None:
    write, count = Store.write, iter(range(1000))

    def fills(self, setting, result):
        if next(count) >= 2:
            raise InvalidFile("the disk is full; what was finished before is kept")
        write(self, setting, result)

    monkeypatch.setattr(Store, "write", fills)
    with pytest.raises(InvalidFile, match="is kept"):
        sweep(tmp_path, settings)
    monkeypatch.undo()
    assert len(sweep(tmp_path, settings).found) == 2


def test_a_damaged_result_is_computed_again_and_told(tmp_path: Path, settings: list[Setting]) -> None:
    sweep(tmp_path, settings)
    before = stored(tmp_path)
    victim = next(tmp_path.glob("*/result.parquet"))
    victim.write_bytes(victim.read_bytes()[:-1])
    done = sweep(tmp_path, settings)
    assert [one.key for one in done.computed] == [victim.parent.name]
    assert "checksum" in done.damaged[0]
    assert stored(tmp_path) == before


def test_settings_that_need_something_are_skipped_not_faked(tmp_path: Path, monkeypatch) -> None:
    settings = tiny("domains", "imbalanced")
    monkeypatch.setattr(runner, "missing", lambda setting: setting.needs)  # as on a machine without scikit-learn
    done = sweep(tmp_path, [one for one in settings if one.needs], force=True)
    assert not done.computed
    assert {one.needs for one in done.skipped} == {SCIKIT}
    assert {one["environment"] for one in done.skipped} == {"patrol", "quadratic"}
    assert not stored(tmp_path)


def test_scikit_learn_is_found_where_it_is() -> None:
    setting = make_setting("performance", "simulate", 1, 0, SCIKIT)
    assert (runner.missing(setting) is None) == (importlib.util.find_spec("sklearn") is not None)


def test_equal_settings_of_two_figures_are_computed_once(tmp_path: Path) -> None:
    one, other = (make_setting(name, "surface", 1, 0, environment="hills", finest=8, shown=4) for name in "ab")
    assert len(sweep(tmp_path, [one, other]).computed) == 1


@pytest.mark.long
def test_two_processes_give_the_bytes_of_one(tmp_path: Path, settings: list[Setting]) -> None:
    sweep(tmp_path / "one", settings)
    sweep(tmp_path / "two", settings, jobs=2)
    assert stored(tmp_path / "one") == stored(tmp_path / "two")


@pytest.mark.long
def test_a_killed_worker_is_told_and_the_next_run_goes_on(tmp_path: Path, settings: list[Setting]) -> None:
    fixed = {"bonus": "practical", "samples": (1000,), "horizon": 10}
    slow = [make_setting("theory", "below-mean", 200, seed, **fixed) for seed in range(2)]

    def kill_soon() -> None:
        from joblib.externals.loky import reusable_executor

        while len(stored(tmp_path)) < 2:
            time.sleep(0.01)
        for process in list(reusable_executor._executor._processes):
            os.kill(process, signal.SIGKILL)

    killer = threading.Thread(target=kill_soon)
    killer.start()
    with pytest.raises(WorkerLost, match=r"was killed.* Finished results are kept"):
        sweep(tmp_path, [*settings, *slow], jobs=2)
    killer.join()
    finished = set(stored(tmp_path))
    assert len(finished) >= 2
    assert {one.key for one in sweep(tmp_path, [*settings, *slow]).found} == finished


def test_results_of_other_code_are_counted(tmp_path: Path, settings: list[Setting], monkeypatch) -> None:
    sweep(tmp_path, settings)
    assert sweep(tmp_path, settings).of_other_code == 0
    monkeypatch.setattr(runner, "code_fingerprint", lambda: "other")
    done = sweep(tmp_path, settings)
    assert done.of_other_code == len(done.found) > 0


def test_what_trains_an_estimator_comes_last(tmp_path: Path) -> None:
    settings = [one for one in tiny("imbalanced") if one.needs or one["start"] == "ignorant"]
    done = sweep(tmp_path, settings)
    assert [one.needs for one in done.computed] == [None] * 3 + [SCIKIT] * 4
    assert 0.0 < done.seconds_before_training < done.seconds


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="jobs must be at least 1, got 0"):
        sweep(tmp_path, [], jobs=0)
    with pytest.raises(InvalidParameter, match="the backend must be one of loky, dask, ray, got 'spark'"):
        sweep(tmp_path, [], backend="spark")
    with pytest.raises(InvalidParameter, match="loky stays on this machine"):
        sweep(tmp_path, [], address="tcp://127.0.0.1:1")


@pytest.mark.parametrize(("backend", "package"), [("dask", "distributed"), ("ray", "ray")])
def test_a_package_that_is_missing_is_named(tmp_path: Path, monkeypatch, backend: str, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InvalidParameter, match=rf"needs the package {package}: pip install artreplay\[cluster\]"):
        sweep(tmp_path, tiny("domains"), backend=backend)
