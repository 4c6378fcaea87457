"""The forms in which a program leaves the process, by the names that `fnad.export` uses."""

from __future__ import annotations

from fnad.backends.standalone import c_source, python_module
from fnad.backends.standalone.native import LoadedFunction, low_level_callable, object_file
from fnad.backends.standalone.numba_function import RESULT, numba_function, numba_into
from fnad.backends.standalone.program import Standalone, lowered, standalone

__all__ = [
    "RESULT",
    "LoadedFunction",
    "Standalone",
    "c_source",
    "low_level_callable",
    "lowered",
    "numba_function",
    "numba_into",
    "object_file",
    "python_module",
    "standalone",
]
