"""`artreplay serve`: studies over HTTP."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated, Literal

import typer

from artreplay.cli.study_commands import from_here
from artreplay.optional_packages import needed


def serve(
    studies: Annotated[list[str], typer.Argument(metavar="STUDY…", help="Files of studies, or postgresql://…#name.")],
    host: Annotated[str, typer.Option(help="Where to listen. Other machines need --tokens.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="The port to listen on.")] = 8080,
    tokens: Annotated[
        Path | None,
        typer.Option(help='A file with a role (decide, read or admin) and a token in each line, as in "read 5f0c…".'),
    ] = None,
    wait_for_owner: Annotated[
        bool, typer.Option("--wait-for-owner", help="Start while another process owns a study, and take over from it.")
    ] = False,
    new_actions: Annotated[
        Literal["add", "refuse"],
        typer.Option(help="What happens if a client of Personalizer ranks an action that is no arm."),
    ] = "add",
    algorithm: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:FUNCTION",
            help="What makes the algorithm of these studies, if it is your own.",
            callback=from_here,
        ),
    ] = None,
) -> None:
    """Serve studies over HTTP, as their one owner, to any number of workers."""
    for package in ("fastapi", "uvicorn", "prometheus_client"):
        needed(package, "artreplay serve", "serve")
    from artreplay.serving.access import Tokens
    from artreplay.serving.service import run_service

    logging.basicConfig(format="%(asctime)s %(name)s %(message)s")
    logging.getLogger("artreplay").setLevel(logging.INFO)
    known = None if tokens is None else Tokens.read(tokens)
    run_service(studies, host, port, known, wait_for_owner, new_actions == "add", algorithm)
