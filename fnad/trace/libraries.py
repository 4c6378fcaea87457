"""Whose code it is, by its file: the user's or a library's."""

from __future__ import annotations

import os
from functools import lru_cache

import numpy as np

# Prefixes of text: pathlib would add a tenth to the time that importing fnad takes.
_SITE = str(np.__file__).rpartition(f"numpy{os.sep}")[0]
_OWN = __file__.rpartition(f"trace{os.sep}")[0]
_MACHINERY = (_OWN, *[f"{_SITE}{name}{os.sep}" for name in ("numpy", "scipy")])
_FOUNDATION = (*_MACHINERY, *[f"{_SITE}{name}{os.sep}" for name in ("numba", "llvmlite", "optree")])
_TESTING = tuple(f"{_SITE}{name}{os.sep}" for name in ("_pytest", "pluggy"))  # an `assert` under pytest runs its code
_STANDARD = os.__file__.removesuffix("os.py")
_THIRD_PARTY = tuple(f"{_STANDARD}{name}{os.sep}" for name in ("site-packages", "dist-packages"))
_INSTALLED = tuple(f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages"))
_INTERNAL = ("<frozen ", "<__array_function__ ")


@lru_cache(maxsize=4096)
def is_machinery(file: str) -> bool:
    """Whether a file is one of fnad's, NumPy's or SciPy's: what runs between the user's line and a primitive."""
    return file.startswith(_MACHINERY)


@lru_cache(maxsize=4096)
def is_testing(file: str) -> bool:
    """Whether a file is one of pytest's, whose code an `assert` runs, or that CPython or NumPy runs unasked."""
    return file.startswith((*_TESTING, *_INTERNAL))


@lru_cache(maxsize=4096)
def is_library(file: str) -> bool:
    """Whether a file belongs to the standard library, to this package or what it stands on, or to pytest."""
    if file.startswith((*_FOUNDATION, *_TESTING, *_INTERNAL)):
        return True
    return file.startswith(_STANDARD) and not file.startswith(_THIRD_PARTY)


@lru_cache(maxsize=4096)
def is_trusted(file: str) -> bool:
    """Whether what the code of a file reads is not noted: a library's, or pandas's, whose objects are compared."""
    return is_library(file) or package_of(file) == "pandas"


@lru_cache(maxsize=4096)
def package_of(file: str) -> str | None:
    """The installed package that a file belongs to; None for the user's own files."""
    inside = next((file.partition(folder)[2] for folder in _INSTALLED if folder in file), "")
    return inside.partition(os.sep)[0] or None
