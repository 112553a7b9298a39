"""Packages that not everyone has installed: imported when they are needed and not before."""

from __future__ import annotations

import importlib
from typing import Any

from artreplay.errors import MissingPackage


def needed(module: str, for_what: str, extra: str = "sql") -> Any:
    """A module that an extra brings; where it is missing, one sentence says how to get it.

    >>> needed("no_such_package.part", "flying")
    Traceback (most recent call last):
    artreplay.errors.MissingPackage: flying needs the package no_such_package: pip install "artreplay[sql]"
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        raise MissingPackage(f'{for_what} needs the package {name}: pip install "artreplay[{extra}]"') from error
