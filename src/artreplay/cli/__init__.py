"""The commands: `artreplay --help`."""

from artreplay.cli.app import main

__all__ = ["main"]
