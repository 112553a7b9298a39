"""Real parts that long tests need, a browser, a cluster: where one is missing they fail, unless ALLOW_MISSING=1."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


def needed(part: str, found: Any) -> Any:
    """What was found; in one line, what is missing."""
    if not found:
        if os.environ.get("ALLOW_MISSING"):
            pytest.skip(f"{part} is missing")
        pytest.fail(f"{part} is missing: install it, or set ALLOW_MISSING=1", pytrace=False)
    return found


def needed_package(name: str) -> None:
    """A package that must be installed."""
    needed(f"the package {name}", importlib.util.find_spec(name))


@contextmanager
def spark_session() -> Iterator[Any]:
    """A Spark of this machine alone, on the Java that is installed."""
    import signal

    needed_package("pyspark")
    needed("a Java for Spark", shutil.which("java") or os.environ.get("JAVA_HOME"))
    from pyspark.sql import SparkSession

    heard = signal.getsignal(signal.SIGINT)  # Spark takes Ctrl-C for itself, and keeps it
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    # Few rows would be put into one file.
    builder = builder.config("spark.sql.adaptive.coalescePartitions.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "3").getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()
        signal.signal(signal.SIGINT, heard)
