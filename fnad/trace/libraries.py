"""Whose code it is, by its file: the user's or a library's."""

from __future__ import annotations

import os
import sys
from functools import cache, lru_cache
from importlib.util import find_spec

_OWN = __file__.rpartition(f"trace{os.sep}")[0]
_STANDARD = os.__file__.removesuffix("os.py")
_THIRD_PARTY = tuple(f"{_STANDARD}{name}{os.sep}" for name in ("site-packages", "dist-packages"))
_INSTALLED = tuple(f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages"))
_COMMAND = f"{sys.executable.rpartition(os.sep)[0]}{os.sep}fnad"
"""The script that pip writes for the command."""
_INTERNAL = ("<frozen ", "<__array_function__ ")


@cache
def _folders(*packages: str) -> tuple[str, ...]:
    """The directories of packages; each may be in another one, as with several environments in one path, or in Nix."""
    found = (find_spec(package) for package in packages)
    places = [place for spec in found if spec is not None for place in spec.submodule_search_locations or ()]
    return tuple(f"{place}{os.sep}" for place in places)


@lru_cache(maxsize=4096)
def is_machinery(file: str) -> bool:
    """True if a file belongs to fnad, NumPy or SciPy: what runs between the user's line and a primitive."""
    return file.startswith((_OWN, *_folders("numpy", "scipy")))


@lru_cache(maxsize=4096)
def is_entered(file: str) -> bool:
    """True for the files of SciPy and numpy.ma, of which a function may be converted."""
    return file.startswith((*_folders("scipy"), *(f"{place}ma{os.sep}" for place in _folders("numpy"))))


@lru_cache(maxsize=4096)
def is_standard(file: str) -> bool:
    """True for the files of the standard library."""
    return file.startswith(_STANDARD) and not file.startswith(_THIRD_PARTY)


@lru_cache(maxsize=4096)
def is_of_numba(file: str) -> bool:
    """True for the files of Numba."""
    return file.startswith(_folders("numba"))


@lru_cache(maxsize=4096)
def is_testing(file: str) -> bool:
    """True if a file belongs to pytest, whose code an `assert` runs, or that CPython or NumPy runs unasked."""
    return file.startswith((*_folders("_pytest", "pluggy"), *_INTERNAL))


@lru_cache(maxsize=4096)
def is_library(file: str) -> bool:
    """True if a file belongs to the standard library, to this package or what it stands on, or to pytest."""
    if is_machinery(file) or is_testing(file) or file.startswith(_folders("numba", "llvmlite", "optree")):
        return True
    if file == _COMMAND:
        return True
    return is_standard(file)


@lru_cache(maxsize=4096)
def is_trusted(file: str) -> bool:
    """True if what the code of a file reads is not noted: a library's, or pandas's, whose objects are compared."""
    return is_library(file) or package_of(file) == "pandas"


@lru_cache(maxsize=4096)
def package_of(file: str) -> str | None:
    """The installed package that a file belongs to; None for the user's own files."""
    inside = next((file.partition(folder)[2] for folder in _INSTALLED if folder in file), "")
    return inside.partition(os.sep)[0] or None
