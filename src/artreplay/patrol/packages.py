"""The packages of the extra `geo`, imported when they are needed and not before."""

from __future__ import annotations

import importlib
from typing import Any

from artreplay.errors import MissingPackage


def package(name: str, extra: str = "geo") -> Any:
    """A package that an extra brings; where it is missing, one sentence says how to get it.

    >>> package("no_such_package")
    Traceback (most recent call last):
    artreplay.errors.MissingPackage: this needs the package no_such_package: pip install "artreplay[geo]"
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingPackage(
            f'this needs the package {name.partition(".")[0]}: pip install "artreplay[{extra}]"'
        ) from error
