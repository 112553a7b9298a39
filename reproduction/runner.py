"""Computes settings without a result, in several processes or on a cluster, and writes each result as it comes."""

from __future__ import annotations

import importlib.util
import logging
import os
import socket
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from artreplay.compiling import Mode
from artreplay.engine import Progress
from artreplay.errors import ArtReplayError, InvalidParameter, checked_count
from reproduction.catalogue import NETWORKS, SCIKIT
from reproduction.computing import code_fingerprint, compute
from reproduction.result_store import Result, Store
from reproduction.setting import REBUILT, Setting

Backend = Literal["loky", "dask", "ray"]

_PATIENCE = 10.0  # seconds to wait for a cluster to answer


class WorkerLost(ArtReplayError):
    """A process that computed a setting was killed. Finished results are kept."""


@dataclass
class Done:
    """What a run did."""

    computed: list[Setting] = field(default_factory=list)
    found: list[Setting] = field(default_factory=list)  # finished in an earlier run
    skipped: list[Setting] = field(default_factory=list)  # settings that need a package that is missing
    damaged: list[str] = field(default_factory=list)  # what was wrong with results that were computed again
    of_other_code: int = 0  # results that were found, computed by other sources
    seconds: float = 0.0
    seconds_before_training: float = 0.0  # seconds until only settings that train an estimator were left
    processor_seconds: dict[str, float] = field(default_factory=dict)  # by the key of the setting


def missing(setting: Setting) -> str | None:
    """Return what a setting needs that is missing, or None if it can be computed."""
    if setting.needs == SCIKIT and importlib.util.find_spec("sklearn") is not None:
        return None
    return setting.needs


def run(
    settings: Iterable[Setting],
    store: Store,
    *,
    jobs: int | None = None,
    force: bool = False,
    backend: Backend = "loky",
    address: str | None = None,
    mode: Mode = "auto",
) -> Done:
    """Compute unfinished settings. Each result is written as it comes, so the next run continues from there.

    Results do not depend on `jobs`, `backend` or `mode`. `address` is that of a running cluster. Without it, a cluster
    is started on this machine.
    """
    check_backend(backend, address)
    if jobs is not None or address is None:
        jobs = checked_jobs(jobs)
    done, began = Done(), time.perf_counter()
    store.sweep()
    todo = _plan(settings, store, force, done)
    jobs = jobs if jobs is None else max(min(jobs, len(todo)), 1)
    others = sum(1 for setting in todo if not _trains(setting))
    with Progress("computing", len(todo), lines=True) as progress:
        for setting, result in _results(todo, jobs, backend, address, mode):
            store.write(setting, result)
            done.computed.append(setting)
            done.processor_seconds[setting.key] = result.seconds
            progress.update(len(done.computed))
            done.seconds = time.perf_counter() - began
            others -= not _trains(setting)
            if others == 0 and not _trains(setting):
                done.seconds_before_training = done.seconds
    return done


def check_backend(backend: str, address: str | None) -> None:
    """Refuse a backend that does not exist, or an address for a backend that has none."""
    if backend not in get_args(Backend):
        raise InvalidParameter(f"the backend must be one of {', '.join(get_args(Backend))}, got {backend!r}")
    if backend == "loky" and address is not None:
        raise InvalidParameter("an address is for the backends dask and ray, and loky stays on this machine")


def checked_jobs(jobs: int | None) -> int:
    """Return how many processes to use, by default one for each core."""
    if jobs is not None:
        return checked_count("jobs", jobs)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _plan(settings: Iterable[Setting], store: Store, force: bool, done: Done) -> list[Setting]:
    """Return the settings to compute, each once. The longest come first, and those that train an estimator last."""
    todo = []
    for setting in {setting.key: setting for setting in settings}.values():
        if missing(setting) is not None:
            done.skipped.append(setting)
            continue
        state = "missing" if force else store.state(setting)
        if state == "finished":
            done.found.append(setting)
            done.of_other_code += store.read(setting).code != code_fingerprint()
            continue
        if state != "missing":
            done.damaged.append(state)
        todo.append(setting)
    return sorted(todo, key=lambda setting: (_trains(setting), -_guess(setting)))


def _trains(setting: Setting) -> bool:
    """Return whether an estimator is trained again and again, which takes by far the longest."""
    return setting.get("algorithm") in NETWORKS


def _guess(setting: Setting) -> float:
    """Guess how long a setting takes, in no particular unit. Long settings come first, so processes end together."""
    by_round = {
        "Regressor": 500.0,
        "published_network": 1000.0,
        REBUILT: 200.0,
        "IDS": 100.0,
        "PublishedIDS": 100.0,
        "TreeAllocation": 20.0,
        "GridAllocation": 10.0,
        "CellRegression": 200.0,
    }
    rounds = setting.get("horizon", 1) + 0.1 * setting.get("history", 0)
    return setting.replications * float(rounds) * by_round.get(setting.get("algorithm", setting.kind), 1.0)


def _results(
    todo: list[Setting], jobs: int | None, backend: Backend, address: str | None, mode: Mode
) -> Iterator[tuple[Setting, Result]]:
    if backend == "loky" and (jobs == 1 or len(todo) <= 1):
        for setting in todo:
            yield setting, compute(setting, mode=mode)
        return
    from joblib import Parallel, delayed

    workers = -1 if jobs is None else jobs  # -1 uses all workers of a cluster
    with _cluster(backend, address, jobs), warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", "[0-9]* tasks which were still being processed"
        )  # raised when a run is stopped
        warnings.filterwarnings(
            "ignore", "A worker stopped while some jobs"
        )  # raised when joblib replaces a worker that uses much memory
        try:
            for batch in _batches(todo, backend, workers):
                how = "list" if backend == "ray" else "generator_unordered"
                parallel = Parallel(n_jobs=workers, return_as=how, batch_size=1, pre_dispatch="2*n_jobs")
                yield from parallel(delayed(_computed)(setting, mode) for setting in batch)
        except _lost_worker_errors() as error:
            raise WorkerLost(
                "a process that computed a setting was killed. Was there enough memory? "
                "Finished results are kept, and the next run continues from there"
            ) from error


def _batches(todo: list[Setting], backend: Backend, workers: int) -> list[list[Setting]]:
    """Return all settings in one batch. On ray batches are small, because joblib returns only whole ones."""
    size = len(todo) if backend != "ray" else 4 * abs(workers)
    return [todo[first : first + size] for first in range(0, len(todo), max(size, 1))]


def _computed(setting: Setting, mode: Mode) -> tuple[Setting, Result]:
    return setting, compute(setting, mode=mode)


def _lost_worker_errors() -> tuple[type[BaseException], ...]:
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    found: list[type[BaseException]] = [TerminatedWorkerError]
    if importlib.util.find_spec("distributed") is not None:
        from distributed import KilledWorker

        found.append(KilledWorker)
    if importlib.util.find_spec("ray") is not None:
        from ray import exceptions

        found += [exceptions.RayActorError, exceptions.WorkerCrashedError, exceptions.OutOfMemoryError]
    return tuple(found)


@contextmanager
def _cluster(backend: Backend, address: str | None, jobs: int | None) -> Iterator[None]:
    """Send the work of joblib to this backend, inside the block."""
    from joblib import parallel_config

    if backend == "loky":
        with parallel_config("loky"):
            yield
    elif backend == "dask":
        distributed = _package("distributed", "dask")
        logging.getLogger("distributed").setLevel(logging.CRITICAL)  # our own error says what went wrong
        try:
            if address is None:
                made = distributed.Client(n_workers=jobs, threads_per_worker=1, dashboard_address=None)
            else:
                made = distributed.Client(address, timeout=_PATIENCE)
        except (OSError, ValueError, TimeoutError) as error:
            raise InvalidParameter(f"there is no dask cluster at {address}: {error}") from error
        with made, parallel_config("dask"):
            yield
    else:
        ray = _package("ray", "ray")
        joblib_on_ray: Any = importlib.import_module("ray.util.joblib")
        ours = not ray.is_initialized()
        if ours:
            _check_reachable(address)
            processors = {} if address is not None else {"num_cpus": jobs}
            try:
                ray.init(address=address, **processors, logging_level="ERROR", log_to_driver=False)
            except (OSError, ValueError, RuntimeError) as error:
                raise InvalidParameter(f"there is no ray cluster at {address}: {error}") from error
        try:
            joblib_on_ray.register_ray()
            with parallel_config("ray"):
                yield
        finally:
            if ours:
                ray.shutdown()


def _check_reachable(address: str | None) -> None:
    """Refuse an address host:port where nobody listens, because ray itself would wait for minutes."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        try:
            socket.create_connection((host, int(port)), timeout=_PATIENCE).close()
        except OSError as error:
            raise InvalidParameter(f"there is no ray cluster at {address}: {error.strerror or error}") from error


def _package(name: str, backend: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise InvalidParameter(
            f"the backend {backend} needs the package {name}: pip install artreplay[cluster]"
        ) from error
