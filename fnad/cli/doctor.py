"""`fnad doctor`: what fnad stands on here, for bug reports and for finding out why something is slow."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from fnad.cli.table import columns

PACKAGES = ("fnad", "numpy", "numba", "llvmlite", "scipy", "optree")

SETTINGS = ("NUMBA_DISABLE_JIT", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Variables of the environment that change how programs run."""

CACHE = "cache", "none on disk: compiled programs live in memory"


def report() -> str:
    """Return a line for each thing that matters."""
    return columns([*_versions(), *_machine(), *_settings(), CACHE])


def _versions() -> Iterator[tuple[str, str]]:
    yield "python", f"{platform.python_version()} ({platform.python_implementation()}, {platform.platform()})"
    for package in PACKAGES:
        yield package, _version(package)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _machine() -> Iterator[tuple[str, str]]:
    try:
        from fnad.backends.numba.machine import offers  # noqa: PLC0415  the other commands need no Numba
    except ImportError as error:
        yield "native code", f"not available: {error}"
        return
    yield from offers()


def _settings() -> Iterator[tuple[str, str]]:
    for name in SETTINGS:
        if name in os.environ:
            yield name, os.environ[name]
