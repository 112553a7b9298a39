"""Imports packages that not everyone has installed, only when they are needed."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from artreplay.errors import MissingPackage


def needed(module: str, for_what: str, extra: str = "sql") -> Any:
    """Import a module that the extra `extra` installs. If it is missing, the error says how to install it.

    >>> needed("no_such_package.part", "flying")
    Traceback (most recent call last):
    artreplay.errors.MissingPackage: flying needs the package no_such_package. Run pip install "artreplay[sql]"
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise missing_package(module.partition(".")[0], for_what, extra) from error


def is_installed(package: str) -> bool:
    """Whether a package can be imported. It is not imported to find out."""
    return importlib.util.find_spec(package) is not None


def missing_package(name: str, for_what: str, extra: str) -> MissingPackage:
    """The error that says what a package is needed for, and which extra installs it."""
    return MissingPackage(f'{for_what} needs the package {name}. Run pip install "artreplay[{extra}]"')
