"""`python -m reproduction run` and `report`: the figures and numbers of the paper."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

import artreplay as ar
from artreplay.console import SeedOption, run_command, seconds, show, table
from artreplay.errors import InvalidFile
from reproduction.catalogue import Experiment, Scale, experiments, scale_of
from reproduction.result_store import Store
from reproduction.results import Results
from reproduction.runner import Done, check_backend, checked_jobs, missing, run


class BackendName(StrEnum):
    """Where settings are computed."""

    LOKY = "loky"
    DASK = "dask"
    RAY = "ray"


Only = Annotated[list[str] | None, typer.Option(help="An experiment. May be repeated. By default all of them.")]
Smoke = Annotated[bool, typer.Option("--smoke", help="A tiny version of everything, in seconds.")]
Replicated = Annotated[int | None, typer.Option(help="Replications of every setting. By default 60 or 400.")]
Jobs = Annotated[int | None, typer.Option(help="How many processes work. By default one for each core.")]
ResultsFolder = Annotated[Path, typer.Option(help="The folder with the results.")]
ReportFolder = Annotated[
    Path | None, typer.Option(help="The folder of the report. By default report, or report-smoke.")
]


app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Every figure and number of the paper's evaluation.",
)


@app.command("run")
def reproduce(
    only: Only = None,
    smoke: Smoke = False,
    replications: Replicated = None,
    seed: SeedOption = 0,
    jobs: Jobs = None,
    force: Annotated[bool, typer.Option("--force", help="Compute finished settings again.")] = False,
    backend: Annotated[
        BackendName, typer.Option(help="Where to compute: processes of this machine, or a cluster.")
    ] = BackendName.LOKY,
    address: Annotated[
        str | None, typer.Option(help="The address of the dask or ray cluster. By default one is started here.")
    ] = None,
    results: ResultsFolder = Path("results"),
    report_to: Annotated[
        Path | None, typer.Option("--report", help="The folder of the report. By default report, or report-smoke.")
    ] = None,
    show_list: Annotated[bool, typer.Option("--list", help="Only list the experiments and what is finished.")] = False,
) -> None:
    """Compute every figure and number of the paper's evaluation, and write the report.

    Finished settings are never computed again, so an interrupted run continues where it stopped. The report covers all
    stored results, whichever experiments were asked for now.
    """
    scale = scale_of(smoke, replications, seed)
    chosen = experiments(scale, only or ())
    store = Store(results)
    if show_list:
        _show_list(chosen, store)
        return
    check_backend(backend.value, address)
    checked_jobs(jobs)
    report_folder = _report_folder(report_to, smoke)
    for folder in (results, report_folder):
        _check_folder(folder)
    settings = [setting for experiment in chosen for setting in experiment.settings]
    done = run(
        settings,
        store,
        jobs=jobs,
        force=force,
        backend=backend.value,
        address=address,
        mode="interpreted" if smoke else "auto",
    )
    _show_done(chosen, done)
    _write(scale, experiments(scale), store, report_folder, jobs)


@app.command()
def report(
    only: Only = None,
    smoke: Smoke = False,
    replications: Replicated = None,
    seed: SeedOption = 0,
    results: ResultsFolder = Path("results"),
    out: ReportFolder = None,
    jobs: Jobs = None,
) -> None:
    """Write the report of the reproduction from stored results, without computing anything.

    Writes a page (index.html), its figures as PNG and PDF, and every number as JSON (summary.json).
    """
    scale = scale_of(smoke, replications, seed)
    _write(scale, experiments(scale, only or ()), Store(results), _report_folder(out, smoke), jobs)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    return run_command(app, "python -m reproduction", arguments)


def _report_folder(given: Path | None, smoke: bool) -> Path:
    """Return the folder of the report. A tiny run has its own, so that it does not replace a real report."""
    return given or Path("report-smoke" if smoke else "report")


def _write(scale: Scale, chosen: list[Experiment], store: Store, folder: Path, jobs: int | None) -> None:
    from reproduction.report import write_report  # imported here, because it imports matplotlib, which takes a while

    page = write_report(Results(scale, chosen, store), folder, ar.__version__, checked_jobs(jobs))
    show(f"the report is in {page}")


def _check_folder(folder: Path) -> None:
    """Refuse a folder that cannot be written to, before anything is computed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InvalidFile(f"nothing can be written to {folder}: {error.strerror or error}") from error


def _show_list(chosen: list[Experiment], store: Store) -> None:
    rows = []
    for experiment in chosen:
        finished = sum(1 for setting in experiment.settings if store.state(setting) == "finished")
        needs = sorted({why for setting in experiment.settings if (why := missing(setting)) is not None})
        rows.append(
            (
                experiment.name,
                f"needs {', '.join(needs)}" if needs else "",
                str(finished),
                str(len(experiment.settings)),
            )
        )
    show(table(("experiment", "", "finished", "settings"), rows, texts=2))


def _show_done(chosen: list[Experiment], done: Done) -> None:
    for sentence in done.damaged:
        show(f"computed again: {sentence}")
    computed, skipped = {one.key for one in done.computed}, {one.key for one in done.skipped}
    rows = []
    for experiment in chosen:
        keys = {setting.key for setting in experiment.settings}
        needs = sorted({str(one.needs) for one in done.skipped if one.key in keys})
        time = sum(done.processor_seconds.get(key, 0.0) for key in keys)
        left = f"{len(keys & skipped)} need {', '.join(needs)}" if needs else ""
        counts = (str(len(keys & computed)), str(len(keys - computed - skipped)))
        rows.append((experiment.name, *counts, left, seconds(time)))
    show(table(("experiment", "computed", "found", "skipped", "processor time"), rows))
    show("", f"{len(done.computed)} settings computed in {seconds(done.seconds)}")
    if 0.0 < done.seconds_before_training < done.seconds:
        show(f"all but the lines of the Regressor in {seconds(done.seconds_before_training)}")
    if done.of_other_code:
        show(
            f"{done.of_other_code} of the results found were computed by other code than this; "
            "--force computes them again"
        )
