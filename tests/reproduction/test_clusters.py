"""A sweep on a cluster gives the bytes of one process: a real dask cluster and a real ray, on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest
from sweeps import QUICK, stored, sweep, tiny

from artreplay.errors import InvalidParameter
from real_parts import needed_package

pytestmark = [
    pytest.mark.long,
    pytest.mark.xdist_group("clusters"),
    pytest.mark.filterwarnings("ignore"),  # what these packages warn of is theirs
]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("alone")
    sweep(folder, tiny(*QUICK))
    return stored(folder)


def test_dask_started_here(tmp_path: Path, alone: dict[str, bytes]) -> None:
    needed_package("distributed")
    sweep(tmp_path, tiny(*QUICK), backend="dask", jobs=2)
    assert stored(tmp_path) == alone


def test_dask_at_an_address(tmp_path: Path, alone: dict[str, bytes]) -> None:
    needed_package("distributed")
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        sweep(tmp_path, tiny(*QUICK), backend="dask", jobs=None, address=cluster.scheduler_address)
    assert stored(tmp_path) == alone


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nonsense"])
def test_no_dask_at_an_address(tmp_path: Path, address: str) -> None:
    needed_package("distributed")
    with pytest.raises(InvalidParameter, match=f"there is no dask cluster at {address}"):
        sweep(tmp_path, tiny("domains"), backend="dask", address=address)


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1"])
def test_no_ray_at_an_address(tmp_path: Path, address: str) -> None:
    needed_package("ray")
    with pytest.raises(InvalidParameter, match=f"there is no ray cluster at {address}"):
        sweep(tmp_path, tiny("domains"), backend="ray", address=address)


def test_ray(tmp_path: Path, alone: dict[str, bytes]) -> None:
    needed_package("ray")
    sweep(tmp_path, tiny(*QUICK), backend="ray", jobs=2)
    assert stored(tmp_path) == alone
