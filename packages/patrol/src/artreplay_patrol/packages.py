"""Packages that read and draw maps: imported when they are needed and not before, because that takes a while."""

from __future__ import annotations

import importlib
from typing import Any

from artreplay.errors import MissingPackage


def package(module: str) -> Any:
    """A module that installing this package brings; where it is missing, one sentence says how to get it.

    >>> package("no_such_package.part")
    Traceback (most recent call last):
    artreplay.errors.MissingPackage: this needs the package no_such_package: pip install artreplay-patrol
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        raise MissingPackage(f"this needs the package {name}: pip install artreplay-patrol") from error
